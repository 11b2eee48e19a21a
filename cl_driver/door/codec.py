"""Messages of the door. native_shim/src/base/codec.c is the same in C; codec.h has the format."""

from __future__ import annotations

import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

_INT = struct.Struct("<q")
_LENGTH = struct.Struct("<Q")
_COUNT = struct.Struct("<I")
_MASK = (1 << 64) - 1


class CodecError(Exception):
    """A message that is not one."""


def _put(out: list[bytes | bytearray | memoryview], value: object) -> None:
    if value is None:
        out.append(b"n")
    elif isinstance(value, int):  # bool too
        # Unsigned values travel by their bits.
        value &= _MASK
        out += (b"i", _INT.pack(value - (1 << 64) if value >> 63 else value))
    elif isinstance(value, str):
        data = value.encode("utf-8", "surrogateescape")
        out += (b"b", _LENGTH.pack(len(data)), data)
    elif isinstance(value, bytes | bytearray | memoryview):
        out += (b"b", _LENGTH.pack(len(value)), value)
    elif isinstance(value, list | tuple):
        out += (b"l", _COUNT.pack(len(value)))
        for item in value:
            _put(out, item)
    else:
        raise CodecError(f"{type(value).__name__} cannot pass the door")


def encode(values: Iterable[object]) -> bytes:
    """The message of a sequence of values: int, bytes, str, None, and lists of them.

    Integers must fit 64 bits, signed or unsigned. CodecError for any other type.
    """
    out: list[bytes | bytearray | memoryview] = []
    for value in values:
        _put(out, value)
    return b"".join(out)


def _get(data: bytes, at: int) -> tuple[Any, int]:
    match data[at : at + 1]:
        case b"i":
            return _INT.unpack_from(data, at + 1)[0], at + 9
        case b"b":
            end = at + 9 + _LENGTH.unpack_from(data, at + 1)[0]
            if end > len(data):
                raise CodecError("bytes reach past the end")
            return data[at + 9 : end], end
        case b"l":
            count = _COUNT.unpack_from(data, at + 1)[0]
            if count > len(data) - at:
                raise CodecError("a list reaches past the end")
            at += 5
            items = []
            for _ in range(count):
                item, at = _get(data, at)
                items.append(item)
            return items, at
        case b"n":
            return None, at + 1
    raise CodecError(f"no value at {at}")


def decode(data: bytes) -> list[Any]:
    """The values of a message: signed int, bytes, None, and lists of them. CodecError if it is malformed."""
    values = []
    at = 0
    try:
        while at < len(data):
            value, at = _get(data, at)
            values.append(value)
    except (struct.error, RecursionError) as error:
        raise CodecError(str(error)) from None
    return values
