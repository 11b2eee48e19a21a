"""A program that uses PyOpenCL, forks, and uses it again in the child. Usage: pyopencl_host.py"""

import os
import sys

import numpy
import pyopencl

context = pyopencl.create_some_context(interactive=False)
queue = pyopencl.CommandQueue(context)


def run(factor):
    source = (
        f"kernel void f(global float *a) {{ a[get_global_id(0)] = a[get_global_id(0)] * {factor}.0f + 1; }}"
    )
    program = pyopencl.Program(context, source).build(cache_dir=False)
    values = numpy.arange(1000, dtype=numpy.float32)
    buffer = pyopencl.Buffer(context, pyopencl.mem_flags.COPY_HOST_PTR, hostbuf=values)
    program.f(queue, values.shape, None, buffer)
    result = numpy.empty_like(values)
    pyopencl.enqueue_copy(queue, result, buffer)
    assert (result == values * factor + 1).all()


run(2)
child = os.fork()
if child == 0:
    run(3)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
run(4)
print(context.devices[0].platform.name, f"{sys.version_info[0]}.{sys.version_info[1]}")
