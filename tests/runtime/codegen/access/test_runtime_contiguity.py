# ruff: noqa: E501  kernels as one line each
"""Addresses whose stride shows when the kernel runs: neighbours, one place for all, and neither."""

import copy
import re
import struct
import subprocess

import numpy as np
import pytest

from cl_driver.interp.run import run as interpret
from cl_driver.spirv.enums import Op
from tests.marks import split
from tests.runtime.kernel_harness import Program, assemble, compile_c

SOURCE = r"""
kernel void clamped(global int *out, global const int *in, int n, int k) {
  int x = get_global_id(0); out[x] = in[clamp(x - k, 0, n - 1)] * 3 + in[min(x + k, n - 1)]; }
kernel void clamped4(global uchar4 *out, global const uchar4 *in, int n, int k) {
  int x = get_global_id(0); out[x] = in[clamp(x + k, 0, n - 1)]; }
kernel void swapped(global int *out, global const int *in, int n, uint k) {
  uint x = get_global_id(0), j = x ^ k; out[j & 63] = in[j & 63] - (int)x; }
kernel void sorted(global int *out, global const int *in, int n, uint k) {
  uint i = get_global_id(0), j = i ^ k;
  if (j > i && j < (uint)n) { int a = in[i], b = in[j]; if (a > b) { out[i] = b; out[j] = a; } } }
kernel void wrapped(global int *out, global const int *in, int n, uint k) {
  uint x = get_global_id(0); out[x] = in[(x + k) % (uint)n] + in[n - 1 - (int)(x % (uint)n)]; }
kernel void rows(global int *out, global const int *in, int n, int k) {
  int x = get_global_id(0), row = x / k, column = x % k, sum = 0;
  for (int i = 0; i < 3; i++) sum += in[row * 3 + i] * in[i * k + column];
  out[row * k + column] = sum; }
kernel void shifted(global int *out, global const int *in, int n, int k) {
  int x = get_global_id(0); out[x] = in[x >> 5] + in[(x & ~15) + (x & 7)] + in[2 * x - (x & (k - 1))]; }
kernel void chosen(global int *out, global const int *in, int n, int k) {
  int x = get_global_id(0), at = x < k ? x + 1 : x; if (x & 1) out[x] = in[at]; else out[x] = in[x < k ? k : 3]; }
kernel void narrow(global int *out, global const int *in, int n, int k) {
  uchar x = (uchar)(get_global_id(0) + 240 + k); ushort y = (ushort)(get_global_id(0) + 65530);
  out[get_global_id(0)] = in[x & 63] + in[(uchar)(x + 9) >> 2] + in[y % 64]; }
kernel void vectors(global int *out, global const int *in, int n, int k) {
  size_t x = get_global_id(0); size_t at = min(x, (size_t)k);
  int3 v = vload3(at, in); vstore2((int2)(v.x + v.z, v.y), (x ^ 1) % 32, out); }
kernel void bounded(global int *out, global const int *in, int n, int k) {
  int x = get_global_id(0); uint u = get_global_id(0);
  int s = in[clamp(n - x, 0, n - 1)] + in[min(k, x)] * 3 + in[max(x - k, 3)] * 5 + in[min(u + k, (uint)n - 1)] * 7;
  out[x] = s + in[clamp(2 * x, k, n - 1)] + in[min(x, k + (x & 1))] * 9; }
kernel void summed(global int *out, global const int *in, int n, int k) {
  int x = get_global_id(0), row = k % 3 * 64, s = in[row + clamp(x - k, 0, n - 1)] + in[clamp(k - x, 0, 50) + row] * 3;
  if (x > k) s += in[clamp(x + 1, 0, n / 2) + row + k] * 5; out[x] = s; }
kernel void carried(global int *out, global const int *in, int n, int k) {
  int x = get_global_id(0), at = 1;
  for (int i = 1; i <= k; i++) {
    if (in[i + n] & 1) { if (in[x] >= in[i] && in[x] < in[i + 1]) { if (in[x + 3] >= in[i + 2] && in[x + 3] < in[i + 3]) at = i; } }
    else if (in[i + n] & 2) { if (in[x + 1] * in[x + 1] <= in[i]) at = i; } }
  out[x] = in[at] + in[at + k]; }
kernel void marched(global int *out, global const int *in, int n, int k) {
  int x = get_global_id(0), a = x == 0 ? x : x - 1, b = x == n - 1 ? x : x + 1, s = 0;
  global const int *p = in + (x == k ? x + 3 : x), *q = in + 199 - clamp(x - k, 0, n - 1);
  for (int i = 0; i < (k & 3) + 2; i++) { s += in[a] * 3 + in[b] * 5 + *p * 7 + *q; a += k; b += in[i] & 7; p += k; q -= 3 - i; }
  out[x] = s; }
kernel void halved(global int *out, global const int *in, int n, int k) {
  int x = get_global_id(0); uint u = get_global_id(0);
  out[(2 * x + k % 2) / 2] = in[(2 * x + k - 19) / 2 + 10] + in[(3 * x + k) / 3] * 3 + in[(2u * u + k) / 2] * 5
    + in[(uint)(4 * x - k) >> 2 & 127] * 7 + in[(x + k) / 2] * 9 + in[(12 * x + k) / 3 & 127] * 11; }
kernel void convolved(global int *out, global const int *in, int n, int k) {
  int x = get_global_id(0), first = x + k < n ? 0 : x + k + 1 - n, last = x < k ? x + k + 1 : 2 * k, s = 0;
  for (int i = first; i < last; i++) s += in[i] * in[x + k - i + 60];
  out[x] = s + *(x < k ? in + 3 : in + x) * 3 - in[max(x < k ? n : x, k + 9)] * 5; }
kernel void marched_apart(global int *out, global const int *in, int n, int k) {
  int x = get_global_id(0), a = x == 0 ? x : x - 1, b = x == n - 1 ? x : x + 1, c = x % k, s = 0;
  for (int i = 0; i < (x & 3) + k / 7; i++) {
    for (int j = 0; j < 2; j++) { s += in[a] - in[c] * i; a += 2; c += 3; }
    s += in[b]; b += in[b] & 1; }
  out[x] = s; }
"""

