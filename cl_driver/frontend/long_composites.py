"""Constants of more constituents than an instruction has words, as clang's SPIR-V back end writes them.

It knows SPV_INTEL_long_composites for tables, not for what it makes of llvm.memset: there the number of words
loses its upper bits, and what follows reads as other instructions. How long the type is tells how many words
there are.

Nor does it know that the instructions that continue a constant are part of it: of tables that are the same up
to there it writes the first instruction once, and what continues each of them before its variable.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator

MOST_WORDS = 0xFFFF
OP_EXTENSION, OP_MEMORY_MODEL, OP_CAPABILITY = 10, 14, 17
OP_TYPE_ARRAY, OP_CONSTANT, OP_CONSTANT_COMPOSITE, OP_FUNCTION = 28, 43, 44, 54
OP_VARIABLE = 59
OP_CONTINUED = 6091
LONG_COMPOSITES = 6089
EXTENSION = b"SPV_INTEL_long_composites\0\0\0"
HEADER_WORDS = 5


def are_cut(spirv: bytes) -> bool:
    """Whether a constant of the module has lost the upper bits of its number of words."""
    return any(_cut(spirv))


def mended(spirv: bytes) -> bytes:
    """The module with such constants in instructions that continue one another, and with constants of their
    own for variables that clang gave the first instruction of another's."""
    cut = list(_cut(spirv))
    if not cut:
        return _parted(spirv)
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
    return _parted(_declared(out).tobytes())


def _parted(spirv: bytes) -> bytes:
    """The module with a whole constant for each run of instructions that continue none: with the first
    instruction of the constant that the variable behind the run names. As it is, which the reader refuses, if
    it is open which values a use of such a constant means."""
    if len(spirv) <= 4 * MOST_WORDS or len(spirv) % 4:
        return spirv
    words = memoryview(spirv).cast("I")
    firsts: dict[int, int] = {}  # where constants begin that are continued
    runs: list[tuple[int, int]] = []  # of instructions that continue none
    loose: list[tuple[int, int]] = []  # uses right behind no run: the id, and where
    variables: dict[int, int] = {}  # where runs end: the id of the initialiser
    nested: set[int] = set()
    p, end, start, before = HEADER_WORDS, len(words), 0, 0
    while p < end and words[p] & 0xFFFF != OP_FUNCTION:
        size, op = words[p] >> 16, words[p] & 0xFFFF
        if not size or p + size > end:
            return spirv
        if op == OP_CONTINUED:
            if before == OP_CONSTANT_COMPOSITE:
                firsts[words[start + 2]] = start
            elif before != OP_CONTINUED:
                runs.append((p, p))
            if runs and runs[-1][1] == p:
                runs[-1] = runs[-1][0], p + size
        elif op == OP_VARIABLE and size == 5:
            if before == OP_CONTINUED:
                variables[p] = words[p + 4]
            else:
                loose.append((words[p + 4], p))
        elif op == OP_CONSTANT_COMPOSITE:
            nested.update(words[p + 3 : p + size])
        start, before, p = p, op, p + size
    if not runs:
        return spirv
    shared = {variables.get(stop) for _, stop in runs}
    unclear = nested.union((id_ for id_, _ in loose), words[p:])
    if not shared <= firsts.keys() or shared & unclear:
        return spirv
    out, done, bound = array("I"), 0, words[3]
    for begin, stop in runs:
        first = firsts[words[stop + 4]]
        size = words[first] >> 16
        out += array("I", words[done:begin])
        out += array("I", [words[first], words[first + 1], bound])
        out += array("I", words[first + 3 : first + size])
        out += array("I", words[begin : stop + 4])
        out.append(bound)
        done, bound = stop + 5, bound + 1
    out += array("I", words[done:])
    out[3] = bound
    return out.tobytes()


def _cut(spirv: bytes) -> Iterator[tuple[int, int]]:
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


def _declared(words: array[int]) -> array[int]:
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
