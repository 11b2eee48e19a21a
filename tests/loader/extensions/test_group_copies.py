"""Copies of lines and planes by work-groups, and their order (cl_khr_extended_async_copies,
cl_khr_async_work_group_copy_fence 1.0.0)."""

import numpy as np
import pytest

from tests.loader.core.session import Local, Session

ROOM = 4096  # bytes of each memory


def copied(target, source, size, offsets, counts, steps) -> None:
    """What a copy does: counts and steps are of elements, lines and planes; steps of the target first."""
    elements, lines, planes = counts
    for plane in range(planes):
        for line in range(lines):
            to, from_ = (
                size * (offset + line * step[0] + plane * step[1])
                for offset, step in zip(offsets, steps, strict=True)
            )
            target[to : to + size * elements] = source[from_ : from_ + size * elements]


# Bytes of an element; offsets of target and source; elements, lines, planes; steps of target and source.
CASES = [
    (4, (0, 0), (16, 8, 1), ((16, 0), (16, 0))),
    (4, (3, 5), (9, 6, 1), ((11, 0), (31, 0))),
    (1, (1, 2), (7, 5, 3), ((8, 60), (13, 77))),
    (12, (0, 1), (5, 4, 2), ((6, 30), (5, 20))),
    (8, (2, 0), (1, 9, 1), ((1, 0), (10, 0))),  # a column, as async_work_group_strided_copy
    (2, (5, 5), (0, 3, 2), ((4, 12), (4, 12))),
    (2, (5, 5), (3, 0, 2), ((4, 12), (4, 12))),
    (2, (5, 5), (3, 3, 0), ((4, 12), (4, 12))),
    (256, (0, 0), (2, 2, 3), ((2, 4), (2, 4))),
]


@pytest.mark.parametrize("width", [1, 8])
@pytest.mark.parametrize("to_local", [True, False])
@pytest.mark.parametrize("case", range(len(CASES)))
def test_lines_and_planes(session: Session, case, to_local, width):
    size, offsets, counts, steps = CASES[case]
    (line_to, plane_to), (line_from, plane_from) = steps
    what = f"{offsets[0]}, SOURCE, {offsets[1]}, {size}, {counts[0]}, {counts[1]}"
    if counts[2] == 1:
        call = f"2D2D(TARGET, {what}, {line_from}, {line_to}, 0)"
    else:
        call = f"3D3D(TARGET, {what}, {counts[2]}, {line_from}, {plane_from}, {line_to}, {plane_to}, 0)"
    call = call.replace("TARGET", "l" if to_local else "out").replace("SOURCE", "in" if to_local else "l")
    every = f"for (int k = i; k < {ROOM}; k += get_local_size(0))"
    first = f"{every} l[k] = {'out' if to_local else 'in'}[k];"
    last = f"{every} out[k] = l[k];" if to_local else ""
    # Each of two groups does the same: the second begins where the first has ended.
    source = f"""kernel void k(global uchar *out, global const uchar *in, local uchar *l) {{
        int i = get_local_id(0); out += {ROOM} * get_group_id(0); {first} barrier(CLK_LOCAL_MEM_FENCE);
        event_t e = async_work_group_copy_{call}; wait_group_events(1, &e);
        barrier(CLK_LOCAL_MEM_FENCE); {last} }}"""
    data = (np.arange(ROOM) * 37 % 251).astype(np.uint8)
    found = session.compute(
        source, 2 * 8 * width, np.uint8, 2 * ROOM, session.buffer(data), Local(ROOM), local=8 * width
    )
    expected = np.zeros(ROOM, np.uint8)
    copied(expected, data, size, offsets, counts, steps)
    for group in np.split(found, 2):
        assert np.array_equal(group, expected)


