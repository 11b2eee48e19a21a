"""How many lanes and vectors kernels get: by wide values, chains of operations, and registers."""

import numpy as np
import pytest

from cl_driver.compiler import pipeline, variants
from cl_driver.device.cpu import Cpu
from cl_driver.device.target import make_target
from cl_driver.jit import bundle
from cl_driver.jit.errors import CompileError
from tests.runtime.kernel_harness import Program, compile_c

FLAGS = (
    "cmov cx8 cx16 fxsr mmx sse sse2 pni ssse3 sse4_1 sse4_2 popcnt lahf_lm avx avx2 bmi1 bmi2 f16c fma abm"
)
AVX512 = FLAGS + " avx512f avx512bw avx512cd avx512dq avx512vl"
SOURCE = """
kernel void free_chain(global float *to, float a, int steps) {
    float x = a, y = to[get_global_id(0)];
    for (int k = 0; k < steps; k++) {
        x = mad(y, x, y);
        y = mad(x, 0.25f, 0.5f);
    }
    to[get_global_id(0)] = y;
}
kernel void local_chain(global float *to, float a, int steps) {
    float x = a, y = get_local_id(0);
    for (int k = 0; k < steps; k++) {
        x = mad(y, x, y);
        y = mad(x, 0.25f, 0.5f);
    }
    to[get_global_id(0)] = y;
}
#define STEPS(T, name)                            \\
    kernel void name(global T *to) {              \\
        T v = to[get_global_id(0)];               \\
        for (int k = 0; k < 50; k++)              \\
            v = v * v + (T)0.5f;                  \\
        to[get_global_id(0)] = v;                 \\
    }                                             \\
    kernel void name##_scaled(global T *to) {     \\
        to[get_global_id(0)] *= 3;                \\
    }
STEPS(float16, floats)
STEPS(double16, doubles)
STEPS(long8, longs)
STEPS(float8, halves)
#define SUM(T, N, MORE)                                              \\
    kernel void sum_##N(global float *to, global const T##N *from) { \\
        size_t i = get_global_id(0), n = get_global_size(0);         \\
        T##N v = 0;                                                  \\
        for (int k = 0; k < 24; k++)                                 \\
            v += from[i + k * n];                                    \\
        to[i] = v.s0 + v.s1 + v.s2 + v.s3 + v.s4 + v.s5 + v.s6 + v.s7 + MORE; \\
    }
kernel void sum_4(global float *to, global const float4 *from) {
    size_t i = get_global_id(0), n = get_global_size(0);
    float4 v = 0;
    for (int k = 0; k < 24; k++)
        v += from[i + k * n];
    to[i] = v.s0 + v.s1 + v.s2 + v.s3;
}
#define ROWS(N)                                                           \\
    kernel void rows_##N(global float *to, global const float##N *from) { \\
        size_t i = get_global_id(0);                                      \\
        float##N v = 0;                                                   \\
        for (int k = 0; k < 24; k++)                                      \\
            v += from[i * 24 + k];                                        \\
        to[i] = v.s0 + v.s1 + v.s2 + v.s3;                                \\
    }
ROWS(4)
ROWS(8)
SUM(float, 8, 0)
SUM(float, 16, v.s8 + v.s9 + v.sa + v.sb + v.sc + v.sd + v.se + v.sf)
kernel void sines(global float *to, global const float16 *from) {
    size_t i = get_global_id(0);
    float16 v = from[i] + sin(from[i + 1]) + from[i + 2];
    to[i] = v.s0 + v.sf;
}
kernel void packed(global float *to, global const float *from) {
    size_t i = get_global_id(0);
    vstore16(convert_float16(convert_int16(vload16(i, from))) * 3.0f, i, to);
}
kernel void streamed(global float *to, global const float *from) {
    size_t i = get_global_id(0);
    vstore8(vload8(i, from) * 3.0f, i, to);
}
kernel void spread(global float *to, global const float *from) {
    size_t i = get_global_id(0);
    vstore8(vload8(2 * i, from), i, to);
}
kernel void to_halves(global half *to, global const float16 *from) {
    size_t i = get_global_id(0);
    vstorea_half16(from[i], i, to);
}
kernel void from_halves(global float8 *to, global const half *from) {
    size_t i = get_global_id(0);
    to[i] = vload_half8(i, from);
}
kernel void four_halves(global float4 *to, global const half *from) {
    size_t i = get_global_id(0);
    to[i] = vload_half4(i, from);
}
kernel void rounded(global half *to, global const float8 *from) {
    size_t i = get_global_id(0);
    vstorea_half8_rtn(from[i], i, to);
}
"""


