"""Adds the stages of builds to the trace's file, as packets of Perfetto's format, in which each compiler
process is a process. (The rest of the file is native_shim/src/trace's: whole packets of several processes
follow one another in it.)
"""

from __future__ import annotations

import os

from .. import log, settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..stages import Stage

# Numbers of fields.
_PACKET, _TIMESTAMP, _SEQUENCE, _EVENT, _FLAGS, _DEFAULTS, _DESCRIPTOR, _FIRST = 1, 8, 10, 11, 13, 59, 60, 87
_CLOCK, _MONOTONIC = 58, 3
_ARGUMENT, _TYPE, _TRACK, _NAME = 4, 9, 11, 23
_ARGUMENT_NAME, _ARGUMENT_TEXT = 10, 6
_BEGIN, _END = 1, 2

_sequence = int.from_bytes(os.urandom(4), "little") | 1
_known: set[int] = set()  # processes that the file has


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _message(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _packet(content: bytes) -> bytes:
    return _message(_PACKET, _number(_SEQUENCE, _sequence) + content)


def _track(process: int, is_thread: bool = False) -> int:
    """Numbers of fewer than 53 bits, which are all that JavaScript has."""
    return (_sequence >> 12) << 32 | process << 1 | is_thread


def _process(number: int) -> bytes:
    """The packets that name a compiler process and its track."""
    process = _number(1, number) + _message(6, b"cl_driver compiler")
    thread = _number(1, number) + _number(2, number) + _message(5, b"stages of builds")
    descriptors = (
        _number(1, _track(number)) + _message(3, process),
        _number(1, _track(number, True)) + _number(5, _track(number)) + _message(4, thread),
    )
    return b"".join(_packet(_message(_DESCRIPTOR, descriptor)) for descriptor in descriptors)


def packets(process: int, stages: Iterable[Stage]) -> bytes:
    """Stages of a process as packets: begins and ends in the order of time, what contains others first."""
    out = b""
    if not _known:
        defaults = _message(_DEFAULTS, _number(_CLOCK, _MONOTONIC))
        out += _packet(_number(_FLAGS, 1) + _number(_FIRST, 1) + defaults)
    if process not in _known:
        _known.add(process)
        out += _process(process)
    open_ends: list[int] = []
    track = _number(_TRACK, _track(process, True))

    def close(until: int) -> bytes:
        closed = b""
        while open_ends and open_ends[-1] <= until:
            event = _number(_TYPE, _END) + track
            closed += _packet(
                _number(_TIMESTAMP, open_ends.pop()) + _number(_FLAGS, 2) + _message(_EVENT, event)
            )
        return closed

    for name, about, begin, end in sorted(stages, key=lambda stage: (stage[2], -stage[3])):
        out += close(begin)
        event = _number(_TYPE, _BEGIN) + track + _message(_NAME, name.encode())
        if about:
            text = _message(_ARGUMENT_NAME, b"of") + _message(_ARGUMENT_TEXT, about.encode())
            event += _message(_ARGUMENT, text)
        out += _packet(_number(_TIMESTAMP, begin) + _number(_FLAGS, 2) + _message(_EVENT, event))
        # One that another thread has noted may end later than what contains it.
        open_ends.append(min(end, *open_ends[-1:]) if open_ends else end)
    return out + close(max(open_ends, default=0))


def add(process: int, stages: Iterable[Stage]) -> None:
    """Adds them to the file. What the host cannot write is missing, and the log says so."""
    path = settings.text("CL_DRIVER_TRACE").replace("%p", str(os.getpid()))
    if not path:
        return
    flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
    try:
        file = os.open(path, flags | (os.O_CREAT if os.path.isabs(path) else 0), 0o600)
        try:
            os.write(file, packets(process, stages))
        finally:
            os.close(file)
    except OSError as error:
        log.log(1, f"stages of a build are missing in the trace: {error}")
