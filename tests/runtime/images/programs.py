"""Programs that use images, coordinates and colours for them, and what may differ from reference.py."""

from __future__ import annotations

import functools
import os

import numpy as np

from cl_driver.codegen.llvm.options import CodegenOptions
from cl_driver.device.target import host_target
from tests.runtime.images import reference as reference
from tests.runtime.kernel_harness import Program, compile_c

OPTIONS = CodegenOptions(features=frozenset(host_target(os.environ.get("CL_DRIVER_TEST_CPU", "")).features))
POINTS = 96


@functools.cache
def compiled(text: str) -> bytes:
    return compile_c(text)


@functools.cache
def prepared(text: str, *known: tuple[int, bytes]) -> Program:
    """known: numbers of arguments, and what is known of them."""
    return Program(compiled(text), OPTIONS, argument_values=known)


def kind_of(type_: str) -> str:
    return {"S": "i", "U": "ui"}[type_[0]] if reference.is_integer(type_) else "f"


NUMBERS = {"f": np.float32, "i": np.int32, "ui": np.uint32}


def points(rng, sizes, dims, arrayed, inside: bool) -> np.ndarray:
    """Integer coordinates; not inside: up to 3 beyond in all directions."""
    at = np.zeros((POINTS, 4), np.int32)
    beyond = 0 if inside else 3
    for k in range(dims):
        at[:, k] = rng.integers(-beyond, sizes[k] + beyond, POINTS)
    if arrayed:
        at[:, dims] = rng.integers(-beyond, sizes[3] + beyond, POINTS)
    return at


def compare(found, wanted, order: str, type_: str) -> None:
    if reference.is_integer(type_) or type_ in ("HALF_FLOAT", "FLOAT"):
        assert (found.astype(np.float64) == wanted).all()
    else:
        limit = 1.5 * np.spacing(np.abs(wanted).astype(np.float32))
        if order.startswith("s"):
            limit = limit + 1e-7
        assert (np.abs(found - wanted) <= limit).all()


def colours_to_write(rng, count: int, type_: str, kind: str) -> np.ndarray:
    if kind == "f":
        return rng.uniform(-1.4, 1.4, (count, 4)).astype(np.float32)
    high = 1 << int(rng.integers(4, 31))
    return rng.integers(-high if kind == "i" else 0, high, (count, 4)).astype(NUMBERS[kind])
