"""Executes a host's batches of commands on this machine's device, in their order, by way of OpenCL.

Two threads: one enqueues and never waits for a command, the other waits for the oldest one and tells what has
become of it. Python's lock is free while either is in OpenCL.
"""

from __future__ import annotations

import ctypes
import queue
import struct
import threading
from typing import TYPE_CHECKING, Any

from ..api.generated import enums as cl
from ..door import codec
from ..jit import bundle
from ..log import log
from ..wire import WireError
from . import messages
from .opencl import CallError, OpenCL

if TYPE_CHECKING:
    from collections.abc import Callable

_HANDLE = ctypes.c_void_p
_WORD = ctypes.c_size_t
_ULONG = struct.Struct("<Q")

# Commands whose end is told in one batch, at most.
_MOST_ANSWERS = 256


class _Buffer:
    """A memory object, and the parts of it that kernels have had as arguments: by offset and size."""

    def __init__(self, handle: _HANDLE, size: int) -> None:
        self.handle = handle
        self.size = size
        self.parts: dict[tuple[int, int], _HANDLE] = {}


class _Program:
    """A program, built when one of its kernels is launched first; status: of that build, or None."""

    def __init__(self, options: bytes, il: bytes) -> None:
        self.options = options
        self.il = il
        self.status: int | None = None
        self.handle: _HANDLE | None = None
        self.kernels: dict[bytes, _HANDLE] = {}


