"""Which accesses are known not to meet: `restrict`, and memory that is constant.

OpenCL C 3.0, section 6.3 (restrict, as in C99 6.7.3.1); SPIR-V 1.6, sections 3.20 and 3.19: the decorations
Restrict and FuncParamAttr NoAlias. What a work-item modifies by way of such a pointer it accesses in no
other way. Every such kernel parameter or variable is a scope of LLVM's; an access whose address is computed
from it is in the scope, one whose address is computed from other objects alone is outside.

What C says of one execution of a function is taken as said of one work-item. Work-items may yet hand memory
to one another, having named it in different ways, so scopes end where that can be in order: each region
between barriers has scopes of its own, and none if it can run again; kernels with barriers of sub-groups,
fences or ordering atomics have none at all (KernelPlan.orders_memory). A pass that drops a barrier of the
work-group because its work-items run in step must say there that memory is ordered.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...passes.analysis.roots import SAME_OBJECT, Root, has_attribute, is_restrict, roots
from ...passes.ir.plan import KernelPlan, Region, recurs
from ...spirv.enums import Decoration, FunctionParameterAttribute, StorageClass
from ...spirv.module import Argument, Instruction, Kind, Value, Variable

INVARIANT = ", !invariant.load !1"

_FIRST = 1 << 19  # number of the first metadata node, above those of the regions


def _is_read_only(pointer: Root) -> bool:
    """Whether nothing is written by way of a parameter."""
    no_write = has_attribute(pointer, FunctionParameterAttribute.NoWrite)
    return no_write or Decoration.NonWritable in pointer.decorations


class AliasScopes:
    """The metadata of the accesses of one region. New nodes are appended to `metadata`, as text."""

    def __init__(self, plan: KernelPlan, region: Region, metadata: list[str]) -> None:
        self._scopes: dict[Root, int] = {}  # number of each restrict pointer's scope
        self._is_single = len(plan.regions) == 1
        self._roots: dict[Value, frozenset[Root] | None] = {}
        candidates: list[Argument | Variable] = [
            *plan.arguments,
            *(local.variable for local in plan.local_variables),
            *plan.globals,
        ]
        found = [c for c in candidates if c.type.kind is Kind.POINTER and is_restrict(c)]
        if not found or region.once or plan.orders_memory or recurs(plan, region):
            return
        domain = _FIRST + len(metadata)
        metadata.append(f"!{domain} = distinct !{{!{domain}}}")
        for pointer in found:
            number = self._scopes[pointer] = _FIRST + len(metadata)
            metadata.append(f"!{number} = distinct !{{!{number}, !{domain}}}")

    def of(self, pointer: Value, is_load: bool = False) -> str:
        """The metadata, "" or beginning with a comma, of a load or store through a pointer Value.

        is_load: of a load of which nothing is masked, so that it may also be said to be invariant.
        """
        if is_load and _is_constant(pointer):
            return INVARIANT
        if not self._scopes:
            return ""
        roots = self._roots_of(pointer)
        if not roots:
            return ""
        scopes = self._scopes
        if is_load and self._is_single and all(r in scopes and _is_read_only(r) for r in roots):
            return INVARIANT
        inside = [scopes[root] for root in roots if root in scopes]
        outside = [number for root, number in scopes.items() if root not in roots]
        text = f", !alias.scope {_node(inside)}" if len(inside) == len(roots) else ""
        return text + (f", !noalias {_node(outside)}" if outside else "")

    def _roots_of(self, pointer: Value) -> frozenset[Root] | None:
        """The parameters and variables that an address may be computed from; None if that is not known."""
        if pointer not in self._roots:
            self._roots[pointer] = roots(pointer)
        return self._roots[pointer]


def _node(numbers: Iterable[int]) -> str:
    return "!{" + ", ".join(f"!{number}" for number in sorted(numbers)) + "}"


def _is_constant(pointer: Value) -> bool:
    """Whether nothing changes while kernels run where a pointer points to."""
    if pointer.type.storage == StorageClass.UniformConstant:
        return True
    while isinstance(pointer, Instruction) and pointer.op in SAME_OBJECT:
        pointer = pointer.operands[0]
    return isinstance(pointer, Variable) and Decoration.Constant in pointer.decorations
