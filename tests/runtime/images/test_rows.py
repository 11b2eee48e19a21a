"""Reads of neighbouring pixels: rows read as vectors, what several rows have in common, components of
coordinates; against numpy."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from cl_driver.builtins.library import suitable
from cl_driver.device import target
from cl_driver.passes.cost import width
from cl_driver.passes.cost.work import PlanCosts
from cl_driver.passes.ir.plan import PlanOptions
from cl_driver.passes.pipeline import plan
from tests.runtime.images import reference as reference
from tests.runtime.images.programs import OPTIONS, compiled
from tests.runtime.images.reference import CLAMP, CLAMP_TO_EDGE, NEAREST, NORMALIZED, REPEAT, Image
from tests.runtime.kernel_harness import WIDTH, Program, builtin_library

SIZE = 45, 23  # no multiple of what is taken at a time
SOURCE = """
kernel void blur(read_only image2d_t i, sampler_t s, write_only image2d_t o) {
    int2 at = (int2)(get_global_id(0), get_global_id(1));
    float4 sum = 0;
    for (int y = -1; y <= 1; y++)
        for (int x = -1; x <= 1; x++)
            sum += read_imagef(i, s, at + (int2)(x, y));
    write_imagef(o, at, sum * 0.125f);
}
kernel void sharpen(read_only image2d_t i, sampler_t s, write_only image2d_t o) {
    int2 at = (int2)(get_global_id(0), get_global_id(1)), right = (int2)(1, 0);
    float4 around = read_imagef(i, s, at + right) + read_imagef(i, s, at - right)
                  + read_imagef(i, s, at + right.yx) + read_imagef(i, s, at - right.yx);
    write_imagef(o, at, 2 * read_imagef(i, s, at) - 0.25f * around);
}
kernel void grid(read_only image2d_t i, sampler_t s, write_only image2d_t o) {
    int2 at = (int2)(get_global_id(0), get_global_id(1));
    float2 where = (convert_float2(at.yx) + 0.5f) / (float2)(23, 45);
    write_imagef(o, at, read_imagef(i, s, where.yx * 2.0f - (float2)(0.25f, 0.5f)));
}
kernel void copy(read_only image2d_t i, sampler_t s, write_only image2d_t o) {
    int2 at = (int2)(get_global_id(0), get_global_id(1));
    write_imagef(o, at, read_imagef(i, s, at));
}
"""
FORMATS = [
    ("RGBA", "UNORM_INT8"),
    ("R", "FLOAT"),
    ("RGBA", "HALF_FLOAT"),
    ("RGBA", "FLOAT"),
    ("RG", "SNORM_INT8"),
]


def wanted(kernel: str, image: Image, word: int) -> np.ndarray:
    """Colours [row, column, 4]."""
    width_, height = SIZE
    y, x = np.mgrid[0:height, 0:width_]

    def read(at_x, at_y):
        at = np.stack([at_x.ravel(), at_y.ravel()], -1)
        return reference.sample(image, word, 2, False, at).reshape(height, width_, 4)

    if kernel == "blur":
        return sum(read(x + dx, y + dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1)) * 0.125
    if kernel == "sharpen":
        around = read(x + 1, y) + read(x - 1, y) + read(x, y + 1) + read(x, y - 1)
        return 2 * read(x, y) - 0.25 * around
    if kernel == "grid":
        return read(np.float32((x + 0.5) / 45 * 2 - 0.25), np.float32((y + 0.5) / 23 * 2 - 0.5))
    return read(x, y)


@pytest.mark.parametrize("order, type_", FORMATS)
@pytest.mark.parametrize("kernel, word", [
    ("blur", CLAMP_TO_EDGE), ("blur", CLAMP), ("sharpen", CLAMP_TO_EDGE), ("grid", REPEAT | NORMALIZED),
    ("grid", CLAMP | NORMALIZED),
])  # fmt: skip
def test_stencils(kernel, word, order, type_):
    word |= NEAREST
    rng = np.random.default_rng(1)
    image = Image(order, type_, (*SIZE, 1, 1), rng)
    target_ = "RGBA", "FLOAT"
    values = (
        (0, reference.format_words(order, type_)),
        (1, struct.pack("<Q", word)),
        (2, reference.format_words(*target_)),
    )
    expected = wanted(kernel, image, word)
    for parts, axis in ((2, 0), (4, 1)) if WIDTH > 1 else ((1, 0),):
        out = Image(*target_, (*SIZE, 1, 1), rng)
        p = Program(compiled(SOURCE), OPTIONS, argument_values=values, parts=parts, part_axis=axis)
        p.run(kernel, SIZE, (SIZE[0], 6), image.descriptor(), np.uint64(word), out.descriptor())
        found = out.pixels()[0, 0]
        assert np.abs(found - expected).max() < 1e-5 * max(1, np.abs(expected).max()), (parts, axis)


def choice(kernel: str, order: str, type_: str):
    """The options that a kernel gets for a format, on a CPU with vectors of 16."""
    machine = target.host_target("x86-64-v4")
    word = struct.pack("<Q", CLAMP_TO_EDGE | NEAREST)
    format_ = reference.format_words(order, type_)
    options = PlanOptions(width=16, argument_values=((0, format_), (1, word), (2, format_)))
    module = Program(compiled(SOURCE), OPTIONS).module
    entry = next(p for p in module.entry_points if p.name == kernel)
    functions = suitable(builtin_library(), frozenset(machine.features))
    return width.parts(PlanCosts(plan(module, entry, options, functions), machine))[0]


@pytest.mark.parametrize("order, type_", FORMATS[:3])
def test_rows_that_read_what_others_read_are_taken_together(order, type_):
    chosen = choice("blur", order, type_)
    assert chosen.parts > 1 and chosen.part_axis == 1


def test_rows_that_have_nothing_in_common_are_not():
    assert choice("copy", "RGBA", "UNORM_INT8").part_axis == 0
