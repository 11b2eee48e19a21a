"""Compiles OpenCL C for the tests of passes/ and interp/, and compares runs before and after the passes."""

from __future__ import annotations

import copy
import subprocess

import numpy as np

from cl_driver.interp.run import Local, run, run_plan
from cl_driver.passes.ir.ops import PassOp
from cl_driver.passes.ir.plan import PlanOptions
from cl_driver.passes.pipeline import plan, version_by_guards
from cl_driver.spirv.reading.reader import read

CLANG = [
    "clang-22", "-target", "spirv64", "-x", "cl", "-cl-std=CL3.0", "-Xclang", "-finclude-default-header",
    "-Xclang", "-cl-ext=+all", "-fno-slp-vectorize", "-w", "-c", "-", "-o", "-",
]  # fmt: skip

_modules: dict = {}


def compile_cl(source: str, level: str = "-O2"):
    """The module of an OpenCL C program; compiled once per test process."""
    key = source, level
    if key not in _modules:
        command = [*CLANG, level, "-mllvm", "-disable-lsr"]
        command += ["-mllvm", "-spirv-ext=+SPV_KHR_no_integer_wrap_decoration,+SPV_KHR_subgroup_rotate"]
        done = subprocess.run(command, input=source.encode(), capture_output=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr.decode()
        _modules[key] = read(done.stdout)
    return _modules[key]


def forget(source: str, level: str = "-O2") -> None:
    """Drops a module that no other test will want."""
    _modules.pop((source, level), None)


def entry(module, name):
    return next(e for e in module.entry_points if e.name == name)


def make_plan(module, name, **options):
    return plan(module, entry(module, name), PlanOptions(verify=True, **options))


def compare(module, name, args, global_size, local_size, widths=(1,), global_offset=(0, 0, 0), inner=False,
            **options):  # fmt: skip
    """Runs a kernel before the passes and after them; all buffers must agree. Returns the buffers.

    widths: each a width, or (width, parts, part_axis). inner: with code for vectors away from edges.
    options: of PlanOptions; with sub_groups, each width is the size of sub-groups in both runs.

    args: see interp.run.run; numpy arrays are buffers, and are copied for each run.
    """
    first = None
    for shape in widths:
        width, parts, axis = shape if type(shape) is tuple else (shape, 1, 0)
        if first is None or options.get("sub_groups"):
            first, size = copy.deepcopy(args), width if options.get("sub_groups") else 1
            result = run(module, name, first, global_size, local_size, global_offset, sub_group_size=size)
            printed = result.printed
        again = copy.deepcopy(args)
        made = make_plan(module, name, width=width, parts=parts, part_axis=axis, **options)
        if inner:
            version_by_guards(made)
        result = run_plan(made, again, global_size, local_size, global_offset, check_shapes=width > 1)
        for i, (a, b) in enumerate(zip(first, again, strict=True)):
            if isinstance(a, np.ndarray):
                np.testing.assert_array_equal(a, b, f"argument {i} of {name} at width {shape}")
        assert sorted(result.printed) == sorted(printed)
    return first


__all__ = ["Local", "compare", "compile_cl", "entry", "forget", "make_plan"]


def masked(blocks) -> list:
    """Instructions under a mask that is not the tail's."""
    found = [i for block in blocks for i in block.instructions if i.mask is not None]
    return [i for i in found if i.mask.op is not PassOp.EntryMask]


def reached(block) -> list:
    """A block and all that can follow it."""
    found, work = [], [block]
    while work:
        if (one := work.pop()) not in found:
            found.append(one)
            work += one.successors()
    return found
