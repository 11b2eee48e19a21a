"""Code of contexts that may be terminated: the same results, and an end wherever there is a way back."""

from __future__ import annotations

import numpy as np
import pytest

from cl_driver.codegen.llvm.options import CodegenOptions
from cl_driver.passes.lower import kept_calls
from tests.runtime import code_loader
from tests.runtime.emulation import IS_EMULATED
from tests.runtime.kernel_harness import Local, Program, compile_c

pytestmark = pytest.mark.skipif(IS_EMULATED, reason="loads code by the loader")

ITEMS, GROUP = 64, 16
SOURCE = """
__attribute__((noinline)) int deep(int n) { int x = n; while (x > 3) x = (x & 1) ? x - 3 : x >> 1; return x; }
__attribute__((noinline)) int outer(int n) {
    int s = 0; for (int i = 0; i < 3; i++) s += deep(n + i); return s; }
kernel void calls(global int *out, local int *l, global int *n) {
    int i = get_global_id(0); out[i] = 5; out[i] = outer(out[i] + n[i]) + deep(n[i]) + deep(i) + outer(i); }
kernel void loops(global int *out, local int *l, global int *n) {
    int i = get_global_id(0), x = 1; out[i] = 5;
    for (int k = 0; k < n[i]; k++) { if (k == 9) break; for (int m = 0; m < k; m++) x = x * 3 + n[m]; }
    switch (x & 3) { case 0: x++; case 1: do x ^= n[x & 7] + 1; while (x & 4); }
    out[i] = x; }
kernel void meets(global int *out, local int *l, global int *n) {
    int i = get_local_id(0); l[i] = n[i]; out[get_global_id(0)] = 5;
    for (int k = 0; k < n[0] + 4; k++) { barrier(CLK_LOCAL_MEM_FENCE); int x = l[(i + 1) % 16];
        barrier(CLK_LOCAL_MEM_FENCE); l[i] += x; }
    out[get_global_id(0)] = l[i]; }
kernel void plain(global int *out, local int *l, global int *n) {
    out[get_global_id(0)] = n[get_global_id(0)]; }
"""


@pytest.fixture(scope="module")
def spirv():
    return compile_c(SOURCE, "-O2")


@pytest.fixture
def keeps_calls(monkeypatch):
    for name in ("FEW", "SMALL", "LEAST_CALLS", "LARGE"):
        monkeypatch.setattr(kept_calls, name, 0)


@pytest.fixture
def terminated():
    code_loader.TERMINATED.value = 1
    yield
    code_loader.TERMINATED.value = 0


def run(spirv, name, width, is_terminable) -> np.ndarray:
    options = CodegenOptions(terminable=is_terminable)
    program = Program(spirv, options, width, keeps_calls=True)
    out, n = np.zeros(ITEMS, np.int32), np.arange(ITEMS, dtype=np.int32) * 7 % 31
    program.run(name, ITEMS, GROUP, out, Local(4 * GROUP), n)
    return out


@pytest.mark.parametrize("width", [1, 4, 8])
@pytest.mark.parametrize("name", ["calls", "loops", "meets", "plain"])
def test_results(spirv, keeps_calls, name, width):
    assert np.array_equal(run(spirv, name, width, True), run(spirv, name, width, False))


@pytest.mark.parametrize("width", [1, 4, 8])
@pytest.mark.parametrize("name", ["calls", "loops", "meets"])
def test_it_ends_in_the_first_group(spirv, keeps_calls, terminated, name, width):
    """At the first way back, or when a function gives back what it has not computed."""
    out = run(spirv, name, width, True)
    assert not out[GROUP:].any() and set(out[:GROUP].tolist()) <= {0, 5} and out.any()


@pytest.mark.parametrize("width", [1, 8])
@pytest.mark.parametrize("name", ["calls", "loops", "meets", "plain"])
def test_others_do_not_look(spirv, keeps_calls, name, width):
    text = Program(spirv, CodegenOptions(), width, keeps_calls=True).code(name).text
    assert "terminated" not in text
    text = Program(spirv, CodegenOptions(terminable=True), width, keeps_calls=True).code(name).text
    assert ("load volatile" in text) is (name != "plain")


def test_the_library_does_not_look():
    """Its functions end by themselves."""
    source = "kernel void k(global float *p) { *p = sin(*p) + tgamma(*p) + pow(*p, 3.3f); }"
    program = Program(compile_c(source, "-O2"), CodegenOptions(terminable=True), 1)
    text = program.code("k").text
    assert "define internal" in text and "load volatile" not in text
