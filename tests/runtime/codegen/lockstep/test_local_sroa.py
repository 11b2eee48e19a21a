"""Groups in lockstep: local memory whose elements are kept in registers
(cl_driver/codegen/lockstep/local_sroa.py), and fields beside one another that differ in low bits of an index
(cl_driver/codegen/access/interleaved_access.py), against the interpreter."""

import os
import re

import numpy as np
import pytest

from cl_driver.codegen.llvm.options import CodegenOptions
from cl_driver.device.target import host_target
from cl_driver.interp.run import run as interpret
from cl_driver.jit import emit
from tests.bench.model import kernel_file
from tests.runtime.emulation import IS_EMULATED
from tests.runtime.kernel_harness import Local, Program, compile_c

TARGET = host_target(os.environ.get("CL_DRIVER_TEST_CPU", ""))
OPTIONS = CodegenOptions(features=frozenset(TARGET.features))

TREES = """
kernel void trees(global int *out, global const int *in, local int *t) {
    int l = get_local_id(0), n = get_local_size(0), base = get_group_id(0) * 2 * n, stride = 1;
    t[2 * l] = in[base + 2 * l];
    t[2 * l + 1] = in[base + 2 * l + 1];
    for (int active = n; active > 0; active /= 2) {          // up a tree, and down again
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l < active)
            t[stride * (2 * l + 2) - 1] += t[stride * (2 * l + 1) - 1];
        stride *= 2;
    }
    if (l == n - 1)                                          // one place, which one lane stores to
        t[2 * n - 1] = 0;
    for (int active = 1; active < 2 * n; active *= 2) {
        stride /= 2;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l < active) {
            int left = stride * (2 * l + 1) - 1, right = stride * (2 * l + 2) - 1, kept = t[left];
            t[left] = t[right];
            t[right] += kept;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    out[base + 2 * l] = t[2 * l];
    out[base + 2 * l + 1] = t[2 * l + 1];
}
"""

MIXED = """
kernel void mixed(global int *out, global const int *in, local int *t) {
    local short s[256];
    int l = get_local_id(0), n = get_local_size(0), sum = 0;
    for (int k = 0; k < 4; k++)
        t[4 * l + k] = in[4 * l + k] - k;                    // each vector is of four sources
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < 4; k++)
        sum += (k + 1) * t[l + n * k];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l >= n)                                              // nobody
        t[l] = 77;
    if (l % 5 == 0)                                          // some, of whom all is known
        t[3 * l] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (in[l] & 1)                                           // some, of whom nothing is
        t[l * 2] = l;
    s[l] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    sum += t[0] + s[n - 1 - l] + t[4 * n - 1 - l] + t[(7 * l) & (n - 1)];
    barrier(CLK_LOCAL_MEM_FENCE);
    t[l] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (in[0] & 4) {                                         // another block
        int other = t[l ^ 1];
        barrier(CLK_LOCAL_MEM_FENCE);
        t[n - 1 - l] += other;
        barrier(CLK_LOCAL_MEM_FENCE);
        sum += t[l];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    ((local short *)t)[l] = sum;                             // elements of another size
    barrier(CLK_LOCAL_MEM_FENCE);
    out[l] = sum + t[l];
}
"""

FIELDS = """
kernel void fields(global int *out, global const int *in, local int *t) {
    int l = get_local_id(0), n = get_local_size(0), base = 4 * get_group_id(0) * n;
    int a = in[base + 4 * l] + 1, b = in[base + 4 * l + 3] * 2, c = in[base + 4 * l + 2];
    out[base + 4 * l] = a;                                   // global memory, with local memory in between
    t[l] = a ^ b;
    out[base + 4 * l + 1] = b - c;
    barrier(CLK_LOCAL_MEM_FENCE);
    out[base + 4 * l + 2] = t[n - 1 - l];
    out[base + 4 * l + 3] = c;
    size_t i = get_global_id(0) * 2;                         // of 64 bits; what was stored is read again
    out[i | 1] += out[i];
}
"""

# What is stored to u is never read from memory; the others are: by each lane at a place of its own, where an
# atomic or a pointer that may be another's hides it, in another block than where it was stored, through and
# through (all lanes take the same places, many).
UNREAD = """
kernel void unread(global int *out, global const int *in, local int *given) {
    local int u[64], own[64], hidden[64], either[64], later[64], through[64];
    int l = get_local_id(0), n = get_local_size(0), base = get_group_id(0) * n, sum = 0;
    for (int k = 0; k < 3; k++) {
        int a = in[base + (l ^ k)];
        u[l] = a; own[l] = a + 1; hidden[l] = a + 2; either[l] = a + 3; through[l] = a + 4; given[l] = a + 5;
        if (!k) later[l] = a;
        barrier(CLK_LOCAL_MEM_FENCE);
        sum += u[l ^ 1] + u[n - 1 - l] * 2 + own[in[l] & (n - 1)] + later[in[l + 1] & (n - 1)] + given[l ^ 2];
        if (!l) sum += atomic_add(hidden + 1, 3);
        local int *p = in[0] & 1 ? either : hidden;
        sum += p[n - 1 - l];
        for (int j = 0; j < n; j++) sum = sum * 3 + through[j];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    out[base + l] = sum;
}
"""


