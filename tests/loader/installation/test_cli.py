"""The cl-driver command: registration, and each thing that doctor finds."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from cl_driver import native, registration, settings
from native_shim.gen import embed
from tests.conftest import PATIENCE, ROOT

LIBRARY = ROOT / "build" / "lib" / "libcl_driver.so"


@pytest.fixture
def cl_driver(variables):
    """cl_driver(*arguments, **env): (exit status, output) of the command; None removes a variable."""

    def run(*arguments, tree: Path = ROOT, **env: str | None) -> tuple[int, str]:
        full = {k: v for k, v in (variables | {"PYTHONPATH": str(tree)} | env).items() if v is not None}
        command = [sys.executable, "-m", "cl_driver.cli", *map(str, arguments)]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=full, cwd="/", timeout=120 * PATIENCE
        )
        return done.returncode, done.stdout + done.stderr

    return run


@pytest.fixture
def broken_tree(tmp_path) -> Path:
    """A copy of the package with a shim of its own, to be broken."""
    tree = tmp_path / "tree"
    tree.mkdir()
    subprocess.run(["cp", "-r", str(ROOT / "cl_driver"), str(tree)], check=True)
    native_folder = tree / "cl_driver" / "_native"
    native_folder.mkdir()
    for file in (ROOT / "build" / "lib").iterdir():
        if file.is_file():
            (native_folder / file.name).write_bytes(file.read_bytes())
    conf = native_folder / "cl_driver.conf"
    text = conf.read_text()
    if "python=" not in text:  # an installed package's, which records none
        text = embed.configuration(tree)
    conf.write_text(text.replace(f"path={ROOT}\n", f"path={tree}\n"))
    return tree


def replace_in_conf(tree: Path, key: str, value: str) -> None:
    conf = tree / "cl_driver" / "_native" / "cl_driver.conf"
    lines = conf.read_text().splitlines()
    conf.write_text(
        "".join(f"{key}={value}\n" if line.startswith(f"{key}=") else f"{line}\n" for line in lines)
    )


def test_install_and_uninstall(cl_driver, loader, variables, tmp_path):
    prefix = tmp_path / "prefix"
    file = prefix / "etc" / "OpenCL" / "vendors" / "cl_driver.icd"
    for _ in range(2):
        status, output = cl_driver("install", "--prefix", prefix)
        assert status == 0, output
        assert file.read_bytes() == f"{LIBRARY}\n".encode()
        assert [f.name for f in file.parent.iterdir()] == [file.name]
    env = variables | {"OCL_ICD_VENDORS": f"{file.parent}/", "LD_LIBRARY_PATH": str(loader.parent)}
    assert len(registration.platforms(loader, env)) == 1
    assert cl_driver("uninstall", "--prefix", prefix) == (0, f"removed {file}\n")
    assert not file.exists()
    assert cl_driver("uninstall", "--prefix", prefix)[0] == 0
    assert registration.platforms(loader, env) == []


def test_install_for_the_environment(cl_driver):
    file = Path(sys.prefix) / "etc" / "OpenCL" / "vendors" / "cl_driver.icd"
    try:
        for option in ((), ("--venv",)):
            status, output = cl_driver("install", *option, OCL_ICD_VENDORS=None)
            assert status == 0, output
            line = f"\nexport OCL_ICD_VENDORS={file.parent}/\n"
            assert str(file) in output and line in output and "cl-driver run -- PROGRAM" in output
            status, output = cl_driver("install", *option, OCL_ICD_VENDORS=f"{file.parent}/")
            assert status == 0 and output == f"wrote {file}\n"  # nothing is missing
            assert file.read_text() == f"{LIBRARY}\n"
            file.unlink()
    finally:
        file.unlink(missing_ok=True)


def test_install_prepares_the_modules(cl_driver, broken_tree, tmp_path):
    """Or says why not, and registers the driver all the same."""
    archive = broken_tree / "cl_driver" / "_native" / "cl_driver.modules"
    archive.write_bytes(b"")  # as in a wheel
    wrote = f"wrote {archive}\n"
    for expected in (wrote, ""):
        status, output = cl_driver("install", "--prefix", tmp_path, tree=broken_tree)
        assert status == 0 and (wrote in output) == bool(expected), output
    assert archive.stat().st_size > 1 << 20
    archive.unlink()
    archive.mkdir()
    status, output = cl_driver("install", "--prefix", tmp_path, tree=broken_tree)
    assert status == 0 and "start more slowly than they could" in output and str(archive) in output
    assert "Traceback" not in output and (tmp_path / "etc/OpenCL/vendors/cl_driver.icd").is_file()


def test_install_where_nobody_may_write(cl_driver, tmp_path):
    (tmp_path / "etc").write_text("a file where a folder should be")
    status, output = cl_driver("install", "--prefix", tmp_path)
    assert status == 1
    assert "cl-driver install: " in output and "Traceback" not in output


ONE = """
import ctypes, sys
count = ctypes.c_uint()
assert ctypes.CDLL(sys.argv[1]).clGetPlatformIDs(0, None, ctypes.byref(count)) == 0
print(count.value, *sys.argv[2:])
"""


def test_run(cl_driver, loader, tmp_path):
    """No other driver is seen, whatever variables said before."""
    command = ["run", "--", sys.executable, "-c", ONE, loader, "-h", "two words"]
    library_path = str(loader.parent)
    for variables in ({"OCL_ICD_VENDORS": None}, {"OPENCL_VENDOR_PATH": "/etc", "OCL_ICD_VENDORS": "/etc"}):
        done = cl_driver(*command, LD_LIBRARY_PATH=library_path, **variables)
        assert done == (0, "1 -h two words\n")
    assert cl_driver("run", "--", "sh", "-c", "exit 7")[0] == 7
    assert cl_driver("run") == (2, "cl-driver run: which program? cl-driver run -- PROGRAM ARGUMENTS\n")
    done = cl_driver("run", "--", "/no/such/program")
    assert done == (127, "cl-driver run: /no/such/program: there is no such program\n")
    assert cl_driver("run", "--", tmp_path) == (126, f"cl-driver run: {tmp_path}: Permission denied\n")


def test_version(cl_driver):
    """That of the wheel, and of nothing else."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert cl_driver("--version") == (0, f"cl_driver {version}\n")


