"""Stores past the caches: what is written is the same, and only what is written once is written so."""

import numpy as np
import pytest

from tests.marks import needs_x86
from tests.runtime.kernel_harness import Program, compile_c

# What streams, and what does not: what is read, written in a loop or seen in order by others.
STREAM = {
    "copied": "to[i] = from[i] * 3.0f;",
    "rows": "to[get_global_id(1) * get_global_size(0) + i] = from[i] + get_global_id(1);",
    "vectors": "vstore2((float2)(from[i], i), i, to);",
    "halves": "vstore_half(from[i], i, (global half *)to);",
    "bytes": "((global uchar *)to)[i] = (uchar)from[i];",
    "shifted": "to[i + 3] = from[i];",
    "structures": "quad q = {i, from[i], from[i] * 2.0f, k}; ((global quad *)to)[i] = q;",
    "both": "if (k) to[i] = from[i]; else to[i] = from[i] * 2.0f;",
}
SIZES = {"structures": 16, "vectors": 8, "halves": 2, "bytes": 1}  # bytes of a work-item, where not 4
STAY = {
    "in_place": "to[i] += from[i];",
    "in_loop": "for (int j = 0; j < k; j++) to[i + 80 * j] = from[i] + j;",
    "fenced": "to[i] = from[i]; "
    "atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_release, memory_scope_device);",
    "strided": "to[2 * i] = from[i];",
    "some": "if (from[i] > 4.0f) to[i] = from[i];",
}


@pytest.fixture(scope="module")
def compiled():
    quad = "typedef struct { int a; float b, c; int d; } quad;\n"
    return compile_c(quad + "\n".join(
        f"kernel void {name}(global float *to, global const float *from, int k) "
        f"{{ size_t i = get_global_id(0); {body} }}"
        for name, body in (STREAM | STAY).items()
    ))  # fmt: skip


@needs_x86
@pytest.mark.parametrize(("width", "parts"), [(4, 1), (8, 1), (16, 1), (16, 2)])
def test_what_streams(compiled, width, parts):
    program = Program(compiled, width=width, parts=parts)
    for name in STREAM | STAY:
        text = program.code(name).text
        expected = name in STREAM and SIZES.get(name, 4) * width >= 16
        assert ("!nontemporal" in text) == ("sse.sfence" in text) == expected, name
        if name == "copied" and expected:
            asked = text.count("label %past")
            assert text.count(", !nontemporal") == asked * parts, "all parts ask once"


@pytest.mark.parametrize("first", [0, 1, 16])
def test_same_results(compiled, first):
    """Output that begins at the start of a line and within one; launches above and below the limit."""
    rng = np.random.default_rng(first)
    data = rng.integers(0, 100, 96).astype(np.float32)
    one = Program(compiled, width=1)
    for width, parts in ((4, 1), (8, 1), (16, 1), (16, 2)):
        program = Program(compiled, width=width, parts=parts)
        for name in STREAM | STAY:
            size = (77, 3) if name == "rows" else 77
            outputs = []
            for run, limit in ((one, 0), (program, 0), (program, 1), (program, 1 << 20)):
                memory = np.zeros(512, np.float32)
                skip = -memory.ctypes.data % 64 // 4 + first
                out = memory[skip : skip + 448]
                run.run(name, size, size, out, data, np.int32(5), stream_bytes=limit)
                outputs.append(out.copy())
            assert all(np.array_equal(out, outputs[0]) for out in outputs), f"{name}, {width}, {parts}"
            assert outputs[0].any()
