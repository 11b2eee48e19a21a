"""Programs on the devices of a cluster. host.py has the scenes."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from tests.conftest import ROOT

SCENES = ("refusals", "buffers", "kernels", "order", "failures", "profiling", "mixed", "halves")


@pytest.mark.parametrize("scene", SCENES)
def test_scene(cluster, scene):
    cluster.run(scene)


def test_devices(cluster):
    names = cluster.run("devices").splitlines()
    assert len(names) == 2
    assert all(name.startswith(f"{socket.gethostname()}, 1 core: ") for name in names)


@pytest.mark.parametrize("runtime", ["process", "embedded"])
def test_runtime(cluster, runtime):
    """Where the control plane runs makes no difference; in the host's Python it is a part of that."""
    cluster.run("kernels", CL_DRIVER_RUNTIME=runtime)


def test_traced(cluster, tmp_path):
    """An observer of commands sees those of workers."""
    cluster.run("order", CL_DRIVER_TRACE=str(tmp_path / "trace"))
    assert (tmp_path / "trace").stat().st_size


def test_command(cluster):
    done = subprocess.run(
        [sys.executable, "-m", "cl_driver.cli", "cluster"],
        cwd=ROOT,
        env=cluster.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    first, *lines = done.stdout.splitlines()
    assert cluster.address in first
    assert len(lines) == 6
    assert all(" us, " in line for line in lines[2::3])


def test_no_cluster(cluster, environment):
    """An address where there is nothing: the platform is as without one."""
    program = (
        "from tests.loader.opencl import OpenCL; import ctypes; c = OpenCL('libOpenCL.so.1'); "
        "n = ctypes.c_uint32(); c.ok('clGetDeviceIDs', c.platform(), 0xFFFFFFFF, 0, None, n); "
        "assert n.value == 1"
    )
    nowhere = {"CL_DRIVER_CLUSTER": "tcp://127.0.0.1:1", "CL_DRIVER_CLUSTER_TIMEOUT": "2"}
    for more in (nowhere, nowhere | {"CL_DRIVER_CLUSTER_PYTHON": "/nowhere/python"}):
        environment_now = cluster.environment | more
        subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=environment_now, check=True, timeout=60)
