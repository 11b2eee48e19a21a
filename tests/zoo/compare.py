"""Whether two platforms' outputs are the same, up to rounding."""

from __future__ import annotations

from pathlib import Path

import numpy as np

# Relative to the value, and to what is usual in the output.
TOLERANCE = {2: (2e-2, 2e-3), 4: (1e-3, 1e-4), 8: (1e-8, 1e-9)}


def close(one: np.ndarray, other: np.ndarray) -> str:
    """ "", or where the arrays differ first. Structures come as integers: their words may be floats."""
    if one.dtype != other.dtype or one.shape != other.shape:
        return f"{one.dtype}{one.shape} beside {other.dtype}{other.shape}"
    equal = one.view(f"u{one.itemsize}") == other.view(f"u{one.itemsize}")
    if equal.all():
        return ""
    if one.dtype.kind == "f":
        relative, absolute = TOLERANCE[one.itemsize]
        a, b = one.astype(np.float64), other.astype(np.float64)
        with np.errstate(all="ignore"):
            finite = np.abs(b[np.isfinite(b)])
            usual = float(np.median(finite[finite > 0])) if (finite > 0).any() else 1.0
            equal |= (np.isnan(a) & np.isnan(b)) | (a == b)
            equal |= np.abs(a - b) <= relative * np.maximum(np.abs(a), np.abs(b)) + absolute * usual
    different = np.flatnonzero(~equal)
    if not different.size:
        return ""
    first = different[0]
    return f"{different.size} of {one.size} differ, first [{first}]: {one[first]!r}, {other[first]!r}"


def same(one: dict[str, list], other: dict[str, list]) -> str:
    """ "", or where two kernels' changes {argument: [file, first element]} differ."""
    if one.keys() != other.keys():
        return f"arguments {sorted(one)} changed beside {sorted(other)}"
    for index in one:
        (path, start), (path_other, start_other) = one[index], other[index]
        a, b = np.load(Path(path)), np.load(Path(path_other))
        low, high = max(start, start_other), min(start + a.size, start_other + b.size)
        # An element that one platform left as it was by chance is no difference of many.
        if abs(start - start_other) + abs(start + a.size - start_other - b.size) > max(16, a.size // 100):
            return (
                f"argument {index}: [{start}, {start + a.size}) changed"
                f" beside [{start_other}, {start_other + b.size})"
            )
        if low < high:
            why = close(a[low - start : high - start], b[low - start_other : high - start_other])
            if why:
                return f"argument {index}, from {low}: {why}"
    return ""


def verdict(ours: dict | str, peers: dict[str, dict | str]) -> tuple[str, str]:
    """(verdict, detail) from each platform's changes, or why it has none.

    equal; differs (the peers agree, ours is another); fails (ours alone does not run); unclear (the peers
    disagree, or one cannot run it: such arguments say nothing); nothing (no memory is changed).
    """
    ran = {name: changes for name, changes in peers.items() if isinstance(changes, dict)}
    if not ran or len(ran) < len(peers):
        return "unclear", "; ".join(f"{name}: {why}" for name, why in peers.items() if isinstance(why, str))
    names = list(ran)
    for name in names[1:]:
        why = same(ran[names[0]], ran[name])
        if why:
            return "unclear", f"{names[0]} beside {name}: {why}"
    if isinstance(ours, str):
        return "fails", ours
    if not any(ran.values()) and not ours:
        return "nothing", ""
    why = ""
    for name in names:
        why = same(ours, ran[name])
        if not why:
            return "equal", ""
    return "differs", why
