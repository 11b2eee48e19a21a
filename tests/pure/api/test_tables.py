"""The tables of info queries against the OpenCL headers, and the registry against its list."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from cl_driver.api import entrypoint
from cl_driver.api.device import Device
from cl_driver.api.device_info import DEVICE_INFO, _driver_version
from cl_driver.api.errors import name
from cl_driver.api.generated import enums as cl
from cl_driver.api.generated import make_enums
from cl_driver.api.info import make_version, pack_versions
from cl_driver.api.kernel import ARG_INFO
from cl_driver.api.program_info import BUILD_INFO, PROGRAM_INFO

HEADERS = Path("/usr/include/CL/cl.h")

# Answered by native_shim/src/api/device.c, because they are handles.
DEVICE_HANDLES = {"CL_DEVICE_PLATFORM", "CL_DEVICE_PARENT_DEVICE", "CL_DEVICE_REFERENCE_COUNT"}


def header_section(first: str, last: str) -> list[str]:
    """Names that cl.h defines from one name to another."""
    names = [line.split()[1] for line in HEADERS.read_text().splitlines() if line.startswith("#define CL_")]
    return names[names.index(first) : names.index(last) + 1]


def test_every_core_device_query_has_a_row():
    names = header_section("CL_DEVICE_TYPE", "CL_DEVICE_LATEST_CONFORMANCE_VERSION_PASSED")
    queries = [name for name in names if hasattr(cl, name) and getattr(cl, name) >= cl.CL_DEVICE_TYPE]
    assert len(queries) > 100
    missing = [
        name for name in queries if getattr(cl, name) not in DEVICE_INFO and name not in DEVICE_HANDLES
    ]
    assert not missing


def test_every_device_row_answers():
    device = Device((0, 1))
    for param_name, row in DEVICE_INFO.items():
        assert isinstance(row(device), bytes), hex(param_name)


def test_every_program_query_has_a_row():
    in_c = {
        "CL_PROGRAM_REFERENCE_COUNT",
        "CL_PROGRAM_CONTEXT",
        "CL_PROGRAM_NUM_DEVICES",
        "CL_PROGRAM_DEVICES",
    }
    in_c.add("CL_PROGRAM_BINARIES")
    names = set(header_section("CL_PROGRAM_REFERENCE_COUNT", "CL_PROGRAM_SCOPE_GLOBAL_DTORS_PRESENT"))
    assert not {name for name in names - in_c if getattr(cl, name) not in PROGRAM_INFO}
    names = header_section("CL_PROGRAM_BUILD_STATUS", "CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE")
    assert not [name for name in names if getattr(cl, name) not in BUILD_INFO]


def test_every_kernel_argument_query_has_a_row():
    names = header_section("CL_KERNEL_ARG_ADDRESS_QUALIFIER", "CL_KERNEL_ARG_NAME")
    assert len(names) == 5 and not [name for name in names if getattr(cl, name) not in ARG_INFO]


def test_enums_are_what_the_headers_say():
    found = make_enums.constants(Path("/usr/include"))
    generated = {name: value for name, value in vars(cl).items() if name.startswith("CL_")}
    assert {name: value for name, value in found.items() if generated.get(name) != value} == {}
    assert cl.CL_INVALID_KERNEL_ARGS == -52 and cl.CL_DEVICE_TYPE_ALL == 0xFFFFFFFF


def test_the_list_of_operations_is_what_the_chapters_bind():
    for file, operations in entrypoint.CHAPTERS.items():
        chapter = f"cl_driver.api.{file}"
        importlib.import_module(chapter)
        bound = {
            operation
            for operation, (function, _) in entrypoint._registry.functions.items()
            if function.__module__ == chapter
        }
        assert bound == set(operations), chapter


def test_versions_are_packed_as_the_header_has_them():
    packed = pack_versions([("OpenCL C", make_version(3, 0, 1))])
    assert len(packed) == 68
    assert int.from_bytes(packed[:4], "little") == 3 << 22 | 1
    assert packed[4:].rstrip(b"\0") == b"OpenCL C"


@pytest.mark.parametrize(
    "module", ["cl_driver.door.dispatch", "cl_driver.api.device_info", "cl_driver.service.client"]
)
def test_the_hosts_python_imports_little(module):
    """Start-up is counted in milliseconds: none of these may come in."""
    heavy = (
        "typing",
        "dataclasses",
        "inspect",
        "re",
        "pathlib",
        "json",
        "logging",
        "hashlib",
        "llvmlite",
        "numpy",
    )
    code = f"import sys, {module}\nprint(*[name for name in {heavy!r} if name in sys.modules])"
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(root)!r})\n{code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == []


@pytest.mark.parametrize(
    "code, expected",
    [(0, "CL_SUCCESS"), (-1, "CL_DEVICE_NOT_FOUND"), (-11, "CL_BUILD_PROGRAM_FAILURE"), (-9999, "-9999")],
)
def test_names_of_errors(code, expected):
    assert name(code) == expected


def test_the_drivers_version_tells_for_what_it_makes_code(monkeypatch):
    """Programs that keep binaries know by it which of them would be refused."""
    before = _driver_version(None)
    monkeypatch.setenv("CL_DRIVER_WIDTH", "4")
    assert _driver_version(None) != before
    monkeypatch.delenv("CL_DRIVER_WIDTH")
    assert _driver_version(None) == before
