"""By how much addresses grow with an id, before there are shapes or for a dimension that these are not of."""

from __future__ import annotations

from collections.abc import Callable

from ...spirv.enums import BuiltIn, Op
from ...spirv.enums import OpenCLStd as Std
from ...spirv.layout import size_of
from ...spirv.module import Argument, Constant, Instruction, Kind, Type, Value
from ..ir.instructions import ADDRESS, int_value, is_complement, is_constant_int, is_id

_SAME = frozenset((Op.UConvert, Op.SConvert, Op.Bitcast, Op.CopyObject))
_SHIFTS = frozenset((Op.ShiftLeftLogical, Op.ShiftRightArithmetic))
_PRODUCTS = (Std.s_mul24, Std.u_mul24, Std.s_mad24, Std.u_mad24)  # and sums
_IDS = (BuiltIn.GlobalInvocationId, BuiltIn.LocalInvocationId)
_DEPTH = 60


class Strides:
    """Steps of integers, as far as their bits hold them, and of addresses in bytes, with a dimension's id.

    varying: tells whether a value may depend on that id, if that is known. loops: what loops count counts
    up alike for all work-items: that is so as long as these are in one iteration, which nobody has looked at.
    """

    def __init__(
        self, dimension: int, varying: Callable[[Value], bool] | None = None, loops: bool = False
    ) -> None:
        self.dimension = dimension
        self.loops = loops
        self.varying = varying
        self._found: dict[Instruction, int | None] = {}

    def of(self, value: Value, depth: int = 0) -> int | None:
        """The step of a value, None if it is not known."""
        if isinstance(value, Argument | Constant):
            return 0
        if self.varying is not None and not self.varying(value):
            return 0
        if not isinstance(value, Instruction) or depth == _DEPTH:
            return None
        if value not in self._found:
            self._found[value] = self._of(value, depth)
        return self._found[value]

    def _of(self, value: Instruction, depth: int) -> int | None:
        operands = value.operands
        if value.op is Op.CompositeExtract and is_id(operands[0]):
            return int(operands[1] == self.dimension and operands[0].operands[0].builtin in _IDS)
        if value.op in ADDRESS:
            return self._of_address(value, depth + 1)
        if value.op in _SAME:
            return self.of(operands[0], depth + 1)
        if value.op is Op.Phi and self.loops:
            return self._of_phi(value, depth + 1)
        if is_complement(value):
            step = self.of(operands[0], depth + 1)
            return None if step is None else -step
        if value.op is Op.ExtInst and operands[1] in _PRODUCTS:
            return self._of_product24(value, depth + 1)
        if value.op not in _SHIFTS and value.op not in (Op.IAdd, Op.ISub, Op.IMul):
            return None
        a, b = (self.of(o, depth + 1) for o in operands)
        if a is None or b is None:
            return None
        if value.op in (Op.IAdd, Op.ISub):
            return a + b if value.op is Op.IAdd else a - b
        return _of_product(value, a or b) if a or b else 0

    def _of_product24(self, value: Instruction, depth: int) -> int | None:
        """Of mul24 and mad24: what they are beyond 24 bits is left open."""
        _, _, a, b, *added = value.operands
        of_a, of_b = self.of(a, depth), self.of(b, depth)
        total = self.of(added[0], depth) if added else 0
        if of_a is None or of_b is None or total is None:
            return None
        if not (of_a or of_b):
            return total
        factor = next((int_value(o) for o in (a, b) if is_constant_int(o)), None)
        return None if factor is None else total + (of_a or of_b) * factor

    def _of_phi(self, phi: Instruction, depth: int) -> int | None:
        """That of what a loop begins with, if what it goes on with has it, too, as long as the phi has it."""
        known, values = dict(self._found), phi.operands[::2]
        for first in (o for o in values if not isinstance(o, Instruction) or o.block is not phi.block):
            self._found = {**known, phi: None}
            step = self.of(first, depth)
            if step is None:
                continue
            self._found = {**known, phi: step}
            if all(self.of(o, depth) == step for o in values):
                return step
        self._found = known
        return None

    def _of_address(self, chain: Instruction, depth: int) -> int | None:
        """Of pointers and arrays: nothing that streams has structures."""
        base, *indices = chain.operands
        type_, total = base.type.element, self.of(base, depth)
        if not isinstance(type_, Type):
            return None
        for number, index in enumerate(indices):
            if number or chain.op not in (Op.PtrAccessChain, Op.InBoundsPtrAccessChain):
                if type_.kind is not Kind.ARRAY:
                    return None
                type_ = type_.element
            step = self.of(index, depth)
            if total is None or step is None:
                return None
            total += step * size_of(type_)
        return total


def _of_product(value: Instruction, stride: int) -> int | None:
    """Of a product or a shift: what it makes of its first operand's stride, or of that of either factor."""
    factor = next((int_value(o) for o in value.operands if is_constant_int(o)), None)
    if factor is None or (value.op in _SHIFTS and not is_constant_int(value.operands[1])):
        return None
    if value.op is Op.IMul:
        return stride * factor
    if factor >= value.type.width:
        return None
    if value.op is Op.ShiftLeftLogical:
        return stride << factor
    return stride >> factor if stride % (1 << factor) == 0 else None
