"""Loops in which each lane walks through a row of its own: tiles of rows, transposed, and what is left."""

import ctypes
import mmap

import numpy as np
import pytest

from cl_driver.codegen.llvm.options import CodegenOptions
from cl_driver.device.cpu import host_cpu
from cl_driver.interp.run import run as interpret
from tests.pure.spirv.assembler import CAPABILITIES, SCALARS, assemble, constants
from tests.runtime.kernel_harness import Program, compile_c

ALL = 0xFFFF  # work-items
MAP_NORESERVE = 0x4000  # <asm-generic/mman.h>
ROWS = 21
SOURCE = """
#define ROWS(name, type, count) \\
kernel void name(global type *out, global const type *in, global const type *by, int n) { \\
  size_t row = get_global_id(0); type sum = 0; \\
  for (count k = 0; k < n; k++) sum += in[row * n + k] * by[k]; \\
  out[row] = sum; }
ROWS(floats, float, int) ROWS(doubles, double, long) ROWS(bytes, uchar, int) ROWS(shorts, short, uint)
ROWS(longs, ulong, int)
kernel void known(global float *out, global const float *in, global const float *by, int n) {
  size_t row = get_global_id(0); float sum = 0;
  for (int k = 0; k < 67; k++) sum = sum * 0.5f + in[row * 67 + k] - by[k & 3];
  out[row] = sum; }
kernel void two(global float *out, global const float *in, global const float *by, int n) {
  size_t row = get_global_id(0); float sum = 0;
  for (int k = n / 3; k < n; k++) sum += in[row * n + k] * in[row * n + k - n / 3];
  out[row] = sum; }
kernel void once(global float *out, global const float *in, global const float *by, int n) {
  size_t row = get_global_id(0); float sum = 0; long k = 0;
  if (n > 0) do { sum += in[row * n + k]; k++; } while (k < n - 5);
  out[row] = sum; }
kernel void nested(global int *out, global const int *in, global const int *by, int n) {
  size_t row = get_global_id(0); int sum = 0;
  for (int j = 0; j < 3; j++) for (int k = 0; k < n; k++) sum = sum * 3 + (in[row * n + k] ^ by[j]);
  out[row] = sum; }
kernel void some(global int *out, global const int *in, global const int *by, int n) {
  size_t row = get_global_id(0); int sum = 0;
  for (int k = 0; k < n; k++) if (by[k] & 1) sum += in[row * n + k];
  out[row] = sum; }
kernel void guarded(global int *out, global const int *in, global const int *by, int n) {
  int row = get_global_id(0), sum = 0;
  if (row < 18) { for (int k = 0; k < n; k++) sum += in[row * n + k] * by[k]; out[row] = sum; } }
kernel void chosen(global int *out, global const int *in, global const int *by, int n) {
  size_t row = get_global_id(0); int sum = 0;
  if (by[row % 35] & 1) for (int k = 0; k < n; k++) sum = sum * 3 + in[(row % 16) * n + k];
  out[row] = sum; }
kernel void none(global int *out, global const int *in, global const int *by, int n) {
  size_t row = get_global_id(0); int sum = 0;
  if (by[row] > 99) for (int k = 0; k < n; k++) sum += in[row * n + k + (long)1e15];
  out[row] = sum; }
kernel void inside(global int *out, global const int *in, global const int *by, int n) {
  size_t row = get_global_id(0); int sum = 0;
  for (int k = 0; k < n; k++) if (by[row + k] & 1) sum += in[row * n + k];
  out[row] = sum; }
kernel void until(global int *out, global const int *in, global const int *by, int n) {
  size_t row = get_global_id(0); int sum = 0;
  for (int k = 0; k < n; k++) { sum += in[row * n + k]; if (by[k] % 23 == 5) break; }
  out[row] = sum; }
kernel void written(global int *out, global int *in, global const int *by, int n) {
  size_t row = get_global_id(0); int sum = 0;
  for (int k = 0; k < n; k++) { sum += in[row * n + k]; if (k + 1 < n) in[row * n + k + 1] += sum; }
  out[row] = sum; }
kernel void by_product(global int *out, global const int *in, global const int *by, int n) {
  size_t row = get_global_id(0); int sum = 0; long step = by[0] & 1;
  for (long k = 0; k < n; k++) sum = sum * 3 + in[row * n + k * step];
  out[row] = sum; }
kernel void unsigned_rows(global int *out, global const int *in, global const int *by, int n) {
  uint row = get_global_id(0), m = n; int sum = 0;
  for (uint k = 0; k < m; k++) sum = sum * 3 + in[row * m + k];
  out[row] = sum; }
kernel void unsigned_chosen(global int *out, global const int *in, global const int *by, int n) {
  uint row = get_global_id(0), m = n; int sum = 0;
  if (by[row % 35] & 1) for (uint k = m / 3; k != m; k++) sum = sum * 3 + in[(row % 16) * m + k];
  out[row] = sum; }
struct pair { int a, b; };
kernel void pairs(global int *out, global const struct pair *in, global const int *by, int n) {
  size_t row = get_global_id(0); int sum = 0;
  for (int k = 0; k < n / 2; k++) sum = sum * 3 + in[row * (n / 2) + k].b;
  out[row] = sum; }
kernel void jumping(global int *out, global const int *in, global const int *by, int n) {
  size_t row = get_global_id(0), at = 0; int sum = 0;
  for (int k = 0; k < n; k++) { sum = sum * 3 + in[row * n + at]; at = (at * 5 + by[0]) % n; }
  out[row] = sum; }
"""
KERNELS = {"floats": "f4", "doubles": "f8", "bytes": "u1", "shorts": "i2", "longs": "u8", "known": "f4",
           "two": "f4", "once": "f4", "nested": "i4", "some": "i4", "until": "i4",
           "unsigned_rows": "i4", "unsigned_chosen": "i4", "guarded": "i4",
           "chosen": "i4", "none": "i4", "inside": "i4",
           "written": "i4", "by_product": "i4", "jumping": "i4", "pairs": "i4"}  # fmt: skip
