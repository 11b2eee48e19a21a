"""Groups of every shape, also uneven ones, and the functions that a group calls together (5.10, 6.15.16)."""

import itertools

import numpy as np
import pytest

from cl_driver.api.generated import enums as cl

from .session import CL3, Local

# Every work-item counts itself, and says what it sees of its group.
COUNT = """
kernel void k(global uint *out) {
  size_t at = get_global_linear_id();
  out[at * 8] += 1;
  for (int d = 0; d < 3; d++) out[at * 8 + 1 + d] = get_local_size(d) << 16 | get_enqueued_local_size(d);
  for (int d = 0; d < 3; d++) out[at * 8 + 4 + d] = get_group_id(d) << 16 | get_local_id(d);
  out[at * 8 + 7] = get_num_groups(0) << 20 | get_num_groups(1) << 10 | get_num_groups(2);
}"""


def along(items: int, local: int):
    """(local size, group, local id) of every id in one dimension: the last group is what is left."""
    return [(min(local, items - i // local * local), i // local, i % local) for i in range(items)]


@pytest.mark.parametrize(
    "items, local",
    [
        ((1,), (1,)), ((17,), (5,)), ((1000,), (64,)), ((7,), (7,)), ((3,), (8,)),
        ((9, 10), (4, 3)), ((64, 3), (16, 2)), ((1, 33), (1, 32)),
        ((5, 6, 7), (2, 4, 3)), ((16, 8, 4), (4, 4, 4)), ((2, 2, 65), (2, 1, 16)),
    ],
)  # fmt: skip
def test_every_work_item_once(session, items, local):
    """Groups at the end of a dimension are smaller (5.10); get_enqueued_local_size is that of the call."""
    full_items, full_local = (*items, 1, 1)[:3], (*local, 1, 1)[:3]
    count = int(np.prod(items))
    found = session.compute(COUNT, items, np.uint32, count * 8, local=local).reshape(-1, 8)
    groups = [-(-n // size) for n, size in zip(full_items, full_local, strict=True)]
    rows = itertools.product(
        *(along(n, size) for n, size in zip(full_items[::-1], full_local[::-1], strict=True))
    )
    for row, place in zip(found, rows, strict=True):
        seen = [p[0] << 16 | size for p, size in zip(place[::-1], full_local, strict=True)]
        seen += [p[1] << 16 | p[2] for p in place[::-1]]
        assert list(row) == [1, *seen, groups[0] << 20 | groups[1] << 10 | groups[2]]


@pytest.mark.parametrize("items", [(100003,), (331, 307), (53, 47, 41), (113, 113, 13), (17,), (37, 2)])
def test_sizes_that_the_driver_chooses(session, items):
    """Primes do not divide into groups; every work-item is executed once all the same, within the limits."""
    source = """
        kernel void k(global uint *out) {
          size_t at = get_global_linear_id();
          size_t n = get_global_size(0) * get_global_size(1) * get_global_size(2);
          out[at] += get_local_size(0) * get_local_size(1) * get_local_size(2);
          for (int d = 0; d < 3; d++) out[n * (d + 1) + at] = get_enqueued_local_size(d);
        }"""
    most = session.cl.integer("clGetDeviceInfo", session.device, cl.CL_DEVICE_MAX_WORK_GROUP_SIZE)
    found, *chosen = session.compute(source, items, np.uint32, 4 * int(np.prod(items))).reshape(4, -1)
    assert 1 <= found.min() <= found.max() <= most
    # get_enqueued_local_size is what was chosen: the size of the first group.
    assert np.prod([size[0] for size in chosen]) == found[0] and all(
        (size == size[0]).all() for size in chosen
    )


def test_uneven_groups_need_version_2(session):
    """CL_INVALID_WORK_GROUP_SIZE where the program requires uniform groups (5.8.6.5, 5.10), or the kernel
    another size."""
    plain = "kernel void k(global int *p) { p[get_global_id(0)] = 1; }"
    required = "__attribute__((reqd_work_group_size(8, 1, 1))) " + plain
    out = session.buffer(np.zeros(64, np.int32))

    def enqueue(source, options, items, local):
        kernel = session.kernel(source, options=options)
        session.set_arguments(kernel, [out])
        shape = (1, None, [items], local and [local], 0, None, None)
        return session.cl.call("clEnqueueNDRangeKernel", session.queue, kernel, *shape)

    refused = cl.CL_INVALID_WORK_GROUP_SIZE
    assert enqueue(plain, CL3, 20, 8) == cl.CL_SUCCESS
    assert enqueue(plain, "-cl-std=CL1.2", 20, 8) == refused
    assert enqueue(plain, CL3 + " -cl-uniform-work-group-size", 20, 8) == refused
    assert enqueue(plain, CL3 + " -cl-uniform-work-group-size", 24, 8) == cl.CL_SUCCESS
    assert enqueue(required, CL3, 24, 4) == refused
    assert enqueue(required, "-cl-std=CL1.2", 24, 8) == cl.CL_SUCCESS
    session.finish()


def test_barriers_in_uneven_groups(session):
    """A rotation through local memory, with a barrier in a loop, in groups of 13 and one of 9."""
    source = """
        kernel void k(global int *out, local int *ring) {
          int i = get_local_id(0), n = get_local_size(0);
          ring[i] = get_global_id(0);
          for (int turn = 0; turn < n; turn++) {
            barrier(CLK_LOCAL_MEM_FENCE); int next = ring[(i + 1) % n];
            barrier(CLK_LOCAL_MEM_FENCE); ring[i] = next + 1000;
          }
          out[get_global_id(0)] = ring[i];
        }"""
    found = session.compute(source, 100, np.int32, 100, Local(52), local=13)
    assert np.array_equal(found, np.arange(100) + 1000 * np.minimum(13, 100 - np.arange(100) // 13 * 13))


TYPES = {
    "int": np.int32,
    "uint": np.uint32,
    "long": np.int64,
    "ulong": np.uint64,
    "float": np.float32,
    "double": np.float64,
}
FUNCTIONS = ("reduce", "scan_inclusive", "scan_exclusive")
ACCUMULATE = {"add": np.add, "min": np.minimum, "max": np.maximum}


@pytest.mark.parametrize("local", [1, 7, 64])
@pytest.mark.parametrize("type_", TYPES)
def test_reductions_and_scans(session, type_, local):
    """work_group_reduce_*, scan_inclusive_* and scan_exclusive_*: the last from the identity on."""
    dtype, items = TYPES[type_], 130
    info = np.finfo(dtype) if dtype in (np.float32, np.float64) else np.iinfo(dtype)
    lowest, highest = (-np.inf, np.inf) if isinstance(info, np.finfo) else (info.min, info.max)
    identity = {"add": 0, "min": highest, "max": lowest}
    body = "".join(
        f"out[{n} * m + i] = work_group_{function}_{name}(v);"
        for n, (name, function) in enumerate(itertools.product(ACCUMULATE, FUNCTIONS))
    )
    source = f"""kernel void k(global {type_} *out, global {type_} *in) {{
        int i = get_global_id(0), m = get_global_size(0); {type_} v = in[i]; {body} }}"""
    data = np.random.default_rng(local).integers(-50 if lowest else 0, 50, items).astype(dtype)
    found = session.compute(source, items, dtype, 9 * items, session.buffer(data), local=local).reshape(
        3, 3, items
    )
    for (name, function), (reduced, inclusive, exclusive) in zip(ACCUMULATE.items(), found, strict=True):
        for start in range(0, items, local):
            group = data[start : start + local]
            scan = function.accumulate(group)
            assert (reduced[start : start + local] == scan[-1]).all(), name
            assert np.array_equal(inclusive[start : start + local], scan), name
            assert np.array_equal(exclusive[start : start + local], [dtype(identity[name]), *scan[:-1]]), name


def test_votes_and_broadcasts(session):
    """work_group_all and work_group_any; work_group_broadcast from any place, in two dimensions."""
    source = """
        kernel void k(global int *out) {
          int x = get_local_id(0), y = get_local_id(1), at = get_global_linear_id(), g = get_group_id(0);
          out[at] = work_group_all(x < 5 + g) + 2 * work_group_any(x == 3 + g && y == 2)
                    + 4 * work_group_all(g) + 100 * work_group_broadcast(10 * y + x, 4 - g, 1 + g);
        }"""
    found = session.compute(source, (12, 3), np.int32, 36, local=(6, 3)).reshape(3, 2, 6)
    assert (found[:, 0] == 0 + 2 + 0 + 1400).all()
    assert (found[:, 1] == 1 + 2 + 4 + 2300).all()


def test_limits_of_a_launch(session):
    """Errors of sizes (5.10), and one group of the largest size."""
    most = session.cl.integer("clGetDeviceInfo", session.device, cl.CL_DEVICE_MAX_WORK_GROUP_SIZE)
    kernel, out = session.kernel(COUNT), session.buffer(np.zeros(8 * most, np.uint32))
    session.set_arguments(kernel, [out])

    def enqueue(dimensions, offset, items, local):
        shape = (dimensions, offset, items, local, 0, None, None)
        return session.cl.call("clEnqueueNDRangeKernel", session.queue, kernel, *shape)

    assert enqueue(0, None, [1], None) == cl.CL_INVALID_WORK_DIMENSION
    assert enqueue(4, None, [1] * 4, None) == cl.CL_INVALID_WORK_DIMENSION
    assert enqueue(1, None, [4 * most], [2 * most]) in (
        cl.CL_INVALID_WORK_GROUP_SIZE,
        cl.CL_INVALID_WORK_ITEM_SIZE,
    )
    assert enqueue(2, None, [most, 2], [most, 2]) == cl.CL_INVALID_WORK_GROUP_SIZE
    assert enqueue(1, None, [8], [0]) == cl.CL_INVALID_WORK_GROUP_SIZE
    assert enqueue(1, [2**64 - 4], [16], None) == cl.CL_INVALID_GLOBAL_OFFSET
    assert enqueue(2, None, [8, 0], None) == cl.CL_SUCCESS  # nothing to do (since version 2.1)
    assert not session.read(out, np.uint32, 8 * most).any()
    assert enqueue(1, None, [most], [most]) == cl.CL_SUCCESS
    assert (session.read(out, np.uint32, 8 * most).reshape(most, 8)[:, 1] == most << 16 | most).all()
