"""Sub-groups that wait for one another, before the passes, after them, and as machine code. A wrong one does
not end: see the time limit."""

import copy
import faulthandler
import functools

import numpy as np
import pytest

from cl_driver.interp.run import run as interpret
from cl_driver.interp.run import run_plan
from cl_driver.passes.analysis.spin_locks import only_looks
from cl_driver.passes.ir.ops import PassOp
from cl_driver.passes.ir.plan import PlanOptions
from cl_driver.passes.pipeline import plan
from tests.conftest import PATIENCE
from tests.runtime.emulation import IS_EMULATED
from tests.runtime.kernel_harness import Program, builtin_library, compile_c

HEAD = """
#pragma OPENCL EXTENSION cl_khr_subgroups : enable
#define AFTER(what, value) do { if (first) while (atomic_load(what) != (value)) ; \\
    sub_group_barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE); } while (0)
#define NOW sub_group_broadcast(atomic_load(&turn), 0)
#define START \\
    local atomic_int turn; local int shared[64]; \\
    size_t i = get_global_id(0), l = get_local_linear_id(); \\
    int sg = get_sub_group_id(), n = get_num_sub_groups(), first = get_sub_group_local_id() == 0; \\
    if (l == 0) atomic_init(&turn, 0); \\
    work_group_barrier(CLK_LOCAL_MEM_FENCE);
#define NEXT do { sub_group_barrier(CLK_LOCAL_MEM_FENCE); if (first) atomic_fetch_add(&turn, 1); } while (0)
"""
# The last sub-group goes first. Each kernel gets memory for results and some that begins as zeros.
KERNELS = {
    "backwards": """
        for (int round = 0; round < 3; round++) {
            AFTER(&turn, round * n + n - 1 - sg);
            out[i] = out[i] * 100 + NOW + 1;
            NEXT;
        }""",
    "volatile_local": """
        volatile local int *at = shared;
        if (l == 0) *at = n;
        work_group_barrier(CLK_LOCAL_MEM_FENCE);
        while (*at != sg + 1) ;
        out[i] = sg + 10 * *at;
        sub_group_barrier(CLK_LOCAL_MEM_FENCE);
        if (first) *at = sg;""",
    "global_memory": """
        global atomic_int *flag = (global atomic_int *)zeros + get_group_id(0);
        if (first) while (atomic_load_explicit(flag, memory_order_acquire) != n - 1 - sg) ;
        sub_group_barrier(CLK_GLOBAL_MEM_FENCE);
        out[i] = i + (sg + 1 < n ? out[i - l + (sg + 1) * get_max_sub_group_size()] : 0);
        sub_group_barrier(CLK_GLOBAL_MEM_FENCE);
        if (first) atomic_fetch_add_explicit(flag, 1, memory_order_release);""",
    "barriers_and_collectives": """
        int sum = 0;
        for (int round = 0; round < 5; round++) {
            AFTER(&turn, round * n + n - 1 - sg);
            shared[l] = round * (int)l + NOW;
            NEXT;
            sum += work_group_reduce_add(shared[l]) + round;
            work_group_barrier(CLK_LOCAL_MEM_FENCE);
            sum += shared[get_local_size(0) - 1 - l];
            work_group_barrier(CLK_LOCAL_MEM_FENCE);
        }
        out[i] = sum;""",
    "some_return": """
        if (l >= 7) { out[i] = -1; return; }
        int most = get_max_sub_group_size(), count = (min(7, (int)get_local_size(0)) + most - 1) / most;
        work_group_barrier(CLK_LOCAL_MEM_FENCE);
        AFTER(&turn, count - 1 - sg);
        out[i] = 10 + NOW;
        NEXT;
        work_group_barrier(CLK_LOCAL_MEM_FENCE);
        out[i] += 100 * NOW;""",
    "private_arrays": """
        int before[7], across[5];
        for (int k = 0; k < 7; k++) before[k] = (int)i * k;
        for (int k = 0; k < 5; k++) across[k] = (int)i + zeros[k] + k;
        AFTER(&turn, n - 1 - sg);
        out[i] = before[(l + zeros[0]) % 7] + across[l % 5];
        NEXT;
        work_group_barrier(CLK_LOCAL_MEM_FENCE);
        out[i] += 1000 * across[(l + 1) % 5];""",
    "much_private_memory": """
        volatile int much[2000];
        for (int k = 0; k < 2000; k += 99) much[k] = (int)i + k;
        AFTER(&turn, n - 1 - sg);
        int sum = 0;
        for (int k = 0; k < 2000; k += 99) sum += much[k];
        out[i] = sum;
        NEXT;""",
    "one_lock": """
        global int *lock = zeros + 32 + get_group_id(0);
        if (first) while (atomic_cmpxchg(lock, 0, 1)) ;
        sub_group_barrier(CLK_LOCAL_MEM_FENCE);
        int old = shared[sg];
        if (first) while (atomic_load(&turn) != sg && atomic_load(&turn) < 0) ;
        out[i] = 7 + sub_group_reduce_add(1) + (old & 0);
        NEXT;
        if (first) atomic_xchg(lock, 0);
        work_group_barrier(CLK_LOCAL_MEM_FENCE);
        out[i] += 100 * NOW;""",
    "in_a_function": """
        wait_for(&turn, n - 1 - sg, first);
        out[i] = NOW + 5;
        NEXT;""",
}
# More than registers hold.
_MANY = [f"int v{k} = zeros[{k % 8}] + (int)i * {k + 1};" for k in range(150)]
KERNELS["many_values"] = f"""
        {" ".join(_MANY)}
        AFTER(&turn, n - 1 - sg);
        out[i] = {" ^ ".join(f"v{k} << {k % 5}" for k in reversed(range(150)))};
        NEXT;"""
