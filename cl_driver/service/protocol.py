"""Frames between the compile service and its compiler processes.

uint64 length, then one wire value. The service sends [operation, CPU seconds or 0.0, arguments...]; the
process answers with ["started"] when it has the whole request, and then ["ok", value, CPU seconds that it
took] or ["failed", log]; before these with ["said", level, text] for each line of its log. One request at a
time.
"""

from __future__ import annotations

from struct import Struct

from ..jit import wire

_LENGTH = Struct("<Q")
_PID = Struct("<I")
MAX_FRAME = 1 << 32
POLLRDHUP = 0x2000  # Linux; not in every select module
STARTED, SAID, OK, FAILED = "started", "said", "ok", "failed"


class Disconnected(Exception):
    """The other side is gone, or does not speak this protocol."""


def frame(values: list) -> bytes:
    """One frame's bytes."""
    body = wire.encode(values)
    return _LENGTH.pack(len(body)) + body


def send(sock, values: list) -> None:
    """Sends one frame. Disconnected if nobody can receive it."""
    try:
        sock.sendall(frame(values))
    except OSError as error:
        raise Disconnected(str(error)) from error


def _receive_exactly(sock, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        try:
            part = sock.recv(min(size - len(data), 1 << 20))
        except OSError as error:
            raise Disconnected(str(error)) from error
        if not part:
            raise Disconnected("end of file")
        data += part
    return bytes(data)


def receive(sock) -> list:
    """Waits for one frame. Disconnected at the end of file, and for what is no frame."""
    (size,) = _LENGTH.unpack(_receive_exactly(sock, _LENGTH.size))
    if size > MAX_FRAME:
        raise Disconnected(f"a frame of {size} bytes")
    try:
        values = wire.decode(_receive_exactly(sock, size))
    except wire.WireError as error:
        raise Disconnected(f"malformed frame: {error}") from error
    if type(values) is not list or not values or type(values[0]) is not str:
        raise Disconnected("malformed frame")
    return values


def send_hello(sock, pid: int, descriptor: int) -> None:
    """The first that a compiler process sends: its number, and a file that it writes its errors to."""
    import socket

    socket.send_fds(sock, [_PID.pack(pid)], [descriptor])


def receive_hello(sock) -> tuple[int, int]:
    """Waits for it. Disconnected if something else comes."""
    import socket

    try:
        data, descriptors, _, _ = socket.recv_fds(sock, _PID.size, 1)
    except OSError as error:
        raise Disconnected(str(error)) from error
    if len(data) != _PID.size or len(descriptors) != 1:
        raise Disconnected("end of file" if not data else "malformed greeting")
    return _PID.unpack(data)[0], descriptors[0]


def is_closed(sock) -> bool:
    """True if the other side has hung up."""
    import select

    poll = select.poll()
    poll.register(sock, POLLRDHUP)
    return bool(poll.poll(0))
