"""Measures the builtin library, compiled for this machine, against the C library's long double functions.

python -m tests.pure.builtins_accuracy            prints the table of functions and errors
python -m tests.pure.builtins_accuracy --write    puts it into the library's README.md, from more points
"""

from __future__ import annotations

import argparse
import ctypes
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

from cl_driver.builtins.build import SOURCES, find_clang

ROOT = pathlib.Path(__file__).resolve().parents[2]

REFERENCE = pathlib.Path(__file__).with_name("builtins_reference.c")
TYPES = {
    32: {"T": "float", "MANTISSA": "24", "LOWEST": "-126"},
    64: {"T": "double", "MANTISSA": "53", "LOWEST": "-1022"},
}
FLOATS = {32: np.float32, 64: np.float64}
INTEGERS = {32: np.uint32, 64: np.uint64}

# Function: (bounds in ulp for float and double, section 6.6.1 of the environment specification, full profile;
# what we hold ourselves to; how). None: the specification gives no bound.
EXACT = (0, 0, 0, 0)
ROWS = {
    "acos": (4, 4, 1.3, 1.3, "asin polynomial; sqrt((1 - x) / 2) above 1/2"),
    "acosh": (4, 4, 1.6, 1.6, "log1p(u + sqrt(u (u + 2))), u = x - 1, in pairs"),
    "acospi": (5, 5, 1.4, 1.4, "as acos, scaled polynomial"),
    "asin": (4, 4, 1.3, 1.3, "polynomial; pi/2 - 2 asin(sqrt((1 - x) / 2)) above 1/2"),
    "asinh": (4, 4, 1.2, 1.2, "polynomial up to 1/2; log(x + sqrt(x^2 + 1)) in pairs"),
    "asinpi": (5, 5, 1.5, 1.5, "as asin, scaled polynomial"),
    "atan": (5, 5, 1.5, 1.6, "polynomial on [0, 1]; pi/2 - atan(1/x)"),
    "atanh": (4, 4, 1.6, 1.6, "log1p(2 x / (1 - x)) / 2, the quotient as a pair"),
    "atanpi": (5, 5, 1.5, 1.6, "as atan, scaled polynomial"),
    "atan2": (6, 6, 1.6, 1.8, "atan of the smaller over the larger argument"),
    "atan2pi": (6, 6, 1.9, 1.9, "as atan2, scaled polynomial"),
    "cbrt": (2, 2, 0.52, 0.51, "third of the exponent, Halley, Newton with an exact residual"),
    "cos": (4, 4, 1.5, 0.9, "Cody-Waite in three parts, Payne-Hanek for large arguments; polynomials"),
    "cosh": (4, 4, 1.5, 1.0, "exp / 2 + 1 / (2 exp)"),
    "cospi": (4, 4, 1.0, 1.0, "exact reduction, polynomials"),
    "erf": (16, 16, 1.3, 1.2, "polynomial; 1 - exp(polynomial) (float), 1 - erfc (double)"),
    "erfc": (16, 16, 0.56, 4, "exp(-x^2) polynomial((x - c) / (x + c)); float by way of double"),
    "exp": (3, 3, 1.1, 1.1, "Cody-Waite, polynomial, scaling in two steps"),
    "exp2": (3, 3, 0.95, 0.95, "as exp"),
    "exp10": (3, 3, 1.1, 1.2, "as exp"),
    "expm1": (3, 3, 1.6, 2.0, "2^k p + (2^k - 1)"),
    "log": (3, 3, 0.95, 0.95, "polynomial in m - 1 (float); f - s (f - z p(z)), s = f / (2 + f) (double)"),
    "log2": (3, 3, 1.1, 1.1, "as log, 1/log(2) in two parts"),
    "log10": (3, 3, 1.1, 1.1, "as log, 1/log(10) in two parts"),
    "log1p": (2, 2, 1.6, 1.5, "as log; f = 2^-k x + (2^-k - 1) by fma"),
    "logb": (*EXACT, "bits"),
    "rsqrt": (2, 2, 0.51, 0.51, "1 / sqrt(x), one Newton step with the residual in two parts"),
    "sin": (4, 4, 1.5, 0.9, "as cos"),
    "sincos": (4, 4, 1.5, 0.9, "as cos"),
    "sinh": (4, 4, 1.8, 0.9, "polynomial below 1; exp / 2 - 1 / (2 exp)"),
    "sinpi": (4, 4, 1.1, 1.0, "exact reduction, polynomials"),
    "tan": (5, 5, 1.3, 1.1, "reduction as cos; polynomial (float), sin / cos in pairs (double)"),
    "tanh": (5, 5, 1.5, 1.5, "polynomial near 0; 1 - 2 / (exp(2 x) + 1)"),
    "tanpi": (6, 6, 1.2, 1.6, "exact reduction, as tan"),
    "lgamma": (None, None, None, None, "product and 1/gamma(1 + t); Stirling; reflection"),
    "lgamma_r": (None, None, None, None, "as lgamma"),
    "tgamma": (16, 16, 0.52, 7, "product and 1/gamma(1 + t); Stirling in pairs; reflection (double)"),
    "pow": (16, 16, 0.56, 1.1, "exp2(y log2 x), logarithm and product in double (float), in pairs (double)"),
    "pown": (16, 16, 0.56, 1.1, "as pow"),
    "powr": (16, 16, 0.56, 1.1, "as pow"),
    "rootn": (16, 16, 0.56, 1.1, "as pow, exponent 1/n in two parts"),
    "hypot": (4, 4, 1.3, 0.51, "scaled; root corrected by the residual (double)"),
    "fdim": (0.5, 0.5, 0, 0, "x - y or 0"),
    "fma": (*EXACT, "round to odd (float), 128-bit integers (double): for CPUs without the instruction"),
    "fmod": (*EXACT, "exact steps by fma, each of 21 (float) or 50 bits of the quotient"),
    "fract": (*EXACT, "x - floor(x)"),
    "frexp": (*EXACT, "bits"),
    "ilogb": (*EXACT, "bits"),
    "ldexp": (*EXACT, "bits, one rounding product for denormals"),
    "maxmag": (*EXACT, "comparisons"),
    "minmag": (*EXACT, "comparisons"),
    "modf": (*EXACT, "trunc"),
    "nextafter": (*EXACT, "bits"),
    "remainder": (*EXACT, "as fmod, the quotient to the nearest integer"),
    "remquo": (*EXACT, "as remainder"),
}  # fmt: skip
BINARY = {"atan2", "atan2pi", "fdim", "fma", "fmod", "hypot", "maxmag", "minmag", "nextafter", "pow", "powr"}
BINARY |= {"remainder", "remquo"}
WITH_INTEGER = {"ldexp", "pown", "rootn"}


