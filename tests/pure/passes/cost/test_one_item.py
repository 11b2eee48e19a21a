"""Which kernels are better off with one work-item at a time: loops of gathers, accesses at places of each
work-item's own, long code of vectors that fill registers."""

import pytest

from cl_driver.device.target import Target
from cl_driver.passes.cost import one_item
from cl_driver.passes.cost.one_item import depends_on_data, prefers_one
from cl_driver.passes.cost.work import PlanCosts
from cl_driver.passes.ir.remarks import Remarks
from cl_driver.spirv.enums import Op

from ..support import compile_cl, make_plan

AVX2, AVX512 = (Target("x86_64-unknown-linux-gnu", (), bits) for bits in (256, 512))
AMD_AVX2 = Target("x86_64-unknown-linux-gnu", (), 256, slow_masked_stores=True)


def prefers(source, target=AVX512, **options):
    plan = make_plan(compile_cl(source), "k", **{"width": target.vector_bits // 32, **options})
    return prefers_one(PlanCosts(plan, target))


HEAD = (
    "kernel void k(global int *out, global const int *start, global const int *column, global const int *x, "
    "int n, global int *marks) { int i = get_global_id(0), s = 0; "
)


def of_loop(body, **options):
    return prefers(f"{HEAD} {body} out[i] = s; }}", **options)


def row(body):
    return f"for (int k = start[i]; k < start[i + 1]; k++) {body}"


SPARSE = row("s += marks[k] * x[column[k]];")
WORK = row("{ int v = marks[k] * x[column[k]]; s += v ^ (v << 3) ^ (v * v) ^ (s >> v); }")


@pytest.mark.parametrize(
    "body, one",
    [
        (SPARSE, True),
        (row("marks[column[k]] = x[k];"), True),
        (row("atomic_add(&marks[column[k]], x[k]);"), True),
        (row("atomic_exchange((volatile global atomic_int *)&marks[column[k]], x[k]);"), True),
        (row("s += x[column[k]];"), False),
        (WORK, False),
        ("for (int k = 0; k < n; k++) s += start[k * n + i] * x[column[k * n + i]];", False),
        ("for (int k = 0; k < n; k++) s += x[column[marks[(k ^ i) * n]]];", False),  # all lanes go on
        ("s = x[column[start[i]]] + x[marks[start[i]]];", False),
        (SPARSE + WORK, False),
    ],
)
def test_one_work_item_at_a_time(body, one):
    assert of_loop(body) == one


LEVELS = (
    "local int l[64]; local int count; int lid = get_local_id(0), m = n; l[lid] = x[i]; "
    f"if (lid == 0) count = 0; barrier(1); while (m > 0) {{ if (lid < m) {{ i = l[lid]; {SPARSE} }} "
    "barrier(1); MORE if (s & 1) l[atomic_inc(&count)] = s; barrier(1); m = count; }"
)
STEPS = "".join(f"v = v * {k + 3} ^ (v >> {k % 31}) + l[lid ^ {k % 64}]; " for k in range(1, 90))
ROUNDS = "int v = lid; for (int k = 0; k < n; k++) v = v * v ^ (v >> k); l[lid ^ 1] = v;"


@pytest.mark.parametrize(
    "more, one", [("", True), (f"int v = s; {STEPS} l[lid] = v;", False), (ROUNDS, False)]
)
def test_loops_of_gathers_between_barriers(more, one):
    """They decide, unless other loops, or much else, lose more."""
    assert of_loop(LEVELS.replace("MORE", f"{more} barrier(1);"), target=AVX2) == one
    assert not of_loop(LEVELS.replace("MORE", ""), target=AVX2, width=1)


@pytest.mark.parametrize(
    "body, lanes_gain",
    [
        (row("s += marks[column[k]];"), True),
        (row("if (x[k] > s) atomic_exchange((volatile global atomic_int *)&out[column[k]], k);"), False),
        # One place for all lanes: one atomic.
        (row("if (x[column[k]] > s) atomic_exchange((volatile global atomic_int *)marks, k);"), True),
    ],
)
def test_atomics_gain_nothing_by_lanes(body, lanes_gain):
    """Which are done lane by lane: then loops of them have as much to win without lanes as they take."""
    plan = make_plan(compile_cl(f"{HEAD} {body} out[i] = s; }}"), "k", width=8)
    region = PlanCosts(plan, AVX2).of(plan.regions[0])
    lanes, alone = 1.0, 3.0  # what they take is another matter
    region.__dict__ |= {"cycles_with_lanes": lanes, "cycles_alone": alone}
    assert one_item._cycles_of_gathers(region) == (lanes if lanes_gain else alone)
    region.__dict__["cycles_alone"] = 0.5
    assert one_item._cycles_of_gathers(region) == lanes


def test_it_is_no_choice_at_width_1():
    assert not of_loop(SPARSE, width=1)


@pytest.mark.parametrize(
    "id_, one", [("get_group_id(0)", True), ("get_global_id(1)", True), ("get_local_id(0)", False)]
)
def test_rows_that_do_the_same(id_, one):
    """One work-item stands for all of a row."""
    source = f"kernel void k(global int *out, global int *in) {{ out[{id_}] = in[{id_}]; }}"
    assert prefers(source, AVX2) == one


@pytest.mark.parametrize("size, one", [(1 << 16, False), (1 << 20, True)])
def test_much_private_memory(size, one):
    """No cache holds that of all lanes."""
    body = f"int own[{size >> 2}]; for (int k = 0; k < n; k++) own[k * k % n] += x[k]; s = own[n];"
    assert of_loop(body) == one


PLACES = (
    "typedef struct { float x, y, z, w, r, s; } Record; "
    "kernel void k(global float *out, global const Record *in, global const int *at, int n, local int *l, "
    "global const char *bytes) { uint i = get_global_id(0); "
)


def of_places(body, target=AVX2, **options):
    return prefers(f"{PLACES} {body} }}", target, **options)


RECORD = (
    "Record r = in[at[i]]; out[9 * i] = r.x; out[9 * i + 1] = r.y; "
    "out[9 * i + 2] = r.z; out[9 * i + 3] = r.w;"
)
SCATTER = "int p = at[i]; out[p] = 1; out[p + 77] = 2; out[p * 3] = 3;"


LOOKED_UP = (
    "uchar4 p = ((global const uchar4 *)bytes)[i]; "
    "((global int4 *)out)[i] = (int4)(at[p.x], at[p.y], at[p.z], 1) * p.w;"
)


@pytest.mark.parametrize("body", [RECORD, f"if (i < n) {{ {RECORD} }}", SCATTER, LOOKED_UP])
def test_mostly_places(body):
    assert of_places(body)
    assert not of_places(body, width=1)


@pytest.mark.parametrize(
    "body, why",
    [
        ("out[i] = at[i];", "neighbours"),
        ("out[i] = at[(int)i * n + 3] + at[i + n];", "more is done than one gather"),
        ("out[4 * (size_t)i] = in[i].x + in[i].y;", "a known step: vectors that are shuffled"),
        ("size_t j = i; out[8 * j] = in[j].x * in[j].y + in[j].z * in[j].w;", "records of a known size"),
        ("out[i] = at[i + n] + at[i - n] + at[i * 1];", "neighbours, if sums do not wrap"),
        ("float s = in[at[i]].x; s = sin(s) * exp(s) + s * 3; out[i] = s;", "arithmetic"),
        ("float s = 0; for (int k = 0; k < n; k++) s += in[at[k * n + i]].x; out[i] = s;", "a loop"),
        ("int p = at[i]; l[p] = l[p * 3] + l[p * 7]; out[i] = l[p ^ 1];", "local memory"),
        ("atomic_inc((volatile global int *)out + at[i]);", "atomics"),
        ("float4 s = ((global float4 *)out)[i]; s = sin(s) + in[at[i]].x; out[i] = s.x + s.y;", "vectors"),
        ("l[i] = at[at[i]]; barrier(1); out[at[i]] = l[at[i] & 7];", "a barrier"),
    ],
)
def test_lanes_stay(body, why):
    assert not of_places(body), why


CLAMPED = "out[i] = at[clamp({}, 0, {})];"


@pytest.mark.parametrize(
    "at, bound, step",
    [
        ("(int)i + 3", "n", 4),
        ("n - (int)i", "max(n, 3)", -4),
        ("2 * max((int)i, 5)", "n", 8),
        ("at[i]", "n", None),
        ("(int)i", "at[i]", None),  # a bound for each lane
        ("(int)i", "n - (int)i", None),
    ],
)
def test_what_is_clamped_is_taken_to_be_within_its_bounds(at, bound, step):
    """But not by what is asked how loads cost: there are edges."""
    plan = make_plan(compile_cl(f"{PLACES} {CLAMPED.format(at, bound)} }}"), "k", width=8)
    costs = PlanCosts(plan, AVX2).of(plan.regions[0])
    loads = [i for b in costs.function.blocks for i in b.instructions if i.op is Op.Load]
    assert costs.step(loads[-1]) is None
    assert costs.step(loads[-1], within_bounds=True) == step


def pixels(x, y):
    """The sum of a neighbourhood of pixels, of which those beyond an edge are those at the edge."""
    taps = " + ".join(
        f"(at + clamp({y} + {dy}, 0, n - 1) * n)[clamp({x} + {dx}, 0, n - 1)]"
        for dy in range(-2, 3)
        for dx in range(-2, 3)
    )
    return f"int x = i, y = get_global_id(1); out[y * n + x] = {taps};"


def test_clamped_coordinates_are_no_places_of_each_lanes_own():
    assert not of_places(pixels("x", "y"))
    assert of_places(pixels("at[x]", "y"))


@pytest.mark.parametrize(
    ("type_", "count", "target", "one"),
    [
        ("uchar", 16, AVX2, False),
        ("char", 64, AVX2, False),
        ("uchar", 256, AVX2, True),
        ("float", 16, AVX2, False),
        ("ushort", 64, AVX2, True),
        ("uchar", 16, AVX512, False),
    ],
)
def test_small_tables_are_no_places_in_memory(type_, count, target, one):
    """Registers hold these: two look-ups for a byte, as hexadecimal numbers take."""
    numbers = ", ".join(str(k * 37 % 113) for k in range(count))
    source = f"""constant {type_} table[{count}] = {{{numbers}}};
    kernel void k(global {type_}2 *out, global const uchar *in) {{
        size_t i = get_global_id(0); uchar c = in[i];
        out[i] = ({type_}2)(table[c >> 4 & {count - 1}], table[c & {count - 1}]); }}"""
    assert prefers(source, target) == one


def test_cpus_that_gather():
    """An access costs less there, but if it is of bytes: then nothing gathers."""
    some = "int p = at[i]; out[p] = in[p].x * in[p].y + in[p].z * in[p].w * n;"
    assert of_places(some) and not of_places(some, target=AVX512)
    assert of_places("int p = at[i]; out[p] = bytes[p] + bytes[p + 99] + bytes[p + 333];", target=AVX512)


def test_it_says_why():
    remarks = Remarks()
    assert of_places(RECORD, remarks=remarks)
    assert "places of each lane's own" in remarks.choices["width"]


RECORDS = (
    "typedef struct { SHORT scale; TYPE data[16]; } Record; "
    "kernel void k(global Record *in, global TYPE *out, global SHORT *scale, int n, TYPE mask) { "
    "int i = get_global_id(0); scale[i] = in[i].scale; "
    "BODY }"
)


def of_records(body, type_="uchar", scale="ushort", target=AVX512):
    source = RECORDS.replace("BODY", body).replace("TYPE", type_).replace("SHORT", scale)
    return prefers(f"#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n{source}", target)


COPY = "for (int k = 0; k < 16; k++) out[16 * i + k] = in[i].data[k];"


@pytest.mark.parametrize("target", [AVX2, AVX512])
@pytest.mark.parametrize(
    "body, one",
    [
        (COPY, True),
        (f"if (i < n) {{ {COPY} }}", True),
        (COPY.replace("in[i].data[k]", "in[i].data[k] ^ mask"), True),
        # Much of it is arithmetic, or vectors.
        (COPY.replace("in[i].data[k]", "(in[i].data[k] * mask ^ 5) / 3 % (mask | 1)"), False),
        ("out[i] = in[i].data[3];", False),
        (COPY.replace("16 * i + k", "k * n + i"), False),
    ],
)
def test_records_are_copied_without_lanes(body, one, target):
    """Where lanes take turns to reach each byte of a record."""
    assert of_records(body, target=target) == one


@pytest.mark.parametrize("target", [AVX2, AMD_AVX2, AVX512])
@pytest.mark.parametrize("count", [16, 24, 32])
def test_long_records_are_copied_without_lanes(count, target):
    """One byte after the other would take as long as with lanes."""
    source = f"""typedef struct {{ ushort scale; uchar high[4], data[{count}]; }} Record;
        kernel void k(global Record *in, global uchar *out, global uint *high, global ushort *scale, int n) {{
            size_t i = get_global_id(0);
            if (i >= n) return;
            scale[i] = in[i].scale; high[i] = *(global uint *)in[i].high;
            for (int k = 0; k < {count}; k++) out[{count} * i + k] = in[i].data[k];
        }}"""
    assert prefers(source, target)


def test_vectors_are_made_of_fields():
    source = "typedef struct { float x, y; } Record; kernel void k(global Record *a, global Record *b) { "
    assert not prefers(source + "int i = get_global_id(0); b[i].x = a[i].y; b[i].y = a[i].x; }")


def rounds(count, chained):
    """A kernel that takes many steps on vectors of 256 bits for each value of a list: each of them needs what
    the step before gave, or one of several that are independent."""
    names = ["a"] if chained else ["a", "b", "c", "d", "e", "f"]
    steps = [f"{{0}} = ({{0}} ^ v) + {k * 977 + 1}u;".format(names[k % len(names)]) for k in range(count)]
    declared = " ".join(f"uint8 {name} = x[i + {n}];" for n, name in enumerate(names))
    return (
        "kernel void k(global uint8 *out, global const uint8 *x, constant uint8 *list, int n) { "
        f"int i = get_global_id(0); {declared} for (int j = 0; j < n; j++) {{ uint8 v = list[j] + a; "
        f"{' '.join(steps)} }} out[i] = {' + '.join(names)}; }}"
    )


@pytest.mark.parametrize(
    "count, chained, own",
    [(400, False, True), (40, False, False), (400, True, False)],
    ids=["too long for lanes", "short", "lanes fill its gaps"],
)
def test_vectors_that_fill_registers_need_no_lanes_where_code_is_long(count, chained, own):
    assert prefers(rounds(count, chained), AVX2) == own


def test_scalars_have_lanes_however_long_the_code_is():
    assert not prefers(rounds(400, False).replace("uint8", "uint"), AVX2)


MIXED = 10 * "v = v * v ^ (v << 3) ^ (v * s) + (v >> 2); "
MUCH_WORK = row(f"{{ int v = marks[k] * x[column[k]]; {MIXED} s += v; }}")
CASES = """int kind = start[i], at = column[i];
    for (int k = 0; k < at; k++) {
        int other = column[i + k];
        if (start[other] == 3) { for (int m = 0; m < x[other]; m++) s += x[other + m] * marks[s & 63]; }
        if (start[other] == 5) { for (int m = kind; m > 0; m--) s ^= x[s & 63] * m + marks[other + m]; }
        if (start[other] == kind && x[other + 1] > s) { s = x[other + 2] * s + marks[other] * n - x[s & 7]; }
    }"""


@pytest.mark.parametrize(
    "body, depends",
    [
        (CASES, True),
        (f"local int l[64]; l[i & 63] = n; barrier(1); n = l[n & 63]; {CASES}", False),  # lanes stay
        (SPARSE + WORK, True),  # all do the same, but at places of their own
        (MUCH_WORK, False),  # and so much that lanes win by far
        ("for (int k = 0; k < 100; k++) { s = s * 5 + k; if (s & 8) s ^= s * s; }", False),
    ],
)
def test_what_few_work_items_need_may_be_faster_without_lanes(body, depends):
    plan = make_plan(compile_cl(f"{HEAD} {body} out[i] = s; }}"), "k", width=8)
    costs = PlanCosts(plan, AVX2)
    assert not prefers_one(costs)
    assert depends_on_data(costs) == depends


MOSTLY_FOR_ONE_WAY = """float4 f = y[at[i + 1]]; float r = f.x / f.y + f.z / f.w; r = sqrt(r) / (r + 3);
    float a[2] = {r, f.x};"""


@pytest.mark.parametrize(
    "then, depends",
    [
        ("if (at[i] == 3) out[i] = r / f.y + f.z;", True),
        ("if (at[i] == 3) out[i] = a[n & 1];", True),
        ("if (i < n) out[i] = r / f.y + f.z;", False),  # the ids decide, not the data
        ("if (at[i] == 3) out[i] = 1; out[i] += r / f.y + f.z;", False),  # all lanes need it
        ("if (at[i] == 3) out[i] = r; out[n] += a[n & 1];", False),
    ],
    ids=["one way", "by way of an array", "ids", "both ways", "array of both ways"],
)
def test_what_one_way_needs_may_be_faster_without_lanes_as_data_have_it(then, depends):
    source = "kernel void k(global float *out, global const float4 *y, global const int *at, int n) "
    body = f"{{ int i = get_global_id(0); {MOSTLY_FOR_ONE_WAY} {then} }}"
    costs = PlanCosts(make_plan(compile_cl(source + body), "k", width=8), AVX2)
    assert depends_on_data(costs) == depends


ROWS = """int i = get_global_id(0);
    for (int k = 1; k < n; k++) {{ float f = y[{0}] - y[{0} - 1] * x[k]; y[{0}] = f / w[{0}]; }}"""


@pytest.mark.parametrize(
    "at, depends",
    [("i * n + k", True), ("k * n + i", False), ("i * 4 + k", False)],
    ids=["rows as long as a run has it", "columns", "short rows"],
)
def test_rows_of_each_lane_may_be_faster_without_lanes_as_caches_have_it(at, depends):
    source = "kernel void k(global float *y, global const float *x, global const float *w, int n) "
    plan = make_plan(compile_cl(f"{source} {{ {ROWS.format(at)} }}"), "k", width=8)
    costs = PlanCosts(plan, AVX2)
    assert depends_on_data(costs) == depends
