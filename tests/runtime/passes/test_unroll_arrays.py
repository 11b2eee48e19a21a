# ruff: noqa: E501  kernels as one line each
"""Private arrays that loops of known length count through, which become values; and those that must not."""

import numpy as np
import pytest

from cl_driver.interp.run import run as interpret
from tests.marks import split
from tests.runtime.kernel_harness import Program, compile_c

SOURCE = r"""
kernel void table_row(global int *out, global const int *in, int n) {
  size_t x = get_global_id(0); int row[13]; for (int k = 0; k < 13; k++) row[k] = k;
  for (int y = 0; y < n; y++) { int corner = y, c = in[(x + y) % 74] & 3; row[0] = y + 1;
    for (int k = 0; k < 12; k++) { int kept = row[k + 1], changed = corner + (c != (in[(x * 12 + k) % 74] & 3));
      row[k + 1] = min(min(row[k], kept) + 1, changed); corner = kept; } }
  out[x] = row[12] * 100 + row[5]; }
kernel void sorted(global int *out, global const int *in, int n) {
  int x = get_global_id(0); int v[9]; for (int k = 0; k < 9; k++) v[k] = in[(x + k * 8) % 74];
  for (int i = 0; i < 8; i++) for (int j = 0; j < 8 - i; j++) if (v[j] > v[j + 1]) { int t = v[j]; v[j] = v[j + 1]; v[j + 1] = t; }
  out[x] = v[4] * 3 + v[8] - v[0] + n; }
kernel void cholesky(global int *out, global const int *in, int n) {
  int x = get_global_id(0); float a[6][6];
  for (int r = 0; r < 6; r++) for (int c = 0; c <= r; c++) a[r][c] = (in[(x + r * 5 + c) % 74] & 7) + (r == c ? 900.0f + n : 0.0f);
  for (int c = 0; c < 6; c++) { float s = a[c][c]; for (int k = 0; k < c; k++) s -= a[c][k] * a[c][k];
    s = sqrt(s); a[c][c] = s;
    for (int r = c + 1; r < 6; r++) { float v = a[r][c]; for (int k = 0; k < c; k++) v -= a[r][k] * a[c][k]; a[r][c] = v / s; } }
  out[x] = (int)(a[5][5] * 4) + (int)(a[5][4] * 64); }
kernel void triangle(global int *out, global const int *in, int n) {
  int x = get_global_id(0), v[7]; for (int k = 0; k < 7; k++) v[k] = in[(x + k * 5) % 74];
  for (int i = 0; i < 7; i++) { for (int j = 0; j < i; j++) v[i] = v[i] * 3 + v[j] - n; for (int j = i; j < 6; j++) v[j + 1] ^= v[i] & 255; }
  out[x] = v[6] + v[2] * 5; }
kernel void square(global int *out, global const int *in, int n) {
  int x = get_global_id(0); int a[4][4], b[4][4];
  for (int r = 0; r < 4; r++) for (int c = 0; c < 4; c++) a[r][c] = in[(x + r * 4 + c) % 74];
  for (int step = 0; step < n; step++) {
    for (int r = 0; r < 4; r++) for (int c = 0; c < 4; c++) { int s = 0; for (int k = r; k < 4; k++) s += a[r][k] * a[k][c]; b[r][c] = s & 1023; }
    for (int r = 0; r < 4; r++) for (int c = 0; c < 4; c++) a[r][c] = b[r][c] ^ step; }
  out[x] = a[1][2] + a[3][0] * 5; }
kernel void leaves_early(global int *out, global const int *in, int n) {
  int x = get_global_id(0), sum = 0; int v[16]; for (int k = 0; k < 16; k++) v[k] = in[(x + k) % 74] * k;
  for (int r = 0; r < n; r++) for (int k = 1; k < 16; k++) { if (v[k] % (r + 3) == 1) { v[k] += r; continue; } if (v[k] > 9000) break; v[k] ^= v[k - 1]; sum += k; }
  out[x] = sum + v[15]; }
kernel void writes(global int *out, global const int *in, int n) {
  int x = get_global_id(0); int v[8]; for (int k = 0; k < 8; k++) v[k] = in[x]; out[x] = 0;
  for (int r = 0; r < n; r++) for (int k = 0; k < 8; k++) { v[k] += out[x] + k; out[x] = v[k] & 255; }
  out[x] += v[7]; }
kernel void by_data(global int *out, global const int *in, int n) {
  int x = get_global_id(0); int v[8]; for (int k = 0; k < 8; k++) v[k] = in[(x + k) % 74];
  for (int r = 0; r < n; r++) for (int k = 0; k < 8; k++) v[v[k] & 7] += k;
  out[x] = v[3] + v[7]; }
kernel void vectors(global int *out, global const int *in, int n) {
  int x = get_global_id(0); int4 v[10]; for (int k = 0; k < 10; k++) v[k] = (int4)(x, k, in[x], n);
  for (int r = 0; r < n; r++) for (int k = 1; k < 10; k++) { v[k] += v[k - 1].wxyz; if (v[k].y & 1) v[k - 1] = v[k].zwxy; }
  out[x] = v[9].x + v[0].y * 7 + v[3].z; }
kernel void rounds(global int *out, global const int *in, int n) {
  uint x = get_global_id(0), a = in[x], b = n, c = x; local int line[64]; line[get_local_id(0)] = a; barrier(CLK_LOCAL_MEM_FENCE);
  for (uint i = 0; i < 30; i++) { uint f, at = i;
    switch (i / 6) { case 0: f = a & b; break; case 1: f = a | c; at = 5 * i; break; case 2: f = a ^ b ^ c; at = 3 * i + 1; break; default: f = a + line[i % get_local_size(0)]; }
    if (at % 3 == 1 && c & 4) { out[x] = at; continue; }
    uint t = rotate(f + in[at % 74], i & 7); c = b; b = a; a = (i & 1 ? t : t + x) & 0xffff; }
  out[x] = a ^ b * 3 ^ c; }
kernel void with_barriers(global int *out, global const int *in, int n) {
  local int line[64]; int x = get_global_id(0), l = get_local_id(0), v[6]; for (int k = 0; k < 6; k++) v[k] = in[x] + k;
  for (int r = 0; r < n; r++) { for (int k = 0; k < 6; k++) { line[l] = v[k]; barrier(CLK_LOCAL_MEM_FENCE); v[k] ^= line[(l + 1) % get_local_size(0)]; barrier(CLK_LOCAL_MEM_FENCE); }
    for (int k = 1; k < 6; k++) v[k] += v[k - 1] * r; }
  out[x] = v[0] + v[5] * 3; }
"""
FORMS = ((4, 1), (16, 1), (4, 3), (1, 1), (8, 1), (8, 2))
IN_REGISTERS = ("cholesky", "triangle", "table_row", "sorted", "square", "writes", "vectors")
IN_MEMORY = ("by_data", "leaves_early", "with_barriers")
WITHOUT_ARRAYS = ("rounds",)  # passes/loops/unroll_branches.py


