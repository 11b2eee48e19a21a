# ruff: noqa: E501  kernels as one line each
"""Integer instructions of the core and of OpenCL.std, all widths, scalar and vector, against Python's
integers.
"""

import numpy as np
import pytest

from tests.marks import halved, split
from tests.runtime.kernel_harness import Program, compile_c

TYPES = {"char": np.int8, "uchar": np.uint8, "short": np.int16, "ushort": np.uint16, "int": np.int32,
         "uint": np.uint32, "long": np.int64, "ulong": np.uint64}  # fmt: skip
N = 96  # values per operand


def bits(type_: str) -> int:
    return np.dtype(TYPES[type_]).itemsize * 8


def signed(type_: str) -> bool:
    return np.dtype(TYPES[type_]).kind == "i"


def wrap(type_: str, value: int) -> int:
    value &= (1 << bits(type_)) - 1
    return value - (1 << bits(type_)) if signed(type_) and value >> bits(type_) - 1 else value


def limits(type_: str) -> tuple[int, int]:
    info = np.iinfo(TYPES[type_])
    return int(info.min), int(info.max)


def clamp(type_: str, value: int) -> int:
    low, high = limits(type_)
    return min(max(value, low), high)


def unsigned(type_: str, value: int) -> int:
    return value & ((1 << bits(type_)) - 1)


def truncated_quotient(a: int, b: int) -> int:
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def shift(type_: str, amount: int, result: int) -> int | None:
    """Narrow scalars are promoted to int before they are shifted, vectors are not."""
    return result if bits(type_) >= 32 or amount % 32 == amount % bits(type_) else None


# Expression in OpenCL C over a, b and c; what it is for Python integers of type t. None: do not compare.
OPERATIONS = {
    "add": ("a + b", lambda t, a, b, c: a + b),
    "sub": ("a - b", lambda t, a, b, c: a - b),
    "mul": ("a * b", lambda t, a, b, c: a * b),
    "neg": ("-a", lambda t, a, b, c: -a),
    "div": ("a / b", lambda t, a, b, c: truncated_quotient(a, b) if b and (a, b) != (limits(t)[0], -1) else None),
    "rem": ("a % b", lambda t, a, b, c: a - b * truncated_quotient(a, b)
            if b and (a, b) != (limits(t)[0], -1) else None),
    "shl": ("a << b", lambda t, a, b, c: shift(t, b, a << b % bits(t))),
    "shr": ("a >> b", lambda t, a, b, c: shift(t, b, a >> b % bits(t))),
    "and": ("a & b", lambda t, a, b, c: a & b),
    "or": ("a | b", lambda t, a, b, c: a | b),
    "xor": ("a ^ b", lambda t, a, b, c: a ^ b),
    "not": ("~a", lambda t, a, b, c: ~a),
    "max": ("max(a, b)", lambda t, a, b, c: max(a, b)),
    "min": ("min(a, b)", lambda t, a, b, c: min(a, b)),
    "clamp": ("clamp(a, min(b, c), max(b, c))", lambda t, a, b, c: sorted((a, b, c))[1]),
    "abs": ("as_T(abs(a))", lambda t, a, b, c: abs(a)),
    "abs_diff": ("as_T(abs_diff(a, b))", lambda t, a, b, c: abs(a - b)),
    "add_sat": ("add_sat(a, b)", lambda t, a, b, c: clamp(t, a + b)),
    "sub_sat": ("sub_sat(a, b)", lambda t, a, b, c: clamp(t, a - b)),
    "hadd": ("hadd(a, b)", lambda t, a, b, c: (a + b) >> 1),
    "rhadd": ("rhadd(a, b)", lambda t, a, b, c: (a + b + 1) >> 1),
    "mul_hi": ("mul_hi(a, b)", lambda t, a, b, c: (a * b) >> bits(t)),
    "mad_hi": ("mad_hi(a, b, c)", lambda t, a, b, c: ((a * b) >> bits(t)) + c),
    "mad_sat": ("mad_sat(a, b, c)", lambda t, a, b, c: clamp(t, a * b + c)),
    "clz": ("clz(a)", lambda t, a, b, c: bits(t) - unsigned(t, a).bit_length()),
    "ctz": ("ctz(a)", lambda t, a, b, c: bits(t) if a == 0 else (unsigned(t, a) & -unsigned(t, a)).bit_length() - 1),
    "popcount": ("popcount(a)", lambda t, a, b, c: unsigned(t, a).bit_count()),
    "rotate": ("rotate(a, b)", lambda t, a, b, c: (unsigned(t, a) << (b % bits(t)))
               | (unsigned(t, a) >> (-b % bits(t)))),
    "bitselect": ("bitselect(a, b, c)", lambda t, a, b, c: (a & ~c) | (b & c)),
    "ternary": ("(a < b) ? a : c", lambda t, a, b, c: a if a < b else c),
    "compare": ("as_T(CAST((a >= b) + (a == c) * (CTYPE)2 + (a != b) * (CTYPE)4))",
                lambda t, a, b, c: (a >= b) + 2 * (a == c) + 4 * (a != b)),
}  # fmt: skip


