"""Contexts, queues and memory objects for tests of images."""

import numpy as np
import pytest

from tests.loader.images.model import Format, descriptor

RGBA8 = Format("CL_RGBA", "CL_UNORM_INT8")


@pytest.fixture(scope="module")
def context(opencl):
    handle = opencl.context()
    yield handle
    opencl.ok("clReleaseContext", handle)


@pytest.fixture(scope="module")
def queue(opencl, context):
    handle = opencl.make("clCreateCommandQueueWithProperties", context, opencl.device(), None)
    yield handle
    opencl.ok("clReleaseCommandQueue", handle)


@pytest.fixture(scope="module")
def elsewhere(opencl):
    """Another context, with an image, a buffer, a sampler and a queue."""
    other = opencl.context()
    objects = {
        "context": other,
        "image": opencl.make("clCreateImage", other, 0, RGBA8.c, descriptor("2D", 8, 8), None),
        "buffer": opencl.make("clCreateBuffer", other, 0, 1024, None),
        "event": opencl.make("clCreateUserEvent", other),
    }
    yield objects
    for kind in ("image", "buffer"):
        opencl.ok("clReleaseMemObject", objects[kind])
    opencl.ok("clReleaseEvent", objects["event"])
    opencl.ok("clReleaseContext", other)


class Resources:
    """Memory objects that a test releases at its end."""

    def __init__(self, opencl, context):
        self.cl, self.context, self.handles = opencl, context, []
        self.memory = np.zeros(1 << 16, np.uint8)

    def image(self, type_="2D", format_=RGBA8, flags=0, pointer=None, **sizes):
        sizes = sizes or {"width": 8, "height": 8}
        arguments = (flags, format_.c, descriptor(type_, **sizes), pointer)
        self.handles.append(self.cl.make("clCreateImage", self.context, *arguments))
        return self.handles[-1]

    def buffer(self, size=4096, flags=0, pointer=None):
        self.handles.append(self.cl.make("clCreateBuffer", self.context, flags, size, pointer))
        return self.handles[-1]


@pytest.fixture
def resources(opencl, context):
    resources = Resources(opencl, context)
    yield resources
    for handle in resources.handles:
        opencl.ok("clReleaseMemObject", handle)


@pytest.fixture
def fails(opencl, context, resources):
    """Creation that must fail: its status."""

    def status(desc, format_=RGBA8, flags=0, pointer=None, handle=context):
        words = format_.c if isinstance(format_, Format) else format_
        return opencl.fails("clCreateImage", handle, flags, words, desc, pointer)

    return status
