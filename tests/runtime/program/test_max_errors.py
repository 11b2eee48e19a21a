"""SPV_INTEL_fp_max_error: bounds of errors are kept, or the module is refused."""

from __future__ import annotations

import struct

import mpmath
import numpy as np
import pytest

from cl_driver.codegen.llvm.options import CodegenOptions
from cl_driver.passes.program import errors
from cl_driver.spirv.errors import SpirvError
from cl_driver.spirv.reading import reader
from cl_driver.spirv.validation import validate
from tests.runtime.kernel_harness import Program
from tests.runtime.spirv_kernels import GROUP, ITEMS, WIDTHS, buffer, flags, module

CAPABILITY = (
    'OpCapability FPMaxErrorINTEL\nOpExtension "SPV_INTEL_fp_max_error"\n%std = OpExtInstImport "OpenCL.std"'
)
HALF = CAPABILITY.replace("OpExtension", "OpCapability Float16\nOpExtension")
X = np.array([0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.37, 0.61, 0.83, 0.123, 0.456, 0.789] * 2, np.float32)


def bound(ulp: float) -> str:
    return f"OpDecorate %r FPMaxErrorDecorationINTEL {struct.unpack('<I', struct.pack('<f', ulp))[0]}"


def build(body: str, ulp: float, type_: str = "f32", capabilities: str = CAPABILITY, **parts) -> bytes:
    return module(body, type_, type_, capabilities, decorations=bound(ulp), **parts)


def error(got: np.ndarray, function, *arguments: np.ndarray) -> float:
    """The largest error of float results, in units of the last place."""
    worst = 0.0
    with mpmath.workprec(200):
        for value, *xs in zip(got, *arguments, strict=True):
            exact = function(*(mpmath.mpf(float(x)) for x in xs))
            unit = float(np.spacing(np.abs(np.array(float(exact), got.dtype))))
            worst = max(worst, float(abs(mpmath.mpf(float(value)) - exact)) / unit)
    return worst


def run(spirv: bytes, x: np.ndarray, y: np.ndarray, width: int, options=None) -> np.ndarray:
    out = buffer(len(x), x.dtype)
    Program(spirv, options, width=width).run("main", ITEMS, GROUP, x, y, out)
    return out


STRICT = {
    "sin": mpmath.sin, "cos": mpmath.cos, "tan": mpmath.tan, "exp": mpmath.exp, "log": mpmath.log,
    "asin": mpmath.asin, "atan": mpmath.atan, "erf": mpmath.erf, "tanh": mpmath.tanh,
    "rsqrt": lambda x: 1 / mpmath.sqrt(x), "native_sin": mpmath.sin, "half_exp": mpmath.exp,
    "native_log2": lambda x: mpmath.log(x, 2), "radians": lambda x: x * mpmath.pi / 180,
}  # fmt: skip


@pytest.mark.parametrize("name", STRICT)
def test_functions_of_float(name):
    """Half a unit and a little: only what is computed in double keeps it."""
    x = (X * np.linspace(0.97, 1, ITEMS)).astype(np.float32)
    for width in WIDTHS:
        got = run(build(f"%r = OpExtInst %f32 %std {name} %x", 0.5001), x, x, width)
        assert error(got, STRICT[name], x) <= 0.5001


@pytest.mark.parametrize("width", WIDTHS)
def test_two_arguments_and_vectors(width):
    types = "%f32v3 = OpTypeVector %f32 3"
    x, y = buffer((ITEMS, 4), np.float32), buffer((ITEMS, 4), np.float32)
    x[:, :3], y[:, :3] = X[:, None] * (1, 2, 3), X[:, None] + (0, 1, 2)
    spirv = build("%r = OpExtInst %f32v3 %std atan2 %x %y", 0.51, "f32v3", types=types)
    out = buffer((ITEMS, 4), np.float32)
    Program(spirv, width=width).run("main", ITEMS, GROUP, x, y, out)
    for k in range(3):
        assert error(out[:, k], mpmath.atan2, x[:, k], y[:, k]) <= 0.51


@pytest.mark.parametrize("width", WIDTHS)
def test_sine_and_cosine_together(width):
    types = "%pf = OpTypePointer Function %f32"
    body = "%s = OpExtInst %f32 %std sincos %x %v\n%c = OpLoad %f32 %v\n%r = OpFSub %f32 %s %c"
    spirv = module(
        body, "f32", "f32", CAPABILITY, types=types, locals="%v = OpVariable %pf Function",
        decorations=bound(0.51).replace("%r", "%s"),
    )  # fmt: skip
    got = run(spirv, X, X, width)
    sine, cosine = np.sin(X.astype(np.float64)), np.cos(X.astype(np.float64))
    assert got.tolist() == (sine.astype(np.float32) - cosine.astype(np.float32)).tolist()


