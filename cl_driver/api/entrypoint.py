"""What the door calls: functions bound to operations by name, and the peers of C handles.

An operation is an entry point's name ("clBuildProgram") or one of the control plane's own that the C glue
needs beside them ("build_run"). Its function gets the request's values as positional arguments; the first
ones may be keys of peers, which arrive resolved. It returns None or a sequence of plain values (int, bytes,
str, None, lists of them), or raises CLError. No other exception is meant; the door turns any into
CL_OUT_OF_HOST_MEMORY.
"""

from __future__ import annotations

import _thread
import importlib
import itertools
import os

from .errors import CLError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar

    # What passes the door (door/codec.py), as a request's values and as an answer's.
    Value: TypeAlias = int | bytes | str | None | Sequence["Value"]
    Operation: TypeAlias = Callable[..., Sequence[Value] | None]
    Bound = TypeVar("Bound", bound=Operation)

    class Peer(Protocol):
        """invalid: the error code for a handle that is none of this class's."""

        invalid: ClassVar[int]

    Kind = TypeVar("Kind", bound=Peer)

# Chapters are imported by the first call of one of their operations: devices cost no compiler options.
CHAPTERS = {
    "device": ("clCreateSubDevices", "cluster_device", "device_limits"),
    "device_info": ("clGetDeviceInfo",),
    "context": ("clCreateContext",),
    "program": (
        "clCreateProgramWithSource",
        "clCreateProgramWithIL",
        "clCreateProgramWithBinary",
        "clCreateProgramWithBuiltInKernels",
        "clSetProgramSpecializationConstant",
        "clUnloadCompiler",
    ),
    "program_build": (
        "clBuildProgram",
        "clCompileProgram",
        "clLinkProgram",
        "build_run",
    ),
    "program_info": (
        "clGetProgramInfo",
        "clGetProgramBuildInfo",
        "program_binaries",
        "program_executable",
        "program_kernels",
        "kernels_of",
    ),
    "kernel": (
        "clGetKernelInfo",
        "clGetKernelArgInfo",
        "clGetKernelWorkGroupInfo",
        "kernel_variant",
        "kernel_variant_of",
    ),
}
# A host may change its root folder when it has a context, and then there is nothing to import any more. So
# what tells it that a program cannot be built is there before.
_WITH = {"context": ("program", "program_build", "program_info")}
_chapter_of = {operation: chapter for chapter, operations in CHAPTERS.items() for operation in operations}

# The root device needs no call to be made: its peer has this key in every process.
ROOT_DEVICE_KEY = 1


class Lock:
    """A lock for `with` that a forked child finds open, whoever held it in the parent."""

    __slots__ = ("_lock",)
    _all: ClassVar[list[Lock]] = []

    def __init__(self) -> None:
        self._lock = _thread.allocate_lock()
        self._all.append(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    @classmethod
    def renew(cls) -> None:
        """Opens all locks: in a forked child, whose other threads are gone."""
        for lock in cls._all:
            lock._lock = _thread.allocate_lock()


os.register_at_fork(after_in_child=Lock.renew)


class _Registry:
    """The functions by operation, the peers by key."""

    def __init__(self) -> None:
        self.functions: dict[str, tuple[Operation, tuple[type[Peer], ...]]] = {}
        self.peers: dict[int, object] = {}
        self.keys = itertools.count(ROOT_DEVICE_KEY + 1)
        self.highest = ROOT_DEVICE_KEY
        self.lock = Lock()


_registry = _Registry()


def entrypoint(operation: str, *peer_types: type[Peer]) -> Callable[[Bound], Bound]:
    """Binds a function to an operation. peer_types: classes of the peers whose keys come first."""

    def bind(function: Bound) -> Bound:
        _registry.functions[operation] = (function, peer_types)
        return function

    return bind


def call(operation: str, values: list[Any]) -> list[Value]:
    """Runs an operation; returns the answer's values. Raises CLError, or what a defect raises.

    values: of the request, as decoded; the data plane sends them as the operation wants them.
    """
    bound = _registry.functions.get(operation)
    if bound is None:
        chapter = _chapter_of[operation]
        for each in (chapter, *_WITH.get(chapter, ())):
            importlib.import_module(f".{each}", __package__)
        bound = _registry.functions[operation]
    function, peer_types = bound
    if peer_types:
        peers: list[object] = [peer(key, kind) for key, kind in zip(values, peer_types, strict=False)]
        answer = function(*peers, *values[len(peer_types) :])
    else:
        answer = function(*values)
    return [] if answer is None else list(answer)


def adopt(peer_object: object) -> int:
    """Keeps the Python peer of a handle; returns its key."""
    with _registry.lock:
        key = _registry.highest = next(_registry.keys)
    _registry.peers[key] = peer_object
    return key


def highest_key() -> int:
    """The highest key handed out so far: a process that forked keeps the peers up to it."""
    return _registry.highest


def start_keys_after(key: int) -> None:
    """Hands out higher keys only: a runtime process that replaces one that died must not reuse its keys."""
    with _registry.lock:
        _registry.highest = max(key, _registry.highest)
        _registry.keys = itertools.count(_registry.highest + 1)


def peer(key: int, kind: type[Kind]) -> Kind:
    """The peer with that key. The kind's `invalid` code, CL_INVALID_..., where there is none of
    that class."""
    if key == ROOT_DEVICE_KEY and key not in _registry.peers:
        importlib.import_module(".device", __package__)
    found = _registry.peers.get(key)
    if not isinstance(found, kind):
        raise CLError(kind.invalid, "it is not there any more: the runtime process that had it has ended")
    return found


def set_root_device(device: object) -> None:
    """Called once by api/device.py."""
    _registry.peers[ROOT_DEVICE_KEY] = device


def forget(keys: Iterable[int]) -> None:
    """Drops the peers of destroyed handles; unknown keys are ignored."""
    for key in keys:
        _registry.peers.pop(key, None)
