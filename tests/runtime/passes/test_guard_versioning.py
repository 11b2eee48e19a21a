"""Code for vectors away from edges: results are the same, output past the caches, and only in hot kernels."""

import numpy as np
import pytest

from cl_driver.compiler import pipeline, variants
from cl_driver.device.cpu import host_cpu
from cl_driver.device.target import make_target
from cl_driver.jit import bundle
from tests.marks import needs_x86
from tests.runtime.kernel_harness import Program, compile_c

SOURCE = """
kernel void bounded(global float *to, global const float *from, int w, int h) {
    int i = get_global_id(1) * get_global_size(0) + get_global_id(0);
    if (i < w * h) to[i] = from[i] * 3.0f;
}
kernel void row(global float *to, global const float *from, int w, int h) {
    int x = get_global_id(0);
    if (x < w) to[x] = from[x] + h;
}
kernel void stencil(global float *to, global const float *from, int w, int h) {
    int x = get_global_id(0), y = get_global_id(1), i = y * w + x;
    if (x >= w || y >= h) return;
    if (x == 0 || y == 0 || x == w - 1 || y == h - 1) to[i] = from[i];
    else to[i] = from[i] + 2.0f * (from[i - 1] + from[i + 1] + from[i - w] + from[i + w]);
}
kernel void loop(global float *to, global const float *from, int w, int h) {
    int x = get_global_id(0);
    if (x > 0 && x < w - 1) {
        float sum = 0.0f;
        for (int k = 0; k < h; k++) sum += from[k * w + x - 1] * from[k * w + x + 1];
        to[x] = sum;
    }
}
"""
NAMES = ("bounded", "row", "stencil", "loop")


@pytest.fixture(scope="module")
def compiled():
    return compile_c(SOURCE)


@pytest.mark.parametrize(("width", "parts", "axis"), [(4, 1, 0), (8, 2, 0), (16, 4, 0), (16, 2, 1)])
def test_same_results(compiled, width, parts, axis):
    data = np.random.default_rng(width).integers(0, 100, 200 * 20).astype(np.float32)
    one = Program(compiled, width=1)
    program = Program(compiled, width=width, parts=parts, part_axis=axis, inner=True)
    for name in NAMES:
        for size, local in (((160, 6), (160, 2)), ((77, 5), (77, 5)), ((128, 8), (64, 3))):
            for w, h in ((size[0], size[1]), (size[0] - 9, size[1] - 2), (200, 20)):
                outputs = []
                for run, limit in ((one, 0), (program, 0), (program, 1)):
                    to = np.zeros(200 * 20, np.float32)
                    run.run(name, size, local, to, data, np.int32(w), np.int32(h), stream_bytes=limit)
                    outputs.append(to)
                assert np.array_equal(outputs[0], outputs[1]), f"{name}, {size}, {w} x {h}"
                assert np.array_equal(outputs[0], outputs[2]), f"{name}, {size}, {w} x {h}"
                assert outputs[0].any()


@needs_x86  # which alone has stores past the caches
def test_hot_code_has_it(compiled):
    """What the first launch waits for has not: a bounded copy is under a mask there, and cannot stream."""
    program = pipeline.Prepared(
        pipeline.Context(make_target(host_cpu()), "", {}), bundle.pack([(compiled, {})])
    )
    entry = pipeline.entry(program, "row")
    if entry.width == 1:
        pytest.skip("no vectors here")
    tiled = variants.variant(program, "row", variants.TILED, [entry.width, 2 * entry.width, 1])
    assert "!nontemporal" not in entry.text
    assert "!nontemporal" in tiled.text
