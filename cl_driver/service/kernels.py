"""Kernels as they are asked for: from the cache, where each has an entry, or compiled.

Builds of programs with much to compile leave it to clCreateKernel, which asks here. Threads that ask for one
kernel at once wait for the first of them. Imported by the host's process.
"""

from __future__ import annotations

import _thread
import time

from .. import wire
from ..jit.cache import digest
from ..jit.errors import CompileError
from ..jit.executable import ExecutableError, KernelInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from .client import Service
    from .pool import Budget
    from .protocol import Request

    # What is known of a kernel, and its objects; and the same with the values of the KernelInfo, which an
    # executable does not change.
    Code: TypeAlias = tuple[KernelInfo, list[bytes]]
    Values: TypeAlias = tuple[list[Any], list[bytes]]

# Requests into which kernels are divided, for each process: as many as it takes to end together, and no more
# than that, since each of them has the program with it.
_SHARES = 16

# Another kernel is compiled ahead, if a process is idle, for so many that were asked for before.
_ASKED_FOR_EACH = 4


class _Making:
    """A kernel that a thread has in hand, which lets go of the lock when it is done: then it is there."""

    __slots__ = ("code", "done")

    def __init__(self) -> None:
        self.code: Values | None = None
        self.done = _thread.allocate_lock()
        self.done.acquire()


class Kernels:
    """Of one service. Any thread may call get()."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._in_hand: dict[tuple[str, str], _Making] = {}

    def get(
        self, options: str, il: bytes, names: dict[str, int], others: dict[str, int], before: int
    ) -> dict[str, Code]:
        """See client.kernels()."""
        made = self._get(options, il, names, others, before)
        return {name: (KernelInfo.from_values(values), objects) for name, (values, objects) in made.items()}

    def _get(
        self, options: str, il: bytes, names: dict[str, int], others: dict[str, int], before: int
    ) -> dict[str, Values]:
        program = self._service.entries.key("kernel", options, il)
        mine, theirs = self._take(program, names)
        made: dict[str, Values] = {}
        try:
            if mine:
                wanted = {name: names[name] for name in mine}
                made = self._make(options, il, program, wanted, others, before)
        finally:
            for name, making in mine.items():
                making.code = made.get(name)
                del self._in_hand[program, name]
                making.done.release()
        for name, making in theirs.items():
            with making.done:
                found = making.code
            if found is None:  # it was asked for with others, of which one is wrong
                found = self._get(options, il, {name: names[name]}, {}, 0)[name]
            made[name] = found
        return made

    def _take(self, program: str, names: dict[str, int]) -> tuple[dict[str, _Making], dict[str, _Making]]:
        """Those that the caller has in hand now, and those that others have."""
        mine: dict[str, _Making] = {}
        theirs: dict[str, _Making] = {}
        for name in names:
            making = _Making()
            found = self._in_hand.setdefault((program, name), making)
            (mine if found is making else theirs)[name] = found
        return mine, theirs

    def _make(
        self,
        options: str,
        il: bytes,
        program: str,
        names: dict[str, int],
        others: dict[str, int],
        before: int,
    ) -> dict[str, Values]:
        found = self._load(program, names)
        missing = {name: weight for name, weight in names.items() if name not in found}
        if not missing:
            return found
        start = time.time()
        ahead = self._ahead(missing, others, before)
        if ahead:
            found |= self._load(program, ahead)
            ahead = {name: weight for name, weight in ahead.items() if name not in found}
        budget = self._service.budget()
        try:
            made = self.compile(options, il, missing | ahead, budget)
        except CompileError:
            if not ahead:
                raise
            made = self.compile(options, il, missing, self._service.budget())  # nobody has asked for more
        for name, code in made.items():
            entry = wire.encode(list(code))
            self._service.entries.store(self._keys(program, name), options, start, entry)
        return found | made

    def _keys(self, program: str, name: str) -> list[str]:
        return self._service.entries.keys(digest(program.encode(), name.encode()))

    def _load(self, program: str, names: dict[str, int]) -> dict[str, Values]:
        """What the cache has of these."""
        found: dict[str, Values] = {}
        for name in names:
            entry = self._service.entries.load(self._keys(program, name))
            if entry is not None:
                try:
                    values, objects = wire.decode(entry[1])
                    KernelInfo.from_values(values)
                    found[name] = values, objects
                except (ExecutableError, ValueError):
                    continue
        return found

    def _ahead(self, names: dict[str, int], others: dict[str, int], before: int) -> dict[str, int]:
        """Kernels that idle processes may compile meanwhile, without anybody waiting for them: those that
        follow in the program, and are no larger than what is asked for. Nobody may want them. So there are
        none until some were asked for, and never many for each of those."""
        count = before // _ASKED_FOR_EACH
        if len(names) > 1 or not count:
            return {}
        count = max(0, min(count, self._service.spare_processes(1 + count)))
        [(wanted, most)] = names.items()
        order = list(others)
        first = order.index(wanted) + 1 if wanted in others else 0
        following = [name for name in order[first:] + order[:first] if name not in names]
        return {name: others[name] for name in [n for n in following if others[n] <= most][:count]}

    def compile(self, options: str, il: bytes, names: dict[str, int], budget: Budget) -> dict[str, Values]:
        """Kernels of a program, the largest first, by as many processes as there are. CompileError if one
        cannot be compiled."""
        shares = _shares(list(names.items()), self._service.most_processes() * _SHARES)
        job = self._service.job(options)
        requests: list[Request] = [["kernels", job, il, share] for share in shares]
        made: dict[str, Values] = {}
        for share, answers in zip(shares, self._service.run(requests, budget), strict=True):
            made.update(zip(share, answers, strict=True))
        return {name: made[name] for name in names}


def _shares(kernels: list[tuple[str, int]], most: int) -> list[list[str]]:
    """Names of kernels, of (name, weight), the largest first, in at most so many lists of about equal
    weight."""
    least = sum(weight for _, weight in kernels) / most
    shares: list[list[str]] = []
    room = 0.0
    for name, weight in sorted(kernels, key=lambda kernel: -kernel[1]):
        if room <= 0:
            shares.append([])
            room = least
        shares[-1].append(name)
        room -= weight
    return shares
