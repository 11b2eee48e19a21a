"""Functions that stay calls where kernels have lanes: their versions, masks and private memory."""

import numpy as np
import pytest

from cl_driver.builtins.library import suitable
from cl_driver.codegen.kernel.emit import emit
from cl_driver.codegen.layout.scratch import Scratch
from cl_driver.compiler import pipeline
from cl_driver.compiler.source import Context
from cl_driver.device.target import host_target
from cl_driver.interp.run import run as interpret
from cl_driver.jit import bundle
from cl_driver.jit import emit as jit
from cl_driver.passes import pipeline as passes
from cl_driver.passes.vectorize import vector_functions
from cl_driver.records import replace
from cl_driver.spirv.enums import Op
from tests.runtime.code_loader import Code
from tests.runtime.kernel_harness import Program, builtin_library, compile_c
from tests.runtime.passes.test_kept_calls import threefold_calls
from tests.runtime.random_programs import all_calls_kept

SOURCE = """
#define CALL __attribute__((noinline))
typedef struct { int a, h[4], length; } State;
CALL int early(int x, int u) {
    if (x & 1) return x * 3 + u;
    int s = 0;
    for (int i = 0; i < (x & 7); i++) s += i * u + x;
    return s; }
CALL int square(int u) { return u * u + 3; }
CALL void update(State *s, int *w, int n) {
    for (int i = 0; i < n; i++) if (w[i & 7] > 10) s->h[i & 3] += w[i & 7]; else s->a ^= i;
    s->length += n; }
CALL int sum(const State *s) {
    int r = s->a;
    for (int i = 0; i < 4; i++) r = r * 31 + s->h[i];
    return r + s->length; }
CALL int bytes(char *p, int k) {
    int s = 0;
    for (int i = 0; i < 8; i++) { s += p[i * k & 31]; if (s > 200) return s; }
    return s; }
CALL int2 two(int x, int y) { int2 r = {x + y, early(x, 7)}; if (y > 40) r.x = early(y, 2); return r; }
CALL void adds(global int *m, int k, global const int *in) { m[k & 7] += in[k & 63]; if (k & 2) m[1] = k; }
CALL int swaps(local int *l, int k) { int old = l[k & 3]; l[k & 3] = k; return old + l[1]; }
CALL float root(float x, float y) { return x > y ? sqrt(x) : y * 2.0f; }
CALL int *choose(int *a, int *b, int x) { return x & 1 ? a : b + 1; }
CALL void clears(State *s) { State zero = {0}; *s = zero; s->length = 1; }
CALL int turns(int x, int n) { while (n > 0) { if (x > 90) break; x += n--; } return x; }
CALL bool differ(bool a, int b) { return a != (b > 3); }
kernel void k(global int *out, global const int *in, int n, global int *memory) {
    int g = get_global_id(0), x = in[g & 63], r = 0, w[8], v[8];
    local int own[64 * 4];
    local int *l = own + get_local_id(0) * 4;
    State s = {1, {x, x + 1, x + 2, x + 3}, 0}, t;
    for (int i = 0; i < 8; i++) { w[i] = in[g + i & 63]; v[i] = g * i; l[i & 3] = i; }
    r += early(x, n) + early(g, 3) * 5 + square(n);
    update(&s, w, n);
    if (x > 20) update(&s, w, x & 15); else update(&s, &w[x & 1], 2);
    clears(&t);
    if (x & 8) { t = s; update(&t, w, 3); } else clears(&s);
    r = r * 31 + sum(&s) + sum(&t) * 7;
    r += bytes((char *)v, 3);
    if (g & 1) r ^= bytes((char *)&v[0], x & 3);
    for (int i = 0; i < (x & 3); i++) { int2 d = two(x + i, g); r += d.x * 3 + d.y; if (d.x & 1) break; }
    adds(memory + g * 8, x, in);
    if (x & 4) adds(memory + g * 8, n, in);
    r += swaps(l, x);
    if (g & 2) r += swaps(l, n) + choose(v, w, g)[2];
    r += (int)root(x & 63, g & 15) + turns(x, n) + turns(n, x & 7);
    switch (x & 3) {
        case 0: r += square(x); break;
        case 1: r += early(r & 63, square(3)); break;
        default: r -= 5; }
    if (n > 3 && differ(x > 7, g)) r += square(n + 1);
    out[g] = r;
}
kernel void meets(global int *out, global const int *in, int n, global int *memory) {
    local int all[64];
    all[get_local_id(0)] = square(in[get_local_id(0)]);
    barrier(CLK_LOCAL_MEM_FENCE);
    out[get_global_id(0)] = all[63 - get_local_id(0)] + early(n, 2);
}
"""
ITEMS = 37


@pytest.fixture(scope="module")
def program():
    return Program(
        compile_c(SOURCE.replace("State *", "private State *").replace("int *w", "private int *w"))
    )


def planned(program, width, name="k", cpu="native", **options):
    library = builtin_library()
    context = Context(host_target(cpu), "", {})
    how = pipeline.codegen_options(context)
    entry = next(point for point in program.module.entry_points if point.name == name)
    wanted = replace(program.plan_options, width=width, keeps_calls=True, verify=True, **options)
    with all_calls_kept():
        plan = passes.plan(program.module, entry, wanted, suitable(library, how.features))
    return plan, how, context.target


def arguments():
    draw = np.random.default_rng(7)
    given = draw.integers(-50, 100, 64).astype(np.int32)
    return [np.zeros(ITEMS, np.int32), given, np.int32(5), draw.integers(0, 99, 8 * ITEMS).astype(np.int32)]


