"""OpenCL C 2.0: what it has without an extension, and OpenCL C 3.0 only as optional features."""

import numpy as np
import pytest

from cl_driver.api.generated import enums as cl
from tests.loader.core.session import Buffer, Session

CL2 = "-cl-std=CL2.0"
ITEMS, GROUP = 16, 8

# Bodies that leave 1 in `ok` of each work-item if all is well.
BODIES = {
    "generic": """int mine = i; local int shared; int *p = &mine, *q = &shared, *r = out + i;
        if (get_local_id(0) == 0) *q = 5;
        work_group_barrier(CLK_LOCAL_MEM_FENCE, memory_scope_work_group);
        *r = 7; ok = add(p, q) + *r == i + 12 && to_local(q) == &shared && !to_local(r) && to_private(p)
            && (get_fence(q) & CLK_LOCAL_MEM_FENCE);""",
    "groups": """int size = get_local_size(0), l = get_local_id(0);
        ok = work_group_reduce_add(l) == size * (size - 1) / 2 && work_group_scan_exclusive_add(1) == l
            && work_group_broadcast(l, 3) == 3 && work_group_any(l == 2) && !work_group_all(l == 2)
            && get_enqueued_local_size(0) == size && get_local_linear_id() == l
            && get_global_linear_id() == i;""",
    "atomics": """atomic_fetch_add_explicit(&counter, 1, memory_order_acq_rel, memory_scope_all_svm_devices);
        int expected = -1; local atomic_int l; if (get_local_id(0) == 0) atomic_init(&l, 3);
        work_group_barrier(CLK_LOCAL_MEM_FENCE); atomic_fetch_max(&l, (int)get_local_id(0));
        atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_seq_cst, memory_scope_device);
        work_group_barrier(CLK_LOCAL_MEM_FENCE);
        ok = atomic_load(&counter) > 100 && atomic_load(&l) == get_local_size(0) - 1
            && !atomic_compare_exchange_strong(&l, &expected, 0) && expected == get_local_size(0) - 1
            && table[i & 3] == (i & 3) * 10 && *place == 20;""",
    "enqueue": """queue_t q = get_default_queue(); clk_event_t e, m; void (^set)(void) = ^{ out[i] += 2; };
        int status = enqueue_kernel(q, CLK_ENQUEUE_FLAGS_WAIT_KERNEL, ndrange_1D(1), 0, NULL, &e, set);
        status |= enqueue_marker(q, 1, &e, &m);
        status |= enqueue_kernel(q, CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(1), 1, &m, NULL,
            ^(local void *p) { *(local int *)p = out[i]; out[i] = *(local int *)p == 2; }, 4);
        release_event(e); release_event(m); if (status || !get_kernel_work_group_size(set)) out[i] = -9;
        return;""",
}
SOURCE = """
#if __OPENCL_C_VERSION__ != CL_VERSION_2_0 || !__IMAGE_SUPPORT__ || __OPENCL_VERSION__ < 200
#error version
#endif
global atomic_int counter = ATOMIC_VAR_INIT(100);
global int table[4] = {0, 10, 20, 30}; global int *place = &table[2];
int add(int *a, int *b) { return *a + *b; }
kernel void k(global int *out) { int i = get_global_id(0); int ok; BODY out[i] = ok; }
"""


@pytest.fixture
def session(opencl):
    made = Session(opencl)
    yield made
    made.close()


@pytest.mark.parametrize("body", BODIES)
def test_what_needs_no_extension(session: Session, body):
    wanted = [
        cl.CL_QUEUE_PROPERTIES,
        cl.CL_QUEUE_ON_DEVICE | cl.CL_QUEUE_ON_DEVICE_DEFAULT | cl.CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE,
        0,
    ]
    queue = session.cl.make("clCreateCommandQueueWithProperties", session.context, session.device, wanted)
    session.made("clReleaseCommandQueue", queue)
    out = session.buffer(np.zeros(ITEMS, np.int32))
    kernel = session.kernel(SOURCE.replace("BODY", BODIES[body]), options=CL2)
    session.launch(kernel, ITEMS, out, local=GROUP)
    assert session.read(out, np.int32, ITEMS).tolist() == [1] * ITEMS


def test_pipes(session: Session):
    source = """
        kernel void put(write_only pipe int p, global int *out) {
            reserve_id_t r = work_group_reserve_write_pipe(p, get_local_size(0));
            int v = get_global_id(0); if (!is_valid_reserve_id(r)) return;
            write_pipe(p, r, get_local_id(0), &v); work_group_commit_write_pipe(p, r); }
        kernel void get(read_only pipe int p, global int *out) {
            int v = -1; out[get_global_id(0)] = read_pipe(p, &v) ? -1 : v; }"""
    program = session.program(source, CL2)
    pipe = session.cl.make("clCreatePipe", session.context, 0, 4, ITEMS, None)
    session.made("clReleaseMemObject", pipe)
    out = session.buffer(np.zeros(ITEMS, np.int32))
    for name in ("put", "get"):
        session.launch(session.kernel(program, name), ITEMS, Buffer(pipe), out, local=GROUP)
    assert sorted(session.read(out, np.int32, ITEMS)) == list(range(ITEMS))


def test_images(session: Session):
    """Images that a kernel reads and writes, 3D ones that it writes, depth images."""
    source = """constant sampler_t s = CLK_FILTER_NEAREST | CLK_ADDRESS_CLAMP;
        kernel void k(read_write image2d_t a, write_only image3d_t b, read_only image2d_depth_t c,
                      read_only image2d_array_depth_t d) {
            int2 at = (int2)(get_global_id(0), 0); float4 v = read_imagef(a, at); write_imagef(a, at, v + 1);
            atomic_work_item_fence(CLK_IMAGE_MEM_FENCE, memory_order_acq_rel, memory_scope_work_item);
            v = read_imagef(a, at) + read_imagef(c, s, at) + read_imagef(d, s, (int4)(at, 0, 0));
            write_imagef(b, (int4)(at, 0, 0), v); }"""
    session.kernel(source, options=CL2)
