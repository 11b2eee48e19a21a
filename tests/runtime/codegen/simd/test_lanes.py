"""What takes all lanes at once: bit fields, integer dot products, long vectors into columns and back."""

import numpy as np
import pytest

from cl_driver.codegen.llvm.options import CodegenOptions
from cl_driver.compiler.pipeline import codegen_options
from cl_driver.compiler.source import Context
from cl_driver.device.target import host_target
from cl_driver.records import replace
from tests.runtime.emulation import IS_ARM
from tests.runtime.kernel_harness import Program, aligned, compile_c

FIELDS = """
#define FIELDS(T, U, N)                                                                               \\
    kernel void fields_##T##N(global T##N *a, global U##N *b, global T##N *c, int shift, int count) { \\
        size_t k = get_global_id(0);                                                                  \\
        uint at = k % shift, bits = min((uint)(k / 3 % count), (uint)sizeof(T) * 8 - at);             \\
        T##N v = a[k];                                                                                \\
        a[k] = bitfield_extract_signed(v, at, bits);                                                  \\
        U##N middle = bitfield_extract_unsigned(v, (uint)shift / 2, 3u);                              \\
        b[k] = bitfield_extract_unsigned(b[k], at, bits) + middle;                                    \\
        c[k] = bitfield_insert(c[k], v, at, bits);                                                    \\
    }
FIELDS(char, uchar, )
FIELDS(char, uchar, 16)
FIELDS(short, ushort, 4)
FIELDS(int, uint, 2)
FIELDS(long, ulong, 2)
"""
ITEMS = 144
WIDTHS = (1, 4, 16)


def placed(array: np.ndarray) -> np.ndarray:
    """The same where vectors may be."""
    memory = aligned(array.nbytes).view(array.dtype).reshape(array.shape)
    memory[...] = array
    return memory


def field(x: np.ndarray, at: np.ndarray, bits: np.ndarray, signed: bool) -> np.ndarray:
    width = 8 * x.dtype.itemsize
    flat = [int(v) & (1 << width) - 1 for v in x.ravel()]
    repeat = x.size // len(at)
    found = []
    for v, a, n in zip(flat, np.repeat(at, repeat).tolist(), np.repeat(bits, repeat).tolist(), strict=True):
        v = v >> a & (1 << n) - 1
        found.append(v - (1 << n) if signed and n and v >> n - 1 else v)
    return np.array(found, object).reshape(x.shape)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name, size", [("char", 1), ("char", 16), ("short", 4), ("int", 2), ("long", 2)])
