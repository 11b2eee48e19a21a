"""SPV_INTEL_function_pointers: calls through pointers, where lanes have different targets."""

from __future__ import annotations

import numpy as np
import pytest

from cl_driver.passes.program import function_pointers
from cl_driver.spirv.errors import SpirvError
from cl_driver.spirv.reading import reader
from cl_driver.spirv.validation import validate
from tests.runtime.kernel_harness import Local, Program
from tests.runtime.program.clang import compile_with
from tests.runtime.spirv_kernels import GROUP, ITEMS, WIDTHS, X, Y, buffer, module, same

EXTENSION = ("SPV_INTEL_function_pointers",)
CAPABILITY = 'OpCapability FunctionPointersINTEL\nOpExtension "SPV_INTEL_function_pointers"'
TYPES = """
%f = OpTypeFunction %i32 %i32 %i32
%pf = OpTypePointer CodeSectionINTEL %f
%three = OpConstant %i32 3
%zero = OpConstant %i32 0
%one = OpConstant %i32 1
%ten = OpConstant %i32 10
%p0 = OpConstantFunctionPointerINTEL %pf %add
%p1 = OpConstantFunctionPointerINTEL %pf %sub
%p2 = OpConstantFunctionPointerINTEL %pf %power
%table = OpTypeArray %pf %three
%ptable = OpTypePointer UniformConstant %table
%pslot = OpTypePointer UniformConstant %pf
%all = OpConstantComposite %table %p0 %p1 %p2
%functions = OpVariable %ptable UniformConstant %all
"""


def function(name: str, body: str, type_: str = "f", result: str = "i32", parameters: str = "i32 i32") -> str:
    lines = [f"%{name} = OpFunction %{result} DontInline %{type_}"]
    lines += [
        f"%{name}_{letter} = OpFunctionParameter %{p}"
        for letter, p in zip("abcd", parameters.split(), strict=False)
    ]
    lines.append(f"%{name}_entry = OpLabel\n{body.replace('@', f'%{name}_')}\nOpFunctionEnd\n")
    return "\n".join(lines)


# The third has a loop of its own: a, b times.
FUNCTIONS = (
    function("add", "@r = OpIAdd %i32 @a @b\nOpReturnValue @r")
    + function("sub", "@r = OpISub %i32 @a @b\nOpReturnValue @r")
    + function("power", """OpBranch @head
@head = OpLabel
@i = OpPhi %i32 %zero @entry @ni @body
@sum = OpPhi %i32 %one @entry @nsum @body
@more = OpSLessThan %bool @i @b
OpBranchConditional @more @body @done
@body = OpLabel
@nsum = OpIAdd %i32 @sum @a
@ni = OpIAdd %i32 @i %one
OpBranch @head
@done = OpLabel
OpReturnValue @sum""")
)  # fmt: skip
BODY = """
%low = OpUMod %i32 %x %three
%slot = OpInBoundsAccessChain %pslot %functions %low
%pointer = OpLoad %pf %slot
%r = OpFunctionPointerCallINTEL %i32 %pointer %x %y
"""


def called(k: int, x: int, y: int) -> int:
    return [x + y, x - y, 1 + x * max(y, 0)][k]


def expected(choose) -> list[int]:
    return [called(choose(int(x), int(y)), int(x), int(y)) for x, y in zip(X, Y, strict=True)]


def parts(types: str = "", functions: str = FUNCTIONS, **more) -> dict:
    return {"capabilities": CAPABILITY, "types": TYPES + types, "functions": functions} | more


def test_a_table():
    same(BODY, expected(lambda x, y: (x & 0xFFFFFFFF) % 3), **parts())


def test_selects_and_comparisons():
    body = """
%positive = OpSGreaterThan %bool %y %zero
%first = OpSelect %pf %positive %p0 %p1
%odd = OpBitwiseAnd %i32 %x %one
%isodd = OpIEqual %bool %odd %one
%chosen = OpSelect %pf %isodd %p2 %first
%called = OpFunctionPointerCallINTEL %i32 %chosen %x %y
%equal = OpPtrEqual %bool %chosen %p1
%hundred = OpSelect %i32 %equal %ten %zero
%r = OpIAdd %i32 %called %hundred
"""

    def which(x: int, y: int) -> int:
        return 2 if x & 1 else 0 if y > 0 else 1

    want = [value + 10 * (which(x, y) == 1) for value, x, y in zip(expected(which), X, Y, strict=True)]
    same(body, want, **parts())


