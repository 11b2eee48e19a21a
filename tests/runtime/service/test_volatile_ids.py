"""Programs that read their ids as volatile, of which nothing comes: nobody writes them."""

import struct

import pytest

from cl_driver.service import client
from tests.runtime.service_harness import EXPECTED, SOURCE, scaled

_LOAD, _VARIABLE, _INPUT, _VOLATILE = 61, 59, 1, 1


def with_volatile_loads(spirv: bytes) -> tuple[bytes, int]:
    """A module whose loads of built-in variables are volatile, and how many these are."""
    words = list(struct.unpack(f"<{len(spirv) // 4}I", spirv))
    inputs, position, count = set(), 5, 0
    while position < len(words):
        size, op = words[position] >> 16, words[position] & 0xFFFF
        if op == _VARIABLE and words[position + 3] == _INPUT:
            inputs.add(words[position + 2])
        elif op == _LOAD and words[position + 3] in inputs:
            assert size > 4  # it has memory operands, as clang writes them
            words[position + 4] |= _VOLATILE
            count += 1
        position += size
    return struct.pack(f"<{len(words)}I", *words), count


@pytest.mark.parametrize("width", ["1", "8"])
def test_they_are_ids_as_others(monkeypatch, width):
    monkeypatch.setenv("CL_DRIVER_WIDTH", width)
    monkeypatch.setenv("CL_DRIVER_CACHE_SIZE", "0")
    monkeypatch.setattr(client, "_services", {})
    changed, count = with_volatile_loads(client.compile_source(SOURCE, "").il)
    assert count
    executable, log = client.build([changed], "")
    assert executable is not None, log
    assert scaled(executable) == EXPECTED
    client.service().unload()
