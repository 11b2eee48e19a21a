"""How much memory the device has: the machine's, or what a control group leaves to this process."""

from __future__ import annotations

import functools
import os
from pathlib import Path

PAGE = 4096
UNLIMITED = 1 << 62  # cgroup v1 writes a huge number where there is no limit


@functools.cache
def global_memory_size(proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")) -> int:
    """CL_DEVICE_GLOBAL_MEM_SIZE in bytes, a multiple of the page size."""
    total = _physical_memory(proc)
    limits = [limit for limit in _cgroup_limits(proc, cgroups) if 0 < limit < UNLIMITED]
    return min([total, *limits]) // PAGE * PAGE


def _physical_memory(proc: Path) -> int:
    try:
        for line in (proc / "meminfo").read_text().splitlines():
            if line.startswith("MemTotal:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _cgroup_limits(proc: Path, cgroups: Path) -> list[int]:
    """The limits of this process's group and of every group above it, of either version."""
    try:
        lines = (proc / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return []
    limits = []
    for line in lines:
        _, controllers, path = (line.split(":", 2) + ["", ""])[:3]
        if controllers == "":
            root, name = cgroups, "memory.max"
        elif "memory" in controllers.split(","):
            root, name = cgroups / "memory", "memory.limit_in_bytes"
        else:
            continue
        folder = root / path.lstrip("/")
        while True:
            try:
                limits.append(int((folder / name).read_text()))
            except (OSError, ValueError):  # "max", or a group that is not visible in this namespace
                pass
            if folder == root or root not in folder.parents:
                break
            folder = folder.parent
    return limits
