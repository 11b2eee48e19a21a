"""Launches of a kernel with several local sizes and build options, and what each takes."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..host_device import DeviceError
from ..spirv import reflect
from .device import Device
from .signature import Argument

OPTIONS = ("-cl-mad-enable", "-cl-denorms-are-zero", "-cl-fast-relaxed-math")
_COLUMNS = (1, 8, 16, 32, 64, 128, 256, 512, 1024)
_ROWS = (1, 4, 8, 16)
_LARGEST = 1024
_SETTLES = 0.5  # seconds until code for launches that repeat is there
_MEASURED = 0.2
_ROUNDS = 3


class Trial(NamedTuple):
    """local: None for the driver's own choice; seconds: of one launch, the least of some rounds; None if it
    cannot be launched so, for a reason."""

    local: tuple[int, ...] | None
    options: str
    seconds: float | None
    reason: str = ""


def candidates(global_size: Sequence[int], most: int = _LARGEST) -> list[tuple[int, ...]]:
    """Local sizes that are worth a try: they divide the global size."""
    found: list[tuple[int, ...]] = []
    for rows in _ROWS if len(global_size) > 1 else (1,):
        for columns in _COLUMNS:
            size = (columns, rows, 1)[: len(global_size)]
            is_whole = all(n % k == 0 for n, k in zip(global_size, size, strict=True))
            if columns * rows <= min(most, _LARGEST) and is_whole:
                found.append(size)
    return found


class Trials:
    """Of one kernel. Its buffers stay the same from launch to launch."""

    def __init__(
        self, device: Device, source: bytes, name: str, arguments: list[Argument], items: Sequence[int]
    ) -> None:
        self.device, self.source, self.name = device, source, name
        self.arguments, self.items = arguments, items
        self._buffers = {a.number: device.buffer(a.size) for a in arguments if a.kind == reflect.GLOBAL}

    def run(self, options: str, sizes: Sequence[tuple[int, ...] | None]) -> list[Trial]:
        """One for each size, in order. DeviceError where the program does not build."""
        kernel = self.device.kernel(self.source, self.name, options)
        best: dict[tuple[int, ...] | None, float] = {}
        reasons: dict[tuple[int, ...] | None, str] = {}
        for number in range(_ROUNDS + 1):  # interleaved, for what else the machine does changes
            for local in sizes:
                if local in reasons:
                    continue
                try:
                    self._set(kernel, local)
                    taken = self._measure(kernel, local, _MEASURED if number else _SETTLES)
                except DeviceError as error:
                    reasons[local] = str(error)
                    continue
                if number:
                    best[local] = min(taken, best.get(local, math.inf))
        self.device.release(kernel)
        return [Trial(local, options, best.get(local), reasons.get(local, "")) for local in sizes]

    def _measure(self, kernel: ctypes.c_void_p, local: tuple[int, ...] | None, seconds: float) -> float:
        """Seconds of a launch, in batches for so long; the least."""
        once = self.device.seconds(kernel, self.items, local, 1)
        launches = max(1, min(1000, int(seconds / 8 / max(once, 1e-6))))
        best, passed = once, once
        while passed < seconds:
            taken = self.device.seconds(kernel, self.items, local, launches)
            best, passed = min(best, taken / launches), passed + taken
        return best

    def _set(self, kernel: ctypes.c_void_p, local: tuple[int, ...] | None) -> None:
        _set(self.device, kernel, self.arguments, self._buffers, 1)
        group = math.prod(local or self.device.suggested(kernel, self.items))
        _set(self.device, kernel, self.arguments, self._buffers, group)


def _set(
    device: Device,
    kernel: ctypes.c_void_p,
    arguments: Sequence[Argument],
    buffers: Mapping[int, ctypes.c_void_p],
    group: int,
) -> None:
    """All arguments, for groups of so many work-items."""
    for a in arguments:
        if a.kind == reflect.GLOBAL:
            device.set(kernel, a.number, 8, (buffers[a.number].value or 0).to_bytes(8, "little"))
        elif a.kind == reflect.LOCAL:
            device.set(kernel, a.number, a.size * (group if a.per_item else 1), None)
        else:
            device.set(kernel, a.number, a.size, a.data)


def own_size(
    device: Device, kernel: ctypes.c_void_p, arguments: Sequence[Argument], items: Sequence[int]
) -> tuple[int, ...]:
    """The local size that the driver chooses. It may be asked once arguments are set, whatever they are."""
    small = device.buffer(64)
    _set(device, kernel, arguments, {a.number: small for a in arguments}, 1)
    found = tuple(device.suggested(kernel, items))
    device.free(small)
    return found


def size_text(local: Sequence[int] | None) -> str:
    """A local size, in words."""
    return "the driver's own" if local is None else "x".join(map(str, local))


def table(trials: Sequence[Trial], own: Trial) -> str:
    """The trials, the quickest first, each with its time as a share of own's."""
    names = [(size_text(t.local), t.options or "as given") for t in trials]
    width = max(len("local size"), *(len(name) for name, _ in names))
    more = max(len("build options"), *(len(options) for _, options in names))
    out = [f"{'local size':{width}}  {'build options':{more}}  {'time':>10}  {'of own':>7}"]
    rows = sorted(zip(names, trials, strict=True), key=lambda row: row[1].seconds or math.inf)
    for (name, options), trial in rows:
        row = f"{name:{width}}  {options:{more}}"
        if trial.seconds is None:
            out.append(f"{row}  {trial.reason}")
        else:
            share = f"{trial.seconds / own.seconds:7.2f}" if own.seconds else f"{'-':>7}"
            out.append(f"{row}  {trial.seconds * 1e6:7.4g} \N{MICRO SIGN}s  {share}")
    return "\n".join(out)
