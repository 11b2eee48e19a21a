"""vloadn and vstoren of global and constant memory: loads and stores (passes/lower/vloadn.py)."""

import re

import numpy as np
import pytest

from tests.runtime.kernel_harness import Local, Program, aligned, compile_c
from tests.runtime.spirv_kernels import GROUP, ITEMS, check, module

SOURCE = """
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#define ITEM size_t i = get_global_id(0);
constant int table[24] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 6, 4};
kernel void plain(global int *out, global const int *a) { ITEM vstore4(vload4(i, a) * 3 + 1, i, out); }
kernel void aside(global int *out, global const int *a) { ITEM vstore4(vload4(i, a + 1) * 3, i, out + 3); }
kernel void reversed(global int *out, global const int *a) {
    ITEM size_t n = get_global_size(0);
    vstore4(vload4(n - 1 - i, a), i, out);
}
kernel void below(global int *out, global const int *a) { ITEM vstore4(vload4(i - 2, a + 8), i, out); }
kernel void anywhere(global int *out, global const int *a) {
    ITEM vstore4(vload4(a[i] & 15, a), (i * 3) % get_global_size(0), out);
}
kernel void first(global int *out, global const int *a) {
    ITEM vstore4(vload4(0, a + 4 * i) + vload4(1, a), i, out);
}
kernel void known(global int *out, global const int *a) { ITEM vstore4(vload4(2, table) + (int)i, i, out); }
kernel void looked_up(global int *out, global const int *a) {
    ITEM vstore4(vload4(a[i] & 3, table + 1), i, out);
}
kernel void given(global int *out, constant int *a) { ITEM vstore4(vload4(i / 3, a), i, out); }
kernel void masked(global int *out, global const int *a) {
    ITEM if (a[i] & 1) vstore4(vload4(i, a) + vload4(i + 1, a), i, out);
}
kernel void parts(global int *out, global const int *a) {
    ITEM int2 pair = vload2(2 * i, a) - vload2(2 * i + 1, a);
    vstore2(pair, 2 * i, out);
    out[4 * i + 2] = pair.x * pair.y;
    vstore2(pair.yx, 2 * i + 1, out);
}
kernel void bytes(global int *out, global const int *a) {
    ITEM vstore16(vload16(i, (global const uchar *)a) * (uchar)3, i, (global uchar *)out);
}
kernel void wide(global int *out, global const int *a) {
    ITEM vstore2(vload2(i, (global const long *)a) + 1, i, (global long *)out);
}
kernel void halves(global int *out, global const int *a) {
    ITEM vstore8(-vload8(i, (global const half *)a), i, (global half *)out);
}
kernel void threes(global int *out, global const int *a) {
    ITEM vstore3(vload3(i, a), i, out);
    out[3 * get_global_size(0) + i] = 7;
}
kernel void elsewhere(global int *out, global const int *a, local int *shared) {
    ITEM size_t l = get_local_id(0), n = get_local_size(0);
    int own[8];
    vstore4(vload4(i, a), 0, own);
    vstore4(vload4(0, own) * 2, 1, own);
    vstore4(vload4(1, own), n - 1 - l, shared);
    barrier(CLK_LOCAL_MEM_FENCE);
    vstore4(vload4(l, shared) + (int4)(own[0], own[1], own[6], own[7]), i, out);
}
"""
N, PAD = 40, 24
TABLE = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 6, 4]