WIDTHS = ((4, 1), (16, 1), (4, 3), (1, 1), (8, 1), (4, 2), (16, 2))
ITEMS = {"rows": 48, "vectors": 32, "swapped": 64}


@pytest.fixture(scope="module")
def compiled():
    return compile_c(SOURCE)


@pytest.fixture(scope="module")
def programs(compiled):
    return {form: Program(compiled, width=form[0], parts=form[1]) for form in WIDTHS}


@pytest.mark.parametrize("forms", split(WIDTHS, 3), ids=["some", "others"])
@pytest.mark.parametrize("k", [1, 2, 7, 16, 32])
@pytest.mark.parametrize(
    "name",
    [
        "clamped", "clamped4", "swapped", "sorted", "wrapped", "rows", "shifted", "chosen", "narrow", "vectors",
        "bounded", "summed", "carried", "marched", "halved", "marched_apart", "convolved",
    ],
)  # fmt: skip
def test_regular_addresses(programs, name, k, forms):
    """Whatever the lanes turn out to access, with groups that fill vectors and groups that do not."""
    rng = np.random.default_rng(k)
    inputs = rng.integers(-1000, 1000, 200).astype(np.int32)
    items = ITEMS.get(name, 57)
    if name == "sorted":
        items = 64 if k > 7 else 56  # pairs are within a group's vectors or not, but never half outside
    out_type, in_data = (np.uint8, inputs.view(np.uint8)) if name == "clamped4" else (np.int32, inputs)
    number = np.uint32 if name in ("swapped", "sorted", "wrapped") else np.int32
    start = rng.integers(0, 9, 256 if out_type is np.uint8 else 64).astype(out_type)
    for local in (items, 19 if items == 57 else 8):
        want = start.copy()
        interpret(programs[1, 1].module, name, [want, copy.deepcopy(in_data), items, k], (items,), (local,))
        for form in forms:
            out = start.copy()
            programs[form].run(name, items, local, out, in_data, np.int32(items), number(k))
            assert np.array_equal(out, want), f"{name}, k = {k}, groups of {local}, {form}"


