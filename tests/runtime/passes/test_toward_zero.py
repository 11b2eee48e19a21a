"""RoundingModeRTZ (SPV_KHR_float_controls): every result is the exact one, truncated."""

import math
from fractions import Fraction

import numpy as np
import pytest

from cl_driver.codegen.llvm.options import CodegenOptions
from cl_driver.interp.numbers import RTZ, round_exact
from tests.runtime.kernel_harness import Program
from tests.runtime.spirv_kernels import module

ITEMS = 1024
TYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
CONTROLS = 'OpCapability RoundingModeRTZ\nOpCapability Float16\nOpExtension "SPV_KHR_float_controls"'
STD = '\n%std = OpExtInstImport "OpenCL.std"'
BITS = {"f16": np.uint16, "f32": np.uint32, "f64": np.uint64}


def values(type_: str, seed: int) -> np.ndarray:
    """Bit patterns at random, numbers near one another and near the ends, special values; in all orders."""
    random = np.random.default_rng(seed)
    dtype, bits = TYPES[type_], BITS[type_]
    info = np.finfo(dtype)
    patterns = random.integers(0, np.iinfo(bits).max, ITEMS, bits, endpoint=True).view(dtype)
    close = (1 + random.integers(-8, 8, ITEMS) * float(info.eps)).astype(dtype)
    ends = np.array([info.max, info.tiny, info.smallest_subnormal, 3 * info.smallest_subnormal], dtype)
    special = np.array([0, 1, 3, np.inf, np.nan, 0.1, 1 / 3, 1 - info.epsneg, 1 + info.eps], dtype)
    pool = np.concatenate([patterns[:512], close[:128], np.tile(np.concatenate([ends, special]), 20)])
    with np.errstate(all="ignore"):
        return random.choice(pool, ITEMS) * random.choice(np.array([-1, 1], dtype), ITEMS)


def run(body: str, type_: str, width: int, *inputs, types="", result="", options=None) -> np.ndarray:
    """What a kernel with the mode for its results makes of inputs."""
    bits = type_[1:]
    spirv = module(
        body,
        type_,
        result or type_,
        CONTROLS + (STD if "%std" in body else ""),
        modes=f"OpExecutionMode %main RoundingModeRTZ {bits if not result else result[1:]}",
        types=types + ("\n%f16 = OpTypeFloat 16" if "f16" in (type_, result) else ""),
    )
    out = np.zeros(len(inputs[0]), TYPES.get(result or type_))
    Program(spirv, options, width).run("main", len(out), 64, inputs[0], inputs[-1], out)
    return out


def expected(exact, dtype, fallback):
    """The truncated result; where there is no exact one, what the CPU makes."""
    return fallback if exact is None else round_exact(exact, np.dtype(dtype).itemsize * 8, RTZ)


def is_same(got, want) -> bool:
    return got == want or (math.isnan(got) and math.isnan(want))


def finite(*numbers) -> bool:
    return all(math.isfinite(n) for n in numbers)


EXACT = {
    "FAdd": (lambda a, b: a + b, np.add),
    "FSub": (lambda a, b: a - b, np.subtract),
    "FMul": (lambda a, b: a * b, np.multiply),
    "FDiv": (lambda a, b: a / b if b else None, np.divide),
    "FMod": (lambda a, b: a - b * math.floor(a / b) if b else None, np.mod),
}


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("operation", EXACT)
@pytest.mark.parametrize("width", [1, 8])
def test_arithmetic(width, operation, type_):
    a, b = values(type_, 1), values(type_, 2)
    if operation == "FMod":
        b = np.abs(b)  # the remainder of far larger numbers is another matter
        a, b = np.where(np.abs(a) < 100, a, 7).astype(a.dtype), np.where(b > 0.01, b, 3).astype(b.dtype)
        b = np.where(np.isfinite(b), b, 2).astype(b.dtype)
    got = run(f"%r = Op{operation} %{type_} %x %y", type_, width, a, b)
    exact, numpy = EXACT[operation]
    with np.errstate(all="ignore"):
        nearest = numpy(a, b)
    differs = 0
    for k in range(ITEMS):
        x, y = float(a[k]), float(b[k])
        value = exact(Fraction(x), Fraction(y)) if finite(x, y) else None
        want = expected(value, a.dtype, float(nearest[k]))
        assert is_same(float(got[k]), want), (x.hex(), y.hex(), float(got[k]).hex(), want)
        differs += finite(x, y) and want != float(nearest[k])
    if operation != "FMod":
        numbers = ~np.isnan(nearest)
        assert (np.signbit(got) == np.signbit(nearest))[numbers].all()
    assert differs > 20 or operation == "FMod"  # the mode makes a difference


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("width", [1, 8])
def test_fma_and_square_root(width, type_):
    a, b = values(type_, 3), values(type_, 4)
    bits = int(type_[1:])
    fma = f"%r = OpExtInst %{type_} %std fma %x %y %w"
    sums = f"%w = OpFAdd %{type_} %x %y\n" + fma
    rest = f"%p = OpFMul %{type_} %x %y\n%w = OpFNegate %{type_} %p\n" + fma
    for body, addend in ((sums, lambda x, y: x + y), (rest, lambda x, y: -x * y)):
        got = run(body, type_, width, a, b)
        for k in range(ITEMS):
            if not finite(a[k], b[k]):
                continue
            x, y = Fraction(float(a[k])), Fraction(float(b[k]))
            value = x * y + Fraction(round_exact(addend(x, y), bits, RTZ))
            assert float(got[k]) == round_exact(value, bits, RTZ), (a[k], b[k])
    roots = run(f"%r = OpExtInst %{type_} %std sqrt %x", type_, width, np.abs(a))
    digits = {"f16": 11, "f32": 24, "f64": 53}[type_]
    for x, root in zip(np.abs(a).tolist(), roots.tolist(), strict=True):
        if not finite(x) or not x:
            assert is_same(root, x)
            continue
        above = Fraction(root) + Fraction(2) ** (math.frexp(root)[1] - digits)
        assert Fraction(root) ** 2 <= Fraction(x) < above**2


