"""Kernels as AdaptiveCpp's generic compiler makes SPIR-V of them (sscp.ll), each beside a model."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from .device import FOLDER, to_spirv

# With all extensions, clang 22 writes FPFastMathDefault without the capability for it.
WAYS = (("-O2", "+SPV_EXT_relaxed_printf_string_address_space"), ("-O0", "all"))
RANDOM = np.random.default_rng(26)


@pytest.fixture(params=WAYS, ids=" ".join)
def program(request, device) -> int:
    return device.load(to_spirv((FOLDER / "sscp.ll").read_bytes(), *request.param))


def by_value(*arrays: np.ndarray) -> list[bytes]:
    """Each address in a structure of its own, for clSetKernelArg."""
    return [struct.pack("<Q", array.ctypes.data) for array in arrays]


def test_local_memory_begins_with_zeros(device, program):
    """Groups after the first find what others have left there, if nothing clears it."""
    items, group = 64 * 40, 64
    values = RANDOM.integers(0, 64, items, np.int32)
    keys, out, total = device.array(values), device.zeros(items), device.zeros(1)
    for _ in range(2):
        device.run(program, "count", items, group, *by_value(keys, out))
    want = np.concatenate([np.bincount(part, minlength=64)[part] for part in values.reshape(-1, group)])
    np.testing.assert_array_equal(out, want)
    device.run(program, "read_counter", 1, None, *by_value(total))
    assert total[0] == 2 * items


def test_captures(device, program):
    x = np.linspace(-3, 3, 128, dtype=np.float32)
    data, out, factors = device.array(x), device.zeros(128, np.float32), (0.25, 4.0, 16.0)
    captures = struct.pack("<QI3fQ", data.ctypes.data, 100, *factors, out.ctypes.data)
    device.run(program, "captured", 128, 32, captures)
    want = np.exp(x.astype(np.float64)) / np.sqrt(np.resize(factors, 128))
    np.testing.assert_allclose(out[:100], want[:100], rtol=1e-6)
    assert not out[100:].any()


def test_lists_in_shared_memory(device, program):
    """Only the first entries' addresses are arguments' data; the others are found on the way."""
    count = 200
    entries, heads = device.zeros((count, 2), np.uint64), device.zeros(33, np.uint64)
    out, size = device.zeros(33, np.int64), 16
    lists: list[list[int]] = [[] for _ in range(33)]
    for k in range(count):
        chosen = int(RANDOM.integers(0, 32))  # the last list stays empty
        entries[k] = k + 1, heads[chosen]
        heads[chosen] = entries.ctypes.data + size * k
        lists[chosen].append(k + 1)
    device.run(program, "walk", 33, None, *by_value(heads, out))
    assert out.tolist() == [sum(values) for values in lists]


def test_printf_with_formats_in_global_memory(device, program, capfd):
    device.run(program, "say", 16, 4)
    assert capfd.readouterr().out == "item 5, sscp\n"
