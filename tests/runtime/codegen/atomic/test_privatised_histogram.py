"""Atomic additions to a copy that the thread has of a buffer, or to a table of sums: all of them go there, or
to the buffer where there is neither. Kernels that could tell are left alone."""

import numpy as np
import pytest

from cl_driver.codegen.layout import abi
from tests.runtime.kernel_harness import Program, aligned, compile_c

WIDTHS = ((4, 1), (8, 1), (16, 1), (16, 2), (8, 4))
ITEMS, BINS = 74, 32
# Bodies of kernels (global int *to, global long *wide, global const int *from, int k), and the argument that
# threads may have copies of: its number from 1, or 0.
BODIES = {
    "increments": ("atomic_inc(&to[from[i] & 31]);", 1),
    "decrements": ("if (from[i] > k) atomic_dec(&to[from[i] & 15]);", 1),
    "sums": ("atomic_add(&to[from[i] & 31], from[i] * 3);", 1),
    "differences": ("atomic_sub(to + (from[i] & 7), k);", 1),
    "neighbours": ("atomic_add(&to[i & 31], from[i]); atomic_inc(&to[5]);", 1),
    "loop": ("for (int j = 0; j < (from[i] & 7); j++) atomic_add(&to[(from[i] + j) & 31], j);", 1),
    "divergent": ("if (from[i] & 1) atomic_inc(&to[from[i] & 31]); else atomic_sub(&to[from[i] & 15], 5);",
                  1),
    "long_words": ("ADD(long, &wide[from[i] & 31], from[i] * 4000000000L, device);", 2),
    "second": ("to[from[k] & 3] = k; ADD(long, &wide[from[i] & 31], 1L, device);", 2),
    "barriers": ("local int l[64]; l[get_local_id(0)] = from[i]; barrier(CLK_LOCAL_MEM_FENCE); "
                 "atomic_inc(&to[l[get_local_size(0) - 1 - get_local_id(0)] & 31]);", 1),
    "stored_behind": ("atomic_inc(&to[from[i] & 31]); barrier(CLK_GLOBAL_MEM_FENCE); to[i & 31] = 2;", 0),
    "stored_in_turn": ("for (int j = 0; j < 4; j++) "
                       "{ atomic_inc(&to[from[i] & 15]); to[16 + (i & 15)] = j; }", 0),
    "stored_volatile": ("*(volatile global int *)&to[i & 31] = 2; atomic_inc(&to[from[i] & 31]);", 0),
    "loaded": ("int old = to[31]; atomic_add(&to[from[i] & 15], old);", 0),
    "one_place": ("atomic_inc(&to[k]);", 0),
    "result": ("if (atomic_inc(&to[from[i] & 31]) < 0) wide[0] = 1;", 0),
    "read": ("atomic_inc(&to[from[i] & 15]); if (to[31]) wide[0] = 1;", 0),
    "other": ("atomic_inc(&to[from[i] & 31]); atomic_max(&to[k], 0);", 0),
    "two_sizes": ("atomic_inc(&to[from[i] & 31]); ADD(long, to + 30, 0L, device);", 0),
    "ordering": ("atomic_fetch_add((global atomic_int *)&to[from[i] & 31], 1);", 0),
    "host": ("ADD(int, &to[from[i] & 31], 1, all_svm_devices);", 0),
    "fence": ("atomic_inc(&to[from[i] & 31]); "
              "atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_release, memory_scope_device);", 0),
    "kept": ("wide[0] = (long)to; atomic_inc(&to[from[i] & 31]);", 0),
}  # fmt: skip
FOUND = {name for name, (_, counted) in BODIES.items() if counted}
ADD = (
    "#define ADD(type, at, value, scope) atomic_fetch_add_explicit("
    "(global atomic_##type *)(at), value, memory_order_relaxed, memory_scope_##scope)\n"
)
SOURCE = ADD + "\n".join(
    f"kernel void {name}(global int *to, global long *wide, global const int *from, int k) "
    f"{{ size_t i = get_global_id(0); {body} }}"
    for name, (body, _) in BODIES.items()
)


@pytest.fixture(scope="module")
def programs():
    data = compile_c(SOURCE)
    return [Program(data, width=1)] + [Program(data, width=width, parts=parts) for width, parts in WIDTHS]


