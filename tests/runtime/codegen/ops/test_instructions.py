"""Every instruction of the table, compiled, against the interpreter. python -m tests.instructions.run has all
types, component counts, widths and modes; here each type and mode meets some of them."""

import pytest

from tests.instructions import special_more, table
from tests.instructions.run import check
from tests.marks import more

# Type: (components, mode, width) to run.
PLAN = {
    "i8": [(1, "affine", 16), (3, "varying", 1), (4, "masked", 4)],
    "i16": [(1, "masked", 8), (2, "varying", 1), (2, "uniform", 4)],
    "i32": [(1, "affine", 8), (1, "varying", 1), (4, "uniform", 1), (4, "masked", 4)],
    "i64": [(1, "affine", 4), (1, "uniform", 8), (3, "varying", 1)],
    "f16": [(1, "varying", 8), (3, "masked", 1)],
    "f32": [(1, "varying", 16), (1, "masked", 4), (3, "varying", 1), (2, "uniform", 1)],
    "f64": [(1, "varying", 8), (2, "uniform", 1)],
}
CASES = [
    (pytest.param if k == 0 else more)(scalar, *case)
    for scalar, cases in PLAN.items()
    for k, case in enumerate(cases)
]


@pytest.mark.parametrize("scalar, count, mode, width", CASES)
def test_instructions_of(scalar, count, mode, width):
    lines = []
    for kernel in table.kernels(scalar, count, 37, mode):
        lines += check(kernel, (width,))
    assert not lines, "\n".join(lines)


SPECIAL = {kernel.name: kernel for kernel in special_more.kernels()}
# A second width, for modules that are not too large for a quick test; the script runs all at all.
WIDE = {
    "memory i16x3 1.0": 8, "memory f64 1.4": 4, "pointers": 8, "storage classes": 16, "halfs 1": 8,
    "atomics i32": 4, "atomic flags": 8, "atomic floats": 4, "collectives bool": 8, "async copy i32": 8,
    "async copy i16x3": 4, "control flow": 8, "constants": 4, "1.6": 8, "lists": 16, "folding bool": 16,
}  # fmt: skip


@pytest.mark.parametrize("name", [more(n) if k % 2 else n for k, n in enumerate(SPECIAL)])
def test_module(name):
    """Memory, pointers, atomics, groups, control flow, constants."""
    lines = check(SPECIAL[name], (1, WIDE[name]) if name in WIDE else (1,))
    assert not lines, "\n".join(lines)
