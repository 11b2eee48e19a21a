"""Code in two versions, of which one runs: a condition, and what each leaves."""

from __future__ import annotations

from collections.abc import Callable

from .emitter import FunctionEmitter

Version = Callable[[], list[str] | None]

# How the labels of the blocks begin; explain/assembly.py knows by them what is executed seldom.
FAST, SLOW, AFTER = "regular", "irregular", "either"
FULL, PARTIAL, MASKED = "full", "partial", "masked"  # access/masked_access.py: versions by a mask


def emit_versions(
    e: FunctionEmitter, condition: str, types: list[str], fast: Version, slow: Version,
    names: tuple[str, str, str] = (FAST, SLOW, AFTER),
) -> list[str]:  # fmt: skip
    """Code in two versions, of which the fast one runs where the condition, an i1, is true.

    fast() and slow() emit them and return operands of the types, or None where there are none. names: how
    the labels begin. Returns the operands behind both.
    """
    labels = [e.new_label(name) for name in names]
    e.emit_void(f"br i1 {condition}, label %{labels[0]}, label %{labels[1]}")
    edges = []
    for label, version in zip(labels, (fast, slow), strict=False):
        e.begin_block(label)
        edges.append((version(), e.label))
        e.emit_void(f"br label %{labels[2]}")
    e.begin_block(labels[2])
    (yes, from_yes), (no, from_no) = edges
    return [
        e.emit(f"phi {t} [ {a}, %{from_yes} ], [ {b}, %{from_no} ]")
        for t, a, b in zip(types, yes or [], no or [], strict=True)
    ]
