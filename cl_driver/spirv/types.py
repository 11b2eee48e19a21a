"""The table that interns the types and constants of a program.

Modules that are to be linked, and the builtin library they use, share one table, or tables made from one
another (`TypeTable(base)`): their equal types and constants are then the same objects.
"""

from __future__ import annotations

import builtins

from .enumerant import Enumerant
from .enums import Op, StorageClass
from .module import Constant, Kind, Type, Undef

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_DEPTH = 255  # nesting of types; the universal limit for structures
MAX_WIDTH = 1024  # bits of an integer
MAX_COMPONENTS = 256  # of a vector, where any number is allowed
# Of a function. Universal limits are what any consumer must take; CL_DEVICE_MAX_PARAMETER_SIZE allows more.
MAX_PARAMETERS = 65000  # an OpTypeFunction has room for 65,532

_OF_LLVM = {StorageClass.Function, StorageClass.CodeSectionINTEL}


def is_one_memory(a: StorageClass, b: StorageClass) -> bool:
    """Whether pointers of these storage classes may be of each other's type: functions and private memory
    are one address space to LLVM, which writes bitcasts from one to the other."""
    return a is b or {a, b} == _OF_LLVM


class TypeTable:
    """Makes types and constants; equal ones once. Struct names do not make structs differ."""

    def __init__(self, base: TypeTable | None = None) -> None:
        # By kind and what tells its types apart; by type and value, undefined values by the type alone.
        self._types: dict[tuple[Any, ...], Type] = dict(base._types) if base else {}
        self._constants: dict[Any, Any] = dict(base._constants) if base else {}

    def _intern(self, key: tuple[Any, ...], **attributes: Any) -> Type:
        found = self._types.get(key)
        if found is None:
            found = self._types[key] = Type(key[0], **attributes)
        return found

    def void(self) -> Type:
        """OpTypeVoid."""
        return self._intern((Kind.VOID,))

    def bool(self) -> Type:
        """OpTypeBool."""
        return self._intern((Kind.BOOL,))

    def int(self, width: builtins.int) -> Type:
        """The integer type of a width in bits; kernels' integers have no sign."""
        return self._intern((Kind.INT, width), width=width)

    def float(self, width: builtins.int, encoding: Enumerant | None = None) -> Type:
        """encoding: an FPEncoding such as BFloat16KHR, or None for IEEE 754."""
        operands = () if encoding is None else (encoding,)
        return self._intern((Kind.FLOAT, width, operands), width=width, operands=operands)

    def vector(self, element: Type, count: builtins.int) -> Type:
        """The vector of `count` scalars."""
        return self._intern((Kind.VECTOR, element, count), element=element, count=count)

    def array(self, element: Type, count: builtins.int) -> Type:
        """The array of `count` elements."""
        return self._intern((Kind.ARRAY, element, count), element=element, count=count)

    def struct(self, members: tuple[Type, ...], packed: builtins.bool = False, name: str = "") -> Type:
        """The structure with members of these types; packed: CPacked. The name is that of the first one asked
        for."""
        return self._intern((Kind.STRUCT, members, packed), members=members, packed=packed, name=name)

    def pointer(self, storage: StorageClass, element: Type | None) -> Type:
        """element None: an untyped pointer (SPV_KHR_untyped_pointers)."""
        return self._intern((Kind.POINTER, storage, element), storage=storage, element=element)

    def function(self, result: Type, parameters: tuple[Type, ...]) -> Type:
        """The type of functions with this result and these parameters."""
        return self._intern((Kind.FUNCTION, result, parameters), element=result, members=parameters)

    def opaque(self, op: Op, operands: tuple[Any, ...] = ()) -> Type:
        """operands: literals, and for images the sampled type first."""
        return self._intern((Kind.OPAQUE, op, operands), op=op, operands=operands)

    def constant(self, type_: Type, value: Any) -> Constant:
        """The constant of a value in the form that Constant documents."""
        key = (type_, value)
        found: Constant | None = self._constants.get(key)
        # True == 1 does not matter: the types in the keys differ.
        if found is None:
            found = self._constants[key] = Constant(type_, value)
        return found

    def null(self, type_: Type) -> Constant:
        """OpConstantNull of a type."""
        return self.constant(type_, None)

    def integer(self, width: builtins.int, value: builtins.int) -> Constant:
        """An integer constant; value of either sign."""
        return self.constant(self.int(width), value & ((1 << width) - 1))

    def undef(self, type_: Type) -> Undef:
        """OpUndef of a type."""
        found: Undef | None = self._constants.get(type_)
        if found is None:
            found = self._constants[type_] = Undef(type_)
        return found
