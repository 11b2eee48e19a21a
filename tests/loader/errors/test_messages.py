"""What the log says of calls that fail: CL_DRIVER_LOG=errors."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.loader.errors import messages

PROGRAM = """
import ctypes
import sys
sys.path.insert(0, {root!r})
from tests.loader.opencl import OpenCL, cl
o = OpenCL({library!r})
device = o.device()
context = o.context(device)
queue = o.make("clCreateCommandQueue", context, device, 0)
kernel = o.kernel(context, "kernel void k(global float *x, int n, local int *l) {{ x[0] = n; }}")
buffer = o.make("clCreateBuffer", context, 0, 100, None)
for index, size, value in ((0, 8, [buffer]), (1, 4, [3]), (2, 4, None)):
    o.ok("clSetKernelArg", kernel, index, size, value)
program = o.program(context, "kernel void k() {{}}")
o.build(program)
{call}
"""

DEVICES = "o.call('clGetDeviceIDs', o.platform(), {}, 0, None, ctypes.c_uint32())"
LAUNCH = "o.call('clEnqueueNDRangeKernel', {}, kernel, {}, None, {}, {}, {}, None, None)"
BINARY = "o.call('clCreateProgramWithBinary', context, 1, [device], [{1}], [{0}], None)"


@pytest.fixture
def logged(environment, ocl_icd, tmp_path):
    """logged(call): what the log says of it, without the prefix."""

    def run(call: str, **settings: str) -> list[str]:
        log = tmp_path / "log"
        program = PROGRAM.format(root=str(ROOT), library=str(ocl_icd), call=call)
        env = environment | {"CL_DRIVER_LOG": "errors", "CL_DRIVER_LOG_FILE": str(log)} | settings
        done = subprocess.run([sys.executable, "-c", program], env=env, timeout=60, check=False)
        assert done.returncode == 0
        return (
            [messages.PREFIX.sub("", line) for line in log.read_text().splitlines()] if log.exists() else []
        )

    return run


@pytest.mark.parametrize(
    "call, said",
    [
        (LAUNCH.format("queue", 1, [8192], [8192], 0),
         r"local_work_size\[0\] is 8192, at most 4096 \(CL_INVALID_WORK_ITEM_SIZE\)"),
        (LAUNCH.format("queue", 1, [64], [3], 0),
         r"global_work_size\[0\] is 64, no multiple of the local size 3, .*"),
        (LAUNCH.format("queue", 4, [64], [3], 0),
         r"work_dim is 4, none of 1, 2, 3 \(CL_INVALID_WORK_DIMENSION\)"),
        (LAUNCH.format("kernel", 1, [64], [3], 0),
         r"command_queue is 0x\w+ \(a kernel\), not a host command-queue \(CL_INVALID_COMMAND_QUEUE\)"),
        (LAUNCH.format("queue", 1, [64], None, 2),
         r"the wait list contradicts its length: num_events_in_wait_list = 2, event_wait_list = NULL .*"),
        ("o.call('clSetKernelArg', kernel, 1, 8, [3])",
         r"arg_size is 8, the argument has 4 bytes: arg_index = 1 \(CL_INVALID_ARG_SIZE\)"),
        ("o.call('clSetKernelArg', kernel, 3, 8, [3])", r"arg_index is 3, the kernel has 3 arguments .*"),
        ("o.call('clSetKernelArg', kernel, 0, 8, [kernel])",
         r"\*arg_value is 0x\w+ \(a kernel\), not a memory object of the kernel's context: arg_index = 0 .*"),
        ("o.call('clEnqueueReadBuffer', queue, buffer, 1, 90, 20, [0, 0, 0], 0, None, None)",
         r"the region has 20 bytes from byte 90 on, the buffer has 100: offset = 90, size = 20 "
         r"\(CL_INVALID_VALUE\)"),
        ("o.ok('clReleaseMemObject', buffer); o.call('clReleaseMemObject', buffer)",
         r"memobj is 0x\w+ \(an object that was released\), not a memory object .*"),
        ("o.call('clCreateCommandQueueWithProperties', context, device, [0x1093, 1 << 20, 0])",
         r"CL_QUEUE_PROPERTIES is 0x100000, with an unknown bit \(CL_INVALID_VALUE\)"),
        ("o.call('clCreateContext', [0x9999, 1, 0], 1, [device], None, None)",
         r"properties has 0x9999, which is none of contexts: properties = \{0x9999, 0x1\} .*"),
        ("o.call('clCreateKernel', program, 'other')",
         r'the program has no kernel of that name: kernel_name = "other" \(CL_INVALID_KERNEL_NAME\)'),
        (BINARY.format(r"b'\x7fELF and so on'", 14), r".*it is an ELF file, as other drivers make .*"),
        (BINARY.format(r"b'CLDBIN\0\1'", 8),
         r".*of another version of the driver: its format is 1, not \d+ .*"),
        (BINARY.format(r"b'CLDBIN\0\2'", 8), r"the binary is cut off: it has 8 bytes, at least 56 .*"),
        ("o.call('clCreateFromGLBuffer', context, 0, 0)", r".*this driver has no such function .*"),
    ],
)  # fmt: skip
def test_the_call_the_argument_and_both_values(logged, call, said):
    (line,) = logged(call)
    name = re.findall(r"'(cl[A-Z]\w+)'", call)[-1]
    assert re.fullmatch(f"{name}: {said}", line), line
    assert messages.wrong(line) == ""


WITHOUT_CLANG = """
import sys
sys.path.insert(0, {root!r})
from tests.loader.opencl import OpenCL, cl
o = OpenCL({library!r})
context = o.context(o.device())
for number, call in enumerate(("clBuildProgram", "clCompileProgram")):
    program = o.program(context, f"kernel void k() {{{{ /* {{number}} */ }}}}")
    more = [] if call == "clBuildProgram" else [0, None, None]
    status = o.call(call, program, 0, None, None, *more, None, None)
    assert status == cl.CL_COMPILER_NOT_AVAILABLE, (call, status)
    assert "/no/clang, which CL_DRIVER_CLANG names: not found" in o.build_log(program)
