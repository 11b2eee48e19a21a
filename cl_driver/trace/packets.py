"""Traces as sequences of packets: what is whole of a file. (Perfetto's format: native_shim/src/trace.)"""

from __future__ import annotations

_TAG = 0x0A  # field 1 of a trace, a message: a packet


def whole_size(data: bytes) -> int:
    """How many bytes from the beginning are whole packets: a process that was killed may leave a part of one.
    ValueError for what is no trace at all."""
    at, size = 0, len(data)
    while at < size:
        if data[at] != _TAG:
            raise ValueError("not a trace" if not at else f"no packet begins at byte {at}")
        length, shift, body = 0, 0, at + 1
        while body < size and shift < 64:
            byte = data[body]
            body += 1
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        else:
            return at
        if body + length > size:
            return at
        at = body + length
    return at
