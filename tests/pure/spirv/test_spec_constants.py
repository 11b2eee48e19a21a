"""Specialisation constants, and every operation that OpSpecConstantOp may have."""

from __future__ import annotations

import struct

import pytest

from cl_driver.spirv import reflect
from cl_driver.spirv.enums import Op
from cl_driver.spirv.errors import SpirvError
from cl_driver.spirv.module import ConstantExpr
from cl_driver.spirv.reading import reader, spec_constant_ops

from .assembler import PREAMBLE, TYPES, assemble

MODULE = (
    PREAMBLE
    + """
OpDecorate %a SpecId 10
OpDecorate %b SpecId 11
OpDecorate %l SpecId 12
OpDecorate %d SpecId 13
"""
    + TYPES
    + """
%a = OpSpecConstant %i32 5
%b = OpSpecConstantTrue %bool
%l = OpSpecConstant %i64 -1
%d = OpSpecConstant %f64 2.5
%sum = OpSpecConstantOp %i32 IAdd %a %c2
%array = OpTypeArray %i32 %sum
%pick = OpSpecConstantOp %i32 Select %b %sum %c0
%pa = OpTypePointer CrossWorkgroup %array
%x = OpVariable %pa CrossWorkgroup
%y = OpVariable %gi32 CrossWorkgroup %pick
"""
)


def test_defaults_and_reflection():
    module = reader.read(assemble(MODULE))
    assert reflect.spec_constants(module) == {10: 4, 11: 1, 12: 8, 13: 8}
    assert module.spec_constants[12].value == (1 << 64) - 1
    x, y = module.variables
    assert x.type.element.count == 7
    assert y.initializer.value == 7


def test_given_values_reach_everything_computed_from_them():
    module = reader.read(assemble(MODULE), {10: struct.pack("<I", 40), 11: b"\0"})
    x, y = module.variables
    assert x.type.element.count == 42
    assert y.initializer.value == 0
    assert module.spec_constants[10].value == 5  # the default


def test_a_value_of_the_wrong_size():
    with pytest.raises(SpirvError, match="SpecId 10 takes 4 bytes, not 8"):
        reader.read(assemble(MODULE), {10: bytes(8)})


def f32(value: float) -> int:
    return struct.unpack("<I", struct.pack("<f", value))[0]


CASES = [
    ("%i32", "IAdd %c7 %m1", 6),
    ("%i32", "ISub %c1 %c2", 0xFFFFFFFF),
    ("%i32", "IMul %m1 %m1", 1),
    ("%i32", "UDiv %m1 %c2", 0x7FFFFFFF),
    ("%i32", "SDiv %m7 %c2", 0xFFFFFFFD),
    ("%i32", "SDiv %c7 %c0", 0),
    ("%i32", "UMod %m1 %c7", 0xFFFFFFFF % 7),
    ("%i32", "SRem %m7 %c2", 0xFFFFFFFF),
    ("%i32", "SMod %m7 %c2", 1),
    ("%i32", "ShiftLeftLogical %c1 %c7", 128),
    ("%i32", "ShiftRightLogical %m1 %c7", 0x01FFFFFF),
    ("%i32", "ShiftRightArithmetic %m7 %c1", 0xFFFFFFFC),
    ("%i32", "BitwiseAnd %c7 %c2", 2),
    ("%i32", "BitwiseOr %c1 %c2", 3),
    ("%i32", "BitwiseXor %c7 %c2", 5),
    ("%i32", "Not %c1", 0xFFFFFFFE),
    ("%i32", "SNegate %c1", 0xFFFFFFFF),
    ("%bool", "IEqual %c1 %c1", True),
    ("%bool", "INotEqual %c1 %c1", False),
    ("%bool", "ULessThan %c1 %m1", True),
    ("%bool", "SLessThan %c1 %m1", False),
    ("%bool", "UGreaterThan %c1 %m1", False),
    ("%bool", "SGreaterThan %c1 %m1", True),
    ("%bool", "ULessThanEqual %c1 %c1", True),
    ("%bool", "SLessThanEqual %c2 %c1", False),
    ("%bool", "UGreaterThanEqual %c1 %c1", True),
    ("%bool", "SGreaterThanEqual %c1 %c2", False),
    ("%bool", "LogicalAnd %true %true", True),
    ("%bool", "LogicalOr %true %true", True),
    ("%bool", "LogicalNot %true", False),
    ("%bool", "LogicalEqual %true %true", True),
    ("%bool", "LogicalNotEqual %true %true", False),
    ("%i64", "SConvert %m7", (1 << 64) - 7),
    ("%i64", "UConvert %m7", (1 << 32) - 7),
    ("%i8", "UConvert %big", 0x2C),
    ("%f32", "ConvertSToF %m7", f32(-7)),
    ("%f32", "ConvertUToF %odd", f32(16777220)),
    ("%i32", "ConvertFToS %fm", 0xFFFFFFFE),
    ("%i32", "ConvertFToU %f3", 3),
    ("%f64", "FConvert %f3", struct.unpack("<Q", struct.pack("<d", 3.5))[0]),
    ("%f32", "FAdd %f3 %fm", f32(1.0)),
    ("%f32", "FSub %f3 %fm", f32(6.0)),
    ("%f32", "FMul %f3 %fm", f32(-8.75)),
    ("%f32", "FDiv %f3 %fz", f32(float("inf"))),
    ("%f32", "FRem %fm %f1", f32(-0.5)),
    ("%f32", "FMod %fm %f1", f32(0.5)),
    ("%f32", "FNegate %f3", f32(-3.5)),
    ("%i32", "Bitcast %f1", f32(1.0)),
    ("%i32", "CompositeExtract %v 3", 7),
    ("%i32", "Select %true %c1 %c2", 1),
]


