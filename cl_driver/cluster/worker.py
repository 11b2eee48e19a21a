"""What runs in a Dask worker: one handler beside those of Dask, which serves hosts until they close.

A connection carries Dask's own messages, of plain data only: ["ping", n] and ["batch", bytes, payloads...]
from a host, the first of them the device ([version, answers]), ["pong", n, ns of this machine's clock] and
["batch", bytes, payloads...] to it. Payloads are frames of their own, which Dask neither copies nor reads.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

from ..log import log
from ..version import VERSION
from . import queries
from .executor import Executor
from .opencl import CallError, OpenCL

if TYPE_CHECKING:
    from collections.abc import Iterable

OPERATION = "cl_driver"

_lock = threading.Lock()
_api: OpenCL | None = None


def frames(payloads: Iterable[Any]) -> list[Any]:
    """Payloads as parts of a message: frames without a header that anybody would have to believe."""
    from distributed.protocol.serialize import Serialized

    return [Serialized({}, [payload]) for payload in payloads]


def contents(parts: Iterable[Any]) -> list[Any]:
    """The payloads in a message that was read by a connection that does not deserialise. ValueError."""
    try:
        return [frame for part in parts for frame in part.frames]
    except AttributeError as error:
        raise ValueError("what is to be a payload is none") from error


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
    """Gives a worker the handler, for Client.run(). The driver's version."""
    threads = dask_worker.state.nthreads

    async def serve(comm: Any) -> Any:
        from distributed.core import Status

        await converse(comm, threads)
        return Status.dont_reply

    dask_worker.handlers[OPERATION] = serve
    return VERSION


async def converse(comm: Any, threads: int) -> None:
    """Serves one host."""
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
    host = _Host(comm, executor)
    loop.add_reader(executor.descriptor, host.has_answers)
    writer = asyncio.ensure_future(host.write())
    try:
        with contextlib.suppress(OSError):
            await comm.write(["device", VERSION, answers])
            await host.read()
    finally:
        loop.remove_reader(executor.descriptor)
        writer.cancel()
        # What is enqueued runs to its end; nobody waits for it here.
        threading.Thread(target=executor.close, name="cl_driver end", daemon=True).start()
        comm.abort()


class _Host:
    """A connection with one host. One task reads, one writes."""

    def __init__(self, comm: Any, executor: Executor) -> None:
        self._comm = comm
        self._executor = executor
        self._work = asyncio.Event()  # there is something to write
        self._pings: list[int] = []

    def has_answers(self) -> None:
        """Called while the executor's descriptor is readable."""
        self._executor.calm()
        self._work.set()

    async def read(self) -> None:
        """Reads until the host has gone, or says what no host of ours says. OSError."""
        while not self._executor.failed:
            try:
                kind, value, *rest = await self._comm.read()
                if kind == "ping":
                    self._pings.append(value)
                    self._work.set()
                else:
                    self._executor.put(value, contents(rest))
            except (ValueError, TypeError) as error:
                log(1, f"cluster: a host that is none: {error}")
                return

    async def write(self) -> None:
        """Writes what there is, as long as somebody reads it."""
        with contextlib.suppress(OSError):
            while await self._work.wait():
                self._work.clear()
                batch, payloads = self._executor.take()
                if batch:
                    await self._comm.write(["batch", batch, *frames(payloads)])
                while self._pings:
                    await self._comm.write(["pong", self._pings.pop(), time.monotonic_ns()])