# What decides how many vectors are executed together, and how many that is where 32 registers are.
CHOICES = {
    "waits": ("uint a = from[i], b = i + 1; while (b) { uint c = a % b; a = b; b = c; } to[i] = a;", (32, 1)),
    "own_rows": ("for (int j = 0; j < k; j++) to[i * k + j] = from[i * k + j] * 3;", (1, 1)),
    "walks": ("uint s = 0; for (int j = 0; j < k; j++) s = 3 * s + from[i * k + j]; to[i] = s;", (16, 1)),
    "adds_up": ("uint s = 0; for (int j = 0; j < k; j++) s += from[i * k + j]; to[i] = s;", (1, 1)),
    "rows": (
        "int y = get_global_id(1); float sum = 0.0f; for (int j = 0; j < k; j++) "
        "sum += as_float(from[y * k + j]) * as_float(from[j * k + i]); to[y * k + i] = as_uint(sum);",
        (16, 8),
    ),
    "columns": (
        "int y = get_global_id(1); if (i < k && y < k) to[i * k + y] = from[y * k + i];",
        (16, 4),
    ),
    "bounded": (
        "int y = get_global_id(1); if (i < k && y < k) to[y * k + i] = from[y * k + i];",
        (64, 1),
    ),
    "fills": (
        "uint8 a = from[i] + (uint8)(0, 1, 2, 3, 4, 5, 6, 7), b = a * 3, c = a ^ b, d = c + 5; "
        "for (int j = 0; j < k; j++) { a += b ^ c; b -= c & d; c ^= d | a; d += a ^ b; } "
        "a += b + c + d; to[i] = a.s0 ^ a.s1 ^ a.s2 ^ a.s3 ^ a.s4 ^ a.s5 ^ a.s6 ^ a.s7;",
        (16, 1),
    ),
}


@pytest.mark.parametrize("name", CHOICES)
def test_vectors_that_are_executed_together(name):
    body, tile = CHOICES[name]
    source = (
        f"kernel void {name}(global uint *to, global const uint *from, int k) "
        f"{{ int i = get_global_id(0); {body} }}"
    )
    target = make_target(Cpu("x86_64", "name", "vendor", frozenset(AVX512.split()), 2000))
    program = pipeline.Prepared(pipeline.Context(target, "", {}), bundle.pack([(compile_c(source), {})]))
    info, _ = pipeline.kernel(program, name)
    assert (info.tile_width, info.tile_height) == tile
    assert info.has_tiled == (name in ("columns", "bounded"))
    if info.has_tiled:  # the first code is made soon, without them
        assert info.has_tiled and pipeline.entry(program, name).tile == (16, 1)
        assert variants.variant(program, name, variants.TILED, [16, *tile]).tile == tile


def prepared(flags: str) -> pipeline.Prepared:
    target = make_target(Cpu("x86_64", "name", "vendor", frozenset(flags.split()), 2000))
    return pipeline.Prepared(pipeline.Context(target, "", {}), bundle.pack([(compile_c(SOURCE), {})]))