def test_bit_fields(name, size, width):
    kernel = f"fields_{name}{size if size > 1 else ''}"
    program = Program(compile_c(FIELDS), width=width)
    bits = {"char": 8, "short": 16, "int": 32, "long": 64}[name]
    signed, unsigned = np.dtype(f"i{bits // 8}"), np.dtype(f"u{bits // 8}")
    rng = np.random.default_rng(bits)
    a = rng.integers(-(1 << bits - 1), (1 << bits - 1) - 1, (ITEMS, size), signed)
    b, c = a[::-1].copy().view(unsigned), np.roll(a, 5, 0).copy()
    k = np.arange(ITEMS)
    shift, count = bits - 1, bits + 1
    at = k % shift
    taken = np.minimum(k // 3 % count, bits - at)
    three = np.full(ITEMS, min(3, bits - shift // 2))
    expected = [
        field(a, at, taken, True),
        field(b, at, taken, False) + field(a, np.full(ITEMS, shift // 2), three, False),
        [[(int(z) & ~(((1 << n) - 1) << p)) | ((int(x) & (1 << n) - 1) << p) for x, z in zip(*r, strict=True)]
         for r, p, n in zip(zip(a, c, strict=True), at.tolist(), taken.tolist(), strict=True)],
    ]  # fmt: skip
    a, b, c = map(placed, (a, b, c))
    program.run(kernel, ITEMS, 24, a, b, c, np.int32(shift), np.int32(count))
    for found, wanted in zip((a, b, c), expected, strict=True):
        assert [[int(v) % (1 << bits) for v in row] for row in found] == [
            [int(v) % (1 << bits) for v in row] for row in wanted
        ]
    if width > 1 and program.options.vector_bits > 128:  # few pairs of 64 bits are put together there
        assert "extractelement" not in program.code(kernel).text


DOTS = """
kernel void vectors(global char4 *a, global uchar4 *b, global int *out) {
    size_t k = get_global_id(0);
    out[k] = dot(a[k], a[k ^ 1]) + dot(a[k], b[k]) * 3 - (int)dot(b[k], b[0]);
}
kernel void words(global uint *a, global uint *b, global int *out) {
    size_t k = get_global_id(0);
    out[k] = dot_4x8packed_ss_int(a[k], a[k ^ 1]) + dot_4x8packed_su_int(a[k], b[k]) * 3
        - (int)dot_4x8packed_uu_uint(b[k], b[0]);
}
kernel void limits(global uint *a, global uint *b, global int *out) {
    size_t k = get_global_id(0);
    int s = dot_acc_sat_4x8packed_ss_int(a[k], a[k ^ 1], out[k]);
    uint u = dot_acc_sat_4x8packed_uu_uint(b[k], b[0], (uint)out[k]);
    out[k] = s ^ (int)(u * 5);
}
"""


@pytest.mark.parametrize("width", WIDTHS)
def test_dots(width):
    program = Program(compile_c(DOTS), width=width)
    rng = np.random.default_rng(7)
    a = rng.integers(-128, 128, (ITEMS, 4), np.int8)
    b = rng.integers(0, 256, (ITEMS, 4), np.uint8)
    a[:8], b[:8] = -128, 255
    x, y = a.astype(int), b.astype(int)
    signed = (x * x[np.arange(ITEMS) ^ 1]).sum(1)
    wanted = signed + (x * y).sum(1) * 3 - (y * y[0]).sum(1)
    for name in ("vectors", "words"):
        out = np.zeros(ITEMS, np.int32)
        program.run(name, ITEMS, 24, a, b, out)
        assert out.tolist() == wanted.tolist(), name
    start = rng.integers(-(1 << 31), (1 << 31) - 1, ITEMS, np.int32)
    start[:6] = [(1 << 31) - 1, (1 << 31) - 65536, -1, -(1 << 31), 0, 5]
    out = start.copy()
    program.run("limits", ITEMS, 24, a, b, out)
    s = np.clip(signed + start.astype(int), -(1 << 31), (1 << 31) - 1)
    u = np.minimum((y * y[0]).sum(1) + start.view(np.uint32).astype(int), (1 << 32) - 1)
    assert out.tolist() == (s ^ (u * 5 % (1 << 32)).astype(np.uint32).view(np.int32)).tolist()
    if width > 1:
        for name in ("words", "limits"):
            assert f"extractelement <{width} x i32>" not in program.code(name).text


CHAINS = """
#define CHAIN(NAME, T, DOT, START)                                                      \\
    kernel void NAME(global uint *a, global uint *b, global T *out, int n) {            \\
        size_t k = get_global_id(0);                                                    \\
        for (int m = 0; m < n; m++) {                                                   \\
            T s = START;                                                                \\
            for (int j = 0; j < 6; j++) s = DOT(a[k ^ j], b[m * 8 + j], s);             \\
            out[k * n + m] = s;                                                         \\
        }                                                                               \\
    }
CHAIN(ss, int, dot_acc_sat_4x8packed_ss_int, 0)
CHAIN(su, int, dot_acc_sat_4x8packed_su_int, -7)
CHAIN(uu, uint, dot_acc_sat_4x8packed_uu_uint, 3u)
CHAIN(ss_near, int, dot_acc_sat_4x8packed_ss_int, 0x7fff0000)
CHAIN(su_near, int, dot_acc_sat_4x8packed_su_int, 0x80010000)
CHAIN(uu_near, uint, dot_acc_sat_4x8packed_uu_uint, 0xfffd0000u)
"""
STARTS = {"ss": 0, "su": -7, "uu": 3, "ss_near": 0x7FFF0000, "su_near": -0x7FFF0000, "uu_near": 0xFFFD0000}


@pytest.mark.parametrize("name", list(STARTS))
@pytest.mark.parametrize("cpu", ["", "-avx512vnni,-avxvnni", "x86-64-v3", "x86-64-v2"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.skipif(IS_ARM, reason="other CPUs of x86")
def test_chains_of_dots(name, cpu, width):
    """They saturate only if they can; instructions of the CPU find the same sums."""
    target = host_target(cpu if cpu.startswith("x86") else "")
    options = codegen_options(Context(target, "", {}))
    if cpu.startswith("-"):
        options = replace(options, features=options.features - {"avx512vnni", "avxvnni"})
    program = Program(compile_c(CHAINS), options, width=width)
    rng, n = np.random.default_rng(9), 3
    types = np.int8 if name[0] == "s" else np.uint8, np.int8 if name[1] == "s" else np.uint8
    a, b = (rng.integers(np.iinfo(t).min, np.iinfo(t).max + 1, (ITEMS, 4), t) for t in types)
    a[:16], b[:8] = np.iinfo(types[0]).min or 255, np.iinfo(types[1]).min or 255
    a[16:32] = np.iinfo(types[0]).max
    low, high = (0, (1 << 32) - 1) if name[0] == "u" else (-(1 << 31), (1 << 31) - 1)
    out = np.zeros((ITEMS, n), np.uint32 if name[0] == "u" else np.int32)
    program.run(name, ITEMS, 24, a, b, out, np.int32(n))
    x, y, items = a.astype(int), b.astype(int), np.arange(ITEMS)
    for m in range(n):
        s = np.full(ITEMS, STARTS[name])
        for j in range(6):
            s = np.clip(s + (x[items ^ j] * y[m * 8 + j]).sum(1), low, high)
        assert out[:, m].tolist() == s.tolist()
    text = program.code(name).text
    assert (".sat." in text) == name.endswith("near")
    if width == 16 and name[0] == "s" and "avx512vnni" in options.features:
        assert "vpdpbusd" in text
    elif width == 4 and not cpu.startswith("x86-64-v2"):
        assert "pmadd" in text or "vpdpbusd" in text


LONG = """
#define LONG(T, N)                                                                       \\
    kernel void long_##T##N(global T##N *to, global const T##N *from, int last) {        \\
        size_t k = get_global_id(0);                                                     \\
        T##N v = from[k];                                                                \\
        v.s1 += v.s5;                                                                    \\
        if (k < last)                                                                    \\
            to[k] = v * v.s2 + (T)k;                                                     \\
    }
LONG(int, 8) LONG(int, 16) LONG(float, 8) LONG(float, 16) LONG(long, 8) LONG(double, 16) LONG(short, 16)
"""


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    "name, size",
    [("int", 8), ("int", 16), ("float", 8), ("float", 16), ("long", 8), ("double", 16), ("short", 16)],
)
def test_long_vectors(name, size, width):
    """Their components are taken apart in steps of two registers, and put together so."""
    type_ = np.dtype({"int": "i4", "float": "f4", "long": "i8", "double": "f8", "short": "i2"}[name])
    values = np.random.default_rng(size).integers(-50, 50, (ITEMS, size)).astype(type_)
    values, out = placed(values), placed(np.zeros_like(values))
    program = Program(compile_c(LONG), CodegenOptions(), width=width)
    program.run(f"long_{name}{size}", ITEMS, 24, out, values, np.int32(ITEMS - 5))
    wanted = values.copy()
    wanted[:, 1] += wanted[:, 5]
    wanted = wanted * wanted[:, 2:3] + np.arange(ITEMS, dtype=type_)[:, None]
    wanted[ITEMS - 5 :] = 0
    assert np.array_equal(out, wanted)
    if width == 16 and type_.itemsize >= 4:
        text = program.code(f"long_{name}{size}").text
        both = [
            line for line in text.splitlines() if "shufflevector <16 x" in line and "poison, <" not in line
        ]
        assert len(both) >= 2 * size * (size.bit_length() - 1)


PARTS = """
kernel void parts(global float *a, global float *b, global float *c, global float *d) {
    size_t k = get_global_id(0);
    float whole;
    b[k] = fract(a[k], &whole);
    c[k] = whole + modf(a[k], &whole);
    d[k] = whole;
}
"""


@pytest.mark.parametrize("width", WIDTHS)
def test_fract_and_modf(width):
    """Their second results never see memory."""
    a = np.linspace(-9, 9, ITEMS, dtype=np.float32) ** 3
    a[:6] = [0.0, -0.0, np.inf, -np.inf, -1e-30, 5]
    b, c, d = (np.zeros(ITEMS, np.float32) for _ in range(3))
    program = Program(compile_c(PARTS), width=width)
    program.run("parts", ITEMS, 24, a, b, c, d)
    finite = np.where(np.isfinite(a), a, 0)
    largest = np.float32(1 - 2**-24)
    assert np.array_equal(
        b, np.copysign(np.minimum(finite - np.floor(finite), largest), np.where(b == 0, a, 1))
    )
    with np.errstate(invalid="ignore"):
        assert np.array_equal(c, np.floor(a) + np.copysign(finite - np.trunc(finite), a))
    assert np.array_equal(d, np.trunc(a))
    if width > 1:
        assert "extractelement" not in program.code("parts").text
