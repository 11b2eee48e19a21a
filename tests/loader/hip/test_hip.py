"""Kernels of HIP (kernels.hip) as clang's HIPSPV target makes SPIR-V of them, each beside a model."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest

from tests.marks import few

from .device import Local, hip_module

LEVELS = ("-O2", "-O0", "-O1", "-O3")
RANDOM = np.random.default_rng(25)


@pytest.fixture(params=few(LEVELS, 2))
def program(request, device) -> int:
    return device.load(hip_module("kernels.hip", request.param))


def test_generic_pointers(device, program):
    n, start = 256, RANDOM.integers(0, 1000, 512, np.int32)
    data = device.array(start)
    device.run(program, "generic_pointers", n, 64, data, np.int32(n))
    want = []
    for g in range(n):
        i, first = g % 64, g - g % 64
        want.append([start[first + 63 - i], start[first + 63 - i], i if i & 1 == 0 else -i][i % 3])
    assert data[n:].tolist() == want


def test_reduction(device, program):
    values = RANDOM.integers(-100, 100, 1024, np.int32)
    numbers, wide = device.array(values), device.array(values / 4.0)
    sums, wide_sums = device.zeros(4), device.zeros(4, np.float64)
    device.run(program, "reduce", 1024, 256, numbers, sums, wide, wide_sums)
    want = values.reshape(4, 256).sum(1)
    assert sums.tolist() == want.tolist()
    assert wide_sums.tolist() == (want / 4.0).tolist()


def test_atomics_and_variables_of_the_device(device, program):
    values = RANDOM.integers(0, 1 << 20, 512, np.int32)
    numbers, out = device.array(values), device.zeros(8)
    most, total = device.zeros(1, np.float32), device.zeros(1, np.float64)
    wide, read = device.zeros(2, np.uint64), device.zeros(16)
    for _ in range(2):
        device.run(program, "atomics", 512, 64, numbers, out, most, total, wide)
    device.run(program, "read_globals", 16, None, read)
    odd = np.arange(512) % 2 == 1
    low, high = values & 7, values >> 4 & 7
    want = [2 * ((low == k).sum() + 100 * (odd & (high == k)).sum()) for k in range(8)]
    assert out.tolist() == want
    assert read.tolist() == [200 * (~odd & (high == k)).sum() for k in range(8)] + [5 + 1024] * 8
    assert most[0] == values.max() and total[0] == 512.0
    assert wide.tolist() == [int(values.max()) << 32, 0]  # all is toggled twice


def test_shuffles(device, program):
    values = RANDOM.integers(0, 900, 256, np.int32)
    values[70] = 7
    numbers, out = device.array(values), device.zeros((256, 4))
    device.run(program, "shuffles", 256, 64, numbers, out)
    size = int(out[0, 3]) & 0xFF
    assert size in (4, 8, 16, 32, 64)
    warps = values.reshape(-1, size)
    lanes = np.arange(size)
    below = np.concatenate([warps[:, 1:], np.zeros((len(warps), 1), np.int32)], 1)
    flags = size | (warps == 7).any(1, keepdims=True).astype(int) << 8 | 1 << 9
    want = [
        np.broadcast_to(warps.sum(1, keepdims=True), warps.shape),
        warps.cumsum(1),
        below + 1000 * warps[:, (lanes * 5 + 3) % size],
        np.broadcast_to(flags, warps.shape),
    ]
    np.testing.assert_array_equal(out, np.stack([w.reshape(-1) for w in want], 1))


def test_virtual_functions(device, program):
    start = RANDOM.integers(0, 8, 100).astype(np.float32)
    out = device.array(start)
    device.run(program, "virtual_calls", 100, None, out)
    for i, x in enumerate(start):
        area = (x * x, 6 * x * x, 0.5 * x * x)[i % 3]
        assert out[i] == area + (4000, 0, 4000)[i % 3] + (1704 if i % 5 == 0 else 0)


def test_objects_outlive_kernels(device, program):
    memory, out = device.zeros(16 * 64, np.uint8), device.zeros(64, np.float32)
    device.run(program, "make_objects", 64, None, memory)
    device.run(program, "use_objects", 64, 16, memory, out)
    assert out.tolist() == [12.0 * i if i & 1 else 4.0 * i for i in range(64)]


def test_function_pointers(device, program):
    start = RANDOM.integers(-100, 100, 99, np.int32)
    data, others = device.array(start), device.array(start)
    device.run(program, "function_table", 99, None, data)
    assert data.tolist() == [(2 * x, x * x, -x)[i % 3] for i, x in enumerate(start.tolist())]
    device.run(program, "function_arguments", 99, None, others)
    assert others.tolist() == [(-x if x & 1 else 2 * x) + 1 for x in start.tolist()]


def test_pointers_in_variables(device, program):
    data, address = device.array(np.arange(50, dtype=np.int32)), device.zeros(1, np.uint64)
    device.run(program, "bind", 1, None, data)
    for _ in range(2):
        device.run(program, "use_bound", 64, 16, np.int32(40))
    assert data.tolist() == [9 * i + 4 if i < 40 else i for i in range(50)]
    device.run(program, "address_of_total", 1, None, address)
    assert address[0] and address[0] % 4 == 0


def test_dynamic_memory(device, program):
    start = RANDOM.integers(0, 100, 96, np.int32)
    for local in (32, 96):
        data = device.array(start)
        device.run(program, "dynamic_memory", 96, local, data, Local(6 * local))
        want = start.reshape(-1, local)[:, ::-1] + (np.arange(local) + 1) % local
        assert data.tolist() == want.reshape(-1).tolist()


def test_printf(device, program, capfd):
    device.run(program, "say", 8, None, np.int32(12))
    assert capfd.readouterr().out == "item of 12:  2.50 z 123456789ab|%\n"


def test_functions_of_the_library(device, program):
    n = 64
    values = np.linspace(0.1, 9.0, n, dtype=np.float32)
    x = values.astype(np.float64)
    out, wide = device.zeros((6, n), np.float32), device.zeros(n, np.float64)
    device.run(program, "math", n, 16, device.array(values), out, wide)
    erf = np.array([math.erf(v) for v in x])
    want = [
        x**1.5,
        np.sin(x) + np.sqrt(x),
        x * x - 1,
        np.floor(x) + x + np.where(x <= 5, 1, -1),
        np.exp(-x) + erf,
        np.minimum(x, 4) + np.floor(x + 0.5),
    ]
    np.testing.assert_allclose(out, want, rtol=2e-6, atol=1e-6)
    np.testing.assert_allclose(wide, np.log1p(x) + np.sqrt(x) + np.trunc(x), rtol=1e-14)


def test_bits(device, program):
    values = [0, 1, 0xFFFFFFFF, 0x80000000, 0x12345678, *RANDOM.integers(0, 1 << 32, 59).tolist()]
    numbers, out = device.array(np.array(values, np.uint32)), device.zeros((8, 64), np.uint32)
    device.run(program, "bits", 64, 16, numbers, out)
    for k, x in enumerate(values):
        text = f"{x:032b}"
        turned = (x << (x & 31) | x >> (-x & 31)) & 0xFFFFFFFF if x & 31 else x
        sum_ = x + 0x90000000
        assert out[:, k].tolist() == [
            text.count("1"),
            32 - x.bit_length(),
            (x & -x).bit_length() - 1 if x else 32,
            int(text[::-1], 2),
            int.from_bytes(x.to_bytes(4, "little"), "big"),
            turned,
            ((x << 32 | x) * (x << 20) >> 64) & 0xFFFFFFFF,
            (sum_ if sum_ >> 32 else ~sum_) & 0xFFFFFFFF,
        ], hex(x)


def test_structures_by_value(device, program):
    letters, table = [3, 1, 4, 1, 5], [10.0 * k for k in range(24)]
    fields = 7 | 123456 << 5 | 99 << 25
    data = struct.pack("<i5b3x24fIq", 7, *letters, *table, fields, 10**12)
    out = device.zeros(48, np.int64)
    device.run(program, "by_value", 48, None, data, out)
    for i in range(48):
        entry = (i + 7) % 24  # never the one that has changed
        assert out[i] == table[entry] + (letters[i % 5] ^ 1) + 123456 + 99 + 10**12


def test_halves_and_flags(device, program):
    values = np.linspace(-2, 5, 128, dtype=np.float16)
    out, flags = device.zeros(128, np.float16), device.zeros(128, np.uint8)
    device.run(program, "halves", 128, 64, device.array(values), out, flags)
    np.testing.assert_array_equal(out, values * np.float16(2) + np.float16(1))
    assert flags.tolist() == (values > 1.5).reshape(2, 64)[:, ::-1].reshape(-1).astype(int).tolist()


def test_groups_that_wait_for_earlier_ones(device, program):
    """Decoupled look-back: whoever has the lower ticket runs already, so waiting for it ends."""
    groups = 200
    values = RANDOM.integers(-50, 50, 64 * groups, np.int32)
    out, states, sums = device.zeros(64 * groups), device.zeros(groups), device.zeros((groups, 2))
    device.run(program, "look_back", 64 * groups, 64, device.array(values), out, states, sums)
    np.testing.assert_array_equal(out, values.cumsum())


def test_divergent_control_flow(device, program):
    values = RANDOM.integers(1, 10000, 250, np.int32)
    out = device.array(np.full(256, -7, np.int32))
    device.run(program, "divergent", 256, 64, device.array(values), out, np.int32(250))

    def steps(x: int) -> int:
        count = 0
        while x != 1:
            if x % 4 == 0:
                x, count = x // 4, count + 2
                continue
            if x % 4 == 2:
                x //= 2
            else:
                x = 3 * x + 1
                if count > 200:
                    return -1
            count += 1
        return count

    assert out.tolist() == [steps(x) for x in values.tolist()] + [-7] * 6
