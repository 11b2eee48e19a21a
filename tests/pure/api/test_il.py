"""The control plane's own look at SPIR-V."""

import struct

import pytest

from cl_driver.api.il import ILError, scan

MEMORY_MODEL = [3 << 16 | 14, 2, 2]  # OpMemoryModel Physical64 OpenCL
TYPE_INT = [4 << 16 | 21, 1, 32, 0]
TYPE_BOOL = [2 << 16 | 20, 2]
TYPE_DOUBLE = [3 << 16 | 22, 3, 64]


def module(*instructions, version=0x00010400, order="<"):
    words = [0x07230203, version, 0, 100, 0]
    for instruction in instructions:
        words += instruction
    return struct.pack(f"{order}{len(words)}I", *words)


def decorate(target, spec_id):
    return [4 << 16 | 71, target, 1, spec_id]


def test_specialization_constants_and_their_sizes():
    data = module(
        MEMORY_MODEL,
        decorate(10, 7),
        decorate(11, 8),
        decorate(12, 9),
        TYPE_INT,
        TYPE_BOOL,
        TYPE_DOUBLE,
        [4 << 16 | 50, 1, 10, 42],
        [3 << 16 | 48, 2, 11],
        [5 << 16 | 50, 3, 12, 0, 0],
    )
    assert scan(data) == (data, {7: 4, 8: 1, 9: 8})


def test_the_other_byte_order():
    assert scan(module(MEMORY_MODEL, order=">"))[0] == module(MEMORY_MODEL)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * 64,
        module(MEMORY_MODEL)[:-1],
        module(MEMORY_MODEL)[:-4],  # an instruction that does not end
        module([0]),  # of no words
        module(),  # no memory model
        module([3 << 16 | 14, 0, 1]),  # GLSL450
        module(MEMORY_MODEL, version=0x00020000),
    ],
)
def test_what_is_not_our_spirv_is_refused(data):
    with pytest.raises(ILError):
        scan(data)
