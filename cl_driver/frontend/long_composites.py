"""Constants of more constituents than an instruction has words, as clang's SPIR-V back end writes them.

It knows SPV_INTEL_long_composites for tables, not for what it makes of llvm.memset: there the number of words
loses its upper bits, and what follows reads as other instructions. How long the type is tells how many words
there are.
"""

from __future__ import annotations

from array import array

MOST_WORDS = 0xFFFF
OP_EXTENSION, OP_MEMORY_MODEL, OP_CAPABILITY = 10, 14, 17
OP_TYPE_ARRAY, OP_CONSTANT, OP_CONSTANT_COMPOSITE, OP_FUNCTION = 28, 43, 44, 54
OP_CONTINUED = 6091
LONG_COMPOSITES = 6089
EXTENSION = b"SPV_INTEL_long_composites\0\0\0"
HEADER_WORDS = 5


def are_cut(spirv: bytes) -> bool:
    """Whether a constant of the module has lost the upper bits of its number of words."""
    return any(_cut(spirv))


def mended(spirv: bytes) -> bytes:
    """The module with such constants in instructions that continue one another."""
    cut = list(_cut(spirv))
    if not cut:
        return spirv
    words, out, done = array("I", spirv), array("I"), 0
    for start, count in cut:
        out += words[done:start]
        out += array("I", [MOST_WORDS << 16 | OP_CONSTANT_COMPOSITE])
        out += words[start + 1 : start + MOST_WORDS]
        done = start + 3 + count
        for p in range(start + MOST_WORDS, done, MOST_WORDS - 1):
            more = words[p : min(p + MOST_WORDS - 1, done)]
            out += array("I", [len(more) + 1 << 16 | OP_CONTINUED])
            out += more
    out += words[done:]
    return _declared(out).tobytes()


def _cut(spirv: bytes):
    """(word offset, number of constituents) of each such constant."""
    if len(spirv) <= 4 * MOST_WORDS:
        return
    words = memoryview(spirv).cast("I")
    numbers: dict[int, int] = {}  # of constants
    lengths: dict[int, int] = {}  # of array types
    p, end = HEADER_WORDS, len(words)
    while p < end:
        size, op = words[p] >> 16, words[p] & 0xFFFF
        if op == OP_CONSTANT_COMPOSITE and p + 2 < end:
            count = lengths.get(words[p + 1], 0)
            if count + 3 > MOST_WORDS and (count + 3) & 0xFFFF == size and p + 3 + count <= end:
                yield p, count
                p += 3 + count
                continue
        if op == OP_FUNCTION or not size or p + size > end:
            return
        if op == OP_CONSTANT and size in (4, 5):
            numbers[words[p + 2]] = words[p + 3] | (words[p + 4] << 32 if size == 5 else 0)
        elif op == OP_TYPE_ARRAY and size == 4:
            lengths[words[p + 1]] = numbers.get(words[p + 3], 0)
        p += size


def _declared(words: array) -> array:
    """The module with the capability and the extension, each unless it is there."""
    capability = array("I", [2 << 16 | OP_CAPABILITY, LONG_COMPOSITES])
    extension = array("I", EXTENSION)
    extension.insert(0, len(extension) + 1 << 16 | OP_EXTENSION)
    p, capabilities, known = HEADER_WORDS, HEADER_WORDS, set()
    while words[p] & 0xFFFF != OP_MEMORY_MODEL:
        end = p + (words[p] >> 16)
        known.add(words[p:end].tobytes())
        if words[p] & 0xFFFF == OP_CAPABILITY:
            capabilities = end
        p = end
    if extension.tobytes() not in known:
        words[capabilities:capabilities] = extension
    if capability.tobytes() not in known:
        words[capabilities:capabilities] = capability
    return words