@pytest.mark.parametrize("width", [1, 8])
def test_vectors(width):
    """Component by component; OpDot from the first product on."""
    a, b = (np.where(np.isfinite(v := values("f32", seed)), v, 3).astype(np.float32) for seed in (6, 7))
    types = "%v = OpTypeVector %f32 3\n%third = OpConstant %f32 0.333333343"
    body = """
    %u = OpCompositeConstruct %v %x %y %third
    %w = OpCompositeConstruct %v %y %third %x
    %scaled = OpVectorTimesScalar %v %u %third
    %sum = OpFAdd %v %scaled %w
    %r = OpDot %f32 %sum %u
    """
    got = run(body, "f32", width, a, b, types=types)
    third = float(np.float32(1 / 3))

    def rounded(value) -> float:
        return round_exact(value, 32, RTZ)

    for k in range(ITEMS):
        u = [Fraction(n) for n in (float(a[k]), float(b[k]), third)]
        w = [u[1], u[2], u[0]]
        scaled = [Fraction(rounded(n * u[2])) for n in u]
        sums = [Fraction(rounded(m + n)) for m, n in zip(scaled, w, strict=True)]
        products = [Fraction(rounded(m * n)) for m, n in zip(sums, u, strict=True)]
        total = Fraction(rounded(products[0] + products[1]))
        assert float(got[k]) == rounded(total + products[2]), k


def truncated(numbers, width: int) -> list[float]:
    return [round_exact(Fraction(n), width, RTZ) for n in numbers]


@pytest.mark.parametrize("width", [1, 8])
def test_conversions(width):
    """To the width alone that the mode is for, and where no FPRoundingMode says something else."""
    x = values("f64", 8)
    x = np.where(np.isfinite(x), x, 0.7)
    small = np.where((np.abs(x) < 1e30) & (np.abs(x) > 1e-30), x, 0.7)
    convert = "%r = OpFConvert %f32 %x"
    assert run(convert, "f64", width, x, result="f32").tolist() == truncated(x.tolist(), 32)
    nearest = convert + "\n;"
    spirv = module(
        nearest,
        "f64",
        "f32",
        CONTROLS,
        modes="OpExecutionMode %main RoundingModeRTZ 32",
        decorations="OpDecorate %r FPRoundingMode RTE",
    )
    out = np.zeros(ITEMS, np.float32)
    Program(spirv, width=width).run("main", ITEMS, 64, small, small, out)
    assert out.tolist() == small.astype(np.float32).tolist() != truncated(small.tolist(), 32)
    integers = np.random.default_rng(9).integers(-(2**63), 2**63 - 1, ITEMS, np.int64)
    got = run("%r = OpConvertSToF %f32 %x", "i64", width, integers, result="f32")
    assert got.tolist() == truncated(integers.tolist(), 32)
    # The mode is for double: arithmetic on float is what it is without.
    a, b = values("f32", 1), values("f32", 2)
    out = np.zeros(ITEMS, np.float32)
    modes = "OpExecutionMode %main RoundingModeRTZ 64"
    spirv = module("%r = OpFAdd %f32 %x %y", "f32", "f32", CONTROLS, modes=modes)
    Program(spirv, width=width).run("main", ITEMS, 64, a, b, out)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(out, a + b)


@pytest.mark.parametrize("width", [1, 8])
def test_vstore_half(width):
    x = values("f32", 10)
    x = np.where(np.isfinite(x), x, 0.7).astype(np.float32)
    types = "%f16 = OpTypeFloat 16\n%ph = OpTypePointer CrossWorkgroup %f16\n%zero = OpConstant %i64 0"
    body = (
        "%to = OpBitcast %ph %rx\n%stored = OpExtInst %void %std vstore_half %x %zero %to\n"
        "%wide = OpLoad %i32 %rx\n%r = OpCopyObject %i32 %wide"
    )
    modes = "OpExecutionMode %main RoundingModeRTZ 16"
    spirv = module(body, "f32", "i32", CONTROLS + STD, modes=modes, types=types)
    out = np.zeros(ITEMS, np.int32)
    Program(spirv, width=width).run("main", ITEMS, 64, x, x, out)
    assert out.astype(np.uint16).view(np.float16).tolist() == truncated(x.tolist(), 16)


@pytest.mark.parametrize("width", [1, 8])
@pytest.mark.parametrize("type_", ["f32", "f64"])
def test_build_options_change_nothing(width, type_):
    """Sums of these are exact or not by bits that reassociation would lose."""
    a, b = values(type_, 1), values(type_, 2)
    body = f"%s = OpFAdd %{type_} %x %y\n%r = OpFSub %{type_} %s %x"
    wanted = run(body, type_, width, a, b)
    got = run(body, type_, width, a, b, options=CodegenOptions(unsafe_math=True, no_signed_zeros=True))
    np.testing.assert_array_equal(got, wanted)
