"""A link whose workers are not there: what a host does for many of them, without the machines.

All of cl_driver/cluster/link.py runs, but for what Dask does: batches for a worker come to a function that
answers each launch as if it had ended at once, and holds no contents. Started by the driver in the place of
Python (CL_DRIVER_CLUSTER_PYTHON names a script that starts this module). Usage: stand_in.py WORKERS ADDRESS
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

from cl_driver.cluster import connect, link, messages, worker
from cl_driver.door import codec


class Connection:
    """As cl_driver.cluster.connect.Connection."""

    def __init__(self, number: int, answers: list[list[Any]]) -> None:
        self.address = f"stand-in://{number:05d}"
        self.key = f"{number:032x}"
        self.answers = answers
        self._answers: asyncio.Queue[list[Any]] = asyncio.Queue()

    async def write(self, kind: str, value: Any, payloads: Any = ()) -> None:
        now = time.monotonic_ns()
        if kind == "ping":
            self._answers.put_nowait(["pong", value, now])
        elif kind == "batch":
            ended = [
                [messages.DONE, message[1], 0, now, now]
                for message in codec.decode(value)
                if message[0] == messages.LAUNCH
            ]
            if ended:
                self._answers.put_nowait(["batch", codec.encode(ended), []])

    async def read(self) -> list[Any]:
        return await self._answers.get()

    def carried(self) -> connect.Carried:
        return connect.Carried()

    def close(self) -> None:
        pass


def main() -> None:
    """The program."""
    count = int(sys.argv[1])
    _, answers = worker._describe(1)  # what a worker of this machine would say

    @contextlib.asynccontextmanager
    async def open_client(place: str, timeout: float) -> AsyncIterator[None]:
        yield None

    async def connections(client: None, timeout: float) -> list[Connection]:
        return [Connection(number, answers) for number in range(count)]

    connect.open_client = open_client
    connect.connections = connections
    link.main(sys.argv[2], 30.0)


if __name__ == "__main__":
    main()