@pytest.fixture(scope="module")
def wanted(program):
    passed = arguments()
    interpret(
        program.module, "k", [*passed[:2], 5, passed[3]], (ITEMS,), (ITEMS,), (0, 0, 0), builtin_library()
    )
    assert len(set(passed[0].tolist())) > ITEMS // 2
    return passed


def run(program, plan, how, target):
    made = emit(plan, how, builtin_library(), program.globals_layout, "full and rest")
    code = Code(jit.compile_ir(made.text, target, "short", 0))
    passed = arguments()
    program._kernels["k"] = made, code.kernel(made.symbol)
    try:
        program.run("k", (ITEMS,), (ITEMS,), *passed)
    finally:
        program._kernels.clear()
        code.unload()
    return passed


@pytest.mark.parametrize("cpu", ["native", "x86-64-v3", "x86-64-v2"])
@pytest.mark.parametrize("width", [4, 8, 16])
def test_calls_do_what_the_interpreter_does(program, wanted, width, cpu):
    """The last vector has lanes that are no work-items."""
    plan, *how = planned(program, width, cpu=cpu)
    assert {v.name.split(".")[0] for v in plan.vector_functions.values()} == {
        "early", "square", "update", "sum", "bytes", "two", "adds", "swaps", "root", "choose", "clears",
        "turns", "differ",
    }  # fmt: skip
    for a, b in zip(wanted, run(program, plan, *how), strict=True):
        np.testing.assert_array_equal(a, b)


def versions_of(plan, name):
    found = [v for v in plan.vector_functions.values() if v.name == name]
    return {tuple(v.shapes.stride(p) for p in v.parameters): v for v in found}


def test_what_is_the_same_in_all_lanes_stays_so(program):
    plan, _, _ = planned(program, 8)
    square = versions_of(plan, "square")
    assert set(square) == {(0,), (None,)}
    assert square[0,].returns_one
    assert not square[None,].returns_one
    assert (1, 0) in versions_of(plan, "early")  # affine: the number of the work-item


def test_no_more_versions_than_that(program, wanted, monkeypatch):
    """What would be another gets one for any arguments."""
    monkeypatch.setattr(vector_functions, "MOST_VERSIONS", 1)
    plan, *how = planned(program, 8)
    for name in {v.name for v in plan.vector_functions.values()}:
        assert len([v for v in plan.vector_functions.values() if v.name == name]) <= 2
    for a, b in zip(wanted, run(program, plan, *how), strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_mask_of_a_call_is_that_of_the_function(program):
    """A function is called where a lane is in the mask, and for all lanes without one."""
    plan, how, _ = planned(program, 8)
    calls = [i for b in plan.regions[0].function.blocks for i in b.instructions if i.op is Op.FunctionCall]
    assert all(call.mask is not None for call in calls)
    full = emit(plan, how, builtin_library(), program.globals_layout, "full").text
    heads = [
        line for line in full.splitlines() if line.startswith("define internal") and "square.lanes" in line
    ]
    assert any("%mask" in head for head in heads)
    assert any("%mask" not in head for head in heads)


def test_private_memory_of_elements_of_one_size_lies_together_across_calls(program):
    """Though a structure is copied, and cleared, as bytes; not where characters are read of an array."""
    plan, _, _ = planned(program, 8)
    scratch = Scratch(plan, True, 8)
    variables = [i for b in plan.regions[0].function.blocks for i in b.instructions if i.op is Op.Variable]
    pieces = {v.name: scratch.interleaved.get(v, 0) for v in variables if v.name}
    by_size = sorted(scratch.interleaved.get(v, 0) for v in variables)
    assert pieces.get("s", 4) == pieces.get("t", 4) == 4
    assert by_size.count(4) >= 2
    assert by_size.count(0) >= 1


def test_no_calls_where_private_memory_lives_across_barriers(program):
    plan, _, _ = planned(program, 8, "meets")
    assert not plan.vector_functions
    assert len(plan.regions) == 2


def test_a_kernel_is_not_refused_lanes_for_what_it_expands_to():
    packed = bundle.pack([(compile_c(threefold_calls()), {})])
    prepared = pipeline.prepare(packed, Context(host_target(), "", {}))
    prepared.explains = True
    code = pipeline.entry(prepared, "k")
    assert code.width > 1
    assert len(code.text) < 500_000
    assert code.remarks.facts["calls"]


def test_calls_may_nest_deeper_than_passes_look():
    text = "__attribute__((noinline)) int f0(int x) { return x * 3 ^ 5; }"
    for k in range(1, 60):
        text += f"__attribute__((noinline)) int f{k}(int x) {{ return f{k - 1}(x + {k}) ^ x; }}"
    text += "kernel void k(global int *out, global const int *in, int n, global int *memory) {"
    text += " int g = get_global_id(0); out[g] = f59(in[g & 63]); }"
    program = Program(compile_c(text))
    want = arguments()
    interpret(program.module, "k", [*want[:2], 5, want[3]], (ITEMS,), (ITEMS,), (0, 0, 0), builtin_library())
    plan, *how = planned(program, 8)
    assert 2 < len(plan.vector_functions) < 50
    np.testing.assert_array_equal(want[0], run(program, plan, *how)[0])


def test_kernels_of_vectors_call_nothing():
    text = "".join(
        f"__attribute__((noinline)) float4 f{k}(float4 x) {{ x = x * 3 + {k}; x = x / 7; return "
        + (f"f{k - 1}(x) + f{k - 1}(x.wzyx) * f{k - 1}(x * x)" if k else "x")
        + "; }"
        for k in range(9)
    )
    text += "kernel void k(global float4 *to) { to[get_global_id(0)] = f8(to[get_global_id(0)]); }"
    prepared = pipeline.prepare(bundle.pack([(compile_c(text), {})]), Context(host_target(), "", {}))
    assert prepared.size_with_calls("k") == 0
