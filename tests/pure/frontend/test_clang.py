"""clang as a child: programs, logs, headers, dependencies, macros, and defects that are mended."""

from __future__ import annotations

import pytest

from cl_driver.frontend import arguments, clang, effort, find_clang, includes, opencl_c, resident
from cl_driver.frontend.options import parse
from cl_driver.jit import clang_paths
from cl_driver.spirv import reflect
from cl_driver.spirv.enums import Decoration, MemorySemantics, Op, OpenCLStd, Scope, StorageClass
from cl_driver.spirv.layout import size_of
from cl_driver.spirv.reading import reader
from cl_driver.spirv.validation import validate
from tests.marks import IS_EMULATED

LANGUAGE = clang.Language()


def compiled(source: str, options: str = "", **more) -> clang.FrontendResult:
    return opencl_c.compile(source.encode(), parse(options), language=more.pop("language", LANGUAGE), **more)


def module_of(source: str, options: str = "", **more):
    result = compiled(source, options, **more)
    assert result.spirv is not None, result.log
    module = reader.read(result.spirv)
    validate.validate(module, everything=True)
    return module


def instructions(source: str, options: str = "", **more) -> list:
    """Those of the function t."""
    functions = module_of(source, options, **more).functions
    (function,) = (f for f in functions if f.name == "t" or f.name.startswith("_Z1t"))
    return [i for block in function.blocks for i in block.instructions]


def test_a_program():
    result = compiled("kernel void k(global float *p) { p[get_global_id(0)] = 1; }")
    assert result.log == "" and result.dependencies == ()
    assert [e.name for e in reader.read(result.spirv).entry_points] == ["k"]


def test_errors_are_in_the_log_under_the_programs_name():
    result = compiled("kernel void k() {\n  x = 1;\n}")
    assert result.spirv is None
    assert result.log.startswith("program.cl:2:3: error: use of undeclared identifier 'x'")
    # The prelude moves no line.
    result = compiled("kernel void k() {\n  int a = convert_int('a'); x = 1;\n}")
    assert result.log.startswith("program.cl:2:")


def test_warnings():
    source = "kernel void k() { int unused; }"
    assert compiled(source).log == ""
    assert "unused variable" in compiled(source, "-Wall").log
    assert compiled(source, "-Wall -w").log == ""
    assert compiled(source, "-Wall -Werror").spirv is None


@pytest.mark.parametrize(
    "source",
    [
        "kernel int k() { return 1; }",
        "kernel void k(int **p) {}",
        "void f() { f(",
        "kernel void k(bool b) {}",
        "kernel void k(global int *p) { local int x = 3; }",
        "kernel void k() { foo(); }",
        "constant int x; kernel void k() { }",
        "kernel void k(half h) {}",
        "kernel void k(global int *p) { double d = 1; int x = p + 1.0; }",
    ],
)
def test_wrong_programs(source):
    result = compiled(source)
    assert result.spirv is None and "error" in result.log


def test_sloppy_programs_of_old_are_let_through():
    assert "warning" in compiled("kernel void k(global float *p) { global float4 *q = p; *q = 1; }").log
    assert (
        compiled("kernel void k(global float *p) { global float4 *q = p; *q = 1; }", "-Werror").spirv is None
    )


@pytest.mark.parametrize(
    ("options", "condition"),
    [
        ("", "__OPENCL_VERSION__ == 300"),
        ("", "__OPENCL_C_VERSION__ == 120"),
        ("", "defined(cl_khr_fp64)"),
        ("-cl-std=CL3.0", "__OPENCL_C_VERSION__ == 300 && !defined(CL_VERSION_3_1)"),
        ("-cl-std=CL3.1", "__OPENCL_C_VERSION__ == 310 && CL_VERSION_3_1 == 310 && CL_VERSION_3_0 == 300"),
        ("-cl-std=CL3.1 -Werror", "defined(__opencl_c_fp64) && __OPENCL_VERSION__ == 300"),
        ("-cl-std=CL1.1", "__OPENCL_C_VERSION__ == 110"),
        ("-cl-std=CL3.0", "defined(__opencl_c_fp64)"),
        ("", "!defined(__opencl_c_fp64)"),
        ("-cl-std=CL3.0", "!defined(__opencl_c_images) && !defined(__opencl_c_pipes)"),
        ("", "!defined(__IMAGE_SUPPORT__)"),
        ("", "!defined(cl_khr_fp16) && !defined(cl_intel_subgroups)"),
        ("", "__ENDIAN_LITTLE__ == 1"),
        ("-cl-fast-relaxed-math", "__FAST_RELAXED_MATH__ == 1"),
        ("", "!defined(__FAST_RELAXED_MATH__)"),
        ("", "defined(FP_FAST_FMAF)"),
        ("", "CL_VERSION_3_0 == 300"),
        ("-D A=5 -DB", "A == 5 && B == 1"),
        ("-DA -U A", "!defined(A)"),
        ('-D "X=1 + 2"', "X == 3"),
    ],
)
def test_macros(options, condition):
    result = compiled(f"#if !({condition})\n#error no\n#endif\nkernel void k() {{}}", options)
    assert result.spirv is not None, result.log


