"""SPV_INTEL_inline_assembly: registers, memory, masks and effects at every width, and what LLVM refuses.

The interpreter has no assembler: expected values are numpy's.
"""

from __future__ import annotations

import platform

import numpy as np
import pytest

from cl_driver.compiler import inline_assembly, pipeline
from cl_driver.jit.errors import CompileError
from cl_driver.spirv.errors import SpirvError
from cl_driver.spirv.reading import reader
from cl_driver.spirv.validation import validate
from cl_driver.spirv.writer import write
from tests.runtime.kernel_harness import Program
from tests.runtime.program.clang import compile_with
from tests.runtime.spirv_kernels import GROUP, ITEMS, WIDTHS, X, Y, buffer, module

CAPABILITY = 'OpCapability AsmINTEL\nOpExtension "SPV_INTEL_inline_assembly"'
TARGET = '%target = OpAsmTargetINTEL "spirv64-unknown-unknown"\n'
FLAGS = "~{dirflag},~{fpsr},~{flags}"
EXTENSION = ("SPV_INTEL_inline_assembly",)

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the assembly is x86's")


def declared(text: str, constraints: str, result="i32", operands=("i32", "i32"), target=TARGET) -> str:
    types = " ".join(f"%{t}" for t in (result, *operands))
    return (
        f"{target}%fasm = OpTypeFunction {types}\n%asm = OpAsmINTEL %{result} %fasm %target {quoted(text)} "
        + (f"{quoted(constraints)}\n")
    )


def quoted(text: str) -> str:
    return '"' + text.replace("\n", "\\n") + '"'


ADD_TWICE = declared("leal ($1,$2,2), $0", f"=r,r,r,{FLAGS}")
CALL = "%r = OpAsmCallINTEL %i32 %asm %x %y"


def source(body: str = CALL, types: str = ADD_TWICE, of=("i32", "i32"), **parts) -> bytes:
    return module(body, *of, parts.pop("capabilities", CAPABILITY), types=types, **parts)


def run(spirv: bytes, width: int, x=X, y=Y, dtype=np.int32) -> np.ndarray:
    out = buffer(ITEMS, dtype)
    Program(spirv, width=width).run("main", ITEMS, GROUP, x, y, out)
    return out


@pytest.mark.parametrize("width", WIDTHS)
def test_registers(width):
    assert run(source(), width).tolist() == (X + 2 * Y).tolist()


@pytest.mark.parametrize("width", WIDTHS)
def test_vector_registers(width):
    types = declared("vaddsd $2, $1, $0", "=x,x,x", "f64", ("f64", "f64"))
    x, y = X / 7, Y / 3
    got = run(source("%r = OpAsmCallINTEL %f64 %asm %x %y", types, ("f64", "f64")), width, x, y, np.float64)
    assert got.tolist() == (x + y).tolist()


@pytest.mark.parametrize("width", WIDTHS)
def test_several_results_and_clobbers(width):
    """Two results are a structure; a register that the assembly spoils, and fixed ones."""
    types = "%pair = OpTypeStruct %i32 %i32\n" + declared(
        "movl $2, %ecx\nnotl %ecx\nmovl %ecx, $0\nmovl $3, $1", "=&{eax},=&{edx},r,r", "pair"
    )
    body = """
%both = OpAsmCallINTEL %pair %asm %x %y
%first = OpCompositeExtract %i32 %both 0
%second = OpCompositeExtract %i32 %both 1
%r = OpISub %i32 %first %second
"""
    decorations = 'OpDecorate %asm ClobberINTEL "ecx"\nOpDecorate %asm ClobberINTEL "~{flags}"'
    spirv = source(body, types, decorations=decorations)
    assert run(spirv, width).tolist() == (~X - Y).tolist()
    assert '"=&{eax},=&{edx},r,r,~{ecx},~{flags}"' in Program(spirv, width=1).code("main").text


MASKED = """
%odd = OpBitwiseAnd %i32 %x %one
%isodd = OpINotEqual %bool %odd %zero
OpSelectionMerge %join None
OpBranchConditional %isodd %then %join
%then = OpLabel
%called = OpAsmCallINTEL %void %asm %rx %y
OpBranch %join
%join = OpLabel
%r = OpLoad %i32 %rx
"""


