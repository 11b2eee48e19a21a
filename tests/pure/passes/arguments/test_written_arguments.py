"""Which arguments a kernel certainly writes to the buffers of (passes/analysis/written_arguments.py)."""

import pytest

from cl_driver.passes.analysis.written_arguments import written_arguments
from tests.pure.passes.support import compile_cl, entry

HEAD = """
__attribute__((noinline)) void put(global int *to, global const int *from, int n) {
    for (int k = 0; k < n; k++) to[k] = from[k];
}
__attribute__((noinline)) void through(global int *to, global int *from, int n) { put(to, from, n); }
kernel void k(global int *a, global int *b, global int *const c, global float *f, local int *l, int n) {
    int i = get_global_id(0);
    """


@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize(
    "body, written",
    [
        ("a[i] = b[i] + c[i];", {0}),
        ("if (n > 3) a[i] = b[i]; else c[i] += 1;", {0, 2}),
        ("for (global int *p = b + i; n > 0; p += 3, n--) *p = n;", {1}),
        ("atomic_inc(b + i); a[0]; atomic_load((volatile global atomic_int *)c);", {1}),
        ("vstore4((int4)(1), i, c);", {2}),
        ("vstore_half(1.0f, i, (global half *)a);", {0}),
        ("float s = sincos(f[i], f + n); b[i] = s;", {1, 3}),
        ("through(a, b, n);", {0}),
        ("event_t e = async_work_group_copy(a, l, n, 0); wait_group_events(1, &e);", {0}),
        ("event_t e = async_work_group_copy(l, a, n, 0); wait_group_events(1, &e);", set()),
        ("int *p = b; p[i] = 1;", {1}),  # a generic pointer
        ("global int *p = n > i ? a : b; p[i] = 1;", set()),  # one or the other
        ("global int *p = a; if (n > i) p = b; p[i] = 1; c[i] = 2;", {2}),
        ("global int *p = a; for (int k = 0; k < n; k++) { *p = k; p = b + k; }", set()),
        ("*(global int *)((ulong)a ^ 16) = 1;", set()),  # what was a number is anybody's
        ("l[i] = a[i]; private int x[4]; x[i & 3] = l[0]; f[i] = x[n & 3];", {3}),
        ("printf(\"%d\", a[i]); prefetch(b, 4);", set()),
    ],
)  # fmt: skip
def test_arguments(body, written, level):
    module = compile_cl(f"{HEAD} {body} }}", level)
    assert written_arguments(entry(module, "k").function) == written


def test_functions_that_call_themselves_are_no_trouble():
    module = compile_cl(
        "void f(global int *p, int n);"
        "void g(global int *p, int n) { if (n) f(p, n - 1); p[n] = n; }"
        "void f(global int *p, int n) { if (n) g(p, n - 1); }"
        "kernel void k(global int *a, int n) { f(a, n); }",
        "-O0",
    )
    assert written_arguments(entry(module, "k").function) == {0}
