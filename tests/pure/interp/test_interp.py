"""The interpreter by itself: values that other tests rely on, and undefined behaviour that it must notice."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from cl_driver.interp import numbers
from cl_driver.interp.memory import InterpreterError, Memory
from cl_driver.interp.run import Local, run
from cl_driver.spirv.enums import StorageClass
from cl_driver.spirv.types import TypeTable
from tests.pure.passes.support import compile_cl


def one(source: str, *args, size=(1,), local=(1,), level="-O2"):
    """Runs kernel k; returns the result."""
    return run(compile_cl(source, level), "k", list(args), size, local)


# numbers


@pytest.mark.parametrize("width, kind", [(16, np.float16), (32, np.float32)])
def test_rounding_to_nearest_agrees_with_numpy(width, kind):
    rng = np.random.default_rng(1)
    exponents = rng.uniform(-30, 18, 2000) if width == 16 else rng.uniform(-160, 130, 2000)
    with np.errstate(over="ignore"):
        for value in (rng.uniform(-2, 2, 2000) * 2.0**exponents).tolist():
            assert numbers.round_exact(Fraction(value), width) == float(kind(value)), value


def test_directed_rounding():
    third = Fraction(1, 3)
    down, up = numbers.round_exact(third, 32, numbers.RTN), numbers.round_exact(third, 32, numbers.RTP)
    assert Fraction(down) < third < Fraction(up)
    assert np.nextafter(np.float32(down), np.float32(1)) == np.float32(up)
    assert numbers.round_exact(-third, 32, numbers.RTZ) == -down
    assert numbers.round_exact(10**40, 32, numbers.RTZ) == float(np.finfo(np.float32).max)
    assert numbers.round_exact(10**40, 32, numbers.RTP) == math.inf


def test_fma_rounds_once():
    a, c = 1 + 2.0**-12, -1 - 2.0**-11
    assert numbers.fma(a, a, c, 32) == 2.0**-24
    assert numbers.to_width(numbers.to_width(a * a, 32) + c, 32) == 0.0


def test_float_to_integer():
    assert numbers.to_integer(-1.5, 32, True, numbers.RTZ, False) == 0xFFFFFFFF
    assert numbers.to_integer(2.5, 32, True, numbers.RTE, False) == 2
    assert numbers.to_integer(300.0, 8, False, numbers.RTZ, True) == 255
    assert numbers.to_integer(-math.inf, 16, True, numbers.RTZ, True) == 0x8000
    assert numbers.to_integer(math.nan, 32, True, numbers.RTZ, True) == 0


# memory


def test_memory_is_checked_and_typed():
    types, memory = TypeTable(), Memory()
    address = memory.allocate(16, StorageClass.Function)
    vector = types.vector(types.float(32), 3)
    memory.store(vector, address, (1.0, 2.0, 3.5))
    assert memory.load(types.int(32), address + 8) == 0x40600000
    assert memory.storage_of(address) == StorageClass.Function
    with pytest.raises(InterpreterError, match="outside of all memory"):
        memory.load(types.int(32), address + 13)
    memory.free(address)
    with pytest.raises(InterpreterError):
        memory.load(types.int(8), address)


# kernels


def test_integer_builtins():
    source = """kernel void k(global uint *o, uint a, int b) {
        o[0] = clz(a); o[1] = rotate(a, 8u); o[2] = mul_hi(a, a); o[3] = add_sat(b, (int)0x80000000);
        o[4] = hadd(b, 3); o[5] = abs_diff(b, 5); o[6] = popcount(a); o[7] = upsample((ushort)a, (ushort)3);
        o[8] = mad24(b, 7, 5); o[9] = bitselect(a, 0xFFu, 0xF0F0u);
        o[10] = ctz(a << 3); o[11] = sub_sat(3u, a); }"""
    out = np.zeros(12, np.uint32)
    one(source, out, 0x00C0FFEE, -7)
    a = 0x00C0FFEE
    expected = [8, 0xC0FFEE00, a * a >> 32, 0x80000000, -2, 12, a.bit_count(), 0xFFEE0003, -44]
    expected += [a & ~0xF0F0 | 0xF0, 4, 0]
    assert out.tolist() == [v & 0xFFFFFFFF for v in expected]


def test_float_builtins():
    source = """kernel void k(global float *o, float x) { int e; float w;
        o[0] = sqrt(x); o[1] = rint(x); o[2] = fmin(x, NAN); o[3] = frexp(x, &e); o[4] = e;
        o[5] = fract(-x, &w);
        o[6] = w; o[7] = ldexp(x, 3); o[8] = nextafter(x, 10.0f); o[9] = fma(x, x, -6.25f);
        o[10] = trunc(-x);
        o[11] = round(x); o[12] = copysign(x, -1.0f); o[13] = remainder(x, 2.0f); }"""
    out = np.zeros(14, np.float32)
    one(source, out, 2.5)
    root, above = np.float32(np.sqrt(np.float32(2.5))), np.nextafter(np.float32(2.5), np.float32(10))
    assert out.tolist() == [root, 2, 2.5, 0.625, 2, 0.5, -3, 20, above, 0, -2, 3, -2.5, 0.5]


def test_vectors_conversions_and_memory_forms():
    source = """kernel void k(global char *c, global half *h, global const float *f) {
        float4 v = vload4(1, f); vstore3(convert_char3_sat(v.xyz * 100.0f), 1, c);
        vstore_half4(v, 0, h); vstore_half_rtz(f[0], 5, h); v = vload_half4(0, h).wzyx;
        c[0] = v.x; c[1] = convert_uchar_sat_rte(v.s1); c[2] = as_uchar4(f[1]).w; }"""
    c, h = np.zeros(8, np.int8), np.zeros(8, np.float16)
    f = np.array([1 / 3, 1.0, 0, 0, -3.3, 0.75, 70000.0, 2.5], np.float32)
    one(source, c, h.view(np.uint16), f)
    assert c[3:6].tolist() == [-128, 75, 127]
    assert h.tolist()[:4] == [np.float16(-3.3), 0.75, math.inf, 2.5]
    assert h[5] == np.nextafter(np.float16(1 / 3), np.float16(0 if np.float16(1 / 3) > f[0] else 1 / 3))
    assert c[:3].tolist() == [2, -1, 0x3F]


def test_atomics_and_printf():
    source = r"""kernel void k(global int *a) { int i = get_global_id(0);
        atomic_add(a, i); atomic_sub(a + 1, i * 7 % 5); atomic_cmpxchg(a + 2, i, i + 1);
        atomic_or(a + 3, 1 << i);
        if (i == 3) printf("%d %5.2f %s|%v4hld %x%%\n", -i, 1.5f * i, "text", (int4)(1, -2, 3, 4), 255); }"""
    a = np.zeros(4, np.int32)
    printed = one(source, a, size=(6,), local=(3,)).printed
    assert a.tolist() == [15, -10, 6, 63]
    assert printed == ["-3  4.50 text|1,-2,3,4 ff%\n"]


def test_work_item_functions():
    source = """kernel void k(global int *a) {
        int i = get_global_linear_id();
        a[i] = get_local_linear_id() + 10 * get_local_size(0) + 100 * get_enqueued_local_size(0)
             + 1000 * get_group_id(0) + 10000 * get_num_groups(0) + 100000 * get_work_dim(); }"""
    a = np.zeros(10, np.int32)
    one(source, a, size=(5, 2), local=(3, 1))
    local = [0, 1, 2, 0, 1] * 2
    assert a.tolist() == [
        local[i] + 10 * (3 if i % 5 < 3 else 2) + 300 + 1000 * (i % 5 // 3) + 20000 + 200000
        for i in range(10)
    ]


# undefined behaviour


def test_what_the_interpreter_refuses():
    divide = "kernel void k(global int *a) { a[0] = a[1] / a[2]; }"
    with pytest.raises(InterpreterError, match="division by zero"):
        one(divide, np.zeros(3, np.int32))
    with pytest.raises(InterpreterError, match="outside"):
        one("kernel void k(global int *a) { a[4] = 1; }", np.zeros(4, np.int32))
    with pytest.raises(InterpreterError, match="has no body"):
        one("int f(int); kernel void k(global int *a) { a[0] = f(1); }", np.zeros(4, np.int32))
    apart = """kernel void k(global int *a, local int *t) { int l = get_local_id(0); t[l] = l;
        if (l & 1) { barrier(CLK_LOCAL_MEM_FENCE); a[l] = t[0]; }
        else { barrier(CLK_LOCAL_MEM_FENCE); a[l] = 5; } }"""
    with pytest.raises(InterpreterError, match="different barriers"):
        one(apart, np.zeros(4, np.int32), Local(16), size=(4,), local=(4,), level="-O0")
    with pytest.raises(InterpreterError, match="arguments"):
        one(divide)
