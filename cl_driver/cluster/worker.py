"""What runs in a Dask worker: one handler beside those of Dask, which serves hosts until they close.

A connection carries Dask's own messages, of plain data only: ["ping", n] and ["batch", bytes] from a host;
["device", version, answers] as the first one, ["pong", n, ns of this machine's clock] and ["batch", bytes] to
it.
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
    from collections.abc import Awaitable, Callable

    Post = Callable[[list[Any]], None]

OPERATION = "cl_driver"

_lock = threading.Lock()
_api: OpenCL | None = None


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
        from distributed.core import Status  # type: ignore[import-not-found]

        await converse(comm, threads)
        return Status.dont_reply

    dask_worker.handlers[OPERATION] = serve
    return VERSION


async def converse(comm: Any, threads: int) -> None:
    """Serves one host."""
    loop = asyncio.get_running_loop()
    out: asyncio.Queue[list[Any] | None] = asyncio.Queue()

    def send(batch: bytes) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody reads any more
            loop.call_soon_threadsafe(out.put_nowait, ["batch", batch])

    writer = asyncio.ensure_future(_write(comm, out.get))
    try:
        api, answers = await loop.run_in_executor(None, _describe, threads)
        executor = await loop.run_in_executor(None, Executor, api, send)
    except (OSError, CallError, LookupError) as error:
        log(1, f"cluster: no device here: {error}")
        out.put_nowait(["device", VERSION, None])
        out.put_nowait(None)
        await writer
        return
    out.put_nowait(["device", VERSION, answers])
    try:
        await _read(comm, executor, out.put_nowait)
    finally:
        # What is enqueued runs to its end; nobody waits for it here.
        threading.Thread(target=executor.close, name="cl_driver end", daemon=True).start()
        out.put_nowait(None)
        await writer
        comm.abort()


async def _read(comm: Any, executor: Executor, post: Post) -> None:
    while not executor.failed:
        try:
            kind, value = await comm.read()
        except (OSError, ValueError):  # it is closed, or says what no host of ours says
            return
        if kind == "ping":
            post(["pong", value, time.monotonic_ns()])
        else:
            executor.put(value)


async def _write(comm: Any, get: Callable[[], Awaitable[list[Any] | None]]) -> None:
    while (message := await get()) is not None:
        try:
            await comm.write(message)
        except OSError:
            return
