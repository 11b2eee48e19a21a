"""The process between a host and a cluster: python -m cl_driver.cluster.link, started by
native_shim/src/cluster/start.c.

It has Dask's distributed, which the host's process never loads, and hands on batches as they are: no command
is looked at here. The socket carries frames both ways: a worker's number (u32), 4 bytes of nothing, the size
(u64), a batch. The first frame to the host has the devices, [[address, [[query, value], ...]], ...].
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import sys
import time
from typing import TYPE_CHECKING, Any

from ..door import codec
from ..log import log
from ..spawn import CHILD_DESCRIPTOR
from . import connect, messages

if TYPE_CHECKING:
    from .connect import Connection

_HEAD = struct.Struct("<IIQ")

# Signs of life of this process to the host, in seconds.
_BEAT = 1.0


class Host:
    """The socket's end here. Frames are written whole and in order."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read(self) -> tuple[int, bytes]:
        """A worker's number, and a batch. EOFError when the host has gone."""
        head = await self._reader.readexactly(_HEAD.size)
        number, _, size = _HEAD.unpack(head)
        return number, await self._reader.readexactly(size)

    async def write(self, number: int, batch: bytes) -> None:
        """Sends a frame; waits where the host does not read."""
        self._writer.write(_HEAD.pack(number, 0, len(batch)))
        self._writer.write(batch)
        await self._writer.drain()


class Worker:
    """One worker, from when it is a device until it has gone. timeout: seconds without an answer after which
    it is taken for gone."""

    def __init__(self, number: int, connection: Connection, host: Host, timeout: float) -> None:
        self._number = number
        self._connection = connection
        self._host = host
        self._timeout = timeout
        self._pinged = 0  # when, in ns
        self._is_pinging = False  # whether an answer is due
        self._heard = time.monotonic()
        self._best = sys.maxsize  # ns of the shortest round trip, which tells the clocks apart best
        self._out: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()
        self._gone = False

    def put(self, batch: bytes) -> None:
        """Takes a batch for the worker; what comes after its end is dropped."""
        if not self._gone:
            self._out.put_nowait(("batch", batch))

    async def run(self) -> None:
        """Serves it, and tells the host when it has gone."""
        tasks = [asyncio.ensure_future(work()) for work in (self._send, self._receive, self._watch)]
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        self._gone = True
        reason = str(next(iter(done)).exception() or "it has ended")
        for task in tasks:
            task.cancel()
        self._connection.close()
        log(1, f"cluster: {self._connection.address} has gone: {reason}")
        await self._host.write(self._number, codec.encode([[messages.GONE, reason]]))

    async def _send(self) -> None:
        while True:
            kind, value = await self._out.get()
            if kind == "ping":
                self._pinged = time.monotonic_ns()
            await self._connection.write(kind, value)

    async def _receive(self) -> None:
        while True:
            kind, *values = await self._connection.read()
            self._heard = time.monotonic()
            if kind == "batch":
                await self._host.write(self._number, values[0])
            else:
                await self._align(values[1])

    async def _align(self, there: int) -> None:
        taken, offset = connect.clock(self._pinged, there, time.monotonic_ns())
        self._is_pinging = False
        # Clocks drift apart: an old measurement counts less with each new one.
        self._best += self._best // 64
        if taken <= self._best:
            self._best = taken
            await self._host.write(self._number, codec.encode([[messages.CLOCK, offset]]))

    async def _watch(self) -> None:
        while True:
            if time.monotonic() - self._heard > self._timeout:
                raise TimeoutError(f"it has not answered for {self._timeout:g} seconds")
            if not self._is_pinging:
                self._is_pinging = True
                self._out.put_nowait(("ping", 0))
            await asyncio.sleep(min(_BEAT, self._timeout / 4))


async def _beat(host: Host) -> None:
    while True:
        await asyncio.sleep(_BEAT)
        await host.write(messages.NOBODY, b"")


async def serve(host: Host, place: str, timeout: float) -> None:
    """Connects, tells of the devices, and hands on until the host has gone."""
    async with connect.open_client(place, timeout) as client:
        found = await connect.connections(client, timeout)
        devices = [[connection.address, connection.answers] for connection in found]
        await host.write(messages.NOBODY, codec.encode(devices))
        workers = [Worker(number, connection, host, timeout) for number, connection in enumerate(found)]
        tasks = [asyncio.ensure_future(one.run()) for one in workers]
        tasks.append(asyncio.ensure_future(_beat(host)))
        while True:
            number, batch = await host.read()
            workers[number].put(batch)


async def _main(place: str, timeout: float) -> None:
    end = socket.socket(fileno=CHILD_DESCRIPTOR)
    end.setblocking(False)
    reader, writer = await asyncio.open_connection(sock=end, limit=messages.MOST_BYTES)
    host = Host(reader, writer)
    try:
        await serve(host, place, timeout)
    except connect.ConnectError as error:
        log(1, f"cluster: {error}")
        await host.write(messages.NOBODY, codec.encode([]))


def main(place: str, timeout: float) -> None:
    """Serves the host at the other end of the socket until it has gone. place: CL_DRIVER_CLUSTER's value;
    timeout: seconds."""
    try:
        asyncio.run(_main(place, timeout))
    except (EOFError, OSError):
        pass
    except BaseException:
        import traceback

        log(1, f"cluster: {traceback.format_exc()}")
    os._exit(0)  # Dask's threads may wait for what comes no more
