"""Which expression an integer or an address of a kernel is."""

from __future__ import annotations

from ...spirv.enums import BuiltIn, Op
from ...spirv.enums import OpenCLStd as Std
from ...spirv.layout import member_offset, size_of
from ...spirv.module import Argument, Block, Constant, Function, Instruction, Kind, Type, Value
from ..ir.dominance import Loop, LoopNest
from ..ir.instructions import ADDRESS, int_value, is_constant_int, is_id
from ..traffic.polynomial import (
    ARGUMENT,
    GLOBAL_ID,
    GLOBAL_SIZE,
    GROUPS,
    ITERATION,
    LOCAL_SIZE,
    OFFSET,
    ONE,
    ZERO,
    Polynomial,
    Quotient,
    Symbol,
    Variable,
    atom,
    constant,
)
from ..traffic.values import BUILTINS, ends_of
from .terms import Assumption, Between, Expression, Extreme, Remainder, image_fields, join_remainders

_POINTERS = frozenset((Op.Bitcast, Op.CopyObject, Op.GenericCastToPtr, Op.PtrCastToGeneric))
_STEPS = frozenset((Op.PtrAccessChain, Op.InBoundsPtrAccessChain))
_DEPTH = 80
_MOST_TERMS = 24
_MOST_ASSUMPTIONS = 12

_EXTREMES = {
    Std.s_min: (True, False), Std.u_min: (False, False), Std.s_max: (True, True), Std.u_max: (False, True),
}  # fmt: skip
_LESS = {
    Op.SLessThan: (True, False), Op.SLessThanEqual: (True, False), Op.ULessThan: (False, False),
    Op.ULessThanEqual: (False, False), Op.SGreaterThan: (True, True), Op.SGreaterThanEqual: (True, True),
    Op.UGreaterThan: (False, True), Op.UGreaterThanEqual: (False, True),
}  # fmt: skip