def compile_library(folder: pathlib.Path, bits: int) -> ctypes.CDLL:
    """The library's sources as host code, linked with the functions that compare."""
    clang = find_clang()
    library, checks = folder / "library.o", folder / f"checks{bits}.so"
    host = ["-O2", "-march=native", "-fPIC"]
    opencl = ["-x", "cl", "-cl-std=CL3.0", "-c", str(SOURCES / "library.cl")]
    subprocess.run([clang, *host, *opencl, "-o", str(library)], check=True)
    defines = [f"-D{name}={value}" for name, value in {**TYPES[bits], "SUFFIX": f"f{bits}"}.items()]
    strict = ["-ffp-contract=off", "-Wall", "-Wextra", "-Werror"]
    files = ["-shared", str(REFERENCE), str(library), "-o", str(checks), "-lm"]
    subprocess.run([clang, *host, *strict, *defines, *files], check=True)
    return ctypes.CDLL(str(checks))


def special_values(bits: int) -> np.ndarray:
    """Zeros, denormals, integers, halves, powers of two and their neighbours, infinities, NaN; both signs."""
    info, float_ = np.finfo(FLOATS[bits]), FLOATS[bits]
    normal = info.smallest_normal
    values = [0, info.smallest_subnormal, normal, np.nextafter(normal, float_(0)), info.max, np.inf, np.nan]
    values += [0.25, 0.5, 0.75, 1, 1.5, 2, 2.5, 3, 4, 5, 7, 10, 15, 16, 31, 63.5, 64, 100, 127, 128, 129, 171]
    values += [1e5, 2**20, 2**22 + 0.5, 2**23 - 1, 2**23, 2**23 + 1, 2**24 - 1, 2**24, 2**31, 2**32, 2**52]
    values += [2**53 - 1, 2.0**53, 2.0**100, np.pi, np.pi / 2]
    values += [np.nextafter(float_(v), float_(to)) for v in (0.5, 1) for to in (0, 2)]
    array = np.array(values, dtype=float_)
    return np.concatenate([array, -array])


