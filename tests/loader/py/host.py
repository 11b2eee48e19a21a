# -*- coding: utf-8 -*-
"""A Python program that uses OpenCL through ctypes alone; runs in every Python since 2.7.

Usage: host.py LIBOPENCL SCENE [TIMES]
"""

import ctypes
import os
import signal
import sys
import threading

COUNT = 1000


class Host(object):
    """A context, a queue, a buffer and a kernel."""

    def __init__(self, cl, number=0):
        """number: of the platform."""
        self.cl = cl
        for name in (
            "clCreateContext",
            "clCreateCommandQueue",
            "clCreateBuffer",
            "clCreateProgramWithSource",
            "clCreateKernel",
        ):
            getattr(cl, name).restype = ctypes.c_void_p
        platforms, device = (ctypes.c_void_p * (number + 1))(), ctypes.c_void_p()
        self.ok(cl.clGetPlatformIDs(number + 1, platforms, None))
        platform = ctypes.c_void_p(platforms[number])
        self.ok(cl.clGetDeviceIDs(platform, ctypes.c_ulong(1), 1, ctypes.byref(device), None))
        self.platform, self.device = platform, device
        self.context = self.made(cl.clCreateContext, None, 1, ctypes.byref(device), None, None)
        self.queue = self.made(cl.clCreateCommandQueue, self.context, device, ctypes.c_ulong(0))
        self.buffer = self.made(
            cl.clCreateBuffer, self.context, ctypes.c_ulong(1), ctypes.c_size_t(4 * COUNT), None
        )
        self.kernel = self.build(0)

    def ok(self, status):
        if status != 0:
            raise RuntimeError("OpenCL error %d" % status)

    def made(self, function, *arguments):
        status = ctypes.c_int()
        handle = function(*(arguments + (ctypes.byref(status),)))
        self.ok(status.value)
        return ctypes.c_void_p(handle)

    def build(self, number):
        text = "kernel void add(global int *a, int n) { a[get_global_id(0)] += n + %d; }" % number
        source = ctypes.c_char_p(text.encode("ascii"))
        program = self.made(self.cl.clCreateProgramWithSource, self.context, 1, ctypes.byref(source), None)
        self.ok(self.cl.clBuildProgram(program, 1, ctypes.byref(self.device), b"", None, None))
        kernel = self.made(self.cl.clCreateKernel, program, b"add")
        self.ok(self.cl.clReleaseProgram(program))
        return kernel

    def run(self, kernel, number, check=True):
        values = (ctypes.c_int * COUNT)(*range(COUNT))
        size, n = ctypes.c_size_t(4 * COUNT), ctypes.c_int(5)
        cl = self.cl
        zero = ctypes.c_size_t(0)
        self.ok(cl.clEnqueueWriteBuffer(self.queue, self.buffer, 1, zero, size, values, 0, None, None))
        self.ok(
            cl.clSetKernelArg(
                kernel, 0, ctypes.c_size_t(ctypes.sizeof(ctypes.c_void_p)), ctypes.byref(self.buffer)
            )
        )
        self.ok(cl.clSetKernelArg(kernel, 1, ctypes.c_size_t(4), ctypes.byref(n)))
        width = ctypes.c_size_t(COUNT)
        self.ok(
            cl.clEnqueueNDRangeKernel(self.queue, kernel, 1, None, ctypes.byref(width), None, 0, None, None)
        )
        self.ok(cl.clEnqueueReadBuffer(self.queue, self.buffer, 1, zero, size, values, 0, None, None))
        if check and list(values) != [i + 5 + number for i in range(COUNT)]:
            raise RuntimeError("wrong values")

    def use(self, number):
        kernel = self.build(number)
        self.run(kernel, number)
        self.ok(self.cl.clReleaseKernel(kernel))


class Releases(object):
    """Releases when Python tears its modules down."""

    def __init__(self, host):
        self.host, self.cl = host, host.cl

    def __del__(self):
        # What needs the control plane fails or works, and returns.
        source = ctypes.c_char_p(b"kernel void k() {}")
        self.cl.clCreateProgramWithSource(self.host.context, 1, ctypes.byref(source), None, None)
        self.cl.clReleaseKernel(self.host.kernel)
        self.cl.clReleaseMemObject(self.host.buffer)
        self.cl.clReleaseCommandQueue(self.host.queue)
        self.cl.clReleaseContext(self.host.context)


