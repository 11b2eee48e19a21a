"""Messages of the door: sequences of wire values of few types. native_shim/src/base/codec.c is the same in C;
codec.h has the format."""

from __future__ import annotations

from .. import wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

_TAGS = b"ibln"
_MASK = (1 << 64) - 1


def _plain(value: object) -> object:
    """A value as C knows it."""
    if isinstance(value, int):  # bool too
        value &= _MASK
        return value - (1 << 64) if value >> 63 else value
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, bytes | bytearray | memoryview):
        return value
    raise wire.WireError(f"{type(value).__name__} cannot pass the door")


def encode(values: Iterable[object]) -> bytes:
    """The message of a sequence of values: int, bytes, str, None, and lists of them.

    Integers must fit 64 bits, signed or unsigned: unsigned ones travel by their bits. WireError for any other
    type.
    """
    return wire.encode_sequence(map(_plain, values))


def decode(data: bytes) -> list[Any]:
    """The values of a message: signed int, bytes, None, and lists of them. WireError if it is malformed."""
    return wire.decode_sequence(data, _TAGS)
