# ruff: noqa: E501  kernels as one line each
"""Loads at sums of ids that are cut to int: one question for all of a block
(codegen/access/overflow_versioning.py, cl_driver/codegen/access/block_versioning.py)."""

import mmap

import numpy as np
import pytest

from tests.marks import split
from tests.runtime.emulation import IS_EMULATED
from tests.runtime.kernel_harness import Program, aligned, compile_c

STEPS = "uint s = 0; for (int k = 0; k < 6; k++) { s = s * 3 + from[i]; i += STEP; } to[get_global_id(0)] = s; }\n"
SOURCE = r"""
kernel void by_local(global float *to, global const float *from, int n) {
  int i = get_group_id(0) * get_local_size(0) * 8 + get_local_id(0); float s = 0;
  for (int k = 0; k < 8; k++) { s = s * 3 + from[i]; i += get_local_size(0); } to[get_global_id(0)] = s; }
kernel void by_global(global float *to, global const float *from, int n) {
  int i = get_global_id(0); float s = n;
  for (int k = 0; k < 8; k++) { s = s * 3 - from[i]; i += get_global_size(0); } to[get_global_id(0)] = s; }
kernel void pairs(global float *to, global const float2 *from, int n) {
  int i = get_global_id(0) + 3 * get_global_size(0); float2 s = n;
  for (int k = 0; k < 4; k++) { s = s * 3 - from[i]; i += get_global_size(0); } to[get_global_id(0)] = s.x - s.y; }
kernel void back(global float *to, global const float *from, int n) {
  int i = get_global_id(0) + get_local_size(0) * 9; float s = 0;
  for (int k = 0; k < 5; k++) { s = s * 3 + from[i]; i -= 7; } to[get_global_id(0)] = s; }
kernel void some(global float *to, global const float *from, int n) {
  int i = get_global_id(0) + 3 * get_global_size(0); float s = 0; if (get_global_id(0) % 3 != 1) {
  for (int k = 0; k < 6; k++) { s = s * 3 + from[i]; i += get_global_size(0); } } to[get_global_id(0)] = s; }
kernel void chosen(global float *to, global const float *from, int n) {
  int i = get_global_id(0); float s = 0;
  for (int k = 0; k < 6; k++) { float a = from[i]; i += get_global_size(0); if (a > 4) s = s * 3 + from[i]; } to[get_global_id(0)] = s; }
kernel void pointed(global float *to, global const float *from, int n) {
  int i = get_global_id(0); float s = 0;
  for (int k = 0; k < 6; k++) { s = s * 3 + from[i]; i += get_global_size(0); } to[get_global_id(0)] = s + from[(int)from[i] + n]; }
kernel void mixed(global float *to, global const float *from, int n) {
  int i = get_global_id(0) + 3 * get_global_size(0); int s = 0; for (int k = 0; k < 6; k++) { s = s * 3 + (int)from[i]; i += get_global_size(0); }
  to[get_global_id(0)] = s + from[get_global_id(0) + n]; }
"""
CUT = {  # the first index and the step
    "around": ("get_global_id(0) + (get_local_size(0) << 26)", "get_local_size(0)"),
    "across": ("get_global_id(0) + (get_local_size(0) << 25) - 20", "get_local_size(0)"),
    "late": ("get_global_id(0) + (get_local_size(0) << 22) * 5 - 9", "(get_local_size(0) << 22)"),
}
NAMES = [kernel.split("(")[0] for kernel in SOURCE.split("kernel void ")[1:]]
FORMS = ((4, 1), (16, 1), (8, 3), (8, 1), (16, 2))
ITEMS, LOCAL = 228, 57
NORESERVE = 0x4000  # of Linux; what is not touched takes no memory


@pytest.fixture(scope="module")
def programs():
    cut = "".join(
        f"kernel void {name}(global uint *to, global const uchar *from, int n) {{ int i = {first}; "
        + STEPS.replace("STEP", step)
        for name, (first, step) in CUT.items()
    )
    compiled = compile_c(SOURCE + cut)
    return {form: Program(compiled, width=form[0], parts=form[1]) for form in FORMS}


