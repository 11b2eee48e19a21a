"""The little that the compiler looks at in an ELF64 object: its symbols. code_*.c loads it."""

from __future__ import annotations

import struct

from ..fast_typing import NamedTuple

_SHT_SYMTAB = 2
_SHN_UNDEF = 0
_STB_LOCAL = 0


class Symbol(NamedTuple):
    """name; section: 0 if undefined; value: offset in the section; size: in bytes; is_global."""

    name: str
    section: int
    value: int
    size: int
    is_global: bool


def symbols(data: bytes) -> list[Symbol]:
    """All named symbols. The object is one that LLVM has just made: ValueError if it is malformed."""
    try:
        if data[:6] != b"\x7fELF\x02\x01":
            raise ValueError("not a little-endian ELF64 object")
        (table,) = struct.unpack_from("<Q", data, 0x28)
        entry_size, count = struct.unpack_from("<HH", data, 0x3A)
        headers = [struct.unpack_from("<IIQQQQIIQQ", data, table + i * entry_size) for i in range(count)]
        found: list[Symbol] = []
        for header in headers:
            if header[1] == _SHT_SYMTAB:
                found += _symbol_table(data, header, headers[header[6]])
        return found
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise ValueError(f"malformed object: {error}") from error


def _symbol_table(data: bytes, header: tuple[int, ...], strings: tuple[int, ...]) -> list[Symbol]:
    names = data[strings[4] : strings[4] + strings[5]]
    found = []
    for offset in range(header[4], header[4] + header[5], 24):
        name, info, _, section, value, size = struct.unpack_from("<IBBHQQ", data, offset)
        if name:
            text = names[name : names.index(b"\0", name)].decode()
            found.append(Symbol(text, section, value, size, info >> 4 != _STB_LOCAL))
    return found


def undefined_symbols(data: bytes) -> list[str]:
    """Names that the object needs from outside."""
    return sorted(s.name for s in symbols(data) if s.section == _SHN_UNDEF)
