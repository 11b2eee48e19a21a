"""What runs in a Dask worker: one handler beside those of Dask, which serves hosts until they close.

A connection carries Dask's own messages, of plain data only: ["ping", n], ["peer", [number, address, key]]
and ["batch", bytes, payloads...] from a host, ["device", version, answers, key], ["pong", n, ns of this
machine's clock], ["who", number, 0] and ["batch", bytes, payloads...] to it. Payloads are frames of their
own, which Dask neither copies nor reads. A second handler takes what other workers send (peers.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket
import threading
import time
from typing import Any

from ..door import codec
from ..log import log
from ..version import VERSION
from . import peers, queries
from .executor import Executor
from .opencl import CallError, OpenCL

OPERATION = "cl_driver"

_lock = threading.Lock()
_api: OpenCL | None = None


class Session:
    """What one host has here. key: who has it may send to the executor."""

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self.key = secrets.token_hex(16)
        self.peers: set[Any] = set()  # connections of other workers


_sessions: dict[str, Session] = {}


# The part of a worker's memory limit that its device has. Dask ends workers that come close to the limit
# (distributed.worker.memory.terminate); Python, Dask and messages take some, too.
_MEMORY_SHARE = 0.75


def _limit_memory(limit: int | None) -> None:
    """Has the driver take no more memory than Dask lets this process. limit: bytes; None: there is none."""
    if limit:
        os.environ.setdefault("CL_DRIVER_MEMORY", str(int(limit * _MEMORY_SHARE)))


def _device(threads: int) -> OpenCL:
    """The driver, loaded once in a process."""
    global _api
    with _lock:
        if _api is None:
            _api = OpenCL(threads)
        return _api


def _describe(threads: int) -> tuple[OpenCL, list[list[Any]]]:
    """The device and its answers, [[query, value], ...]. OSError or CallError where there is none."""
    api = _device(threads)

    def ask(what: int) -> bytes:
        try:
            return api.info("clGetDeviceInfo", what, api.device)
        except CallError as error:
            raise LookupError(str(error)) from error

    found = queries.answers(ask, socket.gethostname(), threads)
    return api, [[what, value] for what, value in found.items()]


def attach(dask_worker: Any) -> str:
    """Gives a worker the handlers, for Client.run(). The driver's version."""
    threads = dask_worker.state.nthreads
    _limit_memory(dask_worker.memory_manager.memory_limit)
    arguments = dask_worker.security.get_connection_args("worker")

    async def serve(comm: Any) -> Any:
        from distributed.core import Status

        await converse(comm, threads, arguments)
        return Status.dont_reply

    async def serve_peer(comm: Any, key: str = "") -> Any:
        from distributed.core import Status

        await receive(comm, key)
        return Status.dont_reply

    dask_worker.handlers[OPERATION] = serve
    dask_worker.handlers[peers.OPERATION] = serve_peer
    return VERSION


async def receive(comm: Any, key: str) -> None:
    """Takes what another worker sends to a session until it ends, or the session does."""
    session = _sessions.get(key)
    comm.deserialize = False
    try:
        while session and _sessions.get(key) is session and not session.executor.failed:
            session.peers.add(comm)
            _, value, *rest = await comm.read()
            if key in _sessions:
                session.executor.put(value, peers.contents(rest), is_peer=True)
    except (OSError, ValueError, TypeError) as error:
        log(1, f"cluster: another worker's connection has ended: {error!r}")
    finally:
        if session:
            session.peers.discard(comm)
        comm.abort()


async def converse(comm: Any, threads: int, arguments: dict[str, Any]) -> None:
    """Serves one host. arguments: of connections with other workers."""
    loop = asyncio.get_running_loop()
    comm.deserialize = False
    try:
        api, answers = await loop.run_in_executor(None, _describe, threads)
        executor = await loop.run_in_executor(None, Executor, api)
    except (OSError, CallError, LookupError) as error:
        log(1, f"cluster: no device here: {error}")
        with contextlib.suppress(OSError):
            await comm.write(["device", VERSION, None])
        return
    session = Session(executor)
    _sessions[session.key] = session
    host = _Host(comm, executor, arguments)
    loop.add_reader(executor.descriptor, host.has_answers)
    writer = asyncio.ensure_future(host.write())
    try:
        with contextlib.suppress(OSError):
            await comm.write(["device", VERSION, answers, session.key])
            await host.read()
    finally:
        del _sessions[session.key]
        for peer in list(session.peers):
            peer.abort()
        host.peers.close()
        loop.remove_reader(executor.descriptor)
        writer.cancel()
        # What is enqueued runs to its end; nobody waits for it here.
        threading.Thread(target=executor.close, name="cl_driver end", daemon=True).start()
        comm.abort()


class _Host:
    """A connection with one host. One task reads, one writes."""

    def __init__(self, comm: Any, executor: Executor, arguments: dict[str, Any]) -> None:
        self._comm = comm
        self.peers = peers.Peers(arguments, self._tell, self._ask)
        self._news: list[list[int]] = []  # messages for the host
        self._executor = executor
        self._work = asyncio.Event()  # there is something to write
        self._pings: list[int] = []
        self._unknown: list[int] = []  # other workers that the host is asked for

    def has_answers(self) -> None:
        """Called while the executor's descriptor is readable."""
        self._executor.calm()
        self._work.set()

    def _tell(self, kind: int, number: int) -> None:
        if [kind, number] not in self._news:
            self._news.append([kind, number])
        self._work.set()

    def _ask(self, number: int) -> None:
        self._unknown.append(number)
        self._work.set()

    async def read(self) -> None:
        """Reads until the host has gone, or says what no host of ours says. OSError."""
        while not self._executor.failed:
            try:
                kind, value, *rest = await self._comm.read()
                if kind == "ping":
                    self._pings.append(value)
                    self._work.set()
                elif kind == "peer":
                    self.peers.introduce(*value)
                else:
                    self._executor.put(value, peers.contents(rest))
            except (ValueError, TypeError) as error:
                log(1, f"cluster: a host that is none: {error}")
                return

    async def write(self) -> None:
        """Writes what there is, as long as somebody reads it."""
        with contextlib.suppress(OSError):
            while await self._work.wait():
                self._work.clear()
                batch, payloads, departures = self._executor.take()
                for number, transfer, payload in departures:
                    if payload is None:
                        self.peers.connect(number)
                    else:
                        self.peers.put(number, transfer, payload)
                del departures
                if batch:
                    await self._comm.write(["batch", batch, *peers.frames(payloads)])
                news, self._news = self._news, []
                if news:
                    await self._comm.write(["batch", codec.encode(news)])
                while self._unknown:
                    await self._comm.write(["who", self._unknown.pop(), 0])
                while self._pings:
                    await self._comm.write(["pong", self._pings.pop(), time.monotonic_ns()])
