"""What of typing must be there when modules run, without typing: NamedTuple, base classes and the like.

To import typing, and re and enum with it, and to have it make a class takes long for a first program, which
waits: it compiles each annotation and each class's __new__. Here the latter is made when the first object is.
Names that are in annotations only are imported from typing, for type checkers.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from enum import Enum
    from typing import Any, Generic, NamedTuple, Protocol, TypeVar, final
else:
    from _collections import _tuplegetter

    class _NamedTupleType(type):
        """Makes a tuple of a class with annotations: its fields, with their defaults."""

        def __new__(cls, name, bases, space):
            if not bases:
                return type.__new__(cls, name, bases, space)
            fields = tuple(space.get("__annotations__", ()))
            defaults = {field: space[field] for field in fields if field in space}
            for index, field in enumerate(fields):
                space[field] = _tuplegetter(index, "")
            common = {"__repr__": _repr, "__getnewargs__": _arguments, "_replace": _replace}
            made = {"__slots__": (), "__new__": _first_new(fields, defaults), "_fields": fields}
            return type(name, (tuple,), {**common, **space, **made, "__match_args__": fields})

    class NamedTuple(metaclass=_NamedTupleType):
        """The base in the text of classes; typing's has more methods."""

    def _first_new(fields, defaults):
        def __new__(cls, *args, **kwargs):
            real = _new(fields, defaults)
            for each in cls.__mro__:
                if getattr(each.__dict__.get("__new__"), "__func__", None) is __new__:
                    each.__new__ = real  # else another thread was first
            return real(cls, *args, **kwargs)

        return __new__

    def _new(fields, defaults):
        """tuple.__new__ with the fields as parameters."""
        names = {f"_of_{field}": value for field, value in defaults.items()} | {"_tuple": tuple.__new__}
        parameters = [f"{field}=_of_{field}" if field in defaults else field for field in fields]
        made = eval(f"lambda _cls, {', '.join(parameters)}: _tuple(_cls, ({', '.join(fields)},))", names)
        made.__name__ = made.__qualname__ = "__new__"
        return made

    def _repr(self):
        fields = ", ".join(f"{field}={value!r}" for field, value in zip(self._fields, self, strict=True))
        return f"{type(self).__qualname__}({fields})"

    def _arguments(self):
        """For copies and pickles."""
        return tuple(self)

    def _replace(self, /, **changes):
        """A tuple like this one but for some fields."""
        values = [changes.pop(field, value) for field, value in zip(self._fields, self, strict=True)]
        if changes:
            raise ValueError(f"{type(self).__qualname__} has no {', '.join(changes)}")
        return tuple.__new__(type(self), values)

    class _EnumType(type):
        """Makes the members of an enumeration: all names that do not begin with an underscore."""

        def __new__(cls, name, bases, space):
            made = type.__new__(cls, name, bases, space)
            made._members = []
            for key, value in space.items():
                if bases and key[0] != "_":
                    member = object.__new__(made)
                    member.name, member.value = key, value
                    made._members.append(member)
                    setattr(made, key, member)
            return made

        def __iter__(cls):
            return iter(cls._members)

        def __reversed__(cls):
            return reversed(cls._members)

    class Enum(metaclass=_EnumType):
        """The base of enumerations without methods."""

        def __repr__(self):
            return f"{type(self).__name__}.{self.name}"

    class Generic:
        """A base that takes parameters."""

        def __class_getitem__(cls, parameters):
            return cls

    Any = Protocol = object

    def TypeVar(name, **limits):
        """Nobody asks for one when modules run."""

    def final(cls):
        """The class itself."""
        return cls


__all__ = ["Any", "Enum", "Generic", "NamedTuple", "Protocol", "TypeVar", "final"]
