"""Clusters with TLS: certificates are those of Dask's configuration, and a host without the right ones has no
device of them."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

from .conftest import Cluster, running

TIMEOUT = 5

# The platform has this machine's device alone.
ALONE = (
    "from tests.loader.opencl import OpenCL; import ctypes; c = OpenCL('libOpenCL.so.1'); "
    "n = ctypes.c_uint32(); c.ok('clGetDeviceIDs', c.platform(), 0xFFFFFFFF, 0, None, n); "
    "assert n.value == 1, n.value"
)


def credentials(folder: Path, name: str, *roles: str) -> dict[str, str]:
    """Dask's configuration of some roles with a new certificate, which is its own authority, as that of
    distributed.Security.temporary() is: as environment variables."""
    key, certificate = str(folder / f"{name}.key"), str(folder / f"{name}.pem")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        + ["-days", "1", "-subj", f"/CN={name}", "-keyout", key, "-out", certificate],
        check=True,
        capture_output=True,
    )
    prefix = "DASK_DISTRIBUTED__COMM__TLS__"
    found = {f"{prefix}CA_FILE": certificate}
    for role in roles:
        found |= {f"{prefix}{role}__CERT": certificate, f"{prefix}{role}__KEY": key}
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    if not shutil.which("openssl"):
        pytest.skip("needs openssl")
    return tmp_path_factory.mktemp("certificates")


@pytest.fixture(scope="module")
def secure(distributed, environment, folder) -> Iterator[Cluster]:
    """A cluster with TLS; its environment has the certificates."""
    ours = credentials(folder, "ours", "SCHEDULER", "WORKER", "CLIENT")
    with running(environment | ours, "2", "--tls") as cluster:
        assert cluster.address.startswith("tls://")
        yield cluster


@pytest.mark.parametrize("scene", [("mixed",), ("passed",)])
def test_programs(secure, scene):
    """passed: contents that go from worker to worker, as others' certificates are theirs, too."""
    secure.run(*scene, module="ranges" if scene == ("passed",) else "host")


def intruder(secure: Cluster, folder: Path, kind: str) -> dict[str, str]:
    """The environment of a host that is none of the cluster's."""
    without = {name: text for name, text in secure.environment.items() if not name.startswith("DASK_")}
    match kind:
        case "no certificate":
            return without
        case "another authority":
            return without | credentials(folder, "other", "CLIENT")
        case "another certificate":  # it knows whom to trust, but is not trusted
            ours = {name: text for name, text in secure.environment.items() if name.endswith("CA_FILE")}
            return without | credentials(folder, "third", "CLIENT") | ours
        case _:
            return secure.environment | {"CL_DRIVER_CLUSTER": secure.address.replace("tls://", "tcp://")}


@pytest.mark.parametrize(
    "kind, why",
    [
        ("no certificate", "distributed.comm.tls.client"),
        ("another authority", "certificate"),
        ("another certificate", "distributed.comm.tls.client"),
        ("no TLS", "if it wants TLS, its address begins with tls://"),
    ],
)
def test_who_is_refused(secure, folder, tmp_path, kind, why):
    log = tmp_path / "log"
    environment = intruder(secure, folder, kind) | {
        "CL_DRIVER_CLUSTER_TIMEOUT": str(TIMEOUT),
        "CL_DRIVER_LOG": "errors",
        "CL_DRIVER_LOG_FILE": str(log),
    }
    start = time.monotonic()
    host = subprocess.run(
        [sys.executable, "-c", ALONE], cwd=ROOT, env=environment, capture_output=True, check=True, timeout=60
    )
    assert not host.stdout and not host.stderr  # a program sees nothing of it, unless it asks
    assert time.monotonic() - start < 6 * TIMEOUT
    text = log.read_text()
    assert f"cluster: no scheduler at {environment['CL_DRIVER_CLUSTER']}: " in text
    assert why in text and "Traceback" not in text
    address = environment["CL_DRIVER_CLUSTER"]
    done = subprocess.run(
        [sys.executable, "-m", "cl_driver.cli", "cluster", address],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1 and not done.stdout
    assert f"cl-driver cluster: no scheduler at {address}: " in done.stderr
    assert why in done.stderr and "Traceback" not in done.stderr
