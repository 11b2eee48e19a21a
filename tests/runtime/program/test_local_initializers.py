"""Workgroup variables with initialisers: each group finds them, also where another has changed the memory."""

from __future__ import annotations

import numpy as np
import pytest

from cl_driver.spirv.enums import Op
from cl_driver.spirv.reading import reader
from cl_driver.spirv.validation import validate
from tests.runtime.kernel_harness import Program
from tests.runtime.spirv_kernels import GROUP, ITEMS, WIDTHS, X, Y, buffer, module, same

COUNT = 5
TYPES = f"""
%count = OpConstant %i32 {COUNT}
%zero = OpConstant %i32 0
%seven = OpConstant %i32 7
%nine = OpConstant %i32 9
%two = OpConstant %i32 2
%semantics = OpConstant %i32 264
%none = OpUndef %i32
%small = OpConstant %i8 3
%array = OpTypeArray %i32 %count
%parray = OpTypePointer Workgroup %array
%pi = OpTypePointer Workgroup %i32
"""
# Reads a variable, then changes it for the group that gets the memory next.
BODY = """
%k = OpUMod %i32 %bits %count
%place = OpInBoundsAccessChain %pi %v %k
%before = OpLoad %i32 %place
OpControlBarrier %two %two %semantics
OpStore %place %x
%r = OpIAdd %i32 %before %k
"""
BITS = "%bits = OpBitwiseAnd %i32 %x %seven\n"
K = (X & 7) % COUNT


def variable(initialiser: str) -> dict[str, str]:
    return {"types": TYPES + initialiser + "%v = OpVariable %parray Workgroup %initial\n"}


@pytest.mark.parametrize(
    ("initialiser", "values"),
    [
        ("%initial = OpConstantNull %array\n", [0] * COUNT),
        ("%initial = OpConstantComposite %array %seven %nine %two %zero %count\n", [7, 9, 2, 0, COUNT]),
        ("%n = OpConstantNull %i32\n%initial = OpConstantComposite %array %n %n %none %n %n\n", [0] * COUNT),
    ],
)
def test_arrays(initialiser, values):
    want = [values[k] + k for k in K.tolist()]
    if "none" in initialiser:  # what is undefined is not looked at
        body = BITS + "%m = OpUMod %i32 %bits %two\n" + BODY.replace("%bits %count", "%m %two")
        want = [int(x & 7) % 2 for x in X]
    else:
        body = BITS + BODY
    same(body, want, **variable(initialiser))


def test_bytes_in_structures():
    """The alignment of a variable is that of its bytes, and its size is odd."""
    types = (
        TYPES
        + """
%three = OpConstant %i32 3
%bytes = OpTypeArray %i8 %three
%struct = OpTypeStruct %bytes
%pstruct = OpTypePointer Workgroup %struct
%pbyte = OpTypePointer Workgroup %i8
%one8 = OpConstant %i8 1
%inner = OpConstantComposite %bytes %one8 %small %one8
%initial = OpConstantComposite %struct %inner
%v = OpVariable %pstruct Workgroup %initial
"""
    )
    body = (
        BITS
        + """
%k = OpUMod %i32 %bits %three
%place = OpInBoundsAccessChain %pbyte %v %zero %k
%before = OpLoad %i8 %place
OpControlBarrier %two %two %semantics
OpStore %place %small
%r = OpUConvert %i32 %before
"""
    )
    same(body, [(1, 3, 1)[int(x & 7) % 3] for x in X], types=types)


def test_more_words_than_work_items():
    types = (
        TYPES
        + """
%many = OpConstant %i32 1000
%large = OpTypeArray %i64 %many
%plarge = OpTypePointer Workgroup %large
%pl = OpTypePointer Workgroup %i64
%last = OpConstant %i32 992
%initial = OpConstantNull %large
%v = OpVariable %plarge Workgroup %initial
"""
    )
    body = (
        BITS
        + """
%k = OpIAdd %i32 %last %bits
%place = OpInBoundsAccessChain %pl %v %k
%before = OpLoad %i64 %place
OpControlBarrier %two %two %semantics
%wide = OpSConvert %i64 %y
OpStore %place %wide
%narrow = OpUConvert %i32 %before
%r = OpIAdd %i32 %narrow %k
"""
    )
    same(body, [992 + int(x & 7) for x in X], types=types)


FUNCTION = """
%helper = OpFunction %i32 None %fh
%hk = OpFunctionParameter %i32
%hentry = OpLabel
%hplace = OpInBoundsAccessChain %pi %v %hk
%hvalue = OpLoad %i32 %hplace
OpReturnValue %hvalue
OpFunctionEnd
"""


def test_used_by_a_function_that_the_kernel_calls():
    parts = variable("%fh = OpTypeFunction %i32 %i32\n%initial = OpConstantNull %array\n")
    body = BITS + "%k = OpUMod %i32 %bits %count\n%h = OpFunctionCall %i32 %helper %k\n"
    same(body + "%r = OpIAdd %i32 %h %y\n", Y, functions=FUNCTION, **parts)


def test_undefined_ones_cost_nothing():
    parts = variable("%initial = OpConstantComposite %array %none %none %none %none %none\n")
    body = BITS + "%k = OpUMod %i32 %bits %count\n%place = OpInBoundsAccessChain %pi %v %k\n"
    spirv = module(body + "OpStore %place %x\n%r = OpLoad %i32 %place\n", "i32", "i32", **parts)
    validate.validate(reader.read(spirv))
    (block,) = Program(spirv).module.entry_points[0].function.blocks
    assert Op.ControlBarrier not in {i.op for i in block.instructions}


def test_kernels_that_do_not_use_them_stay_as_they_are():
    parts = variable("%initial = OpConstantNull %array\n")
    spirv = module("%r = OpCopyObject %i32 %x", "i32", "i32", **parts)
    assert len(Program(spirv).module.entry_points[0].function.blocks) == 1
    for width in WIDTHS:
        out = buffer(ITEMS, np.int32)
        Program(spirv, width=width).run("main", ITEMS, GROUP, X, X, out)
        assert out.tolist() == X.tolist()
