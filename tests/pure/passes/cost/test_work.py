"""What a vector of work-items takes, by the table of a CPU: loops that are counted, what vectors share,
registers that instructions need besides those of their values."""

import pytest

from cl_driver.codegen.library.names import INSTRUCTIONS
from cl_driver.device.target import Target
from cl_driver.passes.cost import operations
from cl_driver.passes.cost.cpu_models import ISSUE, LOAD, RESOURCES, VECTOR, cycles, model_of
from cl_driver.passes.cost.work import LoopWork, PlanCosts, Work, known_trips
from cl_driver.spirv.enums import Op

from ..support import compile_cl, make_plan

AVX2, AVX512 = (Target("x86_64-unknown-linux-gnu", (), bits) for bits in (256, 512))
HEAD = (
    "kernel void k(global float *out, global const float *in, global const long *longs, int n, "
    "global long *to) { int i = get_global_id(0), j = get_global_id(1); float s = 0; "
)


def costs_of(body, target=AVX2):
    plan = make_plan(compile_cl(f"{HEAD} {body} }}"), "k", width=target.vector_bits // 32)
    (region,) = plan.regions
    return PlanCosts(plan, target).of(region)


@pytest.mark.parametrize(
    "triple, bits, features, is_amd, name",
    [
        ("x86_64", 512, "avx512fp16 avx512vbmi", False, "golden-cove"),
        ("x86_64", 512, "avx512vbmi", False, "icelake"),
        ("x86_64", 512, "", False, "skylake-avx512"),
        ("x86_64", 256, "avxvnni", False, "golden-cove (256 bits)"),
        ("x86_64", 256, "fast-gather", False, "golden-cove (256 bits, gathers)"),
        ("x86_64", 256, "", False, "skylake"),
        ("x86_64", 128, "", False, "x86-64"),
        ("x86_64", 512, "gfni", True, "zen4"),
        ("x86_64", 256, "gfni", True, "zen4 (256 bits)"),
        ("x86_64", 256, "", True, "zen3"),
        ("x86_64", 128, "", True, "x86-64 of AMD"),
        ("aarch64", 128, "", False, "neoverse"),
    ],
)
def test_models_of_cpus(triple, bits, features, is_amd, name):
    names = tuple(features.split())
    target = Target(f"{triple}-unknown-linux-gnu", names, bits, far_ahead=is_amd, slow_masked_stores=is_amd)
    model = model_of(target)
    assert (model.name, model.vector_bits) == (name, bits)


@pytest.mark.parametrize(
    "loop, trips",
    [
        ("int k = 0; k < 100; k++", 100),
        ("int k = 10; k < 100; k += 3", 30),
        ("int k = 100; k > 0; k -= 5", 20),
        ("uint k = 7; k != 207; k += 8", 25),
        ("int k = 0; k < n; k++", None),
        ("int k = n; k < 100; k++", None),
        ("int k = i; k < 100; k++", None),
        ("int k = 0; k < 100; k += n", None),
    ],
)
def test_loops_that_count_by_constants(loop, trips):
    costs = costs_of(f"for ({loop}) s = s * in[k * n + i] + k; out[i] = s;")
    (found,) = costs.nest.loops
    assert known_trips(found) == trips
    assert costs.times(found) == (trips or 8)


def test_loops_that_may_be_left_before_their_end():
    costs = costs_of("for (int k = 0; k < 100; k++) { if (k == n) break; s = s * in[k] + 1; } out[i] = s;")
    assert [known_trips(loop) for loop in costs.nest.loops] == [None]


def test_loops_that_run_often_cost_more():
    short, long_ = (
        costs_of(f"for (int k = 0; k < {n}; k++) s = s * in[k * n + i] + k; out[i] = s;").cycles_with_lanes
        for n in (100, 1000)
    )
    assert long_ == pytest.approx(10 * short, rel=0.1)


def slots(**counts):
    found = [0.0] * RESOURCES
    for name, count in counts.items():
        found[{"issue": ISSUE, "load": LOAD, "vector": VECTOR}[name]] = float(count)
    return found


def test_what_vectors_do_alike_is_done_once():
    model = model_of(AVX2)
    work = LoopWork(1, own=slots(vector=30), shared=slots(load=60))
    assert [work.cycles(model, n) for n in (1, 2, 4, 8)] == pytest.approx([30, 15, 10, 10])
    assert work.cycles(model, 8, share=0.5) == pytest.approx(5)


def test_chains_are_filled_by_other_vectors():
    model = model_of(AVX2)
    work = LoopWork(10, 1e6, slots(issue=40, vector=20), carried=12)
    assert work.cycles(model, 1) > 120 > 40 > work.cycles(model, 4) > 20 / 3 + 12


def test_registers_that_are_missing_are_stored_and_loaded():
    model = model_of(AVX2)
    work = LoopWork(1, own=slots(issue=40, vector=30))
    assert work.cycles(model, missing=0.5) > work.cycles(model, missing=0.25) > work.cycles(model)


def test_more_vectors_are_not_worth_code_beyond_the_cache():
    """A loop of 3000 operations is 24 KB, twice that is more than the cache for instructions has."""
    model = model_of(AVX2)

    def of(count):
        loop = LoopWork(8, 8, slots(issue=8 * count, vector=8 * count), longest=400)
        return Work(model, loops={None: loop}, code=[(8.0 * count, count, 0)])

    small, large = of(600.0), of(3000.0)
    assert small.cycles(2, 4) < small.cycles(1, 4)
    assert large.cycles(2, 4) > large.cycles(1, 4)


LONGS = "long a = longs[i], b = longs[i + n]; for (int k = 0; k < n; k++) { %s } to[i] = a ^ b;"


@pytest.mark.parametrize("body, more", [("a = a * b + k;", 3), ("a = (a + b) ^ k;", 0)])
def test_products_of_64_bits_need_registers_of_their_own(body, more):
    """Where there is no instruction for them."""
    assert costs_of(LONGS % body).pressure == costs_of(LONGS % body, AVX512).pressure + more


def test_loads_that_turn_out_to_be_contiguous_are_no_gathers():
    """A sum that might wrap has no step that is certain."""
    near, far = (
        costs_of(f"uint at = i; out[i] = in[{index}];").cycles_with_lanes for index in ("at + 7", "at * n")
    )
    assert far > 1.5 * near


def test_instructions_of_the_library():
    """The tables know them by number."""
    assert min(INSTRUCTIONS.values()) == operations._OF_LIBRARY
    assert INSTRUCTIONS["__cld_op_divide"] == operations._LIBRARY_QUOTIENT
    assert INSTRUCTIONS["__cld_op_root"] == operations._LIBRARY_ROOT


def test_what_parts_do_alike_is_no_part_of_their_own_work():
    """A masked load of a place that is the same in all lanes is executed once for all."""
    costs = costs_of("for (int k = 0; k < n; k++) s = fma(s, in[k], in[k * n + i]); out[i] = s;")
    (loop,) = costs.nest.loops
    work = costs.work.loops[loop]
    assert work.own[LOAD] == work.shared[LOAD] == work.times


@pytest.mark.parametrize("width", [1, 8])
@pytest.mark.parametrize("type_", ["uint", "uint4", "int4"])
def test_divisions_by_constants_cost_what_becomes_of_them(type_, width):
    """Multiplications or, by powers of two, which passes make of rotations, shifts and masks."""

    def cost(divisor):
        source = f"kernel void k(global {type_} *a, global {type_} *b) {{ size_t i = get_global_id(0); "
        plan = make_plan(compile_cl(f"{source} a[i] = b[i] / ({type_})({divisor}); }}"), "k", width=width)
        region = PlanCosts(plan, AVX2).of(plan.regions[0])
        instructions = (i for block in region.function.blocks for i in block.instructions)
        (i,) = (i for i in instructions if i.op in (Op.UDiv, Op.SDiv, Op.ShiftRightLogical))
        return cycles(region.operations.cost(i).slots, region.operations.model)[0]

    assert cost("8") < cost("7") < cost("a[i] | 1")
