"""How much memory the device has: the machine's, or what a control group or a setting leaves of it."""

from __future__ import annotations

import os

from .. import settings
from .files import read

PAGE = 4096
LEAST = 32 << 20  # of CL_DEVICE_MAX_MEM_ALLOC_SIZE, which is as much
UNLIMITED = 1 << 62  # version 1 of control groups writes a huge number where there is no limit


def global_memory_size(proc: str = "/proc", cgroups: str = "/sys/fs/cgroup") -> int:
    """CL_DEVICE_GLOBAL_MEM_SIZE in bytes, a multiple of the page size."""
    limits = [limit for limit in _cgroup_limits(proc, cgroups) if 0 < limit < UNLIMITED]
    wanted = settings.integer("CL_DRIVER_MEMORY")
    if wanted is not None:
        limits.append(max(wanted, LEAST))
    return min([_physical_memory(proc), *limits]) // PAGE * PAGE


def _physical_memory(proc: str) -> int:
    for line in read(proc + "/meminfo").splitlines():
        fields = line.split()
        if fields[0] == "MemTotal:" and fields[1].isdigit():
            return int(fields[1]) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _cgroup_limits(proc: str, cgroups: str) -> list[int]:
    """The limits of this process's group and of every group above it, of either version."""
    limits = []
    for line in read(proc + "/self/cgroup").splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers == "":
            root, name = cgroups, "memory.max"
        elif "memory" in controllers.split(","):
            root, name = cgroups + "/memory", "memory.limit_in_bytes"
        else:
            continue
        path = path.rstrip("/")
        while True:
            # "max", or "" for a group that is not visible in this namespace, is no limit.
            limit = read(f"{root}{path}/{name}")
            if limit.isdigit():
                limits.append(int(limit))
            if not path:
                break
            path = path.rpartition("/")[0]
    return limits
