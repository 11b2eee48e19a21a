"""A call on a thread of its own (concurrent.futures takes longer to import than the jobs)."""

from __future__ import annotations

import threading


class Background:
    """Calls function(*arguments), starting now."""

    def __init__(self, function, *arguments):
        self._outcome: list = []
        self._thread = threading.Thread(target=self._call, args=(function, arguments))
        self._thread.start()

    def _call(self, function, arguments) -> None:
        try:
            self._outcome = [function(*arguments), None]
        except BaseException as error:
            self._outcome = [None, error]

    def result(self):
        """Waits; raises what the call raised."""
        self._thread.join()
        value, error = self._outcome
        if error is not None:
            raise error
        return value
