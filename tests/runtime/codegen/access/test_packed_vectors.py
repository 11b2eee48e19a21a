# ruff: noqa: E501  kernels as one line each
"""OpenCL vectors that stream through as memory has them (codegen/access/packed_vectors.py), and 16 bits where
these do (passes/loops/narrow_integers.py)."""

import numpy as np
import pytest

from cl_driver.interp.run import run as interpret
from tests.marks import few, halved, split
from tests.runtime.kernel_harness import Program, compile_c

SOURCE = r"""
kernel void scaled(global float4 *out, global const float4 *in, int n, int k) {
  int x = get_global_id(0); out[x] = in[x] * (float4)(1, 2, 3, 4) + (float)k; }
kernel void weighed(global float2 *out, global const float2 *in, int n, int k) {
  int x = get_global_id(0); float2 w = (float2)(k, n), s = 0; for (int i = 0; i < k; i++) s = s * w + in[x + i]; out[x] = s; }
kernel void chosen(global int8 *out, global const int8 *in, int n, int k) {
  int x = get_global_id(0); int8 a = in[x], b = in[x + 1]; out[x] = select(a, b - k, a > b); }
kernel void some(global short4 *out, global const short4 *in, int n, int k) {
  int x = get_global_id(0); short4 a = in[x]; if (x % 5 != k) out[x] = a << (short4)(3, 2, 1, 0); }
kernel void clamped(global uint2 *out, global const uint2 *in, int n, int k) {
  int x = get_global_id(0); out[clamp(x, 0, n - 3)] = max(in[clamp(x - k, 0, n - 1)], in[min(x, k)]); }
kernel void mixed(global float4 *out, global const float4 *in, int n, int k) {
  int x = get_global_id(0); float4 v = in[x] + 1; out[x] = v.x > k ? v : v.wzyx; }
kernel void added(global uchar4 *out, global const uchar4 *in, int n, int k) {
  int x = get_global_id(0); uint4 s = 12;
  for (int i = -2; i <= 2; i++) s += convert_uint4(in[clamp(x + i, 0, n - 1)]); out[x] = convert_uchar4(s / 5); }
kernel void blended(global uchar8 *out, global const uchar8 *in, int n, int k) {
  int x = get_global_id(0); uint8 a = convert_uint8(in[x]), b = convert_uint8(in[x + 1]);
  out[x] = convert_uchar8((a * (uint8)(100) + b * (uint8)(156) + (uint8)(128)) >> (uint8)(8)); }
kernel void averaged(global ushort2 *out, global const uchar2 *in, int n, int k) {
  int x = get_global_id(0); uint2 s = 0; for (int i = 0; i < 8; i++) s += convert_uint2(in[x + i]) * (uint2)(31, 32);
  out[x] = convert_ushort2(s); }
kernel void large(global uchar4 *out, global const uchar4 *in, int n, int k) {
  int x = get_global_id(0); uint4 s = 0; for (int i = 0; i < 60; i++) s += convert_uint4(in[x + i / 8]) * (uint4)(5);
  out[x] = convert_uchar4(s / 300); }
kernel void negative(global uchar4 *out, global const uchar4 *in, int n, int k) {
  int x = get_global_id(0); uint4 s = convert_uint4(in[x]) + (uint4)(0xFFFFFF90u); out[x] = convert_uchar4(s >> (uint4)(24)); }
kernel void unbounded(global uchar4 *out, global const uchar4 *in, int n, int k) {
  int x = get_global_id(0); uint4 s = 0; for (int i = 0; i < k * 3; i++) s += convert_uint4(in[x + i / 3]); out[x] = convert_uchar4(s / 9); }
kernel void saturated(global uchar4 *out, global const uchar4 *in, int n, int k) {
  int x = get_global_id(0); out[x] = convert_uchar4_sat(convert_uint4(in[x]) * (uint4)(3)); }
kernel void apart(global float *out, global const float4 *in, int n, int k) {
  int x = get_global_id(0); float4 s = 0; for (int i = 0; i < 8; i++) s += in[x + i] * (float)(i + k); out[x] = s.x - s.y + 2 * s.z - s.w; }
kernel void steps(global float *out, global const float2 *in, int n, int k) {
  int x = get_global_id(0); float2 s = 0; for (int i = 0; i < 4; i++) { s += in[x]; x += n / 16; } out[get_global_id(0)] = s.y * k - s.x; }
kernel void few(global float *out, global const float4 *in, int n, int k) {
  int x = get_global_id(0); float4 s = in[x] + in[x + 1] * k; out[x] = s.x - s.y; }
kernel void turned(global float4 *out, global const float4 *in, int n, int k) {
  int x = get_global_id(0); float4 s = 0; for (int i = 0; i < 8; i++) s += in[x + i] * (float)(i + k);
  out[x] = s.wzyx + dot(s, (float4)(1, 0, 2, 1)); }
kernel void backwards(global uchar4 *out, global const uchar4 *in, int n, int k) {
  int x = get_global_id(0); uint4 s = 9; for (int i = 0; i < 9; i++) s += convert_uint4(in[x + i]); out[n - 1 - x] = convert_uchar4(s / 9); }
kernel void looped(global float4 *out, global const float4 *in, int n, int k) {
  int x = get_global_id(0); float4 s = 0; for (int i = 0; i < k; i++) { s += in[x + i] + in[x + 7 - i]; s = s * 0.5f + in[i]; s += in[x]; s -= in[x + 1]; }
  if (x % 3 == 1) s = s.yxwz + in[x]; out[x] = s; }
kernel void local_sum(global float4 *out, global const float4 *in, int n, int k) {
  local float4 t[72]; int x = get_global_id(0), l = get_local_id(0), size = get_local_size(0);
  t[l] = in[x]; for (int i = l; i < 8; i += size) t[size + i] = in[i + k]; barrier(CLK_LOCAL_MEM_FENCE);
  float4 s = 0; for (int i = 0; i < 8; i++) s += t[l + i] * (float)i; out[x] = s.wzyx; }
kernel void kept(global float2 *out, global const float2 *in, int n, int k) {
  local float2 t[64]; int x = get_global_id(0), l = get_local_id(0), other = get_local_size(0) - 1 - l;
  float2 s = 1; for (int i = 0; i < 6; i++) s = s * 0.5f + in[x + i]; t[l] = s; barrier(CLK_LOCAL_MEM_FENCE);
  out[x] = s * (float)k + t[other]; }
"""

