"""cl_khr_command_buffer and what is on top of it, of which installed headers may have other versions."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

from tests.loader.core.session import Buffer, Session, sizes

INVALID_COMMAND_BUFFER = -1138
INVALID_SYNC_POINT_WAIT_LIST = -1139
INCOMPATIBLE_COMMAND_QUEUE = -1140
INVALID_MUTABLE_COMMAND = -1141
COMMAND_COMMAND_BUFFER = 0x12A8

FLAGS, ASSERTS = 0x1293, 0x12B7
SIMULTANEOUS_USE, MUTABLE, DEVICE_SIDE_SYNC = 1, 2, 4
QUEUES, NUM_QUEUES, REFERENCE_COUNT, STATE, PROPERTIES_ARRAY, CONTEXT = range(0x1294, 0x129A)
RECORDING, EXECUTABLE, FINALIZED = range(3)

UPDATABLE_FIELDS, DISPATCH_ASSERTS = 0x12B1, 0x12B8
GLOBAL_OFFSET, GLOBAL_SIZE, LOCAL_SIZE, ARGUMENTS, EXEC_INFO = (1 << i for i in range(5))
NO_ADDITIONAL_WORK_GROUPS = 1

_TAIL = "uppp"  # how many sync points to wait for, which, the command's own, its handle
_HEAD = "ppp"  # command-buffer, queue, properties
_COMMANDS = {
    "clCommandBarrierWithWaitListKHR": "",
    "clCommandCopyBufferKHR": "ppzzz",
    "clCommandCopyBufferRectKHR": "pppppzzzz",
    "clCommandCopyBufferToImageKHR": "ppzpp",
    "clCommandCopyImageKHR": "ppppp",
    "clCommandCopyImageToBufferKHR": "ppppz",
    "clCommandFillBufferKHR": "ppzzz",
    "clCommandFillImageKHR": "pppp",
    "clCommandNDRangeKernelKHR": "puppp",
    "clCommandSVMMemcpyKHR": "ppz",
    "clCommandSVMMemFillKHR": "ppzz",
}
COMMANDS = tuple(_COMMANDS)
_OTHERS = {
    "clFinalizeCommandBufferKHR": "p",
    "clRetainCommandBufferKHR": "p",
    "clReleaseCommandBufferKHR": "p",
    "clEnqueueCommandBufferKHR": "uppupp",
    "clGetCommandBufferInfoKHR": "puzpp",
    "clUpdateMutableCommandsKHR": "pupp",
    "clGetMutableCommandInfoKHR": "puzpp",
}
_MAKERS = {"clCreateCommandBufferKHR": "uppp", "clRemapCommandBufferKHR": "puupuppp"}


class Argument(ctypes.Structure):
    """cl_mutable_dispatch_arg_khr"""

    _fields_ = (("index", ctypes.c_uint32), ("size", ctypes.c_uint64), ("value", ctypes.c_void_p))


class ExecInfo(ctypes.Structure):
    """cl_mutable_dispatch_exec_info_khr"""

    _fields_ = (("name", ctypes.c_uint32), ("size", ctypes.c_uint64), ("value", ctypes.c_void_p))


class Config(ctypes.Structure):
    """cl_mutable_dispatch_config_khr. What it points to is kept in `kept`."""

    _fields_ = (
        ("command", ctypes.c_void_p),
        ("num_args", ctypes.c_uint32),
        ("num_svm_args", ctypes.c_uint32),
        ("num_exec_infos", ctypes.c_uint32),
        ("work_dim", ctypes.c_uint32),
        ("arg_list", ctypes.c_void_p),
        ("arg_svm_list", ctypes.c_void_p),
        ("exec_info_list", ctypes.c_void_p),
        ("global_work_offset", ctypes.c_void_p),
        ("global_work_size", ctypes.c_void_p),
        ("local_work_size", ctypes.c_void_p),
    )


def _words(values: Sequence[int] | None, kept: list):
    if values is None:
        return None
    kept.append((ctypes.c_uint64 * len(values))(*values))
    return ctypes.addressof(kept[-1])


def config(
    command: int | None,
    *,
    arguments=(),
    svm=(),
    exec_infos=(),
    offset=None,
    size=None,
    local=None,
    work_dim=0,
) -> Config:
    """arguments: (index, bytes or a Buffer or None, size unless it follows); svm: (index, address);
    exec_infos: (name, bytes)."""
    kept: list = []
    entries, addresses, infos = [], [], []
    for index, value, *length in arguments:
        if isinstance(value, Buffer):
            value = int(value).to_bytes(8, "little")
        kept.append(ctypes.create_string_buffer(value, len(value)) if value else None)
        pointer = ctypes.addressof(kept[-1]) if value else None
        entries.append(Argument(index, length[0] if length else len(value), pointer))
    for index, address in svm:
        addresses.append(Argument(index, 0, address))
    for name, value in exec_infos:
        kept.append(ctypes.create_string_buffer(value, len(value)))
        infos.append(ExecInfo(name, len(value), ctypes.addressof(kept[-1])))
    made = Config(command, len(entries), len(addresses), len(infos), work_dim)
    for field, rows in (("arg_list", entries), ("arg_svm_list", addresses), ("exec_info_list", infos)):
        if rows:
            kept.append((type(rows[0]) * len(rows))(*rows))
            setattr(made, field, ctypes.addressof(kept[-1]))
    made.global_work_offset = _words(offset, kept)
    made.global_work_size = _words(size, kept)
    made.local_work_size = _words(local, kept)
    made.kept = kept
    return made


class Recorder(Session):
    """A session whose device has command-buffers. Statuses are returned by `status`, checked elsewhere."""

    def __init__(self, opencl, *devices: int, properties: int = 0):
        super().__init__(opencl, *devices, properties=properties)
        self.functions: dict[str, Callable] = {}
        for name, types in _COMMANDS.items():
            self.functions[name] = opencl.checked(name, _HEAD + types + _TAIL)
        for name, types in _OTHERS.items():
            self.functions[name] = opencl.checked(name, types)
        for name, types in _MAKERS.items():
            self.functions[name] = opencl.checked(name, types, ctypes.c_void_p)

    def status(self, name: str, *arguments) -> int:
        return self.functions[name](*arguments)

    def done(self, name: str, *arguments) -> None:
        status = self.status(name, *arguments)
        assert status == 0, f"{name}: {status}"

    def make(self, name: str, *arguments) -> tuple[int, int]:
        """(handle, status) of a function that makes a command-buffer."""
        status = ctypes.c_int32(1)
        return self.functions[name](*arguments, status) or 0, status.value

    def create(self, *queues: int, flags: int | None = None, asserts: int = 0) -> int:
        """A command-buffer of the queues, or of the session's."""
        queues = queues or (self.queue,)
        properties = [FLAGS, flags] if flags is not None else []
        properties += [ASSERTS, asserts] if asserts else []
        handle, status = self.make(
            "clCreateCommandBufferKHR", len(queues), list(queues), [*properties, 0] if properties else None
        )
        assert status == 0 and handle, status
        return self.keep(handle)

    def keep(self, handle: int) -> int:
        self.releases.append(("clReleaseCommandBufferKHR", handle))
        return handle

    def close(self) -> None:
        while self.releases:
            name, handle = self.releases.pop()
            if name in self.functions:
                self.done(name, handle)
            else:
                self.cl.ok(name, handle)

    def release(self, buffer: int) -> None:
        """Now, not with the session."""
        self.releases.remove(("clReleaseCommandBufferKHR", buffer))
        self.done("clReleaseCommandBufferKHR", buffer)

    def command(
        self, name: str, buffer: int, *arguments, after=(), queue=None, properties=None, handle=None
    ) -> int:
        """Records a command behind sync points; returns its own."""
        point = ctypes.c_uint32()
        points = (ctypes.c_uint32 * len(after))(*after) if after else None
        tail = (len(after), points, point, handle)
        self.done(name, buffer, queue, properties, *arguments, *tail)
        return point.value

    def record(self, buffer: int, kernel: int, items, *arguments, local=None, offset=None, **others) -> int:
        """Records a launch with these arguments; returns its sync point."""
        self.set_arguments(kernel, arguments)
        shape = sizes(items)
        where = (kernel, len(shape), sizes(offset), shape, sizes(local))
        return self.command("clCommandNDRangeKernelKHR", buffer, *where, **others)

    def finalize(self, buffer: int) -> None:
        self.done("clFinalizeCommandBufferKHR", buffer)

    def enqueue(self, buffer: int, *queues: int, after=(), event=None) -> None:
        chosen = (len(queues), list(queues)) if queues else (0, None)
        self.done("clEnqueueCommandBufferKHR", *chosen, buffer, len(after), list(after) or None, event)

    def update(self, buffer: int, *configs: Config) -> int:
        types = (ctypes.c_uint32 * len(configs))()
        pointers = [ctypes.addressof(entry) for entry in configs]
        return self.status("clUpdateMutableCommandsKHR", buffer, len(configs), types, pointers)

    def answer(self, name: str, handle: int, query: int) -> bytes:
        size = ctypes.c_uint64()
        self.done(name, handle, query, 0, None, size)
        data = ctypes.create_string_buffer(max(size.value, 1))
        self.done(name, handle, query, size.value, data, None)
        return data.raw[: size.value]

    def queues_of(self, buffer: int) -> list[int]:
        data = self.answer("clGetCommandBufferInfoKHR", buffer, QUEUES)
        return [int.from_bytes(data[at : at + 8], "little") for at in range(0, len(data), 8)]

    def state(self, buffer: int) -> int:
        return int.from_bytes(self.answer("clGetCommandBufferInfoKHR", buffer, STATE), "little")