# Stores under masks of which nothing is known: to places that are shuffled, to too many vectors for that, to
# elements that the array may not have if nobody takes part, and where only some are asked.
EXCHANGES = """
kernel void exchanges(global int *out, global const int *in, local int *t) {
    local int u[64];
    int l = get_local_id(0), n = get_local_size(0), base = get_group_id(0) * 2 * n;
    t[l] = in[base + l];
    t[l + n] = in[base + l + n];
    u[l] = l;
    for (int k = 1; k <= n; k *= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        int i = 2 * l - (l & (k - 1)), a = t[i], b = t[i + k];
        if (a > b) {
            t[i] = b;
            t[i + k] = a;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (t[n - 1 - l] & 1) {
            u[l ^ 1] += a;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l < n / 2 && a & 1)
            t[l / 8 + (l & 7) * (n / 8)] = 7;
        if (in[base] > 1000)
            u[l + 4 * n] = a;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    out[base + l] = t[l];
    out[base + l + n] = t[l + n] + u[l];
}
"""


# Columns of a matrix, of which each work-item has a row: one after the other is loaded, and stored to, before
# the next one is loaded for the first time. Then one that data decide, which is anywhere in the array.
COLUMNS = """
kernel void columns(global int *out, global const int *in, local int *t) {
    int l = get_local_id(0), n = get_local_size(0);
    for (int i = 0; i < n; i++)
        t[i * n + l] = in[i * n + l];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int j = 0; j < n; j++)
        for (int i = 0; i < j; i++)
            t[l * n + j] -= t[l * n + i] * (i + 3);
    ANYWHERE
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < n; i++)
        out[i * n + l] = t[i * n + l];
}
"""
ANYWHERE = "t[l * n + (in[l] & (n - 1))] = 7; t[l * n] += t[l * n + n - 1] + t[l * n + n / 2];"


def compare(
    name: str, source: str, width: int, size: int, groups: int, elements: int, local_elements: int = 0
) -> None:
    """Against the interpreter, as a whole group and as any group."""
    local_elements = local_elements or 4 * size
    memory = np.random.default_rng(size + width).integers(-99, 99, elements * groups).astype(np.int32)
    want = np.zeros_like(memory)
    local = np.zeros(local_elements, np.int32)
    data = compile_c(source)
    interpret(
        Program(data, OPTIONS, width).module, name, [want, memory.copy(), local], (groups * size,), (size,)
    )
    for group in ((size, 1, 1), ()):
        options = {"group": group, "parts": size // width} if group else {}
        built = Program(data, OPTIONS, width, **options)
        got = np.zeros_like(memory)
        built.run(name, groups * size, size, got, memory.copy(), Local(4 * local_elements))
        assert np.array_equal(got, want), group


@pytest.mark.parametrize("width, size", ((4, 8), (4, 32), (8, 64), (16, 16), (16, 128)))
def test_trees(width, size):
    compare("trees", TREES, width, size, 3, 2 * size)


@pytest.mark.parametrize("width, size", ((2, 8), (4, 32), (8, 32), (16, 64)))
def test_mixed(width, size):
    compare("mixed", MIXED, width, size, 1, 4 * size)


@pytest.mark.parametrize("width, size", ((2, 4), (4, 16), (8, 32), (16, 64)))
def test_fields(width, size):
    compare("fields", FIELDS, width, size, 3, 4 * size)


@pytest.mark.parametrize("width, size", ((4, 8), (8, 32), (16, 64)))
def test_unread(width, size):
    compare("unread", UNREAD, width, size, 2, size + 1)
    code = Program(compile_c(UNREAD), OPTIONS, width, group=(size, 1, 1), parts=size // width).code("unread")
    text, parts = code.text, size // width
    stores = [line for line in text.splitlines() if f"store <{width} x i32>" in line and ", ptr" in line]
    assert len(stores) >= 5 * parts
    without = UNREAD.replace("u[l] = a;", "").replace("u[l ^ 1] + u[n - 1 - l] * 2 +", "")
    other = Program(compile_c(without), OPTIONS, width, group=(size, 1, 1), parts=parts).code("unread").text
    assert len(stores) == sum(f"store <{width} x i32>" in line for line in other.splitlines())


@pytest.mark.parametrize("width, size", ((4, 8), (4, 32), (8, 64), (16, 16), (16, 64)))
def test_exchanges(width, size):
    compare("exchanges", EXCHANGES, width, size, 3, 2 * size)


@pytest.mark.parametrize("width", (4, 8, 16))
def test_columns(width):
    """A matrix is transposed twice, by as many shuffles as that takes, whatever is stored between loads."""
    items = width * width
    for anywhere in ("", ANYWHERE):
        source = COLUMNS.replace("ANYWHERE", anywhere)
        compare("columns", source, width, width, 1, items, items)
    text = (
        Program(compile_c(COLUMNS.replace("ANYWHERE", "")), OPTIONS, width, group=(width, 1, 1), parts=1)
        .code("columns")
        .text
    )
    assert "gather" not in text and not re.search(r"extractelement|insertelement", text)
    assert text.count("shufflevector") == 2 * width * (width.bit_length() - 1)


@pytest.mark.skipif(IS_EMULATED or "avx2" not in TARGET.features, reason="reads x86 assembly")
@pytest.mark.parametrize("type_", ("float", "int"))
def test_reads_ascend(type_):
    """A group reads what its tree adds up in the order of addresses: no other order is foreseen by CPUs."""
    source = kernel_file("reduce_tree").read_text().replace("float", type_)
    width, size = TARGET.vector_bits // 32, 256
    built = Program(compile_c(source), OPTIONS, width, group=(size, 1, 1), parts=size // width)
    text = emit.assembly(built.code("reduce_tree").text, TARGET, "short")
    places = [int(place or 0) for place in re.findall(r"\s(\d*)\(%r\w+,%r\w+,4\), %[xyz]mm", text)]
    assert places == list(range(0, 4 * size, 4 * width))
