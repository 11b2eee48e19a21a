"""When a worker counts as gone."""

from __future__ import annotations

import asyncio
import mmap
import socket

import pytest

from cl_driver.cluster import link, messages
from cl_driver.cluster.connect import Carried, Connection
from cl_driver.cluster.link import Silence, Worker
from cl_driver.door import codec
from tests.marks import needs_kernel


def test_silence():
    silence = Silence(0.5)
    assert [silence.turn(0) for _ in range(3)] == [0.5, 1, 1.5]
    silence.end()
    assert silence.turn(0) == 0.5
    assert silence.turn(7) == 0 and silence.turn(7) == 0.5  # bytes are under way
    silence.is_counted = False  # nobody listens
    assert silence.turn(7) == 0.5
    silence.is_counted = True
    assert silence.turn(7) == 1


class Comm:
    """A connection of Dask's, as far as it is asked."""

    def __init__(self, end: socket.socket) -> None:
        self.stream = self
        self.socket = end
        self._write_buffer = bytearray(7)


@needs_kernel
def test_carried():
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        there, _ = server.accept()
        with client, there:
            connection = Connection("", Comm(client), [], "")
            before = connection.carried()
            client.sendall(bytes(100))
            there.sendall(bytes(30))
            client.recv(30, socket.MSG_WAITALL)
            after = connection.carried()
            assert after.written - before.written == 100
            assert before.written - before.acknowledged == 7
            assert after.received - before.received == 30
            there.recv(100, socket.MSG_WAITALL)
            # What fills the other side's memory is written, and is not acknowledged.
            client.setblocking(False)
            sent = 0
            try:
                while True:
                    sent += client.send(bytes(1 << 20))
            except BlockingIOError:
                pass
            full = connection.carried()
            assert full.written - after.written == sent > full.acknowledged - after.acknowledged
    assert Connection("", None, [], "").carried() == Carried()


class Carrying:
    """A connection that carries so many bytes a turn, both ways."""

    address = ""

    def __init__(self, received: int, acknowledged: int) -> None:
        self.each = received, acknowledged
        self.turns = 0

    def carried(self) -> Carried:
        self.turns += 1
        received, acknowledged = (self.turns * each for each in self.each)
        return Carried(acknowledged + 1000, acknowledged, received)

    async def write(self, kind, value, payloads=()) -> None:
        return

    async def read(self) -> None:
        await asyncio.sleep(60)

    def close(self) -> None:
        return


def test_a_host_that_has_gone(monkeypatch):
    """No worker has, of whom anybody should read."""
    logged: list[str] = []
    monkeypatch.setattr(link, "log", lambda _, text: logged.append(text))

    class Host:
        async def write(self, number, batch) -> None:
            raise EOFError

    class Answering(Carrying):
        async def read(self):
            return ["pong", 0, 1]

    worker = Worker(0, Answering(0, 0), Host(), 10, [["", ""]])
    asyncio.run(worker.run())
    assert not logged
    with pytest.raises(EOFError):
        asyncio.run(_write_to_nobody())


async def _write_to_nobody() -> None:
    end, other = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=end)
    other.close()
    host = link.Host(reader, writer, mmap.mmap(-1, 4096))
    while True:
        await host.write(0, bytes(1 << 16))


class Frames:
    """A host that is told."""

    def __init__(self) -> None:
        self.added: list[list] = []

    def add(self, worker: bytes) -> None:
        self.added += codec.decode(worker)

    async def write(self, number, batch) -> None:
        return


class Coming(Carrying):
    """A worker that has come. It says nothing."""

    def __init__(self, address: str) -> None:
        super().__init__(1, 0)
        self.address, self.key, self.answers = address, "key", [[1, b"x"]]
        self.has_gone = asyncio.Event()

    async def read(self) -> None:
        await self.has_gone.wait()
        raise OSError("it has gone")


def test_workers_that_come(monkeypatch):
    """Each is told of once, in the order of their numbers, whatever goes wrong with others."""
    logged: list[str] = []
    asked: list[list[str]] = []
    monkeypatch.setattr(link, "log", lambda _, text: logged.append(text))
    monkeypatch.setattr(link.queries, "can_join", lambda whole, answers: bool(whole and answers))

    async def connections(client, timeout, addresses, most):
        asked.append(addresses)
        assert most == messages.MOST_WORKERS - 2 - len(host.added)
        if "broken" in addresses:
            raise RuntimeError("it has gone again")
        return [Coming(address) for address in addresses if address != "no device"]

    monkeypatch.setattr(link.connect, "connections", connections)
    host = Frames()

    async def run() -> None:
        arrivals: asyncio.Queue[str] = asyncio.Queue()
        workers = link.Workers(host, 10, arrivals)
        first, second = Coming("first"), Coming("second")
        workers.add([first, second])
        task = asyncio.ensure_future(workers.take(None, [[1, b"x"]]))
        for some in (["first"], ["broken"], ["a", "b", "a"], ["no device"], ["b", "c"]):
            for address in some:
                arrivals.put_nowait(address)
            await asyncio.sleep(0.01)
        first.has_gone.set()  # whose address has come again before
        second.has_gone.set()
        await asyncio.sleep(0.01)
        assert [workers[i].address for i in range(6)] == ["first", "second", "a", "b", "c", "first"]
        task.cancel()

    asyncio.run(run())
    assert asked == [["broken"], ["a", "b"], ["no device"], ["c"], ["first"]]
    assert host.added == [[name, [[1, b"x"]], 1] for name in (b"a", b"b", b"c", b"first")]
    assert logged[0] == "cluster: broken came and is no device: it has gone again"


def _turns(received: int, acknowledged: int) -> int:
    """Until a worker that says nothing is gone; 200: it is not by then."""

    class Host:
        async def write(self, number, batch) -> None:
            return

    async def run() -> int:
        connection = Carrying(received, acknowledged)
        task = asyncio.ensure_future(Worker(0, connection, Host(), 0.02, [["", ""]]).run())
        while not task.done() and connection.turns < 200:
            await asyncio.sleep(0.001)
        task.cancel()
        return connection.turns

    return asyncio.run(run())


def test_bytes_are_signs_of_life():
    silent = _turns(0, 0)
    assert silent < 10
    assert _turns(1, 0) >= 200
    # Of what its machine has taken all up to the ping counts, 10 turns.
    assert silent + 8 <= _turns(0, 100) <= silent + 12
