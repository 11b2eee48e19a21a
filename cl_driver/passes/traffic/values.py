"""Which polynomial an integer or an address of a kernel is."""

from __future__ import annotations

from ...spirv.enums import BuiltIn, Op
from ...spirv.enums import OpenCLStd as Std
from ...spirv.layout import member_offset, size_of
from ...spirv.module import Argument, Block, Function, Instruction, Kind, Type, Value
from ..ir.dominance import Loop, LoopNest
from ..ir.instructions import ADDRESS, int_value, is_constant_int, is_id
from .polynomial import (
    ARGUMENT,
    GLOBAL_ID,
    GLOBAL_SIZE,
    GROUP_ID,
    GROUPS,
    ITERATION,
    LOCAL_ID,
    LOCAL_SIZE,
    OFFSET,
    ZERO,
    Polynomial,
    Symbol,
    Variable,
    atom,
    constant,
    quotient,
)

_SAME = frozenset((Op.UConvert, Op.SConvert, Op.CopyObject))
_POINTERS = frozenset((Op.Bitcast, Op.CopyObject, Op.GenericCastToPtr, Op.PtrCastToGeneric))
_STEPS = frozenset((Op.PtrAccessChain, Op.InBoundsPtrAccessChain))
_WORDS = (1 << 31) - 1, (1 << 32) - 1  # masks that extend an int which is not negative
_DEPTH = 60
_MOST_TERMS = 24

BUILTINS = {
    BuiltIn.GlobalInvocationId: lambda d: atom(Variable(GLOBAL_ID, d)),
    BuiltIn.LocalInvocationId: lambda d: atom(Variable(LOCAL_ID, d)),
    BuiltIn.WorkgroupId: lambda d: atom(Variable(GROUP_ID, d)),
    BuiltIn.GlobalSize: lambda d: atom(Symbol(GLOBAL_SIZE, d)),
    BuiltIn.WorkgroupSize: lambda d: atom(Symbol(LOCAL_SIZE, d)),
    BuiltIn.EnqueuedWorkgroupSize: lambda d: atom(Symbol(LOCAL_SIZE, d)),
    BuiltIn.NumWorkgroups: lambda d: atom(Symbol(GROUPS, d)),
    BuiltIn.GlobalOffset: lambda d: atom(Symbol(OFFSET, d)),
}