def test_extensions_that_clang_does_not_know_are_macros_too():
    language = LANGUAGE._replace(extensions=("cl_khr_il_program", "cl_khr_fp64"))
    source = "#if cl_khr_il_program != 1 || defined(cl_khr_byte_addressable_store)\n#error\n#endif\n"
    assert compiled(source, language=language).spirv is not None


def test_headers_of_the_program():
    headers = {"a.h": b'#include "sub/b.h"\n', "sub/b.h": b"#define N 7\n"}
    source = '#include "a.h"\nkernel void k(global int *p) { *p = N; }'
    result = compiled(source, headers=headers)
    assert result.spirv is not None, result.log
    assert result.dependencies == ()
    assert compiled(source).spirv is None
    assert "outside" in compiled("", headers={"../x.h": b""}).log


def test_included_files_are_reported(tmp_path):
    (tmp_path / "sub dir").mkdir()
    (tmp_path / "sub dir" / "a.h").write_text('#include "b.h"\n')
    (tmp_path / "sub dir" / "b.h").write_text("typedef int T;\n")
    source = "#include <a.h>\nkernel void k(global T *p) { *p = 1; }"
    result = compiled(source, '-I "sub dir"', folder=str(tmp_path))
    assert result.spirv is not None, result.log
    assert sorted(result.dependencies) == [str(tmp_path / "sub dir" / name) for name in ("a.h", "b.h")]


def test_no_clang(tmp_path, monkeypatch):
    monkeypatch.setattr(clang_paths, "NAMES", ("clang-not-there",))
    monkeypatch.setattr(clang_paths, "_of_package", lambda: [])
    find_clang.forget()
    try:
        result = compiled("kernel void k() {}")
    finally:
        find_clang.forget()
    assert result.spirv is None and "apt install clang" in result.log
    old = tmp_path / "clang-14"
    old.write_text("#!/bin/sh\n")
    old.chmod(0o755)
    assert "version 14" in compiled("kernel void k() {}", clang=str(old)).log


@pytest.mark.long
def test_a_clang_that_hangs_or_dies(tmp_path, monkeypatch):
    slow = tmp_path / "clang-22"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setattr(effort, "STALLED", 2)
    result = compiled("", clang=str(slow))
    assert result.spirv is None and "did nothing for 2 s" in result.log
    slow.write_text("#!/bin/sh\necho 'LLVM ERROR: out of luck' >&2\nkill -SEGV $$\n")
    find_clang.forget()
    result = compiled("", clang=str(slow))
    assert result.spirv is None and "signal 11" in result.log and "out of luck" in result.log
    slow.write_text("#!/bin/sh\nkill -SEGV $$\n")
    find_clang.forget()
    result = compiled("", clang=str(slow))
    log = result.log[result.log.index("error: ") :] if IS_EMULATED else result.log  # qemu says so, too
    assert result.spirv is None and log.startswith("error: clang crashed (signal 11)\n")