@pytest.mark.parametrize(("type_", "operation", "expected"), CASES, ids=[c[1] for c in CASES])
def test_operations(type_, operation, expected):
    text = (
        PREAMBLE
        + TYPES
        + f"""
        %m1 = OpConstant %i32 -1
        %m7 = OpConstant %i32 -7
        %big = OpConstant %i32 300
        %odd = OpConstant %i32 16777219
        %f1 = OpConstant %f32 1.0
        %f3 = OpConstant %f32 3.5
        %fm = OpConstant %f32 -2.5
        %fz = OpConstant %f32 0.0
        %v = OpConstantComposite %v4i32 %c0 %c1 %c2 %c7
        %r = OpSpecConstantOp {type_} {operation}
        %pt = OpTypePointer CrossWorkgroup {type_}
        %x = OpVariable %pt CrossWorkgroup %r"""
    )
    assert reader.read(assemble(text)).variables[0].initializer.value == expected


def test_vectors_and_composites():
    module = reader.read(
        assemble(
            PREAMBLE
            + TYPES
            + """
        %v = OpConstantComposite %v4i32 %c0 %c1 %c2 %c7
        %n = OpConstantNull %v4i32
        %sum = OpSpecConstantOp %v4i32 IAdd %v %v
        %set = OpSpecConstantOp %v4i32 CompositeInsert %c7 %n 2
        %mix = OpSpecConstantOp %v4i32 VectorShuffle %v %set 3 6 0 1
        %gv = OpTypePointer CrossWorkgroup %v4i32
        %x = OpVariable %gv CrossWorkgroup %sum
        %y = OpVariable %gv CrossWorkgroup %mix"""
        )
    )
    values = [[c.value or 0 for c in v.initializer.value] for v in module.variables]
    assert values == [[0, 2, 4, 14], [7, 7, 0, 1]]


def test_addresses_stay_expressions():
    module = reader.read(
        assemble(
            PREAMBLE
            + TYPES
            + """
        %a = OpTypeArray %i32 %c7
        %ga = OpTypePointer CrossWorkgroup %a
        %x = OpVariable %ga CrossWorkgroup
        %at = OpSpecConstantOp %gi32 InBoundsPtrAccessChain %x %c0 %c2
        %pp = OpTypePointer CrossWorkgroup %gi32
        %y = OpVariable %pp CrossWorkgroup %at"""
        )
    )
    x, y = module.variables
    assert isinstance(y.initializer, ConstantExpr)
    assert y.initializer.op is Op.InBoundsPtrAccessChain
    assert y.initializer.operands[0] is x


def test_integers_are_rounded_once():
    value = (1 << 60) + (1 << 36) + 1  # through double it would round to even instead of up
    assert spec_constant_ops._integer_to_bits(value, 32) == f32((1 << 60) + (1 << 37))