def expected(name: str, a: np.ndarray, out: np.ndarray) -> None:
    """What a kernel of N work-items writes, from what it reads."""
    i, rows = np.arange(N), a[: 4 * N].reshape(N, 4)
    o = out[: 4 * N].reshape(N, 4)
    table = np.array(TABLE, np.int32)

    def at(index, array=a):
        return array[np.asarray(index)[:, None] + np.arange(4)]

    if name == "aside":
        out[3 : 4 * N + 3].reshape(N, 4)[:] = at(4 * i + 1) * 3
    elif name == "anywhere":
        o[i * 3 % N] = at(4 * (a[:N] & 15))
    elif name == "masked":
        odd = (a[:N] & 1).astype(bool)
        o[odd] = (rows + at(4 * i + 4))[odd]
    elif name == "parts":
        pair = rows[:, :2] - rows[:, 2:]
        o[:] = np.concatenate([pair, pair[:, ::-1]], 1)
    elif name == "threes":
        out[: 3 * N] = a[: 3 * N]
        out[3 * N : 4 * N] = 7
    elif name == "bytes":
        o[:] = (rows.view(np.uint8) * np.uint8(3)).view(np.int32)
    elif name == "wide":
        o[:] = (rows.view(np.int64) + 1).view(np.int32)
    elif name == "halves":
        o[:] = (rows.view(np.uint16) ^ np.uint16(0x8000)).view(np.int32)
    elif name == "elsewhere":
        twice = rows.reshape(-1, 8, 4)[:, ::-1].reshape(N, 4) * 2
        o[:] = twice + np.concatenate([rows[:, :2], rows[:, 2:] * 2], 1)
    else:
        o[:] = {
            "plain": lambda: rows * 3 + 1,
            "reversed": lambda: rows[::-1],
            "below": lambda: rows,
            "first": lambda: rows + a[4:8],
            "known": lambda: table[8:12] + i[:, None],
            "looked_up": lambda: at(4 * (a[:N] & 3) + 1, table),
            "given": lambda: at(4 * (i // 3)),
        }[name]()


@pytest.mark.parametrize("width", [1, 4, 16])
@pytest.mark.parametrize("name", re.findall(r"kernel void (\w+)", SOURCE))
def test_what_they_load_and_store(name, width):
    rng = np.random.default_rng(len(name))
    memory, held = (aligned(4 * (4 * N + PAD)).view(np.int32) for _ in range(2))
    memory[:] = rng.integers(-1000, 1000, len(memory))
    wanted = held.copy()
    expected(name, memory, wanted)
    more = [Local(16 * 8)] if name == "elsewhere" else []
    Program(compile_c(SOURCE), width=width).run(name, N, 8, held, memory, *more)
    np.testing.assert_array_equal(held, wanted)


def test_neighbours_are_one_load():
    """As those of vector pointers: no component is taken out, nothing is put together."""
    source = """
kernel void k(global float *to, global const float *from) {
    size_t i = get_global_id(0);
    vstore4(vload4(i, from) * 3.0f + 1.0f, i, to);
}
kernel void same(global float4 *to, global const float4 *from) {
    size_t i = get_global_id(0);
    to[i] = from[i] * 3.0f + 1.0f;
}"""
    program = Program(compile_c(source), width=4)
    for name in ("k", "same"):
        found = program.code(name).text
        assert "load <16 x float>" in found and not re.search("shufflevector <.*float>", found)
        full = found.split("\nr0.rest:")[0]  # what is left of a row is loaded in one of two ways
        assert re.findall(r"load <16 x float>.*align (\d+)", full) == ["4"]


@pytest.mark.parametrize("width", [1, 4, 16])
def test_offsets_have_no_sign(width):
    """An offset of 32 bits is a size_t of such a machine: what is beyond its sign is no step back."""
    body = """%narrow = OpUConvert %i32 %id
%v = OpExtInst %v2 %std vloadn %narrow %a 2
%x2 = OpCompositeExtract %i32 %v 0
%y2 = OpCompositeExtract %i32 %v 1
%r = OpISub %i32 %x2 %y2"""
    spirv = module(
        body,
        "i32",
        "i32",
        capabilities='%std = OpExtInstImport "OpenCL.std"',
        types="%v2 = OpTypeVector %i32 2",
    )
    text = Program(spirv, width=width).code("main").text
    assert re.search(r"zext .*i32.* to ", text)
    a = np.arange(2 * ITEMS, dtype=np.int32) ** 2
    out = np.zeros(ITEMS, np.int32)
    check(spirv, a, a, out, (width,))
    assert GROUP < ITEMS and out.tolist() == (a[::2] - a[1::2]).tolist()
