"""Every function of sub-groups, for every type, in full and partial sub-groups, where all work-items meet it
and where some do: compiled code does what the plain interpreter does."""

import copy
import functools

import numpy as np
import pytest
from kernel_harness import Program, compile_c

from cl_driver.codegen.options import CodegenOptions
from cl_driver.interp.run import run as interpret
from cl_driver.jit.target import host_target
from tests.pure.subgroup_kernels import arguments, kernels, source

KERNELS = kernels()
# (width, global size, local size, lanes along the linear local id)
LAUNCHES = [
    (1, 5, 5, False),
    (4, 22, 11, False),
    (8, (16, 2), (8, 2), False),
    (16, (14, 3), (7, 3), True),
]


@functools.cache
def program(width: int, flat: bool) -> Program:
    options = CodegenOptions(features=frozenset(host_target().features))
    return Program(compile_c(source()), options, width, flat_lanes=flat, sub_groups=True)


def check(name: str, launches) -> None:
    _, type_, results = KERNELS[name]
    for width, global_size, local_size, flat in launches:
        items = int(np.prod(global_size))
        want = arguments(type_, results, items)
        got = copy.deepcopy(want)
        compiled = program(width, flat)
        sizes = [(s,) if isinstance(s, int) else s for s in (global_size, local_size)]
        interpret(compiled.module, name, want, *sizes, sub_group_size=width)
        compiled.run(name, global_size, local_size, *got)
        wrong = np.nonzero(want[0] != got[0])[0] // items
        assert not len(wrong), (width, sorted(set(wrong)), want[0], got[0])


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_every_function(name):
    check(name, LAUNCHES[KERNELS[name][2] % 2 :: 2] if KERNELS[name][1] in ("short", "ulong") else LAUNCHES)


def test_wider_than_any_register():
    check("moves_uint_all", [(64, 70, 70, True), (32, 40, 40, False)])
    check("ballots_uint_some", [(64, 70, 70, False), (32, 40, 40, True)])
