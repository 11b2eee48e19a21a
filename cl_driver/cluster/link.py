"""The process between a host and a cluster: python -m cl_driver.cluster.link, started by
native_shim/src/cluster/start.c.

It has Dask's distributed, which the host's process never loads, and hands on batches as they are: no command
is looked at here. The socket carries frames both ways: a worker's number (u32), the kind (u16), the number of
payloads (u16), the size of a batch (u64), where each payload is and its size (u64 both), the batch. The host
begins with the memory that payloads are in; the first frame to it has the devices, [[address, [[query,
value], ...]], ...], of which the one without an address is all others. Workers that come later have a frame
each.
"""

from __future__ import annotations

import asyncio
import ctypes
import mmap
import os
import resource
import socket
import struct
import sys
import time
import weakref
from typing import TYPE_CHECKING, Any

from .. import settings
from ..door import codec
from ..log import log
from ..spawn import CHILD_DESCRIPTOR
from . import connect, messages, queries

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .connect import Connection

_HEAD = struct.Struct("<IHHQ")
_PAYLOAD = struct.Struct("<QQ")
_HALF = messages.PLACES * messages.MOST_BYTES

# Signs of life of this process to the host, in seconds.
_BEAT = 1.0

# Of all workers in a second, at most: they are not to be most of what this process does.
_MOST_PINGS = 100


class Host:
    """The socket's end here, and the memory that is shared. Frames are written whole and in order."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, memory: mmap.mmap) -> None:
        self._reader = reader
        self._writer = writer
        self._memory = memory
        self._loop = asyncio.get_running_loop()
        self._view = memoryview(memory)
        # Where what comes from workers may be put; the host says when it has used it.
        self._places = [_HALF + i * messages.MOST_BYTES for i in range(messages.PLACES)]
        self._has_places = asyncio.Condition()
        self._unused: list[tuple[int, int]] = []  # of payloads for workers: the host is to be told
        self.to_workers = self.from_workers = 0  # bytes of batches and payloads
        self.batches_to_workers = self.batches_from_workers = 0

    async def read(self) -> tuple[int, bytes, list[memoryview]]:
        """A worker's number, a batch and its payloads. EOFError when the host has gone."""
        while True:
            head = await self._reader.readexactly(_HEAD.size)
            number, kind, count, size = _HEAD.unpack(head)
            rest = await self._reader.readexactly(count * _PAYLOAD.size + size)
            found = list(_PAYLOAD.iter_unpack(rest[: count * _PAYLOAD.size]))
            if kind == messages.BATCH_FRAME:
                self.to_workers += size + sum(part for _, part in found)
                self.batches_to_workers += 1
                return number, rest[count * _PAYLOAD.size :], [self._payload(*one) for one in found]
            async with self._has_places:
                self._places += [at for at, _ in found]
                self._has_places.notify_all()

    def _payload(self, at: int, size: int) -> memoryview:
        """A part of the memory; the host has its place back when nobody holds it any more, which is when Dask
        has sent it."""
        place = (ctypes.c_char * size).from_buffer(self._memory, at)
        weakref.finalize(place, self._forget, at, size).atexit = False
        return memoryview(place).cast("B")

    def _forget(self, at: int, size: int) -> None:
        self._unused.append((at, size))
        self._loop.call_soon_threadsafe(self._tell_unused)  # Dask may have threads for large messages

    def _tell_unused(self) -> None:
        if self._unused:
            parts = [_PAYLOAD.pack(*one) for one in self._unused]
            self._unused.clear()
            head = _HEAD.pack(messages.NOBODY, messages.FREE_FRAME, len(parts), 0)
            self._writer.write(head + b"".join(parts))

    def taken(self, number: int) -> None:
        """Tells that a batch is on its way to a worker."""
        self._writer.write(_HEAD.pack(number, messages.TAKEN_FRAME, 0, 0))

    async def write(self, number: int, batch: bytes, payloads: Sequence[memoryview] = ()) -> None:
        """Sends a frame; waits where the host does not read. EOFError when it has gone."""
        # One at most: who waits for a second place while others have theirs may wait forever.
        if len(payloads) > 1:
            raise OSError("a worker sends more at once than there is to be")
        where = [await self._put(payload) for payload in payloads]
        self.from_workers += len(batch) + sum(payload.nbytes for payload in payloads)
        self.batches_from_workers += number != messages.NOBODY
        self._writer.write(
            _HEAD.pack(number, messages.BATCH_FRAME, len(payloads), len(batch)) + b"".join(where) + batch
        )
        try:
            await self._writer.drain()
        except ConnectionError as error:
            raise EOFError("the host has gone") from error

    def add(self, worker: bytes) -> None:
        """Tells of a worker that has come later."""
        self._writer.write(_HEAD.pack(messages.NOBODY, messages.WORKER_FRAME, 0, len(worker)) + worker)

    async def _put(self, payload: memoryview) -> bytes:
        size = payload.nbytes
        async with self._has_places:
            await self._has_places.wait_for(lambda: self._places)
            at = self._places.pop()
        self._view[at : at + size] = memoryview(payload).cast("B")
        return _PAYLOAD.pack(at, size)


