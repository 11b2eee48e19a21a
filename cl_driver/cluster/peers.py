"""From worker to worker: contents of memory objects, which the host only speaks of.

A worker that may be to send is told to connect with the other's handler (worker.receive), asks the host for
its address, and says when it has connected: until then contents go by way of the host, and where it cannot
they always do. The first message has the key of the session that the other worker has with the same host;
then come batches of ARRIVE, with the contents as payloads. Nothing comes back.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ..door import codec
from ..log import log
from . import messages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

OPERATION = "cl_driver_peer"


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


class Peers:
    """The other workers of a host. arguments: of Dask's connect(); tell: called with messages.REACHABLE and
    the number of one that is connected, with UNREACHABLE and that of one that cannot be, or is not any more;
    ask: called with the number of one that introduce() is to be called for.
    """

    def __init__(
        self, arguments: dict[str, Any], tell: Callable[[int, int], None], ask: Callable[[int], None]
    ) -> None:
        self._arguments = arguments
        self._tell = tell
        self._ask = ask
        self._asked: set[int] = set()
        self._open: dict[int, _Peer] = {}

    def connect(self, number: int) -> None:
        """Has a connection opened, if there never was one. Never waits."""
        if number not in self._asked:
            self._asked.add(number)
            self._ask(number)

    def introduce(self, number: int, address: str, key: str) -> None:
        """Opens a connection with a worker that was asked for; without an address there is none. ValueError,
        TypeError."""
        if number not in self._asked or number in self._open:
            raise ValueError(f"nobody has asked for worker {number}")
        if not address:
            self._tell(messages.UNREACHABLE, number)
            return
        peer = _Peer(str(address), str(key), self._arguments, lambda: self._tell(messages.REACHABLE, number))
        self._open[number] = peer
        peer.task.add_done_callback(lambda _: self._tell(messages.UNREACHABLE, number))

    def put(self, number: int, transfer: int, payload: memoryview) -> None:
        """Sends the contents of a transfer, or says that it cannot. Never waits."""
        peer = self._open.get(number)
        if peer is None or peer.task.done():
            self._tell(messages.UNREACHABLE, number)
        else:
            peer.put(transfer, payload)

    def close(self) -> None:
        """Ends all connections at once."""
        for peer in self._open.values():
            peer.task.cancel()


class _Peer:
    """task: ends when the connection has. ready: called when there is one."""

    def __init__(self, address: str, key: str, arguments: dict[str, Any], ready: Callable[[], None]) -> None:
        self._address = address
        self._key = key
        self._items: list[tuple[int, memoryview]] = []
        self._has_items = asyncio.Event()
        self.task = asyncio.ensure_future(self._run(arguments, ready))

    def put(self, transfer: int, payload: memoryview) -> None:
        self._items.append((transfer, payload))
        self._has_items.set()

    async def _run(self, arguments: dict[str, Any], ready: Callable[[], None]) -> None:
        from distributed.core import connect

        comm = None
        try:
            comm = await connect(self._address, deserialize=False, **arguments)
            await comm.write({"op": OPERATION, "reply": False, "key": self._key})
            ready()
            # Nothing is to be read but the end.
            tasks = [asyncio.ensure_future(work) for work in (self._send(comm), comm.read())]
            try:
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                reason = next(iter(done)).exception() or "it has said something"
            finally:
                for task in tasks:
                    task.cancel()
            log(1, f"cluster: {self._address} has ended the connection with this worker: {reason}")
        except OSError as error:
            log(1, f"cluster: {self._address} cannot be reached from this worker: {error!r}")
        finally:
            self._items.clear()
            if comm is not None:
                comm.abort()

    def _next(self) -> tuple[bytes, list[memoryview]]:
        """As much as is sent at once: small ones together."""
        size, count = 0, 0
        while count < len(self._items) and size < messages.MOST_BYTES:
            size += self._items[count][1].nbytes
            count += 1
        items = self._items[:count]
        del self._items[:count]
        batch = codec.encode([[messages.ARRIVE, transfer, one.nbytes] for transfer, one in items])
        return batch, [one for _, one in items]

    async def _send(self, comm: Any) -> None:
        while await self._has_items.wait():
            while self._items:
                batch, payloads = self._next()
                await comm.write(["batch", batch, *frames(payloads)])
                del payloads
            self._has_items.clear()
