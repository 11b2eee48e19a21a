"""Prefetches of what the next group reads: who has them, and that nothing else changes."""

import numpy as np
import pytest

from cl_driver.codegen.llvm.options import CodegenOptions
from cl_driver.records import replace
from tests.runtime.kernel_harness import Program, aligned, compile_c

OPTIONS = CodegenOptions()

# What of a kernel's reads is fetched ahead: many places far from one another, and little else that is done.
READ = (
    "float sum = 0; for (int k = 0; k < 16; k++) { sum += from[at]; at += %s; } to[get_global_id(0)] = sum;"
)
START = "int at = get_group_id(0) * get_local_size(0) * 16 + get_local_id(0); "
AHEAD = {
    "local_steps": START + READ % "get_local_size(0)",
    "global_steps": "size_t at = get_global_id(0); " + READ % "get_global_size(0)",
    "vectors": START + "global const float2 *two = (global const float2 *)from; float2 sum = 0; "
    "for (int k = 0; k < 16; k++) { sum += two[at]; at += get_local_size(0); } "
    "to[get_global_id(0)] = sum.x + sum.y;",
    "eights": START + "global const float8 *all = (global const float8 *)from; float8 sum = 0; "
    "for (int k = 0; k < 16; k++) { sum += all[at]; at += get_local_size(0); } "
    "to[get_global_id(0)] = sum.s0 + sum.s1 + sum.s2 + sum.s3 + sum.s4 + sum.s5 + sum.s6 + sum.s7;",
}
SIZES = {"vectors": 8, "eights": 32}  # bytes of a load, where not 4
PLAIN = {
    "few": "size_t at = get_global_id(0); to[at] = from[at] + from[at + 100] + from[at + 200];",
    "works": "int at = get_global_id(0); float sum = 0; for (int k = 0; k < 16; k++) "
    "{ sum = sqrt(fabs(sum) + from[at]) * 2.0f - k; at += get_local_size(0); } to[get_global_id(0)] = sum;",
    "loops": "int at = get_global_id(0); float sum = 0; for (int k = 0; k < n; k++) "
    "sum += from[at + k * 64]; to[get_global_id(0)] = sum;",
}
ITEMS, LOCAL = 256, 64


@pytest.fixture(scope="module")
def compiled():
    return compile_c("\n".join(
        f"kernel void {name}(global float *to, global const float *from, int n) {{ {body} }}"
        for name, body in (AHEAD | PLAIN).items()
    ))  # fmt: skip


@pytest.mark.parametrize(("width", "parts"), [(1, 1), (4, 1), (8, 1), (16, 1), (16, 2)])
def test_what_is_fetched(compiled, width, parts):
    program = Program(compiled, width=width, parts=parts, part_axis=0)
    for name in AHEAD | PLAIN:
        lines = program.code(name).text.count("call void @llvm.prefetch")
        size = width * SIZES.get(name, 4)
        is_fetched = name in AHEAD and size >= 16
        assert lines == (16 * parts * -(-size // 64) if is_fetched else 0), name


@pytest.mark.parametrize("far", [False, True])
def test_where(compiled, far):
    """Near ones into the first cache, far ones into the second."""
    program = Program(compiled, replace(OPTIONS, far_ahead=far), width=16, parts=1, part_axis=0)
    text = program.code("local_steps").text
    assert text.count(f"i32 0, i32 {2 if far else 3}, i32 1)") == 16


@pytest.mark.long
@pytest.mark.parametrize("far", [False, True])
def test_same_results(compiled, far):
    """With and without much to read, several groups at a time and one by one."""
    data = aligned(4 * 8 * 16 * ITEMS).view(np.float32)
    data[:] = np.random.default_rng(0).integers(0, 100, len(data))
    outputs = {name: [] for name in AHEAD | PLAIN}
    for width, parts in ((1, 1), (4, 1), (8, 1), (16, 1), (16, 2)):
        program = Program(compiled, replace(OPTIONS, far_ahead=far), width=width, parts=parts)
        for name, found in outputs.items():
            for limit, split in ((0, 1), (1, 1), (1, 3), (65535, 1)):
                to = np.zeros(ITEMS, np.float32)
                program.run(name, ITEMS, LOCAL, to, data, np.int32(5), ahead_kib=limit, split=split)
                found.append(to)
    for name, found in outputs.items():
        assert all(np.allclose(to, found[0]) for to in found) and found[0].any(), name
    want = data[: 16 * ITEMS].reshape(-1, 16, LOCAL).sum(1).ravel()
    assert np.array_equal(outputs["local_steps"][0], want)
