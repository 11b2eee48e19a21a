"""How several vectors are made of the lanes of others, two of which are shuffled at a time. A transposition
of n vectors takes n·log2(n) shuffles so, where each vector by itself would take n - 1."""

from __future__ import annotations

from collections.abc import Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

# An LLVM operand; a vector that lies in memory, by its number; the result of a shuffle, ("step", its number).
Vector: TypeAlias = str | int | tuple[str, int]
Lane: TypeAlias = tuple[Vector, int] | None


class Network:
    """steps: for each shuffle the lanes of its result, as (vector, lane) or None; its result is the vector
    ("step", number)."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.steps: list[list[Lane]] = []
        self._found: dict[tuple[Lane, ...], Vector] = {}

    def make(self, lanes: list[Lane]) -> Vector:
        """A vector of lanes of at most two others."""
        sources = _sources([lanes])
        if len(sources) == 1 and all(at is None or at[1] == lane for lane, at in enumerate(lanes)):
            return sources[0]
        key = tuple(lanes)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = "step", len(self.steps)
            self.steps.append(lanes)
        return found

    def solve(self, targets: list[list[Lane]]) -> list[Vector]:
        """The vectors that these lanes are.

        Half of the targets need half of what two sources hold, and so on: where that fills one vector, it
        takes the place of both.
        """
        if all(len(_sources([target])) <= 2 for target in targets):
            return [self.make(target) for target in targets]
        if len(targets) == 1:
            return [self._join(targets[0])]
        half = len(targets) // 2
        results: list[Vector] = []
        for some in (targets[:half], targets[half:]):
            sources = _sources(some)
            place: dict[tuple[Vector, int], tuple[Vector, int]] = {}
            for k in range(0, len(sources) - 1, 2):
                pair = sources[k : k + 2]
                wanted = list(dict.fromkeys(at for t in some for at in t if at is not None and at[0] in pair))
                if len(wanted) <= self.width:
                    packed = self.make([*wanted, *[None] * (self.width - len(wanted))])
                    place |= {at: (packed, lane) for lane, at in enumerate(wanted)}
            results += self.solve([[at and place.get(at, at) for at in target] for target in some])
        return results

    def _join(self, target: list[Lane]) -> Vector:
        """One vector, of any number of others."""
        while len(sources := _sources([target])) > 2:
            for k in range(0, len(sources) - 1, 2):
                pair = sources[k : k + 2]
                joined = self.make([at if at is not None and at[0] in pair else None for at in target])
                target = [
                    (joined, lane) if at is not None and at[0] in pair else at
                    for lane, at in enumerate(target)
                ]
        return self.make(target)


def _sources(targets: Sequence[Sequence[Lane]]) -> list[Vector]:
    return list(dict.fromkeys(at[0] for target in targets for at in target if at is not None))