class Values:
    """The expressions of one function's values; None for what nothing is known of."""

    def __init__(self, function: Function, nest: LoopNest) -> None:
        self._numbers = {argument: number for number, argument in enumerate(function.arguments)}
        self._headers: dict[Block, Loop] = {loop.header: loop for loop in nest.loops}
        self.loop_numbers = {loop.header: number for number, loop in enumerate(nest.loops)}
        self._found: dict[tuple[Value, int], Expression | None] = {}
        self._made = 0
        self._depth = 0

    def of(self, value: Value, component: int = -1) -> Expression | None:
        """An integer's, or that of a component of a vector."""
        key = value, component
        if key not in self._found:
            self._found[key] = None  # of what depends on itself
            self._depth += 1
            found = self._of(value, component) if self._depth < _DEPTH else None
            self._depth -= 1
            if found is not None:
                number = join_remainders(found.number)
                is_small = len(number.terms) <= _MOST_TERMS and len(found.assumes) <= _MOST_ASSUMPTIONS
                found = Expression(number, found.assumes) if is_small else None
            self._found[key] = found
        return self._found[key]

    def of_type(self, value: Value, is_signed: bool) -> Expression | None:
        """An integer's, as a number of its type; any such number where nothing else is known."""
        bits = value.type.width
        found = self.of(value)
        if found is None:
            return self._any(bits, is_signed) if bits <= 32 else None
        if found.number.number is not None:
            number = found.number.number
            half = 1 << bits - 1 if is_signed else 0
            return Expression(constant((number + half) % (1 << bits) - half), found.assumes)
        return Expression(found.number, found.assumes | {Assumption(found.number, bits, is_signed)})

    def place(self, pointer: Value) -> tuple[int, Expression] | None:
        """The number of the argument that an address begins with, and how many bytes behind it is."""
        total, assumes = ZERO, frozenset[Assumption]()
        for _ in range(_DEPTH):
            if isinstance(pointer, Argument):
                root = self._numbers.get(pointer)
                return None if root is None else (root, Expression(join_remainders(total), assumes))
            if not isinstance(pointer, Instruction):
                return None
            if pointer.op in _POINTERS and pointer.operands[0].type.kind is Kind.POINTER:
                pointer = pointer.operands[0]
                continue
            if pointer.op in ADDRESS:
                added = self._offset(pointer)
                pointer = pointer.operands[0]
            elif pointer.op is Op.Phi:
                found = self._moving(pointer)
                if found is None:
                    return None
                pointer, added = found
            else:
                return None
            if added is None:
                return None
            total, assumes = total.plus(added.number), assumes | added.assumes
        return None

    def along(self, place: Expression, count: Value, size: int) -> Expression | None:
        """Anywhere among so many elements of so many bytes that begin at a place; None: not known."""
        found = self.of_type(count, False)
        if found is None:
            return None
        last = found.number.plus(ONE, -1).times(constant(size))
        inside = self._between((ZERO, last)).number
        return Expression(place.number.plus(inside), place.assumes | found.assumes)

    def _any(self, bits: int, is_signed: bool) -> Expression:
        half = 1 << bits - 1 if is_signed else 0
        return self._between((constant(-half), constant((1 << bits) - 1 - half)))

    def _between(
        self, ends: tuple[Polynomial, ...], assumes: frozenset[Assumption] = frozenset()
    ) -> Expression:
        self._made += 1
        return Expression(atom(Between(self._made, ends)), assumes)

    def _moving(self, phi: Instruction) -> tuple[Value, Expression] | None:
        """Of a pointer that each iteration of a loop adds the same to: where it begins, and what is added."""
        loop = self._headers.get(phi.block)
        ends = ends_of(phi, loop)
        if loop is None or ends is None:
            return None
        start, after = ends
        step, assumes = ZERO, frozenset[Assumption]()
        while isinstance(after, Instruction) and after is not phi:
            if after.op in ADDRESS:
                offset = self._offset(after)
                if offset is None:
                    return None
                step, assumes = step.plus(offset.number), assumes | offset.assumes
            elif after.op not in _POINTERS:
                return None
            after = after.operands[0]
        if after is not phi or step.variables() or _has_terms(step):
            return None
        return start, Expression(step.times(self._iteration(loop)), assumes)

    def _iteration(self, loop: Loop) -> Polynomial:
        return atom(Variable(ITERATION, self.loop_numbers[loop.header]))

    def _offset(self, chain: Instruction) -> Expression | None:
        """What a chain adds to its pointer."""
        base, *indices = chain.operands
        type_ = base.type.element
        if not isinstance(type_, Type):
            return None
        total, assumes = ZERO, frozenset[Assumption]()
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
            found = self.of(index) if index.type.width == 64 else self.of_type(index, True)
            if found is None:
                return None
            total, assumes = total.plus(found.number, size), assumes | found.assumes
        return Expression(total, assumes)

    def _of(self, value: Value, component: int) -> Expression | None:
        if isinstance(value, Constant):
            return _of_constant(value, component)
        if isinstance(value, Argument):
            return self._argument(value, component)
        if not isinstance(value, Instruction):
            return None
        operands = value.operands
        match value.op:
            case Op.CompositeExtract if len(operands) == 2:
                return self.of(operands[0], operands[1])
            case Op.CompositeConstruct if component >= 0:
                return self._constructed(operands, component)
            case Op.CompositeInsert if component >= 0 and len(operands) == 3:
                return self.of(operands[0]) if operands[2] == component else self.of(operands[1], component)
            case Op.VectorShuffle if component >= 0:
                first, second, *picked = operands
                count = first.type.count
                at = picked[component]
                return self.of(first, at) if at < count else self.of(second, at - count)
            case Op.Load if is_id(value):
                return _builtin(operands[0].builtin, component)
            case Op.Phi:
                return self._phi(value, component)
            case Op.IAdd | Op.ISub | Op.IMul:
                return self._sum(value, component)
            case Op.SNegate:
                found = self.of(operands[0], component)
                return None if found is None else Expression(ZERO.plus(found.number, -1), found.assumes)
            case Op.CopyObject:
                return self.of(operands[0], component)
            case Op.ImageQuerySize | Op.ImageQuerySizeLod:
                return self._image_size(value, max(component, 0))
        return self._of_scalar(value) if component < 0 and value.type.kind is Kind.INT else None

    def _argument(self, argument: Argument, component: int) -> Expression | None:
        """Its number, the component and the bytes of one are one number."""
        number = self._numbers.get(argument)
        is_vector = argument.type.kind is Kind.VECTOR
        type_ = argument.type.element if is_vector else argument.type
        if number is None or type_.kind is not Kind.INT or is_vector != (component >= 0) or type_.width > 64:
            return None
        place = number | max(component, 0) << 16 | type_.width // 8 << 24
        return Expression(atom(Symbol(ARGUMENT, place)))

    def _image_size(self, query: Instruction, component: int) -> Expression | None:
        """Of an image that is an argument, and of none of its smaller levels."""
        image, *levels = query.operands
        number = self._numbers.get(image) if isinstance(image, Argument) else None
        is_largest = all(is_constant_int(level) and not int_value(level) for level in levels)
        if number is None or not is_largest:
            return None
        return Expression(atom(Symbol(image_fields(image.type)[component][1], number)))

    def _of_scalar(self, value: Instruction) -> Expression | None:
        operands = value.operands
        match value.op:
            case Op.UConvert | Op.SConvert:
                if value.type.width <= operands[0].type.width:
                    return self.of(operands[0])
                return self.of_type(operands[0], value.op is Op.SConvert)
            case Op.ShiftLeftLogical if is_constant_int(operands[1]) and int_value(operands[1]) < 63:
                found = self.of(operands[0])
                factor = constant(1 << int_value(operands[1]))
                return None if found is None else Expression(found.number.times(factor), found.assumes)
            case Op.ShiftRightArithmetic | Op.ShiftRightLogical if is_constant_int(operands[1]):
                found = self.of_type(operands[0], value.op is Op.ShiftRightArithmetic)
                divisor = Expression(constant(1 << min(int_value(operands[1]), 62)))
                return self._quotient(found, divisor)
            case Op.UDiv | Op.SDiv | Op.UMod | Op.SRem | Op.SMod:
                return self._divided(value)
            case Op.BitwiseAnd:
                return self._masked(*operands)
            case Op.Not:
                return self._complement(operands[0])
            case Op.BitwiseXor if _is_all_ones(operands[1]):  # clang's: w - 1 - x
                return self._complement(operands[0])
            case Op.BitwiseOr if is_constant_int(operands[1]):
                return self._joined(operands[0], int_value(operands[1]))
            case Op.Select if isinstance(operands[0], Instruction):
                return self._selected(value)
            case Op.ExtInst if operands[1] in _EXTREMES:
                is_signed, is_greatest = _EXTREMES[operands[1]]
                return self._extreme(operands[2], operands[3], is_signed, is_greatest)
            case Op.ExtInst if operands[1] in (Std.s_clamp, Std.u_clamp):
                return self._clamped(value)
            case Op.ExtInst if operands[1] in (Std.s_mad24, Std.u_mad24, Std.s_mul24, Std.u_mul24):
                return self._product24(value)
        return None

    def _constructed(self, members: list[Value], component: int) -> Expression | None:
        for member in members:
            count = member.type.count if member.type.kind is Kind.VECTOR else 1
            if component < count:
                return self.of(member, component if member.type.kind is Kind.VECTOR else -1)
            component -= count
        return None

    def _sum(self, value: Instruction, component: int) -> Expression | None:
        a, b = (self.of(operand, component) for operand in value.operands)
        if a is None or b is None:
            return None
        assumes = a.assumes | b.assumes
        if value.op is Op.IMul:
            return Expression(a.number.times(b.number), assumes)
        return Expression(a.number.plus(b.number, 1 if value.op is Op.IAdd else -1), assumes)

    def _product24(self, value: Instruction) -> Expression | None:
        found = [self.of(operand) for operand in value.operands[2:]]
        known = [one for one in found if one is not None]
        if len(known) < len(found):
            return None
        is_signed = value.operands[1] in (Std.s_mad24, Std.s_mul24)
        assumes = known[0].assumes.union(*(one.assumes for one in known))
        assumes |= {Assumption(one.number, 24, is_signed) for one in known[:2]}
        product = known[0].number.times(known[1].number)
        return Expression(product.plus(known[2].number) if len(known) == 3 else product, assumes)

    def _quotient(self, a: Expression | None, b: Expression | None) -> Expression | None:
        """Rounded down."""
        if a is None or b is None:
            return None
        by, assumes = b.number.number, a.assumes | b.assumes
        if by and all(factor % by == 0 for factor in a.number.terms.values()):
            made = Polynomial((product, factor // by) for product, factor in a.number.terms.items())
            return Expression(made, assumes)
        return Expression(atom(Quotient(a.number, b.number)), assumes)

    def _divided(self, value: Instruction) -> Expression | None:
        """Of numbers that are not negative: others round in another way."""
        is_signed = value.op not in (Op.UDiv, Op.UMod)
        a, b = (self.of_type(operand, is_signed) for operand in value.operands)
        if a is None or b is None:
            by = b.number.number if b is not None else None
            if by and by > 0 and value.op is Op.UMod:
                return self._between((ZERO, constant(by - 1)), b.assumes)  # type: ignore[union-attr]
            return None
        bits = value.type.width
        if is_signed:
            a = Expression(a.number, a.assumes | {Assumption(a.number, bits - 1, False)})
        if value.op in (Op.UDiv, Op.SDiv):
            return self._quotient(a, b)
        return Expression(atom(Remainder(a.number, b.number)), a.assumes | b.assumes)

    def _complement(self, value: Value) -> Expression | None:
        found = self.of(value)
        return None if found is None else Expression(constant(-1).plus(found.number, -1), found.assumes)

    def _masked(self, a: Value, b: Value) -> Expression | None:
        if is_constant_int(a):
            a, b = b, a
        if not is_constant_int(b):
            return None
        bits, mask = b.type.width, int_value(b)
        if not mask & mask + 1:  # the lowest bits
            found = self.of_type(a, False)
            if found is None:
                return self._between((ZERO, constant(mask)))
            return Expression(atom(Remainder(found.number, constant(mask + 1))), found.assumes)
        lowest = (1 << bits) - mask
        if not lowest & lowest - 1:  # all but the lowest bits
            found = self.of_type(a, False)
            if found is None:
                return None
            rest = atom(Remainder(found.number, constant(lowest)))
            return Expression(found.number.plus(rest, -1), found.assumes)
        return self._between((ZERO, constant(mask))) if not mask >> bits - 1 else None

    def _joined(self, a: Value, bits: int) -> Expression | None:
        """The sum where no bit is in both."""
        found, unit = self.of(a), 1 << bits.bit_length()
        if found is None or any(factor % unit for factor in found.number.terms.values()):
            return None
        return Expression(found.number.plus(constant(bits)), found.assumes)

    def _selected(self, select: Instruction) -> Expression | None:
        """The smaller or the larger one of two, or one of them."""
        condition, yes, no = select.operands
        order = _LESS.get(condition.op)
        if order is not None and {*condition.operands} == {yes, no}:
            is_signed, is_greater = order
            return self._extreme(yes, no, is_signed, is_greater == (condition.operands[0] is yes))
        return self._one_of([yes, no], -1)

    def _one_of(self, values: list[Value], component: int) -> Expression | None:
        found = [self.of(value, component) for value in values]
        known = [one for one in found if one is not None]
        if len(known) < len(found) or not known:
            return None
        if all(one.number == known[0].number for one in known):
            return Expression(known[0].number, known[0].assumes.union(*(one.assumes for one in known)))
        assumes = known[0].assumes.union(*(one.assumes for one in known))
        return self._between(tuple(one.number for one in known), assumes)

    def _extreme(self, a: Value, b: Value, is_signed: bool, is_greatest: bool) -> Expression | None:
        first, second = self.of_type(a, is_signed), self.of_type(b, is_signed)
        if first is None or second is None:
            return None
        both = first.number, second.number
        return Expression(atom(Extreme(both, is_greatest)), first.assumes | second.assumes)

    def _clamped(self, value: Instruction) -> Expression | None:
        is_signed = value.operands[1] == Std.s_clamp
        found = [self.of_type(operand, is_signed) for operand in value.operands[2:]]
        number, least, most = found
        if number is None or least is None or most is None:
            return None
        above = atom(Extreme((number.number, least.number), True))
        assumes = number.assumes | least.assumes | most.assumes
        return Expression(atom(Extreme((above, most.number), False)), assumes)

    def _phi(self, phi: Instruction, component: int) -> Expression | None:
        loop = self._headers.get(phi.block)
        if loop is None:
            return self._one_of(phi.operands[::2], component)
        ends = ends_of(phi, loop)
        if ends is None:
            return None
        first, step = self.of(ends[0], component), self._step(phi, ends[1], component)
        if first is None or step is None:
            return None
        added = step.number.times(self._iteration(loop))
        return Expression(first.number.plus(added), first.assumes | step.assumes)

    def _step(self, phi: Instruction, after: Value, component: int) -> Expression | None:
        """What each iteration adds to a phi, if that is what it was before the loop."""
        total, assumes = ZERO, frozenset[Assumption]()
        while after is not phi:
            if not isinstance(after, Instruction) or after.op not in (Op.IAdd, Op.ISub) or component >= 0:
                return None
            a, b = after.operands
            found = self._find_invariant(b)
            if found is None and after.op is Op.IAdd:
                a, found = b, self._find_invariant(a)
            if found is None:
                return None
            sign = 1 if after.op is Op.IAdd else -1
            total, assumes = total.plus(found.number, sign), assumes | found.assumes
            after = a
        return Expression(total, assumes)

    def _find_invariant(self, value: Value) -> Expression | None:
        """Of what is the same for all work-items."""
        if isinstance(value, Instruction) and value.op is Op.Phi:
            return None
        found = self.of(value)
        return None if found is None or found.number.variables() or _has_terms(found.number) else found


def _builtin(builtin: BuiltIn | None, component: int) -> Expression | None:
    if builtin is BuiltIn.WorkgroupSize and component >= 0:
        # Of a group at the edge it may be less.
        local, size = atom(Symbol(LOCAL_SIZE, component)), atom(Symbol(GLOBAL_SIZE, component))
        missing = local.times(atom(Symbol(GROUPS, component))).plus(size, -1)
        return Expression(local, frozenset([Assumption(missing, 0, False)]))
    if builtin is BuiltIn.GlobalLinearId and component < 0:
        return Expression(_linear([GLOBAL_ID, OFFSET], GLOBAL_SIZE))
    made = None if builtin is None else BUILTINS.get(builtin)
    return None if made is None or component < 0 else Expression(made(component))


def _is_all_ones(value: Value) -> bool:
    return is_constant_int(value) and int_value(value) == (1 << value.type.width) - 1


def _linear(kinds: list[int], size: int) -> Polynomial:
    """An id that counts through all dimensions."""
    total = ZERO
    for dimension in (2, 1, 0):
        total = total.times(atom(Symbol(size, dimension))) if dimension < 2 else total
        total = total.plus(atom(Variable(kinds[0], dimension))).plus(atom(Symbol(kinds[1], dimension)), -1)
    return total


def _of_constant(value: Constant, component: int) -> Expression | None:
    if component >= 0:
        if value.value is None:
            return Expression(ZERO)
        return _of_constant(value.value[component], -1) if isinstance(value.value, tuple) else None
    if value.type.kind is not Kind.INT:
        return None
    bits, number = value.type.width, int_value(value)
    return Expression(constant(number - (number >> bits - 1 << bits)))


def _has_terms(number: Polynomial) -> bool:
    """Whether it has other terms than what launches know and iterations."""
    known = (Symbol, Variable)
    return any(not isinstance(term, known) for product in number.terms for term in product)
