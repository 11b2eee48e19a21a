"""Frames between the compile service and its compiler processes.

uint64 length, then one wire value. The service sends [operation, CPU seconds or 0.0, arguments...]; the
process answers with ["started"] when it has the whole request, and then ["ok", value, CPU seconds that it
took] or ["failed", log]; before these with ["said", level, text] for each line of its log, and, for a trace,
with ["took", stages] (stages.py). One request at a time. After ["rest"], which has no answer, a process ends
unless there is a request soon.
"""

from __future__ import annotations

# Not socket: it imports more than everything else that a connection costs.
from _socket import CMSG_SPACE, MSG_CMSG_CLOEXEC, MSG_NOSIGNAL, SCM_RIGHTS, SOL_SOCKET
from struct import Struct

from .. import wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket as Socket
    from collections.abc import Sequence
    from typing import Any, Required, TypeAlias, TypedDict

    # A request's operation (jobs.py) and its arguments.
    Request: TypeAlias = list[Any]

    # frontend/includes.Files: what was read, what was not there, and whether that is all.
    Files: TypeAlias = Sequence[Any]

    class Job(TypedDict):
        """What all operations need.

        target: Target.to_values(); options: as the application gave them; settings: those that concern the
        compiler; cwd: folder to which relative include folders refer; source_copy: file with the source for
        debuggers, or "".
        """

        target: list[object]
        options: str
        settings: dict[str, str]
        cwd: str
        source_copy: str

    class Answer(TypedDict, total=False):
        """Of a build.

        kernels: names and weights, missing if there is no program, and the log says why; program: values of
        an Executable without kernels and objects; executable: all of it as bytes, in the place of `program`;
        files: of a source.
        """

        log: Required[str]
        kernels: list[tuple[str, int]]
        program: list[Any]
        executable: bytes
        files: Files


_LENGTH = Struct("<Q")
_PID = Struct("<I")
DESCRIPTOR = Struct("@i")
MAX_FRAME = 1 << 32
POLLRDHUP = 0x2000  # Linux; not in every select module
STARTED, SAID, TOOK, OK, FAILED = "started", "said", "took", "ok", "failed"
REST = "rest"
OF_SOURCES = ("build_source", "compile_source")  # operations that run clang

# What the service sends to fork_server.py: one to connect, with a descriptor. The kernel adds who sends it.
CONNECT, CONNECT_FOR_SOURCE, LEAVE = b"c", b"s", b"l"

_RESTING = 1.0  # seconds: hosts unload the compiler between builds, too


def resting(idle: float) -> float:
    """Seconds that a process still stays which is to rest. idle: those that it may be idle else, 0 for no
    limit."""
    return min(idle or _RESTING, _RESTING)


SO_PASSCRED, SCM_CREDENTIALS = 16, 2  # unix(7); not in every socket module


class Disconnected(Exception):
    """The other side is gone, or does not speak this protocol."""


def frame(values: list[Any]) -> bytes:
    """One frame's bytes."""
    body = wire.encode(values)
    return _LENGTH.pack(len(body)) + body


def send(sock: Socket, values: list[Any]) -> None:
    """Sends one frame. Disconnected if nobody can receive it: the signal that hosts end by is not sent."""
    try:
        sock.sendall(frame(values), MSG_NOSIGNAL)
    except OSError as error:
        raise Disconnected(str(error)) from error


def _receive_exactly(sock: Socket, size: int) -> bytes:
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


def receive(sock: Socket) -> list[Any]:
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


def send_hello(sock: Socket, pid: int, descriptor: int) -> None:
    """The first that a compiler process sends: its number, and a file that it writes its errors to."""
    sock.sendmsg([_PID.pack(pid)], [(SOL_SOCKET, SCM_RIGHTS, DESCRIPTOR.pack(descriptor))])


def receive_hello(sock: Socket) -> tuple[int, int]:
    """Waits for it: the number, and a descriptor that programs which the host starts do not get. Disconnected
    if something else comes."""
    try:
        data, parts, _, _ = sock.recvmsg(_PID.size, CMSG_SPACE(DESCRIPTOR.size), MSG_CMSG_CLOEXEC)
    except OSError as error:
        raise Disconnected(str(error)) from error
    contents = [content for level, kind, content in parts if (level, kind) == (SOL_SOCKET, SCM_RIGHTS)]
    if len(data) != _PID.size or [len(content) for content in contents] != [DESCRIPTOR.size]:
        raise Disconnected("end of file" if not data else "malformed greeting")
    (pid,), (descriptor,) = _PID.unpack(data), DESCRIPTOR.unpack(contents[0])
    return pid, descriptor


def is_closed(sock: Socket) -> bool:
    """True if the other side has hung up."""
    import select

    poll = select.poll()
    poll.register(sock, POLLRDHUP)
    return bool(poll.poll(0))
