"""Single passes: what they must do, and what they must refuse."""

from __future__ import annotations

import functools
import time

import numpy as np
import pytest

from cl_driver.passes.ir import instructions as ir
from cl_driver.passes.ir.dominance import dominators, is_reducible
from cl_driver.passes.ir.dump import plan_text
from cl_driver.passes.ir.layout import alignment_of, member_offset, size_of, walk
from cl_driver.passes.ir.ops import PassOp
from cl_driver.passes.ir.plan import PlanError
from cl_driver.passes.ir.verify import VerifyError, find_problem, verify
from cl_driver.passes.lower.inline import inline
from cl_driver.passes.scalar.copies import _alignment_at
from cl_driver.passes.scalar.reducible import make_reducible
from cl_driver.passes.scalar.simplify import simplify
from cl_driver.spirv.enums import BuiltIn, Op, StorageClass
from cl_driver.spirv.module import Block, Function, Instruction
from cl_driver.spirv.reading.reader import read
from cl_driver.spirv.types import TypeTable

from ..spirv.assembler import CAPABILITIES, SCALARS, assemble, constants
from .support import compare, compile_cl, entry, make_plan


def instructions(plan):
    return [i for r in plan.regions for b in r.function.blocks for i in b.instructions]


def shape_of_stores(source, width=8, **options):
    """Strides of the addresses of the stores of kernel k, in order."""
    plan = make_plan(compile_cl(source), "k", width=width, **options)
    region = plan.regions[0]
    return [
        region.shapes.stride(i.operands[0])
        for b in region.function.blocks
        for i in b.instructions
        if i.op is Op.Store
    ]


# inline


def test_recursion_is_an_error_that_names_the_cycle():
    types = TypeTable()
    void = types.function(types.void(), ())
    first, second = Function(void, "first"), Function(void, "second")
    for function, callee in ((first, second), (second, first)):
        block = Block(function)
        function.blocks = [block]
        ir.append(block, Op.FunctionCall, types.void(), [callee])
        ir.append(block, Op.Return)

    class Module:
        pass

    Module.types = types
    with pytest.raises(PlanError, match="first calls second calls first"):
        inline(Module, first)


def test_calls_of_declarations_stay_and_are_listed():
    source = "float outside(float); kernel void k(global float *a) { *a = outside(*a); }"
    plan = make_plan(compile_cl(source), "k")
    assert [f.linkage[0] for f in plan.calls] == ["outside"]


def test_printf_and_built_in_variables_are_noticed():
    source = 'kernel void k(global int *a) { printf("%d", (int)get_global_size(1)); a[get_local_id(0)] = 1; }'
    plan = make_plan(compile_cl(source), "k")
    assert plan.uses_printf
    assert plan.builtins == {BuiltIn.GlobalSize, BuiltIn.LocalInvocationId}


def test_local_variables_have_offsets():
    source = """kernel void k(global int *a) { local char c[3]; local long d[2]; local int i[5];
        int l = get_local_id(0); c[l] = l; i[l] = l; d[l & 1] = l; barrier(CLK_LOCAL_MEM_FENCE);
        a[l] = c[l] + (int)d[1] + i[a[l]]; }"""
    plan = make_plan(compile_cl(source), "k")
    assert {v.size for v in plan.local_variables} == {3, 16, 20}
    spans = sorted((v.offset, v.offset + v.size) for v in plan.local_variables)
    assert all(a[1] <= b[0] for a, b in zip(spans, spans[1:], strict=False))
    assert all(v.offset % v.alignment == 0 for v in plan.local_variables)
    assert plan.local_size >= spans[-1][1]


# promote