def _wanted(name: str, data: np.ndarray) -> np.ndarray:
    ids, sums = np.arange(ITEMS), np.zeros(ITEMS)
    start = ids // LOCAL * LOCAL * 8 + ids % LOCAL if name == "by_local" else ids
    if name == "pairs":
        sums = np.full((ITEMS, 2), 5.0)
        for k in range(4):
            sums = sums * 3 - data.reshape(-1, 2)[ids + (k + 3) * ITEMS]
        return sums[:, 0] - sums[:, 1]
    if name == "by_global":
        sums += 5
    if name == "back":
        start, step, count = ids + 9 * LOCAL, -7, 5
    else:
        step = LOCAL if name == "by_local" else ITEMS
        count = 6 if name in ("some", "mixed", "chosen", "pointed") else 8
    if name in ("some", "mixed"):
        start = ids + 3 * ITEMS
    if name == "chosen":
        for k in range(count):
            sums = np.where(data[ids + k * ITEMS] > 4, sums * 3 + data[ids + (k + 1) * ITEMS], sums)
        return sums
    for k in range(count):
        sums = sums * 3 + data[start + k * step] * (-1 if name == "by_global" else 1)
    if name == "some":
        sums[ids % 3 == 1] = 0
    if name == "pointed":
        return sums + data[data[ids + 6 * ITEMS].astype(int) + 5]
    return sums + data[ids + 5] if name == "mixed" else sums


@pytest.mark.parametrize("forms", split(FORMS, 3), ids=["some", "others"])
@pytest.mark.parametrize("name", NAMES)
def test_results(programs, name, forms):
    data = aligned(16 * ITEMS * 4).view(np.float32)
    data[:] = np.random.default_rng(1).integers(0, 9, len(data))
    want = _wanted(name, data)
    for form in forms:
        to = np.zeros(ITEMS, np.float32)
        programs[form].run(name, ITEMS, LOCAL, to, data, np.int32(5))
        assert np.array_equal(to, want), form


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("chosen", "pointed")])
def test_one_question(programs, name):
    """Of parts together, too."""
    for form, program in programs.items():
        assert program.code(name).text.count("\nregular") == 2, form  # in code with and without a mask


def test_sums_of_sums_and_large_numbers():
    """What is used twice is looked at once, however deep, and no address leaves 64 bits."""
    steps = "".join(f"b{k} = b{k - 1} + b{k - 2}, " for k in range(2, 90))
    loads = "".join("s = s * 3 + from[i]; i += b89; " for _ in range(6))
    far = "".join(f"s += from[(long)i + {hex((1 << 62) - k)}]; " for k in range(6))
    source = (
        "kernel void deep(global float *to, global const float *from) { "
        f"size_t b0 = get_global_size(0), b1 = get_local_size(0), {steps}b = b89; int i = get_global_id(0); "
        f"float s = 0; {loads}to[get_global_id(0)] = s; }}\n"
        "kernel void far(global float *to, global const float *from) { "
        f"int i = get_global_id(0) + get_local_size(0); float s = 0; {far}to[get_global_id(0)] = s; }}"
    )
    program = Program(compile_c(source), width=8, parts=2)
    for name in ("deep", "far"):
        program.kernel(name)


@pytest.mark.skipif(IS_EMULATED, reason="the emulator has no 4 GiB for it")
@pytest.mark.parametrize("name", CUT)
def test_sums_that_are_cut(programs, name):
    """From below 2^31 to -2^31: within a vector, between two loads, or before the first one."""
    local, half = 64, 1 << 31
    space = mmap.mmap(-1, 2 * half, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NORESERVE)
    memory = np.frombuffer(space, np.uint8)
    start, step = {
        "around": (1 << 32, local),
        "across": ((1 << 31) - 20, local),
        "late": (5 * local * (1 << 22) - 9, local << 22),
    }[name]
    places = [(start + np.arange(local) + k * step + half) % (2 * half) for k in range(6)]
    rng, want = np.random.default_rng(2), np.zeros(local, np.uint64)
    for place in places:
        memory[place] = rng.integers(1, 256, local)
    for place in places:
        want = want * 3 + memory[place]
    for form, program in programs.items():
        to = np.zeros(local, np.uint32)
        program.run(name, local, local, to, memory[half:], np.int32(0))
        assert np.array_equal(to, want), form
