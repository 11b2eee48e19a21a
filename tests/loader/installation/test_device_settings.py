"""Settings that change what the device says of itself, each in a process of its own."""

import platform
import subprocess
import sys

import pytest

from cl_driver.device.cpu import host_cpu
from tests.conftest import ROOT

PROGRAM = """
import ctypes
import sys
sys.path.insert(0, {root!r})
from tests.loader.opencl import OpenCL, cl
o = OpenCL({library!r})
device = o.device()
text = lambda name: o.text("clGetDeviceInfo", device, getattr(cl, name))
number = lambda name: o.integer("clGetDeviceInfo", device, getattr(cl, name))
print({expression})
"""


@pytest.fixture
def evaluate(environment, ocl_icd):
    """evaluate(expression, **settings): what it is in a fresh process."""

    def run(expression, **settings):
        program = PROGRAM.format(root=str(ROOT), library=str(ocl_icd), expression=expression)
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            env=environment | settings,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run


@pytest.mark.parametrize(
    "setting, query",
    [
        ("CL_DRIVER_DEVICE_NAME", "CL_DEVICE_NAME"),
        ("CL_DRIVER_DEVICE_VENDOR", "CL_DEVICE_VENDOR"),
        ("CL_DRIVER_DEVICE_VERSION", "CL_DEVICE_VERSION"),
    ],
)
def test_strings_can_be_replaced(evaluate, setting, query):
    assert evaluate(f"text({query!r})", **{setting: "Something else"}) == "Something else"
    assert evaluate(f"text({query!r})") != "Something else"


def test_the_type_can_be_replaced(evaluate):
    expression = "number('CL_DEVICE_TYPE') == cl.CL_DEVICE_TYPE_GPU"
    assert evaluate(expression, CL_DRIVER_DEVICE_TYPE="gpu") == "True"
    assert evaluate(expression) == "False"


def test_the_number_of_threads_can_be_chosen(evaluate):
    assert evaluate("number('CL_DEVICE_MAX_COMPUTE_UNITS')", CL_DRIVER_THREADS="1") == "1"
    # More than there are CPUs: they share them. All kinds of partitions still work.
    expression = (
        "number('CL_DEVICE_MAX_COMPUTE_UNITS'), number('CL_DEVICE_PARTITION_MAX_SUB_DEVICES'),"
        "len(o.sub_devices(device, cl.CL_DEVICE_PARTITION_EQUALLY, 3)),"
        "len(o.sub_devices(device, cl.CL_DEVICE_PARTITION_BY_COUNTS, 9, 2, 0)),"
        "number('CL_DEVICE_PARTITION_AFFINITY_DOMAIN') >= 0"
    )
    assert evaluate(expression, CL_DRIVER_THREADS="11") == "11 11 3 2 True"
    one = "o.words('clGetDeviceInfo', device, cl.CL_DEVICE_PARTITION_PROPERTIES)"
    assert evaluate(one, CL_DRIVER_THREADS="1") == "[0]"


def test_values_that_mean_nothing_change_nothing(evaluate):
    usual = evaluate("number('CL_DEVICE_MAX_COMPUTE_UNITS'), number('CL_DEVICE_TYPE')")
    settings = {"CL_DRIVER_THREADS": "many", "CL_DRIVER_DEVICE_TYPE": "toaster"}
    assert evaluate("number('CL_DEVICE_MAX_COMPUTE_UNITS'), number('CL_DEVICE_TYPE')", **settings) == usual


def test_queries_that_other_vendors_have_are_no_errors(evaluate, tmp_path):
    """Hosts try NVIDIA's and AMD's on every device. What is wrong with known ones is told."""
    log = tmp_path / "log"
    queries = "[o.call('clGetDeviceInfo', device, name, {}, None, None) for name in (0x4000, 0x4038, 0x1000)]"
    settings = {"CL_DRIVER_LOG_FILE": str(log), "CL_DRIVER_LOG": "errors"}
    assert evaluate(queries.format(0), **settings) == "[-30, -30, 0]"
    assert not log.exists()
    evaluate("o.call('clGetPlatformInfo', o.platform(), 0x4000, 0, None, None)", **settings)
    assert not log.exists()
    evaluate("o.call('clGetDeviceInfo', device, 0x1000, 1, [0], None)", **settings)
    assert "clGetDeviceInfo: param_value_size is 1, the answer has 8 bytes" in log.read_text()
    evaluate(queries.format(0), **(settings | {"CL_DRIVER_LOG": "calls"}))
    assert "param_name is 0x4038, no query that this driver knows" in log.read_text()


