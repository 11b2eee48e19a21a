"""The benchmarks, by topic. Importing this package registers them in model.BENCHMARKS."""

from tests.bench.cases import bits, compute, grids, groups, images, linear
from tests.bench.model import BENCHMARKS

__all__ = ["BENCHMARKS", "bits", "compute", "grids", "groups", "images", "linear"]