@pytest.mark.parametrize(
    ("name", "halves"),
    [
        ("clamped", 2),
        ("clamped4", 1),
        ("swapped", 2),
        ("sorted", 3),
        ("wrapped", 1),
        ("rows", 2),
        ("vectors", 2),
        ("bounded", 5),
        ("summed", 3),
        ("marched", 4),
        ("marched_apart", 1),
        ("convolved", 8),  # each may have lanes at one place, too
    ],
)
def test_there_are_two_versions(programs, name, halves):
    """Contiguous accesses or single ones are there where they may pay: the test above tests something."""
    text = programs[16, 1].code(name).text
    assert text.count("\nregular") >= halves


def test_loops_ask_before_they_begin(programs):
    """What all lanes add in a loop leaves the differences between them as they are."""
    text = programs[16, 1].code("marched").text
    loop = next(b for b in text.split("\nr0.") if b.count(" = phi <16 x ") > 2)
    assert loop.count("regular") and not re.search(r"icmp eq <16 x (i32|i64|ptr)>", loop)


def test_addresses_that_no_lane_needs():
    """Masked accesses to memory that is not there are slow, though no lane takes part: what computes an
    address is jumped over together with what uses it."""
    compiled = compile_c(
        "kernel void merge(global uint *data, uint distance) { uint i = get_global_id(0), j = i ^ distance; "
        "if (j > i) { uint a = data[i], b = data[j]; if (a > b != (i & 4)) { data[i] = b; data[j] = a; } } }"
    )
    data = np.random.default_rng(0).integers(0, 1000, 128).astype(np.uint32)
    for distance in (1, 8, 16, 64):
        want = data.copy()
        for i in range(128):
            j = i ^ distance
            if j > i and (data[i] > data[j]) != (i & 4):
                want[i], want[j] = data[j], data[i]
        for width, parts in WIDTHS:
            program = Program(compiled, width=width, parts=parts)
            text = program.code("merge").text
            assert "phi ptr" not in text
            found = data.copy()
            program.run("merge", 128, 64, found, np.uint32(distance))
            assert np.array_equal(found, want), (distance, width, parts)


def test_bounded_values_that_wrap_around():
    """Lanes on both sides of where a number becomes negative, and of zero: bounds are asked of both ends."""
    program = compile_c(
        "kernel void wrapping(global int *out, global const int *in, uint k) { uint x = get_global_id(0) + k; "
        "out[get_global_id(0)] = in[clamp((int)x, 0, 70)] * 3 + in[min(x, 70u)] * 5 + in[min(max((int)x, 5), 127)]; }"
    )
    inputs = np.random.default_rng(0).integers(-1000, 1000, 128).astype(np.int32)
    for width, parts in WIDTHS:
        form = Program(program, width=width, parts=parts)
        for k in (0, 9, 2**31 - 1, 2**31 - 20, 2**32 - 3, 2**32 - 40, 2**31 + 1):
            out = np.zeros(64, np.int32)
            form.run("wrapping", 57, 57, out, inputs, np.uint32(k))
            x = np.arange(57, dtype=np.uint32) + np.uint32(k)
            signed = x.astype(np.int32)
            want = inputs[np.clip(signed, 0, 70)] * 3 + inputs[np.minimum(x, 70)] * 5
            want += inputs[np.clip(signed, 5, 127)]
            assert np.array_equal(out[:57], want), (width, parts, k)
    text = Program(program, width=16, parts=1).code("wrapping").text
    assert not re.search(r"icmp eq i16 \S+, -1", text)  # nothing is asked of all lanes