class Values:
    """The polynomials of one function's values; None for what is none."""

    def __init__(self, function: Function, nest: LoopNest) -> None:
        self._numbers = {argument: number for number, argument in enumerate(function.arguments)}
        self._headers: dict[Block, Loop] = {loop.header: loop for loop in nest.loops}
        self._loop_numbers = {loop.header: number for number, loop in enumerate(nest.loops)}
        self._found: dict[Value, Polynomial | None] = {}

    def iteration(self, loop: Loop) -> Variable:
        """The number of an iteration of a loop, from 0."""
        return Variable(ITERATION, self._loop_numbers[loop.header])

    def of(self, value: Value, depth: int = 0) -> Polynomial | None:
        """An integer's."""
        if value not in self._found:
            self._found[value] = None  # of what depends on itself
            found = self._of(value, depth) if depth < _DEPTH else None
            self._found[value] = found if found is None or len(found.terms) <= _MOST_TERMS else None
        return self._found[value]

    def place(self, pointer: Value) -> tuple[int, Polynomial] | None:
        """The number of the argument that an address begins with, and how many bytes behind it is."""
        total: Polynomial | None = ZERO
        for _ in range(_DEPTH):
            if isinstance(pointer, Argument):
                root = self._numbers.get(pointer)
                return None if root is None or total is None else (root, total)
            if not isinstance(pointer, Instruction) or total is None:
                return None
            if pointer.op in _POINTERS and pointer.operands[0].type.kind is Kind.POINTER:
                pointer = pointer.operands[0]
            elif pointer.op in ADDRESS:
                offset = self._offset(pointer)
                total = None if offset is None else total.plus(offset)
                pointer = pointer.operands[0]
            elif pointer.op is Op.Phi:
                found = self._moving(pointer)
                if found is None:
                    return None
                pointer, total = found[0], total.plus(found[1])
            else:
                return None
        return None

    def _moving(self, phi: Instruction) -> tuple[Value, Polynomial] | None:
        """Of a pointer that each iteration of a loop adds the same to: where it begins, and what is added."""
        loop = self._headers.get(phi.block)
        ends = ends_of(phi, loop)
        if loop is None or ends is None:
            return None
        start, after = ends
        step: Polynomial | None = ZERO
        while isinstance(after, Instruction) and after is not phi:
            if after.op in ADDRESS:
                offset = self._offset(after)
                step = None if offset is None or step is None else step.plus(offset)
            elif after.op not in _POINTERS:
                return None
            after = after.operands[0]
        if after is not phi or step is None or step.variables():
            return None
        return start, step.times(atom(self.iteration(loop)))

    def _offset(self, chain: Instruction) -> Polynomial | None:
        """What a chain adds to its pointer."""
        base, *indices = chain.operands
        type_ = base.type.element
        if not isinstance(type_, Type):
            return None
        total = ZERO
        for number, index in enumerate(indices):
            if number == 0 and chain.op in _STEPS:
                size = size_of(type_)
            elif type_.kind is Kind.STRUCT:
                if not is_constant_int(index):
                    return None
                total = total.plus(constant(member_offset(type_, int_value(index))))
                type_ = type_.members[int_value(index)]
                continue
            else:
                type_ = type_.element
                size = size_of(type_)
            found = self.of(index)
            if found is None:
                return None
            total = total.plus(found, size)
        return total

    def _of(self, value: Value, depth: int) -> Polynomial | None:
        if is_constant_int(value):
            bits, number = value.type.width, int_value(value)
            return constant(number - (number >> bits - 1 << bits))
        if isinstance(value, Argument) and value.type.kind is Kind.INT:
            place = self._numbers.get(value)
            return None if place is None else atom(Symbol(ARGUMENT, place))
        if not isinstance(value, Instruction):
            return None
        operands = value.operands
        match value.op:
            case Op.CompositeExtract if is_id(operands[0]):
                made = BUILTINS.get(operands[0].operands[0].builtin)
                return None if made is None or len(operands) != 2 else made(operands[1])
            case Op.Phi:
                return self._phi(value, depth)
            case Op.IAdd | Op.ISub | Op.IMul:
                a, b = (self.of(operand, depth + 1) for operand in operands)
                if a is None or b is None:
                    return None
                return a.times(b) if value.op is Op.IMul else a.plus(b, 1 if value.op is Op.IAdd else -1)
            case Op.ShiftLeftLogical | Op.ShiftRightArithmetic | Op.ShiftRightLogical:
                return self._shift(value, depth)
            case Op.BitwiseAnd if is_constant_int(operands[1]) and int_value(operands[1]) in _WORDS:
                return _in_a_word(self.of(operands[0], depth + 1))
            case Op.UDiv | Op.SDiv:
                a, b = (self.of(operand, depth + 1) for operand in operands)
                return None if a is None or b is None else quotient(a, b)
            case Op.ExtInst if operands[1] in (Std.s_mad24, Std.u_mad24, Std.s_mul24, Std.u_mul24):
                return self._product24(value, depth)
            case op if op in _SAME:
                return self.of(operands[0], depth + 1)
        return None

    def _product24(self, value: Instruction, depth: int) -> Polynomial | None:
        found = [self.of(operand, depth + 1) for operand in value.operands[2:]]
        known = [one for one in found if one is not None]
        if len(known) < len(found):
            return None
        product = known[0].times(known[1])
        return product.plus(known[2]) if len(known) == 3 else product

    def _shift(self, value: Instruction, depth: int) -> Polynomial | None:
        """A shift by a constant; one to the left and then to the right extends a sign."""
        first, by = value.operands
        if not is_constant_int(by):
            return None
        bits = int_value(by)
        if value.op is Op.ShiftLeftLogical:
            found = self.of(first, depth + 1)
            return None if found is None else found.times(constant(1 << bits))
        if isinstance(first, Instruction) and first.op is Op.ShiftLeftLogical:
            inner, left = first.operands
            if is_constant_int(left) and int_value(left) >= bits:
                found = self.of(inner, depth + 1)
                return None if found is None else found.times(constant(1 << int_value(left) - bits))
        found = self.of(first, depth + 1)
        return None if found is None else quotient(found, constant(1 << bits))

    def _phi(self, phi: Instruction, depth: int) -> Polynomial | None:
        """What each iteration of a loop adds the same to."""
        loop = self._headers.get(phi.block)
        ends = ends_of(phi, loop)
        if loop is None or ends is None:
            return None
        start, after = ends
        first = self.of(start, depth + 1)
        if first is None or not isinstance(after, Instruction) or after.op not in (Op.IAdd, Op.ISub):
            return None
        a, b = after.operands
        if after.op is Op.IAdd and b is phi:
            a, b = b, a
        step = self.of(b, depth + 1) if a is phi else None
        if step is None or step.variables():
            return None
        return first.plus(step.times(atom(self.iteration(loop))), 1 if after.op is Op.IAdd else -1)


def _in_a_word(found: Polynomial | None) -> Polynomial | None:
    """What has 32 bits: factors that differ by a multiple of 2^32 are the same, the small one is meant."""
    if found is None:
        return None
    half = 1 << 31
    return Polynomial(
        (product, (factor + half) % (2 * half) - half) for product, factor in found.terms.items()
    )


def ends_of(phi: Instruction, loop: Loop | None) -> tuple[Value, Value] | None:
    """What a phi of a loop's header begins with, and what it goes on with; None if there are several."""
    if loop is None:
        return None
    starts: set[Value] = set()
    nexts: set[Value] = set()
    for value, block in zip(phi.operands[::2], phi.operands[1::2], strict=True):
        (nexts if block in loop.blocks else starts).add(value)
    return (starts.pop(), nexts.pop()) if len(starts) == len(nexts) == 1 else None