def test_status(cl_driver, tmp_path):
    status, output = cl_driver("status")
    assert status == 0
    assert "sees this driver" in output and "registered (read by every loader" in output
    status, output = cl_driver("status", OCL_ICD_VENDORS=f"{tmp_path}/")
    assert status == 1
    assert "does not see this driver" in output and f"{tmp_path}: not registered" in output


def test_doctor_is_content(cl_driver):
    status, output = cl_driver("doctor")
    assert status == 0 and output.splitlines()[-1] == "Nothing is wrong."


def test_doctor_says_what_compiles_and_why(cl_driver, tmp_path):
    clang, llvm, *_ = cl_driver("doctor")[1].splitlines()
    assert clang.startswith("clang: /") and ", version 2" in clang and ": the first of clang-22, " in clang
    assert llvm.startswith("LLVM: ") and ": it is what clang is linked with" in llvm or "llvmlite" in llvm
    status, output = cl_driver("doctor", CL_DRIVER_LLVM="llvmlite")
    assert status == 0 and "LLVM: llvmlite, version " in output and "CL_DRIVER_LLVM names it" in output
    (tmp_path / "clang-22").symlink_to("/usr/bin/clang-22")
    output = cl_driver("doctor", CL_DRIVER_CLANG=str(tmp_path / "clang-22"))[1]
    assert f"clang: {tmp_path}/clang-22, version 22: CL_DRIVER_CLANG names it." in output


def test_doctor_finds_no_llvm(cl_driver):
    status, output = cl_driver("doctor", CL_DRIVER_LLVM="/nonexistent/libLLVM.so")
    assert status == 1
    assert "CL_DRIVER_LLVM: /nonexistent/libLLVM.so: " in output and "cannot open shared object" in output


