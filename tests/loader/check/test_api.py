"""The check mode tells of what the API leaves undefined (c/tools/misuse.c): each case, and its right twin."""

from __future__ import annotations

import re

import pytest

from tests.conftest import compile_c
from tests.loader.conftest import CLIENTS

BUFFER = r"a buffer of 4096 bytes \(0x[0-9a-f]+\)"

SVM = r"an SVM allocation of 4096 bytes \(0x[0-9a-f]+\)"

# The first line of what is told, and the calls that the further lines name.
CASES = {
    "left_over": ("left over at exit: 3 objects", ["clCreateBuffer", "clSVMAlloc", "clCreateUserEvent"]),
    "released_too_often": (
        f"clReleaseMemObject: released once too often: {BUFFER}",
        ["clReleaseMemObject", "released by clReleaseMemObject", "made by clCreateBuffer"],
    ),
    "released_event": (
        r"clEnqueueMarkerWithWaitList: used after its last release: an event \(0x[0-9a-f]+\)",
        ["released by clReleaseEvent", "made by clEnqueueMarkerWithWaitList"],
    ),
    "released_argument": (
        f"clEnqueueNDRangeKernel: argument 0 of kernel 'writes' is {BUFFER}, which was released before the "
        "launch: kernels keep no arguments",
        ["released by clReleaseMemObject", "made by clCreateBuffer"],
    ),
    "released_sampler": (
        r"clEnqueueNDRangeKernel: argument 1 of kernel 'samples' is a sampler \(0x[0-9a-f]+\), which was "
        "released before the launch: kernels keep no arguments",
        ["clEnqueueNDRangeKernel", "released by clReleaseSampler", "made by clCreateSampler"],
    ),
    "svm_changed_without_mapping": (
        f"clEnqueueNDRangeKernel: the host has changed, without a mapping, the memory of {SVM}, which is "
        "coarse-grained: commands need not see what is written without clEnqueueSVMMap",
        ["clEnqueueNDRangeKernel", "made by clSVMAlloc"],
    ),
    "svm_mapped": (
        f"clEnqueueNDRangeKernel: argument 0 of kernel 'writes' points into {SVM}, all of which the host has "
        "mapped for writing",
        ["clEnqueueNDRangeKernel", "mapped by clEnqueueSVMMap", "made by clSVMAlloc"],
    ),
    "svm_not_mapped": (
        "clEnqueueSVMUnmap: 0x[0-9a-f]+ was not given to clEnqueueSVMMap, or is unmapped already: in " + SVM,
        ["clEnqueueSVMUnmap", "made by clSVMAlloc"],
    ),
    "released_parent": (
        f"clEnqueueCopyBuffer: used after its last release: {BUFFER}",
        ["released by clReleaseMemObject"],
    ),
    "two_queues": (
        f"clEnqueueNDRangeKernel: kernel 'reads' reads, and kernel 'writes' writes, {BUFFER}, in no order: "
        "a race unless they touch different parts of it",
        ["clEnqueueNDRangeKernel", "made by clCreateBuffer"],
    ),
    "two_transfers": (
        f"clEnqueueReadBuffer: clEnqueueReadBuffer reads, and clEnqueueWriteBuffer writes, {BUFFER}, "
        "in no order",
        ["clEnqueueReadBuffer", "clEnqueueWriteBuffer", "made by clCreateBuffer"],
    ),
    "one_place": (
        "clEnqueueReadBuffer: clEnqueueReadBuffer writes, and clEnqueueReadBuffer writes, the host's memory "
        "at 0x[0-9a-f]+, in no order",
        ["clEnqueueReadBuffer"],
    ),
    "out_of_order": (
        f"clEnqueueNDRangeKernel: kernel 'reads' reads, and kernel 'writes' writes, {BUFFER}, in no .*",
        ["clEnqueueNDRangeKernel"],
    ),
    "mapped_for_writing": (
        f"clEnqueueNDRangeKernel: kernel 'reads' reads {BUFFER} while the host has it mapped for writing",
        ["mapped by clEnqueueMapBuffer", "made by clCreateBuffer"],
    ),
    "mapped_for_reading": (
        f"clEnqueueNDRangeKernel: kernel 'writes' writes {BUFFER} while the host has it mapped for reading",
        ["mapped by clEnqueueMapBuffer"],
    ),
    "written_while_mapped": (
        f"clEnqueueWriteBuffer: clEnqueueWriteBuffer writes {BUFFER} while the host has it mapped for "
        "reading",
        ["mapped by clEnqueueMapBuffer"],
    ),
    "changed_too_early": (
        "clEnqueueWriteBuffer: the host changed the 4096 bytes at 0x[0-9a-f]+ that the command reads, before "
        "it knew that the command had ended",
        ["clEnqueueWriteBuffer"],
    ),
    "changed_without_mapping": (
        f"clEnqueueNDRangeKernel: the host has changed, without a mapping, the memory of {BUFFER}, made with "
        "CL_MEM_USE_HOST_PTR: commands need not see what is written without clEnqueueMapBuffer or "
        "clEnqueueMapImage",
        ["clEnqueueNDRangeKernel", "made by clCreateBuffer"],
    ),
    "given_back_too_early": (
        "clEnqueueWriteBuffer: the host gave back the 4096 bytes at 0x[0-9a-f]+ that the command reads, .*",
        ["clEnqueueWriteBuffer"],
    ),
    "refused_callback": (
        "clEnqueueWriteBuffer: the host changed the 4096 bytes at 0x[0-9a-f]+ that the command reads, .*",
        ["clEnqueueWriteBuffer"],
    ),
    "freed_too_early": (
        r"clSVMFree: an SVM allocation of 4096 bytes \(0x[0-9a-f]+\) is freed before the host knows that a "
        "command which uses it has ended: kernel 'writes'",
        ["clEnqueueNDRangeKernel", "made by clSVMAlloc"],
    ),
    "used_after_free": (
        r"clEnqueueSVMMemcpy: used after it was freed: an SVM allocation of 4096 bytes \(0x[0-9a-f]+\)",
        ["freed by clSVMFree", "made by clSVMAlloc"],
    ),
    "user_event": (
        "clReleaseEvent: the last release of a user event that was not set: .*",
        ["made by clCreateUserEvent"],
    ),
    "two_threads": (
        r"clSetKernelArg: thread \d+ is setting a kernel 'writes' \(0x[0-9a-f]+\) at the same time",
        ["made by clCreateKernel"],
    ),
}


