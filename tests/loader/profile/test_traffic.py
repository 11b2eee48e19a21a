"""Bytes and operations of launches that the compiler can tell, and silence on those that it cannot."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.conftest import ROOT

N = 64
PROGRAM = r"""
kernel void product(global const float *a, global const float *b, global float *c, int n) {
  int i = get_global_id(0), j = get_global_id(1);
  if (i >= n || j >= n) return;
  float sum = 0;
  for (int k = 0; k < n; k++) sum += a[j * n + k] * b[k * n + i];
  c[j * n + i] = sum;
}
kernel void sums(global float *a) {
  local float t[16];
  uint l = get_local_id(0);
  t[l] = a[get_group_id(0) * get_local_size(0) + l];
  barrier(CLK_LOCAL_MEM_FENCE);
  if (l == 0) a[get_group_id(0)] = t[0] + t[1];
}
kernel void vectors(global float4 *a, int n) {
  int i = get_global_id(0);
  if (i < n) a[i] = a[i] * 2.0f;
}
kernel void stencil(global const float *a, global float *b, int n) {
  int x = get_global_id(0);
  if (x > 0 && x < n - 1) b[x] = a[x - 1] + a[x] + a[x + 1];
}
kernel void gather(global const int *i, global const float *a, global float *b) {
  int x = get_global_id(0);
  b[x] = a[i[x] & 7];
}
kernel void maybe(global const float *a, global float *b) {
  int x = get_global_id(0);
  if (a[x] > 0) b[x] = a[x] * 2;
}
"""
HOST = """
import sys
import numpy as np
sys.path.insert(0, {root!r})
from tests.loader.core.session import Session
from tests.loader.opencl import OpenCL
session = Session(OpenCL({library!r}))
program = session.program({program!r})
a, b, c = (session.buffer(np.zeros({n} * {n}, np.float32)) for _ in range(3))
n = np.int32({n})
session.launch(session.kernel(program, "product"), ({n} + 16, {n}), a, b, c, n)
session.launch(session.kernel(program, "sums"), {n}, a, local=16)
session.launch(session.kernel(program, "vectors"), {n}, a, np.int32({n} - 5))
session.launch(session.kernel(program, "stencil"), {n}, a, b, n)
session.launch(session.kernel(program, "gather"), {n}, a, b, c)
session.launch(session.kernel(program, "maybe"), {n}, a, b)
session.finish()
"""


@pytest.fixture(scope="module")
def kernels(variables, ocl_icd, tmp_path_factory):
    file = tmp_path_factory.mktemp("profile") / "profile.json"
    host = HOST.format(root=str(ROOT), library=str(ocl_icd), program=PROGRAM, n=N)
    env = variables | {"CL_DRIVER_PROFILE": str(file)}
    subprocess.run([sys.executable, "-c", host], check=True, env=env, timeout=300)
    return {kernel["name"]: kernel for kernel in json.loads(file.read_text())["kernels"]}


@pytest.mark.parametrize(
    ("name", "read", "written", "operations"),
    [
        ("product", 2 * 4 * N * N, 4 * N * N, 2 * N**3),  # each byte once, for work-items within n
        ("sums", 4 * N, 4 * N // 16, N // 16),
        ("vectors", 16 * (N - 5), 16 * (N - 5), 4 * (N - 5)),
        ("stencil", 4 * N, 4 * (N - 2), 2 * (N - 2)),
    ],
)
def test_what_is_known(kernels, name, read, written, operations):
    kernel = kernels[name]
    assert (kernel["bytes_read"], kernel["bytes_written"], kernel["operations"]) == (
        read,
        written,
        operations,
    )
    assert kernel["bytes_known"] == kernel["operations_known"] == kernel["launches"] == 1


@pytest.mark.parametrize("name", ["gather", "maybe"])
def test_what_depends_on_data(kernels, name):
    assert kernels[name]["launches"] == 1
    assert not {"bytes_read", "bytes_written", "operations"} & kernels[name].keys()
