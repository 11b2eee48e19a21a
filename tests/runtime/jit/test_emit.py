"""Objects for every target: only the features that were asked for, only the symbols that the loader has."""

import re

import pytest

from cl_driver.device.cpu import Cpu
from cl_driver.device.target import Target, make_target
from cl_driver.jit import emit
from cl_driver.jit.elf import symbols, undefined_symbols
from cl_driver.jit.errors import CompileError
from tests.runtime.code_loader import link
from tests.runtime.jit.test_code_loader import SIGNATURE

FLAGS = (
    "cmov cx8 cx16 fxsr mmx sse sse2 pni ssse3 sse4_1 sse4_2 popcnt lahf_lm avx avx2 bmi1 bmi2 f16c fma abm "
    "movbe xsave avx512f avx512bw avx512cd avx512dq avx512vl"
)
EVERYTHING = Cpu("x86_64", "all", "vendor", frozenset(FLAGS.split()), 0)
AARCH64 = Target("aarch64-unknown-linux-gnu", ("fp-armv8", "neon"), 128)

# Multiply-add over an array: what a vectoriser and fma are for.
LOOP = f"""
define void @kernel{SIGNATURE[:-8]} #0 {{
entry:
  %a = load ptr, ptr %args
  br label %loop
loop:
  %i = phi i64 [ %first, %entry ], [ %next, %loop ]
  %p = getelementptr inbounds float, ptr %a, i64 %i
  %x = load float, ptr %p
  %y = call contract float @llvm.fmuladd.f32(float %x, float 3.0, float 1.0)
  store float %y, ptr %p
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, %last
  br i1 %more, label %loop, label %end
end:
  ret void
}}
declare float @llvm.fmuladd.f32(float, float, float)
attributes #0 = {{ nounwind "prefer-vector-width"="512" }}
"""


@pytest.mark.parametrize("setting, expected, absent", [
    ("x86-64", r"\bmulps\b", r"\bv[a-z0-9]+ps\b|%[yz]mm"),
    ("x86-64-v2", r"\bmulps\b", r"\bv[a-z0-9]+ps\b|%[yz]mm"),
    ("x86-64-v3", r"\bvfmadd[0-9]+ps\b.*%ymm", r"%zmm"),
    ("x86-64-v4", r"\bvfmadd[0-9]+ps\b.*%zmm", r"never"),
    ("native,-avx512f", r"%ymm", r"%zmm"),
    ("-fma", r"\bvmulps\b.*%ymm", r"vfmadd|%zmm"),
])  # fmt: skip
def test_only_what_the_target_has(setting, expected, absent):
    text = emit.assembly(LOOP, make_target(EVERYTHING, setting))
    assert re.search(expected, text) and not re.search(absent, text)


def test_a_target_of_another_architecture():
    assert re.search(r"\bfmla\b|\bfmadd\b", emit.assembly(LOOP, AARCH64))
    link(emit.compile_ir(LOOP, AARCH64), 0x10000, aarch64=True)


@pytest.mark.parametrize("passes", ["O0", "O1", "O2", "O3", "scalar", "short", "ordered"])
@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_all_pass_lists_and_levels(passes, level):
    data = emit.compile_ir(LOOP, make_target(EVERYTHING), passes, level)
    assert [s.name for s in symbols(data) if s.is_global and s.section] == ["kernel"]
    assert undefined_symbols(data) == []


@pytest.mark.parametrize("text, reason", [
    ("define void @f( {", "expected type"),
    ("define i32 @f() { ret i64 0 }", "value doesn't match|'i64' but expected 'i32'"),
    ("define void @f() {\n br label %x\n}", "undefined value"),
    ("define i32 @f(i1 %c) {\n br i1 %c, label %a, label %b\na:\n %v = add i32 1, 2\n br label %b\n"
     "b:\n ret i32 %v\n}", "dominate"),
    ("", None),
])  # fmt: skip
def test_text_that_is_not_valid_is_an_error(text, reason):
    if reason is None:
        assert emit.compile_ir(text, make_target(EVERYTHING))[:4] == b"\x7fELF"
        return
    with pytest.raises(CompileError, match=reason):
        emit.compile_ir(text, make_target(EVERYTHING))
    assert emit.compile_ir(LOOP, make_target(EVERYTHING))  # and the next one works


def test_an_architecture_that_llvm_does_not_know():
    with pytest.raises(CompileError, match="pdp11"):
        emit.compile_ir(LOOP, Target("pdp11-unknown-linux-gnu", (), 64))


def test_the_same_text_gives_the_same_object():
    target = make_target(EVERYTHING)
    assert emit.compile_ir(LOOP, target) == emit.compile_ir(LOOP, target)


def test_what_the_library_must_provide_is_named_once():
    text = f"""define void @kernel{SIGNATURE} {{
  %x = load double, ptr %args
  %y = frem double %x, 3.0
  %z = call double @llvm.sin.f64(double %y)
  store double %z, ptr %args
  ret void
}}
declare double @llvm.sin.f64(double)"""
    with pytest.raises(CompileError, match=r"fmod, sin$"):
        emit.compile_ir(text, make_target(EVERYTHING))
