"""cl_khr_icd: the library as loaders see it, and both loaders in every way that they find drivers."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cl_driver import registration
from cl_driver.device import platform as platform_table
from tests.conftest import ROOT
from tests.marks import needs_kernel

LIBRARY = ROOT / "build" / "lib" / "libcl_driver.so"
ICD2_TAG = 0x4F50454E434C3331
POINTER = ctypes.sizeof(ctypes.c_void_p)


@pytest.fixture(scope="module")
def table_names() -> list[str]:
    """The dispatch table's entries, as the installed header orders them (read anew, not by the generator)."""
    text = subprocess.run(
        ["cc", "-E", "-P", "-x", "c", "-"],
        input="#include <CL/cl_icd.h>\n",
        text=True,
        capture_output=True,
        check=True,
    ).stdout
    body = re.search(r"struct _cl_icd_dispatch \{(.*?)\} cl_icd_dispatch", text, re.DOTALL)[1]
    return [name for name in re.findall(r"\b(cl[A-Z]\w+)\s*;", body) if not name.endswith("_icd2_tag")]


def in_child(code: str, env: dict[str, str | None]) -> str:
    """Runs Python code in a child with this tree's library as `lib`; returns what it prints."""
    start = (
        "import ctypes\n"
        f"lib = ctypes.CDLL({str(LIBRARY)!r})\n"
        "def address(name):\n"
        "    lib.clGetExtensionFunctionAddress.restype = ctypes.c_void_p\n"
        "    return lib.clGetExtensionFunctionAddress(name.encode())\n"
        "platform = ctypes.c_void_p()\n"
        "count = ctypes.c_uint()\n"
        "assert lib.clIcdGetPlatformIDsKHR(1, ctypes.byref(platform), ctypes.byref(count)) == 0\n"
        "words = ctypes.cast(platform, ctypes.POINTER(ctypes.c_size_t))\n"
        "table = ctypes.cast(words[0], ctypes.POINTER(ctypes.c_size_t))\n"
    )
    full = {k: v for k, v in (os.environ | env).items() if v is not None}
    done = subprocess.run(
        [sys.executable, "-c", start + code], capture_output=True, text=True, check=False, env=full
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_exports_nothing_else():
    lines = subprocess.run(
        ["nm", "-D", "--defined-only", str(LIBRARY)], capture_output=True, text=True, check=True
    )
    assert {line.split()[-1] for line in lines.stdout.splitlines()} == {
        "clGetExtensionFunctionAddress",
        "clGetPlatformInfo",
        "clIcdGetPlatformIDsKHR",
        "clIcdGetFunctionAddressForPlatformKHR",
        "clIcdSetPlatformDispatchDataKHR",
        "__jit_debug_descriptor",  # for gdb (native_shim/src/loader/debug.c)
        "__jit_debug_register_code",
        "cld_executor_functions",  # for workers of a cluster (cl_driver/cluster/executor.py)
    }


def test_needs_the_c_library_alone_and_stays_loaded():
    dynamic = subprocess.run(
        ["readelf", "-dW", str(LIBRARY)], capture_output=True, text=True, check=True
    ).stdout
    needed = set(re.findall(r"NEEDED.*\[(.*?)\]", dynamic))
    assert needed <= {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2"}
    assert "NODELETE" in dynamic
    assert "SYMBOLIC" in dynamic


def test_every_undefined_symbol_resolves():
    """The Khronos loader opens with RTLD_NOW."""
    assert in_child("import os; ctypes.CDLL(lib._name, os.RTLD_NOW); print('loaded')", {}) == "loaded\n"


def test_table_is_in_the_headers_order_padded_and_without_null(table_names):
    slots = in_child(f"print(*table[:{len(table_names) + 64}])", {}).split()
    assert "0" not in slots
    addresses = in_child(f"print(*[address(n) or 0 for n in {table_names!r}])", {})
    # Addresses differ from run to run; the same run must be compared.
    code = (
        f"for i, name in enumerate({table_names!r}):\n"
        "    found = address(name)\n"
        "    assert found is None or found == table[i], name\n"
    )
    in_child(code, {})
    known = [int(a) != 0 for a in addresses.split()]
    absent = [n for n, k in zip(table_names, known, strict=True) if not k]
    assert [n for n in absent if not re.search("GL|D3D|DX9", n)] in ([], ["clCreateSubDevicesEXT"])


def test_the_entry_of_3_1_whatever_the_headers_have():
    """A 3.1 loader calls slot 149 of every driver."""
    code = (
        "P = ctypes.c_void_p\n"
        "call = ctypes.CFUNCTYPE(ctypes.c_int, P, P, ctypes.c_uint, P, P, P)(table[149])\n"
        "same = table[149] == address('clGetKernelSuggestedLocalWorkSize')\n"
        "print(same, call(None, None, 1, None, None, None))"
    )
    assert in_child(code, {}) == "True -36\n"


def test_slots_past_those_that_are_known_answer_invalid_operation():
    """Loaders newer than the driver call them."""
    code = (
        "call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)\n"
        "print([call(table[i])(None, None) for i in range(150, 150 + 64)])"
    )
    assert eval(in_child(code, {})) == [-59] * 64


def test_absent_features_answer_invalid_operation(table_names):
    slot = table_names.index("clCreateFromGLBuffer")
    code = (
        "P = ctypes.c_void_p\n"
        f"call = ctypes.CFUNCTYPE(P, P, ctypes.c_ulong, ctypes.c_uint, P)(table[{slot}])\n"
        "error = ctypes.c_int()\n"
        "print(call(None, 0, 0, ctypes.addressof(error)), error.value)"
    )
    assert in_child(code, {}) == "None -59\n"


def test_handles_begin_with_the_table_and_the_loaders_word():
    assert in_child("print(words[1])", {}) == "0\n"


def test_platform_list_arguments():
    code = (
        "ids = (ctypes.c_void_p * 2)()\nf = lib.clIcdGetPlatformIDsKHR\n"
        "print(f(0, None, None), f(0, ids, None), f(2, ids, None))\n"
        "print(f(0, None, ctypes.byref(count)), count.value)"
    )
    assert in_child(code, {}) == "-30 -30 0\n0 1\n"


def test_icd2_tags_are_off_by_default(table_names):
    first, second = table_names.index("clGetPlatformIDs"), table_names.index("clUnloadCompiler")
    code = f"print(table[{first}] == {ICD2_TAG}, table[{second}] == {ICD2_TAG})"
    assert in_child(code, {"CL_DRIVER_ICD2": None}) == "False False\n"
    assert in_child(code, {"CL_DRIVER_ICD2": "1"}) == "True True\n"


def test_icd2_functions_are_there_either_way():
    code = (
        "lib.clIcdGetFunctionAddressForPlatformKHR.restype = ctypes.c_void_p\n"
        "get = lambda n: lib.clIcdGetFunctionAddressForPlatformKHR(platform, n)\n"
        "print(get(b'clCreateContext') == address('clCreateContext'), get(b'clNoSuchFunction'))\n"
        # The loader's word is copied into every object, earlier and later ones.
        "device = ctypes.c_void_p()\n"
        "P, U = ctypes.c_void_p, ctypes.c_uint\n"
        "ids = ctypes.CFUNCTYPE(U, P, ctypes.c_ulong, U, P, P)(address('clGetDeviceIDs'))\n"
        "ids(platform, 0xFFFFFFFF, 1, ctypes.addressof(device), None)\n"
        "print(lib.clIcdSetPlatformDispatchDataKHR(platform, ctypes.c_void_p(0x1234)))\n"
        "print(words[1], ctypes.cast(device, ctypes.POINTER(ctypes.c_size_t))[1])\n"
        "print(lib.clIcdSetPlatformDispatchDataKHR(device, None))\n"
        "create = ctypes.CFUNCTYPE(P, P, U, P, P, P, P)(address('clCreateContext'))\n"
        "context = create(None, 1, ctypes.addressof(device), None, None, None)\n"
        "print(ctypes.cast(context, ctypes.POINTER(ctypes.c_size_t))[1])\n"
    )
    assert in_child(code, {}).split("\n") == ["True None", "0", "4660 4660", "-32", "4660", ""]


def test_platform_answers(loader, run_client):
    done = run_client("icd_calls", loader=loader)
    assert done.stdout == done.stderr == ""


def test_loader_managed_dispatch(khronos, run_client):
    """cl_khr_icd 2.0 under the loader that has it: the whole client runs on the loader's own table."""
    run_client("icd_calls", loader=khronos, env={"CL_DRIVER_ICD2": "1"})


@needs_kernel
def test_probing_starts_nothing_and_prints_nothing(loader, run_client):
    done = run_client("icd_probe", loader, loader=loader)
    assert done.stdout == done.stderr == ""


def platforms(loader: Path, variables: dict, **env) -> list[str]:
    """The suffixes of the platforms that a loader lists."""
    full = {
        k: v for k, v in (variables | {"LD_LIBRARY_PATH": str(loader.parent)} | env).items() if v is not None
    }
    return [suffix for suffix, _ in registration.platforms(loader, full)]


OURS = [platform_table.ICD_SUFFIX]


def test_vendors_folder(loader, variables):
    folder = f"{ROOT}/build/vendors"
    assert platforms(loader, variables, OCL_ICD_VENDORS=folder) == OURS
    assert platforms(loader, variables, OCL_ICD_VENDORS=f"{folder}/") == OURS


def test_vendors_names_a_file(ocl_icd, khronos, variables):
    """ocl-icd accepts an .icd file or a library there; the Khronos loader finds nothing, and says so."""
    for file in (f"{ROOT}/build/vendors/cl_driver.icd", str(LIBRARY)):
        assert platforms(ocl_icd, variables, OCL_ICD_VENDORS=file) == OURS
        assert platforms(khronos, variables, OCL_ICD_VENDORS=file) == []


def test_icd_filenames(ocl_icd, khronos, variables, tmp_path):
    env = {"OCL_ICD_FILENAMES": str(LIBRARY), "OCL_ICD_VENDORS": f"{tmp_path}/"}
    assert platforms(khronos, variables, **env) == OURS
    assert platforms(ocl_icd, variables, **env) == []


def test_vendor_path(ocl_icd, variables):
    env = {"OPENCL_VENDOR_PATH": f"{ROOT}/build/vendors", "OCL_ICD_VENDORS": None}
    assert OURS[0] in platforms(ocl_icd, variables, **env)


def test_registered_twice(loader, ocl_icd, variables, tmp_path):
    """ocl-icd lists the platform twice, with one pointer; nothing comes of it."""
    for name in ("one.icd", "two.icd"):
        (tmp_path / name).write_text(registration.content(LIBRARY))
    expected = OURS * 2 if loader == ocl_icd else OURS
    assert platforms(loader, variables, OCL_ICD_VENDORS=f"{tmp_path}/") == expected


def test_symbolic_link_to_the_library(loader, run_client, tmp_path):
    """cl_driver.conf is found beside the file itself."""
    link = tmp_path / "elsewhere.so"
    link.symlink_to(LIBRARY)
    (tmp_path / "x.icd").write_text(f"{link}\n")
    run_client("icd_calls", loader=loader, env={"OCL_ICD_VENDORS": f"{tmp_path}/"})


def test_overrides(ocl_icd, variables):
    env = variables | {"CL_DRIVER_PLATFORM_NAME": "Some Other Platform"}
    assert registration.platforms(ocl_icd, env) == [(OURS[0], "Some Other Platform")]
