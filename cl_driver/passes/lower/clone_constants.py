"""Copies of functions in which some arguments are constants: what these decide is decided in the copy.

For functions of the builtin library that are asked for one case of many (images.py). Calls of functions in
them get copies of their own, before anything is inlined: of a switch with 20 cases only one is ever copied
into a kernel.
"""

from __future__ import annotations

import functools

from ...spirv.enums import Op
from ...spirv.module import Constant, Function, Value
from ...spirv.types import TypeTable
from ..ir.instructions import copy_function, substitute
from ..scalar.simplify import simplify

TYPE_CHECKING = False
if TYPE_CHECKING:
    from weakref import WeakKeyDictionary


class Specialiser:
    """Copies for the kernels of a program, made once each. Threads may make one twice."""

    def __init__(self, types: TypeTable) -> None:
        self.types = types
        self.made: dict[tuple[object, ...], Function] = {}

    @classmethod
    def of(cls, types: TypeTable) -> Specialiser:
        """That of the programs that have these types."""
        return _specialisers().setdefault(types, cls(types))

    def specialised(self, function: Function, values: list[Value]) -> Function:
        """The function with those of these arguments that are constants put in; it still takes all."""
        constants = tuple(value if type(value) is Constant else None for value in values)
        if not any(constants) or not function.blocks:
            return function
        found = self.made.get((function, constants))
        if found is None:
            found = copy_function(function)
            pairs = zip(found.arguments, constants, strict=True)
            substitute(found, {argument: value for argument, value in pairs if value is not None})
            simplify(found, self.types)
            for block in found.blocks:
                for i in block.instructions:
                    if i.op is Op.FunctionCall:
                        i.operands[0] = self.specialised(i.operands[0], i.operands[1:])
            self.made[function, constants] = found
        return found


@functools.cache
def _specialisers() -> WeakKeyDictionary[TypeTable, Specialiser]:
    import weakref  # which programs without images do not wait for

    return weakref.WeakKeyDictionary()
