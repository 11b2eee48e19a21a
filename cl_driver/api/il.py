"""What the control plane itself reads of SPIR-V: whether it is well formed, and its specialization constants.

A scan of the instruction stream and no more: the compiler process validates. See the SPIR-V specification,
2.3 (physical layout) and 2.4 (logical layout).
"""

from __future__ import annotations

from struct import unpack_from

from ..device.capabilities import SPIRV_VERSIONS

MAGIC = 0x07230203
HEADER_WORDS = 5

OP_MEMORY_MODEL = 14
OP_TYPE_BOOL, OP_TYPE_INT, OP_TYPE_FLOAT = 20, 21, 22
OP_SPEC_CONSTANT_TRUE, OP_SPEC_CONSTANT_FALSE, OP_SPEC_CONSTANT = 48, 49, 50
OP_FUNCTION, OP_FUNCTION_END = 54, 56
OP_DECORATE = 71
DECORATION_SPEC_ID = 1
MEMORY_MODEL_OPENCL = 2


class ILError(ValueError):
    """Not SPIR-V that this driver consumes; says why."""


def _to_host_order(data: bytes) -> bytes:
    """The module with its words in little-endian order. ILError if it is none at all."""
    if len(data) < HEADER_WORDS * 4 or len(data) % 4:
        raise ILError("its size is not that of a SPIR-V module")
    if unpack_from("<I", data)[0] == MAGIC:
        return data
    if unpack_from(">I", data)[0] != MAGIC:
        raise ILError("it does not begin with SPIR-V's magic number")
    words = unpack_from(f">{len(data) // 4}I", data)
    return b"".join(word.to_bytes(4, "little") for word in words)


def scan(data: bytes) -> tuple[bytes, dict[int, int]]:
    """The module in little-endian order, and {specialization id: size in bytes, 1 for booleans}. ILError."""
    data = _to_host_order(data)
    words = memoryview(data).cast("I")
    version = (words[1] >> 16 & 0xFF, words[1] >> 8 & 0xFF)
    if version not in SPIRV_VERSIONS:
        raise ILError(f"SPIR-V {version[0]}.{version[1]} is not supported")
    widths: dict[int, int] = {}  # of scalar types by id, in bytes
    sizes: dict[int, int] = {}  # of specialization constants by id
    spec_ids: list[tuple[int, int]] = []
    model = None
    at, end = HEADER_WORDS, len(words)
    declarations, last = True, 0
    while at < end:
        opcode, count = words[at] & 0xFFFF, words[at] >> 16
        if not count or at + count > end:
            raise ILError(f"the instruction at word {at} does not end within the module")
        if declarations:
            if opcode == OP_DECORATE and count >= 4 and words[at + 2] == DECORATION_SPEC_ID:
                spec_ids.append((words[at + 3], words[at + 1]))
            elif opcode == OP_TYPE_BOOL and count >= 2:
                widths[words[at + 1]] = 1
            elif opcode in (OP_TYPE_INT, OP_TYPE_FLOAT) and count >= 3:
                widths[words[at + 1]] = words[at + 2] // 8
            elif opcode in (OP_SPEC_CONSTANT_TRUE, OP_SPEC_CONSTANT_FALSE, OP_SPEC_CONSTANT) and count >= 3:
                sizes[words[at + 2]] = widths.get(words[at + 1], 0)
            elif opcode == OP_MEMORY_MODEL and count >= 3:
                model = words[at + 2]
            declarations = opcode != OP_FUNCTION
        last = opcode
        at += count
    if not declarations and last != OP_FUNCTION_END:
        raise ILError("its last function does not end")
    # "The OpenCL environment" (OpenCL SPIR-V environment specification, 2.2): the memory model is OpenCL.
    if model != MEMORY_MODEL_OPENCL:
        raise ILError("its memory model is not OpenCL")
    return data, {spec_id: sizes[target] for spec_id, target in spec_ids if target in sizes}