@pytest.mark.parametrize("options", ["", "-cl-opt-disable", "-cl-std=CL3.0"])
def test_local_memory_that_nothing_else_uses(session: Session, options):
    """What is copied in is copied out; sizes that only the launch knows, and an event that goes on."""
    source = """kernel void k(global uint *out, global const uint *in, uint elements, uint lines) {
        local uint a[256]; local uint b[256]; int g = get_group_id(0);
        event_t e = async_work_group_copy_2D2D(a, 1, in, 2, 4, elements, lines, elements + 3, elements, 0);
        e = async_work_group_copy_3D3D(b, 0, in, 0, 4, elements, lines, 2, elements, lines * elements,
                                       elements, lines * elements, e);
        wait_group_events(1, &e);
        e = async_work_group_copy_2D2D(out, g * 512, a, 1, 4, lines * elements, 1, 256, 256, 0);
        e = async_work_group_copy_2D2D(out, g * 512 + 256, b, 0, 4, elements, 2 * lines, elements,
                                       elements, e);
        wait_group_events(1, &e); }"""
    elements, lines = 11, 7
    data = np.arange(512, dtype=np.uint32) * 3
    kernel, out = session.kernel(source, options=options), session.buffer(np.zeros(1024, np.uint32))
    session.launch(kernel, 26, out, session.buffer(data), np.uint32(elements), np.uint32(lines), local=13)
    found = session.read(out, np.uint32, 1024).reshape(2, 2, 256)
    count = elements * lines
    expected = np.zeros((2, 256), np.uint32)
    for line in range(lines):
        begin = 2 + line * (elements + 3)
        expected[0, line * elements : (line + 1) * elements] = data[begin : begin + elements]
    expected[1, : 2 * count] = data[: 2 * count]
    assert np.array_equal(found, np.stack([expected, expected]))


@pytest.mark.parametrize("flags", ["CLK_LOCAL_MEM_FENCE", "CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE"])
@pytest.mark.parametrize("std", ["CL1.2", "CL2.0", "CL3.0"])
def test_order(session: Session, std, flags):
    """Copies behind a fence read what those before it have written, of local and of global memory."""
    source = f"""kernel void k(global uint *out, local uint *l) {{
        int n = 64, i = get_local_id(0); out += 4 * n * get_group_id(0);
        event_t e = async_work_group_copy(l, out, n, 0);
        async_work_group_copy_fence({flags});
        e = async_work_group_copy(out + 1, l, n, e);
        async_work_group_copy_fence({flags} | CLK_GLOBAL_MEM_FENCE);
        e = async_work_group_copy_2D2D(l, 0, out, 0, 4, n, 2, 32, n, e);
        async_work_group_copy_fence({flags});
        e = async_work_group_copy(out + 2 * n, l, 2 * n, e);
        wait_group_events(1, &e); }}"""
    data = np.arange(512, dtype=np.uint32)
    kernel, out = session.kernel(source, options=f"-cl-std={std}"), session.buffer(data)
    session.launch(kernel, 64, out, Local(512), local=32)
    expected = data.reshape(2, 256)
    for group in expected:
        group[1:65] = group[:64].copy()
        group[128:192], group[192:256] = group[:64].copy(), group[32:96].copy()
    assert np.array_equal(session.read(out, np.uint32, 512), expected.reshape(-1))


def test_programs_may_have_such_names(session: Session):
    source = """int async_work_group_copy_2D2D(int a) { return a + 2; }
        int async_work_group_copy_fence(int a, int b) { return a + b; }
        kernel void k(global int *out) {
            out[get_global_id(0)] = async_work_group_copy_2D2D(3) + async_work_group_copy_fence(1, 2); }"""
    assert set(session.compute(source, 8, np.int32, 8)) == {8}


@pytest.mark.parametrize("options", ["-cl-std=CL3.0", "-cl-opt-disable"])
@pytest.mark.parametrize("n", [0, 1, 5])
def test_events_that_begin_as_null(session: Session, n, options):
    """The event of the last of so many copies, or a null event: clang's back end writes no phi of these."""
    source = """kernel void k(global uint *out, global const uint *in, local uint *l, int n) {
        int i = get_local_id(0), room = 16 * get_local_size(0); out += room * get_group_id(0);
        for (int k = 0; k < 16; k++) l[16 * i + k] = 9;
        barrier(CLK_LOCAL_MEM_FENCE);
        event_t e = 0, none = 0;
        for (int k = 0; k < n; k++) e = async_work_group_copy(l + 16 * k, in + 20 * k, 12, e);
        e = async_work_group_copy(l + room - 3, in, 3, n > 2 ? e : none);
        wait_group_events(1, &e);
        for (int k = 0; k < 16; k++) out[16 * i + k] = l[16 * i + k]; }"""
    data, size = np.arange(128, dtype=np.uint32) * 5, 8
    kernel, out = session.kernel(source, options=options), session.buffer(np.zeros(2 * 16 * size, np.uint32))
    arguments = (out, session.buffer(data), Local(4 * 16 * size), np.int32(n))
    session.launch(kernel, 2 * size, *arguments, local=size)
    found = session.read(out, np.uint32, 2 * 16 * size)
    expected = np.full(16 * size, 9, np.uint32)
    for k in range(n):
        expected[16 * k : 16 * k + 12] = data[20 * k : 20 * k + 12]
    expected[-3:] = data[:3]
    assert np.array_equal(found, np.tile(expected, 2))
