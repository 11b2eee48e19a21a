"""One work-item at a time: which kernels leave a row at the first work-item that has nothing to do."""

import numpy as np
import pytest

from cl_driver.passes.ir.ops import PassOp

from ..support import Local, compare, compile_cl, make_plan

ENDS = {
    "below": "if (x < n) out[x] += in[x];",
    "returns": "if (n <= x) return; out[x] += in[x];",
    "size": "size_t at = get_global_id(0); if (at < (size_t)n) out[at] += 2;",
    "unsigned": "uint at = get_global_id(0); if (at < (uint)n) out[at] += 2;",
    "local": "if (get_local_id(0) < n) out[x] += 3;",
    "moved": "if (x + n < m) out[x] += in[x];",
    "both": "if (x < n && y < m) out[y * 64 + x] += 1;",
    "neither": "if (x >= n || y >= m) return; out[y * 64 + x] += 1;",
    "nested": "if (y < m) if (x < n) out[y * 64 + x] += 1;",
    "row": "if (y < n) out[x] += 1;",
    "either": "if (x < n || m > 3) out[x] += 1;",
    "loops": "if (x >= n) return; for (int k = 0; k < m; k++) out[x] += in[k];",
    "barrier": "if (x < n) l[get_local_id(0)] = in[x]; barrier(CLK_LOCAL_MEM_FENCE); "
    "if (x < n) out[x] += l[0];",
}
STAYS = {
    "all": "out[x] += in[x];",
    "above": "if (x > n) out[x] += in[x];",
    "equal": "if (x == n) out[x] += in[x];",
    "mirrored": "if (n - x > m) out[x] += in[x];",
    "strided": "if ((x & 7) < n) out[x] += in[x];",
    "data": "if (x < in[x]) out[x] += 1;",
    "shared": "if (x < out[0]) out[x] += 1;",
    "else": "if (x < n) out[x] += 1; else out[x] += 2;",
    "before": "out[x] += 1; if (x < n) out[x] *= 2;",
    "after": "if (x < n) out[x] *= 2; in[x] += 1;",
    "atomic": "atomic_inc(out); if (x < n) out[x + 1] += 1;",
    "some_work": "if (n > 3) { if (get_local_id(0) == 0) in[512 + x] = 5; out[x] += in[x]; } "
    "if (m > 3) out[x + 512] = m;",
    "either_way": "if (x < n ? x > m : x < m) out[x] += 1;",
}


@pytest.fixture(scope="module")
def module():
    return compile_cl("\n".join(
        f"kernel void k_{name}(global int *out, global int *in, local int *l, int n, int m) "
        f"{{ int x = get_global_id(0), y = get_global_id(1); {body} }}"
        for name, body in (ENDS | STAYS).items()
    ))  # fmt: skip


def leaves_rows(region):
    ends = [b.terminator for b in region.function.blocks if b.terminator.op is PassOp.RegionExit]
    return any(len(end.operands) > 1 for end in ends)


@pytest.mark.parametrize("name", ENDS | STAYS)
def test_which_kernels_leave_rows(module, name):
    plan = make_plan(module, f"k_{name}", width=1)
    assert {leaves_rows(region) for region in plan.regions} == {name in ENDS}


@pytest.mark.parametrize("name", [*ENDS, "some_work"])
def test_same_results(module, name):
    data = np.arange(1024, dtype=np.int32)
    for n, m in ((20, 3), (0, 0), (100, 9), (-5, 2)):
        args = [np.zeros(1024, np.int32), data, Local(64), n, m]
        compare(module, f"k_{name}", args, (48, 4), (16, 2))
