"""Rotates by whole bytes, kept as one shuffle each.

CPUs without vector rotates have a shuffle of bytes for these. Where what is rotated is an exclusive or with
the result of such a rotate, as in the rounds of ChaCha and BLAKE, LLVM's code generator shuffles both of its
operands in place of the result: one of the two shuffles then goes by the sum of the bytes. That pays only if
nobody else needs the inner result. Where somebody does, a fence keeps the exclusive or in its place; it is no
instruction.

This comes after LLVM's passes on IR, since they find rotates that are written as shifts.
"""

from __future__ import annotations

from collections import Counter

from ...device.target import Target
from ...late_patterns import pattern
from .text import NAME, free_prefix, rewrite

_FEW = 2  # rotates below which a module is not looked at

_USE = pattern(NAME)
# Two patterns, since what begins with the same text everywhere is found much faster.
_BY_BYTES = r".*(?:splat \(| <)i(?:32|64) (?:8|16|24|32|40|48|56)\b"
_SEEN = pattern(r"@llvm\.fshl\.v\d+i(?:32|64)\(" + _BY_BYTES), pattern(r" = shl " + _BY_BYTES)
_ROTATE = pattern(
    rf"  ({NAME}) = (?:tail )?call <(\d+) x (i32|i64)> @llvm\.fshl\.v\d+i\d+\(<\d+ x i\d+> ({NAME}), "
    rf"<\d+ x i\d+> ({NAME}), <\d+ x i\d+> splat \(i\d+ (\d+)\)\)"
)
_LOGIC = pattern(rf"  ({NAME}) = (?:xor|and|or)(?: disjoint)? <\d+ x i(?:32|64)> ({NAME}), ({NAME})")
_FLOATS = {"i32": ("float", "f32"), "i64": ("double", "f64")}


def may_help(text: str, target: Target) -> bool:
    """Whether there may be such rotates in a module for a CPU without an instruction for them."""
    features = target.features
    if not target.triple.startswith("x86_64") or "avx512f" in features or "ssse3" not in features:
        return False
    return sum(len(seen.findall(text)) for seen in _SEEN) >= _FEW


def fence(text: str) -> str | None:
    """A module, as LLVM prints it, with fences; None if there is nothing to keep apart."""
    prefix = free_prefix(text, "fenced")
    declared: set[str] = set()
    made = rewrite(text, lambda lines: _fenced(lines, prefix, declared))
    if made is None:
        return None
    present = set(text.split("\n"))
    return "\n".join([made, *(one for one in sorted(declared) if one not in present)])


def _fenced(lines: list[str], prefix: str, declared: set[str]) -> list[str] | None:
    """The lines of a function with fences, None if it needs none; adds to what is declared."""
    rotates: dict[str, tuple[str, str, str]] = {}  # lanes, element, what is rotated
    logic: dict[str, tuple[str, str]] = {}
    uses: Counter[str] = Counter()
    for line in lines:
        if "@llvm.fshl." in line and (found := _ROTATE.match(line)):
            name, lanes, element, one, other, by = found.groups()
            if one == other and int(by) % 8 == 0:
                rotates[name] = lanes, element, one
    if len(rotates) < _FEW:
        return None
    for line in lines:
        if combined := _LOGIC.match(line):
            logic[combined[1]] = combined[2], combined[3]
        uses.update(set(_USE.findall(line)))  # a rotate names its operand twice
    made = []
    for line in lines:
        name = found[1] if (found := _ROTATE.match(line)) else ""
        lanes, element, what = rotates.get(name, ("", "", ""))
        # Its line and this use are two.
        if not any(operand in rotates and uses[operand] > 2 for operand in logic.get(what, ())):
            made.append(line)
            continue
        kind, short = _FLOATS[element]
        t, f, names = f"<{lanes} x {element}>", f"<{lanes} x {kind}>", _names(prefix, name)
        function = f"@llvm.arithmetic.fence.v{lanes}{short}"
        declared.add(f"declare {f} {function}({f})")
        made += [
            f"  {names[0]} = bitcast {t} {what} to {f}",
            f"  {names[1]} = call {f} {function}({f} {names[0]})",
            f"  {names[2]} = bitcast {f} {names[1]} to {t}",
            line.replace(f"{t} {what},", f"{t} {names[2]},"),
        ]
    return made if len(made) > len(lines) else None


def _names(prefix: str, name: str) -> list[str]:
    """Three names for values that one value is rotated from."""
    quote = '"' if name[1] == '"' else ""
    return [f"%{quote}{prefix}.{k}.{name[1 + len(quote) :]}" for k in "abc"]