"""


def test_source_without_a_compiler(environment, ocl_icd):
    program = WITHOUT_CLANG.format(root=str(ROOT), library=str(ocl_icd))
    env = environment | {"CL_DRIVER_CLANG": "/no/clang"}
    subprocess.run([sys.executable, "-c", program], env=env, timeout=60, check=True)


def test_builds_have_their_log(logged):
    build = "o.call('clBuildProgram', o.program(context, {!r}), 0, None, None, None, None)"
    assert logged(build.format("kernel void k() {}")) == []
    *log, last = logged(build.format("kernel void k(global int *a) { *a = b; }"))
    assert log[0] == "the build log:" and any("undeclared identifier 'b'" in line for line in log)
    assert last == "clBuildProgram: the program cannot be built, see its build log (CL_BUILD_PROGRAM_FAILURE)"


@pytest.mark.parametrize(
    "call",
    [
        "o.call('clGetDeviceInfo', device, 0x4000, 0, None, None)",
        "o.call('clGetPlatformInfo', o.platform(), 0x4000, 0, None, None)",
        "o.call('clGetKernelInfo', kernel, 0x4000, 0, None, None)",
        "o.call('clGetKernelArgInfo', kernel, 0, cl.CL_KERNEL_ARG_NAME, 0, None, None)",
        DEVICES.format("cl.CL_DEVICE_TYPE_GPU"),
    ],
)
def test_what_a_program_merely_asks_is_no_error(logged, call):
    assert logged(call) == []
    assert any("cl" in line for line in logged(call, CL_DRIVER_LOG="calls"))


def test_rules():
    assert messages.wrong("clFinish: command_queue is NULL, not a host command-queue (CL_X)") == ""
    for line in (
        "run_build: no memory",
        "clFinish: CL_INVALID_VALUE (queue && !(queue->properties & 3)): not a host command-queue",
        "clFinish: it failed (CL_INVALID_VALUE)",
        "clCreateBuffer: size is at most 4096 (CL_INVALID_BUFFER_SIZE)",
    ):
        assert messages.wrong(line)


@pytest.mark.release
@pytest.mark.long
def test_all_that_the_tests_of_error_codes_provoke(tmp_path):
    """Each error code is in the log, and each line of it keeps the rules.

    `make test` looks at the log of a control plane in a process of its own; here it is embedded."""
    log = tmp_path / "log"
    suites = [
        "errors", "images/test_errors_commands.py", "images/test_errors_creation.py", "command_buffers",
        "extensions", "core/test_events.py", "core/test_semaphores.py", "core/test_svm.py",
        "core/test_usm.py", "core/test_external_memory.py", "images/test_from_buffer.py",
        "images/test_samplers.py",
        "programs/test_il.py",
    ]  # fmt: skip
    paths = [str(ROOT / "tests" / "loader" / suite) for suite in suites]
    env = os.environ | {"CL_DRIVER_LOG": "errors", "CL_DRIVER_LOG_FILE": str(log)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not long and not clock"]
    command += ["-k", "not hints_are_followed"]  # who is served first: other tests run beside these
    done = subprocess.run([*command, *paths], cwd=ROOT, env=env, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:]
    lines = list(messages.lines(log))
    assert messages.offenders(lines) == []
    assert messages.missing_codes(lines) == set()
