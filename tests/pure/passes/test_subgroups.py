"""Sub-groups before the passes, where each work-item runs by itself until its sub-group must act together,
and after them, where lanes run in lockstep under masks: the results are the same."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from cl_driver.interp.run import run, run_plan

from .subgroup_kernels import arguments, kernels, source
from .support import compile_cl, make_plan

KERNELS = kernels()
# More run in tests/runtime/codegen/simd/test_subgroups.py.
NAMES = ["arithmetic_int_some", "ballots_uint_some", "logical_int_all", "moves_char_some", "queries_uint_all"]
NAMES += ["uniform_double_all", "votes_double_some"]
# (width, global size, local size, lanes along the linear local id)
LAUNCHES = [
    (1, (3,), (3,), False),
    (4, (11,), (11,), False),
    (8, (5, 3), (5, 3), True),
    (64, (70,), (70,), True),
]


@pytest.mark.parametrize("name", NAMES)
def test_before_and_after_the_passes(name):
    _, type_, results = KERNELS[name]
    module = compile_cl(source())
    for width, global_size, local_size, flat in LAUNCHES:
        given = arguments(type_, results, int(np.prod(global_size)))
        want, got = copy.deepcopy(given), copy.deepcopy(given)
        run(module, name, want, global_size, local_size, sub_group_size=width)
        plan = make_plan(module, name, width=width, linear_lanes=flat, sub_groups=True)
        run_plan(plan, got, global_size, local_size, check_shapes=width > 1)
        items = len(given[1])
        wrong = np.nonzero(want[0] != got[0])[0] // items
        assert not len(wrong), (width, sorted(set(wrong)), want[0], got[0])
