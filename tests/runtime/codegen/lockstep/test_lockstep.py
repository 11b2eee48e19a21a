"""Code for groups of one size, in lockstep (passes/groups/lockstep.py), does what numpy or the
interpreter does, at several widths, for many shapes of groups and ways in which barriers stand in control
flow."""

import copy
import math
import os

import numpy as np
import pytest

from cl_driver.codegen.llvm.options import CodegenOptions
from cl_driver.device.target import host_target
from cl_driver.interp.run import run as interpret
from cl_driver.passes.ir.plan import PlanError
from tests.bench.cases import BENCHMARKS
from tests.bench.model import Local as BenchLocal
from tests.bench.model import kernel_file
from tests.marks import few
from tests.pure.random.kernels import LOCAL, Kernel
from tests.runtime.kernel_harness import Local, Program, compile_c

# This CPU, or a lesser one for a whole run.
CPU = os.environ.get("CL_DRIVER_TEST_CPU", "")
OPTIONS = CodegenOptions(features=frozenset(host_target(CPU).features))


def program(source: str, width: int, group) -> Program:
    """For groups of that size."""
    group = (*group, 1, 1)[:3]
    return Program(compile_c(source), OPTIONS, width, group=group, parts=math.prod(group) // width)


BENCHED = (
    "bitonic_local", "fft_local", "histogram_local", "matmul_tiled", "reduce_stride", "reduce_tree",
    "scan_blelloch", "scan_hillis", "softmax", "transpose_local",
)  # fmt: skip


@pytest.mark.parametrize("width", few((16, 8), 1))
@pytest.mark.parametrize("name", BENCHED)
def test_benchmark(name, width):
    case = BENCHMARKS[name].case(small=True)
    (launch,) = case.launches
    built = program(kernel_file(name).read_text(), width, launch.local_size)
    memory = {key: case.initial(key).copy() for key in case.memory}
    arguments = [
        memory[a] if isinstance(a, str) else Local(a.size) if isinstance(a, BenchLocal) else a
        for a in launch.arguments
    ]
    built.run(name, launch.global_size, launch.local_size, *arguments)
    for key, want in case.expected().items():
        np.testing.assert_allclose(memory[key], want, case.rtol, case.atol)


@pytest.mark.parametrize("seed", few((0, 2, 8, 11, 13, 14, 17), 3))
def test_random_kernel(seed):
    source = Kernel(seed).source
    items = LOCAL * 3
    inputs = np.random.default_rng(seed).integers(-50, 50, 64).astype(np.int32)
    want = None
    for width in (2, 4, 8):
        built = program(source, width, (LOCAL,))
        if want is None:
            arguments = [np.zeros(items * 4, np.int32), copy.deepcopy(inputs), 7]
            interpret(built.module, "k", arguments, (items,), (LOCAL,))
            want = arguments[0]
        out = np.zeros(items * 4, np.int32)
        built.run("k", items, LOCAL, out, inputs, np.int32(7))
        assert np.array_equal(out, want), f"seed {seed} at width {width}\n{source}"


SHAPES = """
kernel void k(global int *out, local int *t) {
    int x = get_local_id(0), y = get_local_id(1), z = get_local_id(2);
    int nx = get_local_size(0), ny = get_local_size(1), nz = get_local_size(2);
    int l = (z * ny + y) * nx + x, n = nx * ny * nz;
    t[l] = get_global_id(0) + 1000 * get_global_id(1) + 1000000 * get_global_id(2);
    barrier(CLK_LOCAL_MEM_FENCE);
    int mirrored = t[n - 1 - l] + t[(z * ny + (ny - 1 - y)) * nx + x];
    barrier(CLK_LOCAL_MEM_FENCE);
    t[l] = mirrored + l;
    barrier(CLK_LOCAL_MEM_FENCE);
    int row = get_global_id(2) * get_global_size(1) + get_global_id(1);
    out[row * get_global_size(0) + get_global_id(0)] = t[(l + 1) % n] * 3 + get_local_linear_id();
}
"""


@pytest.mark.parametrize("width", few((8, 4, 16), 1))
@pytest.mark.parametrize("group", ((1,), (4,), (3,), (1, 5), (2, 4), (1, 2, 3), (2, 2, 2), (1, 1, 4)))
def test_shape(group, width):
    group = (group[0] * width, *group[1:])
    local = np.array((*group, 1, 1)[:3])
    sizes = local * (2, 1, 2)
    gx, gy, gz = (a.transpose() for a in np.mgrid[tuple(slice(s) for s in sizes)])
    ids = gx + 1000 * gy + 1000000 * gz
    want = np.empty(ids.shape, np.int32)
    for z in range(0, sizes[2], local[2]):
        for y in range(0, sizes[1], local[1]):
            for x in range(0, sizes[0], local[0]):
                part = np.s_[z : z + local[2], y : y + local[1], x : x + local[0]]
                t = ids[part]
                linear = np.arange(t.size).reshape(t.shape)
                t = t.reshape(-1)[::-1].reshape(t.shape) + t[:, ::-1] + linear
                want[part] = np.roll(t.reshape(-1), -1).reshape(t.shape) * 3 + linear
    out = np.zeros(want.shape, np.int32)
    built = program(SHAPES, width, group)
    built.run("k", tuple(map(int, sizes)), group, out, Local(4 * math.prod(group)))
    assert np.array_equal(out, want)


FLOW = """
kernel void k(global int *out, global const int *in, int count, local int *t) {
    int l = get_local_id(0), n = get_local_size(0), g = get_global_id(0);
    if (g >= count)
        return;                        // as every GPU forgives it: some have left before the first barrier
    t[l] = in[g];
    barrier(CLK_LOCAL_MEM_FENCE);
    int sum = 0;
    if (count & 1) {                   // a barrier in a uniform conditional
        sum = t[l ^ 1];
        barrier(CLK_LOCAL_MEM_FENCE);
        t[l] = sum * 2;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int i = 0; i < in[0]; i++) {  // and in loops that run as often as memory says
        int next = t[(l + i) & (n - 1)];
        barrier(CLK_LOCAL_MEM_FENCE);
        if (next & 1)
            t[l] += next;
        for (int j = l; j < next; j += 7)
            sum += j & 3;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (i == 5)
            break;
    }
    out[g] = sum + t[(n - 1) & (l * 3)];
}
"""


def flow(values, count: int, size: int):
    """What FLOW computes, for whole groups."""
    out = np.zeros(len(values), np.int64)
    for start in range(0, count, size):
        t = values[start : start + size].astype(np.int64)
        ids = np.arange(size)
        total = np.zeros(size, np.int64)
        if count & 1:
            total = t[ids ^ 1]
            t = total * 2
        for i in range(min(values[0], 6)):
            following = t[(ids + i) & (size - 1)]
            t = np.where(following & 1, t + following, t)
            limits = zip(ids, following, strict=True)
            total = total + [sum(j & 3 for j in range(k, int(n), 7)) for k, n in limits]
        out[start : start + size] = total + t[(size - 1) & (ids * 3)]
    return out


@pytest.mark.parametrize("width, size", ((4, 4), (4, 16), (8, 32), (16, 64)))
@pytest.mark.parametrize("rounds", (0, 3, 9))
def test_control_flow(width, size, rounds):
    built = program(FLOW, width, (size,))
    values = np.random.default_rng(rounds).integers(0, 60, 3 * size).astype(np.int32)
    values[0] = rounds
    for count in (3 * size, 2 * size):
        out = np.zeros(3 * size, np.int32)
        built.run("k", 3 * size, size, out, values, np.int32(count), Local(4 * size))
        assert np.array_equal(out, flow(values, count, size)), count


def test_early_returns():
    """Those that are left see what the others have not written."""
    built = program(FLOW, 8, (32,))
    values = np.full(64, 4, np.int32)
    values[0] = 0
    out = np.full(64, -1, np.int32)
    built.run("k", 64, 32, out, values, np.int32(40), Local(128))
    assert (out[:40] != -1).all() and (out[40:] == -1).all()


def test_collectives_are_refused():
    source = "kernel void k(global int *a) { a[get_global_id(0)] = work_group_reduce_add(1); barrier(1); }"
    with pytest.raises(PlanError):
        program(source, 8, (16,)).code("k")


LOOP = """
kernel void k(global float *out, global const float *in, int first, int count, local float *t) {
    int l = get_local_id(0), step = get_global_size(0);
    float sum = 0, last = -1;
    for (int i = first + (int)get_global_id(0); i < count; i += step) {
        sum += in[i];
        last = i;
    }
    t[l] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    out[2 * get_global_id(0)] = t[get_local_size(0) - 1 - l];
    out[2 * get_global_id(0) + 1] = last;
}
"""


@pytest.mark.parametrize("count", (0, 1, 63, 64, 65, 127, 128, 129, 1000, 1024))
@pytest.mark.parametrize("first", (0, 5))
def test_strided_sum(count, first):
    """Loops that all work-items leave at about the same time."""
    size, groups = 32, 2
    values = np.arange(1100, dtype=np.float32)
    out = np.zeros(2 * size * groups, np.float32)
    built = program(LOOP, 8, (size,))
    built.run("k", size * groups, size, out, values, np.int32(first), np.int32(count), Local(4 * size))
    mine = [range(first + g, count, size * groups) for g in range(size * groups)]
    sums = np.array([sum(m) for m in mine], np.float32).reshape(groups, size)[:, ::-1].reshape(-1)
    assert np.array_equal(out[0::2], sums)
    assert np.array_equal(out[1::2], [m[-1] if m else -1 for m in mine])


LOOPS = """
kernel void k(global int *out, global const int *in, int count, local int *t) {
    int l = get_local_id(0), n = get_local_size(0), a = 0, b = 0, c = 0, d = 1;
    for (uint i = l; i <= (uint)count; i += n)   // unsigned, and up to count
        a += in[i];
    for (int i = l; !(i >= count); i += n)
        for (int j = l; j < i; j += n)           // one in the other
            b += in[j] - i;
    int i = l;
    while (i < count) {                          // asks before its body, which writes
        out[n + i] = in[i] * 2;
        i += n;
    }
    do {                                         // without a question before it
        c += in[d + l];
        d += n;
    } while (d + l < count);
    t[l] = a + b;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l & 1)
        for (int i = l; i < count; i += 2 * n)   // where not all are
            c += in[i];
    out[l] = t[n - 1 - l] + c;
}
"""


@pytest.mark.parametrize("count", (0, 1, 31, 32, 33, 95, 96, 200))
@pytest.mark.parametrize("width", (4, 16))
def test_loops(count, width):
    """Loops of other forms that all work-items are in, or some."""
    size = 32
    values = np.random.default_rng(count).integers(-50, 50, 400).astype(np.int32)
    built = program(LOOPS, width, (size,))
    got, want = (np.zeros(size + 256, np.int32) for _ in range(2))
    arguments = [want, values.copy(), count, np.zeros(size, np.int32)]
    interpret(built.module, "k", arguments, (size,), (size,))
    built.run("k", size, size, got, values, np.int32(count), Local(4 * size))
    assert np.array_equal(got, want)


COUNTERS = """
kernel void k(global long *out, global const int *in, int first, int limit, ulong step, local long *t) {
    size_t id = get_global_id(0);
    long sum = 0;
    for (int i = get_global_id(0); i < 300; i += get_global_size(0))  // cut to an int in each iteration
        sum += in[i] * (long)i;
    for (int i = first + (int)id; !(limit <= i); i += step) {         // or not what it was before
        t[get_local_id(0)] = (long)i + in[i & 255];
        sum = sum * 31 + (long)i * 3 + t[get_local_id(0)];
    }
    for (int i = get_local_id(0); i < 32; i += get_local_size(0))     // no question before it
        out[1024 + i] = i;
    barrier(CLK_LOCAL_MEM_FENCE);
    out[id] = sum;
}
"""


@pytest.mark.parametrize("width", (4, 16))
@pytest.mark.parametrize(
    "first, limit, step",
    (
        (0, 200, 64),
        (7, 199, 1),
        (-40, 3, 5),
        (3, 500, (1 << 32) + 64),
        ((1 << 28) - 16, (1 << 31) - (1 << 28) - 100, 5 << 28),  # half of a vector wraps around
        (-(1 << 31), -(1 << 31) + 999, 64),
        (200, 100, 1),
    ),
)
def test_counters_of_64_bits(first, limit, step, width):
    """Loops over an int to which a size_t is added."""
    size = 32
    values = np.random.default_rng(5).integers(-50, 50, 300).astype(np.int32)
    built = program(COUNTERS, width, (size,))
    got, want = (np.zeros(2048, np.int64) for _ in range(2))
    scalars = first & 0xFFFFFFFF, limit & 0xFFFFFFFF
    arguments = [want, values.copy(), *scalars, step, np.zeros(size, np.int64)]
    interpret(built.module, "k", arguments, (2 * size,), (size,))
    numbers = np.array(scalars, np.uint32), np.uint64(step)
    built.run("k", 2 * size, size, got, values, *numbers[0], numbers[1], Local(8 * size))
    assert np.array_equal(got, want)
    assert want[: 2 * size].any()


PLACES = """
kernel void k(global int *out, global const int *in, local int *t, local short *s) {
    local int a[8], b[24];               // neither consists of whole vectors of 16
    int l = get_local_id(0), n = get_local_size(0), sum = 0;
    t[l] = in[l];
    s[l] = in[l] * 3;
    if (l < 8)
        a[l] = in[l] + 1;
    if (l < 24)
        b[l] = in[l] + 2;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int d = 1; d < 16; d *= 2) {    // exchanged between neighbours
        int other = t[l ^ d];
        barrier(CLK_LOCAL_MEM_FENCE);
        t[l] += other * d;
        barrier(CLK_LOCAL_MEM_FENCE);
        if ((in[l] & d) && !(l & 1))     // under masks of all kinds
            t[l ^ 1] = l;
        if (l % 3 == 1)
            s[l - 1] += d;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (in[l] & 1)
        sum = t[n - 1 - l] - s[(l * 5) & (n - 1)];
    barrier(CLK_LOCAL_MEM_FENCE);
    ((local short *)t)[2 * l] = s[l];    // as elements of another type
    barrier(CLK_LOCAL_MEM_FENCE);
    sum += t[(l + 3) & (n - 1)] + a[l & 7] * b[(l * 7) % 24];
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_add(&t[l & 3], 5);            // by others than loads and stores
    barrier(CLK_LOCAL_MEM_FENCE);
    t[n - 1 - l] += 7;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (in[0] > 1000)                    // never there: an index that is in no array
        sum += t[l - 100000];
    out[l] = sum + t[l] + t[0];
}
"""


def places(values):
    """What PLACES computes, step by step for all work-items."""
    n, ids = len(values), np.arange(len(values))
    t, s, a, b = values.copy(), (values * 3).astype(np.int16), values[:8] + 1, values[:24] + 2
    for d in (1, 2, 4, 8):
        other = t[ids ^ d]
        t = t + other * d
        chosen = ((values & d) != 0) & (ids % 2 == 0)
        t[ids[chosen] ^ 1] = ids[chosen]
        s[ids[ids % 3 == 1] - 1] += np.int16(d)
    total = np.where(values & 1, t[n - 1 - ids] - s[(ids * 5) & (n - 1)], 0)
    t.view(np.int16)[2 * ids] = s
    total = total + t[(ids + 3) & (n - 1)] + a[ids & 7] * b[(ids * 7) % 24]
    t[:4] += 5 * (n // 4)
    t += 7
    return total + t + t[0]


@pytest.mark.parametrize("width, size", ((4, 32), (8, 32), (16, 32), (16, 64), (8, 64)))
def test_known_places(width, size):
    """Local memory at places that are known when the code is made."""
    values = np.random.default_rng(size).integers(-50, 50, size).astype(np.int32)
    built = program(PLACES, width, (size,))
    out = np.zeros(size, np.int32)
    built.run("k", size, size, out, values, Local(4 * size), Local(2 * size))
    assert np.array_equal(out, places(values))


VECTORS = """
kernel void k(global int *out, global const int *in, local int2 *t, local uchar4 *c) {
    local float2 f[32];
    int l = get_local_id(0), n = get_local_size(0);
    t[l] = (int2)(in[l], in[l] + 5);
    c[l] = convert_uchar4((int4)(in[l], l, in[l] + l, 7) & 255);
    if (l < 32)
        f[l] = (float2)(in[l], l);
    barrier(CLK_LOCAL_MEM_FENCE);
    int2 a = t[l ^ 3], b = t[n - 1 - l];
    uchar4 d = c[l ^ 1];
    float2 e = f[(l * 5) & 31];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (in[l] & 2)
        t[l ^ 1] = a.yx - b;
    if (l & 2)
        c[l ^ 2] = d.wzyx;
    barrier(CLK_LOCAL_MEM_FENCE);
    a = t[(l + 7) & (n - 1)];
    d += c[l ^ 5];
    out[l] = a.x * 3 + a.y + (d.x | d.y << 8 | d.z << 16 | d.w << 24) + (int)(e.x * e.y);
}
"""


@pytest.mark.parametrize("width, size", ((4, 32), (16, 64)))
def test_known_places_of_vectors(width, size):
    """Small OpenCL vectors at places that are known."""
    values = np.random.default_rng(size).integers(-50, 50, size).astype(np.int32)
    built = program(VECTORS, width, (size,))
    got, want = np.zeros(size, np.int32), np.zeros(size, np.int32)
    local = [np.zeros(2 * size, np.int32), np.zeros(4 * size, np.uint8)]
    interpret(built.module, "k", [want, values.copy(), *local], (size,), (size,))
    built.run("k", size, size, got, values, Local(8 * size), Local(4 * size))
    assert np.array_equal(got, want)
