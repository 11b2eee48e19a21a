"""Execution modes of SPV_KHR_float_controls through the API: offered, accepted, carried out."""

import struct
from fractions import Fraction

import pytest

from cl_driver.api.device_info import CL_DEVICE_SPIRV_CAPABILITIES_KHR
from cl_driver.api.generated import enums as cl
from cl_driver.interp.numbers import RTE, RTZ, round_exact
from cl_driver.spirv.enums import Capability
from tests.loader.programs.level_zero import ITEMS, machine, module  # noqa: F401

SUMS = """
%pf = OpBitcast %gf32 %out
%to = OpInBoundsPtrAccessChain %gf32 %pf %gid64
%x = OpConvertUToF %f32 %gid
%third = OpFDiv %f32 %x %three
%sum = OpFAdd %f32 %third %tenth
OpStore %to %sum Aligned 4
"""
TENTH = struct.unpack("f", struct.pack("f", 0.1))[0]


def kernel(*modes: str) -> bytes:
    return module(
        SUMS,
        [mode.split()[0] for mode in modes],
        ["SPV_KHR_float_controls"],
        "%three = OpConstant %f32 3.0\n%tenth = OpConstant %f32 0.1",
        modes="\n".join(f"OpExecutionMode %k {mode}" for mode in modes),
    )


@pytest.mark.parametrize(
    "modes, rounding",
    [(["RoundingModeRTZ 32"], RTZ), (["RoundingModeRTE 32"], RTE), (["RoundingModeRTZ 64"], RTE)],
)
def test_rounding_modes(machine, modes, rounding):  # noqa: F811
    got = struct.unpack(f"{ITEMS}f", machine.run(kernel(*modes), 4 * ITEMS))
    for i, sum_ in enumerate(got):
        third = round_exact(Fraction(i, 3), 32, rounding)
        assert sum_ == round_exact(Fraction(third) + Fraction(TENTH), 32, rounding)


def test_modes_that_exclude_one_another(machine):  # noqa: F811
    """For one width; for two widths they do not."""
    for pair in (("RoundingModeRTE", "RoundingModeRTZ"), ("DenormPreserve", "DenormFlushToZero")):
        assert " and ".join(pair) in machine.refuses(kernel(*(f"{mode} 32" for mode in pair)))
        machine.accepts(kernel(f"{pair[0]} 32", f"{pair[1]} 64"))


def test_they_are_offered(opencl):
    device = opencl.device()
    data = opencl.info("clGetDeviceInfo", device, CL_DEVICE_SPIRV_CAPABILITIES_KHR)
    offered = struct.unpack(f"{len(data) // 4}I", data)
    assert {Capability.RoundingModeRTZ, Capability.RoundingModeRTE, Capability.DenormFlushToZero} <= {
        *offered
    }
    for query in (cl.CL_DEVICE_HALF_FP_CONFIG, cl.CL_DEVICE_SINGLE_FP_CONFIG, cl.CL_DEVICE_DOUBLE_FP_CONFIG):
        assert opencl.integer("clGetDeviceInfo", device, query) & cl.CL_FP_ROUND_TO_ZERO
