"""Info queries are tables: a constant's row has the C type of the answer and what computes it.

One writer per C type; the rules of param_value_size, NULL and param_value_size_ret are the C side's
(native_shim/src/api/common.c).
"""

from __future__ import annotations

import struct

from .errors import CLError
from .generated.enums import CL_INVALID_VALUE


class Row:
    """One query: pack(value) gives the bytes that the host gets, get(*objects) the value."""

    __slots__ = ("get", "pack")

    def __init__(self, pack, get):
        self.pack = pack
        self.get = get if callable(get) else lambda *_: get


def answer(table: dict[int, Row], param_name: int, *objects) -> bytes:
    """The bytes that answer the query `param_name` about the objects."""
    row = table.get(param_name)
    if row is None:
        # "CL_INVALID_VALUE if param_name is not one of the supported values"
        raise CLError(CL_INVALID_VALUE, f"param_name {param_name:#x} is not supported")
    return row.pack(row.get(*objects))


def _integer(code: str):
    packer = struct.Struct("<" + code)
    return lambda get: Row(packer.pack, get)


uint = _integer("I")  # cl_uint, cl_bool, 32-bit enums
int32 = _integer("i")  # cl_int, cl_build_status
ulong = _integer("Q")  # cl_ulong, bit-fields
size = _integer("Q")  # size_t: hosts are 64-bit


def string(get) -> Row:
    """char[]: the text and its NUL."""
    return Row(_c_string, get)


def sizes(get) -> Row:
    """size_t[], and other arrays of 64-bit words."""
    return Row(lambda values: struct.pack(f"<{len(values)}q", *values), get)


def raw(get) -> Row:
    """A structure or byte array that is packed already."""
    return Row(bytes, get)


def versions(get) -> Row:
    """cl_name_version[]: of (name, version number) pairs."""
    return Row(pack_versions, get)


def _c_string(text) -> bytes:
    data = text.encode() if isinstance(text, str) else bytes(text)
    return data + b"\0"


def make_version(major: int, minor: int = 0, patch: int = 0) -> int:
    """CL_MAKE_VERSION: 10 bits of major, 10 of minor, 12 of patch."""
    return major << 22 | minor << 12 | patch


def pack_versions(pairs) -> bytes:
    """cl_name_version: cl_version version; char name[64]."""
    return b"".join(struct.pack("<I64s", version, name.encode()) for name, version in pairs)