FAST = CodegenOptions(fast_relaxed_math=True)


@pytest.mark.parametrize(
    ("body", "instruction", "ulp"),
    [
        ("%r = OpFDiv %f32 %x %y", "fdiv", 0.5), ("%r = OpFMul %f32 %x %y", "fmul", 0.5),
        ("%r = OpExtInst %f32 %std native_divide %x %y", "fdiv", 0.5), ("%r = OpFDiv %f32 %x %y", "fdiv", 4),
        ("%r = OpExtInst %f32 %std half_recip %x", "fdiv", 0.5),
    ],
)  # fmt: skip
def test_rounded_instructions(body, instruction, ulp):
    """Whatever build options allow."""
    assert flags(build(body, ulp), instruction, FAST) == []


def test_flags_of_an_instruction_give_way():
    """FPFastMathMode Fast, and a bound: nothing is left of the flags."""
    spirv = module(
        "%r = OpFDiv %f32 %x %y", "f32", "f32", CAPABILITY,
        decorations=f"{bound(0.5)}\nOpDecorate %r FPFastMathMode Fast",
    )  # fmt: skip
    assert flags(spirv, "fdiv") == []


@pytest.mark.parametrize("width", WIDTHS)
def test_quotients(width):
    x, y = X, (X[::-1] + 1).astype(np.float32)
    assert run(build("%r = OpFDiv %f32 %x %y", 0.5), x, y, width).tolist() == (x / y).tolist()
    root = build("%r = OpExtInst %f32 %std native_sqrt %x", 0.5)
    assert run(root, x, y, width).tolist() == np.sqrt(x).tolist()


@pytest.mark.parametrize(
    ("body", "type_", "ulp", "rule"),
    [
        (
            "%r = OpFAdd %f32 %x %y",
            "f32",
            0.4,
            "OpFAdd: FPMaxErrorDecorationINTEL of 0.4 .*rounds its result",
        ),
        ("%r = OpExtInst %f64 %std sin %x", "f64", 1.0, "of 1 for sin: the driver's may be 1.9"),
        ("%r = OpExtInst %f32 %std sin %x", "f32", 0.5, "of 0.5 for sin: the driver's may be 0.5"),
        ("%r = OpExtInst %f32 %std lgamma %x", "f32", 100, "lgamma: no bound of its error is known"),
        ("%r = OpExtInst %f32 %std mix %x %y %x", "f32", 100, "mix: no bound of its error is known"),
        ("%r = OpFAdd %f32 %x %y", "f32", 0, "a bound is a positive number"),
        ("%r = OpFAdd %f32 %x %y", "f32", -1, "a bound is a positive number"),
        ("%r = OpFAdd %f32 %x %y", "f32", float("nan"), "a bound is a positive number"),
        ("%r = OpIAdd %i32 %x %y", "i32", 1, "it has the type int32"),
    ],
)
def test_refused(body, type_, ulp, rule):
    with pytest.raises(SpirvError, match=rule):
        Program(build(body, ulp, type_))


def test_the_capability_is_needed():
    spirv = build("%r = OpFAdd %f32 %x %y", 1, capabilities='%std = OpExtInstImport "OpenCL.std"')
    with pytest.raises(SpirvError, match="needs the capability FPMaxErrorINTEL"):
        validate.validate(reader.read(spirv))


def test_looser_bounds_change_nothing():
    for name, (single, _) in errors.FUNCTIONS.items():
        arguments = {
            "sincos": 0,
            "atan2": 2,
            "atan2pi": 2,
            "pow": 2,
            "powr": 2,
            "hypot": 2,
            "pown": 0,
            "rootn": 0,
        }
        count = arguments.get(name, 1)
        if not count:
            continue
        body = f"%r = OpExtInst %f32 %std {name} {'%x %y'[: 3 * count - 1]}"
        bare = module(body, "f32", "f32", CAPABILITY)
        loose = build(body, single)
        assert Program(loose, width=1).code("main").text == Program(bare, width=1).code("main").text, name


@pytest.mark.parametrize("width", WIDTHS)
def test_half(width):
    x = X.astype(np.float16)
    types = "%f16 = OpTypeFloat 16"
    got = run(build("%r = OpExtInst %f16 %std sin %x", 0.51, "f16", HALF, types=types), x, x, width)
    assert error(got, mpmath.sin, x) <= 0.51
    with pytest.raises(SpirvError, match="of 0.5 for sin: the driver's may be 0.5"):
        Program(build("%r = OpExtInst %f16 %std sin %x", 0.5, "f16", HALF, types=types))
