"""Selects to which clang's SPIR-V back end gives the type of vectors of bools, their condition's, when they
choose between other vectors: of two shuffles, for one. It takes out their elements as bools, too. Operands
say what is right: an OpSelect has the type of its objects, an element that of its vector.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container

_HEADER_WORDS = 5
_TYPE_BOOL, _TYPE_VECTOR, _FIRST_TYPE, _LAST_TYPE = 20, 23, 19, 39
_FUNCTION, _EXTRACT_DYNAMIC, _INSERT_DYNAMIC, _EXTRACT, _INSERT, _SELECT = 54, 77, 78, 81, 82, 169


def mended(spirv: bytes) -> bytes:
    """The module with such selects and their elements under the right types. What is malformed stays so."""
    if len(spirv) % 4:
        return spirv
    types, start = _types(memoryview(spirv).cast("I"))
    bools = {id_ for id_, (kind, *_) in types.items() if kind == _TYPE_BOOL}
    vectors = {id_: operands[0] for id_, (kind, *operands) in types.items() if kind == _TYPE_VECTOR}
    of_bools = {id_ for id_, component in vectors.items() if component in bools}
    if not of_bools:  # as in most modules
        return spirv
    changed = bytearray(spirv)
    _mend(memoryview(changed).cast("I"), start, types.keys(), vectors, of_bools)
    return bytes(changed)


def _types(words: memoryview[int]) -> tuple[dict[int, list[int]], int]:
    """The types: opcode and operands by id; and where the first function begins."""
    types: dict[int, list[int]] = {}
    p, end = _HEADER_WORDS, len(words)
    while p < end and words[p] & 0xFFFF != _FUNCTION:
        size, op = words[p] >> 16, words[p] & 0xFFFF
        if not size or p + size > end:
            return {}, end
        if _FIRST_TYPE <= op <= _LAST_TYPE and size >= 2:
            types[words[p + 1]] = [op, *words[p + 2 : p + size]]
        p += size
    return types, p


def _mend(
    words: memoryview[int], start: int, types: Container[int], vectors: dict[int, int], of_bools: set[int]
) -> None:
    """In place. vectors: the types of vectors, and their elements' types."""
    type_of: dict[int, int] = {}
    right: set[int] = set()  # vectors whose type was wrong
    p, end = _HEADER_WORDS, len(words)
    while p < end:
        size, op = words[p] >> 16, words[p] & 0xFFFF
        if not size or p + size > end:
            return
        if size >= 3 and words[p + 1] in types:
            result = words[p + 2]
            if p >= start and size >= 5:
                wanted = _type(words, p, op, size, type_of, right, vectors, of_bools)
                if wanted and wanted != words[p + 1]:
                    words[p + 1] = wanted
                    right.add(result)
            type_of[result] = words[p + 1]
        p += size


def _type(
    words: memoryview[int],
    p: int,
    op: int,
    size: int,
    type_of: dict[int, int],
    right: set[int],
    vectors: dict[int, int],
    of_bools: set[int],
) -> int:
    """The type that an instruction must have by its operands; 0 where it has what it should have."""
    if op == _SELECT and size == 6 and words[p + 1] in of_bools:
        one, other = (type_of.get(words[p + n], 0) for n in (4, 5))
        return one if one == other and one in vectors else 0
    if not right:
        return 0
    if (op == _EXTRACT and size == 5) or op == _EXTRACT_DYNAMIC:
        return vectors.get(type_of[words[p + 3]], 0) if words[p + 3] in right else 0
    vector = {_INSERT: 4, _INSERT_DYNAMIC: 3}.get(op)
    return type_of[words[p + vector]] if vector and words[p + vector] in right else 0
