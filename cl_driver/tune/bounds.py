"""How many bytes of each buffer a launch accesses, from the account that the compiler makes.

The account (passes/traffic/account.py) has, for each block of the kernel, the box of ids and iterations that
it is executed for, and the places it accesses, which are linear in these. So the first and the last byte are
at corners of the box.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..passes.traffic.account import ADD, END, MULTIPLY, MUST, NUMBER, SYMBOL
from ..passes.traffic.polynomial import ARGUMENT, GLOBAL_SIZE, GROUPS, LOCAL_SIZE, OFFSET


class UnknownError(Exception):
    """The places that a launch accesses cannot be told."""


def accessed(
    account: Sequence[int], global_size: Sequence[int], local_size: Sequence[int], values: Mapping[int, int]
) -> dict[int, tuple[int, int]]:
    """{number of an argument: (its first byte that is accessed, one behind the last)}, without arguments that
    nothing is accessed of. Sizes have three dimensions; values: of integer arguments by their numbers.
    UnknownError."""
    if not account or not account[1]:
        raise UnknownError
    return _Reader(account, global_size, local_size, values).read()


class _Reader:
    def __init__(
        self,
        account: Sequence[int],
        global_size: Sequence[int],
        local_size: Sequence[int],
        values: Mapping[int, int],
    ) -> None:
        self.numbers = iter(account)
        self.values = values
        self.sizes = {
            GLOBAL_SIZE: global_size,
            LOCAL_SIZE: local_size,
            GROUPS: [all_ // own for all_, own in zip(global_size, local_size, strict=True)],
            OFFSET: (0, 0, 0),
        }
        self.found: dict[int, tuple[int, int]] = {}

    def read(self) -> dict[int, tuple[int, int]]:
        next(self.numbers), next(self.numbers)
        for _ in range(next(self.numbers)):
            self._entry()
        return self.found

    def _entry(self) -> None:
        is_executed = True
        for _ in range(next(self.numbers)):
            kind, guard = next(self.numbers), self._value()
            if kind == MUST:
                is_executed &= guard >= 0
            elif guard:
                raise UnknownError
        box = []
        for _ in range(next(self.numbers)):
            least = max(self._value() for _ in range(next(self.numbers)))
            most = min(self._value() for _ in range(next(self.numbers)))
            box.append((least, most))
            is_executed &= least <= most
        next(self.numbers)  # operations
        for _ in range(next(self.numbers)):
            argument, _, size = (next(self.numbers) for _ in range(3))
            first = last = self._value()
            for least, most in box:
                factor = self._value()
                ends = factor * least, factor * most
                first, last = first + min(ends), last + max(ends)
            if is_executed:
                before = self.found.get(argument, (first, last + size))
                self.found[argument] = min(before[0], first), max(before[1], last + size)

    def _value(self) -> int:
        stack: list[int] = []
        while (code := next(self.numbers)) != END:
            if code == NUMBER:
                stack.append(next(self.numbers))
            elif code == SYMBOL:
                stack.append(self._symbol(next(self.numbers), next(self.numbers)))
            else:
                b, a = stack.pop(), stack.pop()
                if code not in (ADD, MULTIPLY) and not b:
                    raise UnknownError
                stack.append(a + b if code == ADD else a * b if code == MULTIPLY else a // b)
        return stack[-1]

    def _symbol(self, kind: int, number: int) -> int:
        if kind == ARGUMENT:
            if number not in self.values:
                raise UnknownError
            return self.values[number]
        return self.sizes[kind][number]
