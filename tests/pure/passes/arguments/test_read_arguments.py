"""Which arguments a kernel certainly only reads (passes/analysis/read_arguments.py)."""

import pytest

from cl_driver.passes.analysis.read_arguments import read_arguments
from tests.pure.passes.support import compile_cl, entry

HEAD = """
__attribute__((noinline)) int sum(global const int *from, int n) {
    int s = 0;
    for (int k = 0; k < n; k++) s += from[k];
    return s;
}
__attribute__((noinline)) void put(global int *to, global int *from) { *to = *from; }
__attribute__((noinline)) global int *one_of(global int *p, global int *q, int n) { return n ? p : q; }
kernel void k(global int *a, global int *b, constant int *c, global float *f, local int *l, int n) {
    int i = get_global_id(0);
    """


@pytest.mark.parametrize(
    "body, read",
    [
        ("a[i] = b[i] + c[i];", {1, 2, 3}),
        ("a[i] = sum(b, n);", {1, 2, 3}),
        ("put(a, b);", {1, 2, 3}),
        ("put(a, a);", {1, 2, 3}),
        ("f[0] = *one_of(a, b, n);", {2}),  # what comes back is not looked at
        ("for (global int *p = b; n > 0; p += 3, n--) a[i] += *p;", {1, 2, 3}),
        ("for (global int *p = b; n > 0; p += 3, n--) { a[i] += *p; *p = 1; }", {2, 3}),
        ("global int *p = n > i ? a : b; f[i] = *p;", {0, 1, 2}),
        ("global int *p = n > i ? a : b; *p = i;", {2, 3}),
        ("a[i] = vload4(i, b).x; vstore4((int4)(1), i, a);", {1, 2, 3}),
        ("float s = sincos(f[i], f + n); b[i] = s;", {0, 2}),
        ("event_t e = async_work_group_copy(a, l, n, 0); wait_group_events(1, &e);", {1, 2, 3}),
        ("event_t e = async_work_group_copy(l, a, n, 0); wait_group_events(1, &e); b[i] = l[0];", {0, 2, 3}),
        ("*(global int *)((ulong)a ^ 16) = 1;", {1, 2, 3}),
        ("atomic_inc(b + i); f[i] = atomic_load((volatile global atomic_int *)a);", {0, 2}),
        ("global int *held[2]; held[i & 1] = a; held[~i & 1] = a; *held[n & 1] = 1;", {1, 2, 3}),
        ("prefetch(b, 4); int *g = a; f[i] = *g;", {0, 1, 2}),
        ("int *g = a; *g = 1;", {1, 2, 3}),
    ],
)  # fmt: skip
def test_arguments(body, read):
    module = compile_cl(f"{HEAD} {body} }}", "-O2")
    assert read_arguments(entry(module, "k").function) == read


def test_addresses_in_variables_count_for_written():
    module = compile_cl("kernel void k(global int *a, global int *b) { *a = *b; }", "-O0")
    assert read_arguments(entry(module, "k").function) == set()


def test_functions_that_call_themselves_count_for_writing():
    module = compile_cl(
        "int f(global int *p, int n);"
        "int g(global int *p, int n) { return n ? f(p, n - 1) : p[n]; }"
        "int f(global int *p, int n) { return n ? g(p, n - 1) : 0; }"
        "kernel void k(global int *a, global int *b, int n) { *b = f(a, n); }",
        "-O0",
    )
    assert read_arguments(entry(module, "k").function) == set()