@pytest.mark.parametrize("flags, floats, doubles", [(AVX512, 16, 8), (FLAGS, 8, 4)])
def test_a_value_takes_half_of_the_registers(flags, floats, doubles):
    program = prepared(flags)
    assert (program.lanes("floats").width, program.lanes("doubles").width) == (floats, doubles)


@pytest.mark.parametrize("flags, lanes", [(AVX512, [16, 16, 1]), (FLAGS, [8, 1, 1])])
def test_vectors_that_fill_registers_stay_vectors(flags, lanes):
    """Where they are mostly read, and what is done to them is not better done for several work-items. Those
    that fill half of one do, too, but where neighbours read neighbours, two to a register."""
    program = prepared(flags)
    assert [program.lanes(f"sum_{count}").width for count in (4, 8, 16)] == lanes
    assert program.lanes("rows_8" if flags is AVX512 else "rows_4").width == 1
    assert program.lanes("sines").width > 1
    for name in ("floats", "doubles", "longs"):
        assert program.lanes(name).width > 1
        assert program.lanes(f"{name}_scaled").width == 1
    assert program.lanes("halves_scaled").width == (lanes[0] if flags is AVX512 else 1)


@pytest.mark.parametrize("flags", [AVX512, FLAGS])
def test_vectors_of_other_forms_in_memory(flags):
    """Packed vectors and halves are transposed like any."""
    program = prepared(flags)
    for name in ("packed", "to_halves", "from_halves", "rounded"):
        assert program.lanes(name).width == 1
    assert program.lanes("four_halves").width > 1
    assert (program.lanes("streamed").width > 1) == (flags is AVX512)
    assert program.lanes("spread").width == 1


ALIKE = """
kernel void task(global float *to, global const float *from, int n) {
    for (int k = 0; k < n; k++)
        to[k] = from[k] * 3.0f;
}
kernel void sizes(global uint *to) { to[0] = get_global_size(0) + get_num_groups(1) + get_work_dim(); }
void set(global uint *to, uint index) { to[index] = 1; }
kernel void called(global uint *to) { set(to, get_local_id(0)); }
kernel void groups(global uint *to) { to[get_group_id(0)] = 2; }
kernel void counts(volatile global int *to) { atomic_inc(to); }
kernel void meets(global uint *to) { barrier(CLK_LOCAL_MEM_FENCE); to[0] = 3; }
kernel void nothing(global uint *to) {}
"""


@pytest.mark.parametrize(
    "name, one",
    [("task", True), ("sizes", True), ("nothing", True)]
    + [(name, False) for name in ("called", "groups", "counts", "meets")],
)
def test_work_items_that_nothing_tells_apart(name, one):
    """They are for one work-item: of more, all would do the same. Loops become LLVM's vectors."""
    target = make_target(Cpu("x86_64", "name", "vendor", frozenset(AVX512.split()), 2000))
    program = pipeline.Prepared(pipeline.Context(target, "", {}), bundle.pack([(compile_c(ALIKE), {})]))
    assert program.lanes(name).width == (1 if one else 16)
    info, objects = pipeline.kernel(program, name)
    if one:
        assert info.tile_width == 1 and len(objects) == 1 and not (info.has_narrow or info.has_rest)


def test_addresses_that_are_sums_of_sums():
    """What is used twice is looked at once, however deep."""
    steps = "".join(f"b{k} = b{k - 1} + b{k - 2}, " for k in range(2, 55))
    source = (
        "kernel void deep(global float *to, global const float8 *from) { "
        f"size_t b0 = get_global_id(0), b1 = get_global_size(0), {steps}b = b54; "
        "float8 v = from[b] + from[b + b53]; to[get_global_id(0)] = v.s0 + v.s1; }"
    )
    target = make_target(Cpu("x86_64", "name", "vendor", frozenset(AVX512.split()), 2000))
    program = pipeline.Prepared(pipeline.Context(target, "", {}), bundle.pack([(compile_c(source), {})]))
    assert program.lanes("deep").width


