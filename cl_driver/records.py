"""Classes of named fields: what dataclasses offers, and this driver needs of it, without its start.

To import dataclasses, and to have it make the methods of our classes, takes long for a first program, which
waits. Here a class's __init__ is made when the first object is.
"""

from __future__ import annotations

from operator import attrgetter

from . import archived_texts
from .fast_typing import TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, dataclass_transform
else:

    def dataclass_transform(**_):
        """For type checkers."""
        return lambda function: function


_T = TypeVar("_T")
_NONE: Any = object()
_FIELDS = "__record_fields__"


class _Field:
    """What field() says of one."""

    __slots__ = ("compare", "default", "factory", "repr")

    def __init__(self, default: Any, factory: Any, compare: bool, repr: bool) -> None:
        self.default, self.factory, self.compare, self.repr = default, factory, compare, repr


def field(
    *,
    default: Any = _NONE,
    default_factory: Callable[[], Any] | None = None,
    compare: bool = True,
    repr: bool = True,
) -> Any:
    """A field with more to say of it: its default, or what makes one for each object; whether it counts in ==
    and is shown."""
    return _Field(default, default_factory, compare, repr)


@dataclass_transform(field_specifiers=(field,))
def record(*, frozen: bool = False, eq: bool = True, slots: bool = False) -> Callable[[type[_T]], type[_T]]:
    """Makes a class with annotations one of these fields, in their order, those of its base before them.

    frozen: they cannot be assigned, and objects are hashed by them if they are compared by them; eq: objects
    are equal whose fields are; slots: there are no other attributes.
    """
    return lambda cls: _make(cls, frozen, eq, slots)


def _make(cls: type[_T], frozen: bool, eq: bool, slots: bool) -> type[_T]:
    own = {}
    for name in cls.__annotations__:
        value = cls.__dict__.get(name, _NONE)
        own[name] = value if isinstance(value, _Field) else _Field(value, None, True, True)
    inherited: dict[str, _Field] = getattr(cls, _FIELDS, {})
    fields = {**inherited, **own}
    members = {_FIELDS: fields, "__init__": _first_init(fields, frozen)}
    if "__repr__" not in cls.__dict__:
        members["__repr__"] = _repr
    if eq:
        compared = [name for name, each in fields.items() if each.compare]
        members["__eq__"], by_fields = _comparison(compared)
        members["__hash__"] = by_fields if frozen else None
    if frozen:
        members["__setattr__"] = members["__delattr__"] = _refuse
    if slots:
        return _with_slots(cls, tuple(own), members)
    for name, each in own.items():
        if each.default is not _NONE:
            members[name] = each.default
        elif name in cls.__dict__:
            delattr(cls, name)
    for name, member in members.items():
        setattr(cls, name, member)
    return cls


def _with_slots(cls: type[_T], names: tuple[str, ...], members: dict[str, Any]) -> type[_T]:
    """A class like this one, for __slots__ come too late for that."""
    left = {name: member for name, member in cls.__dict__.items() if name not in names}
    for name in ("__dict__", "__weakref__"):
        left.pop(name, None)
    # Copies and pickles would set the fields one by one, which a frozen object refuses.
    more = {"__slots__": names, "__reduce__": _reduce, "__qualname__": cls.__qualname__}
    made: type[_T] = type.__new__(type(cls), cls.__name__, cls.__bases__, {**left, **members, **more})
    return made


def _first_init(fields: dict[str, _Field], frozen: bool) -> Callable[..., None]:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        real = _init(fields, frozen)
        for each in type(self).__mro__:
            if each.__dict__.get("__init__") is __init__:  # else another thread was first
                type.__setattr__(each, "__init__", real)
        real(self, *args, **kwargs)

    return __init__


def _init(fields: dict[str, _Field], frozen: bool) -> Callable[..., None]:
    names: dict[str, Any] = {"_NONE": _NONE, "_set": object.__setattr__}
    for name, each in fields.items():
        if each.factory is not None or each.default is not _NONE:
            names[f"_of_{name}"] = each.default if each.factory is None else each.factory
    exec(archived_texts.code_of(_text(fields, frozen)), names)
    made: Callable[..., None] = names["__init__"]
    return made


def _text(fields: dict[str, _Field], frozen: bool) -> str:
    parameters, body = ["self"], []
    for name, each in fields.items():
        value = name
        if each.factory is not None:
            parameters.append(f"{name}=_NONE")
            value = f"_of_{name}() if {name} is _NONE else {name}"
        elif each.default is not _NONE:
            parameters.append(f"{name}=_of_{name}")
        else:
            parameters.append(name)
        body.append(f"    _set(self, {name!r}, {value})" if frozen else f"    self.{name} = {value}")
    return f"def __init__({', '.join(parameters)}):\n" + "\n".join(body or ["    pass"])


def text_of(cls: type) -> str | None:
    """The text of the __init__ of a class that record() has made; None for another class."""
    fields = cls.__dict__.get(_FIELDS)
    return None if fields is None else _text(fields, cls.__setattr__ is _refuse)


def _comparison(compared: list[str]) -> tuple[Callable[[Any, object], Any], Callable[[Any], int]]:
    values: Callable[[Any], Any] = attrgetter(*compared) if compared else lambda _: ()

    def __eq__(self: Any, other: object) -> Any:
        return values(self) == values(other) if type(other) is type(self) else NotImplemented

    def __hash__(self: Any) -> int:
        return hash(values(self))

    return __eq__, __hash__


def _repr(self: Any) -> str:
    shown = [name for name, each in getattr(self, _FIELDS).items() if each.repr]
    return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"


def _refuse(self: Any, name: str, *_: Any) -> None:
    raise AttributeError(f"{type(self).__name__}.{name} cannot be changed")


def _reduce(self: Any) -> tuple[Any, ...]:
    return type(self), tuple(getattr(self, name) for name in getattr(self, _FIELDS))


def replace(record: _T, /, **changes: Any) -> _T:
    """A record like this one but for some fields."""
    for name in getattr(record, _FIELDS):
        if name not in changes:
            changes[name] = getattr(record, name)
    return type(record)(**changes)