FUNCTION = """
void wait_for(local atomic_int *turn, int value, int first) {
    if (first) { int k = 0; do k++; while (atomic_load(turn) != value && k != -5); }
    sub_group_barrier(CLK_LOCAL_MEM_FENCE);
}
"""
SOURCE = (
    HEAD
    + FUNCTION
    + "".join(
        f"kernel void {name}(global int *out, global int *zeros) {{ START {body} }}\n"
        for name, body in KERNELS.items()
    )
)
# The interpreter does not know to_local().
GENERIC = """
kernel void k(global int *out, global int *zeros) {
    START
    int own[3] = {1, (int)i, 3};
    shared[l] = 50;
    int *p = l & 1 ? own + zeros[0] + 1 : (int *)(shared + l);
    AFTER(&turn, n - 1 - sg);
    out[i] = (to_local(p) ? 100 : to_private(p) ? 200 : 300) + *p;
    NEXT;
}
"""
# Loops that wait for nobody.
OTHERS = """
kernel void k(global int *out, global const int *in, global int *count) {
    int sum = sub_group_reduce_add(1);
    for (int k = 0; k < in[0]; k++) sum += in[k];
    for (int k = in[1]; k < 10; k++) atomic_add(count, sum);
    while (sub_group_any(sum > 5)) sum -= 3;
    out[get_global_id(0)] = sum;
}
"""
pytestmark = pytest.mark.skipif(IS_EMULATED, reason="stacks are the CPU's own")

LAUNCHES = [(24, 24), (26, 10)]