def source(type_: str) -> str:
    kernels = []
    for name, (expression, _) in OPERATIONS.items():
        for count in ("", "3", "4"):
            t = type_ + count
            signed_type = type_.removeprefix("u") + count
            text = expression.replace("as_T", f"as_{t}")
            if name == "compare" and count:
                # Vector comparisons give -1 for true.
                text = text.replace("(a >= b)", "-(a >= b)").replace("(a == c)", "-(a == c)")
                text = text.replace("(a != b)", "-(a != b)")
            text = text.replace("CAST", f"convert_{t}").replace("CTYPE", signed_type if count else "int")
            load, store = (
                (f"vload{count}(i, %s)", f"vstore{count}(r, i, out)") if count else ("%s[i]", "out[i] = r")
            )
            kernels.append(
                f"kernel void k_{name}{count}(global {type_} *out, global const {type_} *x, "
                f"global const {type_} *y, global const {type_} *z) {{ size_t i = get_global_id(0); "
                f"{t} a = {load % 'x'}, b = {load % 'y'}, c = {load % 'z'}; {t} r = {text}; {store}; }}"
            )
    return "\n".join(kernels)


_programs: dict[str, Program] = {}


def program(type_: str) -> Program:
    if type_ not in _programs:
        _programs[type_] = Program(compile_c(source(type_)))
    return _programs[type_]


def operands(type_: str) -> list[np.ndarray]:
    rng = np.random.default_rng(bits(type_))
    low, high = limits(type_)
    special = [low, high, 0, 1, wrap(type_, -1), low + 1, high - 1, 2, 7, bits(type_) - 1]
    columns = []
    for k in range(3):
        values = [special[j % 10] for j in range(k * 3, k * 3 + 20)] + [
            special[j * (k + 1) // 3 % 10] for j in range(20)
        ]
        values += [int(v) for v in rng.integers(low, high, 20, TYPES[type_], endpoint=True)]
        values += [int(v) for v in rng.integers(max(low, -9), 9, N - len(values))]
        columns.append(np.array(values, TYPES[type_]))
    return columns


@pytest.mark.parametrize("counts", split([1, 3, 4], 2), ids=["some", "others"])
@pytest.mark.parametrize("operation", halved(OPERATIONS))
@pytest.mark.parametrize("type_", TYPES)
def test_integer_operation(type_, operation, counts):
    a, b, c = operands(type_)
    function = OPERATIONS[operation][1]
    expected = [function(type_, int(x), int(y), int(z)) for x, y, z in zip(a, b, c, strict=True)]
    for count in counts:
        out = np.zeros(N, TYPES[type_])
        program(type_).run(f"k_{operation}{count if count > 1 else ''}", N // count, 4, out, a, b, c)
        for k in range(N):
            if expected[k] is not None:
                assert int(out[k]) == wrap(type_, expected[k]), (count, int(a[k]), int(b[k]), int(c[k]))


WIDENING = """
kernel void up(global RESULT *out, global const T *h, global const UT *l) {
  size_t i = get_global_id(0); out[i] = upsample(h[i], l[i]); }
"""


@pytest.mark.parametrize(
    "type_,result", [("char", "short"), ("ushort", "uint"), ("int", "long"), ("uint", "ulong")]
)
def test_upsample(type_, result):
    low = "u" + type_.removeprefix("u")
    text = WIDENING.replace("RESULT", result).replace("UT", low).replace(" T ", f" {type_} ")
    h, low_values = operands(type_)[0], operands(low)[1]
    out = np.zeros(N, TYPES[result])
    Program(compile_c(text)).run("up", N, 8, out, h, low_values)
    expected = [wrap(result, (int(x) << bits(type_)) | int(y)) for x, y in zip(h, low_values, strict=True)]
    assert out.tolist() == expected


def test_24_bit_products():
    text = """kernel void k(global int *out, global const int *a, global const int *b) {
      size_t i = get_global_id(0); out[2 * i] = mul24(a[i], b[i]); out[2 * i + 1] = mad24(a[i], b[i], 17); }"""
    rng = np.random.default_rng(2)
    a = rng.integers(-(1 << 11), 1 << 11, 64).astype(np.int32)
    b = rng.integers(-(1 << 11), 1 << 11, 64).astype(np.int32)
    out = np.zeros(128, np.int32)
    Program(compile_c(text)).run("k", 64, 8, out, a, b)
    assert np.array_equal(out.reshape(64, 2), np.stack([a * b, a * b + 17], 1))


MASKED = """
kernel void masked(global ulong *out, global ulong2 *pairs, global const ulong *in, ulong a, ulong b) {
    size_t i = get_global_id(0);
    out[i] = (a & 0xFFFFFFFFFUL) * in[i] + (b << 24 >> 24) * (in[i] + 1);
    pairs[i] = (ulong2)(a & 0x7FFFFFFFFFFFFFFFUL, b & 0x1FFFFFFFFUL) * (ulong2)(in[i], in[i] + 2);
}
"""


@pytest.mark.parametrize("width", [1, 4, 8])
def test_products_with_masked_bits(width):
    """Masks whose lower halves are all ones: the bits above count, whatever vector the value is put into."""
    a, b, most = 0xFEDCBA9876543210, 0x123456789ABCDEF, (1 << 64) - 1
    values = [k * 0x9E3779B97F4A7C15 & most for k in range(N)]
    out, pairs = np.zeros(N, np.uint64), np.zeros((N, 2), np.uint64)
    arguments = out, pairs, np.array(values, np.uint64), np.uint64(a), np.uint64(b)
    Program(compile_c(MASKED), width=width).run("masked", N, 16, *arguments)
    first, second = a & 0xFFFFFFFFF, b & (1 << 40) - 1
    assert out.tolist() == [first * v + second * (v + 1) & most for v in values]
    wanted = [[(a & most >> 1) * v & most, (b & 0x1FFFFFFFF) * (v + 2) & most] for v in values]
    assert pairs.tolist() == wanted
