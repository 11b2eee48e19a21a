"""What is in force for every program, whatever words it has: macros of extensions, functions that clang does
not declare by itself, bodies of those that its back end gets wrong; and programs that use these names
otherwise."""

from __future__ import annotations

import os

import pytest

from cl_driver.frontend import clang, corrections, find_clang, opencl_c, prelude
from cl_driver.frontend.options import parse
from cl_driver.spirv.reading.reader import read
from tests.marks import few

STANDARDS = [
    "",
    *(
        f"-cl-std={s}"
        for s in ("CL1.0", "CL1.1", "CL1.2", "CL2.0", "CL3.0", "CL3.1", "CLC++1.0", "CLC++2021")
    ),
]

# What a kernel does with a function, and the instruction or the import that has to come of it.
NAMES = {
    "bit_reverse": ("p[0] = bit_reverse(p[0]);", "BitReverse"),
    "bitfield_insert": ("p[0] = bitfield_insert(p[0], p[1], 3u, 4u);", "BitFieldInsert"),
    "bitfield_extract": ("p[0] = bitfield_extract_unsigned(p[0], 3u, 4u);", "BitFieldUExtract"),
    "dot": ("p[0] = dot(as_char4(p[0]), as_char4(p[1]));", "SDot"),
    "dot_packed": ("p[0] = dot_acc_sat_4x8packed_uu_uint(p[0], p[1], p[2]);", "UDotAccSat"),
    "bfloat16": ("p[0] = intel_convert_bfloat16_as_ushort(as_float(p[0]));", "ConvertFToBF16"),
    "bfloat16_vector": ("p[0] = intel_convert_as_bfloat162_float2(as_ushort2(p[0])).x;", "ConvertBF16ToF"),
    "work_group": ("p[0] = work_group_reduce_mul(p[0]);", "GroupIMul"),
    "work_group_logical": ("p[0] = work_group_scan_inclusive_logical_and((int)p[0]);", "GroupLogicalAnd"),
    "sub_group": ("p[0] = sub_group_reduce_add(p[0]);", "GroupIAdd"),
    "sub_group_shuffle": ("p[0] = sub_group_shuffle_xor(p[0], 1u);", "GroupNonUniformShuffleXor"),
    "sub_group_rotate": ("p[0] = sub_group_clustered_rotate(p[0], 1, 2u);", "GroupNonUniformRotate"),
    "conversion": ("p[0] = convert_int(((global char *)p)[5]);", "SConvert"),
    "conversion_rounded": ("p[0] = convert_int_rtp(((global char *)p)[5]);", "SConvert"),
    "conversion_vector": ("p[0] = convert_uint4_rte(((global char4 *)p)[5]).y;", "SConvert"),
    "lod": ("p[0] = read_imagef(i, s, (float2)(0.5f), 2.0f).x;", "__cld_read_image_lod_f"),
    "gradient": (
        "p[0] = read_imageui(i, s, (float2)(0.5f), (float2)(1), (float2)(2)).x;",
        "__cld_read_image_gradient_ui",
    ),
    "write_lod": ("write_imagei(o, (int4)(0), 1, (int4)(2));", "__cld_write_image_lod_i"),
}  # fmt: skip


@pytest.fixture(scope="module")
def language():
    return clang.device_language()


def compiled(source: str, options: str, language, headers=None, folder=None) -> clang.FrontendResult:
    return opencl_c.compile(source.encode(), parse(options), headers or {}, language=language, folder=folder)


def said_of(spirv: bytes) -> set[str]:
    """Names of the instructions of a module, and of the functions that it imports."""
    found = set()
    for function in read(spirv).functions:
        if function.linkage and not function.blocks:
            found.add(function.linkage[0])
        for block in function.blocks:
            found.update(i.op.name for i in block.instructions)
    return found


def has(spirv: bytes, wanted: str) -> bool:
    return any(wanted in name for name in said_of(spirv))


@pytest.mark.parametrize("options", STANDARDS)
def test_every_extension_has_its_macro(options, language):
    names = set(language.extensions) - {"cl_ext_cxx_for_opencl"}  # a language, without one
    lines = [f"#if !defined({name}) || {name} != 1\n#error {name}\n#endif\n" for name in names]
    result = compiled("".join(lines) + "kernel void k() {}", options, language)
    assert result.spirv is not None, result.log
    assert len(language.extensions) > 30


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("options", few(["", "-cl-std=CL3.0"], 1))
def test_names_that_the_source_does_not_have(name, options, language, tmp_path):
    """In a file of an include folder, in a header of clCompileProgram, and pasted together."""
    body, wanted = NAMES[name]
    parameters = "global uint *p, read_only image2d_t i, sampler_t s, write_only image3d_t o"
    kernel = f"kernel void k({parameters}) {{ {body} }}"
    (tmp_path / "names.h").write_text(kernel)
    by_folder = compiled('#include "names.h"\n', f"{options} -I{tmp_path}", language)
    assert by_folder.spirv and has(by_folder.spirv, wanted), by_folder.log
    assert by_folder.dependencies == (str(tmp_path / "names.h"),)
    given = compiled('#include "names.h"\n', options, language, {"names.h": kernel.encode()})
    assert given.spirv and has(given.spirv, wanted), given.log
    function = body.removeprefix("p[0] = ").partition("(")[0]
    pasted = kernel.replace(f"{function}(", f"PASTE({function[:3]}, {function[3:]})(", 1)
    result = compiled(f"#define PASTE(a, b) a##b\n{pasted}", options, language)
    assert result.spirv and has(result.spirv, wanted), result.log


