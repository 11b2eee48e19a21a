"""Private arrays in memory: copies of bytes become loads and stores, constant arrays constant memory."""

from __future__ import annotations

import struct

import pytest

from cl_driver.passes.scalar.private_arrays import read_constant, write_constant
from cl_driver.spirv.enums import Op, StorageClass
from cl_driver.spirv.module import Variable
from cl_driver.spirv.types import TypeTable

from ..support import compile_cl, make_plan

HEAD = "kernel void k(global int *out, global const int *in, int n) { int x = get_global_id(0), s = 0; "
TAIL = " out[x] = s; }"
SUM = "for (int i = 0; i < n; i++) s += in[x + i] * c[in[i] & 15];"
ZEROS = "int c[16] = {0, 0, 0, 7, 0, 0, 0, 0, 9}; "
COPIED = "int c[16]; for (int i = 0; i < 16; i++) c[i] = in[i]; "


def code_of(body: str, width: int = 8):
    region = make_plan(compile_cl(HEAD + body + TAIL), "k", width=width).regions[0]
    return [i for block in region.function.blocks for i in block.instructions]


def count(code, *ops: Op) -> int:
    return sum(i.op in ops for i in code)


COPIES = (Op.CopyMemory, Op.CopyMemorySized)


@pytest.mark.parametrize(
    ("body", "is_shared"),
    [
        (ZEROS + SUM, True),
        (
            "float c[12] = {0, .5f, 0, 0, 0, 0, 0, 2.f}; for (int i = 0; i < n; i++) s += c[i % 12] * 2;",
            True,
        ),
        (ZEROS + "if (n > 3) c[2] = 5; " + SUM, False),
        (ZEROS + "c[2] = n; " + SUM, False),
        (ZEROS + "c[n & 15] = 1; " + SUM, False),
        (ZEROS + SUM + "c[in[x] & 15] = 3; " + SUM, False),
        ("volatile " + ZEROS + SUM, False),
        (COPIED + SUM, False),
    ],
)
def test_which_arrays_are_constant(body, is_shared):
    code = code_of(body)
    assert (count(code, Op.Variable) == 0) == is_shared
    tables = {o for i in code for o in i.operands if isinstance(o, Variable)}
    assert not is_shared or any(t.type.storage is StorageClass.UniformConstant for t in tables)


@pytest.mark.parametrize(
    ("body", "is_left"),
    [
        (COPIED + "c[in[x] & 15] += n; " + SUM, False),
        ("int c[9] = {1, 2, 1, 2, 4, 2, 1, 2, 1}; for (int i = 0; i < n; i++) "
         "{ s += c[i % 9]; c[in[x + i] & 7] += 1; }", False),
        ("int c[100]; for (int i = 0; i < 100; i++) c[i] = in[i]; c[in[x] & 15] += n; " + SUM, True),  # many
        (COPIED + "c[in[x] & 15] += n; s += *((char *)c + n); printf(\"%p\", c); " + SUM, True),
    ],
)  # fmt: skip
def test_copies_become_loads_and_stores(body, is_left):
    assert (count(code_of(body), *COPIES) > 0) == is_left
    assert count(code_of(body, 1), *COPIES) > 0, "LLVM does it at width 1"


def test_constants_in_memory():
    """Bytes of numbers, vectors, arrays of arrays and nulls; nothing outside of the image, no pointers."""
    types = TypeTable()
    i16, f32 = types.int(16), types.float(32)
    half, three = types.constant(f32, 0x3F000000), types.integer(16, 3)
    row = types.array(i16, 2)
    rows = types.constant(types.array(row, 2), (types.constant(row, (three, three)), types.null(row)))
    image = bytearray(b"\xff" * 24)
    assert write_constant(image, 0, half) and write_constant(image, 4, rows)
    assert write_constant(image, 12, types.constant(types.vector(f32, 2), (half, half)))
    assert write_constant(image, 22, types.undef(i16))
    assert image == struct.pack("<f4H2f", 0.5, 3, 3, 0, 0, 0.5, 0.5) + b"\xff" * 4
    assert not write_constant(image, 22, half) and not write_constant(image, 23, three)
    assert not write_constant(image, 0, types.null(types.pointer(StorageClass.Function, f32)))
    assert read_constant(types, rows.type, image, 4) is types.constant(
        rows.type, (types.constant(row, (three, three)), types.constant(row, (types.integer(16, 0),) * 2))
    )