def test_doctor_finds_no_clang(cl_driver):
    status, output = cl_driver("doctor", CL_DRIVER_CLANG="/nonexistent/clang")
    assert status == 1
    assert "No clang" in output


def test_doctor_finds_malformed_settings(cl_driver):
    status, output = cl_driver("doctor", CL_DRIVER_RUNTIME="somewhere", CL_DRIVER_TREADS="3")
    assert status == 1
    assert "CL_DRIVER_RUNTIME=somewhere is ignored: it must be auto or embedded or process" in output
    assert "CL_DRIVER_TREADS is not a setting" in output


def test_doctor_finds_no_loader(cl_driver, monkeypatch, capsys):
    """Loaders are looked for by name: this machine has some, so the look-up is told that it has none."""
    from cl_driver.cli import doctor

    monkeypatch.setattr(registration, "loaders", lambda environment=os.environ: [])
    assert any("There is no OpenCL loader" in sentence for sentence in doctor.check_loaders())


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (f"{LIBRARY}\r\n", "Windows line ends"),
        (f"{LIBRARY}\n{LIBRARY}\n", "more than one line"),
        (f"{LIBRARY}\n\n", "ends in empty lines"),
        ("libcl_driver.so\n", "no absolute path"),
        ("/nonexistent/libcl_driver.so\n", "not there"),
        ("", "is empty"),
        ("/bin/true\n", "another copy of the driver"),
    ],
)
def test_doctor_finds_a_wrong_icd_file(cl_driver, tmp_path, content, sentence):
    (tmp_path / "cl_driver.icd").write_bytes(content.encode())
    status, output = cl_driver("doctor", OCL_ICD_VENDORS=f"{tmp_path}/")
    assert status == 1
    assert sentence in output
    assert "does not list this driver" in output or "\n\n" in content or content.count("\n") == 2


def test_doctor_finds_no_registration(cl_driver, tmp_path):
    status, output = cl_driver("doctor", OCL_ICD_VENDORS=f"{tmp_path}/")
    assert status == 1
    assert "does not list this driver" in output and "What is missing: cl-driver install, or" in output
    assert "Run cl-driver install, or programs by cl-driver run -- PROGRAM." in output
    status, output = cl_driver("doctor", OCL_ICD_VENDORS=f"{tmp_path}/none/")
    assert "names a folder that is not there" in output
    status, output = cl_driver("doctor", OCL_ICD_VENDORS=str(ROOT / "build/vendors/cl_driver.icd"))
    assert "OCL_ICD_VENDORS names a file" in output


def test_doctor_finds_an_unusable_cache(cl_driver, tmp_path):
    file = tmp_path / "file"
    file.touch()
    status, output = cl_driver("doctor", CL_DRIVER_CACHE_DIR=str(file / "cache"))
    assert status == 1
    assert f"The compile cache {file / 'cache'} cannot be used: Not a directory" in output
    status, output = cl_driver("doctor", CL_DRIVER_CACHE_DIR="/proc/cache")
    assert "The compile cache /proc/cache cannot be used" in output
    status, output = cl_driver("doctor", CL_DRIVER_CACHE_DIR=None, HOME=None, XDG_CACHE_HOME=None)
    assert "There is no place for the compile cache" in output
    assert cl_driver("doctor", CL_DRIVER_CACHE_DIR="/proc/cache", CL_DRIVER_CACHE_SIZE="0")[0] == 0
    private = tmp_path / "shared" / f"v2-{os.geteuid()}"
    private.mkdir(parents=True)
    private.chmod(0o777)
    status, output = cl_driver("doctor", CL_DRIVER_CACHE_DIR=str(private.parent))
    assert status == 1
    assert f"cannot be used: {private} may be entered by other users. Nothing" in output


def test_status_says_where_the_cache_is_or_why_there_is_none(cl_driver, tmp_path):
    _, output = cl_driver("status", CL_DRIVER_CACHE_DIR=str(tmp_path))
    assert f"compile cache: {tmp_path}/v2-{os.geteuid()}: 0 entries" in output
    _, output = cl_driver("status", CL_DRIVER_CACHE_SIZE="0")
    assert "compile cache: in memory only" in output


