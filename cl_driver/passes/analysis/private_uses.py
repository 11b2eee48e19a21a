"""What is done with private memory: with variables, or by a function with a pointer that it gets.

Memory of which nothing but elements of one size is accessed, by plain loads and stores through addresses
computed with access chains alone, may lie in pieces of that size (codegen/layout/private_layout.py). What is
done with a pointer that is passed to a function is done with its parameter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ...records import field, record
from ...spirv.enums import Op, StorageClass
from ...spirv.module import Argument, Constant, Function, Instruction, Kind, Type, Undef, Value, Variable
from ..ir.instructions import ADDRESS, is_constant_int
from ..ir.layout import size_of, step_into

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

_DEEPEST = 12  # instructions that an index is followed through
_ELSEWHERE = "its address goes elsewhere"
_MARKS = (Op.LifetimeStart, Op.LifetimeStop)

UsedBy: TypeAlias = dict[Value, list[Instruction]]

# The parameters of a function that is called, None of what cannot be looked into, with the function that has
# them.
ParametersOf: TypeAlias = Callable[[Function], tuple[Function, Sequence[Value]] | None]


@record(eq=False)
class Uses:
    """What is done with a variable or parameter, by way of all addresses that are made of its own: sizes of
    what is accessed, and what steps are multiples of. copies: of bytes, from it or to it, in its own
    function. why: there is more, so that it cannot lie in pieces whatever these are."""

    pointers: list[Value]
    sizes: set[int] = field(default_factory=set)
    steps: set[int] = field(default_factory=set)
    copies: list[Instruction] = field(default_factory=list)
    is_copied: bool = False  # here or in functions that it is passed to
    why: str = ""

    @property
    def element(self) -> tuple[int, str]:
        """The size of all that is accessed but by copies, else 0, and why."""
        if self.why:
            return 0, self.why
        if len(self.sizes) != 1:
            return 0, "elements of different sizes"
        (size,) = self.sizes
        if any(step % size for step in self.steps):
            return 0, "places between its elements"
        return size, ""

    @property
    def piece(self) -> tuple[int, str]:
        """The same where there are no copies."""
        return (0, _ELSEWHERE) if self.is_copied and not self.why else self.element


class PrivateUses:
    """Finds out each once."""

    def __init__(self, parameters_of: ParametersOf) -> None:
        self._parameters_of = parameters_of
        self._used_by: dict[Function, UsedBy] = {}
        self._uses: dict[Value, Uses] = {}

    def of(self, function: Function, origin: Value) -> Uses:
        """origin: a variable or parameter of the function."""
        found = self._uses.get(origin)
        if found is None:
            if function not in self._used_by:
                self._used_by[function] = _users_of_pointers(function)
            found = self._uses[origin] = self._find(self._used_by[function], origin)
        return found

    def _find(self, used_by: UsedBy, origin: Value) -> Uses:
        uses = Uses([origin])
        seen, choices = {origin}, []  # of addresses: where ways meet
        for pointer in uses.pointers:
            for user in used_by.get(pointer, ()):
                if user.op is Op.Phi or (user.op is Op.Select and user.operands[0] is not pointer):
                    choices.append(user)
                elif user.op in ADDRESS and user.operands[0] is pointer:
                    uses.steps |= _steps(user)
                elif user.op is Op.Load or (user.op is Op.Store and user.operands[1] is not pointer):
                    type_ = user.type if user.op is Op.Load else user.operands[1].type
                    if _is_volatile(user) or type_.kind is Kind.POINTER:
                        uses.why = "volatile, or of pointers"
                        return uses
                    uses.sizes |= _leaf_sizes(type_)
                    continue
                elif user.op is Op.CopyMemorySized and may_be_filled(user, pointer):
                    uses.steps.add(user.operands[2].value)
                    continue
                elif user.op is Op.CopyMemorySized and not _is_volatile(user):
                    uses.copies.append(user)
                    uses.is_copied = True
                    continue
                elif user.op in _MARKS:
                    continue
                elif user.op is Op.FunctionCall and (called := self._parameters_of(user.operands[0])):
                    self._add_call(uses, called, user, pointer)
                    if uses.why:
                        return uses
                    continue
                elif user.op not in (Op.CopyObject, Op.PtrCastToGeneric) and (
                    user.op is not Op.Bitcast or user.type.kind is not Kind.POINTER
                ):
                    uses.why = _ELSEWHERE
                    return uses
                if user not in seen:
                    seen.add(user)
                    uses.pointers.append(user)
        if any(not (isinstance(v, Undef) or v in seen) for i in choices for v in _chosen(i)):
            uses.why = _ELSEWHERE
        return uses

    def _add_call(
        self, uses: Uses, called: tuple[Function, Sequence[Value]], call: Instruction, pointer: Value
    ) -> None:
        """Adds what a function does with a pointer that it gets."""
        if pointer.type.storage is StorageClass.Generic:  # which its parameter does not say the memory of
            uses.why = _ELSEWHERE
            return
        function, parameters = called
        for argument, parameter in zip(call.operands[1:], parameters, strict=True):
            if argument is pointer:
                inner = self.of(function, parameter)
                uses.sizes |= inner.sizes
                uses.steps |= inner.steps
                uses.is_copied |= inner.is_copied
                uses.why = uses.why or inner.why


def _chosen(i: Instruction) -> list[Value]:
    return i.operands[::2] if i.op is Op.Phi else i.operands[1:]


def _is_volatile(access: Instruction) -> bool:
    return access.memory is not None and access.memory.volatile


def _leaf_sizes(type_: Type) -> set[int]:
    """Sizes of the scalars of a type."""
    if type_.kind is Kind.STRUCT:
        return {size for member in type_.members for size in _leaf_sizes(member)}
    if type_.kind in (Kind.VECTOR, Kind.ARRAY):
        return _leaf_sizes(type_.element)
    return {size_of(type_)}


def may_be_filled(copy: Instruction, pointer: Value) -> bool:
    """Whether a copy fills so many bytes at a pointer with one that is repeated, as LLVM makes it of
    llvm.memset."""
    target, source, size = copy.operands[:3]
    volatile = copy.memory is not None and copy.memory.volatile
    return target is pointer and is_constant_int(size) and repeated_byte(source) is not None and not volatile


def repeated_byte(source: Value) -> int | None:
    """The byte that all of a constant variable consists of: LLVM's SPIR-V back end makes copies from those of
    llvm.memset."""
    while isinstance(source, Instruction) and source.op == Op.Bitcast:
        source = source.operands[0]
    if not isinstance(source, Variable) or source.type.storage != StorageClass.UniformConstant:
        return None
    value = source.initializer
    if not isinstance(value, Constant):
        return None
    if value.value is None:
        return 0
    array = value.type
    if array.kind is not Kind.ARRAY or (array.element.kind, array.element.width) != (Kind.INT, 8):
        return None
    first = value.value[0]
    is_repeated = isinstance(first, Constant) and all(element is first for element in value.value)
    return (first.value or 0) if is_repeated else None


def _users_of_pointers(function: Function) -> UsedBy:
    used_by: UsedBy = {}
    for block in function.blocks:
        for i in block.instructions:
            for operand in dict.fromkeys((*i.operands, i.mask)):
                if isinstance(operand, Instruction | Argument) and operand.type.kind is Kind.POINTER:
                    used_by.setdefault(operand, []).append(i)
    return used_by


def _steps(chain: Instruction) -> set[int]:
    """Numbers of bytes of which what the indices of an access chain add is a sum of multiples."""
    type_, indices = chain.operands[0].type.element, list(chain.operands[1:])
    steps: set[int] = set()
    if chain.op in (Op.PtrAccessChain, Op.InBoundsPtrAccessChain):
        steps.add(multiple_of(indices.pop(0)) * size_of(type_))
    for index in indices:
        if type_.kind is Kind.STRUCT:
            number = index.value or 0
            type_, step = step_into(type_, number)
            steps.add(step)
        else:
            type_ = type_.element
            steps.add(multiple_of(index) * size_of(type_))
    return steps


def multiple_of(index: Value, seen: tuple[Value, ...] = ()) -> int:
    """A number that an index is a multiple of, as far as powers of two are concerned: others get lost where
    numbers wrap around. seen: phis and what lies between, which are multiples of it if all else is."""
    if isinstance(index, Constant):
        return index.value or 0
    if index in seen:
        return 0
    if not isinstance(index, Instruction) or len(seen) > _DEEPEST:
        return 1
    operands, seen = index.operands, (*seen, index)
    by = operands[1].value or 0 if len(operands) == 2 and isinstance(operands[1], Constant) else None
    if index.op is Op.ShiftLeftLogical and by is not None:
        return max(multiple_of(operands[0], seen), 1) << by
    if index.op is Op.IMul and by is not None:
        return by
    if index.op is Op.BitwiseAnd and by:
        return by & -by
    if index.op is Op.ShiftRightArithmetic and by is not None and isinstance(operands[0], Instruction):
        return max(multiple_of(operands[0], seen) >> by, 1)
    if index.op in (Op.UConvert, Op.SConvert):
        return multiple_of(operands[0], seen)
    if index.op in (Op.Select, Op.IAdd, Op.ISub):
        return math.gcd(*(multiple_of(o, seen) for o in operands[-2:]))
    if index.op is Op.Phi:
        return math.gcd(*(multiple_of(o, seen) for o in operands[::2]))
    return 1