@pytest.mark.parametrize("width", WIDTHS)
def test_memory_under_a_mask(width):
    """Lanes that do not take part do nothing; what follows sees what the assembly wrote."""
    types = "%one = OpConstant %i32 1\n%zero = OpConstant %i32 0\n" + declared(
        "movl $1, ($0)", "r,r,~{memory}", "void", ("pi", "i32")
    )
    types = "%pi = OpTypePointer CrossWorkgroup %i32\n" + types
    spirv = source(MASKED, types, decorations="OpDecorate %asm SideEffectsINTEL")
    assert run(spirv, width).tolist() == np.where(X & 1, Y, 0).tolist()
    assert "asm sideeffect" in Program(spirv, width=1).code("main").text


@pytest.mark.parametrize("width", WIDTHS)
def test_many_calls(width):
    """So many that lanes are a loop, in which one is written."""
    calls = "%r0 = OpCopyObject %i32 %x\n" + "".join(
        f"%r{k + 1} = OpAsmCallINTEL %i32 %asm %r{k} %y\n" for k in range(60)
    )
    want = X + 120 * Y
    assert run(source(calls + "%r = OpCopyObject %i32 %r60"), width).tolist() == want.tolist()


COUNTED = """
kernel void count(global int *p, global int *q, global int *out) {
    int i = get_global_id(0), n = p[i] & 7, total = 0;
    for (int k = 0; k < n; k++)
        __asm__ volatile("addl %1, %0" : "+r"(total) : "r"(q[i]));
    int product;
    __asm__("imull %2, %0" : "=r"(product) : "0"(total), "r"(3));
    if (i % 3 == 0)
        __asm__ volatile("movl %1, %0" : "=m"(out[i]) : "r"(product) : "memory");
    else
        out[i] = product + 1;
}
"""


@pytest.mark.parametrize("width", WIDTHS)
def test_as_clang_writes_it(width):
    """In loops of lanes of different counts; memory as an operand, and registers read and written."""
    out = buffer(ITEMS, np.int32)
    spirv = compile_with(COUNTED, EXTENSION, "-cl-std=CL3.0")
    Program(spirv, width=width).run("count", ITEMS, GROUP, X, Y, out)
    want = (X & 7) * Y * 3 + (np.arange(ITEMS) % 3 != 0)
    assert out.tolist() == want.tolist()


def test_in_a_function_of_its_own():
    """Declarations "can also appear in function bodies", and the writer puts them back."""
    spirv = source(ADD_TWICE.split("\n", 2)[2] + CALL, "\n".join(ADD_TWICE.split("\n")[:2]) + "\n")
    assert run(spirv, 4).tolist() == (X + 2 * Y).tolist()
    written = write(reader.read(spirv))
    validate.validate(reader.read(written))
    assert run(written, 4).tolist() == (X + 2 * Y).tolist()


@pytest.mark.parametrize(
    ("text", "constraints", "words"),
    [
        ("foo $0, $1", "=r,r,r", "invalid instruction mnemonic 'foo'"),
        ("", "=r,r", "number of input constraints"),
        ("", "hahaha", "without outputs must return void"),
        ("", "=r,7,r", "failed to parse constraints"),
        ("", "=r,i,r", "invalid operand for inline asm constraint 'i'"),
        ("movl $9, $0", "=r,r,r", "Invalid $ operand number"),
        ("$" + "{", "=r,r,r", "Bad $ operand number"),
        ("call nothing", "=r,r,r", "functions that the driver does not have: nothing"),
        (".if", "=r,r,r", "unknown token"),
        ("", "=a,a,a", "couldn't allocate output register"),
        ('\x01"\\\xff', "=r,r,r", "inline assembly: "),
    ],
)
def test_what_llvm_refuses(text, constraints, words):
    """A build failure with LLVM's words, and this process goes on."""
    spirv = source(types=declared(text.replace('"', '\\"'), constraints))
    with pytest.raises(CompileError) as failure:
        pipeline.build(bundled(spirv), "", host())
    assert words in str(failure.value) and "kernel 'main'" in str(failure.value)


def test_assembly_without_end(monkeypatch):
    monkeypatch.setenv("CL_DRIVER_COMPILE_TIMEOUT", "1")
    spirv = source(types=declared(".rept 100000000\nnop\n.endr", "=r,r,r"))
    with pytest.raises(CompileError, match="took too long"):
        pipeline.build(bundled(spirv), "", host())


def bundled(spirv: bytes) -> bytes:
    from cl_driver.jit import bundle

    return bundle.pack([(spirv, {})])


def host():
    from cl_driver import settings
    from cl_driver.device.target import target_of

    return target_of(settings)


