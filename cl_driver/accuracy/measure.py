"""Measures functions of a device, one after another."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .device import Device, Measured
from .functions import FUNCTIONS, Type, arguments, typical
from .reference import Reference

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
    worst: tuple
    count: int
    cycles: float | None
    curve: tuple[np.ndarray, np.ndarray]
    reference_bits: int

    @property
    def is_over(self) -> bool:
        return self.bound is not None and self.error > self.bound


def judge(reference: Reference, name: str, inputs: list[np.ndarray], out, second, cycles=None) -> Row:
    """The row of results."""
    errors = reference.errors(name, inputs, out, second)
    at = int(np.argmax(errors))
    worst = tuple(array[at].item() for array in inputs)
    bound = FUNCTIONS[name].bound(reference.type)
    type_, bits, curve = reference.type.name, reference.mantissa, _curve(inputs[0], errors)
    return Row(name, type_, float(errors[at]), bound, worst, len(out), cycles, curve, bits)


def _curve(x: np.ndarray, errors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
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