# Programs of the time before the functions, and others that have these names for something else.
OWN = {
    "function": "uint bit_reverse(uint x) { return x + 1; } "
    "kernel void k(global uint *p) { *p = bit_reverse(*p); }",
    "other function": "int dot(char4 a, char4 b) { return a.x + b.y; } "
    "kernel void k(global int *p, char4 a) { *p = dot(a, a); }",
    "function of the group": "float work_group_reduce_mul(float x) { return x * 3; } "
    "kernel void k(global float *p) { *p = work_group_reduce_mul(*p); }",
    "static function": "static ushort intel_convert_bfloat16_as_ushort(float x) { return as_uint(x) >> 16; } "
    "kernel void k(global ushort *p, float x) { *p = intel_convert_bfloat16_as_ushort(x); }",
    "conversion": "int convert_int(float x) { return 7; } "
    "kernel void k(global int *p) { *p = convert_int(*p); }",
    "conversion of all": "uchar4 convert_uchar4_sat(int4 x) { return (uchar4)(7); } "
    "kernel void k(global uchar4 *p, int4 x) { *p = convert_uchar4_sat(x); }",
    "overload": "int __attribute__((overloadable)) convert_int(char x) { return 7; } "
    "kernel void k(global int *p, char c) { *p = convert_int(c); }",
    "read": "float4 read_imagef(int a, int b) { return (float4)(a, b, 1, 1); } "
    "kernel void k(global float4 *p) { *p = read_imagef(1, 2); }",
    "same read": "float4 read_imagef(read_only image2d_t i, sampler_t s, float2 at, float lod) "
    "{ return lod; } "
    "kernel void k(global float4 *p, read_only image2d_t i, sampler_t s) "
    "{ *p = read_imagef(i, s, p->xy, 1); }",
    "variable": "constant int work_group_reduce_xor = 5; "
    "kernel void k(global int *p) { int sub_group_any = 3, dot = 4; *p = work_group_reduce_xor + dot; }",
    "member": "typedef struct { int dot, convert_int, bit_reverse, work_group_reduce_and; } S; "
    "kernel void k(global S *p) { p->dot = p->convert_int + p->bit_reverse + p->work_group_reduce_and; }",
    "type": "typedef int work_group_scan_inclusive_mul; "
    "kernel void k(global work_group_scan_inclusive_mul *p) { *p = 1; }",
    "label": "kernel void k(global int *p) { if (*p) goto vloada_half3; *p = 1; vloada_half3:; }",
    "macro": "#define vloada_half3(x) x\n#define write_imagef 5\n#define work_group_reduce_or(a, b) a\n"
    "kernel void k(global int *p) { *p = vloada_half3(1) + write_imagef + work_group_reduce_or(1, 2); }",
    "defined": "#if defined(read_imagef) || defined(convert_int)\n#error no\n#endif\n"
    "kernel void k(global int *p) { *p = 1; }",
    "undefined": "#undef read_imagef\n#undef convert_int\n"
    "kernel void k(global int *p) { *p = convert_int(1.5f); }",
    "address": "kernel void k(global int *p) { int (dot) = 1; *p = (convert_int)(2.5f) + dot; }",
}


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("options", ["", "-cl-std=CL1.1", "-cl-std=CL3.0"])
def test_programs_may_have_these_names_for_something_else(name, options, language):
    result = compiled(OWN[name], f"{options} -Werror", language)
    assert result.spirv is not None and result.log == "", result.log


def test_a_programs_own_function_is_the_one_that_is_called(language):
    """Also that of another signature, and of the very signature that is corrected."""
    result = compiled(OWN["overload"] + "int t(char c) { return convert_int(c); }", "", language)
    ops = said_of(result.spirv)
    assert "SConvert" not in ops and "UConvert" not in ops
    own = "float work_group_reduce_mul(float x) { return x * 3; } "
    own += "float t(float x) { return work_group_reduce_mul(x); }"
    assert not has(compiled(own, "", language).spirv, "GroupFMul")


def test_options_may_take_the_names(language):
    source = "kernel void k(global int *p) { *p = read_imagef + convert_int(2); }"
    result = compiled(source, "-Dread_imagef=7 -Dconvert_int(x)=5 -Werror", language)
    assert result.spirv is not None and result.log == "", result.log


