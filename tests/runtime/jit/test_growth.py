"""Time that LLVM takes for code that is twice as long."""

import time

from cl_driver.compiler import pipeline, source
from cl_driver.device.cpu import host_cpu
from cl_driver.device.target import make_target
from cl_driver.jit import emit


def nested(depth: int) -> str:
    """A kernel of so many branches, each within the one before."""
    ifs = "".join(f"if (o[i + {n}] > {n - 5}) {{ " for n in range(depth))
    return f"kernel void k(global int *o) {{ int i = get_global_id(0); {ifs}o[i] = 1; {'}' * depth} }}"


def seconds(text: str) -> float:
    """CPU time for a kernel's LLVM IR to become code."""
    context = source.Context(make_target(host_cpu(), ""), "-cl-std=CL3.0", {})
    spirv = source.compile_source(text.encode(), {}, context).spirv
    code = pipeline.entry(pipeline.prepare(spirv, context), "k")
    assert code.width > 1
    emit.warm_up()
    start = time.process_time()
    emit.compile_ir(code.text, context.target, *pipeline.llvm_ways(context, code, ""))
    return time.process_time() - start


def test_masks_of_branches_within_branches():
    seconds(nested(10))
    least, most = (min(seconds(nested(depth)) for _ in range(2)) for depth in (130, 260))
    assert most < 8 * least + 0.2
