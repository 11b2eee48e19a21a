"""Through an ICD loader, as programs reach the driver: compiled C clients (c/*.c), other Pythons, tools."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.conftest import PATIENCE, ROOT, compile_c

CLIENTS = Path(__file__).parent / "c"

# make sanitize: which build of the shim the clients get, and how they are compiled themselves.
SANITIZE = os.environ.get("CL_DRIVER_TEST_SANITIZE", "")


@pytest.fixture(scope="session")
def ocl_icd() -> Path:
    """Debian's loader."""
    listed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"libOpenCL\.so\.1 .*=> (\S+)", listed)
    assert found, "Debian's ocl-icd-libopencl1 is not installed"
    return Path(found[1]).resolve()


def extract(folder: Path, library: str, target: Path) -> None:
    """Takes one file out of whichever wheel of the folder has it."""
    for wheel in folder.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if name.endswith(f"/lib/{library}"):
                    fresh = target.with_suffix(f".{os.getpid()}")
                    fresh.write_bytes(archive.read(name))
                    fresh.replace(target)
                    return
    raise FileNotFoundError(library)


@pytest.fixture(scope="session")
def khronos(made) -> Path:
    """The Khronos loader, out of a package of PyPI that carries one, with the libraries that it needs."""
    loader = made / "khronos" / "libOpenCL.so.1"
    if not loader.exists():
        if platform.machine() != "x86_64":
            pytest.skip("intel-opencl-rt, where the loader comes from, is for x86-64")
        folder = made / "download"
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder)]
        subprocess.run([*command, "intel-opencl-rt", "intel-cmplr-lib-rt"], check=True, timeout=500)
        loader.parent.mkdir(parents=True, exist_ok=True)
        for library in ("libsvml.so", "libirng.so", "libimf.so", "libintlc.so.5", "libOpenCL.so.1"):
            extract(folder, library, loader.parent / library)
    return loader


@pytest.fixture(params=["ocl_icd", "khronos"])
def loader(request) -> Path:
    """Each of the two loaders."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="session")
def client(made):
    """client(name): the compiled program of c/<name>.c, linked to libOpenCL."""
    folder = made / f"clients{'-' + SANITIZE if SANITIZE else ''}"
    folder.mkdir(parents=True, exist_ok=True)

    def compiled(name: str, *options: str) -> Path:
        flags = [f"-fsanitize={SANITIZE}"] if SANITIZE else []
        target = folder / name
        target.parent.mkdir(exist_ok=True)
        return compile_c(
            CLIENTS / f"{name}.c",
            target,
            f"-I{CLIENTS}",
            "-pthread",
            *flags,
            *options,
            "-lOpenCL",
            "-ldl",
            "-lm",
        )

    return compiled


@pytest.fixture(scope="session")
def no_clone(made) -> dict[str, str]:
    """Variables of a program whose children share no memory with it and end with SIGCHLD, as under qemu."""
    source = CLIENTS / "guests" / "no_clone.c"
    return {"LD_PRELOAD": str(compile_c(source, made / "no_clone.so", "-shared", "-fPIC", "-ldl"))}


@pytest.fixture(scope="session")
def variables(environment, made) -> dict[str, str]:
    """The environment of programs under test; under make sanitize, with the sanitized build of the shim."""
    if not SANITIZE:
        return environment
    vendors = made / f"vendors-{SANITIZE}"
    vendors.mkdir(exist_ok=True)
    (vendors / "cl_driver.icd").write_text(f"{ROOT}/build/lib-{SANITIZE}/libcl_driver.so\n")
    # No leak check: handles are leaked at exit on purpose. The control plane has its own process, since
    # sanitizers do not go with a Python that was built without.
    options = {
        "CL_DRIVER_RUNTIME": "process",
        "OCL_ICD_VENDORS": f"{vendors}/",
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1",
        "TSAN_OPTIONS": "halt_on_error=1:abort_on_error=1:second_deadlock_stack=1:suppressions="
        + str(Path(__file__).parent / "c" / "thread_sanitizer.supp"),
    }
    return environment | options


@pytest.fixture(scope="session")
def run_client(client, variables):
    """run_client(name, *arguments, loader=None, env={}, timeout=60): runs c/<name>.c.

    A client exits with 0 or says what is wrong; returns the finished process. loader: the libOpenCL.so.1 to
    use; Debian's without. env: variables besides; a value of None removes one. timeout: in seconds, for
    CL_DRIVER_TEST_PATIENCE=1.
    """

    def run(
        name: str,
        *arguments,
        loader: Path | None = None,
        env: Mapping[str, str | None] | None = None,
        timeout: float = 60,
        check: bool = True,
    ) -> subprocess.CompletedProcess:
        full = dict(variables)
        if loader:
            full["LD_LIBRARY_PATH"] = str(loader.parent)
        for key, value in (env or {}).items():
            full.pop(key, None)
            if value is not None:
                full[key] = value
        command = [str(client(name)), *map(str, arguments)]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=timeout * PATIENCE,
            check=False,
            env=full,
            stdin=subprocess.DEVNULL,
        )
        if check:
            assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    return run


@pytest.fixture(scope="session")
def opencl(environment, ocl_icd):
    """The driver in this process, through ctypes: see opencl.py."""
    from tests.loader.opencl import OpenCL

    os.environ.update(environment)
    return OpenCL(str(ocl_icd))