def test_pointers_in_the_storage_class_of_private_memory():
    """As LLVM writes them: functions are of its address space 0, and where it has lost the type of one,
    a pointer to it is one to bytes."""
    types = """
%pi8 = OpTypePointer Function %i8
%ci8 = OpTypePointer CodeSectionINTEL %i8
%fpf = OpTypePointer Function %f
%ppi8 = OpTypePointer Function %pi8
%p3 = OpConstantFunctionPointerINTEL %ci8 %power
%b0 = OpSpecConstantOp %pi8 Bitcast %p0
%pair = OpTypeStruct %pi8 %pf
%ppair = OpTypePointer UniformConstant %pair
%uppi8 = OpTypePointer UniformConstant %pi8
%members = OpConstantComposite %pair %p3 %b0
%pairs = OpVariable %ppair UniformConstant %members
"""
    body = """
%odd = OpBitwiseAnd %i32 %x %one
%isodd = OpIEqual %bool %odd %one
%known = OpSelect %fpf %isodd %p0 %p1
%slot = OpInBoundsAccessChain %uppi8 %pairs %zero
%member = OpLoad %pi8 %slot
OpSelectionMerge %join None
%positive = OpSGreaterThan %bool %y %zero
OpBranchConditional %positive %then %else
%then = OpLabel
%bytes = OpBitcast %pi8 %known
OpBranch %join
%else = OpLabel
OpBranch %join
%join = OpLabel
%chosen = OpPhi %ci8 %bytes %then %member %else
OpStore %v %chosen
%again = OpLoad %pi8 %v
%called = OpBitcast %fpf %again
%r = OpFunctionPointerCallINTEL %i32 %called %x %y
"""
    want = expected(lambda x, y: (0 if x & 1 else 1) if y > 0 else 2)
    same(body, want, **parts(types), locals="%v = OpVariable %ppi8 Function\n")


def test_in_a_loop_that_lanes_leave_at_different_times():
    body = """
%turns = OpBitwiseAnd %i32 %x %three
OpBranch %head
%head = OpLabel
%i = OpPhi %i32 %zero %entry %ni %body
%sum = OpPhi %i32 %y %entry %nsum %body
%more = OpULessThan %bool %i %turns
OpBranchConditional %more %body %done
%body = OpLabel
%slot = OpInBoundsAccessChain %pslot %functions %i
%pointer = OpLoad %pf %slot
%nsum = OpFunctionPointerCallINTEL %i32 %pointer %sum %x
%ni = OpIAdd %i32 %i %one
OpBranch %head
%done = OpLabel
%r = OpCopyObject %i32 %sum
"""
    want = []
    for x, y in zip(X.tolist(), Y.tolist(), strict=True):
        for k in range(x & 3):
            y = called(k, y, x)
        want.append(y)
    same(body, want, **parts())


def test_a_constant_is_called_directly():
    spirv = module("%r = OpFunctionPointerCallINTEL %i32 %p1 %x %y", "i32", "i32", **parts())
    ops = {i.op.name for b in Program(spirv).module.entry_points[0].function.blocks for i in b.instructions}
    assert "FunctionCall" in ops and "Switch" not in ops
    same("%r = OpFunctionPointerCallINTEL %i32 %p1 %x %y", X - Y, **parts())


def test_results_are_void_and_arguments_pointers():
    types = "%pi = OpTypePointer CrossWorkgroup %i32\n%g = OpTypeFunction %void %pi %i32\n"
    types += "%pg = OpTypePointer CodeSectionINTEL %g\n"
    types += (
        "%w0 = OpConstantFunctionPointerINTEL %pg %once\n%w1 = OpConstantFunctionPointerINTEL %pg %twice\n"
    )
    functions = function("once", "OpStore @a @b\nOpReturn", "g", "void", "pi i32")
    functions += function("twice", "@d = OpIAdd %i32 @b @b\nOpStore @a @d\nOpReturn", "g", "void", "pi i32")
    body = """
%odd = OpBitwiseAnd %i32 %x %one
%isodd = OpIEqual %bool %odd %one
%chosen = OpSelect %pg %isodd %w1 %w0
%none = OpFunctionPointerCallINTEL %void %chosen %rx %y
%r = OpLoad %i32 %rx
"""
    same(body, [2 * y if x & 1 else y for x, y in zip(X, Y, strict=True)],
         **parts(types, FUNCTIONS + functions))  # fmt: skip


