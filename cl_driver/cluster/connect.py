"""A host's connections with the workers of a cluster, by way of Dask's distributed."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import socket
import struct
import sys
import termios
import time
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from .. import settings
from ..log import log
from ..version import VERSION
from . import messages, peers, worker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable


class ConnectError(OSError):
    """There is no cluster at an address."""


class Carried(NamedTuple):
    """Bytes of a connection until now: those that were written, those of them that the other machine has
    acknowledged, and those that have come from there. All 0 where the transport does not tell."""

    written: int = 0
    acknowledged: int = 0
    received: int = 0


# tcpi_bytes_acked and tcpi_bytes_received of struct tcp_info, since Linux 4.1.
_TCP_INFO = struct.Struct("@120x2Q")


class Connection:
    """The connection with one worker's device. address: of the worker, as Dask has it; answers: the device's,
    [[query, value], ...]; key: what lets another worker send to this device."""

    def __init__(self, address: str, comm: Any, answers: list[list[Any]], key: str) -> None:
        self.address = address
        self.answers = answers
        self.key = key
        self._comm = comm
        self._writing = asyncio.Lock()

    async def write(self, kind: str, value: Any, payloads: Iterable[Any] = ()) -> None:
        """Sends ["batch", bytes, payloads], ["ping", number] or ["peer", [number, address, key]]. OSError if
        it is closed."""
        async with self._writing:
            await self._comm.write([kind, value, *peers.frames(payloads)])

    async def read(self) -> list[Any]:
        """The next message, ["pong", number, ns], ["who", number, 0] or ["batch", bytes, payloads]. OSError
        if it is closed."""
        kind, value, *rest = await self._comm.read()
        return [kind, value, peers.contents(rest) if kind == "batch" else rest[0]]

    async def ping(self) -> tuple[int, int]:
        """How long a message and its answer take, and what is to be added to the worker's clock, both in ns.
        To be called where nobody else reads. OSError."""
        start = time.monotonic_ns()
        await self.write("ping", 0)
        _, _, there = await self.read()
        return clock(start, there, time.monotonic_ns())

    def carried(self) -> Carried:
        """What it has carried by now."""
        try:
            stream = self._comm.stream
            end = stream.socket
            told = _TCP_INFO.unpack(end.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size))
            waiting = int.from_bytes(fcntl.ioctl(end, termios.TIOCOUTQ, bytes(4)), sys.byteorder)
            waiting += len(stream._write_buffer)  # Dask puts there what it writes, and does not wait
        except (AttributeError, TypeError, OSError, struct.error):
            return Carried()
        return Carried(told[0] + waiting, *told)

    def close(self) -> None:
        """Ends it at once."""
        self._comm.abort()


def clock(start: int, there: int, end: int) -> tuple[int, int]:
    """The time between start and end, and what is to be added to a clock that said `there` half way."""
    return end - start, start + (end - start) // 2 - there


def is_file(place: str) -> bool:
    """Whether CL_DRIVER_CLUSTER names a scheduler file and no address."""
    return "://" not in place and os.path.sep in place


def _hint(place: str, error: Exception, is_ended: bool) -> str:
    """What may be wrong, where Dask tells little. is_ended: the other side has ended the connection."""
    if urlsplit(place).scheme == "tls" or isinstance(error, TypeError):
        return (
            "; this side's certificate and its authorities are distributed.comm.tls.client and "
            "distributed.comm.tls.ca-file of Dask's configuration"
        )
    return "; if it wants TLS, its address begins with tls://" if is_ended else ""


@contextlib.asynccontextmanager
async def open_client(place: str, timeout: float) -> AsyncIterator[Any]:
    """Dask's client; place: an address, or a scheduler file; timeout: seconds. Certificates are those of
    Dask's configuration. ConnectError."""
    place = settings.cluster(place)[0]
    try:
        import dask
        from distributed import Client
        from distributed.comm import CommClosedError
    except ImportError as error:
        raise ConnectError(f"Dask's distributed is not installed here: {error}") from error
    # The kernel ends connections by this one, which may be the shorter one.
    least = dask.utils.parse_timedelta(dask.config.get("distributed.comm.timeouts.tcp"))
    dask.config.set({"distributed.comm.timeouts.tcp": max(least, timeout)})
    where = {"scheduler_file": place} if is_file(place) else {"address": place}
    try:
        client = await Client(**where, asynchronous=True, timeout=timeout, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:  # TypeError: tls:// without certificates
        hint = _hint(place, error, isinstance(error, CommClosedError))
        raise ConnectError(f"no scheduler at {place}: {error}{hint}") from error
    try:
        yield client
    finally:
        with contextlib.suppress(Exception):
            await client.close()


@contextlib.asynccontextmanager
async def arrivals(client: Any) -> AsyncIterator[asyncio.Queue[str]]:
    """The addresses of workers that come from now on."""
    found: asyncio.Queue[str] = asyncio.Queue()

    def note(event: tuple[float, Any]) -> None:
        _, what = event
        if isinstance(what, dict) and what.get("action") == "add-worker":
            found.put_nowait(str(what["worker"]))

    client.subscribe_topic("all", note)
    try:
        yield found
    finally:
        with contextlib.suppress(Exception):  # the scheduler has ended
            client.unsubscribe_topic("all")  # or it tells this client, which has gone, of its end


async def connections(
    client: Any, timeout: float, addresses: list[str] | None = None, most: int = messages.MOST_WORKERS
) -> list[Connection]:
    """Connections with workers that have this driver, so many at most, in the order of their addresses.
    timeout: seconds for each step; addresses: of all that are asked; None: all workers are. ConnectError."""
    try:
        asked = client.run(worker.attach, workers=addresses, on_error="return")
        found = await asyncio.wait_for(asked, timeout)
    except TimeoutError as error:
        raise ConnectError(f"the workers have not answered for {timeout:g} seconds") from error
    wanted = []
    for address, version in sorted(found.items()):
        if version == VERSION:
            wanted.append(address)
        else:
            log(1, f"cluster: {address} is no device: {version!r} instead of cl_driver {VERSION}")
    if len(wanted) > most:
        log(1, f"cluster: {len(wanted)} workers, of which the first {most} are devices")
        del wanted[most:]
    opened = await asyncio.gather(*(_open(client, address, timeout) for address in wanted))
    return [connection for connection in opened if connection is not None]


async def _open(client: Any, address: str, timeout: float) -> Connection | None:
    from distributed.core import connect

    comm = None
    try:
        arguments = client.security.get_connection_args("worker")
        comm = await connect(address, timeout=timeout, deserialize=False, **arguments)
        await comm.write({"op": worker.OPERATION, "reply": False})
        kind, version, answers, *key = await asyncio.wait_for(comm.read(), timeout)
        if kind != "device" or version != VERSION or answers is None:
            raise ConnectError("it has no device")
    except (OSError, ValueError) as error:
        log(1, f"cluster: {address} is no device: {error!r}")
        if comm is not None:
            comm.abort()
        return None
    return Connection(address, comm, [list(pair) for pair in answers], *key)
