"""Info queries are tables: a constant's row has the C type of the answer and what computes it.

One writer per C type; the rules of param_value_size, NULL and param_value_size_ret are the C side's
(native_shim/src/api/common.c).
"""

from __future__ import annotations

import struct

from .errors import UnknownQuery
from .generated.enums import CL_INVALID_VALUE

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import TypeAlias, TypeVar

    # What is asked about, and what the answer is before it is bytes.
    Subject = TypeVar("Subject")
    Value = TypeVar("Value")

    # One query: from what is asked about to the bytes that the host gets.
    Row: TypeAlias = Callable[[Subject], bytes]
    Source: TypeAlias = Value | Callable[[Subject], Value]
    Version: TypeAlias = tuple[str, int]


def unknown(param_name: int) -> UnknownQuery:
    """What to raise for a query that a table does not have."""
    return UnknownQuery(CL_INVALID_VALUE, f"param_name is {param_name:#x}, no query that this driver knows")


def answer(table: dict[int, Row[Subject]], param_name: int, subject: Subject) -> bytes:
    """The bytes that answer the query `param_name`. CL_INVALID_VALUE where the table does not have it."""
    row = table.get(param_name)
    if row is None:
        # "CL_INVALID_VALUE if param_name is not one of the supported values"
        raise unknown(param_name)
    return row(subject)


def _row(pack: Callable[[Value], bytes], get: Source[Value, Subject]) -> Row[Subject]:
    """get: the value, or what computes it."""
    if callable(get):
        compute = get
        return lambda subject: pack(compute(subject))
    value = get
    return lambda _: pack(value)


def uint(get: Source[int, Subject]) -> Row[Subject]:
    """cl_uint, cl_bool, 32-bit enums."""
    return _row(_UINT, get)


def int32(get: Source[int, Subject]) -> Row[Subject]:
    """cl_int, cl_build_status."""
    return _row(_INT, get)


def ulong(get: Source[int, Subject]) -> Row[Subject]:
    """cl_ulong, bit-fields."""
    return _row(_ULONG, get)


def size(get: Source[int, Subject]) -> Row[Subject]:
    """size_t: hosts are 64-bit."""
    return _row(_ULONG, get)


def string(get: Source[str | bytes, Subject]) -> Row[Subject]:
    """char[]: the text and its NUL."""
    if callable(get):
        compute = get
        return lambda subject: _c_string(compute(subject))
    text = get
    return lambda _: _c_string(text)


def sizes(get: Source[Sequence[int], Subject]) -> Row[Subject]:
    """size_t[], and other arrays of 64-bit words."""
    return _row(_words, get)


def raw(get: Source[bytes, Subject]) -> Row[Subject]:
    """A structure or byte array that is packed already."""
    return _row(_packed, get)


def versions(get: Source[Iterable[Version], Subject]) -> Row[Subject]:
    """cl_name_version[]: of (name, version number) pairs."""
    return _row(pack_versions, get)


_UINT, _INT, _ULONG = (struct.Struct("<" + code).pack for code in "IiQ")


def _words(values: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(values)}q", *values)


def _packed(data: bytes) -> bytes:
    return data


def _c_string(text: str | bytes) -> bytes:
    data = text.encode() if isinstance(text, str) else bytes(text)
    return data + b"\0"


def make_version(major: int, minor: int = 0, patch: int = 0) -> int:
    """CL_MAKE_VERSION: 10 bits of major, 10 of minor, 12 of patch."""
    return major << 22 | minor << 12 | patch


def pack_versions(pairs: Iterable[Version]) -> bytes:
    """cl_name_version: cl_version version; char name[64]."""
    return b"".join(struct.pack("<I64s", version, name.encode()) for name, version in pairs)
