"""Machines that are not there (CL_DRIVER_TOPOLOGY): sub-devices by affinity domain, and kernels on them."""

import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.topologies import make_machine

PROGRAM = """
import ctypes
import random
import sys
sys.path.insert(0, {root!r})
from tests.loader.opencl import OpenCL, cl
o = OpenCL({library!r})
root = o.device()
BY_DOMAIN = cl.CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN
SHIFTS = (0, 10, 14, 18, 16, 18)

def units(device):
    return o.integer("clGetDeviceInfo", device, cl.CL_DEVICE_MAX_COMPUTE_UNITS)

def split(device, domain):
    parts = o.sub_devices(device, BY_DOMAIN, getattr(cl, "CL_DEVICE_AFFINITY_DOMAIN_" + domain))
    _, by, _ = o.words("clGetDeviceInfo", parts[0], cl.CL_DEVICE_PARTITION_TYPE)
    return parts, by

def run(device):
    # Launches that are worth one thread, some and all of them; each item is counted.
    context = o.context(device)
    kernel = o.kernel(context, '''kernel void k(global uint *counts, global uint *sums) {{
        size_t i = get_global_id(0);
        uint sum = i;
        for (int turn = 0; turn < 300; turn++)
            sum = sum * 1664525 + counts[i];
        sums[i] = sum;
        counts[i]++;
    }}''')
    queue = o.make("clCreateCommandQueue", context, device, 0)
    count = 1 << 18
    counts, sums = [o.make("clCreateBuffer", context, cl.CL_MEM_READ_WRITE, 4 * count, None) for _ in "ab"]
    o.ok("clEnqueueFillBuffer", queue, counts, bytes(4), 4, 0, 4 * count, 0, None, None)
    o.ok("clSetKernelArg", kernel, 0, 8, [counts])
    o.ok("clSetKernelArg", kernel, 1, 8, [sums])
    for shift in SHIFTS:
        o.ok("clEnqueueNDRangeKernel", queue, kernel, 1, None, [1 << shift], [1], 0, None, None)
    found = (ctypes.c_uint32 * count)()
    o.ok("clEnqueueReadBuffer", queue, counts, 1, 0, 4 * count, found, 0, None, None)
    # What the device's threads copy, each its part.
    words = (ctypes.c_uint32 * (3 << 20)).from_buffer(bytearray(random.Random(1).randbytes(12 << 20)))
    copy = o.make("clCreateBuffer", context, cl.CL_MEM_COPY_HOST_PTR, 12 << 20, words)
    read = (ctypes.c_uint32 * (3 << 20))()
    o.ok("clEnqueueReadBuffer", queue, copy, 1, 0, 12 << 20, read, 0, None, None)
    assert bytes(read) == bytes(words)
    return all(found[i] == sum(i < 1 << shift for shift in SHIFTS) for i in range(count))


{code}
"""

TWO_NODES = """
assert units(root) == 192
nodes, by = split(root, "NEXT_PARTITIONABLE")
assert by == cl.CL_DEVICE_AFFINITY_DOMAIN_NUMA and [units(part) for part in nodes] == [96, 96]
caches, by = split(nodes[1], "NEXT_PARTITIONABLE")
assert by == cl.CL_DEVICE_AFFINITY_DOMAIN_L3_CACHE and [units(part) for part in caches] == [16] * 6
cores, by = split(caches[5], "L2_CACHE")
assert [units(part) for part in cores] == [1] * 16
assert len(split(root, "L3_CACHE")[0]) == 12
assert run(root) and run(caches[5])
"""

FOUR_NODES = """
assert units(root) == 32
domains = o.integer("clGetDeviceInfo", root, cl.CL_DEVICE_PARTITION_AFFINITY_DOMAIN)
assert domains & cl.CL_DEVICE_AFFINITY_DOMAIN_NUMA and domains & cl.CL_DEVICE_AFFINITY_DOMAIN_L3_CACHE
nodes, _ = split(root, "NUMA")
assert [units(part) for part in nodes] == [8] * 4
nothing = (ctypes.c_void_p * 64)()
properties = [BY_DOMAIN, cl.CL_DEVICE_AFFINITY_DOMAIN_NUMA, 0]
fails = o.fails("clCreateSubDevices", nodes[0], properties, 64, nothing, None)
assert fails == cl.CL_DEVICE_PARTITION_FAILED
assert run(root) and run(nodes[3])
"""

ONE_PLACE = """
assert units(root) == 8
domains = o.integer("clGetDeviceInfo", root, cl.CL_DEVICE_PARTITION_AFFINITY_DOMAIN)
lower = cl.CL_DEVICE_AFFINITY_DOMAIN_L2_CACHE | cl.CL_DEVICE_AFFINITY_DOMAIN_L1_CACHE
assert domains == lower | cl.CL_DEVICE_AFFINITY_DOMAIN_NEXT_PARTITIONABLE
for domain in ("NUMA", "L4_CACHE", "L3_CACHE"):
    properties = [BY_DOMAIN, getattr(cl, "CL_DEVICE_AFFINITY_DOMAIN_" + domain), 0]
    fails = o.fails("clCreateSubDevices", root, properties, 64, (ctypes.c_void_p * 64)(), None)
    assert fails == cl.CL_INVALID_VALUE
core, _ = split(root, "NEXT_PARTITIONABLE")
properties = [BY_DOMAIN, cl.CL_DEVICE_AFFINITY_DOMAIN_NEXT_PARTITIONABLE, 0]
fails = o.fails("clCreateSubDevices", core[0], properties, 64, (ctypes.c_void_p * 64)(), None)
assert fails == cl.CL_DEVICE_PARTITION_FAILED
assert run(root)
"""


@pytest.mark.parametrize(
    "nodes, sharers, code",
    [
        ([range(96), range(96, 192)], 16, TWO_NODES),
        ([range(at, at + 8) for at in range(0, 32, 8)], 8, FOUR_NODES),
        ([range(8)], 8, ONE_PLACE),
    ],
    ids=["two nodes", "four nodes", "one place"],
)
def test_machine(environment, ocl_icd, tmp_path, nodes, sharers, code):
    make_machine(tmp_path, nodes, sharers)
    program = PROGRAM.format(root=str(ROOT), library=str(ocl_icd), code=code)
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env=environment | {"CL_DRIVER_TOPOLOGY": str(tmp_path)},
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
