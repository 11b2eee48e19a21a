"""What parts load alike is loaded once (passes/vectorize/coarsening_cse.py)."""

import numpy as np
import pytest

from cl_driver.passes.ir.ops import PassOp
from cl_driver.spirv.enums import Decoration, Op, StorageClass

from .support import compare, compile_cl, make_plan

SOURCE = """
#define AT(y) (clamp(y, 0, h - 1) * n + x)
kernel void rows(global int *a, global const int *b, int n, int h) {
    int x = get_global_id(0), y = get_global_id(1);
    a[y * n + x] = b[AT(y - 1)] + 2 * b[AT(y)] + 3 * b[AT(y + 1)];
}
kernel void bytes(global uchar4 *a, global const uchar4 *b, int n, int h) {
    int x = get_global_id(0), y = get_global_id(1);
    uint4 s = 0;
    for (int dy = -2; dy <= 2; dy++) s += convert_uint4(b[AT(y + dy)]) * (uint4)(dy + 3);
    a[y * n + x] = convert_uchar4(s >> (uint4)(4));
}
kernel void between(global int *a, global int *b, int n, int h) {
    int x = get_global_id(0), y = get_global_id(1), s = b[AT(y)];
    a[y * n + x] = s;
    a[y * n + x] = s + b[AT(y + 1)];
}
kernel void apart(global int *a, global volatile int *b, int n, int h) {
    int x = get_global_id(0), y = get_global_id(1);
    a[y * n + x] = b[AT(y)] + b[AT(y + 1)];
}
kernel void some(global int *a, global const int *b, int n, int h) {
    int x = get_global_id(0), y = get_global_id(1), s = 0;
    if (x & 2) s = b[AT(y - 1)] + b[AT(y)];
    if ((x ^ y) & 1) s += b[AT(y + 1)] - b[AT(y)];
    a[y * n + x] = s;
}
kernel void squares(global int *a, global const int *b, int n, int h) {
    int x = get_global_id(0), y = get_global_id(1), own[3] = {x, 0, 2};
    own[y & 1] += b[AT(y)];
    a[y * n + x] = own[b[AT(y + 1)] & 1] * (y - 1) + own[2] * (y + 1) / (x + 1);
}
kernel void ahead(global int *a, global const int *b, int n, int h) {
    int x = get_global_id(0), y = get_global_id(1), s = x;
    for (int t = b[AT(y)] + b[AT(y + 1)]; t > 0; t -= 1 + (s & 3)) s += b[x + 1 & 7];
    a[y * n + x] = s;
}
"""
RESULTS = "rows", "between", "some", "squares", "ahead"
WIDTHS = [1, (4, 4, 1), (8, 3, 1), (4, 3, 0)]


def loads(name: str, parts: int, axis: int = 1) -> list:
    """Of global memory, in a plan for several vectors of 4."""
    plan = make_plan(compile_cl(SOURCE), name, width=4, parts=parts, part_axis=axis)
    return [
        i
        for region in plan.regions
        for block in region.function.blocks
        for i in block.instructions
        if i.op is Op.Load and i.operands[0].type.storage is StorageClass.CrossWorkgroup
    ]


@pytest.mark.parametrize("name, type_", [(n, np.int32) for n in RESULTS])
def test_results(name, type_):
    """Rows and columns that are not whole tiles, in groups of several shapes."""
    rng = np.random.default_rng(5)
    b = rng.integers(-9, 9, 13 * 5).astype(type_)
    for local in ((13, 5), (8, 4)):
        compare(compile_cl(SOURCE), name, [np.zeros_like(b), b, 13, 5], (13, 5), local, WIDTHS)


def test_result_of_bytes():
    b = np.random.default_rng(6).integers(0, 256, 4 * 11 * 6).astype(np.uint8)
    values = ((2, (11).to_bytes(4, "little")), (3, (6).to_bytes(4, "little")))
    args = [np.zeros_like(b), b, 11, 6]
    compare(compile_cl(SOURCE), "bytes", args, (11, 6), (11, 6), WIDTHS[:2], argument_values=values)
    compare(compile_cl(SOURCE), "bytes", args, (11, 6), (8, 3), WIDTHS[2:], argument_values=values)


def test_rows_are_loaded_once():
    assert [len(loads("rows", parts)) for parts in (1, 2, 4, 8)] == [3, 4, 6, 10]
    assert len(loads("rows", 4, axis=0)) == 12


def test_a_store_or_volatile_memory_keeps_loads_apart():
    assert len(loads("between", 4)) == 8
    assert len(loads("apart", 4)) == 8


def test_masks_of_shared_loads():
    """Row y of part 1 is row y + 1 of part 0, which is there where part 1's is not."""
    masks = [i.mask for i in loads("rows", 4)]
    assert all(mask.op is PassOp.EntryMask for mask in masks)
    assert len(set(masks)) == 4
    assert len(loads("some", 4)) == 16


def test_loads_are_where_their_users_are():
    """What is loaded first is done with first: few values are kept."""
    values = ((2, (11).to_bytes(4, "little")), (3, (6).to_bytes(4, "little")))
    plan = make_plan(compile_cl(SOURCE), "bytes", width=4, parts=4, part_axis=1, argument_values=values)
    (block,) = plan.regions[0].function.blocks
    order = [i for i in block.instructions if i.type is not None]
    at = {i: place for place, i in enumerate(order)}
    found = [
        i for i in order if i.op is Op.Load and i.operands[0].type.storage is StorageClass.CrossWorkgroup
    ]
    assert len(found) == 8
    last = [max(at[u] for u in order if i in u.operands) for i in found]
    assert all(used < at[load] for used, load in zip(last, found[1:], strict=False))


def test_no_claim_of_another_is_made():
    """A sum that may wrap around stands for one that does not, and no longer says so itself."""
    plan = make_plan(compile_cl(SOURCE), "rows", width=4, parts=2, part_axis=1)
    (block,) = plan.regions[0].function.blocks
    rows = [i for i in block.instructions if i.op is Op.ExtInst and i.operands[1].name == "s_clamp"]
    assert len(rows) == 4
    claims = [Decoration.NoSignedWrap in getattr(i.operands[2], "decorations", ()) for i in rows]
    assert claims.count(True) == 1, claims