@pytest.fixture
def told(run_client, tmp_path):
    """told(case, way): what the check mode tells of a case, a list of its reports."""

    def run(case: str, way: str, **env: str) -> list[str]:
        log = tmp_path / "log"
        variables = {"CL_DRIVER_CHECK": "1", "CL_DRIVER_LOG_FILE": str(log)} | env
        run_client("tools/misuse", case, way, env=variables, timeout=300)
        text = log.read_text() if log.exists() else ""
        return re.split(r"(?m)^cl_driver check: ", text)[1:]

    return run


@pytest.mark.parametrize("case", CASES)
def test_what_is_wrong_is_told_once(told, case):
    sentence, places = CASES[case]
    found = [report for report in told(case, "wrong") if not report.startswith("kernel ")]
    assert len(found) == 1, found
    first, _, rest = found[0].partition("\n")
    assert re.fullmatch(sentence, first)
    for place in places:
        line = (
            rf"(?m)^ +(.* )?{place}, call \d+ of the process, thread \d+, returns to misuse\+0x[0-9a-f]+.*$"
        )
        assert re.search(line, rest), (place, rest)


@pytest.mark.parametrize("case", CASES)
def test_what_is_right_is_not(told, case):
    assert told(case, "right") == []


@pytest.mark.parametrize("case", ["changed_too_early", "changed_without_mapping", "given_back_too_early"])
def test_memory_is_compared_where_process_vm_readv_is_forbidden(told, made, case):
    source = CLIENTS / "guests" / "no_process_vm_readv.c"
    preload = {"LD_PRELOAD": str(compile_c(source, made / "no_process_vm_readv.so", "-shared", "-fPIC"))}
    assert told(case, "right", **preload) == []
    (report,) = told(case, "wrong", **preload)
    assert re.match(CASES[case][0], report)


def test_the_program_is_named_behind_loaders_that_call(told, made):
    source = CLIENTS / "guests" / "calling_loader.c"
    preload = {"LD_PRELOAD": str(compile_c(source, made / "calling_loader.so", "-shared", "-fPIC"))}
    (report,) = told("user_event", "wrong", **preload)
    assert len(re.findall(r"thread \d+, returns to misuse\+0x", report)) == 2, report


def test_nothing_is_told_where_nobody_asks(told):
    assert told("left_over", "wrong", CL_DRIVER_CHECK="0") == []
