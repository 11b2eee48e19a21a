"""How far results of the driver's functions may be from the exact ones, in units of the last place.

What `accuracy/` measures functions against, and what is answered to programs that ask for a bound
(max_errors.py).
"""

from __future__ import annotations

# What the library's functions of float and double hold themselves to. Those of half are functions of float
# whose results are rounded.
FUNCTIONS: dict[str, tuple[float, float]] = {
    "acos": (1.3, 1.3),
    "acosh": (1.6, 1.6),
    "acospi": (1.4, 1.4),
    "asin": (1.3, 1.5),
    "asinh": (1.2, 1.2),
    "asinpi": (1.9, 2.0),
    "atan": (2, 2),
    "atanh": (1.6, 1.6),
    "atanpi": (1.5, 1.6),
    "atan2": (2, 1.8),
    "atan2pi": (1.9, 1.9),
    "cbrt": (0.52, 0.9),
    "cos": (2, 1.9),
    "cosh": (1.5, 1.6),
    "cospi": (1.7, 1.6),
    "erf": (4.2, 3.5),
    "erfc": (0.56, 7),
    "exp": (1.1, 1.1),
    "exp2": (0.95, 0.95),
    "exp10": (1.1, 1.2),
    "expm1": (1.6, 1.5),
    "log": (1.25, 0.95),
    "log2": (1.3, 1.1),
    "log10": (1.3, 1.1),
    "log1p": (1.6, 1.5),
    "rsqrt": (0.51, 0.51),
    "sin": (2, 1.9),
    "sincos": (1.6, 0.9),
    "sinh": (1.8, 0.85),
    "sinpi": (1.6, 1.5),
    "tan": (2.5, 2.5),
    "tanh": (1.5, 2.5),
    "tanpi": (2, 2.8),
    "tgamma": (0.52, 7),
    "pow": (0.56, 1.1),
    "pown": (0.56, 1.1),
    "powr": (0.56, 1.1),
    "rootn": (0.56, 1.1),
    "hypot": (1.3, 1.3),
}
