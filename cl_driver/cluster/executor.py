"""The device of a worker for one host: native_shim/src/executor/, which executes batches without Python.

Batches go there whole and answers come back whole. A batch stays in its place until the executor has used it;
what comes back is freed when nobody here or in Dask has it any more.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import weakref
from typing import TYPE_CHECKING, Any

from .opencl import CallError

if TYPE_CHECKING:
    from .opencl import OpenCL

_U64 = ctypes.c_uint64
_POINTER = ctypes.c_void_p


class _Range(ctypes.Structure):
    _fields_ = (("at", _POINTER), ("size", _U64))


class _Departure(ctypes.Structure):
    _fields_ = (("peer", _U64), ("transfer", _U64), ("contents", _Range))


class _Answers(ctypes.Structure):
    _fields_ = (
        ("batch", _Range),
        ("payload", _Range),
        ("released", ctypes.POINTER(_U64)),
        ("released_count", _U64),
        ("departures", ctypes.POINTER(_Departure)),
        ("departure_count", _U64),
    )


_INT = ctypes.c_int32


class _Table(ctypes.Structure):
    """struct cld_executor_table."""

    _fields_ = (
        ("open", ctypes.CFUNCTYPE(_POINTER, ctypes.POINTER(_INT))),
        ("descriptor", ctypes.CFUNCTYPE(_INT, _POINTER)),
        (
            "put",
            ctypes.CFUNCTYPE(
                _INT, _POINTER, _U64, ctypes.POINTER(_Range), ctypes.POINTER(_Range), _U64, _INT
            ),
        ),
        ("take", ctypes.CFUNCTYPE(None, _POINTER, ctypes.POINTER(_Answers))),
        ("free", ctypes.CFUNCTYPE(None, _POINTER)),
        ("failed", ctypes.CFUNCTYPE(_INT, _POINTER)),
        ("close", ctypes.CFUNCTYPE(None, _POINTER)),
    )


def _range(data: memoryview) -> _Range:
    place = (ctypes.c_char * data.nbytes).from_buffer(data)
    return _Range(ctypes.addressof(place), data.nbytes)


def _writable(data: Any) -> memoryview:
    """A view of bytes whose place ctypes tells, which it does not where they are constant."""
    view = memoryview(data).cast("B")
    return memoryview(bytearray(view)) if view.readonly else view


class Executor:
    """The device for one host. Objects are the host's by number; a number that is unknown is an error of the
    command that has it. Calls of one thread."""

    def __init__(self, api: OpenCL) -> None:
        """CallError."""
        find = api.library.cld_executor_functions
        find.restype = ctypes.POINTER(_Table)
        self._table = find().contents
        status = _INT()
        self._handle = self._table.open(ctypes.byref(status))
        if not self._handle:
            raise CallError("cld_executor_functions", status.value)
        self._tokens = itertools.count()
        # By token, what was put and is used.
        self.kept: dict[int, tuple[memoryview, ...]] = {}
        # An eventfd, readable where there are answers.
        self.descriptor: int = self._table.descriptor(self._handle)

    def calm(self) -> None:
        """Makes the descriptor unreadable until there are more answers. To be called before take()."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.descriptor, 8)

    def put(self, batch: bytes, payloads: list[Any], is_peer: bool = False) -> None:
        """Takes a batch and the payloads of its messages for execution; never waits. is_peer: it is of
        another worker. MemoryError."""
        views = tuple(_writable(data) for data in (batch, *payloads))
        token = next(self._tokens)
        self.kept[token] = views
        ranges = (_Range * len(views))(*(_range(view) for view in views))
        rest = ctypes.cast(ctypes.byref(ranges, ctypes.sizeof(_Range)), ctypes.POINTER(_Range))
        if not self._table.put(self._handle, token, ranges, rest, len(payloads), is_peer):
            raise MemoryError("no memory for a batch")

    def take(self) -> tuple[bytes, list[memoryview], list[tuple[int, int, memoryview | None]]]:
        """The oldest answers there are: a batch, which may be empty, and the payload that one of its messages
        may have. And what goes to other workers: their numbers, the transfers, the contents; None where the
        worker is to be connected."""
        answers = _Answers()
        self._table.take(self._handle, ctypes.byref(answers))
        for i in range(answers.released_count):
            del self.kept[answers.released[i]]
        batch = ctypes.string_at(answers.batch.at, answers.batch.size) if answers.batch.at else b""
        payloads = [self._payload(answers.payload)] if answers.payload.at else []
        departures: list[tuple[int, int, memoryview | None]] = []
        for i in range(answers.departure_count):
            one = answers.departures[i]
            contents = self._payload(one.contents) if one.contents.at else None
            departures.append((one.peer, one.transfer, contents))
        for memory in (answers.batch.at, answers.released, answers.departures):
            self._table.free(ctypes.cast(memory, _POINTER))
        return batch, payloads, departures

    def _payload(self, found: _Range) -> memoryview:
        place = (ctypes.c_char * found.size).from_address(found.at)
        weakref.finalize(place, self._table.free, found.at).atexit = False
        return memoryview(place).cast("B")

    @property
    def failed(self) -> bool:
        """Whether it has been told what it does not understand; it executes nothing any more then."""
        return bool(self._table.failed(self._handle))

    def close(self) -> None:
        """Ends when all that was put is executed, and frees all. Waits for it."""
        self._table.close(self._handle)
        self.kept.clear()
