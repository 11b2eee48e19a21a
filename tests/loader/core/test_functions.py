"""Built-in functions through the whole driver, for scalars and vectors, against numpy (OpenCL C 6.15).

The accuracy of every function is measured elsewhere (tests/pure/builtins/test_accuracy.py); here it is what
each function of the common, geometric, relational and integer chapters gives, also at the edges.
"""

from fractions import Fraction

import numpy as np
import pytest

from tests.marks import few

RNG = np.random.default_rng(5)
COUNT = 96  # elements: divisible by every vector size
FLOATS = {"float": np.float32, "double": np.float64}
INTEGERS = {
    "char": np.int8, "uchar": np.uint8, "short": np.int16, "ushort": np.uint16, "int": np.int32,
    "uint": np.uint32, "long": np.int64, "ulong": np.uint64,
}  # fmt: skip
SIZES = (1, 3, 8, 2, 4, 16)


def elementwise(session, call: str, type_: str, result: str, size: int, *arrays: np.ndarray) -> np.ndarray:
    """What call(a, b, c) gives for the arrays' elements, `size` at a time."""
    vector = str(size) if size > 1 else ""
    names = "abc"[: len(arrays)]
    load = ", ".join(f"{n} = vload{size}(i, p{n})" if size > 1 else f"{n} = p{n}[i]" for n in names)
    store = f"vstore{size}({call}, i, out)" if size > 1 else f"out[i] = {call}"
    parameters = ", ".join(f"global {type_} *p{n}" for n in names)
    source = f"""kernel void k(global {result} *out, {parameters}) {{
        int i = get_global_id(0); {type_}{vector} {load}; {store}; }}"""
    dtype = {**FLOATS, **INTEGERS}[result]
    return session.compute(source, COUNT // size, dtype, COUNT, *map(session.buffer, arrays))


def floats(dtype, special: bool = True) -> np.ndarray:
    """Numbers of all magnitudes, with infinities, NaN and zeros of both signs."""
    info = np.finfo(dtype)
    values = RNG.normal(size=COUNT).astype(dtype) * dtype(10) ** RNG.integers(-6, 6, COUNT).astype(dtype)
    if special:
        edges = [np.inf, -np.inf, np.nan, 0.0, -0.0, 1.0, -1.0, info.tiny, info.max, info.smallest_subnormal]
        values[RNG.permutation(COUNT)[: len(edges)]] = edges
    return values


def integers(dtype) -> np.ndarray:
    info = np.iinfo(dtype)
    values = RNG.integers(info.min, info.max, COUNT, dtype, endpoint=True)
    values[RNG.permutation(COUNT)[:6]] = [info.min, info.max, 0, 1, info.max // 2, info.min + 1]
    return values


COMMON = {
    "fmin(a, b)": np.fmin,
    "fmax(a, b)": np.fmax,
    "clamp(a, (T)-1, (T)2)": lambda a, b: np.fmin(np.fmax(a, a.dtype.type(-1)), a.dtype.type(2)),
    "step(a, b)": lambda a, b: np.where(b < a, a.dtype.type(0), a.dtype.type(1)),
    "sign(a)": lambda a, b: np.where(np.isnan(a), 0, np.sign(a)).astype(a.dtype),
    "degrees(a)": lambda a, b: np.degrees(a),
    "radians(a)": lambda a, b: np.radians(a),
    "mix(a, b, (T)0.25)": lambda a, b: a + (b - a) * a.dtype.type(0.25),
    "smoothstep((T)-1, (T)1, b)": lambda a, b: (lambda t: t * t * (3 - 2 * t))(np.clip((b + 1) / 2, 0, 1)),
}


@pytest.mark.parametrize("size", few(SIZES, 3))
@pytest.mark.parametrize("type_", FLOATS)
def test_common_functions(session, type_, size):
    """6.15.4. clamp of NaN and the like is undefined: those arguments are left out where it matters."""
    dtype = FLOATS[type_]
    for call, function in COMMON.items():
        plain = call.startswith(("mix", "smooth", "clamp", "step"))
        a, b = floats(dtype, not plain), floats(dtype, not plain)
        expression = call.replace("(T)", f"({type_}{size if size > 1 else ''})")
        found = elementwise(session, expression, type_, type_, size, a, b)
        with np.errstate(all="ignore"):
            expected = function(a, b)
        error = {"rtol": 8 * np.finfo(dtype).eps, "atol": 1e-2 if "mix" in call else 0}
        assert np.allclose(found, expected, **error, equal_nan=True), call


@pytest.mark.parametrize("type_", FLOATS)
@pytest.mark.parametrize("size", few((1, 3, 2, 4), 2))
def test_geometric_functions(session, type_, size):
    """6.15.5: also of vectors whose squares overflow or vanish, which length and normalize do without."""
    dtype, n = FLOATS[type_], size
    info = np.finfo(dtype)
    data = RNG.normal(size=(24, 2, n)).astype(dtype)
    data[3] *= np.sqrt(info.max) * 4
    data[4] *= np.sqrt(info.tiny) / 8
    data[5] = 0
    v = f"{type_}{n if n > 1 else ''}"
    load = (lambda at: f"vload{n}({at}, in)") if n > 1 else (lambda at: f"in[{at}]")
    store = f"vstore{n}(u, 0, out + 4)" if n > 1 else "out[4] = u"
    source = f"""kernel void k(global {type_} *out, global {type_} *in) {{
        int i = get_global_id(0); {v} a = {load("2 * i")}, b = {load("2 * i + 1")}, u = normalize(a);
        out += 8 * i;
        out[0] = dot(a, b); out[1] = length(a); out[2] = distance(a, b); out[3] = length(u); {store}; }}"""
    found = session.compute(source, 24, dtype, 24 * 8, session.buffer(data)).reshape(24, 8)
    wide = data.astype(np.longdouble)
    norm = np.sqrt((wide**2).sum(axis=2))
    tight = 16 * info.eps
    assert np.allclose(found[:3, 0], (wide[:3, 0] * wide[:3, 1]).sum(axis=1), rtol=tight, atol=tight * 4)
    assert np.allclose(found[:, 1], norm[:, 0].astype(dtype), rtol=tight, atol=0)
    distances = np.sqrt(((wide[:, 0] - wide[:, 1]) ** 2).sum(axis=1))
    assert np.allclose(found[:, 2], distances.astype(dtype), rtol=tight, atol=0)
    assert np.allclose(np.delete(found[:, 3], 5), 1, rtol=tight) and found[5, 3] == 0
    with np.errstate(invalid="ignore"):
        unit = np.where(norm[:, :1] > 0, wide[:, 0] / norm[:, :1], 0)
    assert np.allclose(found[:, 4 : 4 + n], unit.astype(dtype), rtol=tight, atol=tight)


@pytest.mark.parametrize("type_", FLOATS)
def test_cross_products(session, type_):
    dtype = FLOATS[type_]
    data = RNG.integers(-9, 9, (24, 2, 4)).astype(dtype)
    source = f"""kernel void k(global {type_} *out, global {type_}4 *in) {{
        int i = get_global_id(0); vstore4(cross(in[2 * i], in[2 * i + 1]), 2 * i, out);
        vstore3(cross(in[2 * i].xyz, in[2 * i + 1].xyz), 0, out + 8 * i + 4); }}"""
    found = session.compute(source, 24, dtype, 24 * 8, session.buffer(data)).reshape(24, 8)
    expected = np.cross(data[:, 0, :3], data[:, 1, :3])
    assert np.array_equal(found[:, :3], expected) and np.array_equal(found[:, 4:7], expected)
    assert not found[:, 3].any()


RELATIONS = {
    "isequal": np.equal, "isnotequal": np.not_equal, "isgreater": np.greater, "isless": np.less,
    "isgreaterequal": np.greater_equal, "islessequal": np.less_equal,
    "islessgreater": lambda a, b: (a < b) | (a > b),
    "isordered": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
    "isunordered": lambda a, b: np.isnan(a) | np.isnan(b),
}  # fmt: skip
PROPERTIES = {
    "isfinite": np.isfinite, "isinf": np.isinf, "isnan": np.isnan, "signbit": np.signbit,
    "isnormal": lambda a: np.isfinite(a) & (abs(a) >= np.finfo(a.dtype).tiny),
}  # fmt: skip


@pytest.mark.parametrize("size", few(SIZES, 3))
@pytest.mark.parametrize("type_, truth", [("float", "int"), ("double", "long")])
def test_relations(session, type_, truth, size):
    """6.15.6: 1 for scalars, -1 in each component of vectors; comparisons with NaN are false but !=."""
    a, b = floats(FLOATS[type_]), floats(FLOATS[type_])
    b[::3] = a[::3]
    result, yes = ("int", 1) if size == 1 else (truth, -1)
    for name, function in RELATIONS.items():
        found = elementwise(session, f"{name}(a, b)", type_, result, size, a, b)
        assert np.array_equal(found, yes * function(a, b).astype(int)), name
    for name, function in PROPERTIES.items():
        found = elementwise(session, f"{name}(a)", type_, result, size, a)
        assert np.array_equal(found, yes * function(a).astype(int)), name


@pytest.mark.parametrize("size", few(SIZES, 3))
@pytest.mark.parametrize("type_", [*FLOATS, *INTEGERS])
def test_select(session, type_, size):
    """select goes by the sign bit of each component, or by a scalar that is not 0; bitselect by each bit."""
    dtype = {**FLOATS, **INTEGERS}[type_]
    width = np.dtype(dtype).itemsize
    signed, unsigned = {
        1: ("char", "uchar"),
        2: ("short", "ushort"),
        4: ("int", "uint"),
        8: ("long", "ulong"),
    }[width]
    word = INTEGERS[unsigned]
    a, b, c = integers(word), integers(word), integers(word)
    c[::5] = 0
    vector = size if size > 1 else ""
    chosen = c != 0 if size == 1 else c >> np.array(8 * width - 1, word) != 0
    expected = {
        "select(as_T(a), as_T(b), c)": np.where(chosen, b, a),
        "select(as_T(a), as_T(b), as_S(c))": np.where(chosen, b, a),
        "bitselect(as_T(a), as_T(b), as_T(c))": (a & ~c) | (b & c),
    }
    for call, wanted in expected.items():
        call = call.replace("as_T", f"as_{type_}{vector}").replace("as_S", f"as_{signed}{vector}")
        found = elementwise(session, f"as_{unsigned}{vector}({call})", unsigned, unsigned, size, a, b, c)
        assert np.array_equal(found, wanted), call


@pytest.mark.parametrize("type_", ["char", "short", "int", "long"])
def test_any_and_all(session, type_):
    """Of the sign bits of the components."""
    data = np.where(RNG.integers(0, 2, COUNT) == 1, -1, 5).astype(INTEGERS[type_])
    data[:16], data[16:32] = -1, 5
    for size in SIZES:
        vector = str(size) if size > 1 else ""
        load = f"vload{size}(i, in)" if size > 1 else "in[i]"
        source = f"""kernel void k(global int *out, global {type_} *in) {{
            int i = get_global_id(0); {type_}{vector} v = {load}; out[i] = any(v) * 2 + all(v); }}"""
        found = session.compute(source, COUNT // size, np.int32, COUNT // size, session.buffer(data))
        negative = (data < 0).reshape(-1, size)
        assert np.array_equal(found, 2 * negative.any(axis=1) + negative.all(axis=1)), size


def wide(function, saturate: bool = False):
    """An integer function computed in Python's integers: wrapped, or saturated, into the type."""

    def apply(*arrays):
        info = np.iinfo(arrays[0].dtype)
        results = [function(info.bits, *(int(x) for x in values)) for values in zip(*arrays, strict=True)]
        if saturate:
            return np.array([min(max(r, info.min), info.max) for r in results], arrays[0].dtype)
        bits = np.array([r % (1 << info.bits) for r in results], f"u{info.bits // 8}")
        return bits.view(arrays[0].dtype)

    return apply


def leading(bits, a):
    return bits - (a % (1 << bits)).bit_length()


def trailing(bits, a):
    a %= 1 << bits
    return bits if a == 0 else (a & -a).bit_length() - 1


ARITHMETIC = {
    "add_sat(a, b)": wide(lambda n, a, b, c: a + b, True),
    "sub_sat(a, b)": wide(lambda n, a, b, c: a - b, True),
    "hadd(a, b)": wide(lambda n, a, b, c: (a + b) >> 1),
    "rhadd(a, b)": wide(lambda n, a, b, c: (a + b + 1) >> 1),
    "mul_hi(a, b)": wide(lambda n, a, b, c: a * b >> n),
    "mad_hi(a, b, c)": wide(lambda n, a, b, c: (a * b >> n) + c),
    "mad_sat(a, b, c)": wide(lambda n, a, b, c: a * b + c, True),
    "clz(a)": wide(lambda n, a, b, c: leading(n, a)),
    "ctz(a)": wide(lambda n, a, b, c: trailing(n, a)),
    "popcount(a)": wide(lambda n, a, b, c: (a % (1 << n)).bit_count()),
    "rotate(a, b)": wide(lambda n, a, b, c: (a % (1 << n)) << b % n | (a % (1 << n)) >> (n - b % n)),
    "min(a, b)": wide(lambda n, a, b, c: min(a, b)),
    "max(a, b)": wide(lambda n, a, b, c: max(a, b)),
    "a + b * c": wide(lambda n, a, b, c: a + b * c),
    "a - b ^ ~c": wide(lambda n, a, b, c: (a - b) ^ ~c),
}


@pytest.mark.parametrize("size", few((3, 1, 16), 1))
@pytest.mark.parametrize("type_", INTEGERS)
def test_integer_functions(session, type_, size):
    """6.15.3, on the ends of the types and at random; all in one kernel per type and size."""
    dtype = INTEGERS[type_]
    a, b, c = integers(dtype), integers(dtype), integers(dtype)
    b[::4] = a[::4]
    vector = str(size) if size > 1 else ""
    load = (lambda n: f"vload{size}(i, p{n})") if size > 1 else (lambda n: f"p{n}[i]")
    stores = "".join(
        f"vstore{size}({call}, i, out + {n * COUNT});" if size > 1 else f"out[{n * COUNT} + i] = {call};"
        for n, call in enumerate(ARITHMETIC)
    )
    source = f"""typedef global {type_} *array;
        kernel void k(array out, array pa, array pb, array pc) {{
            int i = get_global_id(0);
            {type_}{vector} a = {load("a")}, b = {load("b")}, c = {load("c")};
            {stores} }}"""
    total = COUNT * len(ARITHMETIC)
    found = session.compute(source, COUNT // size, dtype, total, *map(session.buffer, (a, b, c))).reshape(
        -1, COUNT
    )
    for row, (call, function) in zip(found, ARITHMETIC.items(), strict=True):
        assert np.array_equal(row, function(a, b, c)), call


@pytest.mark.parametrize("type_", ["char", "short", "int", "uchar", "ushort", "uint"])
def test_abs_and_upsample(session, type_):
    dtype = INTEGERS[type_]
    bits, unsigned = np.iinfo(dtype).bits, "u" + type_.lstrip("u")
    wider = {8: "short", 16: "int", 32: "long"}[bits]
    a, b = integers(dtype), integers(dtype)
    found = elementwise(session, "abs(a)", type_, unsigned, 4, a)
    assert [int(x) for x in found] == [abs(int(x)) for x in a]
    found = elementwise(session, "abs_diff(a, b)", type_, unsigned, 8, a, b)
    assert [int(x) for x in found] == [abs(int(x) - int(y)) for x, y in zip(a, b, strict=True)]
    result = wider if type_ == unsigned.lstrip("u") else "u" + wider
    found = elementwise(session, f"upsample(a, as_{unsigned}2(b))", type_, result, 2, a, b)
    assert [int(x) for x in found] == [
        (int(x) << bits) + int(y) % (1 << bits) for x, y in zip(a, b, strict=True)
    ]


ROUNDING = {"": "rte", "_rte": "rte", "_rtz": "rtz", "_rtp": "rtp", "_rtn": "rtn"}


@pytest.mark.parametrize("suffix", ROUNDING)
@pytest.mark.parametrize("type_", FLOATS)
def test_stores_of_half(session, type_, suffix):
    """vstore_half in every rounding mode and vload_half back (6.15.7), around every half of a range."""
    dtype = FLOATS[type_]
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16)[:: 0x7C00 // 500].astype(dtype)
    exact = np.concatenate([halves, -halves])
    data = np.concatenate([exact * dtype(1 + 2.0**-12), exact * dtype(1 - 2.0**-12), exact])
    data = np.concatenate([data, np.array([np.inf, -np.inf, 0.0, -0.0, 1e30, -1e30, 1e-30, -1e-30], dtype)])
    source = f"""kernel void k(global {type_} *out, global {type_} *in, global half *to) {{
        int i = get_global_id(0); vstore_half{suffix}(in[i], i, to); out[i] = vload_half(i, to); }}"""
    found = session.compute(
        source, len(data), dtype, len(data), session.buffer(data), session.buffer(len(data) * 2)
    )
    with np.errstate(over="ignore"):
        near = data.astype(np.float16)
        up = np.where(near.astype(dtype) < data, np.nextafter(near, np.float16(np.inf)), near)
        down = np.where(near.astype(dtype) > data, np.nextafter(near, np.float16(-np.inf)), near)
    mode = ROUNDING[suffix]
    toward = np.where(np.signbit(data), up, down)
    expected = {"rte": near, "rtp": up, "rtn": down, "rtz": toward}[mode].astype(dtype)
    assert np.array_equal(found, expected) and np.array_equal(np.signbit(found), np.signbit(data))


@pytest.mark.parametrize("type_", FLOATS)
def test_contractions_can_be_turned_off(session, type_):
    """With FP_CONTRACT OFF every operation is rounded; fma never is twice (6.12, 7.4)."""
    dtype = FLOATS[type_]
    a, b = floats(dtype, False), floats(dtype, False)
    with np.errstate(all="ignore"):
        product, c = a * b, -(a * b)
    expressions = {
        "a * b + c": product + c,
        "a * b - -c": product + c,
        "c - a * -b": product + c,
        "-(a * b) - c": -product - c,
    }
    for call, expected in expressions.items():
        body = f"""typedef global {type_} *array;
            kernel void k(array out, array pa, array pb, array pc) {{
                #pragma OPENCL FP_CONTRACT OFF
                int i = get_global_id(0); {type_} a = pa[i], b = pb[i], c = pc[i]; out[i] = {call}; }}"""
        found = session.compute(body, COUNT, dtype, COUNT, *map(session.buffer, (a, b, c)))
        assert np.array_equal(found, expected), call
    found = elementwise(session, "fma(a, b, c)", type_, type_, 4, a, b, c)
    exact = [float(x * y + z) for x, y, z in zip(*(map(fraction, v) for v in (a, b, c)), strict=True)]
    assert np.array_equal(found, np.array(exact, dtype)) and np.any(found != 0)


def fraction(value) -> Fraction:
    return Fraction(float(value))


@pytest.mark.parametrize("mode", few(["_sat_rte", "_rtp", "", "_rte", "_rtz", "_rtn", "_sat", "_sat_rtz"], 2))
@pytest.mark.parametrize("target", ["char", "ushort", "int", "ulong"])
def test_conversions_of_floats(session, target, mode):
    """convert_*: rounding modes, the default toward zero, saturation with NaN to 0 (6.4.3)."""
    dtype = INTEGERS[target]
    info = np.iinfo(dtype)
    data = np.concatenate([np.arange(-8, 8, 0.25), RNG.uniform(-100, 100, 32)]).astype(np.float32)
    if info.min == 0:
        data = abs(data)
    if "sat" in mode:
        data[:5] = [np.inf, -np.inf, np.nan, 3e38, -3e38]
    rounding = {"rte": np.rint, "rtp": np.ceil, "rtn": np.floor}.get(mode[-3:], np.trunc)
    with np.errstate(invalid="ignore"):
        rounded = [
            0 if np.isnan(x) else x if np.isinf(x) else int(x) for x in rounding(data.astype(np.float64))
        ]
    expected = np.array([int(min(max(x, info.min), info.max)) for x in rounded], dtype)
    source = f"""kernel void k(global {target} *out, global float *in) {{
        int i = get_global_id(0); vstore4(convert_{target}4{mode}(vload4(i, in)), i, out); }}"""
    found = session.compute(source, COUNT // 4, dtype, COUNT, session.buffer(data))
    assert np.array_equal(found, expected)
