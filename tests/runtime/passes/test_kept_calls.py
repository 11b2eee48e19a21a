"""Kernels whose functions stay calls at width 1: which do, and that they do what they did."""

import numpy as np
import pytest

from cl_driver.compiler import pipeline, prepared
from cl_driver.compiler.source import Context
from cl_driver.device.cpu import host_cpu
from cl_driver.device.target import make_target
from cl_driver.jit import bundle
from cl_driver.passes import pipeline as passes
from cl_driver.passes.lower import kept_calls
from tests.runtime.kernel_harness import Local, Program, compile_c
from tests.runtime.random_programs import all_calls_kept

SOURCE = """
#define CALL __attribute__((noinline))
constant int table[4] = {3, 1, 4, 1};
constant int large[8192] = {1, 2, 3};
global int shared_by_all;
typedef struct { int a[3]; float4 b; } Both;
CALL int plain(int x) { return x * 3 ^ table[x & 3]; }
CALL float4 vectors(float4 a, char3 b, double2 c) { return a.wzyx + (float4)(b.x, b.y, b.z, c.x * c.y); }
CALL int deep(int x) { return plain(x) + plain(x + 1); }
CALL void through(private int *p, global int *q, local int *l, int n) { p[n & 3] += *q; *l = n; *q ^= p[0]; }
CALL int by_value(Both b) { b.a[1] += 5; return b.a[0] + b.a[1] * 7 + (int)b.b.z; }
CALL bool truth(bool a, bool b) { return a != b; }
CALL int asks_id(int x) { return x + get_global_id(0); }
CALL int asks_memory(int x) { return x + shared_by_all; }
CALL int asks_table(int x) { return large[x & 8191]; }
CALL int adds(volatile global int *p) { return atomic_add(p, 1); }
CALL int prints(int x) { if (x < 0) printf("%d", x); return x; }
CALL int several(int x) { int a[50]; for (int k = 0; k < 50; k++) a[k] = x * k; return a[x & 31] + a[9]; }
CALL int calls_asking(int x) { return asks_id(x) + 1; }
typedef struct { int a[6000]; } Much;
CALL int much(Much m, int i) { m.a[i & 1023] += i; return m.a[7] + m.a[i & 4095]; }
CALL int far(int x) { int big[8000]; for (int k = 0; k < 8000; k++) big[k] = x + k; return big[x & 4095]; }
kernel void k(global int *to, global float4 *floats, local int *l) {
    int i = get_global_id(0), own[4] = {i, 2, 3, 4};
    Both both = {{i, 2, 3}, (float4)(i)};
    floats[i] = vectors(floats[i], (char3)(i, 2, 3), (double2)(i, 0.5));
    through(own, to + i, l, i);
    to[i] += plain(i) + plain(7) + deep(i) + own[i & 3] + by_value(both) + both.a[1];
    if (truth(i > 3, i & 1)) to[i] = -to[i] + *l;
    to[i] ^= asks_id(i) + asks_memory(i) + asks_table(i) + prints(i) + calls_asking(i) + far(i);
}
kernel void copies(global int *to) {
    Much m; for (int k = 0; k < 6000; k++) m.a[k] = to[k & 7] + k;
    to[get_global_id(0)] = much(m, 5) + much(m, 7); }
kernel void holds(global int *to) { int i = get_global_id(0); to[i] = several(to[i]) + several(to[i] + 1); }
kernel void counts(global int *to) { to[get_global_id(0)] = adds(to + get_global_size(0)); }
"""


OPTIONS = "-cl-std=CL3.0"
VECTORS = """
kernel void k(global float8 *to, int n) {
    float8 x = to[get_global_id(0)];
    if (get_global_id(0) & 1) for (int k = 0; k < n; k++) x = x * x.s12345670 + (float8)(k);
    to[get_global_id(0)] = x / (float8)(3, 4, 5, 6, 7, 8, 9, 10);
}
"""