def test_widths_are_those_of_the_cpu_that_code_is_made_for(evaluate):
    """Of vectors, of a kernel that is compiled for one work-item at a time, and what CL_FP_FMA says."""
    native = [f"number('CL_DEVICE_NATIVE_VECTOR_WIDTH_{kind}')" for kind in ("INT", "FLOAT", "DOUBLE")]
    kernel = "o.kernel(o.context(device), 'kernel void k(global int *a) { *a = 1; }')"
    multiple = f"o.integer('clGetKernelWorkGroupInfo', {kernel}, device, 0x11B3)"
    fma = "number('CL_DEVICE_SINGLE_FP_CONFIG') & cl.CL_FP_FMA != 0"
    expression = ", ".join([*native, "number('CL_DEVICE_PREFERRED_WORK_GROUP_SIZE_MULTIPLE')", multiple, fma])
    base = {"CL_DRIVER_WIDTH": "1"}
    if platform.machine() == "x86_64":
        assert evaluate(expression, CL_DRIVER_CPU="x86-64", **base) == "4 4 2 4 4 False"
    if {"avx2", "fma"} <= set(host_cpu().features):
        assert evaluate(expression, CL_DRIVER_CPU="x86-64-v3", **base) == "8 8 4 8 8 True"


def test_the_size_of_sub_groups_is_for_kernels_that_require_none(evaluate):
    source = (
        "kernel void any(global int *a) { a[get_global_id(0)] = sub_group_reduce_add(1); }"
        "kernel __attribute__((intel_reqd_sub_group_size(8))) void eight(global int *a)"
        "{ a[get_global_id(0)] = sub_group_reduce_add(1); }"
    )
    query = "cl.CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE"
    expression = (
        f"[(o.call('clGetKernelSubGroupInfo', o.kernel(o.context(device), {source!r}, name), device, {query},"
        " 8, ctypes.c_size_t(64), 8, out, None), out.value)"
        " for name in ('any', 'eight') for out in [ctypes.c_size_t()]]"
    )
    assert evaluate(expression, CL_DRIVER_SUB_GROUP_SIZE="32") == "[(0, 32), (0, 8)]"
    assert evaluate(expression, CL_DRIVER_SUB_GROUP_SIZE="64") == "[(0, 64), (0, 8)]"


def test_sub_groups_of_single_kernels(evaluate):
    kernels = {"one": "", "two": "", "eight": "__attribute__((intel_reqd_sub_group_size(8)))"}
    source = "".join(
        f"kernel {attribute} void {name}(global int *a) {{ a[get_global_id(0)] = sub_group_reduce_add(1); }}"
        for name, attribute in kernels.items()
    )
    query = "cl.CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE"
    expression = (
        f"[(o.call('clGetKernelSubGroupInfo', o.kernel(o.context(device), {source!r}, name), device, {query},"
        f" 8, ctypes.c_size_t(64), 8, out, None), out.value)[1]"
        f" for name in {list(kernels)} for out in [ctypes.c_size_t()]]"
    )
    sizes = {"CL_DRIVER_SUB_GROUP_SIZE": "32", "CL_DRIVER_KERNEL_SUB_GROUP_SIZES": "one=64,eight=4"}
    assert evaluate(expression, **sizes) == "[64, 32, 8]"
    for bad in ("one", "one=", "=4", "one=5", "one=4,", "one=4;two=4"):
        assert evaluate(expression, **(sizes | {"CL_DRIVER_KERNEL_SUB_GROUP_SIZES": bad})) == "[32, 32, 8]"


GROUPS = "kernel void k(void) {} kernel __attribute__((reqd_work_group_size(512, 2, 1))) void r(void) {}"


def test_the_largest_work_group_can_be_smaller(evaluate):
    """In all queries, and to launches with a local size, without one, and with the kernel's."""
    launch = (
        "(lambda name, items, local: (lambda context: o.call('clEnqueueNDRangeKernel',"
        " o.make('clCreateCommandQueueWithProperties', context, device, None),"
        f" o.kernel(context, {GROUPS!r}, name), len(items), None, (ctypes.c_size_t * 3)(*items),"
        " local and (ctypes.c_size_t * 3)(*local), 0, None, None))(o.context(device)))"
    )
    kernel = f"o.kernel(o.context(device), {GROUPS!r}, 'k')"
    expression = ", ".join(
        (
            "number('CL_DEVICE_MAX_WORK_GROUP_SIZE')",
            "o.words('clGetDeviceInfo', device, cl.CL_DEVICE_MAX_WORK_ITEM_SIZES)",
            f"o.integer('clGetKernelWorkGroupInfo', {kernel}, device, cl.CL_KERNEL_WORK_GROUP_SIZE)",
            f"{launch}('k', [4096], [512])",
            f"{launch}('k', [4096], [1024])",
            f"{launch}('k', [1024, 2], [512, 2])",
            f"{launch}('k', [1 << 14], None)",
            f"{launch}('r', [1024, 2], [512, 2])",
            f"{launch}('r', [1024, 2], None)",
        )
    )
    few, many = "[512, 512, 512] 512 0 -55 -54 0 -54 -54", "[4096, 4096, 4096] 4096 0 0 0 0 0 0"
    assert evaluate(expression, CL_DRIVER_MAX_WORK_GROUP_SIZE="512") == f"512 {few}"
    assert evaluate(expression, CL_DRIVER_MAX_WORK_GROUP_SIZE="100") == f"4096 {many}"
