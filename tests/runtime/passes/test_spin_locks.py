"""Work-items that wait for locks, as machine code. A wrong one does not end: see the time limit."""

import faulthandler

import numpy as np
import pytest

from tests.conftest import PATIENCE
from tests.runtime.kernel_harness import Local, Program, compile_c

# Kernels that count with a lock, and how they take it and give it back.
LOCKS = {
    "spin": "while (atomic_xchg(lock, 1)) ; COUNT atomic_xchg(lock, 0);",
    "done": "for (int done = 0; !done;) if (!atomic_xchg(lock, 1)) { COUNT atomic_xchg(lock, 0); done = 1; }",
    "break_": "while (1) if (atomic_cmpxchg(lock, 0, 1) == 0) { COUNT atomic_cmpxchg(lock, 1, 0); break; }",
    "plain": "while (atomic_cmpxchg(lock, 0, 1)) ; COUNT *lock = 0;",
    "ticket": "int mine = atomic_inc(lock + 1); while (*lock != mine) ; COUNT atomic_inc(lock);",
    "some": "if (i % 3) { while (atomic_or(lock + i % 2 * 2, 1)) ; COUNT atomic_and(lock + i % 2 * 2, 0); }",
}
SOURCE = "#define COUNT { *(volatile global int *)sum += i; }\n" + "".join(
    f"kernel void {name}(volatile global int *lock, global int *sum) {{ int i = get_global_id(0); {code} }}\n"
    for name, code in LOCKS.items()
)
OTHERS = """
kernel void local_lock(volatile local int *lock, global int *sum) {
    int i = get_global_id(0);
    if (get_local_id(0) == 0) *lock = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    while (atomic_xchg(lock, 1)) ;
    *(volatile global int *)sum += i;
    atomic_xchg(lock, 0);
}
#define ADD(what, by) do { old = what; } while (atomic_cmpxchg(&what, old, old + by) != old)
kernel void no_locks(volatile global int *a, global int *sum) {
    int i = get_global_id(0), old;
    ADD(a[i & 3], i);
    ADD(a[i & 1], 1);
    if (i == 5) atomic_xchg(a + 4, i);
}
"""
ITEMS = 40


@pytest.fixture(autouse=True)
def ends():
    """What hangs holds the interpreter, too: the process says where, and ends."""
    faulthandler.dump_traceback_later(300 * PATIENCE, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture(params=[1, 4, 8, 16])
def width(request):
    return request.param


@pytest.mark.parametrize("local", [1, 8, ITEMS])
@pytest.mark.parametrize("name", LOCKS)
def test_each_gets_the_lock(name, local, width):
    program = Program(compile_c(SOURCE), width=width)
    lock, total = np.zeros(4, np.int32), np.zeros(1, np.int32)
    program.run(name, (ITEMS,), (local,), lock, total)
    assert total[0] == sum(i for i in range(ITEMS) if i % 3 or name != "some")
    assert not lock.any() or name == "ticket"


def test_a_lock_in_local_memory(width):
    program = Program(compile_c(OTHERS), width=width)
    total = np.zeros(1, np.int32)
    program.run("local_lock", (ITEMS,), (8,), Local(4), total)
    assert total[0] == sum(range(ITEMS))


def test_other_loops_around_atomics_stay_wide(width):
    program = Program(compile_c(OTHERS), width=width)
    a = np.zeros(5, np.int32)
    program.run("no_locks", (ITEMS,), (8,), a, np.zeros(1, np.int32))
    want = [sum(range(k, ITEMS, 4)) + (ITEMS // 2 if k < 2 else 0) for k in range(4)]
    assert a.tolist() == [*want, 5]
    assert program.code("no_locks").width == width