PIECES = """
typedef struct { float4 f; int i[2]; char c; } S;
kernel void vector_and_components(global float *a) {
    float4 v = vload4(0, a);
    ((float *)&v)[1] += 5.0f;
    float2 w = *(float2 *)&v;
    ((int *)&v)[3] = 0x40000000;
    vstore4(v, 0, a); vstore2(w, 2, a);
}
kernel void copies(global S *a) {
    S s = a[0], t;
    t = s;
    t.f.z = s.i[0];
    s = t;
    s.i[1] = 7;
    a[1] = s;
}
kernel void uninitialised(global int *a, int n) {
    int x;
    for (int i = 0; i < n; i++) { if (i) a[i] = x; x = i * i; }
}
kernel void swapped(global int *a, int n) {
    int x = a[0], y = a[1];
    for (int i = 0; i < n; i++) { int t = x; x = y; y = t + 1; }
    a[0] = x; a[1] = y;
}
"""


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_pieces_of_variables(level, widths):
    module = compile_cl(PIECES, level)
    given = np.arange(8, dtype=np.float32)
    (result,) = compare(module, "vector_and_components", [given], (1,), (1,), widths)
    assert result.tolist() == [0, 6, 2, 2, 0, 6, 6, 7]
    s = np.dtype([("f", "f4", 4), ("i", "i4", 2), ("c", "i1"), ("pad", "i1", 7)])
    a = np.zeros(2, s)
    a[0] = ([1, 2, 3, 4], [5, 6], 7, [0] * 7)
    raw = np.frombuffer(bytearray(a.tobytes()), np.uint8)
    (result,) = compare(module, "copies", [raw], (1,), (1,), widths)
    b = np.frombuffer(result.tobytes(), s)[1]
    assert (b["f"].tolist(), b["i"].tolist(), b["c"]) == ([1, 2, 5, 4], [5, 7], 7)
    (result, _) = compare(module, "uninitialised", [np.zeros(6, np.int32), 6], (1,), (1,), widths)
    assert result.tolist() == [0, 0, 1, 4, 9, 16]
    (result, _) = compare(module, "swapped", [np.array([1, 10], np.int32), 5], (1,), (1,), widths)
    assert result.tolist() == [12, 4]
    for name in ("copies", "uninitialised", "swapped", "vector_and_components"):
        plan = make_plan(module, name)
        assert not [i for i in instructions(plan) if i.op is Op.Variable], plan_text(plan)


def test_volatile_and_escaping_variables_stay():
    source = """void outside(int *); kernel void k(global int *a) {
        volatile int v = a[0]; int e = a[1]; outside(&e); a[2] = v + e; }"""
    plan = make_plan(compile_cl(source, "-O0"), "k")
    assert len([i for i in instructions(plan) if i.op is Op.Variable]) == 2


# simplify


def test_constant_conditions_and_dead_code_go():
    source = """kernel void k(global int *a) { int x = 3; for (int i = 0; i < 10; i++) x += a[i];
        if (sizeof(int) == 8) a[0] = x; else a[1] = 5; }"""
    plan = make_plan(compile_cl(source, "-O0"), "k")
    assert len(plan.regions[0].function.blocks) <= 4
    assert sum(i.op is Op.Store for i in instructions(plan)) == 1


TABLES = """
typedef struct { char c; short pair[2]; int4 v; float f[2][3]; } S;
constant S structures[3] = {{1, {2, -3}, {4, 5, 6, 7}, {{1.5f, 2.5f, 3.5f}, {4.5f, 5.5f, 6.5f}}}, {0},
                            {9, {8, 7}, {6, 5, 4, 3}, {{0}, {0, -1.0f}}}};
typedef struct {} Empty;
constant struct { Empty none[3]; int after; } sparse = {{}, 5};
constant ulong numbers[4] = {1, 1ul << 40, 3, ~0ul};
kernel void k(global float *out, global int *ints, constant int *given, int i) {
    out[0] = structures[0].f[1][2], out[1] = structures[2].f[1][1], out[2] = structures[1].f[0][1];
    ints[0] = structures[0].pair[1], ints[1] = structures[2].v.z, ints[2] = structures[2].c;
    ints[3] = numbers[1] >> 38, ints[4] = (int)numbers[3], ints[5] = structures[1].pair[0];
    ints[6] = sparse.after;
    DYNAMIC
}"""