@pytest.fixture(scope="module")
def programs():
    data = compile_c(SOURCE)
    return {form: Program(data, width=form[0], parts=form[1]) for form in FORMS}


@pytest.mark.parametrize("forms", split(FORMS, 2), ids=["some", "others"])
@pytest.mark.parametrize("name", [*IN_REGISTERS, *IN_MEMORY, *WITHOUT_ARRAYS])
def test_arrays_in_loops(programs, name, forms):
    """Groups of 37 have vectors with lanes that are no work-items."""
    inputs = np.random.default_rng(5).integers(0, 1000, 74).astype(np.int32)
    for n in (0, 4):
        want = np.zeros(74, np.int32)
        interpret(programs[1, 1].module, name, [want, inputs.copy(), n], (74,), (37,))
        assert n == 0 or len(set(want.tolist())) > 2
        for program in map(programs.get, forms):
            out = np.zeros(74, np.int32)
            program.run(name, 74, 37, out, inputs, np.int32(n))
            assert np.array_equal(out, want), f"{name}, n = {n}, width {program.width}"


@pytest.mark.parametrize("name", IN_REGISTERS)
def test_they_become_values(programs, name):
    """No memory is left of arrays whose places are all known."""
    assert "alloca [" not in programs[16, 1].code(name).text.replace("alloca [128 x i8]", "")
