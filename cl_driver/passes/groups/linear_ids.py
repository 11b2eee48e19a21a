"""Where lanes follow the linear local id and all groups have one size, which is known: ids as arithmetic.

Groups whose rows are shorter than a vector fill it with several rows. A local id is then a remainder of the
linear one, and a global id one plus what is the same in the whole group. Expressions that kernels write for
the linear local id, y * width + x say, count lanes up again.
"""

from __future__ import annotations

import math
from itertools import pairwise

from ...records import record
from ...spirv.enums import BuiltIn, Op, StorageClass
from ...spirv.module import Constant, Function, Instruction, Kind, Operand, Type, Value, Variable
from ...spirv.types import TypeTable
from ..ir.instructions import is_constant_int, is_id, replace_instructions
from ..ir.ops import PassBuiltIn
from ..ir.plan import PlanError
from ..scalar.simplify import simplify
from .lockstep import component_of, put_sizes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

_IDS = (BuiltIn.LocalInvocationId, BuiltIn.GlobalInvocationId)
_INT_MAX = (1 << 31) - 1
_BITS = 32  # in which ids of a group are computed

_Three: TypeAlias = tuple[int, int, int]


def put_linear_ids(function: Function, types: TypeTable, group: _Three) -> None:
    """Replaces the ids in a function. PlanError where one is used in another way than by its components."""
    put_sizes(function, types, group)
    simplify(function, types)
    lowering = _Lowering(function, types, group)
    found = lowering.linear_sums()
    found |= lowering.ids()
    replace_instructions(function, found)
    function.blocks[0].instructions[:0] = lowering.added
    simplify(function, types)
    for block in function.blocks:
        for i in block.instructions:
            if any(isinstance(o, Variable) and o.builtin in _IDS for o in i.operands):
                raise PlanError("ids that are not used by their components")


@record(frozen=True, slots=True)
class _Sum:
    """x * factors[0] + y * factors[1] + z * factors[2] + constant of local ids; nothing of it negative."""

    factors: _Three
    constant: int = 0

    def most(self, group: _Three) -> int:
        return sum(f * (size - 1) for f, size in zip(self.factors, group, strict=True)) + self.constant

    @property
    def zeros(self) -> int:
        """Bits that are zero in every value, from the lowest on."""
        bits = self.factors[0] | self.factors[1] | self.factors[2] | self.constant
        return (bits & -bits).bit_length() - 1 if bits else _BITS


