"""Random kernels with nested control flow, barriers, local and private memory: the code at every width
does what the plain interpreter does.
"""

import copy
import re
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cl_driver import settings
from cl_driver.codegen.llvm.options import CodegenOptions
from cl_driver.device.target import host_target
from cl_driver.interp.run import run as interpret
from tests.pure.random.kernels import LOCAL, Kernel
from tests.pure.random.small import SmallKernel
from tests.runtime import random_many, random_programs
from tests.runtime.emulation import IS_EMULATED
from tests.runtime.kernel_harness import Program, compile_c

pytestmark = pytest.mark.long

WIDTHS = ((1, 1), (4, 1), (4, 2), (2, 3), (8, 1), (16, 1))  # with parts
GROUPS = 3


def check(seed: int, widths=WIDTHS) -> None:
    """One random kernel. Groups are whole: these kernels read what their neighbours wrote."""
    source = Kernel(seed).source
    data = compile_c(source)
    items = LOCAL * GROUPS
    inputs = np.random.default_rng(seed).integers(-50, 50, 64).astype(np.int32)
    want = None
    for width, parts in widths:
        program = Program(data, width=width, parts=parts)
        if want is None:
            arguments = [np.zeros(items * 4, np.int32), copy.deepcopy(inputs), 7]
            interpret(program.module, "k", arguments, (items,), (LOCAL,))
            want = arguments[0]
        out = np.zeros(items * 4, np.int32)
        program.run("k", items, LOCAL, out, inputs, np.int32(7))
        assert np.array_equal(out, want), f"seed {seed} at width {width}, {parts} parts\n{source}"


def check_sub_groups(seed: int, widths=(4, 8, 16)) -> None:
    """The same with sub-groups, of which the width is the size."""
    source = Kernel(seed, bool(seed & 1), sub_groups=True).source
    data = compile_c(source)
    items = LOCAL * GROUPS
    inputs = np.random.default_rng(seed).integers(-50, 50, 64).astype(np.int32)
    options = CodegenOptions(features=frozenset(host_target().features))
    for width in widths:
        program = Program(data, options, width, sub_groups=True, linear_lanes=bool(seed & 2))
        want, out = np.zeros(items, np.int32), np.zeros(items, np.int32)
        interpret(program.module, "k", [want, inputs, 7], (items,), (LOCAL,), sub_group_size=width)
        program.run("k", items, LOCAL, out, inputs, np.int32(7))
        assert np.array_equal(out, want), f"seed {seed} at width {width}\n{source}"


@pytest.mark.parametrize("seed", range(500, 506))
def test_random_kernel_with_sub_groups(seed):
    check_sub_groups(seed, (4, 16) if seed & 1 else (8,))


@pytest.mark.parametrize("seed", range(24))
def test_random_kernel(seed):
    check(seed)


@pytest.mark.parametrize("seed", (0, 1, 2, 5))
def test_random_kernel_of_all_types(seed):
    random_programs.check(seed)


@pytest.mark.skipif(IS_EMULATED, reason="runs on this CPU")
def test_many_small_random_kernels():
    seeds = list(range(40_000, 40_012))
    batch = random_many.Batch(seeds)
    for seed in seeds:
        batch.check(seed, (1, 4, 8, 16))


# Of small random kernels, what was wrong, and the width.
FOUND = {4207187: ("indices of lanes that LLVM did not mask apart with AVX-512", 4)}


@pytest.mark.skipif(IS_EMULATED, reason="runs on this CPU")
@pytest.mark.parametrize("seed", FOUND)
def test_what_random_kernels_have_found(seed):
    code = f"from tests.runtime import random_many as m; m.Batch([{seed}]).check({seed}, ({FOUND[seed][1]},))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, FOUND[seed][0] + done.stderr  # a process of its own: the last one crashed


@pytest.mark.skipif(IS_EMULATED, reason="runs on this CPU")
@pytest.mark.skipif(settings.text("CL_DRIVER_LLVM") == "llvmlite", reason="llvmlite has no early-cse")
def test_llvm_ends():
    """NewGVN by itself takes all memory for this kernel."""
    command = [sys.executable, "-m", "tests.runtime.random_many", "--count", "1", "--seed", "130011688"]

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))

    done = subprocess.run(
        [*command, "--widths", "1,4,8,16"], capture_output=True, text=True, timeout=120, check=False,
        preexec_fn=limit, cwd=Path(__file__).parents[4],
    )  # fmt: skip
    assert done.returncode == 0 and "0 failed" in done.stdout, done.stdout + done.stderr


def test_small_random_kernels_are_of_all_kinds():
    """In a good share of them: nested control flow, barriers, local memory, every type."""
    sources = [SmallKernel(seed).source for seed in range(300)]
    types = ["char", "short", "int", "long"]
    types += [f"u{name}" for name in types] + ["half", "float", "double"]
    patterns = [rf"\n    {name}\d* t\d" for name in types]
    patterns += ["barrier", r"local \w+ \w+\[", "for ", "while ", "switch ", "atomic_", r"\n {12}\S"]
    for pattern in patterns:
        assert sum(bool(re.search(pattern, source)) for source in sources) > 300 // 25, pattern
    assert sum(source.count("\n") for source in sources) < 300 * 40
    rarer = [" bt ", r"\bsa\[", r"\bun\.", r"\bct\[", "lc", "_half", r"int \*v", "async_work_group"]
    rarer += ["sub_group_", "work_group_(reduce|scan|broadcast|all|any)", "break;", "continue;", "return;"]
    rarer += ["do {", r"fma\(", "_sat", "ldexp", r"atom_add\(", r"get_(global|local|group)_(id|size)\("]
    for pattern in rarer:
        assert any(re.search(pattern, source) for source in sources), pattern
    groups = {SmallKernel(seed).local_size for seed in range(300)}
    assert {len(sizes) for sizes in groups} == {1, 2, 3}