def test_constants_at_known_places_are_numbers():
    def loads(dynamic: str) -> int:
        plan = make_plan(compile_cl(TABLES.replace("DYNAMIC", dynamic), "-O0"), "k", width=8)
        return sum(i.op is Op.Load for i in instructions(plan))

    assert loads("") == 0
    assert loads("ints[7] = structures[i].c;") == 1
    assert loads("ints[7] = given[1];") == 1
    assert loads("ints[7] = *(volatile constant int *)&structures[0].v;") == 1
    assert loads("ints[7] = *(constant int *)numbers;") == 1  # half of an element
    plan = make_plan(compile_cl(TABLES.replace("DYNAMIC", ""), "-O0"), "k", width=1)
    stored = [i.operands[1] for i in instructions(plan) if i.op is Op.Store]
    bits = [value.value or 0 for value in stored]
    out = np.array(bits[:3], np.uint32).view(np.float32)
    ints = np.array(bits[3:], np.uint32).view(np.int32)
    assert out.tolist() == [6.5, -1.0, 0.0]
    assert ints.tolist() == [-3, 4, 9, 4, -1, 0, 5]


@pytest.mark.parametrize(
    ("value", "is_id"),
    [
        ("(long)(int)get_local_id(1)", True),
        ("(ulong)(uint)get_local_id(0)", True),
        ("get_local_id(2) & 0x7fffffff", True),
        ("get_local_linear_id() << 32 >> 32", True),
        ("(long)(int)get_global_id(0)", False),
        ("get_local_id(0) & 0xffff", False),
        ("(long)(short)get_local_id(0)", False),
        ("get_local_id(0) << 32 >> 31", False),
        ("get_local_id(0) << 33 >> 32", False),
    ],
)
def test_local_ids_fit_in_ints(value, is_id):
    source = f"kernel void k(global ulong *a) {{ a[get_global_id(0)] = {value}; }}"
    for level in ("-O0", "-O2"):
        plan = make_plan(compile_cl(source, level), "k")
        stored = next(i.operands[1] for i in instructions(plan) if i.op is Op.Store)
        assert (stored.op in (Op.CompositeExtract, Op.Load)) == is_id, level


def test_a_switch_of_a_constant_takes_its_case():
    source = """kernel void k(global int *a) { int x = -3; switch (x) { case 3: a[0] = 1; break;
        case -3: a[0] = 2; break; default: a[0] = 3; } }"""
    plan = make_plan(compile_cl(source, "-O0"), "k")
    (store,) = (i for i in instructions(plan) if i.op is Op.Store)
    assert store.operands[1].value == 2


# shapes


def test_shapes_of_addresses():
    source = """kernel void k(global int *a, int n, global const int *in) {
        int i = get_global_id(0);
        a[i] = 0; a[get_global_id(0) * 3 + 7] = 0; a[n] = 0; a[in[i]] = 0; a[63 - i] = 0;
        a[get_global_id(1)] = 0; ((global char *)a)[get_local_id(0) * 5] = 0; a[(i << 2) | 1] = 0;
        a[i * 8 + 2] = 0; a[get_group_id(0) * 64 + i] = 0;
        a[~i] = 0; a[~get_global_id(0) + n] = 0; a[n - 1 - i] = 0; a[~in[i]] = 0; }"""
    # n - 1 - i wraps around for the least n; i * 8 would be undefined.
    assert shape_of_stores(source) == [4, 12, 0, None, -4, 0, 5, 16, 32, 4, -4, -4, None, None]


def test_small_multiples_of_ids_do_not_wrap():
    """Places of pixels: of an int, and of what clang makes of one, (i << 32) * 3 >> 32."""
    source = """kernel void k(global uchar *a) { int i = get_global_id(0);
        a[3 * i] = 0; a[4 * i + 3] = 0; a[(int)(get_global_id(0) * 3) + 2] = 0;
        a[(int)(get_global_id(0) * 5)] = 0; }"""
    assert shape_of_stores(source) == [3, 4, 3, None]


def test_linear_lanes_know_the_linear_id_only():
    source = """kernel void k(global int *a) { a[get_global_id(0)] = 0; a[get_local_linear_id()] = 0;
        a[get_group_id(0)] = 0; }"""
    assert shape_of_stores(source, linear_lanes=True) == [None, 4, 0]


def test_ids_that_may_be_large_do_not_stay_affine_through_int():
    source = "kernel void k(global int *a) { int i = get_global_id(0); a[i] = 0; }"
    assert shape_of_stores(source) == [4]
    assert shape_of_stores(source, small_ids=False) == [None]
    module = compile_cl(source)
    assert make_plan(module, "k", width=4).assumes_small_ids
    other = "kernel void k(global int *a) { a[get_global_id(0)] = get_global_size(0); }"
    assert not make_plan(compile_cl(other), "k", width=4).assumes_small_ids


