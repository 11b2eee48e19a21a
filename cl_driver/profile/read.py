"""A profile's JSON as rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

FORMAT = "cl_driver profile 1"

# All that a page shows must be there; what is known of some kernels alone is not among them.
_NEEDED = (
    "program",
    "process",
    "wall_ns",
    "command_ns",
    "threads",
    "kernels",
    "transfers",
    "building",
    "waiting",
)


class NotAProfileError(Exception):
    """What is wrong with a file, as a sentence."""


class Row(NamedTuple):
    """A kernel, or a kind of transfer. Times are in ns; None: not known."""

    name: str
    is_kernel: bool
    commands: int
    failed: int
    time: int
    least: int
    most: int
    thread_time: int
    share: float  # %
    items: int | None
    moved: int | None  # bytes: read and written by kernels, copied or filled
    traffic: int | None  # bytes read and written, of copies as well
    bytes_time: int
    operations: int | None
    operations_time: int
    codes: dict[str, int]  # launches
    hardware: dict[str, int]

    @property
    def bytes_per_second(self) -> float | None:
        """That are moved."""
        return self.moved * 1e9 / self.bytes_time if self.moved is not None and self.bytes_time else None

    @property
    def traffic_per_second(self) -> float | None:
        """Bytes read and written."""
        return self.traffic * 1e9 / self.bytes_time if self.traffic is not None and self.bytes_time else None

    @property
    def operations_per_second(self) -> float | None:
        """On floating-point numbers."""
        if self.operations is None or not self.operations_time:
            return None
        return self.operations * 1e9 / self.operations_time

    @property
    def intensity(self) -> float | None:
        """Operations for each byte."""
        if not self.bytes_per_second or not self.operations_per_second:
            return None
        return self.operations_per_second / self.bytes_per_second


class Profile(NamedTuple):
    """The whole. calls: (name, count, ns, of that busy or None)."""

    program: str
    process: int
    wall: int
    command_time: int
    threads: int
    rows: list[Row]
    building: list[tuple[str, int, int, int | None]]
    at_launches: int
    in_background: int
    waiting: list[tuple[str, int, int, int | None]]
    peak_operations: float | None  # a second
    peak_bytes: float | None
    no_hardware: str


def _row(entry: dict[str, Any], is_kernel: bool) -> Row:
    has_bytes = "bytes_known" in entry
    traffic = entry["bytes_read"] + entry["bytes_written"] if has_bytes else None
    return Row(
        name=str(entry["name"]),
        is_kernel=is_kernel,
        commands=entry["launches" if is_kernel else "commands"],
        failed=entry["failed"],
        time=entry["time_ns"],
        least=entry["least_ns"],
        most=entry["most_ns"],
        thread_time=entry["thread_ns"],
        share=entry["share"],
        items=entry.get("work_items"),
        moved=entry.get("bytes", traffic),
        traffic=traffic,
        bytes_time=entry.get("bytes_time_ns", 0),
        operations=entry.get("operations"),
        operations_time=entry.get("operations_time_ns", 0),
        codes={code: about["launches"] for code, about in entry.get("codes", {}).items()},
        hardware=entry.get("hardware", {}),
    )


def _calls(part: dict[str, Any]) -> list[tuple[str, int, int, int | None]]:
    found = [(name, c["count"], c["time_ns"], c.get("busy_ns")) for name, c in part["calls"].items()]
    return sorted(found, key=lambda call: -call[2])


def read(path: Path) -> Profile:
    """The profile in a file. NotAProfileError, OSError."""
    try:
        found = json.loads(path.read_text())
    except ValueError as error:
        raise NotAProfileError(f"{path} is no JSON: {error}") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise NotAProfileError(f"{path} is no profile of this version ('{FORMAT}')")
    try:
        for name in _NEEDED:
            found[name]  # noqa: B018
        rows = [_row(entry, True) for entry in found["kernels"]]
        rows += [_row(entry, False) for entry in found["transfers"]]
        roofline = found.get("roofline", {})
        return Profile(
            program=str(found["program"]),
            process=found["process"],
            wall=found["wall_ns"],
            command_time=found["command_ns"],
            threads=found["threads"],
            rows=sorted(rows, key=lambda row: -row.time),
            building=_calls(found["building"]),
            at_launches=found["building"]["at_launches_ns"],
            in_background=found["building"]["background_ns"],
            waiting=_calls(found["waiting"]),
            peak_operations=roofline.get("operations_per_second"),
            peak_bytes=roofline.get("bytes_per_second"),
            no_hardware=str(found.get("no_hardware", "")),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise NotAProfileError(f"{path} lacks what a profile has: {error}") from error
