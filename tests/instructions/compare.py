"""How two devices' results of one instruction are compared.

A rule is "exact" (bit for bit, but that one NaN is as good as another), "zero" (the same, and so are zeros of
either sign), a number (ulps that they may differ by), a function of both that says where they differ, or None
(whatever they are).
"""

from __future__ import annotations

import numpy as np

from .module import DTYPES, Kernel


def ordinals(values: np.ndarray) -> np.ndarray:
    """Floats as whole numbers in their order, neighbours one apart; in double, exact enough for distances."""
    width = values.dtype.itemsize * 8
    bits = values.view(DTYPES[f"i{width}"]).astype(np.uint64).astype(object)
    top = 1 << (width - 1)
    return np.vectorize(lambda b: int(b) if b < top else -(int(b) - top), otypes=[object])(bits)


def differences(got: np.ndarray, wanted: np.ndarray, rule) -> np.ndarray:
    """Indices (item, component) where results differ by more than the rule allows."""
    if rule is None:
        return np.empty((0, 2), int)
    if callable(rule):
        return np.argwhere(rule(got, wanted))
    if got.dtype.kind != "f":
        return np.argwhere(got != wanted)
    width = got.dtype.itemsize * 8
    bits = DTYPES[f"i{width}"]
    same = np.ascontiguousarray(got).view(bits) == np.ascontiguousarray(wanted).view(bits)
    same |= np.isnan(got) & np.isnan(wanted)
    if rule != "exact":
        same |= (got == 0) & (wanted == 0)
    if rule not in ("exact", "zero") and not same.all():
        rest = ~same & ~np.isnan(got) & ~np.isnan(wanted)
        distance = abs(ordinals(got[rest].copy()) - ordinals(wanted[rest].copy()))
        same[rest] = (distance <= rule).astype(bool)
    return np.argwhere(~same)


def report(kernel: Kernel, got: np.ndarray, wanted: np.ndarray, labels=("got", "wanted")) -> list[str]:
    """A line for each instruction whose results differ: how many, and the first of them."""
    lines = []
    for result in kernel.results:
        a, b = (result.of(data, kernel.items) for data in (got, wanted))
        found = differences(a, b, result.rule)
        if len(found):
            item, component = found[0]
            where = f"{kernel.name} {result.label}: {len(found)} differ, first at item {item}.{component}"
            lines.append(f"{where}: {labels[0]} {a[item]}, {labels[1]} {b[item]}")
    return lines
