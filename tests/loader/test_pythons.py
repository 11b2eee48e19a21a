"""Hosts that are Pythons: the one that the driver was built for, and every other one of this machine."""

from __future__ import annotations

import functools
import glob
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from native_shim.gen import embed
from tests.conftest import ROOT
from tests.marks import few

HOST = Path(__file__).parent / "py" / "host.py"


@functools.cache
def interpreters() -> dict[str, str]:
    """Version: an interpreter of it, of the folders where this machine keeps them."""
    patterns = (
        "/usr/bin/python[23]*",
        "/usr/local/bin/python[23]*",
        "~/.pyenv/versions/*/bin/python",
        "/opt/python/*/bin/python",
    )
    found = {".".join(map(str, sys.version_info[:3])): sys.executable}
    for pattern in patterns:
        for path in sorted(glob.glob(os.path.expanduser(pattern))):
            if not re.search(r"python[\d.]*$", path) or not os.access(path, os.X_OK):
                continue
            code = "import sys, ctypes; print('%d.%d.%d' % sys.version_info[:3])"
            done = subprocess.run([path, "-c", code], capture_output=True, text=True, check=False)
            if done.returncode == 0:
                found.setdefault(done.stdout.strip(), path)
    return found


VERSIONS = sorted(interpreters(), key=lambda version: [int(part) for part in version.split(".")])
SAME = [v for v in VERSIONS if v.rsplit(".", 1)[0] == ".".join(map(str, sys.version_info[:2]))]
OTHER = [v for v in VERSIONS if v not in SAME]
# The one that is joined, the newest and the oldest, then what is between.
MOST_DIFFERENT = sorted(VERSIONS, key=lambda v: v not in (SAME[0], VERSIONS[-1], VERSIONS[0]))


@pytest.fixture
def run_python(ocl_icd, variables):
    """run_python(version, scene, times): the finished process, which succeeded and printed nothing."""

    def run(
        version: str, scene: str, times: int = 3, script: Path = HOST, **env: str
    ) -> subprocess.CompletedProcess:
        # CPython itself warns of fork in a process with threads, which ours has.
        command = [interpreters()[version], "-W", "ignore", str(script), str(ocl_icd), scene, str(times)]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=120, check=False, env=variables | env
        )
        assert done.returncode == 0, f"{version} {scene}: {done.returncode}\n{done.stderr}"
        if not env:
            assert done.stdout == done.stderr == ""
        return done

    return run


SCENES = [
    "use",
    "fork",
    "threads",
    "leak",
    "interrupt",
    "clean",
    "use_gil",
    "threads_gil",
    "fork_gil",
    "use_capsule",
    "threads_gil_capsule",
]


@pytest.mark.parametrize("scene", [*SCENES, "waits"])
@pytest.mark.parametrize("version", few(MOST_DIFFERENT, 3))
def test_host(run_python, version, scene):
    run_python(version, scene)


@pytest.mark.parametrize("scene", SCENES)
def test_host_that_is_joined(run_python, scene):
    """All but `waits`: such a host cannot do with one GIL."""
    run_python(SAME[0], scene, CL_DRIVER_RUNTIME="embedded")


@pytest.mark.parametrize("version", few(MOST_DIFFERENT, 3))
def test_which_python_serves(run_python, version):
    """A runtime process, which no GIL keeps waiting; the host's own where that is insisted on."""
    done = run_python(version, "use", CL_DRIVER_LOG="calls")
    assert "Python is a process" in done.stderr
    if version in SAME:
        done = run_python(version, "use", CL_DRIVER_LOG="calls", CL_DRIVER_RUNTIME="embedded")
        assert "Python is the host's" in done.stderr


