"""Values that are what another one is in lanes that did not come where they part (linearise_branch.py).

    x = c ? new : old        where c is a mask of the lanes that came to some block

is `old` in all lanes that never came there. A lane that goes past that block need not be given `old`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ...spirv.module import Block, Instruction, Kind, Value


class Unchanged:
    """What values are in lanes that did not come to some blocks."""

    def __init__(self, replaced: dict[Value, Value], live: dict[Block, Instruction]) -> None:
        """live: {head of a rewritten loop: its mask}; see frozen."""
        self.replaced = replaced
        self.known: dict[Value, tuple[Value, Block]] = {}
        # Values that lanes keep when they have left a loop, to take them along.
        self.frozen = {phi for head in live for phi in head.phis() if _is_frozen(phi, head)}

    def note(self, value: Value, base: Value, block: Block) -> None:
        """A value that is the base in lanes that did not come to a block by edges of their own."""
        self.known[value] = self.resolved(base), block

    def resolved(self, value: Value) -> Value:
        """What has taken the place of a value."""
        while value in self.replaced:
            value = self.replaced[value]
        return value

    def is_same(self, value: Value, base: Value, goes_past: Callable[[Block], bool]) -> bool:
        """Whether a value is the base in lanes that go past some blocks."""
        while value is not base:
            if value not in self.known:
                return False
            value, block = self.known[value]
            if not goes_past(block):
                return False
        return True

    def instead(
        self,
        values: dict[Block, Value],
        goes_past: Callable[[Block, Block], bool],
        is_there: Callable[[Value], bool],
    ) -> dict[Block, Value]:
        """The values of edges into a block, by their sources: others that are the same in the lanes that come
        by these edges, so that there are fewer. goes_past: whether those of a source went past a block."""
        result = {source: self.resolved(value) for source, value in values.items()}
        for other in [v for v in dict.fromkeys(result.values()) if v in self.known and is_there(v)]:
            for source, value in result.items():
                if self.is_same(other, value, partial(goes_past, source)):
                    result[source] = other
        return result


def _is_frozen(phi: Instruction, head: Block) -> bool:
    """Whether a phi of a rewritten loop's head keeps its value in lanes that have left."""
    for around in phi.operands[::2]:
        if type(around) is Instruction and around.op is phi.op and head in around.operands:
            if phi.type.kind is not Kind.BOOL and around.operands[around.operands.index(head) - 1] is phi:
                return True
    return False
