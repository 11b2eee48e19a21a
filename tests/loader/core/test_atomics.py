"""Atomics with everybody on one place: legacy ones of 32 and 64 bits, and those of C11 (OpenCL C 6.15.12)."""

import numpy as np
import pytest

from cl_driver.api.generated import enums as cl

from .session import Local

ITEMS, GROUP = 4096, 64
INDEX = np.arange(ITEMS, dtype=np.int64)
# name: (first value, expression of the operand in i, result of numpy)
REDUCTIONS = {
    "add": (5, "i", lambda v, bits: 5 + v.sum()),
    "sub": (5, "i", lambda v, bits: 5 - v.sum()),
    "min": (1 << 30, "i - 100", lambda v, bits: v.min() - 100),
    "max": (-(1 << 30), "i - 100", lambda v, bits: v.max() - 100),
    "and": (-1, "~(T)(i == 77)", lambda v, bits: -2),
    "or": (0, "(T)1 << i % (sizeof(T) * 8 - 1)", lambda v, bits: (1 << bits - 1) - 1),
    "xor": (3, "i", lambda v, bits: 3 ^ int(np.bitwise_xor.reduce(v))),
}
WORD = {32: ("int", np.int32), 64: ("long", np.int64)}


@pytest.mark.parametrize("space", ["global", "local"])
@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_legacy_atomics(session, name, bits, space):
    """Every work-item on one place in global memory, or each group on one of its own in local memory."""
    first, operand, expected = REDUCTIONS[name]
    type_, dtype = WORD[bits]
    call = f"atom{'ic' if bits == 32 else ''}_{name}"
    source = f"""
        #pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
        #pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable
        typedef {type_} T;
        kernel void k(global T *out, T first, local T *own) {{
          int i = get_global_id(0);
          if ({int(space == "global")}) {call}(out, {operand});
          else {{
            if (get_local_id(0) == 0) *own = first;
            barrier(CLK_LOCAL_MEM_FENCE);
            {call}(own, {operand});
            barrier(CLK_LOCAL_MEM_FENCE);
            if (get_local_id(0) == 0) out[get_group_id(0)] = *own;
          }}
        }}"""
    out = session.buffer(np.full(ITEMS // GROUP, first, dtype))
    session.launch(session.kernel(source), ITEMS, out, dtype(first), Local(8), local=GROUP)
    found = session.read(out, dtype, ITEMS // GROUP)
    if space == "global":
        assert int(found[0]) == int(expected(INDEX, bits))
    elif name != "and":
        assert [int(x) for x in found] == [int(expected(v, bits)) for v in INDEX.reshape(-1, GROUP)]
    else:
        assert [int(x) for x in found] == [-2 if n == 77 // GROUP else -1 for n in range(ITEMS // GROUP)]


def test_every_old_value_is_seen_once(session):
    """atomic_inc, atomic_dec, atomic_xchg and atomic_cmpxchg return what was there: no value twice."""
    source = """
        kernel void k(global int *at, global int *old) {
          int i = get_global_id(0), n = get_global_size(0);
          old[i] = atomic_inc(at); old[n + i] = atomic_dec(at + 1); old[2 * n + i] = atomic_xchg(at + 2, i);
          int seen = 0, was;
          while ((was = atomic_cmpxchg(at + 3, seen, seen + 3)) != seen) seen = was;
          old[3 * n + i] = was;
        }"""
    at, old = session.buffer(np.array([10, 0, -1, 0], np.int32)), session.buffer(4 * 4 * ITEMS)
    session.launch(session.kernel(source), ITEMS, at, old, local=GROUP)
    values = np.sort(session.read(old, np.int32, 4 * ITEMS).reshape(4, ITEMS), axis=1)
    left = session.read(at, np.int32, 4)
    assert np.array_equal(values[0], 10 + INDEX) and left[0] == 10 + ITEMS
    assert np.array_equal(values[1], INDEX - ITEMS + 1) and left[1] == -ITEMS
    assert sorted([*values[2], left[2]]) == [-1, *INDEX]
    assert np.array_equal(values[3], 3 * INDEX) and left[3] == 3 * ITEMS


@pytest.mark.parametrize("order", ["relaxed", "acquire", "release", "acq_rel", "seq_cst"])
@pytest.mark.parametrize("type_", ["int", "uint", "long", "ulong", "float"])
def test_c11_sums(session, type_, order):
    dtype = {"int": np.int32, "uint": np.uint32, "long": np.int64, "ulong": np.uint64, "float": np.float32}[
        type_
    ]
    source = f"""
        kernel void k(volatile global atomic_{type_} *sum) {{
          atomic_fetch_add_explicit(sum, ({type_})2, memory_order_{order}, memory_scope_device);
        }}"""
    out = session.buffer(np.ones(1, dtype))
    session.launch(session.kernel(source), ITEMS, out, local=GROUP)
    assert session.read(out, dtype, 1)[0] == 1 + 2 * ITEMS


@pytest.mark.parametrize("space", ["global", "local"])
@pytest.mark.parametrize("type_", ["int", "ulong", "double"])
def test_loads_and_stores_of_every_order_and_scope(session, type_, space):
    """Each combination that OpenCL C 6.15.12.1 allows, and with the order alone, in one kernel."""
    scopes = ["", *(f", memory_scope_{s}" for s in ("work_group", "sub_group", "device", "all_svm_devices"))]
    loads = [f"memory_order_{o}{s}" for o in ("relaxed", "acquire", "seq_cst") for s in scopes]
    stores = [f"memory_order_{o}{s}" for o in ("relaxed", "release", "seq_cst") for s in scopes]
    body = "".join(
        f"atomic_store_explicit(at + i, ({type_})({n} + i), {store});"
        f"out[{n} * get_global_size(0) + i] = atomic_load_explicit(at + i, {load});"
        for n, (load, store) in enumerate(zip(loads, stores, strict=True))
    )
    source = f"""kernel void k(global {type_} *out, volatile {space} atomic_{type_} *at) {{
        int i = get_local_id(0); {body} }}"""
    dtype = {"int": np.int32, "ulong": np.uint64, "double": np.float64}[type_]
    memory = session.buffer(GROUP * 8) if space == "global" else Local(GROUP * 8)
    found = session.compute(source, GROUP, dtype, len(loads) * GROUP, memory, local=GROUP).reshape(-1, GROUP)
    assert np.array_equal(found, np.arange(len(loads))[:, None] + np.arange(GROUP))


def test_a_flag_is_a_lock_for_its_group(session):
    """The first work-items of the groups take turns at a counter that is no atomic itself."""
    source = """
        kernel void k(volatile global atomic_flag *lock, volatile global int *count) {
          if (get_local_id(0) != 0) return;
          while (atomic_flag_test_and_set_explicit(lock, memory_order_acquire, memory_scope_device));
          *count = *count + 1;
          atomic_flag_clear_explicit(lock, memory_order_release, memory_scope_device);
        }"""
    lock, count = session.buffer(np.zeros(1, np.int32)), session.buffer(np.zeros(1, np.int32))
    session.launch(session.kernel(source), ITEMS, lock, count, local=GROUP)
    assert session.read(count, np.int32, 1)[0] == ITEMS // GROUP
    assert session.read(lock, np.int32, 1)[0] == 0


def test_what_was_released_is_acquired(session):
    """The last group to arrive sees what all others wrote before they arrived."""
    source = """
        kernel void k(global int *data, volatile global atomic_int *arrived, global long *sum) {
          local int last;
          int i = get_global_id(0);
          data[i] = 3 * i;
          work_group_barrier(CLK_GLOBAL_MEM_FENCE);
          if (get_local_id(0) == 0)
            last = atomic_fetch_add_explicit(arrived, 1, memory_order_acq_rel, memory_scope_device)
                   == get_num_groups(0) - 1;
          work_group_barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
          if (last && get_local_id(0) == 0)
            for (int n = 0; n < get_global_size(0); n++) *sum += data[n];
        }"""
    kernel = session.kernel(source)
    for _ in range(20):
        data, arrived = session.buffer(4 * ITEMS), session.buffer(np.zeros(1, np.int32))
        total = session.buffer(np.zeros(1, np.int64))
        session.launch(kernel, ITEMS, data, arrived, total, local=GROUP)
        assert session.read(total, np.int64, 1)[0] == 3 * int(INDEX.sum())


def test_compare_and_exchange(session):
    """A strong one that fails says what was there; a weak one in a loop counts every success once."""
    source = """
        kernel void k(volatile global atomic_int *at, global int *told) {
          int expected = 4;
          if (get_global_id(0) == 0)
            told[0] = atomic_compare_exchange_strong(at, &expected, 9), told[1] = expected,
            told[2] = atomic_compare_exchange_strong(at, &expected, 9), told[3] = expected;
          expected = atomic_load(at + 1);
          while (!atomic_compare_exchange_weak_explicit(at + 1, &expected, expected + 2, memory_order_acq_rel,
                                                        memory_order_relaxed, memory_scope_device));
        }"""
    at, told = session.buffer(np.array([5, 0], np.int32)), session.buffer(np.zeros(4, np.int32))
    session.launch(session.kernel(source), ITEMS, at, told, local=GROUP)
    assert list(session.read(told, np.int32, 4)) == [0, 5, 1, 5]
    assert list(session.read(at, np.int32, 2)) == [9, 2 * ITEMS]


def test_the_capabilities_say_so(session):
    """Orders and scopes used above are those that the device names (4.2)."""
    told = session.cl.integer("clGetDeviceInfo", session.device, cl.CL_DEVICE_ATOMIC_MEMORY_CAPABILITIES)
    needed = (
        cl.CL_DEVICE_ATOMIC_ORDER_RELAXED
        | cl.CL_DEVICE_ATOMIC_ORDER_ACQ_REL
        | cl.CL_DEVICE_ATOMIC_ORDER_SEQ_CST
        | cl.CL_DEVICE_ATOMIC_SCOPE_WORK_GROUP
        | cl.CL_DEVICE_ATOMIC_SCOPE_DEVICE
    )
    assert told & needed == needed
