"""What is compiled of kernels with images, and when: cl_driver/compiler/variants.py, "soon"."""

import pytest

from cl_driver.compiler import pipeline, variants
from cl_driver.compiler.source import Context, compile_source
from cl_driver.device.target import host_target
from cl_driver.passes.lower.images import FORMAT

SOURCE = b"""
kernel void loops(read_only image2d_t from, write_only image2d_t to, int n) {
    int2 at = (int2)(get_global_id(0), get_global_id(1));
    float4 sum = 0;
    for (int i = 0; i < n; i++) sum += read_imagef(from, at + (int2)(i, 0));
    write_imagef(to, at, sum);
}
kernel void straight(read_only image2d_t from, write_only image2d_t to) {
    int2 at = (int2)(get_global_id(0), get_global_id(1));
    write_imagef(to, at, read_imagef(from, at));
}
__attribute__((reqd_work_group_size(4, 16, 1)))
kernel void rows(read_only image2d_t from, global float *to) {
    int2 at = (int2)(get_global_id(0), get_global_id(1));
    to[at.y * get_global_size(0) + at.x] = read_imagef(from, at).x;
}
kernel void asks(read_only image2d_t from, global int *to) {
    to[get_global_id(0)] = get_image_width(from) + get_global_id(0);
}
"""
RGBA_FLOAT = FORMAT.pack(0x10B5, 0x10DE, 16)
VALUES = ((0, RGBA_FLOAT), (1, RGBA_FLOAT))


@pytest.fixture(scope="module")
def program():
    context = Context(host_target(""), "-cl-std=CL3.0", {})
    found = compile_source(SOURCE, {}, context)
    assert found.spirv is not None, found.log
    return pipeline.prepare(found.spirv, context)


@pytest.mark.parametrize("name", ["loops", "straight", "rows"])
def test_nothing_is_compiled_for_images_of_any_format(program, name):
    entry = pipeline.entry(program, name)
    assert entry.is_for_any_image and entry.width == 1 and "define internal" not in entry.text
    info, objects = pipeline.kernel(program, name)
    assert objects == [] and info.from_values(info.to_values()) == info
    any_format = variants.variant(program, name, variants.ANY, [0, 0, 0])
    assert any_format.width == 1 and "define internal" in any_format.text


def test_what_only_asks_for_sizes_is_compiled_as_others_are(program):
    entry = pipeline.entry(program, "asks")
    assert not entry.is_for_any_image and entry.width > 1
    assert len(pipeline.kernel(program, "asks")[1]) == 1


@pytest.mark.parametrize("name, size, is_wide", [
    ("loops", "small", False), ("loops", "vectors", True), ("loops", "large", True),
    ("straight", "small", False), ("straight", "vectors", False), ("straight", "large", False),
])  # fmt: skip
def test_several_work_items_at_a_time_only_for_large_launches_with_loops(program, name, size, is_wide):
    lanes = pipeline.entry(program, name).tile[0]
    sizes = {"small": [0, 0, 0], "vectors": [lanes, lanes, 1], "large": [1, 1, 1]}
    code = variants.variant(program, name, pipeline.SOON, sizes[size], values=VALUES)
    assert (code.width > 1) == is_wide
    assert code.has_rest == (size == "vectors" and is_wide)


@pytest.mark.parametrize("name", ["loops", "straight"])
def test_the_best_code_is_wide(program, name):
    assert variants.variant(program, name, variants.ANY, [0, 0, 0], values=VALUES).width > 1