class Silence:
    """How long a worker has given no sign of life, in turns of `pause` seconds of this process: while it is
    stopped, or waits for a CPU, it hears nobody, and reads what has come meanwhile in the turn that follows.
    is_counted: whether the worker is listened to."""

    def __init__(self, pause: float) -> None:
        self._pause = pause
        self._counted = 0.0
        self._carried = 0
        self.is_counted = True

    def end(self) -> None:
        """There was a sign of life."""
        self._counted = 0.0

    def turn(self, carried: int) -> float:
        """Seconds, one turn later. carried: bytes by the connection so far; more of them are a sign of life:
        a message may be under way for longer than a worker may be silent."""
        self._counted += self._pause if self.is_counted else 0.0
        if carried != self._carried:
            self._carried, self._counted = carried, 0.0
        return self._counted


class Worker:
    """One worker, from when it is a device until it has gone. timeout: seconds without a sign of life after
    which it is taken for gone; peers: all workers, by number: [address, key]."""

    def __init__(
        self, number: int, connection: Connection, host: Host, timeout: float, peers: list[list[str]]
    ) -> None:
        self.address = connection.address
        self.is_gone = False
        self._number = number
        self._connection = connection
        self._host = host
        self._timeout = timeout
        self._peers = peers
        self._pause = min(max(_BEAT, len(peers) / _MOST_PINGS), timeout / 4)
        self._pinged = 0  # when, in ns
        self._is_pinging = False  # whether an answer is due
        self._silence = Silence(self._pause)
        self._ping_end: int | None = None  # of the bytes that it is among, once it is written
        self._best = sys.maxsize  # ns of the shortest round trip, which tells the clocks apart best
        self._out: asyncio.Queue[tuple[str, Any, list[memoryview]]] = asyncio.Queue()

    def put(self, batch: bytes, payloads: list[memoryview]) -> None:
        """Takes a batch for the worker; what comes after its end is dropped."""
        if not self.is_gone:
            self._out.put_nowait(("batch", batch, payloads))

    async def run(self) -> None:
        """Serves it, and tells the host when it has gone."""
        tasks = [asyncio.ensure_future(work()) for work in (self._send, self._receive, self._watch)]
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        self.is_gone = True
        error = next(iter(done)).exception()
        for task in tasks:
            task.cancel()
        self._connection.close()
        if isinstance(error, EOFError):
            return  # who would be told has gone
        reason = str(error or "it has ended")
        log(1, f"cluster: {self.address} has gone: {reason}")
        await self._host.write(self._number, codec.encode([[messages.GONE, reason]]))

    async def _send(self) -> None:
        while True:
            kind, value, payloads = await self._out.get()
            if kind == "ping":
                self._pinged = time.monotonic_ns()
            await self._connection.write(kind, value, payloads)
            if kind == "ping":
                self._ping_end = self._connection.carried().written
            del payloads
            if kind == "batch":
                self._host.taken(self._number)

    async def _receive(self) -> None:
        while True:
            self._silence.is_counted = True
            kind, value, more = await self._connection.read()
            self._silence.is_counted = False  # how long the host takes to read is not the worker's fault
            self._silence.end()
            if kind == "batch":
                await self._host.write(self._number, value, more)
            elif kind == "who":
                found = self._peers[value] if 0 <= value < len(self._peers) else ["", ""]
                self._out.put_nowait(("peer", [value, *found], []))
            else:
                await self._align(more)

    async def _align(self, there: int) -> None:
        taken, offset = connect.clock(self._pinged, there, time.monotonic_ns())
        self._is_pinging = False
        # Clocks drift apart: an old measurement counts less with each new one.
        self._best += self._best // 64
        if taken <= self._best:
            self._best = taken
            await self._host.write(self._number, codec.encode([[messages.CLOCK, offset, taken]]))

    def _carried(self) -> int:
        """Bytes from the worker, and those that its machine has acknowledged, up to the ping: later ones that
        does even where the worker is stopped."""
        _, acknowledged, received = self._connection.carried()
        if self._ping_end is not None:
            acknowledged = min(acknowledged, self._ping_end)
        return received + acknowledged

    async def _watch(self) -> None:
        while self._silence.turn(self._carried()) <= self._timeout:
            if not self._is_pinging:
                self._is_pinging = True
                self._ping_end = None
                self._out.put_nowait(("ping", 0, []))
            await asyncio.sleep(self._pause)
        raise TimeoutError(f"it has not answered for {self._timeout:g} seconds")


