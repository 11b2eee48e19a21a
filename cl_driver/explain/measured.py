"""What launches of a kernel took in a profile (CL_DRIVER_PROFILE), beside what the report estimates."""

from __future__ import annotations

from typing import NamedTuple


class Measured(NamedTuple):
    """Launches of a kernel. Times in ns. program: which had the profile made; rate: bytes a second, and
    operations on floats; None: not known."""

    program: str
    launches: int
    items: int
    time: int
    least: int
    bytes_rate: float | None = None
    operations_rate: float | None = None

    @property
    def per_item(self) -> float:
        """ns, of the whole machine."""
        return self.time / max(self.items, 1)


def measured_text(measured: Measured, estimated: float | None) -> str:
    """A sentence. estimated: ns of a work-item by the model of costs, of the whole machine."""
    count = measured.launches
    text = f"measured in {measured.program}: {count} launch{'' if count == 1 else 'es'}"
    text += f" of {measured.items / count:.6g} work-items" + ("" if count == 1 else " in the mean")
    text += f", {_time(measured.time / count)} each, {_time(measured.least)} at least"
    rates = [f"{measured.bytes_rate / 1e9:.3g} GB/s"] if measured.bytes_rate else []
    rates += [f"{measured.operations_rate / 1e9:.3g} GFLOP/s"] if measured.operations_rate else []
    text += "".join(f", {rate}" for rate in rates)
    text += f"; {measured.per_item:.3g} ns a work-item"
    if estimated:
        text += f", estimated {estimated:.3g} ns: {measured.per_item / estimated:.2g} times the estimate"
    return text


def _time(ns: float) -> str:
    return f"{ns / 1e3:.3g} \N{MICRO SIGN}s" if ns < 1e6 else f"{ns / 1e6:.4g} ms"