def scene_use(host, times):
    for i in range(times):
        host.use(i)


def scene_fork(host, times):
    host.use(1)
    for i in range(times):
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            host.run(host.kernel, 0)
            host.use(100 + i)
            os._exit(0)
        if os.waitpid(child, 0)[1] != 0:
            raise RuntimeError("the child failed")
        host.run(host.kernel, 0)


def scene_threads(host, times):
    failed = []

    def work(number):
        try:
            for i in range(times):
                host.build(1000 * number + i)
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


def scene_leak(host, times):
    """Ends with handles alive, released while Python goes; and a call of the control plane's after that."""
    global late
    unload = ctypes.cast(host.cl.clUnloadCompiler, ctypes.c_void_p)
    ctypes.CDLL(None).__getattr__("__cxa_atexit")(unload, None, None)
    late = Releases(host)
    late.itself = late


def scene_interrupt(host, times):
    """Ctrl-C in the middle of a build: the build ends, then the host gets its exception."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever started the tests may ignore it
    for i in range(times):
        timer = threading.Timer(0.02 * (i + 1), os.kill, (os.getpid(), signal.SIGINT))
        try:
            timer.start()
            for number in range(1000):
                host.build(1000 * i + number)
        except KeyboardInterrupt:
            timer.join()
            continue
        raise RuntimeError("the interrupt was lost")
    host.use(1)


def scene_clean(host, times):
    """What the host's Python has of its own is as it was."""
    path, handler = list(sys.path), signal.getsignal(signal.SIGINT)
    meta, hooks = list(sys.meta_path), list(sys.path_hooks)
    host.use(1)
    assert sys.path == path and signal.getsignal(signal.SIGINT) == handler
    assert sys.meta_path == meta and sys.path_hooks == hooks
    for name in ("numpy", "llvmlite", "cffi", "_cffi_backend", "cl_driver", "_cl_driver_embed"):
        assert name not in sys.modules, name


def look_into_capsule():
    """As torch and others do: from then on the type of capsules is another."""
    import datetime

    hasattr(datetime.datetime_CAPI, "x")


def scene_own_modules(host, times):
    """Modules of the host's own under names that the driver uses: a test puts them beside this script."""
    folder = os.path.dirname(os.path.abspath(__file__))
    host.use(1)
    for name in ("cl_driver", "_cffi_backend"):
        assert name not in sys.modules, name
        own = __import__(name)
        assert os.path.dirname(os.path.abspath(own.__file__)) == folder, own.__file__
        assert own.imports == 1
    host.use(2)
    for name in ("cl_driver", "_cffi_backend"):
        assert sys.modules[name].imports == 1


def scene_own_modules_first(host, times):
    """main() has imported them before it loaded OpenCL."""
    before = [sys.modules[name] for name in ("cl_driver", "_cffi_backend")]
    host.use(1)
    host.use(2)
    assert [sys.modules[name] for name in ("cl_driver", "_cffi_backend")] == before
    assert [module.imports for module in before] == [1, 1]


def scene_waits(host, times):
    """A native thread calls the driver, and whoever waits for that thread does not let the GIL go."""
    system = ctypes.PyDLL(None)
    unload = ctypes.cast(host.cl.clUnloadPlatformCompiler, ctypes.c_void_p)
    for _ in range(times):
        thread = ctypes.c_ulong()
        host.ok(system.pthread_create(ctypes.byref(thread), None, unload, host.platform))
        host.ok(system.pthread_join(thread, None))
    host.use(1)


def scene_two_drivers(host, times):
    """Two builds of the driver, both in this process."""
    other = Host(host.cl, 1)
    for i in range(times):
        host.use(i)
        other.use(i)


def main():
    library, scene = sys.argv[1:3]
    times = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    # PyDLL keeps the GIL during calls, as C extensions do that do not bother to release it.
    load = ctypes.PyDLL if scene.endswith("_gil") else ctypes.CDLL
    if scene.endswith("_capsule"):
        look_into_capsule()
    if scene == "own_modules_first":
        __import__("cl_driver"), __import__("_cffi_backend")
    before = list(sys.path)
    host = Host(load(library))
    assert sys.path == before
    look_into_capsule()
    globals()["scene_" + scene.replace("_gil", "").replace("_capsule", "")](host, times)


main()
