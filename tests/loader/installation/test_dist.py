"""make dist: wheels that work in every Python of this machine, where there is no compiler, no LLVM but that
of the dependencies, and nothing of the tree that they were made in."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from cl_driver.frontend import find_clang
from tests.conftest import ROOT
from tests.loader.installation.conftest import clone, make_environment, make_sdist
from tests.loader.test_pythons import interpreters

pytestmark = [
    pytest.mark.network,
    pytest.mark.skipif("CL_DRIVER_RUNTIME" in os.environ, reason="both ways are tried here"),
]

VERSIONS = {v: path for v, path in interpreters().items() if tuple(map(int, v.split(".")))[:2] >= (3, 11)}
GLIBC = (2, 28)
SIZE = 1_600_000  # bytes

KERNEL = (
    "kernel void saxpy(global float *y, global const float *x, float a) {\n"
    "  size_t i = get_global_id(0); y[i] += a * x[i];\n}\n"
)

# Runs the command in a namespace in which what compiles, and LLVM, are empty files, and folders are empty.
BARE = """
set -e
for file in /usr/bin/*clang* /usr/bin/*gcc* /usr/bin/cc /usr/bin/c++ /usr/bin/*-ld /usr/bin/ld /usr/bin/as \
  /usr/lib/*/libLLVM*.so* /usr/lib/*/libclang*.so*; do
  if [ -f "$file" ]; then mount --bind /dev/null "$file"; fi
done
for folder in /usr/lib/llvm-* "$HIDDEN"; do
  if [ -d "$folder" ]; then mount -t tmpfs none "$folder"; fi
done
cd /
exec "$@"
"""

SAXPY = """
import ctypes as c, sys
cl = c.CDLL(sys.argv[1])
P, S = c.c_void_p, c.c_size_t
for name in ("CreateContext", "CreateCommandQueue", "CreateProgramWithIL", "CreateKernel", "CreateBuffer"):
    getattr(cl, "cl" + name).restype = P
status = c.c_int()
def good(result):
    assert status.value == 0, status.value
    return P(result)
def done(answer):
    assert answer == 0, answer
platform, device = P(), P()
done(cl.clGetPlatformIDs(1, c.byref(platform), None))
done(cl.clGetDeviceIDs(platform, c.c_ulong(0xFFFFFFFF), 1, c.byref(device), None))
context = good(cl.clCreateContext(None, 1, c.byref(device), None, None, c.byref(status)))
queue = good(cl.clCreateCommandQueue(context, device, c.c_ulong(0), c.byref(status)))
il = open(sys.argv[2], "rb").read()
program = good(cl.clCreateProgramWithIL(context, il, S(len(il)), c.byref(status)))
done(cl.clBuildProgram(program, 0, None, None, None, None))
kernel = good(cl.clCreateKernel(program, b"saxpy", c.byref(status)))
Array = c.c_float * 1000
x, y = Array(*range(1000)), Array(*[1] * 1000)
buffers = [good(cl.clCreateBuffer(context, c.c_ulong(33), S(4000), v, c.byref(status))) for v in (y, x)]
for i, buffer in enumerate(buffers):
    done(cl.clSetKernelArg(kernel, i, S(8), c.byref(buffer)))
done(cl.clSetKernelArg(kernel, 2, S(4), c.byref(c.c_float(2))))
done(cl.clEnqueueNDRangeKernel(queue, kernel, 1, None, c.byref(S(1000)), None, 0, None, None))
done(cl.clEnqueueReadBuffer(queue, buffers[0], 1, S(0), S(4000), y, 0, None, None))
assert list(y) == [1 + 2 * i for i in range(1000)], list(y)[:10]
"""


@pytest.fixture(scope="module")
def bare():
    """bare(command, **env): the finished process, which was in a namespace without compilers."""
    start = [
        "unshare",
        *([] if os.geteuid() == 0 else ["--map-root-user"]),
        "--mount",
        "sh",
        "-c",
        BARE,
        "sh",
    ]
    if subprocess.run([*start, "true"], env=os.environ | {"HIDDEN": ""}, check=False).returncode:
        pytest.skip("no mount namespaces for this user")
    return lambda command, hidden, env: subprocess.run(
        [*start, *map(str, command)], env=env | {"HIDDEN": str(hidden)}, text=True, capture_output=True,
        check=False, timeout=120,
    )  # fmt: skip


def installed(python: str, package: Path, venv: Path) -> tuple[Path, list[str]]:
    """A virtual environment with the package: the folder of its driver's library, and the command of pip."""
    pip = make_environment(python, venv)
    subprocess.run([*pip, "install", str(package)], check=True, timeout=500)
    return next(venv.glob("lib/python*/site-packages/cl_driver/_native")), pip


