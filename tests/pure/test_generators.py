"""The dispatch table's generator, on the installed headers and on ones that are newer."""

import dataclasses
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

sys.path.insert(0, str(ROOT / "native_shim"))
from gen import calls, dispatch, entries, headers  # noqa: E402


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
    names = *installed.table, *dispatch.LATER
    return {n for n in names if not n.startswith(entries.ABSENT_PREFIXES)}


def test_table(installed):
    assert installed.table[0] == "clGetPlatformIDs"
    assert len(installed.table) >= 149
    assert len(set(installed.table)) == len(installed.table)


def test_prototypes(installed):
    prototype = installed.prototypes["clCreateContext"]
    assert prototype.result == "cl_context"
    names = [p.name for p in prototype.parameters]
    assert names == ["properties", "num_devices", "devices", "pfn_notify", "user_data", "errcode_ret"]


def test_parameters_do_not_depend_on_how_headers_are_written(installed):
    written = "const char* name, cl_int * code,const char ** texts, const int* const*many, size_t sizes[3]"
    declared = [parameter.declaration for parameter in headers.parameters(written)]
    assert declared == [
        "const char *name", "cl_int *code", "const char **texts", "const int *const *many", "size_t *sizes"
    ]  # fmt: skip
    (callback,) = headers.parameters("void ( * notify)(const char* text)")
    assert callback.name == "notify" and "(*notify)(const char *text)" in callback.declaration
    names = [parameter.name for parameter in installed.prototypes["clEnqueueReadBuffer"].parameters]
    assert names[3:6] == ["offset", "size", "ptr"]  # as the specification has it


def test_the_check_mode_asks_for_parameters_that_there_are(installed):
    names = [parameter.name for parameter in installed.prototypes["clCreateSubDevices"].parameters]
    assert names[2:] == ["num_devices", "out_devices", "num_devices_ret"]
    sources = [path.read_text() for path in (ROOT / "native_shim" / "src" / "validation").glob("*.c")]
    asked = {name for text in sources for name in re.findall(r'call_word\(call, "(\w+)"\)', text)}
    known = {parameter.name for p in installed.prototypes.values() for parameter in p.parameters}
    own = calls.read((ROOT / "native_shim" / "src").rglob("*.c"))
    known |= {parameter.name for prototype in own.values() for parameter in prototype.parameters}
    assert len(asked) > 20 and asked <= known


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


def test_the_entry_of_3_1_comes_after_those_of_older_headers(installed):
    """Slot 149, whether the headers have it or not; defined once."""
    name = "clGetKernelSuggestedLocalWorkSize"
    for table in (installed.table[:149], (*installed.table[:149], name)):
        text, _ = dispatch.generate(dataclasses.replace(installed, table=table), every(installed) | {name})
        assert f"F({name}), /* 149: {name} */" in text and text.count(f"F({name}),") == 1
        assert f'{{"{name}KHR", F({name})}},' in text
        assert f"void *cld_dispatch[{150 + dispatch.PADDING}]" in text
    with pytest.raises(dispatch.MissingEntries, match=f"^{name}$"):
        dispatch.generate(installed, every(installed) - {name})


def test_headers_whose_types_of_functions_are_no_pointers(tmp_path):
    """As those of Khronos are since 2024, with unions for the tags of cl_khr_icd 2.0."""
    (tmp_path / "CL").mkdir()
    (tmp_path / "CL" / "cl_icd.h").write_text(
        """typedef cl_int clGetPlatformIDs_t(cl_uint num_entries, cl_platform_id* platforms, cl_uint* count);
        typedef void* clSVMAlloc_t(cl_context context, size_t size);
        typedef clSVMAlloc_t *clSVMAlloc_fn;
        typedef struct _cl_icd_dispatch {
          union { clGetPlatformIDs_t *clGetPlatformIDs; intptr_t clGetPlatformIDs_icd2_tag; };
          clSVMAlloc_t *clSVMAlloc;
          void *clUnloadCompiler;
        } cl_icd_dispatch;"""
    )
    found = headers.read(flags=(f"-I{tmp_path}",))
    assert found.table == ("clGetPlatformIDs", "clSVMAlloc", "clUnloadCompiler")
    assert [p.name for p in found.prototypes["clGetPlatformIDs"].parameters] == [
        "num_entries",
        "platforms",
        "count",
    ]
    assert found.prototypes["clSVMAlloc"].signature() == "void* clSVMAlloc(cl_context context, size_t size)"


def test_forms_of_logged_calls():
    """Three sizes are read of those that each call has three of, or as many as work_dim says; no others."""
    found = calls.read((ROOT / "native_shim" / "src").glob("*/*.c"))
    assert calls.form(found["clCreateProgramWithBinary"]).split()[:5] == [
        "clCreateProgramWithBinary", "hcontext", "unum_devices", "pdevice_list", "plengths",
    ]  # fmt: skip
    sizes = {word[1:] for one in found.values() for word in calls.form(one).split()[1:] if word[0] == "z"}
    assert sizes == {
        "region", "origin", "src_origin", "dst_origin", "host_origin", "buffer_origin", "global_work_size",
        "global_work_offset", "local_work_size",
    }  # fmt: skip
