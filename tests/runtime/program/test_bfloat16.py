"""SPV_KHR_bfloat16: conversions, memory and dot products, at every width."""

from __future__ import annotations

import numpy as np
import pytest

from cl_driver.spirv.errors import SpirvError
from cl_driver.spirv.reading import reader
from cl_driver.spirv.validation import validate
from tests.runtime.kernel_harness import Program
from tests.runtime.spirv_kernels import ITEMS, X, Y, buffer, check, module

CAPABILITY = (
    "OpCapability BFloat16TypeKHR\nOpCapability BFloat16DotProductKHR\nOpCapability Float16\n"
    'OpExtension "SPV_KHR_bfloat16"'
)
TYPES = "%bf = OpTypeFloat 16 BFloat16KHR\n%bf4 = OpTypeVector %bf 4\n%f16 = OpTypeFloat 16\n"
FLOATS = (np.array(X, np.float64) * 1.2345678 + np.array(Y) * 1e-3).astype(np.float32)
FLOATS[:4] = (np.inf, -np.inf, 3.4e38, 1e-40)


def bfloat16(values) -> np.ndarray:
    """Bits of the nearest, ties to even."""
    bits = np.asarray(values, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def floats(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def run(body: str, operand: str, result: str, x: np.ndarray, out: np.ndarray, **parts) -> list:
    spirv = module(body, operand, result, CAPABILITY, types=TYPES + parts.pop("types", ""), **parts)
    validate.validate(reader.read(spirv))
    found: list = check(spirv, x, x, out).tolist()
    return found


def test_conversions():
    bits = bfloat16(FLOATS)
    assert run("%r = OpFConvert %bf %x", "f32", "bf", FLOATS, buffer(ITEMS, np.uint16)) == bits.tolist()
    assert (
        run("%r = OpFConvert %f32 %x", "bf", "f32", bits, buffer(ITEMS, np.float32)) == floats(bits).tolist()
    )
    doubles = FLOATS.astype(np.float64) * (1 + 2.0**-30)
    got = run("%r = OpFConvert %bf %x", "f64", "bf", doubles, buffer(ITEMS, np.uint16))
    with np.errstate(over="ignore"):
        assert got == bfloat16(doubles.astype(np.float32)).tolist()
    got = run("%r = OpFConvert %f64 %x", "bf", "f64", bits, buffer(ITEMS, np.float64))
    assert got == floats(bits).astype(np.float64).tolist()
    small = bfloat16(FLOATS[4:].tolist() + [1, 2, 3, 4])
    got = run("%r = OpFConvert %f16 %x", "bf", "f16", small, buffer(ITEMS, np.float16))
    assert got == floats(small).astype(np.float16).tolist()
    got = run("%r = OpConvertFToS %i32 %x", "bf", "i32", small, buffer(ITEMS, np.int32))
    assert got == floats(small).astype(np.int32).tolist()
    numbers = (X * 1001).astype(np.int32)
    got = run("%r = OpConvertSToF %bf %x", "i32", "bf", numbers, buffer(ITEMS, np.uint16))
    assert got == bfloat16(numbers.astype(np.float32)).tolist()


def test_choices_and_constants():
    """Branches that lanes take apart, a constant, and bits as an integer."""
    body = """
%bits = OpBitcast %i16 %x
%odd = OpBitwiseAnd %i16 %bits %one
%isodd = OpIEqual %bool %odd %one
OpSelectionMerge %join None
OpBranchConditional %isodd %then %join
%then = OpLabel
OpStore %v %x
%again = OpLoad %bf %v
OpBranch %join
%join = OpLabel
%p = OpPhi %bf %half %entry %again %then
%r = OpSelect %bf %isodd %p %x
"""
    types = "%pbf = OpTypePointer Function %bf\n%one = OpConstant %i16 1\n%half = OpConstant %bf 0.5\n"
    types = types.replace("%half = OpConstant %bf 0.5", "%half = OpConstantNull %bf")
    bits = bfloat16(FLOATS)
    got = run(
        body, "bf", "bf", bits, buffer(ITEMS, np.uint16), types=types, locals="%v = OpVariable %pbf Function"
    )
    assert got == bits.tolist()


def test_vectors():
    bits = buffer((ITEMS, 4), np.uint16)
    bits[:] = bfloat16(np.stack([X, Y, X + 1, Y - 2], 1).astype(np.float32) / 8)
    got = run("%r = OpDot %bf %x %y", "bf4", "bf", bits, buffer(ITEMS, np.uint16))
    assert got == bfloat16((floats(bits) ** 2).sum(1)).tolist()
    types = "%f4 = OpTypeVector %f32 4\n"
    got = run("%r = OpFConvert %f4 %x", "bf4", "f4", bits, buffer((ITEMS, 4), np.float32), types=types)
    assert got == floats(bits).tolist()


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ("%r = OpFAdd %bf %x %y", "OpFAdd: not an instruction for numbers of type bfloat16"),
        ("%c = OpFOrdLessThan %bool %x %y\n%r = OpCopyObject %bf %x", "OpFOrdLessThan: not an instruction"),
    ],
)
def test_refused(body, rule):
    with pytest.raises(SpirvError, match=rule):
        Program(module(body, "bf", "bf", CAPABILITY, types=TYPES))


def test_the_capability_is_needed():
    spirv = module("%r = OpCopyObject %f32 %x", "f32", "f32", types="%bf = OpTypeFloat 16 BFloat16KHR")
    with pytest.raises(SpirvError, match="needs the capability BFloat16TypeKHR"):
        validate.validate(reader.read(spirv))
