"""Every function of sub-groups, for every type, in full and partial sub-groups, where all work-items meet it
and where some do: compiled code does what the plain interpreter does.

CL_DRIVER_TEST_ALL=1 runs all of it; without, it is five types, and two launches of four for each kernel.
"""

import copy
import functools
import os

import numpy as np
import pytest

from cl_driver.codegen.llvm.options import CodegenOptions
from cl_driver.device.limits import SUB_GROUP_SIZES
from cl_driver.device.target import host_target
from cl_driver.interp.run import run as interpret
from tests.marks import halved
from tests.pure.passes.subgroup_kernels import arguments, kernels, source
from tests.runtime.kernel_harness import Program, compile_c

KERNELS = kernels()
ALL = bool(os.environ.get("CL_DRIVER_TEST_ALL"))
TYPES = ("char", "int", "uint", "half", "double")
NAMES = [name for name in sorted(KERNELS) if ALL or name.split("_")[1] in TYPES]
# (width, global size, local size, lanes along the linear local id)
LAUNCHES = [
    (1, 5, 5, False),
    (4, 22, 11, False),
    (8, (16, 2), (8, 2), False),
    (16, (14, 3), (7, 3), True),
]


@functools.cache
def spirv() -> bytes:
    return compile_c(source())


@functools.cache
def program(width: int, flat: bool) -> Program:
    options = CodegenOptions(features=frozenset(host_target().features))
    return Program(spirv(), options, width, linear_lanes=flat, sub_groups=True)


# SPV_INTEL_subgroups. Results of all lanes are defined here: sub-groups are full, and what up and down move
# in comes from the second value.
INTEL = """
#define SHUFFLES(T) \\
    T __attribute__((overloadable, convergent)) intel_sub_group_shuffle(T, uint); \\
    T __attribute__((overloadable, convergent)) intel_sub_group_shuffle_xor(T, uint); \\
    T __attribute__((overloadable, convergent)) intel_sub_group_shuffle_up(T, T, uint); \\
    T __attribute__((overloadable, convergent)) intel_sub_group_shuffle_down(T, T, uint);
#define BLOCKS(S, T, n) \\
    T##n __attribute__((overloadable, convergent)) intel_sub_group_block_read##S##n(const global T *); \\
    void __attribute__((overloadable, convergent)) intel_sub_group_block_write##S##n(global T *, T##n);
#define KERNEL(name, T, S) \\
    SHUFFLES(T) SHUFFLES(T##4) BLOCKS(S, T,) BLOCKS(S, T, 2) BLOCKS(S, T, 8) \\
    kernel void name(global T *out, global const T *in, global const uint *random) { \\
        size_t n = get_global_size(0), i = get_global_id(0), size = get_sub_group_size(); \\
        uint r = random[i] % size; \\
        T x = in[i], y = in[n - 1 - i]; \\
        T##4 v = (T##4)(x, y, x + y, i); \\
        size_t first = i - get_sub_group_local_id(); \\
        out[i] = intel_sub_group_shuffle(x, r); \\
        out[n + i] = intel_sub_group_shuffle_xor(x, r); \\
        out[2 * n + i] = intel_sub_group_shuffle_up(x, y, r); \\
        out[3 * n + i] = intel_sub_group_shuffle_down(x, y, r); \\
        v = intel_sub_group_shuffle_up(v, intel_sub_group_shuffle_down(v, v.wzyx, r), 1); \\
        out[4 * n + i] = v.x + 3 * v.y + 5 * v.z + 7 * v.w; \\
        T##2 two = intel_sub_group_block_read##S##2(in + first % (n - 2 * size + 1)); \\
        out[5 * n + i] = two.x + 3 * two.y; \\
        intel_sub_group_block_write##S(out + 6 * n + first, intel_sub_group_block_read##S(in + first)); \\
        intel_sub_group_block_write##S##8(out + 7 * n + 8 * first, (T##8)(v, v.wzyx)); \\
    }
KERNEL(bytes, uchar, _uc)
KERNEL(shorts, ushort, _us)
KERNEL(ints, uint,)
KERNEL(longs, ulong, _ul)
"""
INTEL_TYPES = {"bytes": "uchar", "shorts": "ushort", "ints": "uint", "longs": "ulong"}


@functools.cache
def intel_spirv() -> bytes:
    return compile_c(INTEL)


@pytest.mark.parametrize("name", INTEL_TYPES)
@pytest.mark.parametrize("width", [1, 4, 8, 16] if ALL else [1, 8, 16])
def test_intel_subgroups(name, width):
    options = CodegenOptions(features=frozenset(host_target().features))
    compiled = Program(intel_spirv(), options, width, linear_lanes=width == 8, sub_groups=True)
    want = arguments(INTEL_TYPES[name], 15, 64)
    got = copy.deepcopy(want)
    interpret(compiled.module, name, want, (64,), (32,), sub_group_size=width)
    compiled.run(name, 64, 32, *got)
    assert np.array_equal(want[0], got[0])
    assert want[0].any()


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


@pytest.mark.parametrize("name", halved(NAMES))
def test_every_function(name):
    check(name, LAUNCHES if ALL else LAUNCHES[NAMES.index(name) % 2 :: 2])


def test_wider_than_any_register():
    check("moves_uint_all", [(64, 70, 70, True), (32, 40, 40, False)])
    check("ballots_uint_some", [(64, 70, 70, False), (32, 40, 40, True)])


@pytest.mark.parametrize("name", ["arithmetic_int_some", "ballots_uint_some", "moves_char_some"])
def test_the_largest_sub_groups(name):
    """Of which the last one of a group is not full."""
    check(name, [(max(SUB_GROUP_SIZES), 70, 70, True)])