def test_files_that_are_no_part_of_the_program_are_not_quoted(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("swordfish:$6$tuna:19000:\n")
    source = f'kernel void k() {{ undeclared(); }}\n#include "{secret}"\n'
    (tmp_path / "other").mkdir()
    log = compiled(source, folder=str(tmp_path / "other")).log
    assert f"{secret}:1:" in log and "swordfish" not in log and "tuna" not in log
    assert "program.cl:1:" in log and "undeclared(); }" in log
    for options, folder in ((f"-I {tmp_path}", "/"), ("-I ..", str(tmp_path / "other")), ("", str(tmp_path))):
        assert "swordfish:" in compiled(source, options, folder=folder).log
    assert "swordfish" not in compiled(source, folder="/").log
    assert "swordfish:" in compiled('#include "secret"\n', headers={"secret": secret.read_bytes()}).log


def test_a_clang_that_does_not_know_all_extensions_of_spirv(tmp_path):
    """As one of version 20: it is asked again without them, and next time at once."""
    runs = tmp_path / "runs"
    old = tmp_path / "clang-20"
    old.write_text(f"""#!/bin/sh
echo run >> {runs}
for argument; do
    case $argument in -spirv-ext=*) names=$argument ;; esac
done
for name in SPV_KHR_shader_clock SPV_INTEL_subgroups; do
    case $names, in *+$name,*)
        echo "clang (LLVM option parsing): for the --spirv-ext option: Unknown SPIR-V extension: +$name" >&2
        exit 1 ;;
    esac
done
exec {find_clang.find().path} "$@"
""")
    old.chmod(0o755)
    source = "int f(int a) { return a; } kernel void k(global int *p) { *p = f(1); }"
    for count in (5, 6):  # two of them for the corrections of that version
        result = compiled(source, clang=str(old))
        assert result.spirv is not None and result.log == ""
        assert len(runs.read_text().split()) == count
    module = reader.read(result.spirv)
    assert "SPV_KHR_no_integer_wrap_decoration" in clang._extensions_option(find_clang.find(str(old)))
    assert [e.name for e in module.entry_points] == ["k"]
    assert "undeclared" in compiled("kernel void k() { x; }", clang=str(old)).log


def test_programs_that_clang_itself_makes_uncompilable():
    # The optimiser turns the loop into a product of 65 bits.
    loop = "for (long i = 0; i < n; i++) s += i * 3;"
    source = f"kernel void k(global long *p, long n) {{ long s = 0; {loop} *p = s; }}"
    result = compiled(source)
    assert result.spirv is not None and result.log == ""


def test_what_has_failed_is_not_tried_again(monkeypatch):
    """Copies whose name a macro makes need a library of which clang is told when it has made SPIR-V of the
    program; here its back end gives up, but without optimisations."""
    tried, run = [], opencl_c.run

    def note(found, arguments, *more):
        tried.append("-O0" in arguments)
        done = run(found, arguments, *more)
        return done if tried[-1] else done._replace(status=70, errors="fatal error: error in backend\n")

    monkeypatch.setattr(opencl_c, "run", note)
    source = (
        "#define WORK_GROUP(name) async_work_##group_##name\n"
        "kernel void k(global int *a, local int *b) { event_t e = WORK_GROUP(copy)(b, a, 1, 0); "
        "wait_group_events(1, &e); a[0] = b[1]; }"
    )
    assert compiled(source).spirv
    assert tried.index(True) > 1 and tried[tried.index(True) :] == [True, True]


def test_what_clang_cannot_compile_at_all():
    result = compiled('kernel void k() { __asm__("nop"); }')
    assert result.spirv is None
    assert result.log.count("\n") == 1 and "Inline assembly" in result.log


@pytest.mark.parametrize("to", ["char", "uchar", "short", "ushort", "int", "uint", "long", "ulong"])
def test_integer_conversions_extend_by_the_source(to):
    for source, extend in (("char", Op.SConvert), ("uchar", Op.UConvert)):
        for size in ("", "4"):
            for rounding in ("", "_rte"):
                code = instructions(
                    f"{to}{size} t({source}{size} x) {{ return convert_{to}{size}{rounding}(x); }}"
                )
                found = [i.op for i in code if i.op in (Op.SConvert, Op.UConvert)]
                assert found == ([extend] if not to.endswith("char") else [])


@pytest.mark.parametrize(
    ("to", "source", "expected"),
    [
        ("uchar", "ushort", [OpenCLStd.u_min]),
        ("char", "short", [OpenCLStd.s_clamp]),
        ("long", "int", []),
        ("uchar", "short", [Op.SatConvertSToU]),
        ("char", "ushort", [Op.SatConvertUToS]),
        ("ulong", "long", [Op.SatConvertSToU]),
        ("int", "float", [Op.ConvertFToS]),
        ("ulong", "double", [Op.ConvertFToU]),
    ],
)
def test_saturated_conversions(to, source, expected):
    for size in ("", "2"):
        code = instructions(f"{to}{size} t({source}{size} x) {{ return convert_{to}{size}_sat(x); }}")
        found = [i.operands[1] if i.op == Op.ExtInst else i.op for i in code]
        kept = [
            op
            for op in found
            if (op in (OpenCLStd.u_min, OpenCLStd.s_clamp) and not isinstance(op, Op))
            or (
                op in (Op.SatConvertSToU, Op.SatConvertUToS, Op.ConvertFToS, Op.ConvertFToU)
                and isinstance(op, Op)
            )
        ]
        assert kept == expected
        if source in ("float", "double"):
            assert Decoration.SaturatedConversion in code[0].decorations


def test_programs_may_define_macros_of_the_names_of_conversions():
    source = "#define convert_int(x) 5\nkernel void k(global int *p) { *p = convert_int(*p); }"
    assert compiled(source, "-Wall -Werror").log == ""


def test_conversions_in_cpp():
    code = instructions("int t(char c) { return convert_int_rte(c); }", "-cl-std=CLC++")
    assert Op.SConvert in [i.op for i in code]


def test_conversions_of_pasted_names():
    source = "#define C(T, x) convert_##T(x)\nint t(char c) { return C(int, c); }"
    assert instructions(source)[0].op is Op.SConvert


def test_contraction():
    source = "float t(float a, float b, float c) { %s return a * b + c; }"
    fused = [i.op for i in instructions(source % "")]
    assert fused == [Op.ExtInst, Op.ReturnValue]
    for code in (
        instructions(source % "\n#pragma OPENCL FP_CONTRACT OFF\n"),
        instructions(source % "", language=LANGUAGE._replace(fma=False)),
    ):
        assert [i.op for i in code] == [Op.FMul, Op.FAdd, Op.ReturnValue]


@pytest.mark.parametrize("standard", ["CL1.0", "CL1.1", "CL1.2", "CL2.0", "CL3.0", "CL3.1"])
def test_static_functions(standard):
    source = "static int f(int x) { return x; } kernel void k(global int *p) { *p = f(*p); }"
    assert compiled(source, f"-cl-std={standard}").log == ""


def test_atomics_of_2_0():
    language = LANGUAGE._replace(
        features=(
            "__opencl_c_generic_address_space",
            "__opencl_c_atomic_order_seq_cst",
            "__opencl_c_atomic_scope_device",
        )
    )
    source = "int t(global atomic_int *p) { return atomic_fetch_add(p, 1); }"
    assert Op.AtomicIAdd in [i.op for i in instructions(source, "-cl-std=CL2.0", language=language)]


@pytest.mark.parametrize(
    "name", ["atomic_exchange", *(f"atomic_fetch_{what}" for what in ("add", "sub", "or", "xor", "and"))]
)
def test_atomics_without_an_order_are_sequentially_consistent(name):
    language = LANGUAGE._replace(
        features=("__opencl_c_atomic_order_seq_cst", "__opencl_c_atomic_scope_device")
    )
    source = f"int t(global atomic_int *p) {{ return {name}(p, 1); }}"
    (atomic,) = [
        i for i in instructions(source, "-cl-std=CL2.0", language=language) if i.op.name.startswith("Atomic")
    ]
    scope, semantics = (operand.value for operand in atomic.operands[1:3])
    assert scope == Scope.Device and semantics & MemorySemantics.SequentiallyConsistent
    old = f"int {name}(int a, int b) {{ return a + b; }} int t(int x) {{ return {name}(x, 1); }}"
    assert compiled(old, "-cl-std=CL1.2").spirv


def test_no_optimisation():
    assert any(
        i.op == Op.Variable for i in instructions("int t(int x) { int y = x; return y; }", "-cl-opt-disable")
    )


def test_kernel_argument_information():
    source = """typedef struct { int a; } S; typedef float4 mine;
        kernel void k(global const float * restrict a, local volatile int *b, constant S *c, S d, mine e,
                      unsigned char f) {}
        kernel void none(void) {}"""
    k, none = reflect.reflect(module_of(source, "-cl-kernel-arg-info"))
    assert none.args == []
    assert all(a.known for a in k.args)
    assert [a.name for a in k.args] == list("abcdef")
    assert [a.type_name for a in k.args] == ["float*", "int*", "S*", "S", "mine", "uchar"]
    assert [a.type_qualifier for a in k.args] == [3, 4, 1, 0, 0, 0]
    assert [a.address_qualifier for a in k.args] == [0x119B, 0x119C, 0x119D, 0x119E, 0x119E, 0x119E]
    assert not any(a.known for a in reflect.reflect(module_of(source))[0].args)
    asked = arguments.ask(source.encode(), parse(""), language=LANGUAGE)
    assert asked["k"][0][0] == (0x119B, 0x11A3, "float*", 3, "a")


KERNELS = """
    typedef struct { int a; } S; typedef float4 mine;
    kernel void a(global const float * restrict x, constant S *s, read_only image2d_t im, sampler_t sm,
                  local volatile int *l, mine v, S whole, unsigned long n) {}
    int helper(int x) { return x + 1; }
    __attribute__((vec_type_hint(uint4))) kernel void b(global int *q) { q[0] = helper(1); }
    __attribute__((vec_type_hint(double))) kernel void c(void) {}
"""


@pytest.mark.parametrize("stays", [False, True])
@pytest.mark.parametrize("options", ["", "-cl-opt-disable", "-cl-fast-relaxed-math", "-g", "-cl-std=CL1.2"])
def test_one_run_of_clang_tells_what_a_second_one_would(monkeypatch, stays, options):
    """Also one that stays, and holds."""
    options += " -cl-kernel-arg-info -cl-std=CL3.0" if "-cl-std" not in options else " -cl-kernel-arg-info"
    parsed, runs, real = parse(options), [], arguments.ask
    monkeypatch.setattr(arguments, "ask", lambda *given: runs.append(given) or real(*given))
    monkeypatch.setattr(resident, "_tries", 3 * stays)
    try:
        for _ in range(3):
            made = opencl_c.compile(KERNELS.encode(), parsed)
            assert made.spirv, made.log
            seen = {k.name: k for k in reflect.reflect(reader.read(made.spirv))}
            asked = real(KERNELS.encode(), parsed)
            assert [*seen] == [*asked] == ["a", "b", "c"]
            for name, (rows, hint) in asked.items():
                of = [
                    (a.address_qualifier, a.access_qualifier, a.type_name, a.type_qualifier, a.name)
                    for a in seen[name].args
                ]
                assert of == [tuple(row) for row in rows]
                assert seen[name].attributes == (f"vec_type_hint({hint})" if hint else "")
    finally:
        resident.end()
    assert not runs


def test_where_nothing_is_told_of_kernels_clang_runs_again(monkeypatch):
    told = opencl_c.compile(KERNELS.encode(), parse("-cl-kernel-arg-info")).spirv
    runs, real = [], arguments.ask
    monkeypatch.setattr(arguments, "ask", lambda *given: runs.append(given) or real(*given))
    monkeypatch.setattr(includes, "of_kernels", lambda _: None)
    assert opencl_c.compile(KERNELS.encode(), parse("-cl-kernel-arg-info")).spirv == told
    assert len(runs) == 1


def test_what_is_told_of_kernels_is_all_or_nothing():
    told = ["k", "1", "1", "none", "float*", "const restrict", "x", "<4 x i32>", "0"]
    assert arguments.of_fields(told) == {"k": ([(0x119B, 0x11A3, "float*", 3, "x")], "uint4")}
    assert arguments.of_fields(["c", "0", "double", "1"]) == {"c": ([], "double")}
    assert arguments.of_fields([]) == {}
    for wrong in (told[:-1], told[:4], ["k", "x", *told[2:]]):
        assert arguments.of_fields(wrong) is None


@pytest.mark.parametrize("hint", ["uint", "int4", "uchar16", "float", "double2", "ulong3", "short8", "char"])
def test_vector_type_hints_keep_their_signedness(hint):
    source = f"__attribute__((vec_type_hint({hint}))) kernel void k(global int *p) {{ *p = 1; }}"
    (k,) = reflect.reflect(module_of(source))
    assert k.attributes == f"vec_type_hint({hint})"
    assert not k.args[0].known


def test_attributes():
    (k,) = reflect.reflect(
        module_of("__attribute__((reqd_work_group_size(8, 2, 1))) kernel void k(float3 v) {}")
    )
    assert k.required_local_size == (8, 2, 1)
    assert k.attributes == "reqd_work_group_size(8,2,1)"
    assert (k.args[0].size, k.args[0].align) == (16, 16)


@pytest.mark.parametrize(
    "name, more", [("async_work_group_copy", ""), ("async_work_group_strided_copy", "2, ")]
)
def test_local_arrays_that_only_builtins_use_keep_their_size(name, more):
    source = f"""kernel void k(global const float *in, global ushort *out) {{
      local ushort data[4096];
      vstore_half(in[get_global_id(0)], get_local_id(0), (local half *)data);
      barrier(CLK_LOCAL_MEM_FENCE);
      event_t event = {name}(out, data, get_local_size(0), {more}0);
      wait_group_events(1, &event);
    }}"""
    module = module_of(source)
    sizes = [size_of(v.type.element) for v in module.variables if v.type.storage is StorageClass.Workgroup]
    assert sizes == [8192]
