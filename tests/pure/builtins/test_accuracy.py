"""The builtin library's functions, compiled for this machine, are within their bounds of error.

References: the C library's functions of wider types for all of them (cl_driver/accuracy), and mpmath for the
doubles again, so that the reference is checked as well.
"""

from __future__ import annotations

import ctypes
import platform
import subprocess

import mpmath
import numpy as np
import pytest

from cl_driver import native
from cl_driver.accuracy.functions import FUNCTIONS, LIBRARY
from cl_driver.accuracy.reference import Reference
from cl_driver.builtins import build
from cl_driver.codegen.library import names
from cl_driver.codegen.library.functions import YIELD
from cl_driver.codegen.ops.address_spaces import lowering_of_name

from . import accuracy


@pytest.fixture(scope="session")
def libraries(tmp_path_factory):
    """{bits: library with its checks}"""
    return {bits: accuracy.compile_library(tmp_path_factory.mktemp("builtins"), bits) for bits in (32, 64)}


@pytest.fixture(scope="session")
def references(tmp_path_factory):
    """{bits: Reference}"""
    folder = tmp_path_factory.mktemp("references")
    return {bits: Reference(accuracy.TYPE[bits], folder) for bits in (32, 64)}


@pytest.mark.parametrize("bits", [32, pytest.param(64, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", LIBRARY)
def test_error_is_within_the_limit(libraries, references, name, bits):
    bound, limit = (values[bits == 64] for values in (FUNCTIONS[name].bounds, FUNCTIONS[name].limits))
    rng = np.random.default_rng(bits)
    error, at = accuracy.measure(libraries[bits], references[bits], name, 40_000, rng)
    if bound is None:
        # near the zeros of lgamma between the negative integers there is no relative accuracy
        assert not np.isinf(error), at
    else:
        assert limit <= bound
        assert error <= limit, at


def _pi_times(function):
    return lambda x: function(mpmath.pi * x)


def _over_pi(function):
    return lambda *x: function(*x) / mpmath.pi


MPMATH = {
    "acos": (mpmath.acos, -1, 1), "acosh": (mpmath.acosh, 1, 50), "acospi": (_over_pi(mpmath.acos), -1, 1),
    "asin": (mpmath.asin, -1, 1), "asinh": (mpmath.asinh, -5, 5), "asinpi": (_over_pi(mpmath.asin), -1, 1),
    "atan": (mpmath.atan, -5, 5), "atanh": (mpmath.atanh, -1, 1), "atanpi": (_over_pi(mpmath.atan), -5, 5),
    "cbrt": (mpmath.cbrt, 0, 100), "cos": (mpmath.cos, -1e6, 1e6), "cosh": (mpmath.cosh, -5, 5),
    "cospi": (mpmath.cospi, -3, 3), "erf": (mpmath.erf, -4, 4), "erfc": (mpmath.erfc, -3, 26),
    "exp": (mpmath.exp, -700, 700), "exp2": (lambda x: mpmath.mpf(2) ** x, -1000, 1000),
    "exp10": (lambda x: mpmath.mpf(10) ** x, -300, 300), "expm1": (mpmath.expm1, -2, 2),
    "log": (mpmath.log, 0, 5),
    "log2": (lambda x: mpmath.log(x, 2), 0, 5), "log10": (mpmath.log10, 0, 5), "log1p": (mpmath.log1p, -1, 2),
    "rsqrt": (lambda x: 1 / mpmath.sqrt(x), 0, 9), "sin": (mpmath.sin, -1e300, 1e300),
    "sinh": (mpmath.sinh, -3, 3),
    "sinpi": (mpmath.sinpi, -3, 3), "tan": (mpmath.tan, -100, 100), "tanh": (mpmath.tanh, -3, 3),
    "tanpi": (_pi_times(mpmath.tan), -1, 1), "tgamma": (mpmath.gamma, -30, 170),
    "lgamma": (mpmath.loggamma, 0.1, 100),
}  # fmt: skip
MPMATH_BINARY = {
    "atan2": (mpmath.atan2, -5, 5), "atan2pi": (_over_pi(mpmath.atan2), -5, 5),
    "hypot": (mpmath.hypot, -5, 5),
    "pow": (mpmath.power, 0, 80), "powr": (mpmath.power, 0, 80),
}  # fmt: skip


@pytest.mark.parametrize("name", [*MPMATH, *MPMATH_BINARY])
def test_doubles_agree_with_mpmath(libraries, name):
    function, low, high = {**MPMATH, **MPMATH_BINARY}[name]
    operands = 2 if name in MPMATH_BINARY else 1
    ours = getattr(libraries[64], f"__cld_{name}_f64")
    ours.restype, ours.argtypes = ctypes.c_double, [ctypes.c_double] * operands
    limit = FUNCTIONS[name].limits[1] or 8
    rng = np.random.default_rng(3)
    with mpmath.workprec(1200 if high > 1e9 else 160):
        for x in rng.uniform(low, high, (300, operands)).tolist():
            want = function(*map(mpmath.mpf, x))
            ulp = mpmath.mpf(2) ** max(mpmath.frexp(want)[1] - 53, -1074)
            assert abs(ours(*x) - want) / ulp <= limit, x


def _function(libraries, name, operands=1):
    function = getattr(libraries[64], f"__cld_{name}_f64")
    function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double] * operands
    return function


def _error(got, want):
    return abs(got - want) / mpmath.mpf(2) ** max(mpmath.frexp(want)[1] - 53, -1074)


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_doubles_near_multiples_of_half_pi(libraries, name):
    """Where all but the last bits of an argument cancel."""
    function, reference, rng = _function(libraries, name), getattr(mpmath, name), np.random.default_rng(7)
    with mpmath.workprec(300):
        for bits in rng.uniform(0, 60, 500).tolist():
            x = float(mpmath.pi / 2 * int(2**bits))
            for near in (x, np.nextafter(x, 0), -np.nextafter(x, np.inf)):
                want = reference(mpmath.mpf(float(near)))
                assert _error(function(near), want) <= FUNCTIONS[name].limits[1], near
                assert name == "tan" or abs(function(near)) <= 1


def test_powers_of_doubles_near_1(libraries):
    """The logarithm is small, the exponent large; half of the bound is kept."""
    function, rng = _function(libraries, "pow", 2), np.random.default_rng(8)
    with mpmath.workprec(200):
        for bits, sign, share in rng.uniform([1, -1, -1], [52, 1, 1], (2000, 3)).tolist():
            x = 1.0 + sign * 2.0**-bits
            y = share * 709 / abs(float(mpmath.log(x)) or 1.0)
            assert _error(function(x, y), mpmath.power(x, y)) <= 8, (x, y)


# name: (reference, from, to, ulp). The specification leaves native_* to us; half_* may be 8192 ulp off.
NATIVE = {
    "sin": (np.sin, -65536, 65536, 3), "cos": (np.cos, -65536, 65536, 3),
    "tan": (np.tan, -65536, 65536, 5), "exp": (np.exp, -86, 88.7, 100),
    "exp2": (np.exp2, -125, 127.9, 2), "exp10": (lambda x: 10.0**x, -37, 38.5, 100),
    "log": (np.log, 0, 9, 4), "log2": (np.log2, 0, 9, 4), "log10": (np.log10, 0, 9, 5),
}  # fmt: skip


@pytest.mark.parametrize("name", NATIVE)
def test_native_functions(libraries, name):
    reference, low, high, limit = NATIVE[name]
    function = getattr(libraries[32], f"__cld_native_{name}_f32")
    function.restype, function.argtypes = ctypes.c_float, [ctypes.c_float]
    x = np.random.default_rng(9).uniform(low, high, 20_000).astype(np.float32)
    got = np.array([function(v) for v in x.tolist()], np.float64)
    want = reference(x.astype(np.float64))
    error = np.abs(got - want) / np.spacing(np.abs(want).astype(np.float32))
    assert error.max() <= limit, x[error.argmax()]
    if name in ("sin", "cos"):  # half_sin and half_cos must stay in their range for large arguments, too
        assert all(abs(function(2.0**e * 1.37)) <= 1 for e in range(10, 127))
        assert np.isnan(function(np.inf))


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("name", ["exp", "exp2", "exp10"])
def test_what_is_far_too_small_does_not_underflow(libraries, name, bits):
    """Intel's CPUs take much longer where it does, even if the result is 0 and not a denormal number."""
    libc, underflow = ctypes.CDLL(None), {"x86_64": 0x10, "aarch64": 0x8}[platform.machine()]  # FE_UNDERFLOW
    small = np.array([-1100, -2000, -1e9, -np.inf] if bits == 64 else [-152, -300, -1e9, -np.inf])
    inputs = [np.repeat(small.astype(accuracy.TYPE[bits].float), 8)]
    assert libc.feclearexcept(underflow) == 0
    out, _ = accuracy.results(libraries[bits], name, bits, inputs)
    assert libc.fetestexcept(underflow) == 0
    assert (out == 0).all()
    assert not np.signbit(out).any()


def test_module_defines_what_the_code_generator_calls():
    """Every name is exported, nothing imported but what the code generator lowers, the module is valid."""
    module = build.update(native.directory() / "builtins.spv")
    subprocess.run(["spirv-val", str(module)], check=True)
    text = subprocess.run(["spirv-dis", str(module)], check=True, capture_output=True, text=True).stdout
    linkage = [line.split('"')[1::1] for line in text.splitlines() if "LinkageAttributes" in line]
    exported = {parts[0] for parts in linkage if parts[1].strip() == "Export"}
    imported = [parts[0] for parts in linkage if parts[1].strip() == "Import"]
    known = {*names.INSTRUCTIONS, YIELD}
    assert [name for name in imported if lowering_of_name(name) is None and name not in known] == []
    assert set(names.all_library_names()) - exported == set()
