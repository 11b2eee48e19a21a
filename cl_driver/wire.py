"""Plain values as bytes, for cache entries, program binaries, and what processes and the two planes tell one
another. What passes the door has fewer types (door/codec.py), of which native_shim/src/base/codec.c has the
same format.

A tag byte and the content, little endian: n(one), t(rue), f(alse), i(nt64), I (longer int: uint32 n, n bytes
signed), d(ouble), s(tring: uint32 n, n bytes UTF-8), b(ytes: uint64 n, n bytes), l(ist: uint32 n, n values),
m(ap: uint32 n, n pairs). Decoding never raises anything but WireError, whatever it is given; pickle and
marshal do not promise that, and json is slow to import for the host's process.
"""

from __future__ import annotations

from struct import Struct
from struct import error as struct_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

_INT64 = Struct("<q")
_UINT32 = Struct("<I")
_UINT64 = Struct("<Q")
_DOUBLE = Struct("<d")
_MAX_DEPTH = 32


class WireError(ValueError):
    """Bytes that are not an encoded value."""


def encode(value: object) -> bytes:
    """The bytes of a value; tuples become lists. TypeError for what the format does not have."""
    return encode_sequence((value,))


def _encode(value: Any, put: Callable[[bytes], None]) -> None:
    kind = type(value)
    if kind is int:
        _encode_int(value, put)
    elif kind is str:
        data = value.encode("utf-8", "surrogateescape")
        put(b"s" + _UINT32.pack(len(data)) + data)
    elif kind in (bytes, bytearray, memoryview):
        put(b"b" + _UINT64.pack(len(value)))
        put(bytes(value))
    elif kind in (list, tuple):
        put(b"l" + _UINT32.pack(len(value)))
        for item in value:
            _encode(item, put)
    elif value is None:
        put(b"n")
    elif kind is bool:
        put(b"t" if value else b"f")
    elif kind is float:
        put(b"d" + _DOUBLE.pack(value))
    elif kind is dict:
        put(b"m" + _UINT32.pack(len(value)))
        for key, item in value.items():
            _encode(key, put)
            _encode(item, put)
    elif isinstance(value, int):  # enumerations
        _encode_int(int(value), put)
    else:
        raise TypeError(f"{kind.__name__} has no encoding")


def _encode_int(value: int, put: Callable[[bytes], None]) -> None:
    if -(1 << 63) <= value < 1 << 63:
        put(b"i" + _INT64.pack(value))
    else:
        data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
        put(b"I" + _UINT32.pack(len(data)) + data)


def encode_sequence(values: Iterable[object]) -> bytes:
    """The bytes of values, one behind the other. TypeError as of encode()."""
    parts: list[bytes] = []
    for value in values:
        _encode(value, parts.append)
    return b"".join(parts)


def decode(data: bytes) -> Any:
    """The value, of whatever type it is; WireError if the bytes are not exactly one."""
    values = decode_sequence(data)
    if len(values) != 1:
        raise WireError(f"{len(values)} values in place of one")
    return values[0]


def decode_sequence(data: bytes, tags: bytes = b"ntfiIdsblm") -> list[Any]:
    """The values, as many as there are. WireError for anything else, and for a tag that is none of these."""
    values, at = [], 0
    try:
        while at < len(data):
            value, at = _decode(data, at, _MAX_DEPTH, tags)
            values.append(value)
    except (struct_error, IndexError, UnicodeDecodeError, OverflowError, TypeError) as error:
        raise WireError(str(error)) from error
    return values


def _take(data: bytes, at: int, size: int) -> bytes:
    if size > len(data) - at:
        raise WireError("the value is cut off")
    return data[at : at + size]


def _decode(data: bytes, at: int, depth: int, tags: bytes) -> tuple[Any, int]:
    tag = data[at]
    if tag not in tags:
        raise WireError(f"unknown tag {tag}")
    at += 1
    if tag == 0x69:  # i
        return _INT64.unpack_from(data, at)[0], at + 8
    if tag == 0x73:  # s
        (size,) = _UINT32.unpack_from(data, at)
        at += 4
        return str(_take(data, at, size), "utf-8", "surrogateescape"), at + size
    if tag == 0x6C:  # l
        return _decode_list(data, at, depth, tags)
    if tag == 0x62:  # b
        (size,) = _UINT64.unpack_from(data, at)
        at += 8
        return _take(data, at, size), at + size
    if tag == 0x6E:  # n
        return None, at
    if tag == 0x74 or tag == 0x66:  # t, f
        return tag == 0x74, at
    if tag == 0x64:  # d
        return _DOUBLE.unpack_from(data, at)[0], at + 8
    if tag == 0x6D:  # m
        return _decode_map(data, at, depth, tags)
    (size,) = _UINT32.unpack_from(data, at)  # I
    return int.from_bytes(_take(data, at + 4, size), "little", signed=True), at + 4 + size


def _decode_list(data: bytes, at: int, depth: int, tags: bytes) -> tuple[list[Any], int]:
    (count,) = _UINT32.unpack_from(data, at)
    at += 4
    if not depth or count > len(data) - at:  # every value takes a byte at least
        raise WireError("a list that cannot be")
    values = []
    for _ in range(count):
        value, at = _decode(data, at, depth - 1, tags)
        values.append(value)
    return values, at


def _decode_map(data: bytes, at: int, depth: int, tags: bytes) -> tuple[dict[Any, Any], int]:
    (count,) = _UINT32.unpack_from(data, at)
    at += 4
    if not depth or count > len(data) - at:
        raise WireError("a map that cannot be")
    values = {}
    for _ in range(count):
        key, at = _decode(data, at, depth - 1, tags)
        values[key], at = _decode(data, at, depth - 1, tags)
    return values, at
