"""Arithmetic on half: the table of instructions on CPUs with arithmetic on half, with conversions, with
neither."""

import functools

import pytest

from cl_driver.codegen.llvm.options import CodegenOptions
from cl_driver.device.cpu import host_cpu
from tests.instructions import table
from tests.instructions.compare import report
from tests.instructions.run import compiled, interpreted
from tests.marks import few_rows

V3 = frozenset(("fma", "f16c", "avx", "avx2", "sse4.1"))
CPUS = {
    "native": V3 | {"avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512fp16"},
    "conversions": V3,
    "neither": frozenset(("sse4.1",)),
}
# CPU: (components, mode, width) to run.
PLAN = {
    "conversions": [(1, "varying", 16), (3, "varying", 1), (2, "masked", 4)],
    "native": [(1, "masked", 8), (3, "varying", 1), (1, "varying", 16)],
    "neither": [(2, "masked", 4), (1, "varying", 1), (1, "varying", 8)],
}
CASES = [case for cpu, cases in PLAN.items() for case in few_rows([(cpu, *case) for case in cases], 1)]


def options(cpu: str) -> CodegenOptions:
    missing = CPUS[cpu] - set(host_cpu().features)
    if missing:
        pytest.skip(f"this CPU lacks {', '.join(sorted(missing))}")
    return CodegenOptions(features=CPUS[cpu], vector_bits=512 if cpu == "native" else 256)


@functools.cache
def expected(count: int, mode: str):
    """Kernels of half vectors, their modules, and what the interpreter makes of them."""
    kernels = table.kernels("f16", count, 37, mode)
    return [(kernel, kernel.module(), interpreted(kernel, kernel.module())) for kernel in kernels]


@pytest.mark.parametrize("cpu, count, mode, width", CASES)
def test_instructions(cpu, count, mode, width):
    lines = []
    for kernel, data, wanted in expected(count, mode):
        got = compiled(kernel, data, width, options(cpu))
        lines += report(kernel, got, wanted, ("compiled", "interpreted"))
    assert not lines, "\n".join(lines)