class Executor:
    """The device for one host. Objects are the host's by number; a number that is unknown is an error of the
    command that has it."""

    def __init__(self, api: OpenCL, send: Callable[[bytes], None]) -> None:
        """send: takes batches for the host, from any thread. Raises CallError."""
        self._cl = api
        self._send = send
        device = ctypes.byref(api.device)
        self._context = api.make("clCreateContext", None, 1, device, None, None)
        profiled = (ctypes.c_uint64 * 3)(cl.CL_QUEUE_PROPERTIES, cl.CL_QUEUE_PROFILING_ENABLE, 0)
        self._queue = api.make("clCreateCommandQueueWithProperties", self._context, api.device, profiled)
        self._buffers: dict[int, _Buffer] = {}
        self._programs: dict[int, _Program] = {}
        self._batches: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        # (event or None, what its end is told as, what must live until then)
        self._enqueued: queue.SimpleQueue[tuple[_HANDLE | None, list[Any] | None, Any] | None] = (
            queue.SimpleQueue()
        )
        self._lock = threading.Lock()  # of the next two
        self._events: dict[int, _HANDLE] = {}  # of launches that have not ended
        self._failures: set[int] = set()  # launches
        self._failed = False
        self._threads = [
            threading.Thread(target=work, name=f"cl_driver {name}", daemon=True)
            for name, work in (("commands", self._run), ("completions", self._complete))
        ]
        for thread in self._threads:
            thread.start()

    def put(self, batch: bytes) -> None:
        """Takes a batch for execution; never waits."""
        self._batches.put(batch)

    def close(self) -> None:
        """Ends when all that was put is executed, and frees all. Waits for it."""
        self._batches.put(None)
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        operations: dict[int, Callable[..., None]] = {
            messages.PROGRAM: self._program,
            messages.FORGET_PROGRAM: self._forget_program,
            messages.BUFFER: self._buffer,
            messages.FORGET_BUFFER: self._forget_buffer,
            messages.WRITE: self._write,
            messages.READ: self._read,
            messages.LAUNCH: self._launch,
        }
        while (batch := self._batches.get()) is not None:
            try:
                for operation, *arguments in codec.decode(batch):
                    operations[operation](*arguments)
            except (WireError, LookupError, TypeError, ValueError, OverflowError) as error:
                # No host of ours says such a thing: nothing that follows means anything.
                log(1, f"cluster: a batch that is none: {error!r}")
                self._failed = True
                break
            self._cl.function("clFlush")(self._queue)
        self._enqueued.put(None)

    @property
    def failed(self) -> bool:
        """Whether it has been told what it does not understand; it executes nothing any more then."""
        return self._failed

    def _program(self, number: int, options: bytes, il: bytes) -> None:
        self._programs[number] = _Program(options, il)

    def _forget_program(self, number: int) -> None:
        program = self._programs.pop(number)
        for kernel in program.kernels.values():
            self._cl.function("clReleaseKernel")(kernel)
        if program.handle is not None:
            self._cl.function("clReleaseProgram")(program.handle)

    def _buffer(self, number: int, size: int) -> None:
        try:
            handle = self._cl.make(
                "clCreateBuffer", self._context, ctypes.c_uint64(cl.CL_MEM_READ_WRITE), _WORD(size), None
            )
        except CallError as error:
            log(1, f"cluster: no memory for a buffer of {size} bytes: {error}")
            return  # the commands that want it fail
        self._buffers[number] = _Buffer(handle, size)

    def _forget_buffer(self, number: int) -> None:
        buffer = self._buffers.pop(number, None)
        if buffer is None:
            return
        for handle in (*buffer.parts.values(), buffer.handle):
            self._cl.function("clReleaseMemObject")(handle)

    def _write(self, number: int, offset: int, data: bytes) -> None:
        buffer, event = self._buffers.get(number), _HANDLE()
        if buffer is None:
            return
        self._cl.call(
            "clEnqueueWriteBuffer", self._queue, buffer.handle, 0, _WORD(offset), _WORD(len(data)), data, 0,
            None, ctypes.byref(event),
        )  # fmt: skip
        self._enqueued.put((event, None, data))

    def _read(self, request: int, number: int, offset: int, size: int) -> None:
        answer = [messages.DATA, request, cl.CL_MEM_OBJECT_ALLOCATION_FAILURE, b""]
        buffer, event = self._buffers.get(number), _HANDLE()
        if buffer is None:
            self._enqueued.put((None, answer, None))
            return
        data = ctypes.create_string_buffer(size)
        try:
            self._cl.call(
                "clEnqueueReadBuffer", self._queue, buffer.handle, 0, _WORD(offset), _WORD(size), data, 0,
                None, ctypes.byref(event),
            )  # fmt: skip
        except CallError as error:
            answer[2] = error.status
            self._enqueued.put((None, answer, None))
        else:
            self._enqueued.put((event, answer, data))

    def _launch(
        self,
        command: int,
        program: int,
        name: bytes,
        offset: list[int],
        size: list[int],
        local: list[int] | None,
        needed: list[int],
        arguments: list[Any],
    ) -> None:
        answer = [messages.DONE, command, 0, 0, 0]
        event = _HANDLE()
        waits = self._running(needed)
        try:
            if waits is None:
                raise CallError("clWaitForEvents", cl.CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
            kernel = self._kernel(program, name)
            for i, argument in enumerate(arguments):
                self._set_argument(kernel, i, argument)
            dimensions = len(size)
            words = _WORD * dimensions
            self._cl.call(
                "clEnqueueNDRangeKernel", self._queue, kernel, dimensions, words(*offset), words(*size),
                None if local is None else words(*local), len(waits),
                (_HANDLE * len(waits))(*waits) if waits else None, ctypes.byref(event),
            )  # fmt: skip
        except CallError as error:
            log(1, f"cluster: a launch of {name.decode(errors='replace')} has failed: {error}")
            answer[2] = error.status
            self._failures.add(command)
            self._enqueued.put((None, answer, None))
        else:
            with self._lock:
                self._events[command] = event
            self._enqueued.put((event, answer, None))
        for wait in waits or ():
            self._cl.function("clReleaseEvent")(_HANDLE(wait))

    def _running(self, commands: list[int]) -> list[int] | None:
        """The events, retained, of those launches that have not ended; None if one has failed."""
        with self._lock:
            if not self._failures.isdisjoint(commands):
                return None
            found = [value for command in commands if (value := self._events.get(command, _HANDLE()).value)]
            for event in found:
                self._cl.function("clRetainEvent")(_HANDLE(event))
            return found

    def _forget_launch(self, command: int, status: int) -> None:
        with self._lock:
            self._events.pop(command, None)
            if status:
                self._failures.add(command)

    def _set_argument(self, kernel: _HANDLE, index: int, argument: Any) -> None:
        if argument is None:
            null = _HANDLE()
            self._cl.call("clSetKernelArg", kernel, index, _WORD(8), ctypes.byref(null))
        elif isinstance(argument, bytes):
            self._cl.call("clSetKernelArg", kernel, index, _WORD(len(argument)), argument)
        elif isinstance(argument, int):
            self._cl.call("clSetKernelArg", kernel, index, _WORD(argument), None)
        else:
            handle = self._part(*argument)
            self._cl.call("clSetKernelArg", kernel, index, _WORD(8), ctypes.byref(handle))

    def _part(self, number: int, offset: int, size: int) -> _HANDLE:
        """A buffer, or so many bytes of it as a sub-buffer."""
        buffer = self._buffers.get(number)
        if buffer is None:
            raise CallError("clCreateBuffer", cl.CL_MEM_OBJECT_ALLOCATION_FAILURE)
        if not offset and size == buffer.size:
            return buffer.handle
        found = buffer.parts.get((offset, size))
        if found is None:
            region = (_WORD * 2)(offset, size)
            found = self._cl.make(
                "clCreateSubBuffer", buffer.handle, ctypes.c_uint64(0), cl.CL_BUFFER_CREATE_TYPE_REGION,
                region,
            )  # fmt: skip
            buffer.parts[offset, size] = found
        return found

    def _kernel(self, number: int, name: bytes) -> _HANDLE:
        program = self._programs[number]
        found = program.kernels.get(name)
        if found is None:
            if program.status is None:
                self._build(number, program)
            if program.status or program.handle is None:
                raise CallError("clBuildProgram", program.status or cl.CL_BUILD_PROGRAM_FAILURE)
            found = program.kernels[name] = self._cl.make("clCreateKernel", program.handle, name)
        return found

    def _build(self, number: int, program: _Program) -> None:
        """Builds a program of one module; of several, they are compiled and linked."""
        parts = bundle.unpack(program.il)
        made: list[_HANDLE] = []
        try:
            for il, constants in parts:
                handle = self._cl.make("clCreateProgramWithIL", self._context, il, _WORD(len(il)))
                made.append(handle)
                for identifier, value in constants.items():
                    self._cl.call(
                        "clSetProgramSpecializationConstant", handle, identifier, _WORD(len(value)), value
                    )
            if len(made) == 1:
                program.handle = made[0]
                self._cl.call("clBuildProgram", made[0], 0, None, program.options, None, None)
            else:
                self._link(program, made)
            program.status = cl.CL_SUCCESS
        except CallError as error:
            program.status = error.status
            text = self._build_log(program.handle) if program.handle is not None else b""
            log(1, f"cluster: a program does not build: {error}\n{text.decode(errors='replace')}")
            self._send(codec.encode([[messages.BUILT, number, error.status, text]]))

    def _link(self, program: _Program, made: list[_HANDLE]) -> None:
        for handle in made:
            program.handle = handle
            self._cl.call("clCompileProgram", handle, 0, None, None, 0, None, None, None, None)
        handles = (_HANDLE * len(made))(*(handle.value for handle in made))
        program.handle = self._cl.make(
            "clLinkProgram", self._context, 0, None, program.options, len(made), handles, None, None
        )
        for handle in made:
            self._cl.function("clReleaseProgram")(handle)

    def _build_log(self, program: _HANDLE) -> bytes:
        what = cl.CL_PROGRAM_BUILD_LOG
        return self._cl.info("clGetProgramBuildInfo", what, program, self._cl.device).rstrip(b"\0")

    def _complete(self) -> None:
        answers: list[list[Any]] = []

        def send() -> None:
            if answers:
                self._send(codec.encode(answers))
                answers.clear()

        while (entry := self._enqueued.get()) is not None:
            event, answer, data = entry
            if event is not None:
                if self._status(event) > 0:
                    send()  # what has ended is not kept back for what may take long
                self._cl.function("clWaitForEvents")(1, ctypes.byref(event))
                if answer is not None:
                    self._fill(answer, self._status(event), event, data)
                self._cl.function("clReleaseEvent")(event)
            if answer is not None:
                answers.append(answer)
            if self._enqueued.empty() or len(answers) >= _MOST_ANSWERS or data is not None:
                send()
        send()
        self._free()

    def _status(self, event: _HANDLE) -> int:
        return _int(self._cl.info("clGetEventInfo", cl.CL_EVENT_COMMAND_EXECUTION_STATUS, event))

    def _fill(self, answer: list[Any], status: int, event: _HANDLE, data: Any) -> None:
        answer[2] = status
        if answer[0] == messages.DONE:
            self._forget_launch(answer[1], status)
        if answer[0] == messages.DATA:
            answer[3] = b"" if status else memoryview(data)
        elif not status:
            for place, what in ((3, cl.CL_PROFILING_COMMAND_START), (4, cl.CL_PROFILING_COMMAND_END)):
                value = self._cl.info("clGetEventProfilingInfo", what, event)
                answer[place] = _ULONG.unpack(value)[0]

    def _free(self) -> None:
        for program in list(self._programs):
            self._forget_program(program)
        for buffer in list(self._buffers):
            self._forget_buffer(buffer)
        self._cl.function("clReleaseCommandQueue")(self._queue)
        self._cl.function("clReleaseContext")(self._context)


def _int(value: bytes) -> int:
    """A cl_int."""
    return int.from_bytes(value, "little", signed=True)
