"""Measures functions of a device, one after another."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .device import Device, Measured
from .functions import FUNCTIONS, Type, arguments, typical
from .reference import Reference

if TYPE_CHECKING:
    from .functions import Array

TIMED = 1 << 17  # work-items
_BINS = 400  # of a plot


@dataclass(frozen=True)
class Row:
    """What was found of a function and type.

    worst: the arguments that gave the largest error; cycles: of a core, for one element, None if that was not
    measured; curve: (arguments, largest errors near them) for the plot; reference_bits: of the mantissas of
    what the results were compared with.
    """

    name: str
    type: str
    error: float
    bound: float | None
    worst: tuple[float, ...]
    count: int
    cycles: float | None
    curve: tuple[Array, Array]
    reference_bits: int

    @property
    def is_over(self) -> bool:
        """Whether its error is larger than the specification allows."""
        return self.bound is not None and self.error > self.bound


def judge(
    reference: Reference,
    name: str,
    inputs: list[Array],
    out: Array,
    second: Array | None,
    cycles: float | None = None,
) -> Row:
    """The row of results. out, second: what the function returned, and what through its pointer."""
    errors = reference.errors(name, inputs, out, second)
    at = int(np.argmax(errors))
    worst = tuple(array[at].item() for array in inputs)
    bound = FUNCTIONS[name].bound(reference.type)
    type_, bits, curve = reference.type.name, reference.mantissa, _curve(inputs[0], errors)
    return Row(name, type_, float(errors[at]), bound, worst, len(out), cycles, curve, bits)


def _curve(x: Array, errors: Array) -> tuple[Array, Array]:
    """The largest errors of some hundred neighbouring arguments each."""
    keep = np.isfinite(x) & np.isfinite(errors)
    x, errors = x[keep].astype(np.float64), errors[keep]
    order = np.argsort(x, kind="stable")
    parts = [part for part in np.array_split(order, _BINS) if len(part)]
    tops = [part[np.argmax(errors[part])] for part in parts]
    return x[tops], errors[tops]


def measure(
    device: Device, types: list[Type], names: list[str], points: int, folder: Path, timed: bool
) -> Iterator[Row]:
    """A row for each type and function. folder: for the reference."""
    for type_ in types:
        reference = Reference(type_, folder)
        for name in names:
            rng = np.random.default_rng(zlib.crc32(f"{name}:{type_.name}".encode()))
            measured = Measured(device, name, type_)
            inputs = arguments(name, type_, points, rng)
            out, second = measured.results(inputs)
            cycles = None
            if timed:
                clock = reference.cycles_per_nanosecond()
                cycles = measured.nanoseconds(typical(name, type_, TIMED, rng)) * clock
            measured.release()
            yield judge(reference, name, inputs, out, second, cycles)