@pytest.mark.long
@pytest.mark.parametrize("version", VERSIONS)
def test_wheel_in_a_bare_environment(dist, bare, ocl_icd, variables, tmp_path, version):
    native, _ = installed(VERSIONS[version], dist["x86_64"], tmp_path / "venv")
    (tmp_path / "saxpy.cl").write_text(KERNEL)
    clang = find_clang.find("").path
    options = ["-target", "spirv64", "-x", "cl", "-O1", "-c", str(tmp_path / "saxpy.cl")]
    subprocess.run([clang, *options, "-o", str(tmp_path / "saxpy.spv")], check=True)
    (tmp_path / "vendors").mkdir()
    (tmp_path / "vendors" / "cl_driver.icd").write_text(f"{native}/libcl_driver.so\n")
    (tmp_path / "cache").mkdir()
    env = {k: v for k, v in variables.items() if k != "PYTHONPATH"} | {
        "OCL_ICD_VENDORS": f"{tmp_path}/vendors/",
        "CL_DRIVER_CACHE_DIR": f"{tmp_path}/cache",
        "CL_DRIVER_LOG": "calls",
    }
    shared = list(Path(VERSIONS[version]).resolve().parents[1].glob("lib/**/libpython3.*.so.1.0"))
    ways = {"process": "a process"}
    if shared and (native / f"_cl_driver_embed-{version.rsplit('.', 1)[0]}.so").exists():
        ways["embedded"] = "embedded"
    for runtime, said in ways.items():
        done = bare(["clinfo"], ROOT, env | {"CL_DRIVER_RUNTIME": runtime})
        assert re.search(r"Platform Name +cl_driver", done.stdout), done.stderr
        assert f"Python is {said}" in done.stderr
    command = [tmp_path / "venv" / "bin" / "python", "-c", SAXPY, ocl_icd, tmp_path / "saxpy.spv"]
    done = bare(command, ROOT, env)
    assert done.returncode == 0, done.stderr
    assert "LLVM: llvmlite" in done.stderr


def members(sdist: Path) -> dict[str, tuple[int, bytes]]:
    """Names, permissions and texts of files."""
    with tarfile.open(sdist) as archive:
        files = [(member, archive.extractfile(member)) for member in archive if member.isfile()]
        return {member.name.partition("/")[2]: (member.mode, file.read()) for member, file in files}


def relocated(folder: Path) -> Path:
    """A Python with all of its prefix, as conda's environments are; pip's."""
    for version, path in sorted(VERSIONS.items()):
        prefix = Path(path).resolve().parents[1]
        if prefix != Path("/usr") and list(prefix.glob("lib/libpython3.*.so.1.0")):
            shutil.copytree(prefix, folder, symlinks=True)
            return folder / "bin" / f"python{version.rpartition('.')[0]}"
    pytest.skip("no Python here has a prefix of its own and a libpython")


