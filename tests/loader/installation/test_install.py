"""pip install . into a fresh environment: the same shim, inside of the package."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.loader.installation.conftest import make_environment, make_sdist

pytestmark = pytest.mark.network

PYOPENCL = """
import numpy, pyopencl
(platform,) = (p for p in pyopencl.get_platforms() if p.name == "cl_driver")
context = pyopencl.Context(platform.get_devices())
queue = pyopencl.CommandQueue(context)
values = numpy.arange(4, dtype=numpy.float32)
buffer = pyopencl.Buffer(context, pyopencl.mem_flags.COPY_HOST_PTR, hostbuf=values)
source = "kernel void twice(global float *x) { x[get_global_id(0)] *= 2; }"
pyopencl.Program(context, source).build().twice(queue, (4,), None, buffer)
pyopencl.enqueue_copy(queue, values, buffer)
print(values.tolist())
"""


@pytest.mark.skipif("CL_DRIVER_RUNTIME" in os.environ, reason="once is enough: both modes are tried below")
def test_pip_install(run_client, variables, tmp_path):
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    tree, prefix = tmp_path / "tree", tmp_path / "venv"
    tree.mkdir()
    there = b"\0".join(name for name in files.split(b"\0") if name and (ROOT / os.fsdecode(name)).exists())
    subprocess.run(
        ["tar", "-c", "--null", "-T", "-", "-f", str(tmp_path / "x.tar")], cwd=ROOT, input=there, check=True
    )
    subprocess.run(["tar", "-x", "-f", str(tmp_path / "x.tar"), "-C", str(tree)], check=True)

    # By way of an sdist, which has to hold all that a wheel is built from.
    sdist = make_sdist(tree, tmp_path)
    pip = make_environment(sys.executable, prefix)
    quick = os.environ | {"CFLAGS": "-O0"}  # dist's wheel is the one that is compiled as users have it
    subprocess.run([*pip, "install", str(sdist)], check=True, timeout=500, env=quick)
    left = {p.name for p in (tree / "cl_driver").iterdir()}
    assert "_native" not in left  # the source tree is as it was
    # What the build makes with clang, and a compiler process would make again otherwise.
    native = next(prefix.glob("lib/python*/site-packages/cl_driver/_native"))
    assert os.access(native / "_cl_driver_holder", os.X_OK)
    assert list(native.glob("corrections-*.bc")) and (native / "builtins.spv").exists()
    assert (native / "builtins.places").exists()
    assert (native / "cl_driver.conf").read_text() == "path=../..\n"  # of nothing that is elsewhere

    env = {k: v for k, v in variables.items() if k != "OCL_ICD_VENDORS"}
    cli = str(prefix / "bin" / "cl-driver")
    done = subprocess.run([cli, "install"], capture_output=True, text=True, env=env, check=True, cwd="/")
    vendors = prefix / "etc" / "OpenCL" / "vendors"
    assert str(vendors) in done.stdout
    subprocess.run(["rm", "-rf", str(tree)], check=True)  # nothing of it is needed any more
    env["OCL_ICD_VENDORS"] = f"{vendors}/"
    done = subprocess.run([cli, "doctor"], capture_output=True, text=True, env=env, check=False, cwd="/")
    assert done.stdout.endswith("\nNothing is wrong.\n"), done.stdout
    for mode in ("embedded", "process"):
        settings = {"OCL_ICD_VENDORS": f"{vendors}/", "CL_DRIVER_RUNTIME": mode, "CL_DRIVER_CACHE_SIZE": "0"}
        done = run_client("guests/process", "quiet", env=settings)
        assert done.stdout == done.stderr == ""
    subprocess.run([cli, "uninstall"], capture_output=True, env=env, check=True, cwd="/")
    assert list(vendors.iterdir()) == []

    python = str(prefix / "bin" / "python")
    subprocess.run([*pip, "install", "pyopencl"], check=True, timeout=500)
    del env["OCL_ICD_VENDORS"]
    done = subprocess.run(
        [python, "-c", PYOPENCL], capture_output=True, text=True, env=env, check=False, cwd="/"
    )
    assert done.stdout == "[0.0, 2.0, 4.0, 6.0]\n", done.stderr
    done = subprocess.run([cli, "status"], capture_output=True, text=True, env=env, check=False, cwd="/")
    assert "pyopencl/.libs: registered (read by PyOpenCL's own loader)" in done.stdout
    subprocess.run([*pip, "uninstall", "--yes", "cl_driver"], check=True, timeout=100)
    assert [path for path in prefix.rglob("*") if "cl_driver" in path.name or "cl-driver" in path.name] == []
