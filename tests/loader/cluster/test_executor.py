"""The executor of workers, and hosts without a cluster: needs no Dask. executing.py has the scenes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT


def run(environment, *arguments, **more):
    subprocess.run([sys.executable, *arguments], cwd=ROOT, env=environment | more, check=True, timeout=300)


@pytest.mark.parametrize(
    "scene", ["commands", "parts", "images", "errors", "bundles", "nonsense", "transfers", "much"]
)
def test_scene(environment, scene):
    run(environment, "-m", "tests.loader.cluster.executing", scene)


HOST = """
import sys
from tests.loader.opencl import OpenCL
host = OpenCL("libOpenCL.so.1")
context = host.context()
program = host.program(context, "kernel void k(global int *x) { x[get_global_id(0)] = 1; }")
host.build(program)
loaded = {name.partition(".")[0] for name in sys.modules} | set(sys.modules)
assert not loaded & {"distributed", "dask", "tornado", "cl_driver.cluster"}, loaded
"""


@pytest.mark.parametrize("runtime", ["process", "embedded"])
def test_without_cluster(environment, tmp_path, runtime):
    """Without the variable no process connects with anything, and nothing of Dask is imported."""
    mark, python = tmp_path / "started", tmp_path / "python"
    python.write_text(f"#!/bin/sh\necho >> {mark}\n")
    os.chmod(python, 0o755)
    more = {"CL_DRIVER_CLUSTER_PYTHON": str(python), "CL_DRIVER_RUNTIME": runtime}
    run(environment, "-c", HOST, **more)
    assert not mark.exists()
    run(environment, "-c", HOST, **more, CL_DRIVER_CLUSTER="tcp://127.0.0.1:1", CL_DRIVER_CLUSTER_TIMEOUT="1")
    assert mark.exists()
