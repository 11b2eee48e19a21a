"""A light IntEnum.

The standard one takes long to build the enumerants of SPIR-V, and for each `Op.Phi`, of which all stages are
full. A member of this one is an int (same hash, same arithmetic) that knows its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..fast_typing import TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar, Self

_E = TypeVar("_E", bound="Enumerant")


class EnumerantType(type):
    """The class of enumerations: iterable, `Op["Phi"]`, `65 in Op`."""

    def __iter__(cls: type[_E]) -> Iterator[_E]:  # type: ignore[misc]  # its classes are Enumerants
        return iter(cls._by_value.values())

    def __len__(cls: type[_E]) -> int:  # type: ignore[misc]  # its classes are Enumerants
        return len(cls._by_value)

    def __getitem__(cls: type[_E], name: str) -> _E:  # type: ignore[misc]  # its classes are Enumerants
        return cls._by_name[name]  # type: ignore[no-any-return]  # a class variable cannot be of Self

    def __contains__(cls: type[_E], value: object) -> bool:  # type: ignore[misc]  # its classes are Enumerants
        return value in cls._by_value


class Enumerant(int, metaclass=EnumerantType):
    """Base of the enumerations. `Op(65)` is the member, or a ValueError."""

    _by_value: ClassVar[dict[int, Any]] = {}
    _by_name: ClassVar[dict[str, Any]] = {}
    name: str
    value: int

    def __new__(cls, value: int) -> Self:
        """The member with a number. ValueError if there is none."""
        try:
            return cls._by_value[value]  # type: ignore[no-any-return]  # a class variable cannot be of Self
        except KeyError:
            raise ValueError(f"{value} is not a valid {cls.__name__}") from None

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return int.__format__(self, spec)

    def __reduce__(self) -> tuple[type[Self], tuple[int]]:
        return type(self), (int(self),)


def fill(cls: type[_E], members: Iterable[tuple[str, int]]) -> None:
    """Gives an empty enumeration its members, names and values; a repeated value is an alias."""
    by_value: dict[int, _E] = {}
    by_name: dict[str, _E] = {}
    cls._by_value, cls._by_name = by_value, by_name
    for name, value in members:
        member = by_value.get(value)
        if member is None:
            member = by_value[value] = int.__new__(cls, value)
            member.name = name
            member.value = value
        by_name[name] = member
        setattr(cls, name, member)


def enumeration(module: str, kind: str, text: str) -> type[Enumerant]:
    """The enumeration `kind` from pairs of words, name and value; a repeated value is an alias."""

    class Made(Enumerant):
        __module__ = module
        __qualname__ = kind

    Made.__name__ = kind
    words = text.split()
    fill(Made, zip(words[::2], map(int, words[1::2]), strict=True))
    return Made