@pytest.fixture(autouse=True)
def ends():
    """What hangs holds the interpreter, too: the process says where, and ends."""
    faulthandler.dump_traceback_later(300 * PATIENCE, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@functools.cache
def program(width: int) -> Program:
    return Program(compile_c(SOURCE), width=width, sub_groups=True)


@pytest.mark.parametrize("width", [1, 4, 8, 16])
@pytest.mark.parametrize("name", KERNELS)
def test_they_wait(name, width):
    compiled, library = program(width), builtin_library()
    entry = next(p for p in compiled.module.entry_points if p.name == name)
    planned = plan(compiled.module, entry, PlanOptions(width=width, sub_groups=True, verify=True), library)
    assert planned.takes_turns
    for global_size, local_size in LAUNCHES:
        begin = [np.zeros(64, np.int32), np.zeros(64, np.int32)]
        want, between, got = (copy.deepcopy(begin) for _ in range(3))
        sizes = (global_size,), (local_size,)
        interpret(compiled.module, name, want, *sizes, library=library, sub_group_size=width)
        assert want[0][:global_size].any()
        run_plan(planned, between, *sizes, library=library, check_shapes=width > 1)
        assert np.array_equal(want[0], between[0]), local_size
        compiled.run(name, global_size, local_size, *got)
        assert np.array_equal(want[0], got[0]), local_size


@pytest.mark.parametrize("width", [1, 8])
def test_private_memory_is_known(width):
    compiled = Program(compile_c(HEAD + GENERIC), width=width, sub_groups=True)
    for global_size, local_size in LAUNCHES:
        out, zeros = np.zeros(64, np.int32), np.zeros(64, np.int32)
        compiled.run("k", global_size, local_size, out, zeros)
        ids = np.arange(global_size)
        want = np.where(ids % local_size % 2, 200 + ids, 150)
        assert out[:global_size].tolist() == want.tolist()


def test_others_do_not():
    compiled = Program(compile_c(HEAD + OTHERS), width=8, sub_groups=True)
    (entry,) = compiled.module.entry_points
    planned = plan(compiled.module, entry, PlanOptions(width=8, sub_groups=True), builtin_library())
    assert not planned.takes_turns
    blocks = [block for region in planned.regions for block in region.function.blocks]
    assert not any(i.op is PassOp.Yield for block in blocks for i in block.instructions)
    assert "sub_group" not in compiled.code("k").text
    assert "probe-stack" not in compiled.code("k").text


LARGE = """
kernel void large(global int *out, global int *zeros) {
    START volatile global int *in = zeros;
    LOADS
    AFTER(&turn, n - 1 - sg);
    out[i] = SUM;
    NEXT;
}
"""


@pytest.mark.skipif(IS_EMULATED, reason="the code of this CPU")
def test_large_frames_touch_the_guard():
    """More values than registers for, that live while others have their turn: no page is passed over."""
    count = 200
    loads = " ".join(f"long v{k} = in[{k % 64}] + (long)i * {k};" for k in range(count))
    total = " + ".join(f"(int)(v{k} >> {k % 3})" for k in range(count))
    source = HEAD + LARGE.replace("LOADS", loads).replace("SUM", total)
    compiled = Program(compile_c(source), width=16, sub_groups=True)
    code = compiled.code("large")
    assert code.takes_turns
    [attributes] = [line for line in code.text.splitlines() if line.startswith("attributes #0")]
    assert '"probe-stack"="inline-asm"' in attributes
    out, zeros = np.zeros(64, np.int32), np.arange(64, dtype=np.int32)
    compiled.run("large", 64, 64, out, zeros)
    want = sum((k % 64 + np.arange(64) * k) >> k % 3 for k in range(count))
    assert np.array_equal(out, want.astype(np.int32))


# Kernels that do not ask for their sub-groups, and what they do with the flag: whether that is to wait.
PLAIN = {
    "waits": ("while (*flag != 7) ; out[i] = *flag;", True),
    "waits_by_atomics": ("if (i == 0) while (!atomic_or(flag, 0)) ; else atomic_xchg(flag, 1);", True),
    "waits_for_long": ("for (int k = 0; k < in[0] && *flag == in[1]; k++) ; out[i] = 1;", True),
    "looks_once": ("if (*flag != 7) out[i] = 1;", False),
    "looks_elsewhere": ("while (flag[i] != 7) i++; out[i] = 1;", False),
    "does_more": ("while (*flag != 7) out[i]++;", False),
    "locks": ("while (atomic_cmpxchg(flag, 0, 1)) ; out[0] += i; atomic_xchg(flag, 0);", False),
    "tickets": (
        "int mine = atomic_inc(flag + 1); while (*flag != mine) ; out[0]++; atomic_inc(flag);",
        False,
    ),
    "adds_floats": ("int old; do old = *flag; while (atomic_cmpxchg(flag, old, old + 5) != old);", False),
}


@pytest.mark.parametrize("name", PLAIN)
def test_kernels_that_do_not_ask_for_sub_groups(name):
    body, waits = PLAIN[name]
    parameters = "global int *out, global const int *in, volatile global int *flag"
    source = f"kernel void k({parameters}) {{ int i = get_global_id(0); {body} }}"
    (entry,) = Program(compile_c(source)).module.entry_points
    assert only_looks(entry.function) == waits
