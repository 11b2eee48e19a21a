# ruff: noqa: E501  kernels as one line each
"""Kernels as a whole: work-groups, barriers, memory of every kind, arguments, printf."""

import struct

import numpy as np
import pytest

from cl_driver.codegen.llvm.errors import CodegenError
from tests.runtime.emulation import IS_EMULATED
from tests.runtime.kernel_harness import Local, Program, compile_c

SOURCE = r"""
struct pair { int a; float4 b; char c; };
typedef struct { uchar tag; ushort3 v; double d; } mixed;

constant int table[5] = {3, 1, 4, 1, 5};
constant struct pair constants[2] = {{1, (float4)(1, 2, 3, 4), 5}, {6, (float4)(7, 8, 9, 10), 11}};
global int counter = 40;
global float4 vectors[2] = {(float4)(1, 2, 3, 4), (float4)(5)};
global int *global pointer = &counter;
constant int *constant inner = &table[2];
constant int *constant *constant outer = &inner;

kernel void ids(global ulong *out) {
  size_t n = get_global_linear_id();
  global ulong *o = out + n * 24;
  for (uint d = 0; d < 3; d++) {
    o[d] = get_global_id(d); o[3 + d] = get_local_id(d); o[6 + d] = get_group_id(d);
    o[9 + d] = get_global_size(d); o[12 + d] = get_local_size(d); o[15 + d] = get_num_groups(d);
    o[18 + d] = get_global_offset(d);
  }
  o[21] = get_work_dim(); o[22] = get_local_linear_id(); o[23] = get_enqueued_local_size(0);
}

kernel void reduce(global float *out, global const float *in, local float *tmp) {
  int l = get_local_id(0);
  tmp[l] = in[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int s = get_local_size(0) / 2; s > 0; s >>= 1) {
    if (l < s) tmp[l] += tmp[l + s];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (l == 0) out[get_group_id(0)] = tmp[0];
}

kernel void transpose(global float *out, global const float *in, int n) {
  local float tile[8][9];
  int x = get_local_id(0), y = get_local_id(1);
  tile[y][x] = in[get_global_id(1) * n + get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  out[(get_group_id(0) * 8 + y) * n + get_group_id(1) * 8 + x] = tile[x][y];
}

kernel void private_across(global int *out, int seed, int rounds) {
  int a[20];
  int l = get_local_id(0);
  for (int k = 0; k < 20; k++) a[k] = seed * k + l;
  double keep = l * 0.5; float4 v = (float4)(l, 1, 2, 3); uchar flag = l & 1; bool odd = l & 1;
  for (int r = 0; r < rounds; r++) {
    barrier(CLK_GLOBAL_MEM_FENCE);
    for (int k = 0; k < 20; k++) a[(k + r) % 20] += r + (odd ? 1 : 0);
    v += (float4)(r);
  }
  int s = flag + (int)(keep * 2) + (int)(v.x + v.w);
  for (int k = 0; k < 20; k++) s = s * 3 + a[k];
  out[get_global_id(0)] = s;
}

kernel void large_private(global int *out, int n) {
  int a[2000];
  for (int k = 0; k < 2000; k++) a[k] = k * n;
  int s = 0;
  for (int k = 0; k < 2000; k += 7) s += a[(k * 13 + get_global_id(0)) % 2000];
  out[get_global_id(0)] = s;
}

int sum(struct pair p) { p.a += 1; p.b.y *= 2; return p.a + (int)(p.b.x + p.b.y + p.b.z + p.b.w) + p.c; }
kernel void by_value(global int *out, struct pair p, mixed m) {
  p.a += get_global_id(0);
  out[get_global_id(0)] = sum(p) + m.tag + m.v.z + (int)m.d;
}

kernel void scope(global int *out, global float4 *v) {
  size_t i = get_global_id(0);
  if (i == 0) { counter += 2; *pointer += 1; vectors[1].y = 9; }
  out[i] = table[i % 5] + constants[i % 2].a + constants[i % 2].c + **outer;
  v[i] = constants[i % 2].b;
}
kernel void scope_after(global int *out, global float4 *v) {
  out[0] = counter; v[0] = vectors[0]; v[1] = vectors[1];
}

kernel void print(global const float *f, local int *l) {
  printf("%d %f %v4hlu %s|%p\n", (int)get_global_id(0), f[get_global_id(0)],
         (uint4)(1, 2, 3, 4 + (uint)get_global_id(0)), "word", f);
}
kernel void print3(char c, short3 s, long n, double d) { printf("%v3hd %c %ld %g\n", s, c, n, d); }

kernel void print_alike(global int *out, int x) {
  out[0] = x + 1;
  if (x & 1) printf("%d", x);
  if (x & 2) printf("%d", 2);
}
kernel void print_rows(global int *out, int x) {
  int i = get_global_id(0);
  out[i] = x;
  if (i == x) printf("%d", i);
}

kernel void generic_pointers(global int *out, local int *loc) {
  int priv = 5;
  global int *g = out; int *p;
  loc[get_local_id(0)] = 7;
  size_t i = get_global_id(0);
  switch (i % 3) { case 0: p = g + 30; break; case 1: p = loc + get_local_id(0); break; default: p = &priv; }
  int kind = to_global(p) ? 1 : to_local(p) ? 2 : to_private(p) ? 3 : 0;
  out[i] = kind * 100 + *p + (get_fence(p) == CLK_LOCAL_MEM_FENCE) * 1000;
}

kernel void copy(global int *out, global const int *in, local int *tmp, int n) {
  event_t e = async_work_group_copy(tmp, in + get_group_id(0) * n, n, 0);
  e = async_work_group_strided_copy(tmp + n, in, n / 2, 2, e);
  wait_group_events(1, &e);
  int l = get_local_id(0);
  out[get_global_id(0)] = tmp[(l * 7) % n] * 1000 + tmp[n + l % (n / 2)];
}

kernel void collectives(global int *out, global const int *in) {
  int v = in[get_global_id(0)];
  size_t i = get_global_id(0) * 6;
  out[i] = work_group_reduce_add(v); out[i + 1] = work_group_scan_inclusive_add(v);
  out[i + 2] = work_group_scan_exclusive_max(v); out[i + 3] = work_group_broadcast(v, 3);
  out[i + 4] = work_group_all(v > -50); out[i + 5] = work_group_any(v == 17);
}

kernel void barrier_in_loop_with_break(global int *out, int n) {
  local int turn;
  int l = get_local_id(0), mine = 0;
  if (l == 0) turn = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  while (1) {
    int now = turn;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (now >= n) break;
    if (now % (int)get_local_size(0) == l) { mine += now; turn = now + 1; }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (now == 1000) return;
  }
  out[get_global_id(0)] = mine;
}

kernel void vectors_in_memory(global char3 *c, global float3 *f, global double16 *d, global const uchar *bytes) {
  size_t i = get_global_id(0);
  char3 packed = vload3(i, (global const char *)bytes);
  c[i] = packed.zyx + (char3)1;
  f[i] = convert_float3(packed);
  d[i] = (double16)(i) + d[i];
}
"""


