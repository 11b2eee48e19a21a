"""Components of OpenCL vectors computed one by one: one may be uniform, or count lanes up, where others vary.

Of a pixel's coordinates x counts lanes up and y is the same for all of them; as a vector they just vary. For
kernels with images (lower/images.py), at widths above 1, where a vector is one register per component anyway.
"""

from __future__ import annotations

from ...spirv.enums import Op
from ...spirv.module import Function, Instruction, Kind, Value
from ...spirv.types import TypeTable
from ..ir.instructions import substitute, users

# Operations on each component by itself, whose operands are vectors of as many.
_SEPARATE = frozenset((
    Op.IAdd, Op.ISub, Op.IMul, Op.SNegate, Op.Not, Op.BitwiseAnd, Op.BitwiseOr, Op.BitwiseXor,
    Op.FAdd, Op.FSub, Op.FMul, Op.FDiv, Op.FNegate,
    Op.ShiftLeftLogical, Op.ShiftRightLogical, Op.ShiftRightArithmetic,
    Op.ConvertSToF, Op.ConvertUToF, Op.ConvertFToS, Op.SConvert, Op.UConvert, Op.FConvert,
))  # fmt: skip
_DIVIDED = _SEPARATE | {Op.VectorTimesScalar, Op.VectorShuffle}
_ANY = 0xFFFFFFFF  # a component of OpVectorShuffle that may be anything


def scalarise(function: Function, types: TypeTable) -> None:
    """Blocks are in reverse postorder. Integers always; numbers of which nobody wants the whole vector."""
    divided = _divided(function)
    if divided:
        _Split(function, types, divided).run()


def _divided(function: Function) -> set[Instruction]:
    """The vectors to be computed component by component."""
    used = users(function)
    divided: set[Instruction] = set()
    for block in reversed(function.blocks):
        for i in reversed(block.instructions):
            if i.op not in _DIVIDED or i.type.kind is not Kind.VECTOR:
                continue
            if i.type.element.kind is Kind.INT or all(
                user.op is Op.CompositeExtract or user in divided for user in used.get(i, ())
            ):
                divided.add(i)
    return divided


class _Split:
    def __init__(self, function: Function, types: TypeTable, divided: set[Instruction]) -> None:
        self.function, self.types, self.divided = function, types, divided
        self.components: dict[Value, list[Value]] = {}
        self.made: list[Instruction] = []  # in the block that is being gone through

    def run(self) -> None:
        replaced: dict[Value, Value] = {}
        for block in self.function.blocks:
            old, self.made = block.instructions, []
            for i in old:
                if i in self.divided:
                    count = len(self.made)
                    self.components[i] = [self.component(i, k) for k in range(i.type.count)]
                    for made in self.made[count:]:
                        made.block, made.line = block, i.line
                elif i.op is Op.CompositeExtract and i.operands[0] in self.components:
                    replaced[i] = self.components[i.operands[0]][i.operands[1]]
                    continue
                self.made.append(i)
            block.instructions = self.made
        substitute(self.function, replaced)

    def component(self, vector: Instruction, number: int) -> Value:
        type_ = vector.type.element
        if vector.op is Op.VectorShuffle:
            a, b, *places = vector.operands
            place = places[number]
            if place == _ANY:
                return self.types.undef(type_)
            count = a.type.count
            return self.extract(a, place) if place < count else self.extract(b, place - count)
        if vector.op is Op.VectorTimesScalar:
            made = Instruction(Op.FMul, type_, [self.extract(vector.operands[0], number), vector.operands[1]])
        else:
            made = Instruction(vector.op, type_, [self.extract(o, number) for o in vector.operands])
        made.decorations = vector.decorations
        self.made.append(made)
        return made

    def extract(self, value: Value, number: int) -> Value:
        if value in self.components:
            return self.components[value][number]
        made = Instruction(Op.CompositeExtract, value.type.element, [value, number])
        self.made.append(made)
        return made
