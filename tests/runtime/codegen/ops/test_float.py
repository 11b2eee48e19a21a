# ruff: noqa: E501  kernels as one line each
"""Floating-point instructions of the core and of OpenCL.std that are lowered directly, against numpy;
functions of the library by samples (their accuracy has tests of its own).
"""

import numpy as np
import pytest

from cl_driver.codegen.llvm.options import CodegenOptions
from cl_driver.compiler.pipeline import codegen_options
from cl_driver.compiler.source import Context
from cl_driver.device.target import host_target
from cl_driver.records import replace
from tests.runtime.emulation import IS_ARM
from tests.runtime.kernel_harness import Program, compile_c

TYPES = {"float": np.float32, "double": np.float64}
N = 120

inf, nan = float("inf"), float("nan")


def rint(x):
    return np.rint(x)


def away(x):
    return np.copysign(np.floor(np.abs(x) + (np.abs(x) % 1 == 0.5) * 0.5 + (np.abs(x) % 1 > 0.5) * 1.0), x)


def fmin(x, y):
    return np.fmin(x, y)


def maxmag(x, y):
    return np.where(abs(x) > abs(y), x, np.where(abs(y) > abs(x), y, np.fmax(x, y)))


def minmag(x, y):
    return np.where(abs(x) < abs(y), x, np.where(abs(y) < abs(x), y, np.fmin(x, y)))


# Expression over x, y, z: expected value as numpy function, or None where only the library is called.
OPERATIONS = {
    "add": ("x + y", lambda x, y, z: x + y),
    "sub": ("x - y", lambda x, y, z: x - y),
    "mul": ("x * y", lambda x, y, z: x * y),
    "div": ("x / y", lambda x, y, z: x / y),
    "neg": ("-x", lambda x, y, z: -x),
    "fabs": ("fabs(x)", lambda x, y, z: abs(x)),
    "ceil": ("ceil(x)", lambda x, y, z: np.ceil(x)),
    "floor": ("floor(x)", lambda x, y, z: np.floor(x)),
    "rint": ("rint(x)", lambda x, y, z: rint(x)),
    "round": ("round(x)", lambda x, y, z: away(x)),
    "trunc": ("trunc(x)", lambda x, y, z: np.trunc(x)),
    "sqrt": ("sqrt(x)", lambda x, y, z: np.sqrt(x)),
    "native_sqrt": ("native_sqrt(x)", lambda x, y, z: np.sqrt(x)),
    "native_recip": ("native_recip(x)", lambda x, y, z: x.dtype.type(1) / x),
    "half_divide": ("half_divide(x, y)", lambda x, y, z: x / y),
    "copysign": ("copysign(x, y)", lambda x, y, z: np.copysign(x, y)),
    "fmax": ("fmax(x, y)", lambda x, y, z: np.fmax(x, y)),
    "fmin": ("fmin(x, y)", lambda x, y, z: np.fmin(x, y)),
    "fdim": ("fdim(x, y)", lambda x, y, z: np.where(np.isnan(x) | np.isnan(y), nan, np.where(x > y, x - y, 0))),
    "maxmag": ("maxmag(x, y)", lambda x, y, z: maxmag(x, y)),
    "minmag": ("minmag(x, y)", lambda x, y, z: minmag(x, y)),
    "clamp": ("clamp(x, fmin(y, z), fmax(y, z))",
              lambda x, y, z: np.fmin(np.fmax(x, np.fmin(y, z)), np.fmax(y, z))),
    "step": ("step(x, y)", lambda x, y, z: np.where(y < x, 0, 1)),
    "sign": ("sign(x)", lambda x, y, z: np.where(np.isnan(x), 0, np.sign(x))),
    "degrees": ("degrees(x)", lambda x, y, z: x * x.dtype.type(57.29577951308232)),
    "radians": ("radians(x)", lambda x, y, z: x * x.dtype.type(0.017453292519943295)),
    "fmod": ("fmod(x, y)", lambda x, y, z: np.fmod(x, y)),
    "compare": ("(T)((x < y) + (x == y) * 2 + (x >= z) * 4 + (x != z) * 8 + !(x > y) * 16 + islessgreater(x, y) * 32)",
                lambda x, y, z: (x < y) + (x == y) * 2 + (x >= z) * 4 + (x != z) * 8 + ~(x > y) * 16
                + ((x < y) | (x > y)) * 32),
    "classify": ("(T)(isnan(x) + isinf(x) * 2 + isfinite(x) * 4 + isnormal(x) * 8 + signbit(x) * 16 "
                 "+ isordered(x, y) * 32 + isunordered(x, z) * 64)",
                 lambda x, y, z: np.isnan(x) + np.isinf(x) * 2 + np.isfinite(x) * 4
                 + (np.isfinite(x) & (abs(x) >= np.finfo(x.dtype).tiny)) * 8 + np.signbit(x) * 16
                 + ~(np.isnan(x) | np.isnan(y)) * 32 + (np.isnan(x) | np.isnan(z)) * 64),
    "select": ("select(x, y, (I)(x < y))", lambda x, y, z: np.where(x < y, y, x)),
    "to_int": ("(T)(int)clamp(x, (T)-1e6, (T)1e6)", lambda x, y, z: np.trunc(np.fmin(np.fmax(x, -1e6), 1e6))),
}  # fmt: skip


