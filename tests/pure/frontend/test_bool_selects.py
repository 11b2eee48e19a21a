"""Selects that clang's back end types as their condition."""

import struct

from cl_driver.frontend.bool_selects import mended
from tests.pure.frontend.test_clang import module_of
from tests.pure.random.small import SmallKernel

BOOL, INT, BOOLS, INTS, MORE, FUNCTION, CONDITION, ONE, OTHER, INDEX = range(1, 11)
SELECT, ELEMENT, AT, WITH, AGAIN, SUM = range(20, 26)


def module(*instructions: tuple[int, ...]) -> bytes:
    """Types, values and instructions of a function, as words; the sizes are added."""
    types = [
        (20, BOOL), (21, INT, 32, 0), (23, BOOLS, BOOL, 4), (23, INTS, INT, 4), (43, INT, INDEX, 0),
        (54, INT, FUNCTION, 0, 99), (1, BOOLS, CONDITION), (1, INTS, ONE), (1, INTS, OTHER),
    ]  # fmt: skip
    words = [0x07230203, 0x00010400, 0, 100, 0]
    for op, *operands in (*types, *instructions):
        words += [len(operands) + 1 << 16 | op, *operands]
    return struct.pack(f"<{len(words)}I", *words)


def test_what_is_made_of_such_a_select_has_its_type():
    def text(vector: int, element: int) -> bytes:
        return module(
            (169, vector, SELECT, CONDITION, ONE, OTHER),
            (81, element, ELEMENT, SELECT, 2),
            (77, element, AT, SELECT, INDEX),
            (82, vector, WITH, ELEMENT, SELECT, 1),
            (169, vector, AGAIN, CONDITION, SELECT, WITH),
            (128, INT, SUM, ELEMENT, AT),
        )

    assert mended(text(BOOLS, BOOL)) == text(INTS, INT)
    assert mended(text(INTS, INT)) == text(INTS, INT)


def test_what_is_right_or_not_to_be_known_stays():
    for instructions in (
        [(169, BOOLS, SELECT, CONDITION, CONDITION, CONDITION), (81, BOOL, ELEMENT, SELECT, 0)],
        [(169, BOOLS, SELECT, CONDITION, ONE, CONDITION), (81, BOOL, ELEMENT, SELECT, 0)],
        [(169, BOOLS, SELECT, CONDITION, INDEX, INDEX)],  # no vectors
        [(169, BOOLS, SELECT, CONDITION, 77, 77)],  # of no type
        [(81, BOOL, ELEMENT, CONDITION, 0)],
        [(169, INT, SELECT, CONDITION, ONE, OTHER)],  # another mistake, which is told
    ):
        assert mended(module(*instructions)) == module(*instructions)


def test_what_is_no_module_stays():
    text = module((169, BOOLS, SELECT, CONDITION, ONE, OTHER))
    for end in range(len(text)):
        assert len(mended(text[:end])) == end
    assert mended(text + bytes(8)) != text + bytes(8)  # up to where it makes sense


def test_a_program_of_which_clang_makes_one():
    """Vectors of three longs, shuffled as ints, under a condition for each."""
    module_of(SmallKernel(8804075).source, "-cl-std=CL3.0")