def test_a_counter_is_uniform_in_a_divergent_loop_and_varies_behind_it():
    source = """kernel void k(global int *a, global const int *in) {
        int i = get_global_id(0), j = 0;
        for (; in[i * 100 + j]; j++) a[j] = 1;
        a[j] = 2; }"""
    assert shape_of_stores(source) == [0, None]


def test_private_memory_is_the_lanes_own():
    source = """kernel void k(global int *a, int n) { int t[16]; for (int j = 0; j < 16; j++) t[j] = a[j] * n;
        t[n & 15] = get_global_id(0); a[get_global_id(0)] = t[(n + 1) & 15]; }"""
    plan = make_plan(compile_cl(source), "k", width=4)
    shapes = plan.regions[0].shapes
    loads = [
        i for i in instructions(plan)
        if i.op is Op.Load and i.operands[0].type.storage is StorageClass.Function
    ]  # fmt: skip
    assert loads
    assert all(shapes.stride(i) is None and i.operands[0] in shapes.private for i in loads)


# out[id] = *(n > 3 ? FIRST : SECOND): the work-item's own variables, which hold its id and twice that, or
# what is common to all.
CHOSEN_POINTER = f"""{CAPABILITIES}
OpMemoryModel Physical64 OpenCL
OpEntryPoint Kernel %main "main" %gid
OpDecorate %gid BuiltIn GlobalInvocationId
{SCALARS}
{constants("i32", three=3)}
%i64v3 = OpTypeVector %i64 3
%in_ptr = OpTypePointer Input %i64v3
%global_ptr = OpTypePointer CrossWorkgroup %i32
%own_ptr = OpTypePointer Function %i32
%ptr = OpTypePointer Generic %i32
%fn = OpTypeFunction %void %global_ptr %global_ptr %i32
%gid = OpVariable %in_ptr Input
%main = OpFunction %void None %fn
%out = OpFunctionParameter %global_ptr
%in = OpFunctionParameter %global_ptr
%n = OpFunctionParameter %i32
%entry = OpLabel
%own = OpVariable %own_ptr Function
%other = OpVariable %own_ptr Function
%id3 = OpLoad %i64v3 %gid
%id = OpCompositeExtract %i64 %id3 0
%narrow = OpUConvert %i32 %id
%twice = OpIAdd %i32 %narrow %narrow
OpStore %own %narrow Aligned 4
OpStore %other %twice Aligned 4
%mine = OpPtrCastToGeneric %ptr %own
%common = OpPtrCastToGeneric %ptr %in
%more = OpSGreaterThan %bool %n %three
%chosen = OpSelect %POINTER %more %FIRST %SECOND
%x = OpLoad %i32 %chosen Aligned 4
%to = OpPtrAccessChain %global_ptr %out %id
OpStore %to %x Aligned 4
OpReturn
OpFunctionEnd
"""


@pytest.mark.parametrize(
    "pointer, first, second",
    [
        ("ptr", "mine", "common"),
        ("ptr", "common", "mine"),
        ("own_ptr", "own", "other"),
        ("own_ptr", "other", "own"),
    ],
)
@pytest.mark.parametrize("n", [3, 4])
def test_a_choice_of_pointers_to_private_memory(widths, pointer, first, second, n):
    text = CHOSEN_POINTER.replace("POINTER", pointer).replace("FIRST", first).replace("SECOND", second)
    arguments = [np.zeros(16, np.int32), np.array([77], np.int32), n]
    out = compare(read(assemble(text)), "main", arguments, (16,), (16,), widths)[0]
    ids = np.arange(16)
    read_by = {"mine": ids, "own": ids, "other": 2 * ids, "common": np.full(16, 77)}
    assert np.array_equal(out, read_by[first if n > 3 else second])


# linearise


