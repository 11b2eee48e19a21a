"""Divisions and remainders of integers, by divisors that differ between lanes and by those that do not."""

import numpy as np
import pytest

from tests.runtime.kernel_harness import Program, compile_c

TYPES = {
    "char": np.int8, "uchar": np.uint8, "short": np.int16, "ushort": np.uint16, "int": np.int32,
    "uint": np.uint32, "long": np.int64, "ulong": np.uint64,
}  # fmt: skip
KERNEL = """
kernel void of_TYPE(global TYPE *out, global const TYPE *a, global const TYPE *b, TYPE c) {
  size_t i = get_global_id(0), n = get_global_size(0);
  out[i] = a[i] / b[i]; out[n + i] = a[i] % b[i]; out[2 * n + i] = a[i] / c; out[3 * n + i] = a[i] % c;
}
"""
FORMS = ((1, 1), (4, 1), (8, 1), (16, 1), (8, 2))


@pytest.fixture(scope="module")
def programs():
    data = compile_c("".join(KERNEL.replace("TYPE", name) for name in TYPES))
    return [Program(data, width=width, parts=parts) for width, parts in FORMS]


def _operands(dtype, rng):
    """Dividends and divisors: the ends of the range, numbers around multiples, numbers of every size."""
    info = np.iinfo(dtype)
    special = [
        info.min,
        info.min + 1,
        info.max,
        info.max - 1,
        1,
        2,
        3,
        7,
        info.max // 2,
        info.max // 3,
        5,
        100,
    ]
    special += [-x for x in special if info.min < 0 and info.min <= -x <= info.max]
    sizes = [int(rng.integers(0, 1 << 63)) >> int(s) for s in rng.integers(0, 63, 300)]
    pool = special + [x & int(info.max) for x in sizes]
    divisors = [b for b in rng.permutation(np.array(pool, object)) if b]
    dividends = []
    for b in divisors:
        multiple = int(b) * int(rng.integers(0, max(1, int(info.max) // abs(int(b))) + 1, dtype=np.uint64))
        around = [multiple - 1, multiple, multiple + 1, int(rng.choice(np.array(pool, object)))]
        dividends.append(min(max(int(rng.choice(np.array(around, object))), info.min), info.max))
    pairs = [(a, b) for a, b in zip(dividends, divisors, strict=True) if not (a == info.min and b == -1)]
    return np.array([a for a, _ in pairs], dtype), np.array([b for _, b in pairs], dtype)


def _truncated(a, b):
    quotients = [
        abs(int(x)) // abs(int(y)) * (1 if (x < 0) == (y < 0) else -1) for x, y in zip(a, b, strict=True)
    ]
    return quotients, [int(x) - q * int(y) for x, y, q in zip(a, b, quotients, strict=True)]


@pytest.mark.parametrize("name", TYPES)
def test_quotients_and_remainders(programs, name):
    """Exact, at the ends of the range and around multiples of the divisor."""
    dtype = TYPES[name]
    rng = np.random.default_rng(len(name))
    a, b = _operands(dtype, rng)
    uniform = [dtype(c) for c in (1, 3, 7, 100, np.iinfo(dtype).max, np.iinfo(dtype).max // 3)]
    if np.iinfo(dtype).min < 0:
        uniform += [dtype(-7), dtype(np.iinfo(dtype).min)]
    for c in uniform:
        want = np.array([*_truncated(a, b), *_truncated(a, np.full(len(a), c))], object).astype(dtype)
        for program in programs:
            out = np.zeros((4, len(a)), dtype)
            program.run(f"of_{name}", len(a), len(a), out, a, b, c)
            assert np.array_equal(out, want), f"{name} / {c} at width {program.width}"


@pytest.mark.parametrize("name", ["int", "long", "ulong", "char"])
def test_what_would_trap_does_not(programs, name):
    """Division by 0 and of the least integer by -1 have some result."""
    dtype = TYPES[name]
    a = np.array([np.iinfo(dtype).min, 5, 0, np.iinfo(dtype).max] * 8, dtype)
    b = np.array([-1, 0, 0, 3] * 8).astype(dtype)
    for program in programs:
        for c in (0, -1):
            out = np.zeros((4, len(a)), dtype)
            program.run(f"of_{name}", len(a), len(a), out, a, b, np.array(c).astype(dtype)[()])
            assert np.array_equal(out[0, 3::4], a[3::4] // b[3::4])