@pytest.mark.parametrize("forks", [False, True])
def test_joined_where_no_process_can_be_started(run_python, variables, tmp_path, no_clone, forks):
    if variables.get("CL_DRIVER_RUNTIME") == "process":
        pytest.skip("then no other way is tried")
    _copy_driver(variables, tmp_path)
    conf = tmp_path / "lib" / "cl_driver.conf"
    conf.write_text(re.sub(r"(?m)^python=.*", "python=/nonexistent/python", conf.read_text()))
    env = {"OCL_ICD_VENDORS": f"{tmp_path}/vendors/", "CL_DRIVER_LOG": "calls"} | (no_clone if forks else {})
    done = run_python(SAME[0], "use", **env)
    assert "error 2\n" in done.stderr  # ENOENT
    assert "Python is a process" in done.stderr and "Python is the host's" in done.stderr


def _copy_driver(variables, folder: Path) -> Path:
    """Copies the driver to folder/lib, for loaders with folder/vendors. Returns the original."""
    (folder / "lib").mkdir()
    (folder / "vendors").mkdir()
    first = Path(next(Path(variables["OCL_ICD_VENDORS"]).glob("*.icd")).read_text().strip())
    for file in first.parent.iterdir():
        (folder / "lib" / file.name).write_bytes(file.read_bytes())
    conf = folder / "lib" / "cl_driver.conf"
    if "python=" not in conf.read_text():  # a package's, found by where it was
        site = str(first.resolve().parents[2])
        conf.write_text(embed.configuration(conf.parent).replace(str(ROOT), site))
    (folder / "vendors" / "b.icd").write_text(f"{folder / 'lib' / first.name}\n")
    return first


def test_a_compiler_that_ends_at_once(client, environment, tmp_path):
    """Its host reads so, whatever it was about to send, and lives on."""
    _copy_driver(environment, tmp_path)
    conf = tmp_path / "lib" / "cl_driver.conf"
    conf.write_text(re.sub(r"(?m)^python=.*", "python=/bin/true", conf.read_text()))
    own = {"OCL_ICD_VENDORS": f"{tmp_path}/vendors/", "CL_DRIVER_CACHE_SIZE": "0", "CL_DRIVER_LOG": "errors"}
    for _ in range(8):
        done = subprocess.run(
            [client("debugger")], capture_output=True, text=True, timeout=60, check=False,
            env=environment | own | {"CL_DRIVER_RUNTIME": "embedded"},
        )  # fmt: skip
        assert done.returncode == 1 and "compiler" in done.stderr, done


def test_no_embedding_for_this_python(run_python, variables, ocl_icd, tmp_path):
    """As in a wheel whose builder had no headers of it: a process serves, which is no error."""
    _copy_driver(variables, tmp_path)
    for file in (tmp_path / "lib").glob("_cl_driver_embed-*.so"):
        file.unlink()
    env = {"OCL_ICD_VENDORS": f"{tmp_path}/vendors/"}
    done = run_python(SAME[0], "use", CL_DRIVER_LOG="errors", **env)
    assert done.stdout == done.stderr == ""
    command = [interpreters()[SAME[0]], str(HOST), str(ocl_icd), "use"]
    env |= {"CL_DRIVER_RUNTIME": "embedded", "CL_DRIVER_LOG": "errors"}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, env=variables | env
    )
    assert done.returncode == 1
    assert "no embedding for Python" in done.stderr and "cannot be joined" in done.stderr


@pytest.mark.parametrize("scene", ["own_modules", "own_modules_first"])
@pytest.mark.parametrize("version", few(MOST_DIFFERENT, 3))
def test_modules_of_the_hosts_with_our_names(run_python, tmp_path, version, scene):
    """Neither does the driver import them, nor do imports of the host get the driver's."""
    script = tmp_path / "host.py"
    script.write_text(HOST.read_text())
    for name in ("cl_driver", "_cffi_backend", "cffi", "llvmlite", "_cl_driver_embed"):
        (tmp_path / f"{name}.py").write_text(
            "import sys\nimports = getattr(sys, 'imports_of_' + __name__, 0) + 1\n"
            "setattr(sys, 'imports_of_' + __name__, imports)\n"
        )
    run_python(version, scene, script=script)