def test_refused_by_setting(monkeypatch):
    monkeypatch.setenv("CL_DRIVER_INLINE_ASSEMBLY", "0")
    with pytest.raises(CompileError, match="inline assembly is refused"):
        pipeline.prepare(bundled(source()), pipeline.Context(host(), "", {}))


def test_refused_with_more_rights_than_the_user_has(monkeypatch):
    from cl_driver import trust

    monkeypatch.setattr(trust, "_known", [False])
    with pytest.raises(SpirvError, match="inline assembly is refused"):
        inline_assembly.refuse(reader.read(source()))


@pytest.mark.parametrize(
    ("target", "fits_x86", "fits_arm"),
    [
        ("spirv64-unknown-unknown", True, True),
        ("spir64", True, True),
        ("", True, True),
        ("spir64_x86_64-unknown-unknown", True, False),
        ("x86_64-unknown-linux-gnu", True, False),
        ("AMD64", True, False),
        ("spir64_gen-unknown-unknown", False, False),
        ("spir64_aarch64", False, True),
        ("aarch64-unknown-linux-gnu", False, True),
        ("arm64", False, True),
        ("riscv64-unknown-elf", False, False),
    ],
)
def test_targets(target, fits_x86, fits_arm):
    line = f'%target = OpAsmTargetINTEL "{target}"\n'
    spirv = source(types=declared("", "=r,0,r", target=line))
    for architecture, fits in (("x86_64", fits_x86), ("aarch64", fits_arm)):
        if fits:
            inline_assembly.check_targets(reader.read(spirv), architecture)
            continue
        with pytest.raises(SpirvError, match=f"OpAsmCallINTEL: assembly for '{target}'.*{architecture}"):
            inline_assembly.check_targets(reader.read(spirv), architecture)


@pytest.mark.parametrize(
    ("parts", "rule"),
    [
        ({"body": "%r = OpAsmCallINTEL %i32 %asm %x"}, "1 arguments, the function has 2"),
        ({"body": "%s = OpAsmCallINTEL %i64 %asm %x %y\n%r = OpUConvert %i32 %s"}, "a result of type int64"),
        ({"body": "%r = OpAsmCallINTEL %i32 %asm %x %id"}, "an argument of type int64"),
        ({"body": "%r = OpAsmCallINTEL %i32 %x %x %y"}, "a call of what is no OpAsmINTEL"),
        ({"body": "%r = OpAsmCallINTEL %i32 %main %x %y"}, "a call of what is no OpAsmINTEL"),
        ({"body": "%r = OpAsmCallINTEL %i32 %target %x %y"}, "used before its definition, or has none"),
        ({"body": "%r = OpAsmCallINTEL %asm %asm %x %y"}, "is not a type"),
        ({"body": "%r = OpFunctionCall %i32 %asm %x %y"}, "OpFunctionCall: "),
        ({"body": "%r = OpIAdd %i32 %asm %y"}, "OpIAdd: "),
        ({"body": "%r = OpSelect %i32 %asm %x %y"}, "OpSelect: "),
        ({"body": "OpStore %asm %x\n%r = OpCopyObject %i32 %x"}, "OpStore: "),
        ({"body": "%s = OpLoad %i32 %asm\n%r = OpCopyObject %i32 %x"}, "OpLoad: "),
        ({"types": ADD_TWICE.replace("OpAsmINTEL %i32", "OpAsmINTEL %i64")}, "does not fit its result type"),
        ({"types": ADD_TWICE.replace("%fasm %target", "%i32 %target")}, "does not fit its result type"),
        ({"types": ADD_TWICE.replace("%fasm %target", "%fasm %fasm")}, "is not an OpAsmTargetINTEL"),
        ({"types": TARGET + ADD_TWICE}, "is defined twice"),
        ({"types": ADD_TWICE.rsplit(' "', 1)[0] + "\n"}, "OpAsmINTEL: "),
        ({"decorations": "OpDecorate %main SideEffectsINTEL"}, "a decoration of inline assembly for id"),
        ({"decorations": 'OpDecorate %i32 ClobberINTEL "eax"'}, "a decoration of inline assembly for id"),
        ({"capabilities": ""}, "OpAsmTargetINTEL: needs the capability AsmINTEL"),
    ],
)
def test_modules_that_are_wrong(parts, rule):
    with pytest.raises(SpirvError, match=rule):
        validate.validate(reader.read(source(**parts)))
