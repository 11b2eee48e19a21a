"""Branches to which lanes go one by one (passes/vectorize/lane_loops.py) do what the interpreter does."""

import numpy as np
import pytest

from cl_driver.codegen.llvm.options import CodegenOptions
from cl_driver.device.target import host_target
from cl_driver.interp.run import Local as InterpretedLocal
from cl_driver.interp.run import run as interpret
from tests.marks import few
from tests.pure.passes.loops.test_lane_loops import ALONE, HEAD, TAIL
from tests.runtime.kernel_harness import Local, Program, compile_c

SUMS = compile_c("""
kernel void sums(global const float *in, global float *out, local float *all, int count) {
    int me = get_local_id(0) + get_local_id(1) * get_local_size(0);
    int items = get_local_size(0) * get_local_size(1);
    for (int k = 0; k < count; k++) all[me * count + k] = in[get_global_id(0) * count + k] * (k + 1);
    for (int step = 1; step < items; step *= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (me % (2 * step) == 0)
            for (int k = 0; k < count; k++) all[me * count + k] += all[(me + step) * count + k];
    }
    if (me == 0)
        for (int k = 0; k < count; k++) out[get_group_id(0) * count + k] = all[k];
}""")


@pytest.mark.parametrize("width", [1, 4, 8, 16])
@pytest.mark.parametrize("count", [1, 27])
def test_a_tree_of_arrays(width, count):
    groups, items = 5, 32
    given = np.random.default_rng(count).integers(0, 9, groups * items * count).astype(np.float32)
    out = np.zeros(groups * count, np.float32)
    memory = Local(items * count * 4)
    program = Program(SUMS, width=width)
    program.run("sums", groups * items, items, given, out, memory, np.int32(count))
    wanted = given.reshape(groups, items, count).sum(1) * np.arange(1, count + 1)
    np.testing.assert_array_equal(out.reshape(groups, count), wanted)
    if width == 8:
        text = program.code("sums").text
        assert "llvm.cttz.i64" in text


@pytest.mark.parametrize("cpu", few(["", "x86-64-v3", "x86-64-v2"], 1))
@pytest.mark.parametrize("name", ALONE)
def test_branches(name, cpu):
    data = compile_c(HEAD + ALONE[name] + TAIL)
    given = np.random.default_rng(7).integers(0, 100, 300).astype(np.int32)
    options = CodegenOptions(features=frozenset(host_target(cpu).features))
    for local, widths in (((16, 2, 1), (4, 16)), ((11, 3, 1), (8,))):
        total, size = (2 * local[0], local[1], 1), 64 * 8 * 4
        want, changed = np.zeros(256, np.int32), given.copy()
        interpret(Program(data).module, "k", [want, changed, 8, InterpretedLocal(size)], total, local)
        for width in widths:
            out, memory = np.zeros(256, np.int32), given.copy()
            program = Program(data, options, width)
            program.run("k", total, local, out, memory, np.int32(8), Local(size))
            np.testing.assert_array_equal(out, want)
            np.testing.assert_array_equal(memory, changed)