# Functions of one type, which call what they are passed, or what a table has: cycles by their types.
TREE = """
%h = OpTypeFunction %i32 %i32
%ph = OpTypePointer CodeSectionINTEL %h
%h0 = OpConstantFunctionPointerINTEL %ph %leaf
%h1 = OpConstantFunctionPointerINTEL %ph %inner
%h2 = OpConstantFunctionPointerINTEL %ph %outer
%htable = OpTypeArray %ph %three
%phtable = OpTypePointer UniformConstant %htable
%phslot = OpTypePointer UniformConstant %ph
%hall = OpConstantComposite %htable %h0 %h1 %h2
%tree = OpVariable %phtable UniformConstant %hall
"""
CALL = """@slot = OpInBoundsAccessChain %phslot %tree {}
@p = OpLoad %ph @slot
@c = OpFunctionPointerCallINTEL %i32 @p @a
@r = OpIAdd %i32 @c {}
OpReturnValue @r"""
NESTED = (
    function("leaf", "@r = OpIAdd %i32 @a @a\nOpReturnValue @r", "h", parameters="i32")
    + function("inner", CALL.format("%zero", "%one"), "h", parameters="i32")
    + function("outer", CALL.format("%one", "%ten"), "h", parameters="i32")
)
START = BODY.replace("%pslot", "%phslot").replace("%functions", "%tree").replace("%pf", "%ph").replace(
    "%pointer %x %y", "%pointer %x"
)  # fmt: skip


def test_functions_that_may_call_one_another():
    want = [2 * x + (0, 1, 11)[(x & 0xFFFFFFFF) % 3] for x in X.tolist()]
    same(START, want, **parts(TREE, FUNCTIONS + NESTED))


def test_too_many_that_may_call_one_another():
    count = 12
    types, functions = TREE, NESTED
    for k in range(count):
        types += f"%m{k} = OpConstantFunctionPointerINTEL %ph %more{k}\n"
        functions += function(f"more{k}", CALL.format("%zero", "%one"), "h", parameters="i32")
    with pytest.raises(SpirvError, match=f"more than {function_pointers.MOST_COPIES} ways through functions"):
        Program(module(START, "i32", "i32", **parts(types, FUNCTIONS + functions)))


def test_pointers_in_memory_of_another_kernel():
    """One kernel leaves pointers in a buffer, another calls them, of all functions of the program."""
    source = module(
        "%low = OpUMod %i32 %x %three\n%slot = OpInBoundsAccessChain %pslot %functions %low\n"
        "%r = OpLoad %pf %slot",
        "i32",
        "pf",
        **parts(),
    )
    pointers = buffer(ITEMS, np.uint64)
    Program(source, width=4).run("main", ITEMS, GROUP, X, Y, pointers)
    numbers = {function_pointers.STRIDE * (k + 1) for k in range(3)}
    assert set(pointers.tolist()) == numbers
    for width in WIDTHS:
        out = buffer(ITEMS, np.int32)
        spirv = module("%r = OpFunctionPointerCallINTEL %i32 %x %three %ten", "pf", "i32", **parts())
        Program(spirv, width=width).run("main", ITEMS, GROUP, pointers, pointers, out)
        assert out.tolist() == [called((x & 0xFFFFFFFF) % 3, 3, 10) for x in X.tolist()]


@pytest.mark.parametrize(
    ("body", "types", "rule"),
    [
        ("%r = OpFunctionPointerCallINTEL %i32 %x %y", "", "the function has type int32"),
        ("%r = OpFunctionPointerCallINTEL %i32 %ax %y", "", "a call of what int32 points to"),
        ("%r = OpFunctionPointerCallINTEL %i32 %p0 %y", "", "1 arguments, the function has 2 parameters"),
        ("%r = OpFunctionPointerCallINTEL %i32 %p0 %x %id", "", "an argument of type int64"),
        ("%v = OpFunctionPointerCallINTEL %i64 %p0 %x %y", "", "a result of type int64"),
        ("%v = OpFunctionPointerCallINTEL %i32", "", "words, where|no function"),
        ("", "%bad = OpConstantFunctionPointerINTEL %pf %zero\n", "id [0-9]+ is not a function"),
        ("", "%bad = OpConstantFunctionPointerINTEL %pslot %add\n", "not a pointer into CodeSectionINTEL"),
        (
            "",
            "%one1 = OpTypeFunction %i32 %i32\n%pone = OpTypePointer CodeSectionINTEL %one1\n"
            "%bad = OpConstantFunctionPointerINTEL %pone %add\n",
            "is not a pointer to the function's type",
        ),
    ],
)
def test_refused(body, types, rule):
    if "%r =" not in body:
        body += "\n%r = OpCopyObject %i32 %x"
    with pytest.raises(SpirvError, match=rule):
        validate.validate(reader.read(module(body, "i32", "i32", **parts(types))))