@pytest.fixture(scope="module")
def program():
    return Program(compile_c(SOURCE))


def expected_ids(global_size, local_size, offset):
    """What kernel `ids` must write, from the definitions in OpenCL C 6.15.1."""
    shape = [*global_size, *[1] * (3 - len(global_size))]
    local = [*local_size, *[1] * (3 - len(local_size))]
    groups = [-(-g // w) for g, w in zip(shape, local, strict=True)]
    rows = []
    for z in range(shape[2]):
        for y in range(shape[1]):
            for x in range(shape[0]):
                at = (x, y, z)
                group = [a // w for a, w in zip(at, local, strict=True)]
                inside = [a % w for a, w in zip(at, local, strict=True)]
                size = [min(w, s - g * w) for w, s, g in zip(local, shape, group, strict=True)]
                linear = (inside[2] * size[1] + inside[1]) * size[0] + inside[0]
                rows.append(
                    [
                        *(a + o for a, o in zip(at, offset, strict=True)),
                        *inside,
                        *group,
                        *shape,
                        *size,
                        *groups,
                        *offset,
                        len(global_size),
                        linear,
                        local[0],
                    ]
                )
    return np.array(rows, np.uint64)


@pytest.mark.parametrize("split", [1, 3])
@pytest.mark.parametrize(
    "global_size,local_size,offset",
    [
        ((10,), (5,), (0, 0, 0)),
        ((11,), (4,), (7, 0, 0)),
        ((6, 5), (4, 2), (1, 2, 0)),
        ((5, 4, 3), (2, 3, 2), (3, 2, 1)),
        ((1,), (1,), (0, 0, 0)),
    ],
)
def test_ids(program, global_size, local_size, offset, split):
    expected = expected_ids(global_size, local_size, offset)
    out = np.zeros(expected.shape, np.uint64)
    program.run("ids", global_size, local_size, out, offset=offset, split=split)
    assert np.array_equal(out, expected)


def test_reduction_in_local_argument(program):
    data = np.random.default_rng(1).integers(0, 100, 1024).astype(np.float32)
    out = np.zeros(16, np.float32)
    program.run("reduce", 1024, 64, out, data, Local(256))
    assert np.array_equal(out, data.reshape(16, 64).sum(1))


def test_local_array_of_kernel_scope(program):
    n = 32
    data = np.arange(n * n, dtype=np.float32)
    out = np.zeros(n * n, np.float32)
    program.run("transpose", (n, n), (8, 8), out, data, np.int32(n))
    assert np.array_equal(out.reshape(n, n), data.reshape(n, n).T)


@pytest.mark.parametrize("local", [1, 7, 64])
def test_values_and_arrays_across_barriers(program, local):
    out = np.zeros(local * 3, np.int32)
    program.run("private_across", local * 3, local, out, np.int32(5), np.int32(9))
    expected = []
    for i in range(local * 3):
        lid = i % local
        a = [5 * k + lid for k in range(20)]
        for r in range(9):
            for k in range(20):
                a[(k + r) % 20] += r + (lid & 1)
        s = (lid & 1) + lid + (lid + sum(range(9))) + (3 + sum(range(9)))
        for k in range(20):
            s = (s * 3 + a[k]) & 0xFFFFFFFF
        expected.append(s)
    assert np.array_equal(out.view(np.uint32), np.array(expected, np.uint32))


def test_large_private_array(program):
    code, _ = program.kernel("large_private")
    assert code.scratch_fixed >= 8000, "8,000 bytes of private memory do not belong on the stack"
    out = np.zeros(10, np.int32)
    program.run("large_private", 10, 5, out, np.int32(3))
    expected = [sum(((k * 13 + i) % 2000) * 3 for k in range(0, 2000, 7)) for i in range(10)]
    assert out.tolist() == expected


def test_structures_by_value(program):
    pair = struct.pack("<i12x4fb15x", 10, 1, 2, 3, 4, 5)
    mixed = struct.pack("<B7xHHHHd", 7, 1, 2, 300, 0, 40.5)
    out = np.zeros(4, np.int32)
    program.run("by_value", 4, 2, out, pair, mixed)
    assert out.tolist() == [10 + i + 1 + 1 + 4 + 3 + 4 + 5 + 7 + 300 + 40 for i in range(4)]


def test_program_scope_and_constant_memory(program):
    out, v = np.zeros(10, np.int32), np.zeros((10, 4), np.float32)
    program.run("scope", 10, 5, out, v)
    table, a, c = [3, 1, 4, 1, 5], [1, 6], [5, 11]
    assert out.tolist() == [table[i % 5] + a[i % 2] + c[i % 2] + 4 for i in range(10)]
    assert v[3].tolist() == [7, 8, 9, 10]
    program.run("scope_after", 1, 1, out, v)
    assert out[0] == 43
    assert v[:2].tolist() == [[1, 2, 3, 4], [5, 9, 5, 5]]


def test_printf_packs_its_arguments(program):
    program.printed.clear()
    data = np.array([1.5, -2.25], np.float32)
    program.run("print", 2, 1, data, Local(4))
    assert [text for text, _ in program.printed] == ["%d %f %v4hlu %s|%p\n"] * 2
    block = program.printed[1][1]
    tags = [struct.unpack_from("<I", block, at)[0] for at in (0, 16, 32, 56, 72)]
    # element size | count << 8 | kind << 16; clang passes float varargs as double only with cl_khr_fp64 on.
    assert tags[0] == 4 | 1 << 8
    assert tags[1] in (8 | 1 << 8 | 1 << 16, 4 | 1 << 8 | 1 << 16)
    assert tags[2] == 4 | 4 << 8
    assert tags[3] == tags[4] == 8 | 1 << 8 | 2 << 16
    assert struct.unpack_from("<i", block, 8) == (1,)
    assert struct.unpack_from("<d" if tags[1] & 8 else "<f", block, 24) == (-2.25,)
    assert struct.unpack_from("<4I", block, 40) == (1, 2, 3, 5)
    assert IS_EMULATED or struct.unpack_from("<Q", block, 80) == (data.ctypes.data,)


def test_printf_of_a_three_vector(program):
    program.printed.clear()
    program.run("print3", 1, 1, np.int8(65), struct.pack("<hhhh", 1, -2, 3, 0), np.int64(-5), np.float64(0.5))
    block = program.printed[0][1]
    assert struct.unpack_from("<IIhhh", block) == (
        2 | 3 << 8,
        struct.unpack_from("<I", block, 4)[0],
        1,
        -2,
        3,
    )


@pytest.mark.parametrize("kernel, x, texts", [
    ("print_alike", 0, 0), ("print_alike", 1, 70), ("print_alike", 2, 70), ("print_alike", 3, 140),
    ("print_rows", 9, 0), ("print_rows", 5, 10), ("print_rows", 0, 10),
])  # fmt: skip
@pytest.mark.parametrize("local", [(3, 2, 1), (7, 5, 2), (1, 1, 1)])
def test_all_work_items_print_that_do_the_same(program, kernel, x, texts, local):
    program.printed.clear()
    out = np.zeros(7, np.int32)
    program.run(kernel, (7, 5, 2), local, out, np.int32(x))
    assert len(program.printed) == texts
    assert out.tolist() == ([x] * 7 if kernel == "print_rows" else [x + 1] + [0] * 6)


def test_generic_pointers(program):
    out = np.zeros(31, np.int32)
    out[30] = 9
    program.run("generic_pointers", 30, 5, out, Local(64))
    assert out[:30].tolist() == [[109, 1207, 305][i % 3] for i in range(30)]


def test_asynchronous_copies(program):
    n = 16
    data = np.arange(64, dtype=np.int32) + 1
    out = np.zeros(64, np.int32)
    program.run("copy", 64, n, out, data, Local(4 * (n + n // 2)), np.int32(n))
    expected = [
        int(data[i // n * n + (i % n * 7) % n]) * 1000 + int(data[(i % n) % (n // 2) * 2]) for i in range(64)
    ]
    assert out.tolist() == expected


def test_work_group_collectives(program):
    rng = np.random.default_rng(3)
    data = rng.integers(-40, 40, 24).astype(np.int32)
    data[9] = 17
    out = np.zeros((24, 6), np.int32)
    program.run("collectives", 24, 8, out, data)
    for g in range(3):
        part = data[g * 8 : g * 8 + 8]
        for i in range(8):
            before = part[:i].max(initial=-(2**31))
            assert out[g * 8 + i].tolist() == [
                part.sum(),
                part[: i + 1].sum(),
                before,
                part[3],
                int((part > -50).all()),
                int((part == 17).any()),
            ]


@pytest.mark.parametrize("local", [1, 4, 9])
def test_barriers_in_a_loop_with_breaks(program, local):
    out = np.zeros(local * 2, np.int32)
    program.run("barrier_in_loop_with_break", local * 2, local, out, np.int32(30))
    expected = [sum(range(i % local, 30, local)) for i in range(local * 2)]
    assert out.tolist() == expected


def test_vectors_in_memory(program):
    data = np.arange(1, 25, dtype=np.uint8)
    c, f = np.zeros((8, 4), np.int8), np.zeros((8, 4), np.float32)
    d = np.tile(np.arange(16, dtype=np.float64), (8, 1))
    aligned = np.zeros(8 * 16 + 16)
    start = (-aligned.ctypes.data % 128) // 8
    d_aligned = aligned[start : start + 128].reshape(8, 16)
    d_aligned[:] = d
    program.run("vectors_in_memory", 8, 4, c, f, d_aligned, data)
    triples = data.reshape(8, 3)
    assert np.array_equal(c[:, :3], triples[:, ::-1].astype(np.int8) + 1)
    assert np.array_equal(f[:, :3], triples.astype(np.float32))
    assert np.array_equal(d_aligned, d + np.arange(8)[:, None])


def test_any_and_all_of_integers():
    """The most significant bits count (OpenCL C 6.15.6), of vectors and of scalars."""
    source = """kernel void k(global int *out, global const char *a, global const char4 *b, global const long2 *c) {
      size_t i = get_global_id(0);
      out[i] = any(a[i]) | all(a[i]) << 1 | any(b[i]) << 2 | all(b[i]) << 3 | any(c[i]) << 4 | all(c[i]) << 5;
    }"""
    random = np.random.default_rng(7)
    a = random.integers(-128, 128, 64, dtype=np.int8)
    b = random.integers(-128, 64, (64, 4), dtype=np.int8)
    c = random.integers(-(2**62), 2**62, (64, 2))
    out = np.zeros(64, np.int32)
    Program(compile_c(source)).run("k", 64, 16, out, a, b, c)
    expected = (a < 0).astype(np.int32) | (a < 0) << 1
    expected |= (b < 0).any(1) << 2 | (b < 0).all(1) << 3 | (c < 0).any(1) << 4 | (c < 0).all(1) << 5
    assert (out == expected).all()


def test_a_missing_function_is_named():
    source = "int absent(int); kernel void k(global int *a) { a[0] = absent(a[1]); }"
    with pytest.raises(CodegenError, match="absent"):
        Program(compile_c(source)).code("k")


def test_a_loop_that_ends_at_the_head_of_another():
    """What the first one of two inner loops leaves is kept by lanes that have left the outer one."""
    source = """kernel void k(global int *to, global const int *from, int trips) {
        int g = get_global_id(0), x = from[g], y = g * 3, rest = g & 7;
        do {
            int k = g & 3;
            do y = y * 5 + x; while (--k > 0);
            int times = trips;
            while (times-- > 0) x++;
        } while (--rest > 0);
        to[g] = x + 31 * y; }"""
    given = np.arange(64, dtype=np.int32) * 7 % 50
    want = np.zeros(64, np.int64)
    for g in range(64):
        x, y = int(given[g]), g * 3
        for _ in range(max(1, g & 7)):
            for _ in range(max(1, g & 3)):
                y = (y * 5 + x) % (1 << 32)
            x += 3
        want[g] = (x + 31 * y) % (1 << 32)
    for options in ("", " -cl-opt-disable"):
        to = np.zeros(64, np.int32)
        Program(compile_c(source, "-cl-std=CL3.0" + options)).run("k", 64, 16, to, given, np.int32(3))
        assert (to.view(np.uint32) == want).all(), options


@pytest.mark.parametrize("options", ["", " -g", " -cl-opt-disable"])
@pytest.mark.parametrize("mask", [3, 7, 0x3FF])
def test_counters_that_begin_with_few_bits_of_another(mask, options):
    """clang makes a counter of as many bits of it, which its back end then extends with garbage."""
    source = f"""kernel void k(global int *to, global const int *from, int trips, int step) {{
        int sum = get_global_id(0), more = 0;
        for (int i = 0; i < trips; i++)
            for (int j = (i * step) & {mask}; j < {mask + 9}; j += 8)
                sum = sum * 3 + from[j];
        for (int i = 0; i < trips; i++) more += i * step;
        to[get_global_id(0)] = sum + more; }}"""
    given, to = np.arange(1100, dtype=np.int32) * 7 % 500, np.zeros(32, np.int32)
    program = Program(compile_c(source, "-cl-std=CL3.0" + options))
    for step in (1, 5, 491):
        want = np.arange(32)
        for i in range(20):
            for j in range(i * step & mask, mask + 9, 8):
                want = (want * 3 + given[j]) % (1 << 32)
        want = (want + sum(i * step for i in range(20))) % (1 << 32)
        program.run("k", 32, 16, to, given, np.int32(20), np.int32(step))
        assert (to.view(np.uint32) == want).all(), step
