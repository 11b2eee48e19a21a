"""A condition variable as threading has it, of which hosts need nothing else: that module takes longer to
import than all that a build needs in a host's process."""

from __future__ import annotations

from _thread import allocate_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _thread import LockType


class Condition:
    """A lock, in a with statement, whose holders may wait for one another."""

    __slots__ = ("_lock", "_waiting")

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._waiting: list[LockType] = []

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def wait(self) -> None:
        """Lets others have the lock until one of them calls notify() or notify_all()."""
        own = allocate_lock()
        own.acquire()
        self._waiting.append(own)
        self._lock.release()
        try:
            own.acquire()
        finally:
            self._lock.acquire()
            if own in self._waiting:  # nobody has called: the wait was interrupted
                self._waiting.remove(own)

    def notify(self) -> None:
        """Wakes one that waits, the first."""
        if self._waiting:
            self._waiting.pop(0).release()

    def notify_all(self) -> None:
        """Wakes all that wait."""
        while self._waiting:
            self.notify()
