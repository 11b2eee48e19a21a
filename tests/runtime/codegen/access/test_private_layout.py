# ruff: noqa: E501  kernels as one line each
"""Private arrays of which lanes access the same place, neighbouring places, any places, and parts of elements."""

import numpy as np
import pytest

from cl_driver.interp.run import run as interpret
from tests.marks import split
from tests.runtime.kernel_harness import Program, compile_c

SOURCE = r"""
typedef struct { int a[6]; uint b; int c[3]; } record;
kernel void same_place(global int *out, global const int *in, int n) {
  int x = get_global_id(0), row[20]; for (int k = 0; k < n; k++) row[k] = in[x] * k;
  for (int r = 0; r < n; r++) for (int k = 1; k < n; k++) row[k] = max(row[k - 1] ^ r, row[k]);
  out[x] = row[n - 1] + row[n / 2]; }
kernel void any_place(global int *out, global const int *in, int n) {
  int x = get_global_id(0); ushort seen[32]; for (int k = 0; k < 32; k++) seen[k] = k;
  for (int k = 0; k < n; k++) seen[(in[x] + k * x) & 31] += in[k];
  int sum = 0; for (int k = 0; k < 32; k++) sum = sum * 3 + seen[k]; out[x] = sum + seen[x & 31]; }
kernel void vectors(global int *out, global const int *in, int n) {
  int x = get_global_id(0); int4 v[8]; for (int k = 0; k < 8; k++) v[k] = (int4)(x, k, in[x], n);
  for (int k = 0; k < n; k++) { v[k & 7].y += v[(k + x) & 7].z; v[(k * 3) & 7] = v[k & 7].wzyx; }
  out[x] = v[in[x] & 7].x + v[n & 7].y * 7 + v[3].z; }
kernel void records(global int *out, global const int *in, int n) {
  int x = get_global_id(0); record r[4]; for (int k = 0; k < 4; k++) { r[k].b = k; for (int j = 0; j < 6; j++) r[k].a[j] = j + x; for (int j = 0; j < 3; j++) r[k].c[j] = n; }
  for (int k = 0; k < n; k++) if ((in[x] >> k) & 1) { r[k & 3].a[(x + k) % 6] += r[(k + 1) & 3].b; r[in[k] & 3].b += k; r[k & 3].c[k % 3] ^= x; }
  int sum = 0; for (int k = 0; k < 4; k++) { sum = sum * 5 + (int)r[k].b; for (int j = 0; j < 6; j++) sum += r[k].a[j] * j; sum ^= r[k].c[k % 3]; } out[x] = sum; }
kernel void smallest(global int *out, global const int *in, int n) {
  int x = get_global_id(0), a[9]; for (int k = 0; k < 9; k++) a[k] = in[(x + k * 11) % 74] + n;
  for (int k = 0; k < 5; k++) { int m = k; for (int j = k + 1; j < 9; j++) if (a[j] < a[m]) m = j; int t = a[k]; a[k] = a[m]; a[m] = t; }
  out[x] = a[4] * 3 + a[0] - a[8]; }
kernel void mixed(global int *out, global const int *in, int n) {
  int x = get_global_id(0); int v[16]; uchar *bytes = (uchar *)v; for (int k = 0; k < 16; k++) v[k] = in[x] + k;
  for (int k = 0; k < n; k++) bytes[(k * 5 + x) & 63] ^= k; int sum = 0; for (int k = 0; k < 16; k++) sum = sum * 3 + v[k]; out[x] = sum; }
kernel void flags(global int *out, global const int *in, int n) {
  int x = get_global_id(0); bool seen[16]; for (int k = 0; k < 16; k++) seen[k] = k > n; for (int k = 0; k < n; k++) seen[(in[x] + k * k) & 15] = k & 1;
  int sum = 0; for (int k = 0; k < 16; k++) sum = sum * 2 + seen[k]; out[x] = sum; }
"""
FORMS = ((4, 1), (16, 1), (4, 3), (1, 1), (8, 1), (8, 2))
LAID_OUT = ("smallest", "same_place", "any_place", "vectors", "records")


@pytest.fixture(scope="module")
def programs():
    data = compile_c(SOURCE)
    return {form: Program(data, width=form[0], parts=form[1]) for form in FORMS}


@pytest.mark.parametrize("forms", split(FORMS, 2), ids=["some", "others"])
@pytest.mark.parametrize("name", [*LAID_OUT, "mixed", "flags"])
def test_private_arrays(programs, name, forms):
    """Groups of 37 have vectors with lanes that are no work-items."""
    inputs = np.random.default_rng(3).integers(0, 1000, 74).astype(np.int32)
    for n in (1, 7, 19):
        want = np.zeros(74, np.int32)
        interpret(programs[1, 1].module, name, [want, inputs.copy(), n], (74,), (37,))
        for program in map(programs.get, forms):
            out = np.zeros(74, np.int32)
            program.run(name, 74, 37, out, inputs, np.int32(n))
            assert np.array_equal(out, want), f"{name}, n = {n}, width {program.width}"


@pytest.mark.parametrize("name", LAID_OUT)
def test_they_are_laid_out_for_lanes(programs, name):
    """What is at the same place in all lanes is one vector: no gathers of what is not asked for by lane."""
    text = programs[16, 1].code(name).text
    assert "load <16 x i32>" in text or "load <16 x i16>" in text
    if name == "same_place":
        assert "gather" not in text and "scatter" not in text
