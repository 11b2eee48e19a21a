"""Memory objects in the check mode: what commands write and copy, sub-buffers, flags, SVM."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.loader.check import objects

SILENT = [
    "written", "filled", "mapped", "copied", "written_by_kernel", "host_pointer", "svm_right",
    "pixels_inside", "shift_in_range", "constant_memory",
]  # fmt: skip
BUFFER = "memory, argument 'from', which has 64 bytes (allocation #, made by clCreateBuffer)"


def read(what: str, item: int, where: str, times: int) -> str:
    """The report on the read of COPY."""
    text = f"""cl_driver check: kernel 'k': read of 4 bytes {what}
  at program.cl:1:91
    {objects.COPY}
{" " * 94}^
  by work-item ({item}, 0, 0), group (0, 0, 0), local id ({item}, 0, 0)
  at byte {4 * item} of global {where}
"""
    return text + (f"  {times} times in this launch\n" if times > 1 else "")


def write(what: str, item: int, where: str, times: int) -> str:
    """The report on the write of SET."""
    text = f"""cl_driver check: kernel 'k': write of 4 bytes {what}
  at program.cl:1:54
    {objects.SET}
{" " * 57}^
  by work-item ({item}, 0, 0), group (0, 0, 0), local id ({item}, 0, 0)
  at byte {4 * item} of global {where}
"""
    return text + (f"  {times} times in this launch\n" if times > 1 else "")


OUTSIDE = "outside of an image of 16 x 4 pixels"


def read_pixel(x: int, item: int, times: int) -> str:
    """The report on the read without a sampler of PIXELS."""
    line = objects.PIXELS.splitlines()[4]
    text = f"""cl_driver check: kernel 'k': read at ({x}, 3), {OUTSIDE}, argument 'from'
  at program.cl:5:18
    {line}
    {" " * 17}^
  by work-item ({item}, 0, 0), group (0, 0, 0), local id ({item}, 0, 0)
"""
    return text + (f"  {times} times in this launch\n" if times > 1 else "")


LAYER = f"""cl_driver check: kernel 'k': write at (0, 3, 2), {OUTSIDE} and 2 layers, argument 'to'
  at program.cl:6:3
    {objects.PIXELS.splitlines()[5]}
      ^
  by work-item (0, 0, 0), group (0, 0, 0), local id (0, 0, 0)
  16 times in this launch
"""
CONSTANT = f"""cl_driver check: kernel 'k': write of 4 bytes of constant memory, which a kernel may not change
  at program.cl:4:23
    {objects.SCALE.splitlines()[3]}
    {" " * 22}^
  by work-item (0, 0, 0), group (0, 0, 0), local id (0, 0, 0)
  at byte 0 of global memory, argument 'again', which has 1024 bytes (allocation #, made by clCreateBuffer)
  3 times in this launch
"""
SHIFT = """cl_driver check: kernel 'k': shift of 32 bits by 32
  (no line known)
  by work-item (12, 0, 0), group (0, 0, 0), local id (12, 0, 0)
  4 times in this launch
"""
UNWRITTEN = "that nobody has written"
SVM = "memory, argument 'to', which has {} bytes (allocation #, made by clSVMAlloc)"
TOLD = {
    "unwritten": read(UNWRITTEN, 0, BUFFER, 16),
    "written_in_part": read(UNWRITTEN, 8, BUFFER, 8),
    "copied_unwritten": read(UNWRITTEN, 0, BUFFER, 16),
    "sub_buffer": read("out of bounds", 15, BUFFER.replace("64", "60"), 1),
    "read_only": write("of a buffer that is read-only", 0, BUFFER.replace("from", "to"), 16),
    "read_only_written": write("of a buffer that is read-only", 0, BUFFER.replace("from", "to"), 16),
    "read_only_outside": write("of a buffer that is read-only", 0, BUFFER.replace("from", "to"), 16)
    + write("out of bounds", 16, BUFFER.replace("from", "to"), 16),
    "write_only": read("of a buffer that is write-only", 0, BUFFER, 16),
    "svm_too_short": write("out of bounds", 15, SVM.format(60), 1),
    "pixel_outside": read_pixel(16, 14, 2),
    "pixel_before": read_pixel(-1, 0, 1),
    "layer_outside": LAYER,
    "constant_written": CONSTANT,
    "shift_by_more": SHIFT,
    "svm_freed": write("of memory that was freed", 0, SVM.format(64), 16),
}


@pytest.fixture(scope="module")
def found(variables, ocl_icd, tmp_path_factory):
    log = tmp_path_factory.mktemp("check") / "log"
    more = {"CL_DRIVER_CHECK": "1", "CL_DRIVER_LOG_FILE": str(log), "CL_DRIVER_THREADS": "1"}
    command = [sys.executable, "-m", "tests.loader.check.objects", str(ocl_icd)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=600, cwd=ROOT, env=variables | more
    )
    assert done.returncode == 0, done.stderr
    return {
        name: re.sub(r"allocation \d+", "allocation #", text)
        for name, text in json.loads(done.stdout).items()
    }


@pytest.mark.parametrize("name", SILENT)
def test_no_report(found, name):
    assert found[name] == ""


@pytest.mark.parametrize("name", TOLD)
def test_report(found, name):
    assert found[name] == TOLD[name]


def test_told_once(found):
    assert found["told_once"].count("out of bounds") == 1
    assert set(found) == {*SILENT, *TOLD, "told_once"}
