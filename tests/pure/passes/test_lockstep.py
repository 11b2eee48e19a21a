"""Groups in lockstep: which conditional stores are no branch, because local memory is in registers where its
places are known, and how far loops are unrolled."""

import pytest

from cl_driver.passes.ir.ops import PassOp
from tests.bench.model import kernel_file

from .support import compile_cl, make_plan

# What `in` decides; l: the local id, n: the size of the group, other: what another work-item loaded.
KNOWN = {
    "exchange": "if (other > in[l]) { t[l ^ 1] = other; t[(l ^ 1) + n] = in[l]; }",
    "pairs": "if (other > 3) { t[2 * l] = other; t[2 * l + 1] = 7; }",
}
# Places that data decide; places in more vectors of the array than are shuffled; memory that others may see.
UNKNOWN = {
    "by_data": "if (other > 3) { t[in[l] & 63] = 5; t[64 + (in[l] & 63)] = 5; }",
    "spread": "if (other > 3) { t[(l * 8 + l / 8) & 63] = other; t[64 + ((l * 8 + l / 8) & 63)] = 7; }",
    "global_memory": "if (other > 3) { out[2 * l] = other; out[2 * l + 1] = 7; }",
}


@pytest.fixture(scope="module")
def module():
    return compile_cl("\n".join(
        f"kernel void {name}(global int *out, global const int *in, local int *t) {{ "
        "int l = get_local_id(0), n = get_local_size(0); t[l] = in[l]; t[l + n] = -l; "
        "barrier(CLK_LOCAL_MEM_FENCE); int other = t[n - 1 - l]; barrier(CLK_LOCAL_MEM_FENCE); "
        f"{body} barrier(CLK_LOCAL_MEM_FENCE); out[2 * n + 2 * l] = t[2 * l]; "
        "out[2 * n + 2 * l + 1] = t[2 * l + 1]; }"
        for name, body in (KNOWN | UNKNOWN).items()
    ))  # fmt: skip


def group_of(width: int, items: int = 64) -> dict:
    return {"width": width, "parts": items // width, "group": (items, 1, 1)}


def asked(plan) -> int:
    """How often a plan asks whether any lane is there."""
    blocks = [block for region in plan.regions for block in region.function.blocks]
    return sum(i.op is PassOp.AnyLane for block in blocks for i in block.instructions)


@pytest.mark.parametrize("name", KNOWN | UNKNOWN)
def test_stores_to_known_places_are_no_branch(module, name):
    width = 8  # "spread" is over more vectors than are shuffled
    assert (asked(make_plan(module, name, **group_of(width))) > 0) == (name in UNKNOWN)
    assert asked(make_plan(module, name, width=width)) > 0  # by themselves, vectors shuffle nothing


@pytest.mark.parametrize("width", (8, 16))
def test_unrolling_does_not_depend_on_the_width(width):
    module = compile_cl(kernel_file("bitonic_local").read_text())
    plan = make_plan(module, "bitonic_local", **group_of(width, 256))
    assert len(plan.regions[0].function.blocks) == 1
