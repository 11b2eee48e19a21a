"""What CL_DRIVER_JIT_DEBUG tells debuggers and profilers of loaded kernels."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.marks import needs_kernel

HERE = Path(__file__).resolve().parent
SCRIPT = f"""
import os, sys
sys.path[:0] = [{str(HERE.parents[2])!r}]
from tests.runtime.jit.test_code_loader import compile_kernel
from tests.runtime.code_loader import Code
path = f"/tmp/perf-{{os.getpid()}}.map"
if os.path.exists(path):
    os.unlink(path)  # of a process that had this number before
data = compile_kernel("  notail call i32 @cld_printf(ptr null, ptr null, ptr null, i32 5)",
                      before="declare i32 @cld_printf(ptr, ptr, ptr, i32)")
first = Code(data)
code = Code(data)
first.unload()
code.kernel()(None, None, None, 0, 0)
if os.path.exists(path):
    print(f"{{code.address('kernel'):x}}")
    print(open(path).read())
    os.unlink(path)
code.unload()
"""


def environment(setting: str) -> dict[str, str]:
    return {**os.environ, "CL_DRIVER_JIT_DEBUG": setting}


def run(setting: str, *before: str) -> str:
    done = subprocess.run([*before, sys.executable, "-c", SCRIPT], env=environment(setting), timeout=120,
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_nothing_is_written_unasked():
    assert run("") == ""
    assert run("perfect,gdbx") == ""


@pytest.mark.parametrize("setting", ["perf", "gdb,perf"])
def test_the_map_for_perf(setting):
    address, *rows = run(setting).split("\n")
    found = [row.split() for row in rows if row]
    assert [row[2] for row in found] == ["kernel", "kernel"]
    assert found[1][0] == address and int(found[1][1], 16) > 4


@needs_kernel
@pytest.mark.skipif(not shutil.which("gdb"), reason="no gdb")
def test_gdb_names_the_kernel():
    gdb = ["gdb", "-batch", "-ex", "set breakpoint pending on", "-ex", "break cld_printf", "-ex", "run",
           "-ex", "bt 3", "--args"]  # fmt: skip
    text = run("gdb", *gdb)
    assert "#1" in text and " kernel ()" in text.split("#1")[1].split("\n")[0], text
    assert " kernel ()" not in run("", *gdb)