def operands(type_: str) -> list[np.ndarray]:
    rng = np.random.default_rng(8)
    tiny = float(np.finfo(TYPES[type_]).tiny)
    special = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        1.5,
        2.5,
        -2.5,
        inf,
        -inf,
        nan,
        tiny,
        -tiny / 2,
        tiny / 4,
        3.0,
        -3.0,
        0.49999997,
        8388609.0,
        -4503599627370497.0,
    ]
    columns = []
    for k in range(3):
        values = [special[(j * (k + 1) + k) % 20] for j in range(60)]
        values += list(rng.normal(0, 3, 40)) + list(10.0 ** rng.uniform(-30, 30, N - 100))
        columns.append(np.array(values, TYPES[type_]))
    return columns


def source(type_: str) -> str:
    kernels = []
    for name, (expression, _) in OPERATIONS.items():
        if type_ == "double" and name.startswith(("half_", "native_")):
            continue
        for count in ("", "3"):
            if count and ("(T)" in expression or "(I)" in expression):
                continue
            t = type_ + count
            integer = {"float": "int", "double": "long"}[type_] + count
            text = expression.replace("(T)", f"({t})").replace("(I)", f"({integer})")
            load, store = (
                (f"vload{count}(i, %s)", f"vstore{count}(r, i, out)") if count else ("%s[i]", "out[i] = r")
            )
            kernels.append(
                f"kernel void k_{name}{count}(global {type_} *out, global const {type_} *a, "
                f"global const {type_} *b, global const {type_} *c) {{\n#pragma OPENCL FP_CONTRACT OFF\n"
                f"size_t i = get_global_id(0); {t} x = {load % 'a'}, y = {load % 'b'}, z = {load % 'c'}; "
                f"{t} r = {text}; {store}; }}"
            )
    return "\n".join(kernels)


_programs: dict = {}


def program(type_: str) -> Program:
    if type_ not in _programs:
        _programs[type_] = Program(compile_c(source(type_)))
    return _programs[type_]


