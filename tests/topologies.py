"""Folders that look like /sys/devices/system, of machines that tests make up."""

from collections.abc import Sequence
from pathlib import Path


def make_machine(folder: Path, nodes: Sequence[range], sharers: int) -> None:
    """A machine of those memory nodes (their CPUs), of which so many CPUs share an L3 cache.

    Each CPU has an L1 and an L2 cache of its own. folder: exists; gets cpu/online and CPUs' and nodes' files.
    """
    cpus = [cpu for node in nodes for cpu in node]
    write(folder / "cpu" / "online", f"{cpus[0]}-{cpus[-1]}")
    for number, node in enumerate(nodes):
        write(folder / "node" / f"node{number}" / "cpulist", f"{node[0]}-{node[-1]}")
    for cpu in cpus:
        group = range(cpu // sharers * sharers, cpu // sharers * sharers + sharers)
        caches = [("Data", "32K", [cpu]), ("Unified", "1M", [cpu]), ("Unified", "32M", group)]
        for index, (kind, size, cpus_of_cache) in enumerate(caches):
            files = folder / "cpu" / f"cpu{cpu}" / "cache" / f"index{index}"
            write(files / "level", str(index + 1))
            write(files / "type", kind)
            write(files / "size", size)
            write(files / "coherency_line_size", "64")
            write(files / "shared_cpu_list", ",".join(map(str, cpus_of_cache)))


def write(path: Path, text: str) -> None:
    """A file of one line, with the folders that it is in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")
