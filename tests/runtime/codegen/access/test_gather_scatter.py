"""Loads and stores at addresses that a table gives, at constant distances, and under masks."""

import re

import numpy as np
import pytest

from cl_driver.codegen.llvm.options import CodegenOptions
from cl_driver.device.cpu import host_cpu
from cl_driver.device.target import host_target
from tests.marks import halved, split
from tests.runtime.kernel_harness import Program, compile_c

KERNEL = """
kernel void gather_T(global T *out, global const T *in, global const int *at) {
  size_t x = get_global_id(0); out[x] = in[at[x] & 0xff]; }
kernel void scatter_T(global T *out, global const T *in, global const int *at) {
  size_t x = get_global_id(0); out[at[x] & 0xff] = in[x]; }
kernel void masked_T(global T *out, global const T *in, global const int *at) {
  size_t x = get_global_id(0); int k = at[x]; if (k < 256) out[k] = in[k]; }
kernel void apart_T(global T *out, global const T *in, global const int *at) {
  size_t x = get_global_id(0); if (at[x] & 1) out[5 * x] = in[3 * x + 1]; else out[5 * x + 2] = in[7 * x]; }
kernel void apart_all_T(global T *out, global const T *in, global const int *at) {
  size_t x = get_global_id(0); out[5 * x] = in[3 * x + 1]; }
"""
TYPES = {
    "uchar": (np.uint8, 1), "short": (np.int16, 1), "int": (np.int32, 1), "double": (np.float64, 1),
    "uchar2": (np.uint8, 2), "char4": (np.int8, 4), "ushort4": (np.uint16, 4), "float2": (np.float32, 2),
    "float4": (np.float32, 4), "uchar16": (np.uint8, 16), "double2": (np.float64, 2), "long8": (np.int64, 8),
    "int3": (np.int32, 4),
}  # fmt: skip
ITEMS = 45
FORMS = ((4, 1), (16, 1), (8, 1), (8, 2))
AVX2 = frozenset("fma f16c sse4.1 ssse3 avx avx2".split())
FEATURES = {"few": CodegenOptions().features, "host": frozenset(host_target().features)}


@pytest.fixture(scope="module")
def compiled():
    return compile_c("".join(KERNEL.replace("T", name) for name in TYPES))


@pytest.fixture(scope="module", params=FEATURES)
def programs(request, compiled):
    options = CodegenOptions(features=FEATURES[request.param])
    return {form: Program(compiled, options, width=form[0], parts=form[1]) for form in FORMS}


def _aligned(array):
    """A copy at a multiple of the largest alignment of a type."""
    memory = np.zeros(array.nbytes + 128, np.uint8)
    start = -memory.ctypes.data % 128
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def _expected(kind: str, data, at):
    out, lanes = np.zeros_like(data), np.arange(ITEMS)
    if kind == "gather":
        out[lanes] = data[at & 255]
    elif kind == "scatter":
        out[at & 255] = data[lanes]
    elif kind == "masked":
        out[at[at < 256]] = data[at[at < 256]]
    elif kind == "apart_all":
        out[5 * lanes] = data[3 * lanes + 1]
    else:
        odd = lanes[(at & 1) == 1]
        even = lanes[(at & 1) == 0]
        out[5 * odd], out[5 * even + 2] = data[3 * odd + 1], data[7 * even]
    return out


@pytest.mark.parametrize("forms", split(FORMS, 2), ids=["some", "others"])
@pytest.mark.parametrize("name", halved(TYPES))
@pytest.mark.parametrize("kind", ["gather", "scatter", "masked", "apart", "apart_all"])
def test_lanes_apart(programs, kind, name, forms):
    """Lanes outside of masks have addresses that nothing may be done with: some are far away."""
    data, at, want, used = _case(kind, name)
    for program in map(programs.get, forms):
        out = _aligned(np.zeros_like(data))
        program.run(f"{kind}_{name}", ITEMS, 15 if program.width == 4 else ITEMS, out, data, at)
        assert np.array_equal(out[:, :used], want[:, :used]), f"width {program.width}"


def _case(kind: str, name: str):
    """(what is read, places, what is to be there, components that are looked at)."""
    element, count = TYPES[name]
    rng = np.random.default_rng(5)
    data = _aligned(rng.integers(0, 100, (512, count)).astype(element))
    used = count if name != "int3" else 3
    at = rng.permutation(256)[:ITEMS].astype(np.int32)
    at[rng.integers(0, ITEMS, 9)] |= 1 << 30
    if kind == "scatter":
        at = (np.arange(ITEMS) * 5 % 256 | (at & 1 << 30)).astype(np.int32)
    return data, at, _expected(kind, data, at), used


@pytest.mark.skipif("avx2" not in host_cpu().features, reason="takes a CPU with AVX2")
@pytest.mark.parametrize("width", [4, 8, 16])
@pytest.mark.parametrize("kind", ["gather", "masked", "apart", "apart_all"])
def test_gathers_of_avx2(compiled, kind, width):
    """Where they are fast they are taken, but not for stores, nor for less than 32 bits."""
    plain = Program(compiled, CodegenOptions(AVX2, 256), width=width)
    program = Program(compiled, CodegenOptions(AVX2 | {"fast-gather"}, 256), width=width)
    for name, is_gathered in (("gather_int", True), ("gather_short", False), ("scatter_int", False)):
        assert ("llvm.masked.gather" in program.code(name).text) == is_gathered, name
        assert not any(way in plain.code(name).text for way in ("llvm.masked.gather", "llvm.masked.scatter"))
    for name in ("int", "float2", "int3", "double"):
        data, at, want, used = _case(kind, name)
        out = _aligned(np.zeros_like(data))
        program.run(f"{kind}_{name}", ITEMS, 15 if width == 4 else ITEMS, out, data, at)
        assert np.array_equal(out[:, :used], want[:, :used]), name


def test_a_vector_of_bytes_is_gathered_whole(programs):
    """Four bytes make one element of a gather, where there are gathers; a float4 one load of each lane."""
    code = programs[16, 1].code("gather_char4").text
    assert "gather.v16i8" not in code
    if "avx512f" in programs[16, 1].options.features:
        assert "gather.v16i32" in code
    assert programs[16, 1].code("gather_float4").text.count("load <4 x float>") >= 16


def test_vectors_of_64_bits_are_gathered_by_pairs(programs):
    """Each lane's in loads of 128 bits, of which two and a shuffle make a vector of 256 bits."""
    text = programs[4, 1].code("gather_long8").text
    if "avx512f" in programs[4, 1].options.features:
        assert "load <8 x i64>" in text
    else:
        assert text.count("load <2 x i64>") >= 16
        # Stores lane by lane, under a mixed mask, read the data anew.
        blocks = re.split(r"^([\w.]+):$", text, flags=re.MULTILINE)[1:]
        wide = [
            name for name, lines in zip(blocks[::2], blocks[1::2], strict=True) if "load <8 x i64>" in lines
        ]
        assert all(name.startswith("partial") for name in wide)
