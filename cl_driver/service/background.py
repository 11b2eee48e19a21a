"""A call on a thread of its own (concurrent.futures takes longer to import than the jobs)."""

from __future__ import annotations

import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar, TypeVarTuple, Unpack

    Arguments = TypeVarTuple("Arguments")
    Result = TypeVar("Result")


def start(function: Callable[[Unpack[Arguments]], Result], *arguments: *Arguments) -> Callable[[], Result]:
    """Calls function(*arguments), starting now. What is returned waits for it, and returns or raises what the
    call did."""
    results: list[Result] = []
    errors: list[BaseException] = []

    def call() -> None:
        try:
            results.append(function(*arguments))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=call)
    thread.start()

    def result() -> Result:
        thread.join()
        for error in errors:
            raise error
        return results[0]

    return result