@pytest.mark.parametrize("name", BODIES)
def test_the_argument_is_found(programs, name):
    for program in programs[1:]:
        code = program.code(name)
        assert code.counted == BODIES[name][1], f"width {program.width}"
        assert code.counted_size == (0, 4, 8)[code.counted]
    assert programs[0].code(name).counted == 0  # one work-item at a time: atomics


@pytest.mark.parametrize("name", sorted(FOUND))
def test_sums(programs, name):
    """With a copy the buffer stays as it is, and buffer and copy together are what the buffer is without."""
    inputs = np.random.default_rng(7).integers(-500, 500, ITEMS).astype(np.int32)
    first = np.arange(BINS) * 5

    def run(program, copy=None):
        to, wide = first.astype(np.int32), first.astype(np.int64)
        program.run(name, ITEMS, 37, to, wide, inputs, np.int32(4), counts=copy)
        return to, wide

    want = run(programs[0])
    counted = BODIES[name][1] - 1
    assert (want[counted] != first).any()
    for program in programs[1:]:
        for got, expected in zip(run(program), want, strict=True):
            assert np.array_equal(got, expected), f"width {program.width}"
        copy = np.zeros(BINS, want[counted].dtype)
        got = run(program, copy)
        assert np.array_equal(got[counted], first), f"width {program.width}"
        assert np.array_equal(got[counted] + copy, want[counted]), f"width {program.width}"
        assert np.array_equal(got[1 - counted], want[1 - counted])


@pytest.mark.parametrize("taken", [0, 1, abi.COMBINING_ENTRIES])
@pytest.mark.parametrize("name", sorted(FOUND))
def test_sums_in_a_table(programs, name, taken):
    """Buffer and table together are what the buffer is without. taken: entries that others hold at first,
    whose sums come to memory when these are taken over."""
    inputs = np.random.default_rng(7).integers(-500, 500, ITEMS).astype(np.int32)
    first = np.arange(BINS) * 5
    counted = BODIES[name][1] - 1

    def run(program, table=None):
        to, wide = first.astype(np.int32), first.astype(np.int64)
        program.run(name, ITEMS, 37, to, wide, inputs, np.int32(4), counts=table, combines=table is not None)
        return to, wide

    want = run(programs[0])
    for program in programs[1:]:
        kind = want[counted].dtype
        elsewhere = np.zeros(abi.COMBINING_ENTRIES, kind)
        extra = 2 * abi.SPARE_ENTRIES + 1
        entries = np.zeros((abi.COMBINING_ENTRIES, 2), np.uint64)
        entries[:taken, 0] = elsewhere.ctypes.data
        entries[:taken, 1] = 3
        table = aligned(entries.nbytes + extra * 8)
        table[:] = np.append(entries.reshape(-1), np.zeros(extra, np.uint64)).view(np.uint8)
        got = run(program, table)
        after = table.view(np.uint64)
        if name != "neighbours":  # what all lanes add to is added at once
            assert np.array_equal(got[counted], first)  # there are enough entries
        assert elsewhere[0] == 3 * after[-1]
        if taken != 1:  # whose entry may be one of ours, as addresses happen to be
            assert bool(after[-1]) == (taken == abi.COMBINING_ENTRIES), f"width {program.width}"
        start, size = got[counted].ctypes.data, kind.itemsize
        assert not after[-extra:-1:2].any()
        held = after[:-extra].reshape(-1, 2)
        own = held[(held[:, 0] >= start) & (held[:, 0] < start + size * BINS)]
        total = got[counted].copy()
        np.add.at(total, (own[:, 0].astype(np.int64) - start) // size, own[:, 1].astype(kind))
        assert np.array_equal(total, want[counted]), f"width {program.width}"
        assert np.array_equal(got[1 - counted], want[1 - counted])


@pytest.mark.parametrize("name", ["increments", "decrements", "sums"])
def test_places_in_the_copy_by_words(programs, name):
    """Several indices at once: a Zen 4 adds slowly at addresses that come straight from a vector register."""
    program = next(p for p in programs if p.width == 16)
    assert "extractelement <2 x i64>" in program.code(name).text