def arguments(name: str, bits: int, points: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Specials (all pairs), random bit patterns, and values from the ranges where functions do something."""
    float_ = FLOATS[bits]
    special = special_values(bits)

    def patterns(n):
        return rng.integers(0, 2**bits, n, dtype=INTEGERS[bits]).view(float_)

    n = points // 4
    if name in BINARY:
        x, y = (grid.ravel() for grid in np.meshgrid(special, special))
        x = [x, patterns(n), rng.uniform(-20, 20, n), 1 + rng.uniform(-0.1, 0.1, n)]
        y = [y, patterns(n), rng.uniform(-20, 20, n), rng.uniform(-1000, 1000, n)]
        x += [10 ** rng.uniform(-30, 30, n), rng.integers(-100, 100, n)]
        y += [rng.uniform(-10, 10, n), rng.integers(-100, 100, n)]
        return tuple(np.concatenate([part.astype(float_) for part in v]) for v in (x, y))
    if name in WITH_INTEGER:
        counts = [0, 1, 2, 3, 4, 5, 7, 31, 32, 33, 100, 126, 127, 128, 149, 150, 151, 1000, 1023, 1074, 1075]
        counts = np.array([*counts, 2100, 2**31 - 1])
        x, y = (grid.ravel() for grid in np.meshgrid(special, np.concatenate([counts, -counts, [-(2**31)]])))
        x = [x, patterns(n), rng.uniform(-20, 20, n), 1 + rng.uniform(-0.1, 0.1, n), patterns(n)]
        y = [y, *(rng.integers(-limit, limit, n) for limit in (2**31, 100, 10000, 20))]
        return np.concatenate([p.astype(float_) for p in x]), np.concatenate([p.astype(np.int32) for p in y])
    x = [special, *(rng.uniform(-limit, limit, n) for limit in (2, 100, 1000))]
    x += [1 + rng.uniform(-0.01, 0.01, n), np.rint(rng.uniform(-4e6, 4e6, n // 4)) * 0.5]
    if bits == 32:  # evenly over all bit patterns
        step = max(1, 2**32 // (2 * points))
        x.append((np.arange(0, 2**32, step) + rng.integers(0, step)).astype(np.uint32).view(float_))
    else:
        x.append(patterns(2 * points))
    x = np.concatenate([part.astype(float_) for part in x])
    return x, x


def measure(library: ctypes.CDLL, name: str, bits: int, points: int, rng: np.random.Generator):
    """(largest error in ulp, the arguments that gave it)"""
    with np.errstate(all="ignore"):
        x, y = (np.ascontiguousarray(v) for v in arguments(name, bits, points, rng))
    check = getattr(library, f"check_{name}_f{bits}")
    check.restype = ctypes.c_double
    worst = ctypes.c_long(0)
    pointers = [v.ctypes.data_as(ctypes.c_void_p) for v in (x, y)]
    error = check(*pointers, ctypes.c_long(len(x)), ctypes.byref(worst))
    return error, (x[worst.value], y[worst.value])


def table(points: int) -> str:
    """The table of the README."""
    rng = np.random.default_rng(7)
    lines = ["| function | float: ulp | bound | double: ulp | bound | how |", "|---|---|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        libraries = {bits: compile_library(pathlib.Path(folder), bits) for bits in (32, 64)}
        for name, (bound32, bound64, _, _, how) in ROWS.items():
            cells = [name]
            for bits, bound in ((32, bound32), (64, bound64)):
                error, at = measure(libraries[bits], name, bits, points, rng)
                cells += [f"{error:.3g}" if error else "0", "none" if bound is None else f"{bound}"]
                print(name, bits, error, *at, file=sys.stderr)
            lines.append("| " + " | ".join([*cells, how]) + " |")
    return "\n".join(lines)


def main() -> None:
    """Prints the table, or puts it into the README between its two marks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    write = parser.parse_args().write
    text = table(2_000_000 if write else 200_000)
    if not write:
        print(text)
        return
    readme = ROOT / "cl_driver" / "builtins" / "README.md"
    before, mark, rest = readme.read_text().partition("<!-- table -->\n")
    after = rest[rest.index("<!-- end of table -->") :]
    readme.write_text(before + mark + text + "\n" + after)


if __name__ == "__main__":
    main()