def test_extended_sums():
    """What is cut to fewer bits and extended again: neighbours, but where it leaves its range between lanes."""
    program = compile_c("kernel void folded(global int *out, global const int *in, ulong k) { "
                        "size_t x = get_global_id(0); out[x] = in[32768 + (short)(x + k)]; }")  # fmt: skip
    inputs = np.random.default_rng(0).integers(-1000, 1000, 1 << 16).astype(np.int32)
    for width, parts in WIDTHS:
        form = Program(program, width=width, parts=parts)
        for k in (0, 5, 32752, 32760, 32767, 32768, 65500, 1 << 40):
            for local in (57, 19):
                out = np.zeros(64, np.int32)
                form.run("folded", 57, local, out, inputs, np.uint64(k))
                at = (np.arange(57, dtype=np.uint64) + np.uint64(k)).astype(np.int16).astype(int)
                assert np.array_equal(out[:57], inputs[32768 + at]), (width, parts, k, local)
    text = Program(program, width=16, parts=1).code("folded").text
    assert "\nregular" in text
    assert "icmp sge i64" in text  # a question about two lanes, not about all


def test_extended_sums_of_parts():
    """Each of several vectors asks the same: their ids are sums within what is cut."""
    program = compile_c("kernel void cut(global int *out, global const int *in, ulong k) { "
                        "int x = get_global_id(0) + k; out[get_global_id(0)] = in[x] + in[x + 99]; }")  # fmt: skip
    inputs = np.random.default_rng(0).integers(-1000, 1000, 512).astype(np.int32)
    for width, parts in WIDTHS:
        form = Program(program, width=width, parts=parts)
        text = form.code("cut").text
        assert (width == 1 or "\nregular" in text) and not re.search(r"icmp eq i\d+ \S+, -1", text)
        for k in (0, 100, 1 << 32):
            out = np.zeros(150, np.int32)
            form.run("cut", 150, 50, out, inputs, np.uint64(k))
            at = np.arange(150) + k % (1 << 32)
            assert np.array_equal(out, inputs[at] + inputs[at + 99]), (width, parts, k)


@pytest.mark.parametrize("amount", (64, 1 << 40))
def test_shifts_by_more_than_there_are_bits(amount):
    """No result is defined, but the kernel builds and ends."""
    program = compile_c("kernel void far(global int *out, global const int *in, ulong k) { size_t x = get_global_id(0); "
                        "out[x] = in[(long)((x + k) << 21) >> 21]; }")  # fmt: skip
    constant = struct.pack("<I", 5 << 16 | Op.Constant)
    (at,) = (k for k in range(0, len(program), 4) if program[k : k + 4] == constant and program[k + 12] == 21)
    program = program[: at + 12] + struct.pack("<Q", amount) + program[at + 20 :]
    for width, parts in WIDTHS:
        form = Program(program, width=width, parts=parts)
        form.run("far", 57, 57, np.zeros(64, np.int32), np.zeros(64, np.int32), np.uint64(3))


def test_an_index_that_is_converted_to_its_own_type():
    """clang makes such copies, as of UConvert."""
    source = """kernel void k(global int *out, global const int *in, int n) {
        uint x = get_global_id(0), j = x ^ n; out[x] = in[j]; }"""
    text = subprocess.run(["spirv-dis", "-"], input=compile_c(source), capture_output=True, check=True).stdout
    twice, count = re.subn(
        r"( *)(%\S+) = OpUConvert %ulong (%\S+)\n",
        r"\1%copied = OpUConvert %ulong \3\n\1\2 = OpUConvert %ulong %copied\n",
        text.decode(),
        count=1,
    )
    assert count == 1
    data = np.arange(64, dtype=np.int32) * 7
    for width in (1, 8, 16):
        program, out = Program(assemble(twice), width=width), np.zeros(64, np.int32)
        program.run("k", 64, 64, out, data, np.int32(5))
        assert np.array_equal(out, data[np.arange(64) ^ 5])
