"""Random kernels agree before and after the passes, at widths 1, 4 and 8; all values have their shapes."""

import pytest

from tests.pure.random.kernels import check

pytestmark = pytest.mark.long


@pytest.mark.parametrize("seed", range(16))
def test_optimised(seed):
    check(seed, "-O2")


@pytest.mark.parametrize("seed", range(100, 106))
def test_as_clang_writes_it_without_optimisation(seed):
    check(seed, "-O0")


@pytest.mark.parametrize("seed", range(300, 304))
def test_sub_groups(seed):
    check(seed, "-O2" if seed & 1 else "-O0", (4, 8), sub_groups=True)