def test_only_uniform_branches_are_left_and_effects_have_masks():
    source = """kernel void k(global int *a, int n) {
        int i = get_global_id(0);
        if (a[i] > 3) { if (n) a[i] = 1; else a[i + 64] = 2; }
        for (int j = 0; j < n; j++) { if (a[i] == j) break; a[i] += j; }
        if (n > 5) a[0] = 9; }"""
    plan = make_plan(compile_cl(source), "k", width=8)
    region = plan.regions[0]
    assert not region.shapes.divergent_branches
    for block in region.function.blocks:
        for i in block.instructions:
            if i.op is Op.Store:
                assert i.mask is not None
    conditions = [
        b.terminator.operands[0] for b in region.function.blocks if b.terminator.op is Op.BranchConditional
    ]
    # `if (n)`, `n > 0` and `if (n > 5)` stay branches on what they are; the rest asks for any lane.
    direct = [c for c in conditions if c.op is not PassOp.AnyLane]
    assert len(direct) >= 3
    assert all(region.shapes.is_uniform(c) for c in conditions)


def test_straight_code_has_no_mask_but_that_of_the_tail():
    source = "kernel void k(global int *a) { int i = get_global_id(0); a[i] = a[i] / 3; }"
    plan = make_plan(compile_cl(source), "k", width=8)
    masks = {i.mask for i in instructions(plan) if i.mask is not None}
    assert [m.op for m in masks] == [PassOp.EntryMask]
    assert len(plan.regions[0].function.blocks) == 1


def test_work_items_may_return_before_a_barrier(widths):
    """Not legal OpenCL, but common: GPUs forgive it."""
    source = """kernel void k(global int *a, int n) { local int t[8];
        int g = get_global_id(0), l = get_local_id(0); t[l] = 100;
        if (g >= n) return; t[l] = a[g]; barrier(CLK_LOCAL_MEM_FENCE);
        int v = t[7 - l]; barrier(CLK_LOCAL_MEM_FENCE); a[g] = v; }"""
    given = np.arange(16, dtype=np.int32)
    result, _ = compare(compile_cl(source), "k", [given, 13], (16,), (8,), widths)
    assert result.tolist() == [*range(7, -1, -1), 100, 100, 100, 12, 11, 13, 14, 15]


# reducible


def test_reducible_functions_are_left_alone_and_others_mended():
    source = """kernel void plain(global int *a) { for (int i = 0; i < 9; i++) if (a[i]) a[i] = i; }
        kernel void knot(global int *a, int n) { int x = 0; if (n & 1) goto in;
        out: x += a[x]; if (x > 99) return;
        in: x++; a[x] = n; if (x & 3) goto in; if (n > x) goto out; }"""
    module = compile_cl(source)
    for name, before in (("plain", True), ("knot", False)):
        function = inline(module, entry(module, name).function)
        simplify(function, module.types)
        assert is_reducible(function, dominators(function)) is before
        count = ir.instruction_count(function)
        make_reducible(function, module.types)
        verify(function, "make_reducible")
        assert is_reducible(function, dominators(function))
        assert (ir.instruction_count(function) == count) is before


# verify


def small_function():
    types = TypeTable()
    function = Function(types.function(types.void(), ()), "f")
    block = Block(function, "entry")
    function.blocks = [block]
    one = types.integer(32, 1)
    total = ir.append(block, Op.IAdd, types.int(32), [one, one])
    more = ir.append(block, Op.IMul, types.int(32), [total, total])
    ir.append(block, Op.Return)
    return types, function, block, total, more


def test_the_verifier_finds_what_is_broken():
    types, function, block, total, more = small_function()
    assert find_problem(function) is None
    block.instructions = [more, total, block.terminator]
    assert "before it is computed" in find_problem(function)
    block.instructions = [total, more]
    assert "does not end in a terminator" in find_problem(function)
    _, function, block, total, more = small_function()
    more.operands[0] = Instruction(Op.IAdd, total.type, [], block)
    assert "not in the function" in find_problem(function)
    with pytest.raises(VerifyError, match="after nothing"):
        verify(function, "nothing")
    types, function, block, *_ = small_function()
    block.instructions[-1] = Instruction(Op.Branch, None, [Block(function, "elsewhere")], block)
    assert "not in the function" in find_problem(function)


# layout


def test_layouts():
    types = TypeTable()
    f, c, d = types.float(32), types.int(8), types.float(64)
    assert size_of(types.vector(f, 3)) == alignment_of(types.vector(f, 3)) == 16
    s = types.struct((c, d, c))
    assert (size_of(s), alignment_of(s), member_offset(s, 2)) == (24, 8, 16)
    packed = types.struct((c, d, c), True)
    assert (size_of(packed), alignment_of(packed), member_offset(packed, 2)) == (10, 1, 9)
    assert size_of(types.array(s, 3)) == 72