def test_short_chains_are_executed_eight_at_a_time():
    program = prepared(AVX512)
    assert "fma.v16f32" in pipeline.entry(program, "free_chain").text
    for name in ("free_chain", "local_chain"):
        info, _ = pipeline.kernel(program, name)
        assert info.tile_width == 128
        assert info.free_groups == (name == "free_chain") != info.has_tiled


def test_few_instructions_are_for_several_vectors_from_the_start():
    source = "kernel void k(global float *a) { size_t i = get_global_id(0); a[i] *= 2.0f; }"
    target = make_target(Cpu("x86_64", "name", "vendor", frozenset(AVX512.split()), 2000))
    program = pipeline.Prepared(pipeline.Context(target, "", {}), bundle.pack([(compile_c(source), {})]))
    info, _ = pipeline.kernel(program, "k")
    assert not info.has_tiled and info.tile_width == 64


@pytest.mark.parametrize("name", ["free_chain", "local_chain"])
@pytest.mark.parametrize("size", [128, 256, 96])
def test_eight_parts(name, size):
    found = []
    for width, parts in ((1, 1), (16, 8)):
        to = np.arange(3 * size, dtype=np.float32) / 64
        options = {"parts": parts, "part_axis": 0} if width > 1 else {}
        program = Program(compile_c(SOURCE), width=width, **options)
        program.run(name, len(to), size, to, np.float32(0.5), np.int32(9))
        found.append(to)
    assert np.allclose(*found, rtol=1e-6)


def test_what_entries_leave_is_made_however_large_it_is(monkeypatch):
    """Launches cannot do without it."""
    program = prepared(AVX512)
    entry = pipeline.entry(program, "floats")
    assert entry.has_rest
    monkeypatch.setattr(pipeline, "WIDE_TEXT", 100)
    rest = variants.variant(program, "floats", variants.REST, [entry.width, *entry.tile])
    assert rest.size > 100


@pytest.mark.parametrize("size, lanes", [([16, 16, 1], 16), ([8, 8, 1], 8), ([4, 4, 4], 4), ([24, 4, 1], 8)])
def test_groups_in_lockstep_have_as_many_lanes_as_rows_fill(size, lanes):
    code = variants.variant(prepared(AVX512), "local_chain", variants.GROUP, size)
    assert code.width == lanes


@pytest.mark.parametrize("size", [[6, 4, 1], [2, 32, 1]])
def test_rows_that_fill_no_vectors_are_not_executed_in_lockstep(size):
    with pytest.raises(CompileError, match="cannot be executed in lockstep"):
        variants.variant(prepared(AVX512), "local_chain", variants.GROUP, size)


def test_one_work_item_at_a_time_is_tried_with_code_as_good_as_an_entry():
    """Launches wait for the other one, which is to be there soon."""
    program = prepared(AVX512)
    ways = {}
    for kind in (variants.NARROW, variants.ITEMS):
        code = variants.variant(program, "local_chain", kind, [0, 0, 0])
        assert code.width == 1
        ways[kind], _ = pipeline.llvm_ways(program.context, code, kind)
    assert ways[variants.ITEMS] == pipeline.usual_passes(code) != ways[variants.NARROW]


@pytest.mark.parametrize("size, is_wide", [(1 << 10, True), (1 << 19, False)])
def test_lanes_share_the_caches(size, is_wide):
    """Private memory that no cache holds for all lanes is that of one work-item at a time."""
    source = f"""kernel void k(global int *to) {{
        int own[{size}];
        for (int i = 0; i < {size}; i++) own[i] = to[i & 7] + i;
        to[get_global_id(0)] = own[to[3] + 77]; }}"""
    context = pipeline.Context(
        make_target(Cpu("x86_64", "name", "vendor", frozenset(FLAGS.split()), 2000)), "", {}
    )
    program = pipeline.Prepared(context, bundle.pack([(compile_c(source), {})]))
    assert (pipeline.entry(program, "k").width > 1) is is_wide
