"""What is worth asking of a varying address: a guess, before anything is asked (runtime_contiguity.py).

The *nature* of a varying value is NEIGHBOURS (lanes differ by 1 or so), ALIKE (lanes do not differ) or None.
What is loaded from memory has none.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...passes.analysis.sums import BOUNDS
from ...passes.ir.dominance import LoopNest, dominators
from ...passes.ir.instructions import ADDRESS, int_value, is_constant_int, predecessors
from ...spirv.enums import Op
from ...spirv.module import Block, Constant, Instruction, Kind, Undef, Value
from ..layout.lanes import LaneEmitter
from ..llvm.types import member_offset, size_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

# What a sum is made of: a value and its factor in bytes, the pointer first; None: steps by a constant.
Term: TypeAlias = tuple[Value | None, int]

NEIGHBOURS, ALIKE = "neighbours", "alike"

# What has the stride of its operand, but for its range.
SAME = frozenset((Op.UConvert, Op.SConvert, Op.Bitcast, Op.CopyObject, Op.PtrCastToGeneric,
                  Op.GenericCastToPtr, Op.ExpectKHR))  # fmt: skip
_POINTER_STEPS = (Op.PtrAccessChain, Op.InBoundsPtrAccessChain)
_LINEAR = frozenset((Op.IAdd, Op.ISub, Op.IMul, Op.ShiftLeftLogical))
_DEPTH = 40  # a guess need not follow expressions that are longer


class Natures:
    """The guesses of one emission of a function; see the module."""

    def __init__(self, emitter: LaneEmitter) -> None:
        self.e = emitter
        self._natures: dict[Value, str | None] = {}
        self._open: set[Value] = set()  # values whose nature is being guessed
        self._either: dict[Value, bool] = {}
        self._in_loops: set[Block] | None = None

    def nature(self, value: Value, depth: int = 0) -> str | None:
        """What is worth asking of a value; affine values are NEIGHBOURS and uniform ones ALIKE."""
        e = self.e
        if not e.is_varying(value):
            if value.type.kind not in (Kind.INT, Kind.POINTER):
                return None
            return NEIGHBOURS if e.stride_is_mixed(value) else ALIKE
        if value in self._natures:
            return self._natures[value]
        if value in self._open:
            return None
        self._open.add(value)
        found = None
        is_address = value.type.kind in (Kind.INT, Kind.POINTER) and value not in e.shapes.private
        if depth < _DEPTH and is_address and isinstance(value, Instruction):
            found = self._guess(value, depth + 1)
        self._open.discard(value)
        self._natures[value] = found
        return found

    def is_either(self, value: Value, depth: int = 0) -> bool:
        """Whether a value that has a nature may just as well have the other one, since it is chosen: `i < n ?
        0 : i - n`, or clamp(i, 0, n), which is the same for all lanes that are beyond a bound. What a loop
        chooses anew in each iteration, as filters do, is not worth two questions."""
        if depth == _DEPTH or not isinstance(value, Instruction) or self.nature(value) is None:
            return False
        if not self.e.is_varying(value):
            return False
        found = self._either.get(value)
        if found is None:
            self._either[value] = False  # what a loop's phis ask of one another on the way round
            found = self._either[value] = self._is_chosen(value, depth + 1)
        return found

    def _is_chosen(self, value: Instruction, depth: int) -> bool:
        op, operands = value.op, value.operands
        if op is Op.Phi:
            entering = [v for v in operands[::2] if not isinstance(v, Undef) and not self.is_step(v, value)]
            return any(self.is_either(v, depth) for v in entering)
        if op in ADDRESS:
            terms = self.address_terms(value) or []
            return any(self.is_either(v, depth) for v, _ in terms if v is not None)
        if op is Op.Select or op is Op.ExtInst:
            if self._in_loops is None:
                tree = dominators(self.e.function)
                nest = LoopNest(self.e.function, tree, predecessors(self.e.function))
                self._in_loops = set(nest.innermost)
            if value.block in self._in_loops:
                return False
            operands = operands[1:] if op is Op.Select else operands[2:]
            return len({self.nature(o) for o in operands}) > 1 or any(
                self.is_either(o, depth) for o in operands
            )
        if op is Op.ShiftRightArithmetic:
            inner = sign_extended(value)
            return inner is not None and self.is_either(inner, depth)
        return (op in SAME or op in _LINEAR) and any(self.is_either(o, depth) for o in operands)

    def _guess(self, value: Instruction, depth: int) -> str | None:
        """The nature of what an instruction computes, by those of its operands."""
        op, operands = value.op, value.operands
        if op is Op.Phi:
            return self._of_phi(value, depth)
        if op in ADDRESS:
            terms = self.address_terms(value)
            return self._of_sum([v for v, _ in terms if v is not None], depth) if terms else None
        if op in SAME:
            return self.nature(operands[0], depth)
        if op is Op.ExtInst:
            operands = operands[2:] if operands[1] in BOUNDS else []
        elif op is Op.Select:
            operands = operands[1:]
        if not operands or any(not isinstance(o, Value) for o in operands):
            return None
        natures = [self.nature(o, depth) for o in operands]
        rule = _RULES.get(op)
        return rule(self, value, natures, depth) if rule is not None and None not in natures else None

    def _of_phi(self, phi: Instruction, depth: int) -> str | None:
        values = [v for v in phi.operands[::2] if not isinstance(v, Undef)]
        entering = [v for v in values if not self.is_step(v, phi)]
        if len(entering) < len(values):
            natures = {self.nature(v, depth) for v in entering}
            return natures.pop() if len(natures) == 1 else None
        outer, self._open = self._open, set()
        # In a loop the question is whether what comes back is like what came in.
        for v in (v for v in values if not self.e.is_varying(v)):
            self._natures[phi] = self.nature(v, depth)
        coming = {self.nature(v, depth) for v in values}
        self._open = outer
        return coming.pop() if len(coming) == 1 else None

    def is_step(self, value: Value, phi: Instruction) -> bool:
        """Whether a value is a phi plus what all lanes have in common, so that lanes differ as before."""

        def is_common(other: Value) -> bool:
            return not (self.e.is_varying(other) or self.e.stride(other))

        is_stepped = False
        while isinstance(value, Instruction):
            if value is phi:
                return is_stepped
            if value.op in (Op.IAdd, Op.ISub):
                a, b = value.operands
                if value.op is Op.IAdd and is_common(a):
                    a, b = b, a
                others = [b]
            elif value.op in ADDRESS and (terms := self.address_terms(value)) is not None:
                a, *others = [term for term, _ in terms if term is not None]
            elif value.op is Op.Bitcast and phi.type.kind is Kind.POINTER:
                a, others = value.operands[0], []
            else:
                return False
            if not all(is_common(other) for other in others):
                return False
            value, is_stepped = a, True
        return False

    # Rules: of an instruction whose operands have these natures, none of which is None.

    def _of_addition(self, value: Instruction, _: Sequence[str | None], depth: int) -> str | None:
        return self._of_sum(value.operands, depth)

    def _of_difference(self, value: Instruction, natures: Sequence[str | None], _: int) -> str | None:
        if natures[0] != natures[1]:
            return NEIGHBOURS if natures[1] == ALIKE else None
        first = value.operands[0]
        stride = self.e.stride(first) if not self.e.is_varying(first) else 1
        return NEIGHBOURS if stride > 1 else ALIKE

    def _of_product(self, value: Instruction, natures: Sequence[str | None], _: int) -> str | None:
        if natures == [ALIKE, ALIKE]:
            return ALIKE
        return NEIGHBOURS if _number_in(value) is not None else None

    def _of_shift_right(self, value: Instruction, natures: Sequence[str | None], depth: int) -> str | None:
        if self.extended_stride(value):
            return NEIGHBOURS
        inner = sign_extended(value)
        return self._of_quotient(value, natures, depth) if inner is None else self.nature(inner, depth)

    def _of_quotient(self, value: Instruction, natures: Sequence[str | None], _: int) -> str | None:
        number = _number_in(value)
        if number is None:
            return ALIKE if natures[1] == ALIKE else None
        if self.divided_stride(value):
            return NEIGHBOURS
        divisor = number if value.op in (Op.UDiv, Op.SDiv) else 1 << min(number, 64)
        return ALIKE if natures[0] == ALIKE or divisor >= self.e.width else None

    def _of_remainder(self, value: Instruction, natures: Sequence[str | None], _: int) -> str | None:
        return natures[0] if natures[1] == ALIKE else None

    def _of_bits(self, value: Instruction, natures: Sequence[str | None], depth: int) -> str | None:
        number = _number_in(value) if value.op is Op.BitwiseAnd else None
        if number is not None and not number & self.e.width - 1:  # which clears all that lanes differ in
            return ALIKE
        return self._of_choice(value, natures, depth)

    def _of_choice(self, _: Instruction, natures: Sequence[str | None], _depth: int) -> str | None:
        return NEIGHBOURS if NEIGHBOURS in natures else ALIKE

    def _of_sum(self, terms: Sequence[Value], depth: int) -> str | None:
        natures = [self.nature(t, depth) for t in terms]
        if None in natures or natures.count(NEIGHBOURS) > 1:
            return None
        return NEIGHBOURS if NEIGHBOURS in natures else ALIKE

    # What both guesses and questions ask.

    def extended_stride(self, value: Instruction) -> int:
        """The stride of an affine value's upper bits, if the lower ones are the same in all lanes; else 0.

        It holds while the value does not wrap around: what `(int)` does to a size_t, a constant added within.
        """
        inner, back = value.operands
        if not isinstance(back, Constant) or self.e.is_varying(inner):
            return 0
        step, bits = self.e.stride(inner), back.value or 0
        is_whole = bits < value.type.width and step % (1 << bits) == 0
        return step >> bits if is_whole and abs(step) * self.e.width < 1 << value.type.width - 1 else 0

    def divided_stride(self, value: Instruction) -> int:
        """The stride of an affine value's quotient by a number that divides its stride; else 0. It holds
        while the value does not wrap around and, with signs, is not below zero."""
        inner, divisor = value.operands
        if not is_constant_int(divisor) or self.e.is_varying(inner):
            return 0
        number, width = int_value(divisor), value.type.width
        if value.op is Op.ShiftRightLogical:
            number = 1 << min(number, width)
        step = self.e.stride(inner)
        is_whole = 0 < number < 1 << width - 1 and step > 0 and step % number == 0
        return step // number if is_whole and step * self.e.width < 1 << width - 1 else 0

    def address_terms(self, chain: Instruction) -> list[Term] | None:
        """What an access chain adds up: (pointer, 1), (index, bytes)...; None if there is more to it.

        Steps by constants are terms, too: (None, bytes).
        """
        base, *indices = chain.operands
        type_ = base.type.element
        if not isinstance(base.type.element, type(base.type)) or getattr(base, "builtin", None) is not None:
            return None
        terms: list[Term] = [(base, 1)]
        constants: list[Term] = []
        if chain.op in _POINTER_STEPS:
            terms.append((indices.pop(0), size_of(type_)))
        for index in indices:
            if type_.kind is Kind.STRUCT:
                number = self.e.member_number(type_, index)
                offset = member_offset(type_, number)
                if offset:
                    constants.append((None, offset))
                type_ = type_.members[number]
            else:
                type_ = type_.element
                terms.append((index, size_of(type_)))
        return terms + constants


_RULES = {
    Op.IAdd: Natures._of_addition,
    Op.ISub: Natures._of_difference,
    **dict.fromkeys((Op.IMul, Op.ShiftLeftLogical), Natures._of_product),
    **dict.fromkeys((Op.UDiv, Op.SDiv, Op.ShiftRightLogical), Natures._of_quotient),
    Op.ShiftRightArithmetic: Natures._of_shift_right,
    **dict.fromkeys((Op.UMod, Op.SRem, Op.SMod), Natures._of_remainder),
    **dict.fromkeys((Op.BitwiseXor, Op.BitwiseOr, Op.BitwiseAnd), Natures._of_bits),
    **dict.fromkeys((Op.Select, Op.ExtInst), Natures._of_choice),
}


def _number_in(value: Instruction) -> int | None:
    """The first constant among the operands."""
    return next((o.value or 0 for o in value.operands if isinstance(o, Constant)), None)


def sign_extended(value: Instruction) -> Value | None:
    """What is shifted to the left and back again, as `(int)` does to a size_t."""
    inner, back = value.operands
    if not isinstance(inner, Instruction) or inner.op is not Op.ShiftLeftLogical:
        return None
    there = inner.operands[1]
    both = isinstance(there, Constant) and isinstance(back, Constant)
    return inner.operands[0] if both and (there.value or 0) >= (back.value or 0) else None