@pytest.mark.parametrize("version", few(MOST_DIFFERENT, 3))
def test_scripts_named_like_the_standard_library(run_python, variables, tmp_path, version):
    """A host that imports none of them must not get them executed."""
    script = tmp_path / "host.py"
    script.write_text(HOST.read_text())
    for name in ("hashlib", "select", "socket", "fcntl", "_blake2"):
        (tmp_path / f"{name}.py").write_text("import os\nos.write(2, b'imported')\nos._exit(3)\n")
    run_python(version, "use", script=script, CL_DRIVER_CACHE_SIZE="0")


@pytest.mark.parametrize("version", few(MOST_DIFFERENT, 3))
def test_two_drivers_in_one_python(run_python, variables, tmp_path, version):
    """Each has its own control plane, of its own build."""
    first = _copy_driver(variables, tmp_path)
    (tmp_path / "vendors" / "a.icd").write_text(f"{first}\n")
    env = {"OCL_ICD_VENDORS": f"{tmp_path}/vendors/", "CL_DRIVER_LOG": "calls"}
    done = run_python(version, "two_drivers", **env)
    assert done.stderr.count("Python is a process") == 2
    if version in SAME:
        done = run_python(version, "two_drivers", CL_DRIVER_RUNTIME="embedded", **env)
        assert done.stderr.count("Python is the host's") == 2


@pytest.mark.parametrize("arguments", [[], ["thread"]])
@pytest.mark.parametrize("runtime", ["embedded", "process"])
@pytest.mark.parametrize("version", SAME)
def test_sub_interpreters(ocl_icd, variables, version, runtime, arguments):
    """PyGILState_Check answers for nothing once there are some, PyGILState_Ensure leads to others."""
    script = str(HOST.parent / "sub_interpreter.py")  # newer Pythons warn of what it leaves
    command = [interpreters()[version], "-W", "ignore", script, str(ocl_icd), *arguments]
    env = variables | {"CL_DRIVER_RUNTIME": runtime}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=env)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.long
@pytest.mark.parametrize("version", [SAME[0], *OTHER[-1:]])
def test_twenty_times(run_python, version):
    for _ in range(20):
        run_python(version, "leak")
        run_python(version, "fork", 1)


@pytest.mark.network
@pytest.mark.parametrize(
    "version", [SAME[0], *(pytest.param(v, marks=pytest.mark.release) for v in OTHER[-1:])]
)
def test_pyopencl_twenty_times(variables, made, version):
    """PyOpenCL, whose wheel brings an ICD loader of its own; with fork."""
    folder = made / f"pyopencl-{version}"
    python = folder / "bin" / "python"
    if not (folder / ".made").exists():
        subprocess.run([interpreters()[version], "-m", "venv", str(folder)], check=True)
        packages = ["pyopencl>=2024.1", "numpy"]
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *packages], check=True, timeout=500)
        (folder / ".made").touch()
    for _ in range(20):
        command = [str(python), "-W", "ignore", str(HOST.parent / "pyopencl_host.py")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=variables)
        assert done.returncode == 0, done.stderr
        assert done.stdout == f"cl_driver {version.rsplit('.', 1)[0]}\n"
        assert done.stderr == ""


def test_embedding_may_be_insisted_on(ocl_icd, variables):
    """In a Python of another version `embedded` cannot be had: calls fail, and say why in the log."""
    if not OTHER:
        pytest.skip("this machine has one version of Python")
    command = [interpreters()[OTHER[-1]], str(HOST), str(ocl_icd), "use"]
    env = variables | {"CL_DRIVER_RUNTIME": "embedded", "CL_DRIVER_LOG": "errors"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=env)
    assert done.returncode == 1
    assert "OpenCL error -6" in done.stderr
    assert "cannot be joined" in done.stderr
