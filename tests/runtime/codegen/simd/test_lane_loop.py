"""Calls in each lane by itself: a loop over the lanes does what the same calls do one after the other."""

import numpy as np
import pytest

from cl_driver.codegen.simd import lane_loop
from tests.runtime.images.programs import OPTIONS, compiled
from tests.runtime.images.reference import CLAMP_TO_EDGE, NEAREST, Image
from tests.runtime.kernel_harness import Program

SIZE = 37, 5
CALLS = 5
READS = "\n".join(
    f"sum = sum * 0.5f + read_imagef(i, s, at + (int2)({k % 7 - 3}, {k % 5 - 2}));" for k in range(CALLS)
)
KERNEL = """
kernel void {name}(read_only image2d_t i, sampler_t s, write_only image2d_t o, int n) {{
    int2 at = (int2)(get_global_id(0), get_global_id(1));
    float4 sum = at.y;
    {body}
    write_imagef(o, at, sum);
}}
"""
BODIES = {
    "all": READS,
    "some": f"if (at.x % 5 < 2) {{ {READS} }}",
    "rows": f"if (at.y != n) {{ {READS} }}",
    "none": f"if (at.x > 1000 * n) {{ {READS} }}",
}
SOURCE = "".join(KERNEL.format(name=name, body=body) for name, body in BODIES.items())


def pixels(kernel: str, width: int) -> tuple[np.ndarray, str]:
    """What a kernel writes, and its text."""
    rng = np.random.default_rng(3)
    image = Image("RGBA", "UNORM_INT8", (*SIZE, 1, 1), rng)
    out = Image("RGBA", "FLOAT", (*SIZE, 1, 1), rng)
    program = Program(compiled(SOURCE), OPTIONS, width=width, parts=1)
    word = np.uint64(CLAMP_TO_EDGE | NEAREST)
    program.run(kernel, SIZE, (SIZE[0], 1), image.descriptor(), word, out.descriptor(), np.int32(2))
    return out.pixels()[0, 0], program.code(kernel).text


@pytest.mark.parametrize("width", [4, 8, 32])
@pytest.mark.parametrize("kernel", BODIES)
def test_a_loop_does_what_calls_one_by_one_do(monkeypatch, kernel, width):
    monkeypatch.setattr(lane_loop, "_MOST_CALLS", 1)
    found, short = pixels(kernel, width)
    monkeypatch.setattr(lane_loop, "_MOST_CALLS", 1 << 30)
    expected, long = pixels(kernel, width)
    assert (found == expected).all() and np.ptp(found) > 0
    assert "lanes.end" in short and "lanes.end" not in long
    assert len(short) < len(long)


@pytest.mark.parametrize("calls, looped", [(1, False), (3, True)])
def test_many_calls_are_a_loop(calls, looped):
    """With 16 lanes; there is a call more, which writes."""
    reads = " ".join(f"sum = sum * 2 + read_imagef(i, s, at + (int2)({k}, {k}));" for k in range(calls))
    program = Program(compiled(KERNEL.format(name="k", body=reads)), OPTIONS, width=16, parts=1)
    assert ("lanes.end" in program.code("k").text) == looped