@pytest.mark.long
@pytest.mark.parametrize("way", ["target", "conda", "uv"])
def test_other_ways_to_install(dist, variables, tmp_path, way):
    environment = {key: value for key, value in variables.items() if key != "PYTHONPATH"}
    if way == "target":
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", tmp_path / "lib"]
    elif way == "conda":
        environment["CONDA_PREFIX"] = str(tmp_path / "prefix")
        command = [relocated(tmp_path / "prefix"), "-m", "pip", "install", "--quiet"]
    else:
        uv = shutil.which("uv") or pytest.skip("no uv")
        subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, tmp_path / "venv"], check=True)
        command = [uv, "pip", "install", "--quiet", "--python", tmp_path / "venv" / "bin" / "python"]
    subprocess.run([*command, dist["x86_64"]], env=environment, check=True, timeout=500)
    (native,) = tmp_path.glob("**/cl_driver/_native")
    vendors = tmp_path / "prefix" / "etc" / "OpenCL" / "vendors"
    if way == "conda":
        subprocess.run([tmp_path / "prefix" / "bin" / "cl-driver", "install"], env=environment, check=True)
        assert (vendors / "cl_driver.icd").read_text() == f"{native}/libcl_driver.so\n"
    else:
        vendors.mkdir(parents=True)
        (vendors / "cl_driver.icd").write_text(f"{native}/libcl_driver.so\n")
    environment |= {"OCL_ICD_VENDORS": f"{vendors}/", "CL_DRIVER_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(["clinfo"], env=environment, text=True, capture_output=True, check=True)
    assert re.search(r"Platform Name +cl_driver", done.stdout), done.stderr


@pytest.mark.long
def test_nothing_is_left_of_a_wheel(dist, tmp_path):
    """What `cl-driver install` adds goes with the package, too."""
    venv = tmp_path / "venv"
    native, pip = installed(sys.executable, dist["x86_64"], venv)
    python, archive = venv / "bin" / "python", native / "cl_driver.modules"
    assert archive.read_bytes() == b""
    command = [venv / "bin" / "cl-driver", "install"]
    output = subprocess.run(command, text=True, capture_output=True, check=True).stdout
    assert f"wrote {archive}\n" in output and archive.stat().st_size > 1 << 20
    assert str(archive) not in subprocess.run(command, text=True, capture_output=True, check=True).stdout
    load = "from cl_driver import module_archive; module_archive.use(); "
    load += "from cl_driver.compiler import pipeline; print(type(pipeline.__spec__.loader).__name__)"
    done = subprocess.run([python, "-c", load], text=True, capture_output=True, check=True)
    assert done.stdout == "Archive\n"
    subprocess.run([*pip, "uninstall", "--yes", "cl_driver"], check=True)
    assert not native.parent.exists()


@pytest.mark.long
def test_sdist(dist, tmp_path):
    """It is what test_install.py builds and installs, of what was committed."""
    clone(tmp_path / "clone")
    before = members(dist["sdist"])
    assert {"PKG-INFO", "pyproject.toml", "native_shim/backend.py", "cl_driver/__init__.py"} <= set(before)
    assert members(make_sdist(tmp_path / "clone", tmp_path)) == before


def undefined(library: Path) -> set[str]:
    """The symbols that a library needs of others, each with the name of the library that has it."""
    command = ["nm", "-D", "--undefined-only", str(library)]
    told = subprocess.run(command, text=True, stdout=subprocess.PIPE, check=True).stdout
    return {symbol.partition("_2.")[0] for symbol in re.findall(r" U (\S+)", told)}


@pytest.mark.long
@pytest.mark.parametrize("machine", ["x86_64", pytest.param("aarch64", marks=pytest.mark.release)])
def test_what_is_in_a_wheel(dist_for, tmp_path, machine):
    made = dist_for(machine)[machine]
    assert made.stat().st_size < SIZE
    with zipfile.ZipFile(made) as wheel:
        wheel.extractall(tmp_path)
    libraries = list((tmp_path / "cl_driver" / "_native").glob("*.so"))
    assert len(libraries) >= 4
    for library in libraries:
        header = subprocess.run(["readelf", "-hW", str(library)], text=True, stdout=-1, check=True).stdout
        assert {"x86_64": "X86-64", "aarch64": "AArch64"}[machine] in header
        symbols = subprocess.run(["readelf", "-VW", str(library)], text=True, stdout=-1, check=True).stdout
        needed = {tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([\d.]+)", symbols)}
        assert needed and max(needed) <= GLIBC
        sections = subprocess.run(["readelf", "-SW", str(library)], text=True, stdout=-1, check=True).stdout
        assert ".symtab" not in sections and ".debug_info" not in sections
    wanted = {library.name: undefined(library) for library in libraries}
    assert {"memcpy@GLIBC", "memmove@GLIBC", "memset@GLIBC"} <= wanted["libcl_driver.so"]
    for name, symbols in wanted.items():  # there is no compiler's run-time library
        assert all(re.match("_?Py" if "embed" in name else "never", s) or "@" in s for s in symbols), symbols
    here = {str(ROOT), str(made.parents[1]), sys.base_prefix, os.path.expanduser("~/")} - {"/usr"}
    for path in filter(Path.is_file, tmp_path.rglob("*")):
        data = path.read_bytes()
        for name in here:
            assert name.encode() not in data, f"{path} names {name}"


@pytest.mark.release
@pytest.mark.long
def test_same_bytes_from_another_clone(dist, make_dist, tmp_path):
    made = make_dist(tmp_path / "elsewhere" / "clone", "--targets x86_64 --without-conda")
    assert len(made) == (3 if shutil.which("dpkg-deb") else 2)
    for path in made:
        first = dist[{".gz": "sdist", ".deb": "deb"}.get(path.suffix, "x86_64")]
        assert first.name == path.name
        assert first.read_bytes() == path.read_bytes()
