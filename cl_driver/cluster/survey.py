"""What `cl-driver cluster` prints."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import TYPE_CHECKING

from .. import settings
from ..door import codec
from ..version import VERSION
from . import connect, messages, queries

if TYPE_CHECKING:
    from .connect import Connection

_PINGS = 20

# Of a memory object that is written and read: enough that latency does not count.
_BYTES = 32 << 20
_NUMBER = 1


async def _transfer(connection: Connection) -> tuple[float, float]:
    """Bytes in a second to the worker's device and back. OSError."""
    part = bytes(messages.MOST_BYTES)
    await _exchange(connection, [[messages.BUFFER, _NUMBER, _BYTES]])
    start = time.monotonic()
    for at in range(0, _BYTES, len(part)):
        batch = codec.encode([[messages.WRITE, _NUMBER, at, len(part)]])
        await connection.write("batch", batch, [part])
    await _exchange(connection, [])
    written = time.monotonic()
    requests = [
        [messages.READ, number, _NUMBER, at, len(part)]
        for number, at in enumerate(range(0, _BYTES, len(part)))
    ]
    await connection.write("batch", codec.encode(requests))
    left = len(requests)
    while left:  # answers come together
        _, _, payloads = await connection.read()
        left -= len(payloads)
    end = time.monotonic()
    await connection.write("batch", codec.encode([[messages.FORGET_BUFFER, _NUMBER]]))
    return _BYTES / (written - start), _BYTES / (end - written)


async def _exchange(connection: Connection, commands: list[list[int]]) -> None:
    """Returns when the worker has executed commands, and all before them."""
    await connection.write("batch", codec.encode([*commands, [messages.READ, 0, _NUMBER, 0, 1]]))
    await connection.read()


def _text(connection: Connection, query: int) -> str:
    for number, value in connection.answers:
        if number == query:
            return bytes(value).rstrip(b"\0").decode()
    return ""


async def _lines(place: str) -> list[str]:
    timeout = float(settings.integer("CL_DRIVER_CLUSTER_TIMEOUT") or 30)
    async with connect.open_client(place, timeout) as client:
        import distributed

        lines = [f"cl_driver {VERSION}, distributed {distributed.__version__}, {client.scheduler.address}"]
        for connection in await connect.connections(client, timeout):
            taken = min([(await connection.ping())[0] for _ in range(_PINGS)])
            there, back = await _transfer(connection)
            version = _text(connection, queries.DRIVER_VERSION)
            lines += [
                f"{connection.address}: {_text(connection, queries.number('NAME'))}",
                f"    {_text(connection, queries.number('VERSION'))}, driver {version}",
                f"    round trip {taken / 1e3:.0f} us, "
                f"{there / 1e6:.0f} MB/s there, {back / 1e6:.0f} MB/s back",
            ]
            connection.close()
        return lines


def show(place: str) -> int:
    """Prints the cluster at an address or of a scheduler file. 1 if it has no devices. ConnectError."""
    lines = asyncio.run(_lines(place))
    print("\n".join(lines))
    if len(lines) > 1:
        return 0
    print("no worker has this driver (CL_DRIVER_LOG=errors says why)")
    return 1


def main(place: str) -> None:
    """The same as the program of a process."""
    try:
        sys.exit(show(place))
    except OSError as error:
        print(f"cl-driver cluster: {error}", file=sys.stderr)
        sys.exit(1)
