"""What a finished set of regions needs around it: module variables, built-in inputs, library calls."""

from __future__ import annotations

from ...spirv.enums import BuiltIn, Decoration, Op, StorageClass
from ...spirv.module import Constant, ConstantExpr, Function, Instruction, Value, Variable
from .instructions import EXTINST_PRINTF, is_extinst
from .layout import alignment_of, size_of
from .link_names import PIPE_FUNCTIONS
from .plan import KernelPlan, LocalVariable

LOCAL_ALIGNMENT = 16  # at least this for arrays in local memory, so that vectors of work-items load aligned


def describe(plan: KernelPlan) -> None:
    """Fills in the variables, built-ins and calls of a plan from its regions."""
    found = _Found()
    for region in plan.regions:
        found.scan(region.function, region.shapes.part_of)
    for function in plan.vector_functions:
        found.scan(function, {})
    plan.builtins = found.builtins
    plan.calls = list(found.calls)
    plan.uses_printf = found.uses_printf
    plan.uses_pipes = any(f.linkage is not None and f.linkage[0] in PIPE_FUNCTIONS for f in plan.calls)
    plan.private_size = found.private_size
    offset = 0
    for variable in found.variables:
        storage = variable.type.storage
        if storage is StorageClass.Workgroup:
            size, alignment = size_of(variable.type.element), variable_alignment(variable)
            offset = -(-offset // alignment) * alignment
            plan.local_variables.append(LocalVariable(variable, offset, size, alignment))
            offset += size
        elif storage is StorageClass.UniformConstant:
            plan.constants.append(variable)
        elif storage is StorageClass.CrossWorkgroup:
            plan.globals.append(variable)
    plan.local_size = offset


def variable_alignment(variable: Variable | Instruction) -> int:
    """The alignment of a variable, in bytes: its type's, its decoration's, more for arrays."""
    alignment = alignment_of(variable.type.element)
    decorated = variable.decorations.get(Decoration.Alignment)
    if decorated:
        alignment = max(alignment, decorated[0] if isinstance(decorated, tuple) else decorated)
    if size_of(variable.type.element) >= LOCAL_ALIGNMENT:
        alignment = max(alignment, LOCAL_ALIGNMENT)
    return alignment


class _Found:
    def __init__(self) -> None:
        self.builtins: set[BuiltIn] = set()
        self.calls: dict[Function, None] = {}
        self.variables: dict[Variable, None] = {}
        self.uses_printf = False
        self.private_size = 0
        self.seen: set[Value] = set()

    def scan(self, function: Function, part_of: dict[Instruction, int]) -> None:
        for block in function.blocks:
            for instruction in block.instructions:
                op = instruction.op
                if op is Op.FunctionCall:
                    self.calls[instruction.operands[0]] = None
                elif op is Op.Variable and instruction not in part_of:
                    self.private_size += size_of(instruction.type.element)
                elif op is Op.ExtInst and is_extinst(instruction, EXTINST_PRINTF):
                    self.uses_printf = True
                for operand in instruction.operands:
                    kind = type(operand)
                    if kind is Variable or kind is ConstantExpr or kind is Constant:
                        self.value(operand)

    def value(self, value: Value) -> None:
        """A module-scope value and everything that it is made of."""
        if value in self.seen:
            return
        self.seen.add(value)
        if isinstance(value, Variable):
            if value.builtin is not None:
                self.builtins.add(value.builtin)
                return
            if value.initializer is not None:
                self.value(value.initializer)
            self.variables[value] = None
        elif isinstance(value, ConstantExpr):
            for operand in value.operands:
                if isinstance(operand, (Variable, Constant, ConstantExpr)):
                    self.value(operand)
        elif isinstance(value, Constant) and isinstance(value.value, tuple):
            for constituent in value.value:
                self.value(constituent)
