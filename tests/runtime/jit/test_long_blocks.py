"""Blocks of thousands of accesses become code in reasonable time, and the right one."""

import ctypes
import re
import time

import pytest

from cl_driver.device.target import host_target
from cl_driver.jit import emit
from tests.runtime.code_loader import Code, link
from tests.runtime.jit.test_code_loader import AARCH64, SIGNATURE


def straight(count: int) -> str:
    """A loop around so many statements `x = x * c + in[i]; out[i] = x` in one block."""
    lines = [
        f"  %p{i} = getelementptr i32, ptr %in, i64 {i}\n  %l{i} = load i32, ptr %p{i}, align 4\n"
        f"  %m{i} = mul i32 %x{i}, {i % 1000 + 3}\n  %x{i + 1} = add i32 %m{i}, %l{i}\n"
        f"  %q{i} = getelementptr i32, ptr %out, i64 {i}\n  store i32 %x{i + 1}, ptr %q{i}, align 4\n"
        for i in range(count)
    ]
    return f"""
define void @kernel{SIGNATURE} {{
entry:
  %in = load ptr, ptr %args
  %second = getelementptr ptr, ptr %args, i64 1
  %out = load ptr, ptr %second
  br label %loop
loop:
  %n = phi i64 [ %first, %entry ], [ %next, %loop ]
  %x0 = phi i32 [ 1, %entry ], [ %x{count}, %loop ]
{"".join(lines)}  %next = add i64 %n, 1
  %more = icmp ult i64 %next, %last
  br i1 %more, label %loop, label %end
end:
  ret void
}}
"""


@pytest.mark.parametrize("passes", ["O1", "short"])
def test_a_block_that_is_cut_computes_the_same(passes):
    count, rounds = 1500, 3
    text = straight(count)
    assert re.search(r"(#|//)\s?APP", emit.assembly(text, host_target(), passes))
    code = Code(emit.compile_ir(text, host_target(), passes))
    numbers = [(i * 2654435761) & 0xFFFFFFFF for i in range(count)]
    given, out = (ctypes.c_uint32 * count)(*numbers), (ctypes.c_uint32 * count)()
    args = (ctypes.c_void_p * 2)(ctypes.addressof(given), ctypes.addressof(out))
    code.kernel()(None, ctypes.addressof(args), None, 0, rounds)
    x, expected = 1, []
    for _ in range(rounds):
        expected = [x := (x * (i % 1000 + 3) + numbers[i]) & 0xFFFFFFFF for i in range(count)]
    assert list(out) == expected
    code.unload()


def test_on_aarch64():
    link(emit.compile_ir(straight(1500), AARCH64, "short"), 0x10000, aarch64=True)


@pytest.mark.long
def test_time_is_that_of_short_blocks():
    """Of ten functions with as many statements together."""

    def seconds(text: str) -> float:
        start = time.process_time()
        emit.compile_ir(text, host_target(), "short")
        return time.process_time() - start

    emit.warm_up()
    short = "".join(straight(400).replace("@kernel", f"@kernel{number}") for number in range(10))
    many, one = (min(seconds(text) for _ in range(2)) for text in (short, straight(4000)))
    assert one < 3 * many


def test_short_blocks_stay_as_they_are():
    assert "#APP" not in emit.assembly(straight(700), host_target(), "short")
