"""Every limit of the device that follows from the CPU, its caches and its memory."""

from __future__ import annotations

import os

from .. import settings
from .cpu import Cpu, host_cpu
from .files import read
from .memory import global_memory_size
from .topology import Cache, caches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_WORK_GROUP_SIZE = 4096  # of what there is code for; max_work_group_size() is what the device says
SUB_GROUP_SIZES = (4, 8, 16, 32, 64)  # that a kernel may require (cl_intel_required_subgroup_size)
MAX_PARAMETER_SIZE = 4352  # 255 arguments of up to 16 bytes, and a few structures by value
MEM_BASE_ADDR_ALIGN = 128  # bytes: the largest built-in type is long16
LOCAL_MEMORY_MINIMUM = 64 << 10
LOCAL_MEMORY_MAXIMUM = 512 << 10
PRINTF_BUFFER_SIZE = 8 << 20
# No limit of ours: buffers of any size may be constant. But programs keep this one in 32 bits (the CTS does).
MAX_CONSTANT_BUFFER_SIZE = 1 << 30
MAX_GLOBAL_VARIABLE_SIZE = 256 << 20
# Of images; native_shim/src/memory/image.h has the sizes, too.
IMAGE2D_MAX_SIZE = 16384
IMAGE3D_MAX_SIZE = 2048
IMAGE_MAX_ARRAY_SIZE = 2048
IMAGE_MAX_BUFFER_SIZE = 1 << 27
IMAGE_PITCH_ALIGNMENT = IMAGE_BASE_ADDRESS_ALIGNMENT = 1  # pixels
MAX_IMAGE_ARGS = 128  # of each access qualifier; no limit of ours, but CL_DEVICE_MAX_PARAMETER_SIZE is one
MAX_SAMPLERS = 128
# Of pipes; native_shim/src/memory/pipe.h has the size, too. None is a limit of ours.
MAX_PIPE_ARGS = 16
PIPE_MAX_ACTIVE_RESERVATIONS = 1 << 16
PIPE_MAX_PACKET_SIZE = 1 << 16
MAX_NAMED_BARRIERS = 64  # of a kernel; native_shim/src/abi/kernel_abi.h has it, too

# Of queues on the device; native_shim/src/api/queue.c has the sizes, too. What a kernel enqueues takes some
# hundred bytes until it is complete. The numbers of queues and of events are no limits of ours.
DEVICE_QUEUE_PREFERRED_SIZE = 16 << 20
DEVICE_QUEUE_MAX_SIZE = 1 << 30
MAX_DEVICE_QUEUES = 1 << 16
MAX_DEVICE_EVENTS = 1 << 20


class Limits:
    """The limits of this machine; sizes in bytes."""

    __slots__ = ("cache_line", "cache_size", "clock_mhz", "cpu", "global_memory", "local_memory")

    def __init__(self, cpu: Cpu, data_caches: Sequence[Cache], global_memory: int) -> None:
        """data_caches: of one CPU, innermost first; global_memory: in bytes."""
        self.cpu = cpu
        outermost = data_caches[-1] if data_caches else None
        self.cache_line = outermost.line if outermost else 64
        self.cache_size = outermost.size if outermost else 0
        self.clock_mhz = cpu.mhz
        self.global_memory = global_memory
        # Local memory is ordinary memory that should stay in a core's own cache: half of the second level.
        second = next((found.size for found in data_caches if found.level == 2), 0)
        self.local_memory = min(max(second // 2, LOCAL_MEMORY_MINIMUM), LOCAL_MEMORY_MAXIMUM)


def max_work_group_size() -> int:
    """CL_DEVICE_MAX_WORK_GROUP_SIZE, and CL_DEVICE_MAX_WORK_ITEM_SIZES of each dimension."""
    return settings.integer("CL_DRIVER_MAX_WORK_GROUP_SIZE") or MAX_WORK_GROUP_SIZE


_host: list[Limits] = []


def host_limits() -> Limits:
    """The limits of this machine; computed once."""
    if not _host:
        first = min(os.sched_getaffinity(0))
        _host.append(Limits(host_cpu(), caches(first), global_memory_size()))
    return _host[0]


def machine_identity() -> bytes:
    """Something that stays the same on this machine across processes and reboots, for the device's UUID."""
    return (read("/etc/machine-id") or read("/proc/sys/kernel/hostname")).encode()