NAMES = [kernel.split("(")[0] for kernel in SOURCE.split("kernel void ")[1:]]
WIDTHS = ((4, 1), (16, 1), (4, 3), (1, 1), (8, 1), (4, 2), (16, 2))
TYPES = {
    "scaled": (np.float32, 4), "weighed": (np.float32, 2), "chosen": (np.int32, 8), "some": (np.int16, 4),
    "clamped": (np.uint32, 2), "mixed": (np.float32, 4), "averaged": (np.uint16, 2), "blended": (np.uint8, 8),
    "turned": (np.float32, 4), "looped": (np.float32, 4), "local_sum": (np.float32, 4), "kept": (np.float32, 2),
    "apart": (np.float32, 4), "steps": (np.float32, 2), "few": (np.float32, 4),
}  # fmt: skip
FLAT = [name for name in NAMES if name not in ("chosen", "mixed", "few")]
WIDE = ["clamped", "large", "negative", "unbounded", "saturated"]


def aligned(values: np.ndarray) -> np.ndarray:
    """A copy that begins where vectors may."""
    memory = np.zeros(values.nbytes + 128, np.uint8)
    first = -memory.ctypes.data % 128
    copy = memory[first : first + values.nbytes].view(values.dtype)
    copy[:] = values
    return copy


@pytest.fixture(scope="module")
def programs():
    compiled = compile_c(SOURCE)
    return {form: Program(compiled, width=form[0], parts=form[1]) for form in WIDTHS}


@pytest.mark.parametrize("forms", split(WIDTHS, 3), ids=["some", "others"])
@pytest.mark.parametrize("k", few([7, 1], 1))
@pytest.mark.parametrize("name", halved(NAMES))
def test_flat_vectors(programs, name, k, forms):
    """At each width what the interpreter says, in groups that fill vectors and in others."""
    rng = np.random.default_rng(k)
    items, (type_, count) = 57, TYPES.get(name, (np.uint8, 4))
    in_type = np.uint8 if name == "averaged" else type_
    inputs = rng.integers(0, 256 if type_ is np.uint8 else 100, 70 * count)
    if type_ is np.uint8:
        inputs[: 20 * count] = 255
    inputs = aligned(inputs.astype(in_type))
    start = np.zeros(70 * count, type_)
    for local in (items, 19, 3):
        want = start.copy()
        interpret(programs[1, 1].module, name, [want, inputs.copy(), items, k], (items,), (local,))
        assert np.count_nonzero(want) > items // 2
        for form in forms:
            out = aligned(start)
            programs[form].run(name, items, local, out, inputs, np.int32(items), np.int32(k))
            if type_ is np.float32:
                assert np.allclose(out, want, rtol=1e-6), f"{name}, k = {k}, groups of {local}, {form}"
            else:
                assert np.array_equal(out, want), f"{name}, k = {k}, groups of {local}, {form}"


ONE_PLACE = """
kernel void one_place(global uchar4 *out, global const uchar4 *in, int n, int k) {
    int x = get_global_id(0); uint4 s = 12;
    for (int i = -2; i <= 2; i++) s += convert_uint4(in[clamp(x + i, 0, n - 1)]);
    out[k] = convert_uchar4(s / 5); }
"""


def test_flat_vectors_that_all_lanes_store_to_one_place():
    """Some work-item's vector is there in the end, whole."""
    compiled, inputs = compile_c(ONE_PLACE), aligned(np.arange(70 * 4).astype(np.uint8))
    rows = np.pad(inputs.reshape(-1, 4)[:57].astype(np.uint32), ((2, 2), (0, 0)), "edge")
    each = (12 + sum(rows[i : i + 57] for i in range(5))) // 5
    for width, parts in WIDTHS:
        out = aligned(np.zeros(32, np.uint8))
        program = Program(compiled, width=width, parts=parts)
        program.run("one_place", 57, 57, out, inputs, np.int32(57), np.int32(3))
        assert out[12:16].tolist() in each.tolist(), f"width {width}, {parts} parts"
        assert not out[:12].any() and not out[16:].any()


@pytest.mark.parametrize("name", NAMES)
def test_which_are_flat(programs, name):
    """The test above tests something: vectors of the components of all lanes are computed with, of 16 bits
    where these are enough."""
    _, count = TYPES.get(name, (np.uint8, 4))
    lines = programs[8, 1].code(name).text.splitlines()
    wide = [s for s in lines if f"<{8 * count} x " in s and " = " in s]
    used = [
        s
        for s in wide
        if not any(f" {o} " in s for o in ("load", "shufflevector", "bitcast", "phi", "alloca"))
    ]
    used = [s for s in used if ".masked." not in s]
    assert bool(used) == (name in FLAT), used
    if name in FLAT:
        has_wide = any("x i32>" in s for s in used)
        assert has_wide == (name in WIDE), used