FORMS = [(1, 1), (4, 2), (8, 1), (16, 1)]
AVX512 = frozenset("fma f16c sse4.1 avx avx2 avx512f avx512bw avx512dq avx512vl".split())


@pytest.fixture(scope="module")
def compiled():
    return compile_c(SOURCE)


@pytest.fixture(scope="module")
def before_the_end():
    """Makes copies of arrays that end where memory ends: what is read beyond faults."""
    pages = mmap.mmap(-1, 64 * mmap.PAGESIZE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    libc = ctypes.CDLL(None, use_errno=True)
    size = 63 * mmap.PAGESIZE
    assert libc.mprotect(ctypes.c_void_p(start + size), mmap.PAGESIZE, 0) == 0

    def copy(array):
        view = np.frombuffer(pages, array.dtype, array.size, size - array.nbytes)
        view[:] = array
        return view

    yield copy
    assert libc.mprotect(ctypes.c_void_p(start + size), mmap.PAGESIZE, 3) == 0


@pytest.mark.parametrize("name", list(KERNELS))
def test_rows(compiled, before_the_end, name):
    """Rows of all lengths, at whose end nothing may be read, also where the last vector is a whole one."""
    rng, dtype = np.random.default_rng(5), np.dtype(KERNELS[name])
    programs = {form: Program(compiled, width=form[0], parts=form[1]) for form in FORMS}
    if AVX512 <= set(host_cpu().features):
        programs["avx512"] = Program(compiled, CodegenOptions(AVX512, 512), width=16)
    module = programs[1, 1].module
    for n, rows in (
        ((67, ROWS),) if name == "known" else ((0, ROWS), (3, 16), (7, ROWS), (16, ROWS), (35, ROWS))
    ):
        data, by = (rng.integers(0, 9, size).astype(dtype) for size in (rows * n, 70))
        want, expected_data = np.zeros(rows, dtype), data.copy()
        interpret(module, name, [want, expected_data, by.copy(), n], (rows,), (rows,))
        for form, program in programs.items():
            out, source = np.zeros(rows, dtype), before_the_end(data)
            program.run(name, rows, rows, out, source, by, np.int32(n))
            assert np.allclose(out, want, rtol=1e-5, atol=0), f"{name}, {n} columns, {form}"
            assert np.array_equal(source, expected_data), f"{name}, {n} columns, {form}"


def test_where_rows_become_tiles(compiled):
    """Loops that store, that end early, that do not always load, or the same lanes, or that do not go on by
    one have none."""
    program = Program(compiled, width=8)
    have = {name for name in KERNELS if "transpose" in program.code(name).text}
    assert have == set(KERNELS) - {"some", "inside", "until", "written", "by_product", "jumping", "pairs"}


# in[256 * id + 128 + (k + by)] once and for k below n; k, the sum with `by` and n are of the type COUNT.
BYTES = f"""{CAPABILITIES}
OpMemoryModel Physical64 OpenCL
OpEntryPoint Kernel %main "main" %gid
OpDecorate %gid BuiltIn GlobalInvocationId
{SCALARS}
{constants("i64", bytes=256, middle=128)}{constants("COUNT", zero=0, one=1)}{constants("i8", none=0, three=3)}
%i64v3 = OpTypeVector %i64 3
%ptr_in = OpTypePointer Input %i64v3
%bytes_ptr = OpTypePointer CrossWorkgroup %i8
%fn = OpTypeFunction %void %bytes_ptr %bytes_ptr %COUNT %COUNT
%gid = OpVariable %ptr_in Input
%main = OpFunction %void None %fn
%out = OpFunctionParameter %bytes_ptr
%in = OpFunctionParameter %bytes_ptr
%by = OpFunctionParameter %COUNT
%n = OpFunctionParameter %COUNT
%entry = OpLabel
%id3 = OpLoad %i64v3 %gid
%id = OpCompositeExtract %i64 %id3 0
%start = OpIMul %i64 %id %bytes
%row = OpIAdd %i64 %start %middle
%base = OpPtrAccessChain %bytes_ptr %in %row
OpBranch %loop
%loop = OpLabel
%k = OpPhi %COUNT %zero %entry %next %loop
%sum = OpPhi %i8 %none %entry %added %loop
%at = OpIAdd %COUNT %k %by
%place = OpPtrAccessChain %bytes_ptr %base %at
%x = OpLoad %i8 %place Aligned 1
%product = OpIMul %i8 %sum %three
%added = OpIAdd %i8 %product %x
%next = OpIAdd %COUNT %k %one
%more = OpSLessThan %bool %next %n
OpBranchConditional %more %loop %done
%done = OpLabel
%to = OpPtrAccessChain %bytes_ptr %out %id
OpStore %to %added Aligned 1
OpReturn
OpFunctionEnd
"""


@pytest.mark.parametrize(
    "count, by, n",
    [
        ("i8", 100, 70),
        ("i8", 120, 33),
        ("i8", -128, 100),
        ("i64", 27, 100),
        ("i64", 127, 1),
        ("i64", 127, -5),
    ],
)
def test_sums_as_indices(before_the_end, count, by, n):
    """One of few bits goes on at the other end of its range, and no row does. Nor is more loaded than the
    loop is going to, which runs once if its limit is negative."""
    program, rows = Program(assemble(BYTES.replace("COUNT", count)), width=8), 16
    assert ("transpose" in program.code("main").text) == (count == "i64")
    data = before_the_end(np.random.default_rng(7).integers(0, 256, 256 * rows).astype(np.uint8))
    want, out = np.zeros((2, rows), np.uint8)
    bits = (1 << int(count[1:])) - 1
    interpret(program.module, "main", [want, data.copy(), by & bits, n & bits], (rows,), (rows,))
    number = {"i8": np.int8, "i64": np.int64}[count]
    program.run("main", rows, rows, out, data, number(by), number(n))
    assert np.array_equal(out, want)


AROUND = """
#define AROUND(name, type) \\
kernel void name(global uint *out, global const uchar *in, global const uint *starts, uint some, int n) { \\
  uint start = starts[get_global_id(0)], sum = 0; \\
  if (some >> get_global_id(0) & 1) for (uint k = 0; k < n; k++) sum = sum * 3 + in[(type)(start + k)]; \\
  out[get_global_id(0)] = sum; }
AROUND(plain, uint) AROUND(with_sign, int)
"""


@pytest.fixture(scope="module")
def all_indices():
    """Memory that any index of 32 bits leads to: nothing is there before and after."""
    room = mmap.mmap(-1, (1 << 32) + 2 * mmap.PAGESIZE, mmap.MAP_PRIVATE | MAP_NORESERVE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(room))
    libc = ctypes.CDLL(None, use_errno=True)
    for at in (start, start + mmap.PAGESIZE + (1 << 32)):
        assert libc.mprotect(ctypes.c_void_p(at), mmap.PAGESIZE, 0) == 0
    view = np.frombuffer(room, np.uint8, 1 << 32, mmap.PAGESIZE)
    for end in (0, 1 << 31, 1 << 32):
        near = view[max(end - 4096, 0) : end + 4096]
        near[:] = np.random.default_rng(end).integers(0, 256, near.size)
    yield view
    for at in (start, start + mmap.PAGESIZE + (1 << 32)):
        assert libc.mprotect(ctypes.c_void_p(at), mmap.PAGESIZE, 3) == 0


@pytest.mark.parametrize("name", ["plain", "with_sign"])
@pytest.mark.parametrize("width", [4, 8, 16])
def test_indices_that_go_on_at_the_other_end(all_indices, name, width):
    """Rows of lanes whose index of 32 bits does so are not loaded as whole vectors, and all others are."""
    program = Program(compile_c(AROUND), width=width)
    assert "transpose" in program.code(name).text
    view, base = all_indices, 1 << 31 if name == "with_sign" else 0
    turn = 1 << 31 if name == "with_sign" else 1 << 32
    for first, some, n in (
        (turn - 99, ALL, 40), (turn - 99, 0x0F0F, 40), (turn - 99, 3, 64), (turn - 21, ALL, 9),
        (turn - 99, 7, 65), (512, ALL, 33),
    ):  # fmt: skip
        out, want = np.full(16, 7, np.uint32), np.zeros(16, np.uint32)
        for row in range(16):
            if some >> row & 1:
                for k in range(n):
                    index = (first + 16 * row + k) % (1 << 32)
                    at = (index + (1 << 31)) % (1 << 32) if name == "with_sign" else index
                    want[row] = np.uint32((int(want[row]) * 3 + int(view[at])) % (1 << 32))
        starts = np.arange(first, first + 256, 16, np.int64).astype(np.uint32)
        program.run(name, 16, 16, out, view[base:], starts, np.uint32(some), np.int32(n))
        assert np.array_equal(out, want), (first, some, n)