def test_steps_of_an_access_chain():
    """The constant part in bytes, of members and of constants, which may be negative, and the rest."""
    types = TypeTable()
    s = types.struct((types.int(8), types.array(types.int(32), 5), types.int(16)))
    function = Function(types.function(types.void(), ()), "f")
    block = Block(function)
    base = ir.append(block, Op.Undef, types.pointer(StorageClass.CrossWorkgroup, s), [])
    index = ir.append(block, Op.Undef, types.int(64), [])
    number = functools.partial(types.integer, 32)

    def walked(op, *indices):
        steps = []
        chain = ir.append(
            block, op, types.pointer(StorageClass.CrossWorkgroup, types.int(32)), [base, *indices]
        )
        return walk(chain, steps), steps

    assert size_of(s) == 28
    assert walked(Op.AccessChain, number(2)) == (24, [])
    assert walked(Op.AccessChain, number(1), index) == (4, [(index, 4)])
    assert walked(Op.PtrAccessChain, number(3), number(1), number(2)) == (3 * 28 + 4 + 8, [])
    assert walked(Op.InBoundsPtrAccessChain, number(2**32 - 1), number(1), index) == (4 - 28, [(index, 4)])
    assert walked(Op.PtrAccessChain, index, number(1), number(4)) == (4 + 16, [(index, 28)])


@pytest.mark.parametrize(
    "alignment, offset, expected", [(16, 0, 16), (16, 4, 4), (16, 24, 8), (4, 16, 4), (1, 8, 1)]
)
def test_alignments_of_pieces(alignment, offset, expected):
    assert _alignment_at(alignment, offset) == expected


# the pipeline


def test_plans_do_not_depend_on_the_run():
    source = """kernel void k(global int *a, global const int *b, int n) { local int t[64];
        int l = get_local_id(0); for (int i = 0; i < n; i++) { t[l] = a[i]; barrier(CLK_LOCAL_MEM_FENCE);
        if (b[l] > i) a[l] += t[63 - l]; barrier(CLK_LOCAL_MEM_FENCE); } }"""
    module = compile_cl(source)
    for width in (1, 8):
        assert plan_text(make_plan(module, "k", width=width)) == plan_text(
            make_plan(module, "k", width=width)
        )


@pytest.mark.clock
@pytest.mark.parametrize("width", [1, 8])
def test_time_grows_nearly_linearly(width):
    def kernel(n):
        body = "\n".join(
            f"if (a[i] > {k}) {{ x += a[i + {k}] * x; }} else {{ x ^= b[{k}]; }}"
            f"for (int j = 0; j < x; j++) x -= a[j + {k}];"
            for k in range(n)
        )
        return f"""kernel void k(global int *a, global const int *b) {{
            int i = get_global_id(0), x = i; {body} a[i] = x; }}"""

    def seconds(n):
        module = compile_cl(kernel(n))
        found = entry(module, "k")
        made = make_plan(module, "k", width=width)
        best = 1e9
        for _ in range(3):
            start = time.process_time()
            from cl_driver.passes.ir.plan import PlanOptions
            from cl_driver.passes.pipeline import plan

            plan(module, found, PlanOptions(width=width))
            best = min(best, time.process_time() - start)
        return best / len(instructions(made))

    assert seconds(80) < 4 * seconds(10)


def test_kernels_that_say_that_their_groups_are_narrow_get_no_more_lanes():
    source = """kernel __attribute__((reqd_work_group_size(1, 1, 1))) void one(global int *a) { *a += 1; }
        kernel __attribute__((reqd_work_group_size(8, 8, 1))) void eight(global int *a) { *a += 1; }
        kernel __attribute__((work_group_size_hint(3, 1, 1))) void hint(global int *a) { *a += 1; }
        kernel void any(global int *a) { *a += 1; }"""
    module = compile_cl(source)
    widths = [make_plan(module, name, width=16).options.width for name in ("one", "eight", "hint", "any")]
    assert widths == [1, 8, 2, 16]
