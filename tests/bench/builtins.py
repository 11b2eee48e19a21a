"""Time per element of every built-in function, one call per work-item over 2^20 elements.

    python tests/bench/builtins.py [FUNCTION...]

Needs PyOpenCL; measures the first platform (OCL_ICD_VENDORS chooses). Prints nanoseconds, the least of
25 runs.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import pyopencl as cl

COUNT = 1 << 20
UNARY = (
    "acos acosh acospi asin asinh asinpi atan atanh atanpi cbrt cos cosh cospi erf erfc exp exp2 exp10 expm1 "
    "log log2 log10 log1p rsqrt sqrt sin sinh sinpi tan tanh tanpi lgamma tgamma"
).split()
NATIVE = ["native_sin", "native_cos", "native_exp", "native_exp2", "native_log", "native_log2"]  # float only
BINARY = ["atan2", "fmod", "hypot", "pow", "powr", "remainder"]
WITH_INTEGER = ["pown", "rootn", "ldexp"]
RANGES = {
    **dict.fromkeys(("acos", "acospi", "asin", "asinpi", "atanh"), (-1, 1)),
    **dict.fromkeys(("pow", "powr", "rootn", "rsqrt", "sqrt", "lgamma", "tgamma"), (0.01, 20)),
    **dict.fromkeys(("log", "log2", "log10", "log1p", "native_log", "native_log2"), (0.01, 20)),
    "acosh": (1, 50),
}


def measure(context: cl.Context, queue: cl.CommandQueue, name: str, bits: int) -> float:
    """Nanoseconds per element."""
    type_, float_ = ("float", np.float32) if bits == 32 else ("double", np.float64)
    second = "int" if name in WITH_INTEGER else type_
    call = "a[i]" if name == "copy" else f"{name}(a[i]{', b[i]' if name in BINARY + WITH_INTEGER else ''})"
    source = (
        f"__kernel void k(__global const {type_} *a, __global const {second} *b, __global {type_} *out)\n"
        f"{{ size_t i = get_global_id(0); out[i] = {call}; }}\n"
    )
    rng = np.random.default_rng(0)
    a = rng.uniform(*RANGES.get(name, (-20, 20)), COUNT).astype(float_)
    b = rng.uniform(0.5, 5, COUNT).astype(float_)
    if name in WITH_INTEGER:
        b = rng.integers(2, 9, COUNT).astype(np.int32)
    flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
    buffers = [cl.Buffer(context, flags, hostbuf=array) for array in (a, b)]
    buffers.append(cl.Buffer(context, cl.mem_flags.WRITE_ONLY, a.nbytes))
    kernel = cl.Kernel(cl.Program(context, source).build(), "k")
    best = float("inf")
    for _ in range(25):
        queue.finish()
        start = time.perf_counter()
        kernel(queue, (COUNT,), (256,), *buffers)
        queue.finish()
        best = min(best, time.perf_counter() - start)
    return best / COUNT * 1e9


def main() -> None:
    """The functions named on the command line, or all."""
    device = cl.get_platforms()[0].get_devices()[0]
    print(f"{device.platform.name}, {device.name}", file=sys.stderr)
    context = cl.Context([device])
    queue = cl.CommandQueue(context)
    for bits in (32, 64):
        for name in ["copy", *UNARY, *(NATIVE if bits == 32 else []), *BINARY, *WITH_INTEGER]:
            if len(sys.argv) == 1 or name in sys.argv:
                print(f"{name} f{bits} {measure(context, queue, name, bits):.3f}", flush=True)


if __name__ == "__main__":
    main()
