"""Which CPUs share what: caches and NUMA nodes, from /sys. CPUs are the kernel's numbers."""

from __future__ import annotations

from .. import settings
from .files import numbered, read

SYSTEM = "/sys/devices/system"


def system() -> str:
    """The folder that tells: /sys/devices/system, or CL_DRIVER_TOPOLOGY."""
    return settings.text("CL_DRIVER_TOPOLOGY") or SYSTEM


class Cache:
    """A data or unified cache. size and line in bytes; cpus: who shares it."""

    __slots__ = ("cpus", "level", "line", "size")

    def __init__(self, level: int, size: int, line: int, cpus: frozenset[int]) -> None:
        self.level = level
        self.size = size
        self.line = line
        self.cpus = cpus


def parse_cpu_list(text: str) -> frozenset[int]:
    """The kernel's list format, "0-3,8": the set of its numbers. ValueError where it is none."""
    cpus: set[int] = set()
    for part in text.strip().split(","):
        if part:
            first, _, last = part.partition("-")
            cpus.update(range(int(first), int(last or first) + 1))
    return frozenset(cpus)


def parse_size(text: str) -> int:
    """ "32K", "1024K", "2M": bytes. ValueError where it is no number."""
    unit = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:], 1)
    return int(text.rstrip("KMG")) * unit


def caches(cpu: int, system: str = SYSTEM) -> tuple[Cache, ...]:
    """The data and unified caches of a CPU, innermost first; empty where the kernel tells nothing."""
    found = []
    for index in numbered(f"{system}/cpu/cpu{cpu}/cache", "index"):
        if read(index + "/type") not in ("Data", "Unified"):
            continue
        try:
            found.append(
                Cache(
                    int(read(index + "/level")),
                    parse_size(read(index + "/size")),
                    int(read(index + "/coherency_line_size")),
                    parse_cpu_list(read(index + "/shared_cpu_list")),
                )
            )
        except ValueError:
            continue
    return tuple(sorted(found, key=lambda cache: cache.level))


def cache(cpu: int, level: int, system: str = SYSTEM) -> Cache | None:
    """The CPU's data cache of that level, if it has one."""
    return next((found for found in caches(cpu, system) if found.level == level), None)


def nodes(system: str = SYSTEM) -> tuple[frozenset[int], ...]:
    """The CPUs of each NUMA node, in order of the nodes; nodes without CPUs left out."""
    found = []
    for folder in numbered(system + "/node", "node"):
        try:
            found.append(parse_cpu_list(read(folder + "/cpulist")))
        except ValueError:
            continue
    return tuple(cpus for cpus in found if cpus)


def groups(cpus: tuple[int, ...], domain: str, system: str = SYSTEM) -> list[tuple[int, ...]]:
    """`cpus` split by what they share: domain is "numa", "l4", "l3", "l2" or "l1".

    Groups come in the order of their first CPU. A domain that the machine does not have gives [].
    """
    if domain == "numa":
        sharers = {cpu: node for node in nodes(system) for cpu in node}
    else:
        sharers = {}
        for cpu in cpus:  # one look for all that share a cache: there may be hundreds of CPUs
            if cpu not in sharers and (found := cache(cpu, int(domain[1]), system)):
                sharers.update(dict.fromkeys({*found.cpus, cpu}, found.cpus))
    if any(cpu not in sharers for cpu in cpus):
        return []
    split: dict[frozenset[int], list[int]] = {}
    for cpu in cpus:
        split.setdefault(sharers[cpu], []).append(cpu)
    return [tuple(group) for group in split.values()]