@pytest.fixture(scope="module")
def spirv():
    return compile_c(SOURCE, OPTIONS)


def planned(spirv, name="k"):
    program = Program(spirv, width=1)
    entry = next(point for point in program.module.entry_points if point.name == name)
    return passes.plan(program.module, entry, shared=program.globals_layout.offsets)


def test_what_depends_on_arguments_and_constants_may_stay_a_call(spirv):
    with all_calls_kept():
        found = {f.name.split(".")[0] for f in planned(spirv).calls}
    assert found == {"plain", "vectors", "deep", "through", "by_value", "truth"}


def test_what_is_passed_by_value_takes_stack_too(spirv):
    with all_calls_kept():
        assert not planned(spirv, "copies").calls


def test_private_memory_is_that_of_called_functions_too(spirv):
    with all_calls_kept():
        assert planned(spirv, "holds").calls
        code = Program(spirv, width=1).code("holds")
    assert code.private_size == 200


def test_small_kernels_have_no_calls(spirv):
    assert not planned(spirv).calls


def test_functions_with_lines_are_inlined_as_long_as_that_is_bearable(monkeypatch):
    """LLVM knows no lines of what is called."""
    lined = compile_c(SOURCE, f"{OPTIONS} -g")
    with all_calls_kept():
        assert not planned(lined).calls
        monkeypatch.setattr(kept_calls, "FEW_WITH_LINES", 0)
        assert planned(lined).calls
        got = run(lined)
    for a, b in zip(run(lined), got, strict=True):
        np.testing.assert_array_equal(a, b)


def test_functions_that_are_called_once_are_inlined(spirv, monkeypatch):
    monkeypatch.setattr(kept_calls, "FEW", 0)
    monkeypatch.setattr(kept_calls, "SMALL", 0)
    assert {f.name.split(".")[0] for f in planned(spirv).calls} == {"plain"}


def threefold_calls() -> str:
    """Each function calls the one before three times: 3 ** 9 times the first when all is expanded."""
    body = "".join(f"x = x * {k + 3} ^ (x >> {k % 7 + 1});" for k in range(60))
    text = f"__attribute__((noinline)) int f0(int x) {{ {body} return x; }}"
    for k in range(1, 10):
        text += f"__attribute__((noinline)) int f{k}(int x) {{ {body}"
        text += f" return f{k - 1}(x) + f{k - 1}(x + 1) * f{k - 1}(x ^ 5); }}"
    text += "kernel void k(global int *to) { to[get_global_id(0)] = f9(to[get_global_id(0)]); }"
    return text


def test_a_kernel_grows_with_its_source():
    plan = planned(compile_c(threefold_calls()))
    assert len(plan.calls) >= 1
    assert sum(len(block.instructions) for block in plan.regions[0].function.blocks) < 1000


def run(spirv):
    program = Program(spirv, width=1)
    floats = np.arange(64, dtype=np.float32).reshape(16, 4)
    to = np.arange(16, dtype=np.int32) * 1001
    program.run("k", 16, 1, to, floats, Local(4))
    return to, floats


def test_calls_do_what_expansion_does(spirv):
    want = run(spirv)
    with all_calls_kept():
        got = run(spirv)
    for a, b in zip(want, got, strict=True):
        np.testing.assert_array_equal(a, b)


def test_what_is_too_large_for_lanes_is_known_before_it_is_vectorised(monkeypatch):
    """By what is left of it, and by what it expands to."""
    context = Context(make_target(host_cpu()), "", {})
    program = pipeline.prepare(bundle.pack([(compile_c(VECTORS), {})]), context)
    assert pipeline.entry(program, "k").width > 1
    monkeypatch.setattr(passes, "linearise", None)
    for module, name, limit in ((pipeline, "WIDE_TEXT", 3_000), (prepared, "_WIDE_EXPANDED", 10)):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, limit)
            code = pipeline.entry(program, "k")
            assert code.width == 1
            assert "LLVM IR" in code.remark or name == "_WIDE_EXPANDED"