def test_the_log_has_no_line_of_the_prelude(language):
    source = "kernel void k(global int *p) {\n  *p = work_group_reduce_mul(p, 3);\n}"
    result = compiled(source, "", language)
    assert result.spirv is None and prelude.NAME not in result.log
    assert "program.cl:2:8: error: no matching function" in result.log
    assert "candidate function not viable" in result.log and "__attribute__" not in result.log
    both = "float work_group_reduce_mul(float x) { return x; } int f(void) { return nothing; }"
    result = compiled(both, "", language)
    assert result.log.count("error:") == 1 and "nothing" in result.log and prelude.NAME not in result.log


@pytest.mark.parametrize("options", ["", "-cl-opt-disable", "-g", "-cl-fast-relaxed-math -cl-std=CLC++"])
def test_nothing_comes_with_a_program_that_it_does_not_call(options, language):
    spirv = compiled(
        "kernel void k(global int *p, global char *c) { *p = convert_int(*c); }", options, language
    )
    functions = [f for f in read(spirv.spirv).functions if f.linkage]
    assert not any("convert" in f.linkage[0] or "work_group" in f.linkage[0] for f in functions)
    assert len(spirv.spirv) < 4000
    assert has(spirv.spirv, "SConvert") and not has(spirv.spirv, "UConvert")


def test_macros_that_tell_of_a_place(language):
    source = (
        'typedef char f[sizeof(__FILE__) == sizeof("program.cl") ? 1 : -1];\n'
        "#if __LINE__ != 2 || __COUNTER__ != 0 || __INCLUDE_LEVEL__ != 0\n#error\n"
        "#endif\nkernel void k(global int *p) { *p = 1; }"
    )
    result = compiled(source, "", language)
    assert result.log == "" and result.spirv


@pytest.mark.parametrize(
    "directive", ["#inc\\\nlude", "#import", "%:include", "??=include", "# /**/ inc\\ \nlude"]
)
def test_files_are_dependencies_however_they_are_included(directive, language, tmp_path):
    (tmp_path / "five.h").write_text("kernel void k(global int *p) { *p = 5; }")
    result = compiled(f'{directive} "five.h"\n', f"-I{tmp_path}", language)
    if result.spirv is not None and directive[0] != "?":  # trigraphs may be off
        assert result.dependencies == (str(tmp_path / "five.h"),)
    else:
        assert directive[0] == "?"


@pytest.mark.parametrize("options, parts", [("", {""}), ("-cl-std=CL3.0", {"", "-atomics"})])
def test_a_program_has_the_libraries_that_it_can_need(options, parts, language, monkeypatch):
    """Each function of one costs every program time."""
    asked = []
    path = corrections.path
    monkeypatch.setattr(corrections, "path", lambda *a: asked.append(a[-1].value) or path(*a))
    compiled("kernel void k(global int *p, global char *c) { *p = convert_int(*c); }", options, language)
    assert set(asked) == parts
    asked.clear()
    copy = "kernel void k(global int *p) { local int a[9]; event_t e = async_work_group_copy(a, p, 9, 0); "
    compiled(copy + "wait_group_events(1, &e); async_work_group_copy(p, a, 9, 0); }", options, language)
    assert set(asked) == {*parts, "-seldom"}


COPIES = """
event_t e = COPY(a, p, 9, 0);
wait_group_events(1, &e);
COPY(p, a, 9, 0);
"""


@pytest.mark.parametrize("options", ["", "-g", "-cl-std=CL2.0"])
def test_a_program_that_names_asynchronous_copies_is_compiled_once(options, language, monkeypatch):
    """One whose macros put their names together is compiled again, to the same."""
    runs = []
    run = opencl_c.run
    monkeypatch.setattr(opencl_c, "run", lambda *a, **k: runs.append(a) or run(*a, **k))
    source = "#define COPY NAME\nkernel void k(global int *p) { local int a[9]; " + COPIES + "}"
    once = compiled(source.replace("NAME", "async_work_group_copy"), options, language).spirv
    count = len(runs)
    paste = "PASTE(async_work, _group_copy)\n#define PASTE(a, b) a##b"
    twice = compiled(source.replace("NAME", paste), options, language).spirv
    assert has(once, "GroupAsyncCopy")
    if options != "-g":
        assert (count, len(runs) - count) == (1, 2)
        assert once == twice


def test_libraries_are_small():
    sizes = {part: corrections.source(part).count("CLD_FUNCTION ") for part in corrections.Part}
    assert sizes[corrections.Part.ALWAYS] < 600 < sizes[corrections.Part.SELDOM]


def test_an_older_clang_gets_corrections_of_its_own():
    """The built libraries are of version 22 or so; what no built one fits is made, and kept."""
    found = find_clang.find()
    path = corrections.path(found.path, 1)
    assert path.startswith(f"/proc/{os.getpid()}/fd/") and corrections.path(found.path, 1) == path
    with open(path, "rb") as file:
        made = file.read()
    with open(corrections.path(found.path, found.major), "rb") as file:
        assert file.read() == made
    with pytest.raises(corrections.CorrectionsError, match="false made no corrections"):
        corrections.bitcode("/bin/false", corrections.Part.ALWAYS)
