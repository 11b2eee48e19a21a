"""Code in two versions, of which one runs: a condition, and what each leaves."""

from __future__ import annotations

from collections.abc import Callable

from .emitter import FunctionEmitter

Half = Callable[[], list[str] | None]

# How the labels of the blocks begin; explain/assembly.py knows by them what is executed seldom.
FAST, SLOW, AFTER = "regular", "irregular", "either"


def either(e: FunctionEmitter, condition: str, types: list[str], fast: Half, slow: Half) -> list[str]:
    """Code of which one half runs: fast() and slow() return operands of the types, or nothing."""
    labels = e.new_label(FAST), e.new_label(SLOW), e.new_label(AFTER)
    e.emit_void(f"br i1 {condition}, label %{labels[0]}, label %{labels[1]}")
    edges = []
    for label, half in zip(labels, (fast, slow), strict=False):
        e.begin_block(label)
        edges.append((half(), e.label))
        e.emit_void(f"br label %{labels[2]}")
    e.begin_block(labels[2])
    (yes, from_yes), (no, from_no) = edges
    return [
        e.emit(f"phi {t} [ {a}, %{from_yes} ], [ {b}, %{from_no} ]")
        for t, a, b in zip(types, yes or [], no or [], strict=True)
    ]
