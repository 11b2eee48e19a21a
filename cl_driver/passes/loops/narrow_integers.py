"""OpenCL vectors of int whose numbers fit 16 bits, computed with 16: sums of pixels, averages, weights.

Only what is made of bytes or shorts and becomes bytes or shorts again, so that nothing is converted there and
back. A sum in a loop is bounded by how often the loop runs.
"""

from __future__ import annotations

from ...spirv.enums import Decoration, Op
from ...spirv.module import Constant, Function, Instruction, Kind, Operand, Type
from ...spirv.types import TypeTable
from ..ir.dominance import LoopNest, dominators
from ..ir.fold import Folder
from ..ir.instructions import predecessors, users
from .unroll import iterations

BITS = 16
_MOST = (1 << BITS) - 1
_ARITHMETIC = frozenset((
    Op.IAdd, Op.IMul, Op.UDiv, Op.ShiftRightLogical, Op.BitwiseAnd, Op.BitwiseOr, Op.BitwiseXor, Op.Phi,
))  # fmt: skip
_CONVERSIONS = (Op.UConvert, Op.SConvert)


def narrow(function: Function, types: TypeTable) -> None:
    """Changes a reducible function in place."""
    found = {i for block in function.blocks for i in block.instructions if _may_be_narrow(i)}
    if not any(i.op is Op.UConvert for i in found):
        return
    bounds = _Bounds(function, types)
    found = {i for i in found if bounds.of(i) is not None}
    used_by = users(function)
    pending = list(found)
    while pending:
        i = pending.pop()
        if i not in found or (_suits(i, found) and all(_takes(user, found) for user in used_by.get(i, ()))):
            continue
        found.discard(i)
        pending += (v for v in (*used_by.get(i, ()), *i.operands) if isinstance(v, Instruction))
    widening = {i for i in found if _widens(i)}
    for i in found:
        if i not in widening:
            i.operands = [_narrow_constant(o, types) if type(o) is Constant else o for o in i.operands]
        i.type = types.vector(types.int(BITS), i.type.count)
        i.decorations = {k: v for k, v in i.decorations.items() if k is not Decoration.NoSignedWrap}


def _may_be_narrow(i: Instruction) -> bool:
    if i.type is None or i.type.kind is not Kind.VECTOR:
        return False
    element = i.type.element
    if element.kind is not Kind.INT or element.width != 2 * BITS:
        return False
    return i.op in _ARITHMETIC or _widens(i)


def _widens(i: Instruction) -> bool:
    return i.op is Op.UConvert and i.operands[0].type.element.width <= BITS


def _suits(i: Instruction, found: set[Instruction]) -> bool:
    return _widens(i) or all(o in found for o in _values(i) if type(o) is not Constant)


def _values(i: Instruction) -> list[Operand]:
    operands = i.operands
    return operands[::2] if i.op is Op.Phi else operands


def _takes(user: Instruction, found: set[Instruction]) -> bool:
    """Whether a user of a number does with 16 bits of it."""
    if user in found:
        return True
    is_cut = user.op in _CONVERSIONS and user.type.element.width <= BITS
    return is_cut and Decoration.SaturatedConversion not in user.decorations


def _narrow_constant(constant: Constant, types: TypeTable) -> Constant:
    components = constant.value
    type_ = types.vector(types.int(BITS), constant.type.count)
    if components is None:
        return types.null(type_)
    return types.constant(type_, tuple(types.integer(BITS, component.value or 0) for component in components))


class _Bounds:
    """The largest number, unsigned, that a component of a value may be; None if it may exceed 16 bits."""

    def __init__(self, function: Function, types: TypeTable) -> None:
        self.before = predecessors(function)
        self.tree = dominators(function, self.before)
        self.loops = {loop.header: loop for loop in LoopNest(function, self.tree, self.before).loops}
        self.folder = Folder(types)
        self.bounds: dict[Instruction, int | None] = {}

    def of(self, value: Operand) -> int | None:
        if type(value) is Constant:
            numbers = _numbers(value) if value.type.kind is Kind.VECTOR else None
            return None if numbers is None or max(numbers) > _MOST else max(numbers)
        if not isinstance(value, Instruction) or not _may_be_narrow(value):
            return None
        if value not in self.bounds:
            self.bounds[value] = None  # where it depends on itself
            found = self.phi(value) if value.op is Op.Phi else self.result(value)
            self.bounds[value] = None if found is None or found > _MOST else found
        return self.bounds[value]

    def result(self, i: Instruction) -> int | None:
        if i.op is Op.UConvert:
            source: Type = i.operands[0].type
            return (1 << source.element.width) - 1
        a = self.of(i.operands[0])
        b = self.of(i.operands[1])
        if a is None or b is None:
            return None
        if i.op is Op.IAdd:
            return a + b
        if i.op is Op.IMul:
            return a * b
        if i.op is Op.BitwiseAnd:
            return min(a, b)
        if i.op in (Op.BitwiseOr, Op.BitwiseXor):
            return (1 << max(a, b).bit_length()) - 1
        least = min(_numbers(i.operands[1]) or (), default=0) if type(i.operands[1]) is Constant else 0
        if i.op is Op.UDiv:
            return a // least if least else None
        return a >> least if type(i.operands[1]) is Constant and b < BITS else None

    def phi(self, phi: Instruction) -> int | None:
        loop = self.loops.get(phi.block)
        if loop is None:
            found = [self.of(v) for v in _values(phi)]
            bounds = [bound for bound in found if bound is not None]
            return max(bounds) if len(bounds) == len(found) else None
        edges = dict(zip(phi.operands[1::2], phi.operands[::2], strict=True))
        counted = iterations(loop, self.folder, self.tree, self.before)
        if counted is None or len(edges) != 2:
            return None
        (latch,) = loop.latches
        step = self.growth(edges.pop(latch), phi)
        start = self.of(*edges.values())
        if step is None or start is None:
            return None
        return start + step * (len(counted[0]) - 1)

    def growth(self, value: Operand, phi: Instruction) -> int | None:
        """What is added to a phi until it comes back as a value."""
        total = 0
        while value is not phi:
            if not isinstance(value, Instruction) or value.op is not Op.IAdd:
                return None
            a, b = value.operands
            on = next((o for o in (a, b) if o is phi or self.leads_to(o, phi)), None)
            added = None if on is None else self.of(b if on is a else a)
            if added is None:
                return None
            total += added
            value = on
        return total

    def leads_to(self, value: Operand, phi: Instruction) -> bool:
        """Whether a sum begins with a phi."""
        pending, seen = [value], set()
        while pending:
            o = pending.pop()
            if o is phi:
                return True
            if isinstance(o, Instruction) and o.op is Op.IAdd and o not in seen:
                seen.add(o)
                pending += o.operands
        return False


def _numbers(constant: Constant) -> list[int] | None:
    """The components of a constant vector, if all are known."""
    if constant.value is None:
        return [0]
    if any(type(component) is not Constant for component in constant.value):
        return None
    return [component.value or 0 for component in constant.value]
