"""What integers and addresses are sums of, as if no sum wrapped: for estimates, not for what must be true."""

from __future__ import annotations

from ...records import field, record
from ...spirv.enums import Op
from ...spirv.enums import OpenCLStd as Std
from ...spirv.layout import member_offset, size_of
from ...spirv.module import Instruction, Kind, Type, Undef, Value
from ..ir.instructions import ADDRESS, int_value, is_constant_int
from ..ir.shapes import ShapeInfo

_SAME = frozenset((Op.UConvert, Op.SConvert, Op.Bitcast, Op.CopyObject))
_POINTER_STEPS = frozenset((Op.PtrAccessChain, Op.InBoundsPtrAccessChain))
_DEPTH = 60

# Minima and maxima of integers: whether they are signed, and bound from below, from above.
BOUNDS = {
    Std.s_clamp: (True, True, True), Std.s_max: (True, True, False), Std.s_min: (True, False, True),
    Std.u_clamp: (False, True, True), Std.u_max: (False, True, False), Std.u_min: (False, False, True),
}  # fmt: skip


@record()
class Sum:
    """A constant and what else is added up: factors of values that are no sums themselves. An address is in
    bytes, the pointer that it begins with one of its terms."""

    constant: int = 0
    factors: dict[Value, int] = field(default_factory=dict)

    def add(self, other: Sum, times: int) -> None:
        """Adds a multiple of another sum."""
        self.constant += other.constant * times
        for value, factor in other.factors.items():
            total = self.factors.get(value, 0) + factor * times
            if total:
                self.factors[value] = total
            else:
                self.factors.pop(value, None)


class Sums:
    """The sums of one function's values."""

    def __init__(self) -> None:
        self._found: dict[Value, Sum] = {}

    def of(self, value: Value, depth: int = 0) -> Sum:
        """The sum of an integer or a pointer."""
        found = self._found.get(value)
        if found is None:
            found = self._found[value] = self._of(value, depth) or Sum(0, {value: 1})
        return found

    def step(self, value: Value, shapes: ShapeInfo, within_bounds: bool = False) -> int | None:
        """By how much a lane's value is above that of the lane before; None if that is not known.
        within_bounds: minima and maxima are taken to be what they bound."""
        total = 0
        for term, factor in self.of(value).factors.items():
            stride = shapes.stride(term)
            if stride is None and isinstance(term, Instruction):
                if term.op in (Op.UDiv, Op.SDiv):
                    stride = self._step_of_quotient(term, shapes)
                elif within_bounds and term.op is Op.ExtInst and term.operands[1] in BOUNDS:
                    stride = self._step_within_bounds(term, shapes)
            if not isinstance(stride, int):
                return None
            total += stride * factor
        return total

    def _step_of_quotient(self, value: Instruction, shapes: ShapeInfo) -> int | None:
        step, divisor = self.step(value.operands[0], shapes), value.operands[1]
        number = int_value(divisor) if is_constant_int(divisor) else 0
        return step // number if step and number and step % number == 0 else None

    def _step_within_bounds(self, value: Instruction, shapes: ShapeInfo) -> int | None:
        """Of a minimum, a maximum or both, where no lane is beyond a bound."""
        first, *bounds = value.operands[2:]
        if len(bounds) == 1 and shapes.stride(first) == 0:
            first, bounds = bounds[0], [first]
        if any(shapes.stride(bound) != 0 for bound in bounds):
            return None
        return self.step(first, shapes, within_bounds=True)

    def _of(self, value: Value, depth: int) -> Sum | None:
        if is_constant_int(value):
            bits, number = value.type.width, int_value(value)
            return Sum(number - (number >> bits - 1 << bits))
        if not isinstance(value, Instruction) or depth == _DEPTH:
            return None
        operands = value.operands
        match value.op:
            case Op.Phi:  # from where control does not come, nothing is defined
                defined = {o for o in operands[::2] if not isinstance(o, Undef)}
                return self.of(defined.pop(), depth + 1) if len(defined) == 1 else None
            case Op.IAdd | Op.ISub:
                total = Sum()
                total.add(self.of(operands[0], depth + 1), 1)
                total.add(self.of(operands[1], depth + 1), 1 if value.op is Op.IAdd else -1)
                return total
            case Op.IMul | Op.ShiftLeftLogical:
                return self._product(value, depth)
            case op if op in ADDRESS:
                return self._address(value, depth)
            case op if op in _SAME and operands[0].type.kind in (Kind.INT, Kind.POINTER):
                return self.of(operands[0], depth + 1)
        return None

    def _product(self, value: Instruction, depth: int) -> Sum | None:
        a, b = (self.of(o, depth + 1) for o in value.operands)
        if value.op is Op.IMul and not a.factors:
            a, b = b, a
        if b.factors or (value.op is not Op.IMul and not 0 <= b.constant < value.type.width):
            return None
        total = Sum()
        total.add(a, b.constant if value.op is Op.IMul else 1 << b.constant)
        return total

    def _address(self, chain: Instruction, depth: int) -> Sum | None:
        base, *indices = chain.operands
        type_ = base.type.element
        if not isinstance(type_, Type):
            return None
        total = Sum()
        total.add(self.of(base, depth + 1), 1)
        if chain.op in _POINTER_STEPS:
            total.add(self.of(indices.pop(0), depth + 1), size_of(type_))
        for index in indices:
            if type_.kind is Kind.STRUCT:
                if not is_constant_int(index):
                    return None
                total.constant += member_offset(type_, int_value(index))
                type_ = type_.members[int_value(index)]
            else:
                type_ = type_.element
                total.add(self.of(index, depth + 1), size_of(type_))
        return total
