# ruff: noqa: E501  kernels as one line each
"""Private arrays that stay in memory: filled by copies, constant, or constant in part."""

import numpy as np
import pytest

from cl_driver.interp.run import run as interpret
from tests.runtime.kernel_harness import Program, compile_c

SOURCE = r"""
kernel void zeros(global int *out, global const int *in, int n) {
  int c[16] = {0, 0, 0, 7, 0, 0, 0, 0, 9}; int x = get_global_id(0), s = 0;
  for (int k = 0; k < n; k++) s += in[(x + k) % 74] * c[in[(x + k) % 74] & 15] + c[k & 7]; out[x] = s; }
kernel void floats(global int *out, global const int *in, int n) {
  float c[3][4] = {{0, 0.5f, 0, 0}, {0, 0, -2.5f}}; int x = get_global_id(0); float s = 0;
  for (int k = 0; k < n; k++) s += c[k % 3][in[(x + k) % 74] & 3] * (k + 1); out[x] = (int)(s * 4); }
kernel void shorts(global int *out, global const int *in, int n) {
  short c[24] = {0}; c[5] = 3; c[20] = -7; int x = get_global_id(0), s = 0;
  for (int k = 0; k < n; k++) s = s * 3 + c[in[(x + k) % 74] % 24] + c[k + 4]; out[x] = s; }
kernel void changed(global int *out, global const int *in, int n) {
  int c[9] = {1, 2, 1, 2, 4, 2, 1, 2, 1}; int x = get_global_id(0), s = 0;
  for (int k = 0; k < n; k++) { s += in[(x + k) % 74] * c[k % 9]; c[in[(x + k) % 74] & 7] += 1; } out[x] = s; }
kernel void copied(global int *out, global const int *in, int n) {
  int c[16], x = get_global_id(0), s = 0; for (int k = 0; k < 16; k++) c[k] = in[k];
  for (int k = 0; k < n; k++) { s += c[in[(x + k) % 74] & 15]; if (s & 1) c[s & 15] = x; } out[x] = s; }
kernel void own(global int *out, global const int *in, int n) {
  int c[10], d[10], x = get_global_id(0), s = 0; for (int k = 0; k < 10; k++) c[k] = in[x % 60 + k];
  for (int k = 0; k < 10; k++) d[k] = c[k];
  for (int k = 0; k < n; k++) { s += c[in[(x + k) % 74] % 10] - d[s & 7]; c[k] = s; d[k & 3] = k; }
  for (int k = 0; k < 10; k++) s = s * 5 + c[k] + d[k]; out[x] = s; }
kernel void lu(global int *out, global const int *in, int n) {
  int x = get_global_id(0); float a[4][4];
  for (int r = 0; r < 4; r++) for (int c = 0; c < 4; c++) a[r][c] = (in[(x + r * 4 + c) % 74] & 15) + (r == c ? 64.0f : 0.0f);
  for (int k = 0; k < 4; k++) for (int r = k + 1; r < 4; r++) { float f = a[r][k] / a[k][k]; a[r][k] = f;
    for (int c = k + 1; c < 4; c++) a[r][c] -= f * a[k][c]; }
  out[x] = (int)(a[3][3] * 16) + (int)(a[3][2] * 64) + n; }
"""
FORMS = ((1, 1), (4, 1), (8, 1), (16, 1), (8, 2))
NAMES = ("zeros", "floats", "shorts", "changed", "copied", "own", "lu")


@pytest.fixture(scope="module")
def programs():
    data = compile_c(SOURCE)
    return [Program(data, width=width, parts=parts) for width, parts in FORMS]


@pytest.mark.parametrize("name", NAMES)
def test_arrays_in_memory(programs, name):
    """Groups of 37 have vectors with lanes that are no work-items."""
    inputs = np.random.default_rng(3).integers(0, 1000, 74).astype(np.int32)
    for n in (0, 7):
        want = np.zeros(74, np.int32)
        interpret(programs[0].module, name, [want, inputs.copy(), n], (74,), (37,))
        assert n == 0 or len(set(want.tolist())) > 2
        for program in programs:
            out = np.zeros(74, np.int32)
            program.run(name, 74, 37, out, inputs, np.int32(n))
            assert np.array_equal(out, want), f"{name}, n = {n}, width {program.width}"


def test_no_block_for_each_lane(programs):
    """Constant arrays have none at all, copies are of elements of all lanes."""
    for program in programs[1:]:
        for name in NAMES:
            text = program.code(name).text
            assert "llvm.memcpy" not in text.split("define")[1], (name, program.width)
        for name in ("zeros", "floats", "shorts"):
            assert "@constant0" in program.code(name).text, name
