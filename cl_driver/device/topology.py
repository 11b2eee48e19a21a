"""Which CPUs share what: caches and NUMA nodes, from /sys. CPUs are the kernel's numbers."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

SYSTEM = Path("/sys/devices/system")


@dataclass(frozen=True)
class Cache:
    """A data or unified cache. size and line in bytes; cpus: who shares it."""

    level: int
    size: int
    line: int
    cpus: frozenset[int]


def parse_cpu_list(text: str) -> frozenset[int]:
    """The kernel's list format, "0-3,8": the set of its numbers. ValueError where it is none."""
    cpus: set[int] = set()
    for part in text.strip().split(","):
        if part:
            first, _, last = part.partition("-")
            cpus.update(range(int(first), int(last or first) + 1))
    return frozenset(cpus)


def parse_size(text: str) -> int:
    """"32K", "1024K", "2M": bytes."""
    text = text.strip()
    unit = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:], 1)
    return int(text.rstrip("KMG")) * unit


@functools.cache
def caches(cpu: int, system: Path = SYSTEM) -> tuple[Cache, ...]:
    """The data and unified caches of a CPU, innermost first; empty where the kernel tells nothing."""
    found = []
    for index in sorted((system / "cpu" / f"cpu{cpu}" / "cache").glob("index[0-9]*")):
        try:
            if (index / "type").read_text().strip() not in ("Data", "Unified"):
                continue
            found.append(
                Cache(
                    int((index / "level").read_text()),
                    parse_size((index / "size").read_text()),
                    int((index / "coherency_line_size").read_text()),
                    parse_cpu_list((index / "shared_cpu_list").read_text()),
                )
            )
        except (OSError, ValueError):
            continue
    return tuple(sorted(found, key=lambda cache: cache.level))


def cache(cpu: int, level: int, system: Path = SYSTEM) -> Cache | None:
    """The CPU's data cache of that level, if it has one."""
    return next((found for found in caches(cpu, system) if found.level == level), None)


@functools.cache
def nodes(system: Path = SYSTEM) -> tuple[frozenset[int], ...]:
    """The CPUs of each NUMA node, in order of the nodes; nodes without CPUs left out."""
    found = []
    for folder in sorted((system / "node").glob("node[0-9]*"), key=lambda path: int(path.name[4:])):
        try:
            cpus = parse_cpu_list((folder / "cpulist").read_text())
        except (OSError, ValueError):
            continue
        if cpus:
            found.append(cpus)
    return tuple(found)


def groups(cpus: tuple[int, ...], domain: str, system: Path = SYSTEM) -> list[tuple[int, ...]]:
    """`cpus` split by what they share: domain is "numa", "l4", "l3", "l2" or "l1".

    Groups come in the order of their first CPU. A domain that the machine does not have gives [].
    """
    if domain == "numa":
        sharers = {cpu: node for node in nodes(system) for cpu in node}
    else:
        level = int(domain[1])
        sharers = {cpu: found.cpus for cpu in cpus if (found := cache(cpu, level, system))}
    if any(cpu not in sharers for cpu in cpus):
        return []
    split: dict[frozenset[int], list[int]] = {}
    for cpu in cpus:
        split.setdefault(sharers[cpu], []).append(cpu)
    return [tuple(group) for group in split.values()]
