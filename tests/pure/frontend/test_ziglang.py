"""The clang of PyPI's ziglang, which brings no header of OpenCL C, and the header that it gets from us."""

from __future__ import annotations

import os
import re
import subprocess

import pytest

from cl_driver import native
from cl_driver.frontend import clang, find_clang, includes, opencl_c, resident
from cl_driver.frontend.options import parse
from cl_driver.jit import clang_paths, identity

VERSIONS = ("CL1.0", "CL1.1", "CL1.2", "CL2.0", "CL3.0")
# Of clang's header: its guard, what only it uses itself, and what is of extensions (prelude.py has those that
# the device offers).
OTHERS = re.compile(r"_OPENCL_BASE_H_|__half|CLK_AVC_.*|CLK_UN\w*_(?:10|12|14)X\d_EXT|CLK_\w*_2_101010_EXT")
EXTENSIONS = re.compile(r"CLK_UN\w*INT(?:10X6|12X4|14X2|_RAW1[02])_EXT")
# What no expression is, or one whose type has no value in memory.
NO_VALUES = re.compile(r"CLD_.*|.*\(.*|CLK_NULL_.*|__opencl_\w+_builtins|NULL|_.*|cl_.*|__.*|CL_VERSION.*")


@pytest.fixture(autouse=True)
def fresh():
    find_clang.forget()
    yield
    find_clang.forget()


@pytest.fixture
def zig(monkeypatch) -> str:
    """The program, of a package that is beside this one; no other clang is there."""
    package = os.path.dirname(pytest.importorskip("ziglang").__file__)
    monkeypatch.setattr(native, "packages", lambda: ["/no/such", os.path.dirname(package)])
    monkeypatch.setattr(clang_paths, "FIXED_FOLDERS", ())
    monkeypatch.setenv("PATH", "/no/such/folder")
    return os.path.join(package, "zig")


def by_clang(arguments: list[str], own: bool, text: str = "") -> bytes:
    """What clang writes, with the header that it brings or with ours."""
    path = find_clang.find().path
    resources = [] if own else ["-resource-dir", clang_paths.RESOURCES]
    command = [path, "-target", "spirv64", "-x", "cl", *arguments, *resources, "-o", "-", "-"]
    return subprocess.run(command, input=text.encode(), capture_output=True, check=True).stdout


def macros(arguments: list[str], own: bool) -> dict[str, str]:
    lines = by_clang([*arguments, "-E", "-dM"], own).decode().splitlines()
    return {line.split(" ")[1].split("(")[0]: line for line in lines}


def of_device(version: str) -> list[str]:
    options, language = parse(f"-cl-std={version}"), clang.device_language()
    return [*clang.device_arguments(language, options), *options.clang_arguments(language.fma)]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_header_has_the_macros_of_clangs(version):
    arguments = of_device(version)
    theirs, ours = macros(arguments, own=True), macros(arguments, own=False)
    missing = {name for name in theirs if name not in ours}
    assert {name for name in missing if not (OTHERS.fullmatch(name) or EXTENSIONS.fullmatch(name))} == set()
    assert {name for name in ours if name not in theirs} == {"CLD_OPENCL_C_BASE_H"}
    values = [name for name, line in ours.items() if not NO_VALUES.fullmatch(line.split(" ")[1])]
    values = [name for name in values if ours[name].split(" ", 2)[2:] and name[0].isupper()]
    assert len(values) > 100 and {"M_PI", "FLT_MAX", "CLK_RGBA", "LONG_MIN", "HALF_MAX"} <= set(values)
    stores = "".join(
        f"  *(global __typeof__({name}) *)(p + {8 * i}) = {name};\n" for i, name in enumerate(values)
    )
    half = "#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n"
    program = f"{half}kernel void k(global char *p) {{\n{stores}}}\n"
    assert by_clang([*arguments, "-c"], True, program) == by_clang([*arguments, "-c"], False, program)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_header_has_the_types_of_clangs(version):
    arguments = [*of_device(version), "-Xclang", "-ast-dump", "-fsyntax-only"]
    place = r"(?:<.*> )?(?:\S*:\d+ )?(?:referenced )?"
    declared = re.compile(rf"-(Typedef|Function|EnumConstant|Field)Decl 0x.*?{place}(\w+ '.*)")
    for_both = []
    for own in (True, False):
        lines = by_clang(arguments, own).decode().splitlines()
        for_both.append(
            sorted(m.groups() for line in lines if (m := declared.search(line)) and "implicit" not in line)
        )
    assert for_both[0] == for_both[1] and len(for_both[0]) > 60


PROGRAMS = [
    "kernel void k(global float4 *p) { p[get_global_id(0)] = native_sin(p[get_global_id(0)] * M_PI_F); }",
    "kernel void k(image2d_t i, sampler_t s, global int4 *p) { *p = read_imagei(i, s, (float2)1); }",
    "kernel void k(volatile global atomic_int *p) { atomic_fetch_add_explicit(p, 1, memory_order_relaxed); }",
    'kernel void k(global uchar8 *p) { printf("%v8u", *p); p[1] = convert_uchar8_sat(as_char8(*p)); }',
    "kernel void k(local int *p) { barrier(CLK_LOCAL_MEM_FENCE); *p = work_group_reduce_add(*p); }",
    "#define E x y\nkernel void k() { E; }",
]


@pytest.mark.parametrize("text", PROGRAMS)
def test_programs_come_out_as_by_the_same_clang_elsewhere(text):
    path = os.path.join(os.path.dirname(pytest.importorskip("ziglang").__file__), "zig")
    results = []
    for setting in ("", path):
        assert find_clang.find(setting).major == 22
        options = parse("-cl-std=CL3.0 -cl-kernel-arg-info")
        results.append(opencl_c.compile(text.encode(), options, clang=setting))
    assert results[0] == results[1] and (results[0].spirv is None) == ("#define" in text)


def test_it_is_taken_where_no_other_is(zig, monkeypatch):
    found = find_clang.find()
    assert (found.path, found.major) == (zig, 22)
    assert "PyPI's ziglang" in find_clang.explain(found)
    assert [line.rsplit(" ", 2)[0] for line in identity.tools("", "llvmlite")][0] == zig
    monkeypatch.setattr(resident, "_tries", 3)
    done = opencl_c.compile(PROGRAMS[0].encode(), parse(""))
    assert done.spirv is not None and done.dependencies == () and not resident._loaded
    assert resident._tries == 3  # nobody tried to make it stay


def test_a_clang_of_the_system_comes_first(zig, monkeypatch):
    monkeypatch.undo()
    assert find_clang.find().path != zig and not clang_paths.is_zig(find_clang.find().path)


def test_the_setting_names_it(zig):
    assert clang_paths.candidates("ziglang") == [zig]
    found = find_clang.find("ziglang")
    assert found.path == zig and "CL_DRIVER_CLANG names it" in find_clang.explain(found, "ziglang")


def test_what_has_other_rights_is_refused_in_plain_words(zig):
    with pytest.raises(OSError, match="one file"):
        clang.confine("", "", -1)


def test_it_is_named_where_there_is_none(monkeypatch):
    monkeypatch.setattr(native, "packages", lambda: ["/no/such"])
    monkeypatch.setattr(clang_paths, "FIXED_FOLDERS", ())
    monkeypatch.setenv("PATH", "/no/such/folder")
    with pytest.raises(find_clang.ClangError, match="pip install ziglang.*no ziglang in /no/such"):
        find_clang.find()
    assert includes._is_clangs_own(f"{clang_paths.RESOURCES}/include/opencl-c-base.h")
