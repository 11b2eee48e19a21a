"""Operand values: edge cases in all pairs first, then edge cases and random ones mixed.

A stream's name says which values. `l` and `h` (bounds in order), `e` and `d` (dividend and divisor) fit
together if drawn with one seed.
"""

from __future__ import annotations

import numpy as np

from .module import DTYPES


def edges(scalar: str) -> np.ndarray:
    """The values of a type that instructions get wrong."""
    width = int(scalar[1:])
    if scalar[0] == "i":
        low, ones = 1 << (width - 1), (1 << width) - 1
        values = [0, 1, ones, low, low - 1, low + 1, 2, ones - 6, 0x55, ones // 3, 100]
        return np.array(values, np.uint64).astype(DTYPES[scalar])
    info = np.finfo(DTYPES[scalar])
    tiny, least = float(info.smallest_normal), float(info.smallest_subnormal)
    values = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        np.nan,
        np.inf,
        -np.inf,
        0.5,
        -0.5,
        1.5,
        -2.5,
        3.0,
        -7.0,
        100.25,
        float(info.max),
    ]
    values += [
        -float(info.max),
        tiny,
        -tiny,
        least,
        -least,
        tiny - least,
        1 - float(info.epsneg),
        1 + float(info.eps),
    ]
    values += [3.1415927, -1.5707964, 20.5, -11.0, 2.0**11 - 0.5, -(2.0**11) - 1]
    with np.errstate(over="ignore"):
        return np.array(values, DTYPES[scalar])


def _random(scalar: str, size: int, rng) -> np.ndarray:
    """Random bits; half of the floats from -20 to 20."""
    bits = rng.integers(0, 1 << int(scalar[1:]), size, np.uint64 if scalar[1:] == "64" else np.int64)
    bits = bits.astype(DTYPES["i" + scalar[1:]])
    if scalar[0] == "i":
        return bits
    values = bits.view(DTYPES[scalar]).copy()
    usual = rng.random(size) < 0.5
    values[usual] = rng.uniform(-20, 20, usual.sum())
    return values


def _any(scalar: str, size: int, which: int, rng) -> np.ndarray:
    known = edges(scalar)
    count = len(known)
    step = np.arange(size)
    chosen = [step % count, (step // count + step) % count, rng.permutation(size) % count][which]
    values = known[chosen]
    late = (step >= count * count // 2) & (rng.random(size) < 0.5) | (rng.random(size) < 0.15)
    values[late] = _random(scalar, late.sum(), rng)
    return values


def _bounds(scalar: str, size: int, rng, which: int, is_signed: bool) -> np.ndarray:
    """The smaller (which = 0) or larger of two values per place."""
    pair = np.array([_any(scalar, size, 0, rng), _any(scalar, size, 2, rng)])
    if scalar[0] == "f":
        pair = np.nan_to_num(pair, posinf=np.inf, neginf=-np.inf)
    elif is_signed:
        pair = pair.view(DTYPES[scalar]().dtype.str.replace("u", "i"))
    return np.sort(pair, axis=0)[which].view(DTYPES[scalar])


def _whole_numbers(scalar: str, size: int, rng, low: int, high: int) -> np.ndarray:
    """Integers from low to high, both of which come up."""
    values = rng.integers(low, high, size, endpoint=True)
    values[: min(size, 5)] = [low, high, 0, 1, min(high, 2)][: min(size, 5)]
    return values.astype(np.int64).astype(DTYPES[scalar])


_POWERS = [
    0,
    1,
    -1,
    2,
    3,
    -3,
    4,
    7,
    -8,
    31,
    127,
    -127,
    128,
    -149,
    150,
    1000,
    -1074,
    2100,
    2**31 - 1,
    -(2**31),
]


def values(name: str, scalar: str, count: int, items: int, seed: int) -> np.ndarray:
    """items × count values of a stream of components of that type.

    a b c any; e d dividend and divisor (no zero, no overflow); s shift amount; o q offset and size of a bit
    field; x index of a component; m n signed and unsigned 24-bit integers; l h bounds in order, L H the same
    unsigned; p integer exponents; g floats from 0.5 to 4; z whole floats from -8 to 8; LOW..HIGH a range: of
    whole numbers, also as floats with fractions.
    """
    size = items * count
    pair = "lh" if name in "lh" else "LH" if name in "LH" else name
    rng = np.random.default_rng([seed, *pair.encode(), *scalar.encode(), count])
    width = int(scalar[1:])
    if name in ("a", "b", "c"):
        result = _any(scalar, size, "abc".index(name), rng)
    elif name == "e":
        low = 1 << (width - 1)
        result = _any(scalar, size, 0, rng)
        result[result == low] = low + 1
    elif name == "d":
        result = _any(scalar, size, 1, rng)
        result[result == 0] = 3
    elif name == "s":
        result = _whole_numbers(scalar, size, rng, 0, width - 1)
    elif name in ("l", "h", "L", "H"):
        result = _bounds(scalar, size, rng, "lhLH".index(name) % 2, name in "lh")
    elif name == "m":
        result = _whole_numbers(scalar, size, rng, -(1 << 23), (1 << 23) - 1)
    elif name == "n":
        result = _whole_numbers(scalar, size, rng, 0, (1 << 24) - 1)
    elif name == "p":
        result = np.array(_POWERS)[np.arange(size) * 7 % len(_POWERS)].astype(np.int64).astype(DTYPES[scalar])
    elif name == "g":
        result = rng.uniform(0.5, 4, size).astype(DTYPES[scalar])
    elif name == "z":
        result = rng.integers(-8, 9, size).astype(DTYPES[scalar])
    elif ".." in name:
        low, high = (int(part) for part in name.split(".."))
        if scalar[0] == "i":
            result = _whole_numbers(scalar, size, rng, low, high)
        else:
            near = np.clip([low, high, 0.5, -0.5, high / 2 + 0.5, low / 2, 1.5, 2.5], low, high)
            result = rng.uniform(low, high, size)
            result[: min(size, 8)] = near[: min(size, 8)]
            with np.errstate(over="ignore"):
                result = result.astype(DTYPES[scalar])
            limit = np.nextafter(DTYPES[scalar](high), DTYPES[scalar](0))
            result = np.where(result.astype(np.float64) > high, limit, result)
    else:
        raise ValueError(name)
    return result.reshape(items, count)
