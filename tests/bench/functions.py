"""Built-in functions as benchmarks: one call per work-item over 2^20 elements. For builtins.py and child.py.

Names are FUNCTION:TYPE, exp:float. Arguments are from ranges where functions do something and no slow path.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass

import numpy as np

from cl_driver.accuracy.functions import RANGES
from tests.bench.model import Case, Launch

COUNT = 1 << 20
LOCAL_SIZE = 256
TYPES = {"float": np.float32, "double": np.float64}

# The functions whose throughput is held to that of other drivers; the rest is measured beside them.
LISTED = (
    "exp exp2 log log2 log10 pow powr pown sin cos tan sincos sinpi cospi tanh atan atan2 asin acos sqrt "
    "rsqrt cbrt hypot erf erfc fma fmod remainder ldexp frexp floor ceil trunc rint round"
).split()
OTHERS = (
    "acosh acospi asinh asinpi atanh atanpi atan2pi cosh exp10 expm1 lgamma log1p rootn sinh tanpi tgamma"
).split()
_APPROXIMATE = "sin cos tan exp exp2 exp10 log log2 log10 powr sqrt rsqrt recip divide"
NATIVE = [f"native_{function}" for function in _APPROXIMATE.split()]
HALF = [name.replace("native", "half") for name in NATIVE]

SECOND = {"pow", "powr", "atan2", "atan2pi", "hypot", "fmod", "remainder", "divide", "fma"}
WITH_INTEGER = {"pown", "rootn", "ldexp"}
_erf, _erfc, _gamma, _lgamma = (
    np.vectorize(f, otypes=[float]) for f in (math.erf, math.erfc, math.gamma, math.lgamma)
)
# What numpy has under another name, or not at all.
REFERENCE = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan,
    "atanh": np.arctanh, "atan2": np.arctan2, "acospi": lambda x: np.arccos(x) / np.pi,
    "asinpi": lambda x: np.arcsin(x) / np.pi, "atanpi": lambda x: np.arctan(x) / np.pi,
    "atan2pi": lambda y, x: np.arctan2(y, x) / np.pi, "sinpi": lambda x: np.sin(np.pi * x),
    "cospi": lambda x: np.cos(np.pi * x), "tanpi": lambda x: np.tan(np.pi * (x - np.rint(x))),
    "erf": _erf, "erfc": _erfc, "tgamma": _gamma, "lgamma": _lgamma,
    "rsqrt": lambda x: 1 / np.sqrt(x), "exp10": lambda x: 10.0**x,
    "pow": np.power, "powr": np.power, "pown": np.power, "rootn": lambda x, n: x ** (1.0 / n),
    "remainder": lambda x, y: x - np.rint(x / y) * y, "sincos": lambda x: np.sin(x) + np.cos(x),
    "frexp": lambda x: np.frexp(x)[0] + np.frexp(x)[1], "fma": lambda x, y: x * y + x,
    "round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x), "recip": np.reciprocal, "divide": np.divide,
}  # fmt: skip
CALLS = {
    "sincos": "sincos(a[i], &second) + second",
    "frexp": "frexp(a[i], &exponent) + exponent",
    "fma": "fma(a[i], b[i], a[i])",
}


def plain(function: str) -> str:
    """The function that a native_ or half_ one is a form of."""
    return function.removeprefix("native_").removeprefix("half_")


@dataclass(frozen=True)
class FunctionBenchmark:
    """A benchmark (model.py) of one function and type."""

    function: str
    type: str

    entry_point = "apply"

    @property
    def source(self) -> bytes:
        base = plain(self.function)
        operands = "a[i], b[i]" if base in SECOND | WITH_INTEGER else "a[i]"
        call = CALLS.get(self.function, f"{self.function}({operands})")
        second = "int" if base in WITH_INTEGER else self.type
        return (
            f"kernel void {self.entry_point}(global const {self.type} *a, global const {second} *b,\n"
            f"                  global {self.type} *out)\n"
            "{\n    size_t i = get_global_id(0);\n"
            f"    {self.type} second;\n    int exponent;\n    out[i] = {call};\n}}\n"
        ).encode()

    def case(self, small: bool = False) -> Case:
        """The benchmark's case; always the same contents. small: for tests."""
        rng = np.random.default_rng(zlib.crc32(f"{self.function}:{self.type}".encode()))
        count, base, float_ = COUNT >> 6 if small else COUNT, plain(self.function), TYPES[self.type]
        low = 0.01 if self.function != base and base in ("exp", "exp2", "exp10") else -20
        a = rng.uniform(*RANGES.get(base, (low, 20)), count).astype(float_)
        b = rng.uniform(0.5, 5, count).astype(float_)
        if base in WITH_INTEGER:
            b = rng.integers(2, 9, count).astype(np.int32)
        operands = (a, b) if base in SECOND | WITH_INTEGER else (a,)

        def expected() -> dict[str, np.ndarray]:
            function = REFERENCE.get(base) or getattr(np, base)
            wide = [v if v.dtype == np.int32 else v.astype(np.float64) for v in operands]
            return {"out": function(*wide).astype(np.float64)}

        error = 1e-9 if float_ is np.float64 else 2e-3 if base != self.function else 1e-4
        launch = Launch(["a", "b", "out"], (count,), (LOCAL_SIZE,))
        memory = {"a": a, "b": b, "out": np.zeros(count, float_)}
        return Case(memory, [launch], expected, 2 * a.nbytes, rtol=error, atol=error)


def all_names() -> list[str]:
    """Every FUNCTION:TYPE."""
    names = [f"{function}:{type_}" for type_ in TYPES for function in ("fabs", *LISTED, *OTHERS)]
    return names + [f"{function}:float" for function in NATIVE + HALF]


def benchmark(name: str) -> FunctionBenchmark:
    """The benchmark FUNCTION:TYPE."""
    return FunctionBenchmark(*name.split(":"))
