"""The conda package: built by rattler-build without a channel, installed by rattler into an environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, compile_c
from tests.loader.installation.conftest import make_environment
from tests.loader.installation.pseudo_wheel import pseudo_wheel

pytestmark = [
    pytest.mark.network,
    pytest.mark.long,
    pytest.mark.skipif("CL_DRIVER_RUNTIME" in os.environ, reason="once is enough"),
]

VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"

INSTALL = """
import asyncio, os, sys
from rattler import RepoDataRecord, install
async def main():
    record = await RepoDataRecord.from_package_archive(sys.argv[1])
    print(record.name.normalized, record.version, *record.depends, sep="\\n")
    await install([record], target_prefix=sys.argv[2], cache_dir=sys.argv[3], show_progress=False)
asyncio.run(main())
sys.stdout.flush()
os._exit(0)  # its own threads may crash at the end of the process
"""


@pytest.fixture(scope="module")
def tools(tmp_path_factory) -> Path:
    """A Python that has rattler."""
    folder = tmp_path_factory.mktemp("tools")
    packages = ["py-rattler-build", "zstandard", "py-rattler"]
    command = [*make_environment(sys.executable, folder), "install", *packages]
    if subprocess.run(command, check=False, timeout=500).returncode:
        pytest.skip("rattler cannot be had here")
    return folder / "bin" / "python"


def make(tools: Path, wheel: Path, folder: Path, **env: str) -> Path:
    """The package for this Python, made below a folder."""
    script = ROOT / "native_shim" / "conda_package.py"
    (folder / "temporary").mkdir()
    env = os.environ | {"TMPDIR": str(folder / "temporary")} | env
    command = [tools, script, wheel, folder / "channel", VERSION]
    subprocess.run(list(map(str, command)), check=True, timeout=300, stdout=subprocess.DEVNULL, env=env)
    (package,) = (folder / "channel" / "linux-64").iterdir()
    assert package.name == f"cl_driver-1.2.3-py{VERSION.replace('.', '')}_0.conda"
    return package


@pytest.mark.release
def test_the_same_wheel_makes_the_same_bytes(tools, tmp_path):
    """Whatever the folder and the time, both of which rattler-build writes into what it makes."""
    wheel = pseudo_wheel(tmp_path)
    packages = []
    for folder in (tmp_path / "a", tmp_path / "elsewhere"):
        folder.mkdir()
        packages.append(make(tools, wheel, folder, SOURCE_DATE_EPOCH="1700000000"))
    first, second = (package.read_bytes() for package in packages)
    assert first == second
    assert str(tmp_path).encode() not in first


def test_it_is_seen_in_its_environment(tools, variables, tmp_path):
    package = make(tools, pseudo_wheel(tmp_path), tmp_path)

    # What it depends on is in no channel here: the environment has it from elsewhere.
    prefix = tmp_path / "environment"
    command = [*make_environment(sys.executable, prefix), "install", "cffi", "llvmlite"]
    subprocess.run(command, check=True)
    before = {path for path in prefix.rglob("*") if path.is_file()}
    command = [tools, "-c", INSTALL, package, prefix, tmp_path / "cache"]
    done = subprocess.run(list(map(str, command)), text=True, capture_output=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    name, number, *depends = done.stdout.splitlines()
    assert (name, number) == ("cl_driver", "1.2.3") and f"python {VERSION}.*" in depends

    vendors = prefix / "etc" / "OpenCL" / "vendors"
    library = prefix / "lib" / f"python{VERSION}" / "site-packages/cl_driver/_native/libcl_driver.so"
    assert (vendors / "cl_driver.icd").read_text() == f"{library}\n" and library.is_file()
    new = {path for path in prefix.rglob("*") if path.is_file()} - before
    assert not [
        path
        for path in new
        if b"placehold_placehold" in path.read_bytes() and path.parent.name != "conda-meta"
    ]
    env = {k: v for k, v in variables.items() if k != "PYTHONPATH"} | {"OCL_ICD_VENDORS": f"{vendors}/"}
    demo = compile_c(ROOT / "icd" / "demo.c", tmp_path / "demo", "-lOpenCL")
    done = subprocess.run([str(demo)], env=env, text=True, capture_output=True, check=False, timeout=60)
    assert "all right" in done.stdout, done.stderr
    command = [str(prefix / "bin" / "cl-driver"), "doctor"]
    done = subprocess.run(command, env=env, text=True, capture_output=True, check=False, cwd="/", timeout=60)
    assert done.stdout.endswith("Nothing is wrong.\n"), done.stdout + done.stderr