async def _beat(host: Host) -> None:
    while True:
        await asyncio.sleep(_BEAT)
        await host.write(messages.NOBODY, b"")


class Workers:
    """The workers of a host, by number. arrivals: addresses of those that come later."""

    def __init__(self, host: Host, timeout: float, arrivals: asyncio.Queue[str]) -> None:
        self._host = host
        self._timeout = timeout
        self._arrivals = arrivals
        self._again: set[str] = set()  # addresses that came before who had them was known to have gone
        self._workers: list[Worker] = []
        self._peers: list[list[str]] = []
        self._tasks: list[asyncio.Future[None]] = []

    def __getitem__(self, number: int) -> Worker:
        return self._workers[number]

    def add(self, connections: list[Connection]) -> None:
        """Serves the next ones, of which the host knows."""
        self._peers += [[connection.address, connection.key] for connection in connections]
        for connection in connections:
            worker = Worker(len(self._workers), connection, self._host, self._timeout, self._peers)
            self._workers.append(worker)
            self._tasks.append(asyncio.ensure_future(self._serve(worker)))

    async def _serve(self, worker: Worker) -> None:
        await worker.run()
        if worker.address in self._again:
            self._again.discard(worker.address)
            self._arrivals.put_nowait(worker.address)

    async def take(self, client: Any, whole: list[list[Any]]) -> None:
        """Adds workers that come later. whole: the answers of the device that is all workers, or nothing."""
        while True:
            addresses = {await self._arrivals.get()}
            while not self._arrivals.empty():
                addresses.add(self._arrivals.get_nowait())
            # Some were asked before they were told of, some have the port of one that has died.
            known = addresses & {worker.address for worker in self._workers if not worker.is_gone}
            self._again |= known
            addresses -= known
            if not addresses:
                continue
            most = messages.MOST_WORKERS - len(self._workers)
            try:
                found = await connect.connections(client, self._timeout, sorted(addresses), most)
            except Exception as error:  # it may have gone again, whatever Dask calls that
                log(1, f"cluster: {', '.join(sorted(addresses))} came and is no device: {error}")
                continue
            for one in found:
                joins = bool(whole) and queries.can_join(whole, one.answers)
                log(2, f"cluster: {one.address} has come and is a device{' and a part of all' * joins}")
                self._host.add(codec.encode([[one.address, one.answers, int(joins)]]))
            self.add(found)


async def serve(host: Host, place: str, timeout: float) -> None:
    """Connects, tells of the devices, and hands on until the host has gone."""
    async with connect.open_client(place, timeout) as client, connect.arrivals(client) as arrivals:
        found = await connect.connections(client, timeout)
        devices = [[connection.address, connection.answers] for connection in found]
        whole = []
        if settings.cluster(place)[1] and found:
            whole = queries.of_all([connection.answers for connection in found])
            devices.append(["", whole])
        await host.write(messages.NOBODY, codec.encode(devices))
        workers = Workers(host, timeout, arrivals)
        workers.add(found)
        tasks = [asyncio.ensure_future(_beat(host))]
        tasks.append(asyncio.ensure_future(workers.take(client, whole)))
        while True:
            number, batch, payloads = await host.read()
            workers[number].put(batch, payloads)
            del payloads


async def _main(place: str, timeout: float) -> None:
    end = socket.socket(fileno=CHILD_DESCRIPTOR)
    _, descriptors, _, _ = socket.recv_fds(end, 1, 1)
    if not descriptors:
        raise EOFError("the host shares no memory")
    memory = mmap.mmap(descriptors[0], 2 * _HALF)
    os.close(descriptors[0])
    end.setblocking(False)
    reader, writer = await asyncio.open_connection(sock=end, limit=messages.MOST_BYTES)
    host = Host(reader, writer, memory)
    try:
        await serve(host, place, timeout)
    except connect.ConnectError as error:
        log(1, f"cluster: {error}")
        await host.write(messages.NOBODY, codec.encode([]))
    finally:
        log(
            2,
            f"cluster: {host.to_workers} bytes to workers, {host.from_workers} bytes from workers, in "
            f"{host.batches_to_workers} and {host.batches_from_workers} batches",
        )


def main(place: str, timeout: float) -> None:
    """Serves the host at the other end of the socket until it has gone. place: CL_DRIVER_CLUSTER's value;
    timeout: seconds."""
    # Each worker is a connection, and soft limits are often about a thousand.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        asyncio.run(_main(place, timeout))
    except (EOFError, OSError):
        pass
    except BaseException:
        import traceback

        log(1, f"cluster: {traceback.format_exc()}")
    os._exit(0)  # Dask's threads may wait for what comes no more
