"""LLVM IR as LLVM prints it: where functions and blocks begin, and names that nobody has."""

from __future__ import annotations

from ...late_patterns import pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# The name of a value, as its uses have it.
NAME = r'%(?:[-\w.$]+|"[^"]*")'

# The line that begins a block; its group is the block's name. Lines of instructions begin with a space: most
# lines are, and to look at that takes less time than to try the pattern.
LABEL = pattern(r'((?:[-\w.$]+|"[^"]*")):')


def free_prefix(text: str, word: str) -> str:
    """What no name of the text begins with, if a dot follows: the word, made longer where it has to be."""
    while any(f"{before}{word}." in text for before in ("%", '%"', "\n", '\n"')):
        word += "_"
    return word


def rewrite(text: str, change: Callable[[list[str]], list[str] | None]) -> str | None:
    """A module with its functions changed; None if none are. change() is given the lines of one, from
    "define" up to the brace at its end, and returns others, or None."""
    lines = text.split("\n")
    made: list[str] = []
    has_changed = False
    at = 0
    while at < len(lines):
        if not lines[at].startswith("define "):
            made.append(lines[at])
            at += 1
            continue
        end = lines.index("}", at)
        changed = change(lines[at:end])
        has_changed |= changed is not None
        made += lines[at:end] if changed is None else changed
        at = end
    return "\n".join(made) if has_changed else None


def blocks(lines: list[str]) -> list[tuple[int, int]]:
    """The first line of each block of a function, and the one after its last; before the first label, a block
    of the lines there."""
    starts = [0]
    starts += [k for k, line in enumerate(lines) if line[:1] != " " and k and LABEL.match(line)]
    return list(zip(starts, [*starts[1:], len(lines)], strict=True))
