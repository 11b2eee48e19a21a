"""Samplers (5.7): what they are made of, and error codes."""

from cl_driver.api.generated import enums as cl

SAMPLER_PROPERTIES = {
    "CL_SAMPLER_NORMALIZED_COORDS": (cl.CL_TRUE, cl.CL_FALSE),
    "CL_SAMPLER_ADDRESSING_MODE": (cl.CL_ADDRESS_CLAMP, cl.CL_ADDRESS_CLAMP_TO_EDGE),
    "CL_SAMPLER_FILTER_MODE": (cl.CL_FILTER_NEAREST, cl.CL_FILTER_LINEAR),
    "CL_SAMPLER_MIP_FILTER_MODE": (cl.CL_FILTER_NEAREST, cl.CL_FILTER_LINEAR),
    "CL_SAMPLER_LOD_MIN": (0, 0x3FC00000),
    "CL_SAMPLER_LOD_MAX": (0x7F7FFFFF, 0x40A00000),
}


def test_samplers(opencl, context):
    """Every value of every property, beside the defaults; properties come back as they were given."""
    listed = "clCreateSamplerWithProperties"
    for name, (_, other) in SAMPLER_PROPERTIES.items():
        for properties in (None, [0], [getattr(cl, name), other, 0]):
            sampler = opencl.make(listed, context, properties)
            for query, (value, _) in SAMPLER_PROPERTIES.items():
                expected = other if properties and len(properties) > 1 and query == name else value
                assert opencl.integer("clGetSamplerInfo", sampler, getattr(cl, query)) == expected, query
            given = opencl.words("clGetSamplerInfo", sampler, cl.CL_SAMPLER_PROPERTIES)
            assert given == (properties or [])
            opencl.ok("clRetainSampler", sampler)
            assert opencl.integer("clGetSamplerInfo", sampler, cl.CL_SAMPLER_REFERENCE_COUNT) == 2
            assert opencl.integer("clGetSamplerInfo", sampler, cl.CL_SAMPLER_CONTEXT) == context
            assert opencl.fails("clGetSamplerInfo", sampler, 0x1234, 0, None, None) == cl.CL_INVALID_VALUE
            opencl.ok("clReleaseSampler", sampler)
            opencl.ok("clReleaseSampler", sampler)
            assert opencl.fails("clReleaseSampler", sampler) == cl.CL_INVALID_SAMPLER
    for normalized in (cl.CL_TRUE, cl.CL_FALSE):
        for addressing in range(cl.CL_ADDRESS_NONE, cl.CL_ADDRESS_MIRRORED_REPEAT + 1):
            for filter_ in (cl.CL_FILTER_NEAREST, cl.CL_FILTER_LINEAR):
                sampler, status = opencl.call("clCreateSampler", context, normalized, addressing, filter_)
                repeats = addressing in (cl.CL_ADDRESS_REPEAT, cl.CL_ADDRESS_MIRRORED_REPEAT)
                if repeats and not normalized:
                    assert status == cl.CL_INVALID_VALUE and not sampler
                    continue
                assert not status
                for name, value in (("NORMALIZED_COORDS", normalized), ("ADDRESSING_MODE", addressing)):
                    query = getattr(cl, f"CL_SAMPLER_{name}")
                    assert opencl.integer("clGetSamplerInfo", sampler, query) == value
                assert opencl.words("clGetSamplerInfo", sampler, cl.CL_SAMPLER_PROPERTIES) == []
                opencl.ok("clReleaseSampler", sampler)


def test_sampler_errors(opencl, context, resources):
    plain, listed, buffer = "clCreateSampler", "clCreateSamplerWithProperties", resources.buffer()
    good = (cl.CL_FALSE, cl.CL_ADDRESS_CLAMP, cl.CL_FILTER_NEAREST)
    wrong = cl.CL_INVALID_VALUE
    assert opencl.fails(plain, buffer, *good) == opencl.fails(listed, buffer, None) == cl.CL_INVALID_CONTEXT
    assert opencl.fails(plain, context, 2, *good[1:]) == wrong
    for mode in (cl.CL_ADDRESS_NONE - 1, cl.CL_ADDRESS_MIRRORED_REPEAT + 1):
        assert opencl.fails(plain, context, 0, mode, good[2]) == wrong
    for mode in (cl.CL_FILTER_NEAREST - 1, cl.CL_FILTER_LINEAR + 1):
        assert opencl.fails(plain, context, *good[:2], mode) == wrong
    for properties in (
        [cl.CL_SAMPLER_FILTER_MODE, cl.CL_FILTER_LINEAR] * 2,
        [0x1234, 1],
        [cl.CL_SAMPLER_CONTEXT, 1],
        [cl.CL_SAMPLER_NORMALIZED_COORDS, 2],
        [cl.CL_SAMPLER_NORMALIZED_COORDS, 1 << 32],
        [cl.CL_SAMPLER_ADDRESSING_MODE, 1],
        [cl.CL_SAMPLER_FILTER_MODE, cl.CL_ADDRESS_CLAMP],
        [cl.CL_SAMPLER_MIP_FILTER_MODE, 1],
        [cl.CL_SAMPLER_LOD_MIN, 0x7FC00000],  # NaN
        [cl.CL_SAMPLER_LOD_MIN, 0x40A00000, cl.CL_SAMPLER_LOD_MAX, 0x3FC00000],  # 5 to 1.5
        [cl.CL_SAMPLER_NORMALIZED_COORDS, 0, cl.CL_SAMPLER_ADDRESSING_MODE, cl.CL_ADDRESS_REPEAT],
    ):
        assert opencl.fails(listed, context, [*properties, 0]) == wrong, properties
    query = ("clGetSamplerInfo", buffer, cl.CL_SAMPLER_CONTEXT, 0, None, None)
    assert opencl.fails(*query) == cl.CL_INVALID_SAMPLER
    for name in ("clRetainSampler", "clReleaseSampler"):
        assert opencl.fails(name, buffer) == cl.CL_INVALID_SAMPLER