class _Lowering:
    def __init__(self, function: Function, types: TypeTable, group: _Three) -> None:
        self.function, self.types, self.group = function, types, group
        self.int = types.int(_BITS)
        self.added: list[Instruction] = []  # which goes in front of the function
        self.inputs: dict[BuiltIn, Instruction] = {}
        self.local: dict[int, Value] = {}  # components of the local id
        self.sums: dict[Value, _Sum | None] = {}

    # Sums that are the linear local id.

    def linear_sums(self) -> dict[Instruction, Value]:
        """What stands for sums of several components that count through rows, planes or all of the group."""
        found: dict[Instruction, Value] = {}
        for block in self.function.blocks:
            for i in block.instructions:
                if i.op not in (Op.IAdd, Op.BitwiseOr):
                    continue
                known = self.sum_of(i)
                if known is not None and (dimensions := self.dimensions(known)):
                    first, last = dimensions[0], dimensions[-1]
                    step = math.prod(self.group[:first])
                    value = self.remainder(step, math.prod(self.group[first : last + 1]))
                    value = self.scaled(value, known.factors[first], known.constant)
                    found[i] = self.convert(i.type, value)
        return found

    def dimensions(self, known: _Sum) -> list[int]:
        """Those, several, that a sum goes through one after the other, each once; none for other sums."""
        found = [k for k in range(3) if self.group[k] > 1 and known.factors[k]]
        for k, following in pairwise(found):
            steps = math.prod(self.group[k:following])
            if known.factors[following] != known.factors[k] * steps or steps != self.group[k]:
                return []
        return found if len(found) > 1 else []

    def scaled(self, value: Value, factor: int, constant: int) -> Value:
        if factor > 1:
            value = self.add(Op.IMul, self.int, value, self.number(factor))
        return self.add(Op.IAdd, self.int, value, self.number(constant)) if constant else value

    def sum_of(self, value: Value) -> _Sum | None:
        """None for what is no such sum, or does not fit an int."""
        if isinstance(value, Constant):
            is_small = is_constant_int(value) and 0 <= (value.value or 0) <= _INT_MAX
            return _Sum((0, 0, 0), value.value or 0) if is_small else None
        if not isinstance(value, Instruction):
            return None
        if value not in self.sums:
            self.sums[value] = None
            self.sums[value] = self.compute(value)
        return self.sums[value]

    def compute(self, i: Instruction) -> _Sum | None:
        if i.type is None or i.type.kind is not Kind.INT or i.type.width < _BITS:
            return None
        variable, k = component_of(i)
        if variable is not None and k is not None:
            if variable.builtin != BuiltIn.LocalInvocationId:
                return None
            return _Sum((int(k == 0), int(k == 1), int(k == 2)))
        if i.op in (Op.UConvert, Op.SConvert):
            return self.sum_of(i.operands[0])
        if i.op not in (Op.IAdd, Op.BitwiseOr, Op.IMul, Op.ShiftLeftLogical):
            return None
        a, b = (self.sum_of(o) for o in i.operands)
        if a is None or b is None:
            return None
        if i.op is Op.IAdd or (i.op is Op.BitwiseOr and self.are_apart(a, b)):
            return self.made(a, b, 1)
        if i.op is Op.IMul and not any(a.factors):
            a, b = b, a
        if any(b.factors) or i.op is Op.BitwiseOr or (i.op is not Op.IMul and b.constant >= _BITS):
            return None
        return self.made(a, _Sum((0, 0, 0)), b.constant if i.op is Op.IMul else 1 << b.constant)

    def are_apart(self, a: _Sum, b: _Sum) -> bool:
        """Whether no bit is set in both."""
        return a.most(self.group) < 1 << b.zeros or b.most(self.group) < 1 << a.zeros

    def made(self, a: _Sum, b: _Sum, factor: int) -> _Sum | None:
        """a * factor + b."""
        x, y, z = (p * factor + q for p, q in zip(a.factors, b.factors, strict=True))
        found = _Sum((x, y, z), a.constant * factor + b.constant)
        return found if found.most(self.group) <= _INT_MAX else None

    # Components of ids.

    def ids(self) -> dict[Instruction, Value]:
        """What stands for the components of ids."""
        found: dict[Instruction, Value] = {}
        for block in self.function.blocks:
            for i in block.instructions:
                if is_id(i) and i.operands[0].builtin == BuiltIn.GlobalLinearId:
                    found[i] = self.global_linear_id(i.type)
                variable, k = component_of(i)
                if variable is None or k is None or variable.builtin not in _IDS:
                    continue
                value = self.convert(i.type, self.local_id(k))
                if variable.builtin == BuiltIn.GlobalInvocationId:
                    value = self.add(
                        Op.IAdd, i.type, self.component(PassBuiltIn.GroupOrigin, i.type, k), value
                    )
                found[i] = value
        return found

    def local_id(self, k: int) -> Value:
        if k not in self.local:
            self.local[k] = self.remainder(math.prod(self.group[:k]), self.group[k])
        return self.local[k]

    def remainder(self, step: int, size: int) -> Value:
        """index / step % size; with shifts and masks, of which more is known, where they do."""
        if size == 1:
            return self.number(0)
        value: Value = self.index()
        if step & (step - 1):
            value = self.add(Op.UDiv, self.int, value, self.number(step))
        elif step > 1:
            value = self.add(Op.ShiftRightLogical, self.int, value, self.number(step.bit_length() - 1))
        if math.prod(self.group) == step * size:
            return value
        if size & (size - 1):
            return self.add(Op.UMod, self.int, value, self.number(size))
        return self.add(Op.BitwiseAnd, self.int, value, self.number(size - 1))

    def global_linear_id(self, type_: Type) -> Value:
        """OpenCL C 6.15.1, get_global_linear_id: without the global offset, x fastest."""
        total: Value | None = None
        for k in (2, 1, 0):
            group = self.component(BuiltIn.WorkgroupId, type_, k)
            before = self.add(Op.IMul, type_, group, self.types.integer(type_.width, self.group[k]))
            value = self.add(Op.IAdd, type_, before, self.convert(type_, self.local_id(k)))
            if total is not None:
                total = self.add(Op.IMul, type_, total, self.component(BuiltIn.GlobalSize, type_, k))
                value = self.add(Op.IAdd, type_, total, value)
            total = value
        assert total is not None
        return total

    # Small pieces.

    def number(self, value: int) -> Constant:
        return self.types.integer(_BITS, value)

    def add(self, op: Op, type_: Type, *operands: Operand) -> Instruction:
        """In front of the function, behind what was added before."""
        instruction = Instruction(op, type_, list(operands), self.function.blocks[0])
        self.added.append(instruction)
        return instruction

    def convert(self, type_: Type, value: Value) -> Value:
        return value if type_ is self.int else self.add(Op.UConvert, type_, value)

    def index(self) -> Instruction:
        """The linear local id, in 32 bits."""
        found = self.inputs.get(BuiltIn.LocalInvocationIndex)
        if found is None:
            load = self.load(BuiltIn.LocalInvocationIndex, self.types.int(64))
            found = self.inputs[BuiltIn.LocalInvocationIndex] = self.add(Op.UConvert, self.int, load)
        return found

    def component(self, builtin: BuiltIn, type_: Type, k: int) -> Instruction:
        if builtin not in self.inputs:
            self.inputs[builtin] = self.load(builtin, self.types.vector(type_, 3))
        return self.add(Op.CompositeExtract, type_, self.inputs[builtin], k)

    def load(self, builtin: BuiltIn, type_: Type) -> Instruction:
        pointer = self.types.pointer(StorageClass.Input, type_)
        variable = Variable(pointer, name=f"__spirv_BuiltIn{builtin.name}")
        variable.builtin = builtin
        return self.add(Op.Load, type_, variable)
