"""The same kernel gives the same code, wherever its objects lie in memory."""

import random

from cl_driver.passes.ir.dump import function_text

from .support import compile_cl, make_plan

# Values that go round loops through barriers, loops in branches, places that loops accumulate in.
SOURCE = """
kernel void k(global int *o, global const int *at, int n, local int *l) {
    int i = get_local_id(0), a = o[i], b = at[i], c = a ^ b, d = a + n, e = b - n, f = c * n;
    for (int k = 0; k < n; k++) {
        l[i] = a + c;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (k & 1) { a += l[i ^ 1]; c ^= d; e += f; } else { b += l[i ^ 2]; d -= c; f ^= e; }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l[i] > k)
            for (int p = at[i]; p > 0; p = at[p]) { o[p] += a; o[p + 1] ^= d; }
    }
    o[i] = a + b * c + d * e + f;
}
"""


def test_a_plan_does_not_depend_on_places_in_memory():
    module = compile_cl(SOURCE)
    texts = set()
    for turn in range(8):
        garbage = [object() for _ in range(1000 * turn)]
        kept = random.Random(turn).sample(garbage, len(garbage) // 2)
        del garbage
        plan = make_plan(module, "k", width=8)
        texts.add("\n".join(function_text(region.function) for region in plan.regions))
        del kept
    assert len(texts) == 1