def same(got, want, dtype):
    want = np.asarray(want).astype(dtype)
    bits = {4: np.uint32, 8: np.uint64}[got.itemsize]
    different = (got.view(bits) != want.view(bits)) & ~(np.isnan(got) & np.isnan(want))
    # The sign of a zero that fmin, fmax and their kin choose is free.
    different &= ~((got == 0) & (want == 0))
    assert not different.any(), [(int(k), got[k], want[k]) for k in np.flatnonzero(different)[:5]]


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("type_", TYPES)
def test_float_operation(type_, operation):
    if type_ == "double" and operation.startswith(("half_", "native_")):
        return  # float only
    columns = operands(type_)
    with np.errstate(all="ignore"):
        want = OPERATIONS[operation][1](*columns)
    for count in ("", "3"):
        if (
            count
            and "(" in OPERATIONS[operation][0]
            and any(m in OPERATIONS[operation][0] for m in ("(T)", "(I)"))
        ):
            continue
        out = np.zeros(N, TYPES[type_])
        program(type_).run(f"k_{operation}{count}", N // 3 if count else N, 4, out, *columns)
        same(out, want, TYPES[type_])


SIGNED_ZEROS = """
kernel void k(global float *out, global const float *a) { size_t i = get_global_id(0); float x = a[i];
  out[6*i] = ceil(x); out[6*i+1] = trunc(x); out[6*i+2] = rint(x); out[6*i+3] = round(x); out[6*i+4] = sign(x);
  out[6*i+5] = -x; }"""


def test_signs_of_zeros():
    x = np.array([-0.25, -0.0, 0.0, 0.25], np.float32)
    out = np.zeros((4, 6), np.float32)
    Program(compile_c(SIGNED_ZEROS)).run("k", 4, 1, out, x)
    assert np.signbit(out).tolist() == [
        [True] * 5 + [False],
        [True] * 5 + [False],
        [False] * 5 + [True],
        [False] * 5 + [True],
    ]


POINTERS = """
#define K(T, I, P, S) \\
kernel void fract_##T##S(global T *o, global const T *a, P T *l) { size_t i = get_global_id(0); \\
  o[2*i] = fract(a[i], l + i % 4); o[2*i+1] = l[i % 4]; } \\
kernel void modf_##T##S(global T *o, global const T *a, P T *l) { size_t i = get_global_id(0); \\
  o[2*i] = modf(a[i], l + i % 4); o[2*i+1] = l[i % 4]; } \\
kernel void frexp_##T##S(global T *o, global const T *a, P int *l) { size_t i = get_global_id(0); \\
  T##2 v = vload2(i, a); o[4*i] = frexp(v.x, l + i % 4); o[4*i+1] = l[i % 4]; \\
  int2 e; vstore2(frexp(v, &e), 2 * i + 1, o); o[4*i+1] += 1000 * e.x; o[4*i+3] += 1000 * e.y; } \\
kernel void sincos_##T##S(global T *o, global const T *a, P T *l) { size_t i = get_global_id(0); \\
  o[2*i] = sincos(a[i], l + i % 4); o[2*i+1] = l[i % 4]; } \\
kernel void remquo_##T##S(global T *o, global const T *a, P int *l) { size_t i = get_global_id(0); \\
  o[2*i] = remquo(a[i], (T)3, l + i % 4); o[2*i+1] = l[i % 4]; }
K(float, int, global, g) K(float, int, local, l) K(double, long, global, g)
"""


def test_results_through_pointers():
    from tests.runtime.kernel_harness import Local

    p = Program(compile_c(POINTERS))
    for type_, suffix in (("float", "g"), ("float", "l"), ("double", "g")):
        t = TYPES[type_]
        x = np.array([1.75, -2.25, -0.0, 1e-20, inf, -inf, nan, 5.0], t)
        scratch = Local(64) if suffix == "l" else np.zeros(8, t)
        integers = Local(64) if suffix == "l" else np.zeros(8, np.int32)

        def pairs(name, memory, type_=type_, suffix=suffix, x=x, t=t):
            out = np.zeros((len(x), 2), t)
            p.run(f"{name}_{type_}{suffix}", len(x), 4, out, x, memory)
            return out

        below_one = np.nextafter(t(1), t(0))
        with np.errstate(invalid="ignore"):
            fract = np.minimum(x - np.floor(x), below_one)
            part = np.copysign(np.where(np.isinf(x), 0, x - np.trunc(x)), x)
        fract[4:6] = 0
        same(pairs("fract", scratch), np.stack([fract, np.floor(x)], 1), t)
        same(pairs("modf", scratch), np.stack([part, np.trunc(x)], 1), t)
        with np.errstate(invalid="ignore"):
            trig = np.stack([np.sin(x.astype(np.float64)), np.cos(x.astype(np.float64))], 1)
        got = pairs("sincos", scratch)
        assert np.allclose(got, trig, rtol=4e-7 if type_ == "float" else 1e-15, atol=0, equal_nan=True)
        finite = np.array([0, 1, 2, 3, 7])
        got = pairs("remquo", integers)[finite]
        quotient = np.rint(x[finite] / t(3))
        assert np.array_equal(got[:, 0], x[finite] - quotient * 3)
        assert np.array_equal(got[:, 1].astype(int) & 7, quotient.astype(int) & 7)
        out = np.zeros((2, 4), t)
        values = np.array([6.0, -0.75, 0.1, 1024.0], t)
        p.run(f"frexp_{type_}{suffix}", 2, 1, out, values, integers)
        mantissa, exponent = np.frexp(values)
        assert np.array_equal(out[:, 2], mantissa[[0, 2]])
        assert out[:, 1].tolist() == [exponent[0] * 1001, exponent[2] * 1001]


FMA = """kernel void k(global T *o, global const T *a, global const T *b, global const T *c) {
  size_t i = get_global_id(0); o[i] = fma(a[i], b[i], c[i]); }"""


@pytest.mark.parametrize("features", [{"fma", "avx", "sse4.1"}, {"sse4.1"}])
@pytest.mark.parametrize("type_", TYPES)
def test_fma_rounds_once(type_, features):
    from fractions import Fraction

    t = TYPES[type_]
    rng = np.random.default_rng(4)
    a, b = rng.normal(0, 1, (2, 64)).astype(t)
    with np.errstate(all="ignore"):
        c = -(a * b) * t(1 + 1e-7)
    c[:20] = -(a * b)[:20]
    out = np.zeros(64, t)
    Program(compile_c(FMA.replace("T ", f"{type_} ")), CodegenOptions(features=frozenset(features))).run(
        "k", 64, 8, out, a, b, c
    )
    for k in range(64):
        exact = Fraction(float(a[k])) * Fraction(float(b[k])) + Fraction(float(c[k]))
        if type_ == "double":
            assert out[k] == float(exact)
        else:
            nearest = np.float32(float(exact))
            assert abs(Fraction(float(out[k])) - exact) <= abs(Fraction(float(nearest)) - exact)


GEOMETRIC = """
#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define K(n) kernel void k##n(global T *o, global const T *a, global const T *b) { size_t i = get_global_id(0); \\
  CAT(T, n) x = vload##n(i, a), y = vload##n(i, b); o += i * (4 + n); o[0] = dot(x, y); o[1] = length(x); \\
  o[2] = distance(x, y); o[3] = FAST(length)(y); vstore##n(normalize(x), 0, o + 4); }
K(2) K(3) K(4)
kernel void cross3(global T *o, global const T *a, global const T *b) {
  vstore3(cross(vload3(0, a), vload3(0, b)), 0, o); vstore4(cross(vload4(1, a), vload4(1, b)), 1, o); }
"""


@pytest.mark.parametrize("type_", TYPES)
def test_geometric_functions(type_):
    t = TYPES[type_]
    fast = "#define FAST(x) fast_##x\n" if type_ == "float" else "#define FAST(x) x\n"
    p = Program(compile_c(fast + GEOMETRIC, f"-cl-std=CL3.0 -DT={type_}"))
    rng = np.random.default_rng(6)
    large = float(np.finfo(t).max) * 0.4
    small = float(np.finfo(t).tiny)
    for n in (2, 3, 4):
        a, b = rng.normal(0, 2, (2, 8, n)).astype(t)
        a[1], a[2], a[3] = large, small, small / 8
        b[1:4] = 0
        out = np.zeros((8, 4 + n), t)
        p.run(f"k{n}", 8, 2, out, a, b)
        exact = a.astype(np.longdouble)
        length = np.sqrt((exact**2).sum(1))
        rtol = 4e-6 if type_ == "float" else 1e-14
        assert np.allclose(out[:, 0], (a.astype(np.longdouble) * b).sum(1), rtol=rtol, atol=rtol)
        assert np.allclose(out[:, 1], length.astype(t), rtol=rtol, atol=0)
        assert np.allclose(out[:, 2], np.sqrt(((exact - b) ** 2).sum(1)).astype(t), rtol=rtol, atol=0)
        assert np.allclose(out[:, 3], np.sqrt((b.astype(np.longdouble) ** 2).sum(1)), rtol=rtol, atol=0)
        assert np.allclose(out[:, 4:], exact / length[:, None], rtol=rtol, atol=1e-7)
    special = np.array([[0, 0], [inf, 3], [-inf, inf], [nan, 1]], t)
    out = np.zeros((4, 6), t)
    p.run("k2", 4, 1, out, special, special)
    root = np.sqrt(0.5)
    assert np.allclose(out[:3, 4:], [[0, 0], [1, 0], [-root, root]])
    assert np.isnan(out[3, 4:]).all() and out[0, 1] == 0 and out[1, 1] == inf
    a, b = rng.normal(0, 1, (2, 8)).astype(t)
    out = np.zeros(8, t)
    p.run("cross3", 1, 1, out, a, b)
    assert np.allclose(out[:3], np.cross(a[:3], b[:3]), atol=1e-5)
    assert np.allclose(out[4:7], np.cross(a[4:7], b[4:7]), atol=1e-5) and out[7] == 0


LIBRARY = {
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "exp": np.exp, "log": lambda x: np.log(abs(x)), "cbrt": np.cbrt,
    "exp2": np.exp2, "expm1": np.expm1, "atan": np.arctan, "sinh": np.sinh, "tanh": np.tanh,
    "native_cos": np.cos, "rsqrt": lambda x: 1 / np.sqrt(abs(x)),
}  # fmt: skip


@pytest.mark.parametrize("type_", TYPES)
def test_library_functions(type_):
    text = ""
    for name in LIBRARY:
        argument = "fabs(x)" if name in ("log", "rsqrt") else "x"
        if type_ == "double" and name.startswith("native"):
            continue
        text += f"""kernel void k_{name}(global {type_} *o, global const {type_} *a) {{ size_t i = get_global_id(0);
          {type_}3 x = vload3(i, a); vstore3({name}({argument}), i, o); }}\n"""
    text += f"""kernel void pair(global {type_} *o, global const {type_} *a) {{ size_t i = get_global_id(0);
      {type_} x = fabs(a[i]); o[i] = pow(x, ({type_})1.5) + atan2(x, ({type_})2) + ldexp(x, 3) + pown(x, 3)
      + hypot(x, ({type_})3) + ilogb(x + 1) + nextafter(x, x); }}"""
    p = Program(compile_c(text))
    x = np.random.default_rng(9).normal(0, 4, 48).astype(TYPES[type_])
    rtol = 1e-6 if type_ == "float" else 4e-15
    for name, function in LIBRARY.items():
        if type_ == "double" and name.startswith("native"):
            continue
        out = np.zeros(48, TYPES[type_])
        p.run(f"k_{name}", 16, 4, out, x)
        assert np.allclose(out, function(x.astype(np.float64)), rtol=rtol, atol=1e-300), name
    out = np.zeros(48, TYPES[type_])
    p.run("pair", 48, 4, out, x)
    v = abs(x).astype(np.float64)
    want = v**1.5 + np.arctan2(v, 2) + v * 8 + v**3 + np.hypot(v, 3) + np.floor(np.log2(v + 1)) + v
    assert np.allclose(out, want, rtol=rtol)


def test_nan_codes_and_mixing():
    text = """kernel void k(global float *o, global const uint *code) { size_t i = get_global_id(0);
      o[4*i] = nan(code[i]); o[4*i+1] = mix((float)i, 10.0f, 0.25f); o[4*i+2] = smoothstep(0.0f, 4.0f, (float)i);
      o[4*i+3] = bitselect(1.0f, -3.0f, as_float(0x80000000)); }"""
    out = np.zeros((6, 4), np.float32)
    Program(compile_c(text)).run("k", 6, 2, out, np.arange(6, dtype=np.uint32) + 100)
    assert (out[:, 0].view(np.uint32) & 0x3FFFFF == np.arange(6) + 100).all() and np.isnan(out[:, 0]).all()
    i = np.arange(6)
    t = np.clip(i / 4, 0, 1)
    assert np.allclose(out[:, 1], i + (10 - i) * 0.25) and np.allclose(out[:, 2], t * t * (3 - 2 * t))
    assert (out[:, 3] == -1).all()


WHOLE = """
kernel void quotients(global const float *a, global const float *b, global int *out) {
    size_t i = get_global_id(0);
    out[i] = (int)(a[i] / b[i]);
}
kernel void by_one(global const float *a, float b, global int *out) {
    size_t i = get_global_id(0);
    out[i] = (int)(a[i] / b);
}
kernel void roots(global const float *a, global int *out) {
    size_t i = get_global_id(0);
    out[i] = (int)sqrt(a[i]);
}
"""


@pytest.mark.parametrize("slow", [False, True])
@pytest.mark.parametrize("cpu", ["", "x86-64-v3", "x86-64-v2"])
@pytest.mark.skipif(IS_ARM, reason="other CPUs of x86")
def test_fast_math_cuts_whole_quotients_and_roots_to_what_they_are(cpu, slow):
    """llama.cpp's kernel_upscale takes int(i / 0.5f) for the pixel that it reads."""
    target = host_target(cpu)
    options = codegen_options(Context(target, "-cl-fast-relaxed-math", {}))
    options = replace(options, slow_division=slow and target.vector_bits == 512)
    n = 1 << 12
    p = Program(compile_c(WHOLE, "-cl-std=CL3.0 -cl-fast-relaxed-math"), options)
    wanted = np.arange(n, dtype=np.int32)
    divisors = (wanted % 61 + 1).astype(np.float32)
    out = np.zeros(n, np.int32)
    floats = wanted.astype(np.float32)
    p.run("quotients", n, 64, floats * divisors, divisors, out)
    assert np.array_equal(out, wanted)
    for divisor in np.float32([0.5, 3, 7, 0.125]):
        p.run("by_one", n, 64, floats * divisor, divisor, out)
        assert np.array_equal(out, wanted)
    p.run("roots", n, 64, floats**2, out)
    assert np.array_equal(out, wanted)


def test_fast_math_options_reach_the_code():
    text = "kernel void k(global float *o, float a, float b) { o[0] = a * b + a; }"
    data = compile_c(text, "-cl-std=CL3.0")
    assert " fast " in Program(data, CodegenOptions(fast_relaxed_math=True)).code("k").text
    assert " contract " in Program(data, CodegenOptions(mad_enable=True)).code("k").text
    assert " contract " not in Program(data, CodegenOptions()).code("k").text, "clang writes ContractionOff"


@pytest.mark.parametrize(
    "terms, kept", [("s + t", True), ("s - t", True), ("s + x[i]", False), ("x[0] * x[1] + t + x[i]", False)]
)
def test_chains_of_products_stay_apart(terms, kept):
    """Where two sums of products meet, LLVM would make one chain of both."""
    text = f"""kernel void k(global float *o, global const float *x) {{ size_t i = get_global_id(0); float s = 0, t = 0;
        for (int k = 0; k < 6; k++) {{ s = mad(x[k], x[i + k], s); t = mad(x[k], x[i + k + 9], t); }} o[i] = {terms}; }}"""
    code = Program(compile_c(text), CodegenOptions(fast_relaxed_math=True)).code("k").text
    sums = [line for line in code.splitlines() if "fadd" in line or "fsub" in line]
    assert sums
    assert any("fast" not in line and "reassoc" not in line and "contract" in line for line in sums) == kept


@pytest.mark.parametrize("half", ["", ".s0 + v.s1", ".s0 + dot(v, (float4)x[i])"])
def test_chains_of_products_are_added_up(half):
    """Of components, too."""
    text = f"""kernel void k(global float *o, global const float *x) {{ size_t i = get_global_id(0); float4 v = 0;
        for (int k = 0; k < 6; k++) v = mad((float4)x[k], vload4(0, x + i + k), v); o[i] = v{half or ".s0"}; }}"""
    x, out = np.arange(64, dtype=np.float32), np.zeros(16, np.float32)
    program = Program(compile_c(text), CodegenOptions(fast_relaxed_math=True))
    program.run("k", 16, 8, out, x)
    v = np.array([sum(x[k] * x[i + k : i + k + 4] for k in range(6)) for i in range(16)])
    want = v[:, 0] + (v[:, 1] if half == ".s0 + v.s1" else v.sum(1) * x[:16] if half else 0)
    np.testing.assert_allclose(out, want, rtol=1e-5)
    if half:
        sums = [line for line in program.code("k").text.splitlines() if "fadd" in line]
        assert any("fast" not in line and "reassoc" not in line for line in sums)
