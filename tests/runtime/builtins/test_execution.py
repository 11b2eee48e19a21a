"""Every function of the builtin library, called from a kernel, gives what the same source gives as host code.

The host code's errors are measured in tests/pure/builtins/test_accuracy.py; here the way through SPIR-V, the
passes and the code generator is under test, for scalars and vectors.
"""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from cl_driver.accuracy.functions import BINARY, LIBRARY, SECOND, TO_INTEGER, WITH_INTEGER, arguments
from cl_driver.codegen.llvm.options import CodegenOptions
from tests.marks import few_rows, halved
from tests.pure.builtins import accuracy
from tests.runtime.kernel_harness import Program, compile_c

POINTS = 1536
C_TYPES = {32: ("float", ctypes.c_float), 64: ("double", ctypes.c_double)}
WITH_POINTER = SECOND
NAMES = [name for name in LIBRARY if name != "fma"]


def call(name: str, size: str) -> str:
    """The call, with arguments of `size` components."""
    arrays = ["a"] + ["b"] * (name in BINARY) + ["n"] * (name in WITH_INTEGER)
    arguments = [f"vload{size}(i, {array})" if size else f"{array}[i]" for array in arrays]
    if name in WITH_POINTER:
        arguments.append("&r")
    return f"{name}({', '.join(arguments)})"


def source(bits: int, size: str) -> str:
    """One kernel per function: out[i] = f(a[i], ...), and what it returns through a pointer in `second`."""
    type_ = C_TYPES[bits][0]
    lines = [f"#define T {type_}\n"]
    for name in NAMES:
        second = WITH_POINTER.get(name, "int")
        result = "int" if name in TO_INTEGER else "T"
        second_type = type_ if second == "T" else second
        store = f"vstore{size}(v, i, out);" if size else "out[i] = v;"
        store_second = f"vstore{size}(r, i, second);" if size else "second[i] = r;"
        store_second = store_second if name in WITH_POINTER else ""
        result_type = type_ if result == "T" else result
        lines.append(
            f"__kernel void k_{name}(__global const T *a, __global const T *b, __global const int *n,\n"
            f"                       __global {result_type} *out, __global {second_type} *second)\n"
            f"{{ size_t i = get_global_id(0); {second_type}{size} r;\n"
            f"  {result_type}{size} v = {call(name, size)}; {store} {store_second} }}\n"
        )
    return "".join(lines)


@pytest.fixture(scope="module")
def natives(tmp_path_factory):
    """{bits: the library as host code}"""
    return {bits: accuracy.compile_library(tmp_path_factory.mktemp("builtins"), bits) for bits in (32, 64)}


@pytest.fixture(scope="module")
def programs():
    """Compiled once: {(bits, components): program}"""
    return {(bits, size): Program(compile_c(source(bits, size))) for bits in (32, 64) for size in ("", "3")}


def operands(bits: int):
    """Special values in all pairs first, then random ones."""
    rng = np.random.default_rng(11)
    with np.errstate(all="ignore"):
        x, y = arguments("pow", accuracy.TYPE[bits], 4000, rng)
        keep = rng.choice(len(x), POINTS, replace=False)
    n = rng.integers(-40, 40, POINTS).astype(np.int32)
    n[:8] = [0, 1, -1, 2, 2**31 - 1, -(2**31), 3, -3]
    return np.ascontiguousarray(x[keep]), np.ascontiguousarray(y[keep]), n


def expected(library, name: str, bits: int, a, b, n):
    """(results, what was returned through the pointer)"""
    c_type = C_TYPES[bits][1]
    second_type = c_type if WITH_POINTER.get(name) == "T" else ctypes.c_int
    function = getattr(library, f"__cld_{name}_f{bits}")
    function.restype = ctypes.c_int if name in TO_INTEGER else c_type
    function.argtypes = [c_type]
    columns = [a.tolist()]
    if name in BINARY:
        function.argtypes += [c_type]
        columns.append(b.tolist())
    if name in WITH_INTEGER:
        function.argtypes += [ctypes.c_int]
        columns.append(n.tolist())
    cell = second_type()
    if name in WITH_POINTER:
        function.argtypes += [ctypes.POINTER(second_type)]
    results, seconds = [], []
    for row in zip(*columns, strict=True):
        results.append(function(*row, ctypes.byref(cell)) if name in WITH_POINTER else function(*row))
        seconds.append(cell.value)
    return results, seconds


def same(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Equal bits, or both NaN."""
    unsigned = np.dtype(f"u{got.dtype.itemsize}")
    return (got.view(unsigned) == want.view(unsigned)) | ((got != got) & (want != want))


@pytest.mark.parametrize(
    "bits, size",
    few_rows([(32, "3"), (64, ""), (32, ""), (64, "3")], 2),
    ids=["32-vector", "64-scalar", "32-scalar", "64-vector"],
)
@pytest.mark.parametrize("name", halved(NAMES))
def test_kernel_and_host_agree(programs, natives, name, bits, size):
    a, b, n = operands(bits)
    float_ = accuracy.TYPE[bits].float
    results, seconds = expected(natives[bits], name, bits, a, b, n)
    out = np.zeros(POINTS, np.int32 if name in TO_INTEGER else float_)
    second = np.zeros(POINTS, float_ if WITH_POINTER.get(name) == "T" else np.int32)
    programs[bits, size].run(f"k_{name}", POINTS // int(size or 1), 32, a, b, n, out, second)
    want = np.array(results, out.dtype)
    if name == "rsqrt":  # lowered to a division of 1 by the square root
        close = np.isclose(out, want, rtol=2 * np.finfo(float_).eps, atol=0, equal_nan=True)
        assert close.all(), a[~close]
        return
    if name in ("maxmag", "minmag"):  # either zero will do
        out, want = out + float_(0), want + float_(0)
    agree = same(out, want)
    assert agree.all(), [(a[i], b[i], n[i], out[i], want[i]) for i in np.flatnonzero(~agree)[:3]]
    if name in WITH_POINTER:
        want = np.array(seconds, second.dtype)
        agree = same(second, want)
        assert agree.all(), [(a[i], b[i], second[i], want[i]) for i in np.flatnonzero(~agree)[:3]]


@pytest.mark.parametrize("width", [1, 8])
@pytest.mark.parametrize("name", ["exp2", "expm1", "log1p", "sin", "pow", "asinh", "fmod"])
def test_fast_math_spares_the_library(natives, name, width):
    """-cl-fast-relaxed-math must not reassociate or contract the library's own steps, inlined or called."""
    text = compile_c(source(32, ""), "-cl-std=CL3.0 -cl-fast-relaxed-math")
    program = Program(text, CodegenOptions(fast_relaxed_math=True), width=width)
    rng = np.random.default_rng(13)
    a, b = (rng.uniform(0.1, 6, 256).astype(np.float32) for _ in range(2))
    n = np.zeros(256, np.int32)
    out = np.zeros(256, np.float32)
    program.run(f"k_{name}", 256, 32, a, b, n, out, np.zeros(256, np.int32))
    want = np.array(expected(natives[32], name, 32, a, b, n)[0], np.float32)
    assert same(out, want).all()
