"""A light IntEnum.

The standard one takes 28 ms to build the 2,500 enumerants of SPIR-V, and 80 ns for each `Op.Phi`; this one
3 ms and 15 ns. A member is an int (same hash, same arithmetic) that knows its name.
"""

from __future__ import annotations

from typing import ClassVar


class EnumerantType(type):
    """The class of enumerations: iterable, `Op["Phi"]`, `65 in Op`."""

    def __iter__(cls):
        return iter(cls._by_value.values())

    def __len__(cls):
        return len(cls._by_value)

    def __getitem__(cls, name):
        return cls._by_name[name]

    def __contains__(cls, value):
        return value in cls._by_value


class Enumerant(int, metaclass=EnumerantType):
    """Base of the enumerations. `Op(65)` is the member, or a ValueError."""

    _by_value: ClassVar[dict] = {}
    _by_name: ClassVar[dict] = {}

    def __new__(cls, value):
        try:
            return cls._by_value[value]
        except KeyError:
            raise ValueError(f"{value} is not a valid {cls.__name__}") from None

    def __repr__(self):
        return f"{type(self).__name__}.{self.name}"

    __str__ = __repr__

    def __format__(self, spec):
        return int.__format__(self, spec)

    def __reduce__(self):
        return type(self), (int(self),)


def enumeration(module: str, kind: str, text: str) -> type:
    """The enumeration `kind` from pairs of words, name and value; a repeated value is an alias."""
    by_value, by_name = {}, {}
    cls = EnumerantType(
        kind, (Enumerant,), {"__module__": module, "_by_value": by_value, "_by_name": by_name}
    )
    words = text.split()
    for name, word in zip(words[::2], words[1::2], strict=True):
        value = int(word)
        member = by_value.get(value)
        if member is None:
            member = by_value[value] = int.__new__(cls, value)
            member.name = name
            member.value = value
        by_name[name] = member
        setattr(cls, name, member)
    return cls
