# ruff: noqa: E501  kernels as one line each
"""Memory that lanes read, change and write back at places of their own."""

import re

import numpy as np
import pytest

from cl_driver.codegen.llvm.options import CodegenOptions
from cl_driver.codegen.simd import emitter
from cl_driver.codegen.simd.memory_updates import emit_update
from cl_driver.device.target import host_target
from cl_driver.interp import run as interpreter
from tests.runtime.kernel_harness import Local, Program, compile_c

SOURCE = r"""
kernel void bins(global int *out, global const int *in, int n) {
  int x = get_global_id(0), bin[16]; for (int k = 0; k < 16; k++) bin[k] = 0;
  for (int k = 0; k < n; k++) bin[(in[x] >> k) & 15] += 1;
  int s = 0; for (int k = 0; k < 16; k++) s = s * 3 + bin[k]; out[x] = s; }
kernel void guarded(global int *out, global const int *in, int n) {
  int x = get_global_id(0); long bin[8]; for (int k = 0; k < 8; k++) bin[k] = k;
  for (int k = 0; k < n; k++) if ((in[x] ^ k) % 3) bin[(in[x] + k) & 7] += (long)in[k] * x;
  long s = 0; for (int k = 0; k < 8; k++) s = s * 3 + bin[k]; out[x] = s; }
kernel void vectors(global int *out, global const int *in, int n) {
  int x = get_global_id(0); int4 bin[8]; for (int k = 0; k < 8; k++) bin[k] = (int4)(k, x, 1, 2);
  for (int k = 0; k < n; k++) { bin[(in[x] >> k) & 7] += (int4)(1, in[x], k, x); bin[(in[x] + k) & 7].y ^= k; }
  int4 s = 0; for (int k = 0; k < 8; k++) s = s * 3 + bin[k]; out[x] = s.x + s.y * 5 + s.z * 7 + s.w; }
kernel void several(global int *out, global const int *in, int n) {
  int x = get_global_id(0), bin[32]; for (int k = 0; k < 32; k++) bin[k] = k * 7;
  for (int k = 0; k < n; k++) bin[(in[x] + k * x) & 31] = max((bin[(in[x] + k * x) & 31] ^ x) + 3, k);
  int s = 0; for (int k = 0; k < 32; k++) s = s * 3 + bin[k]; out[x] = s; }
kernel void read_before(global int *out, global const int *in, int n) {
  int x = get_global_id(0), s = 0; int bin[16]; for (int k = 0; k < 16; k++) bin[k] = k;
  for (int k = 0; k < n; k++) { int was = bin[(in[x] >> k) & 15]; bin[k & 15] = was + 1; bin[(in[x] >> k) & 15] = was + 2; s += was; }
  for (int k = 0; k < 16; k++) s = s * 3 + bin[k]; out[x] = s; }
kernel void written_between(global int *out, global const int *in, int n) {
  int x = get_global_id(0), s = 0; int bin[16]; for (int k = 0; k < 16; k++) bin[k] = k;
  for (int k = 0; k < n; k++) { int was = bin[(in[x] >> k) & 15]; bin[(x + k) & 15] = k; bin[(in[x] >> k) & 15] = was + 2; }
  for (int k = 0; k < 16; k++) s = s * 3 + bin[k]; out[x] = s; }
kernel void global_bins(global int *out, global const int *in, int n) {
  int x = get_global_id(0); for (int k = 0; k < n; k++) out[74 + x * 4 + ((in[x] >> k) & 3)] += k; }
kernel void global_vectors(global int *out, global const int *in, int n) {
  int x = get_global_id(0); global int2 *bin = (global int2 *)out; for (int k = 0; k < n; k++) bin[x * 2 + ((in[x] >> k) & 1)] += (int2)(x, k); }
kernel void kept(global int *out, global const int *in, int n, local int *l) {
  int x = get_global_id(0), bin[16]; for (int k = 0; k < 16; k++) bin[k] = 0;
  for (int r = 0; r < 3; r++) { barrier(CLK_LOCAL_MEM_FENCE); l[get_local_id(0)] = bin[(x + r) & 15]; barrier(CLK_LOCAL_MEM_FENCE);
    int y = l[(get_local_id(0) + 1) % get_local_size(0)]; for (int k = 0; k < n; k++) bin[((in[x] >> k) + y) & 15] += k; }
  int s = 0; for (int k = 0; k < 16; k++) s = s * 3 + bin[k]; out[x] = s; }
kernel void local_bins(global int *out, global const int *in, int n, local int *bin) {
  int x = get_global_id(0), l = get_local_id(0), m = get_local_size(0); for (int k = 0; k < 4; k++) bin[k * m + l] = k;
  barrier(CLK_LOCAL_MEM_FENCE); for (int k = 0; k < n; k++) bin[((in[x] >> k) & 3) * m + l] += k + 1;
  barrier(CLK_LOCAL_MEM_FENCE); l = (l + 1) % m; out[x] = bin[l] + 3 * bin[m + l] + 9 * bin[2 * m + l] + 27 * bin[3 * m + l]; }
"""

FORMS = ((4, 1), (16, 1), (8, 1), (8, 2))
FEATURES = {"few": CodegenOptions().features, "host": frozenset(host_target().features)}
# Updates that lanes make at places of their own. What is read or written in between is none.
UPDATES = {
    "bins": 1, "guarded": 1, "vectors": 2, "several": 1, "read_before": 0, "written_between": 0, "global_bins": 1,
    "global_vectors": 0, "kept": 3, "local_bins": 1,
}  # fmt: skip


@pytest.fixture(scope="module", params=FEATURES)
def programs(request):
    data = compile_c(SOURCE)
    options = CodegenOptions(features=FEATURES[request.param])
    return {form: Program(data, options, width=form[0], parts=form[1]) for form in FORMS}


@pytest.mark.parametrize("name", UPDATES)
def test_updates(programs, name):
    """Groups of 37 have vectors with lanes that are no work-items."""
    inputs = np.random.default_rng(3).integers(0, 1 << 20, 74).astype(np.int32)
    size = 4 * 37 * 4 if name in ("local_bins", "kept") else 0
    for n in (0, 1, 19):
        want = np.arange(74 * 6, dtype=np.int32)
        interpreter.run(
            programs[8, 1].module,
            name,
            [want, inputs.copy(), n, *[interpreter.Local(size)] * (size > 0)],
            (74,),
            (37,),
        )
        for form, program in programs.items():
            out = np.arange(74 * 6, dtype=np.int32)
            program.run(name, 74, 37, out, inputs, np.int32(n), *[Local(size)] * (size > 0))
            assert np.array_equal(out, want), f"n = {n}, width {form[0]}, {form[1]} parts"


@pytest.fixture(scope="module")
def without_gathers():
    return Program(compile_c(SOURCE), CodegenOptions(FEATURES["few"]), width=8)


@pytest.mark.parametrize("name", UPDATES)
def test_found(without_gathers, name, monkeypatch):
    seen = []
    monkeypatch.setattr(
        emitter, "emit_update", lambda e, update: seen.append(update) or emit_update(e, update)
    )
    without_gathers.code(name)
    assert len({update.store for update in seen}) == UPDATES[name]


def test_no_lane_is_looked_up_twice(without_gathers):
    """Two lanes' places leave a vector as one word, and nothing is put into one but what all lanes have."""
    text = without_gathers.code("bins").text
    assert "extractelement <8 x ptr>" not in text
    assert text.count("extractelement <4 x i64>") % 4 == 0
    assert not re.search(r"insertelement <8 x i32> %\w+, i32 %\w+, i32 7", text)