def test_functions_that_are_only_pointed_to_are_checked():
    broken = function("broken", "@r = OpIAdd %i32 @a %x\nOpReturnValue @r")
    types = "%bad = OpConstantFunctionPointerINTEL %pf %broken\n"
    with pytest.raises(SpirvError, match="OpIAdd"):
        validate.validate(reader.read(module(BODY, "i32", "i32", **parts(types, FUNCTIONS + broken))))


def test_the_capability_is_needed():
    given = parts() | {"capabilities": ""}
    with pytest.raises(SpirvError, match="needs the capability FunctionPointersINTEL"):
        validate.validate(reader.read(module(BODY, "i32", "i32", **given)))


C_SOURCE = """
#pragma OPENCL EXTENSION __cl_clang_function_pointers : enable
typedef int (*op_t)(int, int);
__attribute__((noinline)) int add(int a, int b) { return a + b; }
__attribute__((noinline)) int sub(int a, int b) { return a - b; }
__attribute__((noinline)) int power(int a, int b) { int s = 1; for (int i = 0; i < b; i++) s += a; return s; }
constant op_t table[3] = { add, sub, power };
kernel void k(global int *x, global int *y, global int *out, int n) {
    int i = get_global_id(0);
    op_t f = table[(uint)x[i] % 3];
    if (n && y[i] > 3)
        f = n > 1 ? add : sub;
    out[i] = f(x[i], y[i]);
}
"""


@pytest.mark.parametrize("width", WIDTHS)
def test_tables_of_clang(width):
    program = Program(compile_with(C_SOURCE, EXTENSION, "-cl-std=CL3.0"), width=width)
    for n in range(3):
        out = buffer(ITEMS, np.int32)
        program.run("k", ITEMS, GROUP, X, Y, out, np.int32(n))
        assert out.tolist() == expected(
            lambda x, y, n=n: (x & 0xFFFFFFFF) % 3 if not n or y <= 3 else 0 if n > 1 else 1
        )


CPP_SOURCE = """
#pragma OPENCL EXTENSION __cl_clang_function_pointers : enable
struct Shape {
    int k;
    virtual int area(int) const = 0;
    virtual int twice(int x) const { return 2 * area(x); }
};
struct Square : Shape { int area(int x) const override { return x * x + k; } };
struct Triangle : Shape {
    int h;
    int area(int x) const override { return x * h / 2; }
    int twice(int x) const override { return Shape::twice(x) + 1; }
};
struct Nothing : Shape { int area(int) const override { return 0; } };
kernel void k(global int *x, global int *y, global int *out, local int *shared) {
    int i = get_global_id(0);
    Square s; s.k = y[i];
    Triangle t; t.h = 7; t.k = 1;
    Nothing n;
    Shape *p = (x[i] & 1) ? (Shape *)&s : (x[i] & 2) ? (Shape *)&t : (Shape *)&n;
    int r = p->area(x[i]) + p->twice(y[i]);
    shared[get_local_id(0)] = r;
    barrier(CLK_LOCAL_MEM_FENCE);
    out[i] = r + p->area(shared[(get_local_id(0) + 1) % get_local_size(0)] & 7);
}
"""


def shape(x: int, k: int):
    """area(), twice() of an object."""
    if x & 1:
        return (lambda v: v * v + k), (lambda v: 2 * (v * v + k))
    if x & 2:
        return (lambda v: int(v * 7 / 2)), (lambda v: 2 * int(v * 7 / 2) + 1)
    return (lambda v: 0), (lambda v: 0)


@pytest.mark.parametrize("width", WIDTHS)
def test_virtual_functions(width):
    program = Program(compile_with(CPP_SOURCE, EXTENSION, "-cl-std=CLC++2021"), width=width)
    out = buffer(ITEMS, np.int32)
    program.run("k", ITEMS, GROUP, X, Y, out, Local(4 * GROUP))
    results = [shape(x, y)[0](x) + shape(x, y)[1](y) for x, y in zip(X.tolist(), Y.tolist(), strict=True)]
    want = [
        r + shape(x, y)[0](results[i // GROUP * GROUP + (i + 1) % GROUP] & 7)
        for i, (r, x, y) in enumerate(zip(results, X.tolist(), Y.tolist(), strict=True))
    ]
    assert out.tolist() == want