def test_doctor_finds_a_library_that_does_not_load(cl_driver, broken_tree):
    (broken_tree / "cl_driver" / "_native" / "libcl_driver.so").write_bytes(b"\x7fELF and nothing else")
    status, output = cl_driver("doctor", tree=broken_tree)
    assert status == 1
    assert "libcl_driver.so cannot be loaded" in output


def test_doctor_finds_no_library(cl_driver, broken_tree):
    (broken_tree / "cl_driver" / "_native" / "libcl_driver.so").unlink()
    status, output = cl_driver("doctor", tree=broken_tree)
    assert status == 1
    assert "The driver is not built" in output
    assert cl_driver("install", "--prefix", broken_tree, tree=broken_tree)[0] == 1


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("libpython", "", "no shared libpython"),
        ("libpython", "/nonexistent/libpython3.so", "The shared libpython is gone"),
        ("python", "/nonexistent/python", "The Python that the driver was built with is gone"),
        ("stdlib", "/nonexistent/lib", "standard library is gone"),
        ("path", "/nonexistent/site-packages", "cannot import"),
    ],
)
def test_doctor_finds_a_missing_python(cl_driver, broken_tree, key, value, sentence):
    replace_in_conf(broken_tree, key, value)
    status, output = cl_driver("doctor", tree=broken_tree)
    assert status == 1
    assert sentence in output


def test_doctor_finds_no_configuration(cl_driver, broken_tree):
    (broken_tree / "cl_driver" / "_native" / "cl_driver.conf").unlink()
    status, output = cl_driver("doctor", tree=broken_tree)
    assert status == 1
    assert "cl_driver.conf cannot be read" in output


@pytest.mark.parametrize(
    ("key", "value"),
    [("libpython", ""), ("libpython", "/nonexistent/libpython3.so"), ("stdlib", "/nonexistent/lib")],
)
def test_what_doctor_finds_costs_the_runtime_nothing(broken_tree, run_client, key, value, tmp_path):
    """Without a libpython to embed, the runtime process serves; nothing is printed."""
    replace_in_conf(broken_tree, key, value)
    (tmp_path / "cl_driver.icd").write_text(f"{broken_tree}/cl_driver/_native/libcl_driver.so\n")
    env = {"OCL_ICD_VENDORS": f"{tmp_path}/", "CL_DRIVER_RUNTIME": "auto"}
    done = run_client("icd_calls", env=env)
    assert done.stdout == done.stderr == ""


def test_no_python_at_all_is_an_error_and_never_success(broken_tree, run_client, tmp_path):
    for key in ("libpython", "python"):
        replace_in_conf(broken_tree, key, "/nonexistent/python")
    (tmp_path / "cl_driver.icd").write_text(f"{broken_tree}/cl_driver/_native/libcl_driver.so\n")
    done = run_client("icd_calls", env={"OCL_ICD_VENDORS": f"{tmp_path}/"}, check=False)
    assert done.returncode == 1
    assert "is -6, not CL_SUCCESS" in done.stderr


def test_the_page_has_the_settings_table():
    assert settings.markdown() in (ROOT / "cl_driver" / "SETTINGS.md").read_text()


def test_native_folder():
    assert native.library().samefile(LIBRARY)


def test_gdb(cl_driver, tmp_path):
    assert cl_driver("gdb") == (2, "cl-driver gdb: which program? cl-driver gdb -- PROGRAM ARGUMENTS\n")
    none = cl_driver("gdb", "--", "program", PATH=str(tmp_path))
    assert none == (127, "cl-driver gdb: there is no gdb: apt install gdb\n")
    gdb = tmp_path / "gdb"
    gdb.write_text('#!/bin/sh\necho "$CL_DRIVER_JIT_DEBUG" "$OCL_ICD_VENDORS" "$@"\n')
    gdb.chmod(0o755)
    status, output = cl_driver("gdb", "--", "program", "-x", "y", PATH=str(tmp_path))
    assert status == 0 and output.startswith("gdb ") and "libcl_driver.so" in output
    assert "gdb_commands.py" in output and output.endswith("--args program -x y\n")
