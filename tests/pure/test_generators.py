"""The dispatch table's generator, on the installed headers and on ones that are newer."""

import shutil
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

sys.path.insert(0, str(ROOT / "native_shim"))
from gen import dispatch, entries, headers  # noqa: E402


@pytest.fixture(scope="module")
def installed():
    return headers.read()


@pytest.fixture(scope="module")
def newer(tmp_path_factory):
    """Headers with one more slot."""
    folder = tmp_path_factory.mktemp("headers")
    shutil.copytree("/usr/include/CL", folder / "CL")
    file = Path(folder / "CL" / "cl_icd.h")
    text = file.read_text()
    typedef = (
        "typedef cl_int(CL_API_CALL *cl_api_clNewer)(cl_kernel kernel, void (*f)(int), size_t sizes[3]);\n"
    )
    text = text.replace("typedef struct _cl_icd_dispatch {", typedef + "typedef struct _cl_icd_dispatch {")
    file.write_text(text.replace("} cl_icd_dispatch;", "  cl_api_clNewer clNewer;\n} cl_icd_dispatch;"))
    return headers.read(flags=(f"-I{folder}",))


def every(installed):
    """The functions that a whole driver defines."""
    return {n for n in installed.table if not n.startswith(entries.ABSENT_PREFIXES)}


def test_table(installed):
    assert installed.table[0] == "clGetPlatformIDs"
    assert len(installed.table) >= 149
    assert len(set(installed.table)) == len(installed.table)


def test_prototypes(installed):
    prototype = installed.prototypes["clCreateContext"]
    assert prototype.result == "cl_context"
    names = [p.name for p in prototype.parameters]
    assert names == ["properties", "num_devices", "devices", "pfn_notify", "user_data", "errcode_ret"]


def test_error_names(installed):
    assert installed.errors[0] == "CL_SUCCESS"
    assert installed.errors[-1] == "CL_DEVICE_NOT_FOUND"
    assert installed.errors[-4] == "CL_MEM_OBJECT_ALLOCATION_FAILURE"
    assert installed.errors[-1001] == "CL_PLATFORM_NOT_FOUND_KHR"


def test_missing_entries_fail_the_build(installed):
    with pytest.raises(dispatch.MissingEntries, match="^clFinish$"):
        dispatch.generate(installed, every(installed) - {"clFinish"})
    text, missing = dispatch.generate(installed, every(installed) - {"clFinish"}, allow_missing=True)
    assert missing == ["clFinish"]
    assert "F(absent_clFinish), /* " in text


def test_newer_headers(installed, newer):
    assert newer.table == (*installed.table, "clNewer")
    with pytest.raises(dispatch.MissingEntries, match="^clNewer$"):
        dispatch.generate(newer, every(installed))
    text, _ = dispatch.generate(newer, every(newer))
    assert f"F(clNewer), /* {len(installed.table)}: clNewer */" in text
    text, _ = dispatch.generate(newer, every(installed), allow_missing=True)
    assert "static cl_int absent_clNewer(cl_kernel kernel, void (*f)(int), size_t *sizes) {" in text


def test_extension_functions_come_by_being_defined(installed):
    text, _ = dispatch.generate(installed, every(installed) | {"clSomethingKHR"})
    assert '{"clSomethingKHR", F(clSomethingKHR)},' in text
    assert "extern void clSomethingKHR(void);" in text
    assert '{"clCreateProgramWithILKHR", F(clCreateProgramWithIL)},' in text
