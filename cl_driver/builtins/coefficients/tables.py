"""Writes ../cl/f64/tables.h, for the lookups of cl/f64/scaled.cl: 16 doubles or 32 floats; and
../cl/f64/memory_tables.h, tables of cl/f64/power.cl and cl/f64/erf.cl that lie in memory, in rows of pairs.

Logarithms of n/32 in two parts: entry n mod 16 is of n = 17 to 31; the first is 0, of 1. High parts are
multiples of 2^-42. The same of n/64 in floats, of 2^-15. Pieces of erf and of erfc(x) exp(x^2): polynomials.
"""

from __future__ import annotations

import pathlib
from typing import Any, TypeAlias

import mpmath

Real: TypeAlias = Any  # mpmath.mpf: the package has no types

UNIT = mpmath.mpf(2) ** -42


def emit(name: str, base: Real, count: int, unit: Real, suffix: str = "") -> list[str]:
    """The macros NAME_HIGH and NAME_LOW: the entries as arguments of lookup."""
    numbers = [mpmath.mpf(n) / (2 * count) for n in range(count + 1, 2 * count)]
    values = [mpmath.mpf(0)] + [-mpmath.log(number) / mpmath.log(base) for number in numbers]
    high = [mpmath.nint(value / unit) * unit for value in values]
    low = [value - part for value, part in zip(values, high, strict=True)]
    lines = []
    for label, part in (("HIGH", high), ("LOW", low)):
        entries = [float(value).hex() + suffix for value in part]
        rows = [", ".join(entries[at : at + 4]) for at in range(0, count, 4)]
        lines.append(f"#define {name}_{label} \\\n    " + ", \\\n    ".join(rows) + "\n")
    return lines


def power_table() -> str:
    """For each 128th of an octave, of which one is around 1: c, an inverse of its middle to 8 bits, plus 2^33
    times the lower part of log(1/c), and the higher part."""
    rows = []
    for k in range(128):
        below = k - mpmath.mpf("75.5")  # of 1, in last places of 7 bits above it and 8 below
        first, last = (1 + mpmath.mpf(x) / (128 if x > 0 else 256) for x in (below, below + 1))
        places = 128 if last <= 1 else 256
        c = mpmath.nint(2 / (first + last) * places) / places
        worst = max(abs(c * first - 1), abs(c * last - 1))
        assert worst < 0.0071, (k, worst)
        high = mpmath.nint(-mpmath.log(c) / UNIT) * UNIT
        low = -mpmath.log(c) - high
        rows.append(f"    {{{float(c + low * 2**33).hex()}, {float(high).hex()}}}")
    return "__constant double2 power_table[128] = {\n" + ",\n".join(rows) + "};\n"


ERF_STEP = mpmath.mpf(3) / 64
ERF_TERMS = 8  # a row is a cache line


def erf_table() -> str:
    """For each multiple of ERF_STEP the polynomial of erf around it, the lowest coefficient first; odd ones
    alone around 0."""
    half = ERF_STEP / 2
    odd = mpmath.chebyfit(
        lambda z: mpmath.erf(mpmath.sqrt(z)) / mpmath.sqrt(z), [1e-30, half**2], ERF_TERMS // 2
    )
    rows = [[c for coefficient in odd[::-1] for c in (0, coefficient)]]
    for k in range(1, 128):
        at = k * ERF_STEP
        rows.append(mpmath.chebyfit(lambda r, at=at: mpmath.erf(at + r), [-half, half], ERF_TERMS)[::-1])
    lines = []
    for row in rows:
        entries = [float(c).hex() for c in row]
        lines.append("    {" + ",\n     ".join(", ".join(entries[at : at + 4]) for at in (0, 4)) + "}")
    return "__constant double8 erf_table[128] = {\n" + ",\n".join(lines) + "};\n"


STEP = mpmath.mpf(197) / 512  # of erf's pieces, around multiples of it
TERMS = 14


def erf_pieces() -> list[list[Real]]:
    """Coefficients around each multiple of STEP, the highest first; odd ones alone around 0."""
    odd = mpmath.chebyfit(
        lambda z: mpmath.erf(mpmath.sqrt(z)) / mpmath.sqrt(z), [1e-30, (STEP / 2) ** 2], TERMS // 2
    )
    pieces = [[c for coefficient in odd for c in (coefficient, 0)]]
    for k in range(1, 16):
        at = k * STEP
        pieces.append(mpmath.chebyfit(lambda r, at=at: mpmath.erf(at + r), [-STEP / 2, STEP / 2], TERMS))
    return pieces


def erfcx_pieces() -> list[list[Real]]:
    """Of four pieces in each of the octaves of x + 2 from 2 to 32, around their middles."""
    pieces = []
    for k in range(16):
        width = mpmath.mpf(2) ** (k // 4 - 1)
        middle = width * (4 + k % 4) + width / 2 - 2
        pieces.append(
            mpmath.chebyfit(
                lambda r, at=middle: mpmath.erfc(at + r) * mpmath.exp((at + r) ** 2),
                [-width / 2, width / 2],
                TERMS,
            )
        )
    return pieces


def emit_pieces(name: str, pieces: list[list[Real]]) -> list[str]:
    """A function that looks up the coefficients and evaluates the polynomial."""
    lines = [f"HELPER double {name}(double index, double t) {{"]
    for place, coefficients in enumerate(zip(*pieces, strict=True)):
        entries = [float(value).hex() for value in coefficients]
        rows = ",\n        ".join(", ".join(entries[at : at + 4]) for at in range(0, 16, 4))
        found = f"LOOK_UP(index,\n        {rows})"
        lines.append(f"    double p = {found};" if place == 0 else f"    p = FMA(p, t, {found});")
    return [*lines, "    return p;", "}", ""]


if __name__ == "__main__":
    mpmath.mp.prec = 200
    parts = ["/* Generated by coefficients/tables.py: do not edit. clang-format off */\n"]
    for name, base in (("LOGARITHMS", mpmath.e), ("BINARY_LOGARITHMS", 2), ("DECIMAL_LOGARITHMS", 10)):
        parts += emit(name, base, 16, UNIT)
    parts += emit("FLOAT_LOGARITHMS", 2, 32, mpmath.mpf(2) ** -15, "f")
    parts += emit_pieces("poly_erf_pieces", erf_pieces())
    parts += emit_pieces("poly_erfcx_pieces", erfcx_pieces())
    folder = pathlib.Path(__file__).parent.parent / "cl" / "f64"
    (folder / "tables.h").write_text("\n".join(parts))
    (folder / "memory_tables.h").write_text("\n".join([parts[0], power_table(), erf_table()]))
