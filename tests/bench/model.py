"""What a benchmark is: a kernel, its arguments and launches, what comes out, and what counts as right."""

from __future__ import annotations

import inspect
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

KERNELS = Path(__file__).resolve().parent / "kernels"


def kernel_file(name: str) -> Path:
    """The source of a kernel: in the folder that is named as its cases' module."""
    return next(KERNELS.glob(f"*/{name}.cl"))


@dataclass(frozen=True)
class Local:
    """A kernel argument: this many bytes of local memory."""

    size: int


@dataclass(frozen=True)
class Image:
    """A kernel argument: an image of texels[height, width, channels], or [depth, height, width, channels].

    1 channel is CL_R, 4 are CL_RGBA; uint8 is CL_UNORM_INT8, float16 CL_HALF_FLOAT, float32 CL_FLOAT.
    """

    texels: np.ndarray


@dataclass(frozen=True)
class Launch:
    """One clEnqueueNDRangeKernel. Arguments: names of Case.memory, numpy scalars or vectors, Local.

    local_size: None leaves it to the driver.
    """

    arguments: Sequence
    global_size: tuple[int, ...]
    local_size: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Case:
    """A benchmark at one size.

    memory: initial contents of each buffer or image; the launches run in order and may do so again and again,
        but only a run on the initial contents is checked.
    expected: computes the contents that the named ones must have after one run.
    bytes, flops: of one run, as a programmer counts them: every operand once from memory; integer operations
        count as flops where they are the point. 0 where it says nothing.
    rtol, atol: |got - expected| <= atol + rtol * |expected|, for each element.
    outliers: the share of elements that may be outside, for kernels where a last bit decides a branch.
    """

    memory: dict[str, np.ndarray | Image]
    launches: Sequence[Launch]
    expected: Callable[[], dict[str, np.ndarray]]
    bytes: int = 0
    flops: int = 0
    rtol: float = 0.0
    atol: float = 0.0
    outliers: float = 0.0

    def initial(self, name: str) -> np.ndarray:
        """The contents of a buffer or image before the first launch."""
        memory = self.memory[name]
        return memory.texels if isinstance(memory, Image) else memory


@dataclass(frozen=True)
class Benchmark:
    """A kernel, whose source is kernels/TOPIC/KERNEL.cl, and the function that makes its cases.

    kernel: its name, where that is not the benchmark's.
    """

    name: str
    topic: str
    make: Callable[..., Case]
    small: dict = field(default_factory=dict)  # parameters of a case that tests can afford
    hand: float | None = None  # ms of hand-written SIMD elsewhere (README.md)
    kernel: str = ""

    @property
    def entry_point(self) -> str:
        return self.kernel or self.name

    @property
    def source(self) -> bytes:
        return kernel_file(self.entry_point).read_bytes()

    @property
    def summary(self) -> str:
        """What the case is, in a line."""
        return inspect.getdoc(self.make).splitlines()[0]

    def case(self, small: bool = False) -> Case:
        """The benchmark's case; always the same contents."""
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        return self.make(rng, **(self.small if small else {}))


BENCHMARKS: dict[str, Benchmark] = {}


def benchmark(topic: str, hand: float | None = None, **small):
    """Registers a function (rng, **sizes) -> Case under its name."""

    def register(make):
        BENCHMARKS[make.__name__] = Benchmark(make.__name__, topic, make, small, hand)
        return make

    return register


def check(case: Case, expected: dict[str, np.ndarray], got: dict[str, np.ndarray]) -> str | None:
    """What is wrong with what a run left in memory, or None."""
    for name, want in expected.items():
        have = got[name].reshape(want.shape)
        exact = want.dtype.kind in "iub" and not (case.rtol or case.atol)
        if exact:
            wrong = have != want
        else:
            near = np.asarray(want, np.float64)
            with np.errstate(invalid="ignore"):
                wrong = ~(np.abs(have.astype(np.float64) - near) <= case.atol + case.rtol * np.abs(near))
        count = int(np.count_nonzero(wrong))
        if count > case.outliers * want.size:
            at = tuple(int(k) for k in np.argwhere(wrong)[0])
            return f"{name}: {count} of {want.size} wrong, first {list(at)}: {have[at]}, not {want[at]}"
    return None
