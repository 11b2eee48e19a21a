"""Compares very many random kernels with the interpreter, at several widths: mostly small ones, of which
clang compiles several at a time (tests/pure/random/small.py), and one in a hundred like
pure/random/typed.py's.

    python -m tests.runtime.random_many [--count N] [--seed FIRST] [--widths 1,8,16] [--jobs N] [--log FILE]

Each is run by the interpreter as clang wrote it, and by the code of each width, above 1 with random parts,
groups in lockstep, or lanes across rows, for this CPU or a lesser one, now and then for the values of
arguments; code that comes apart is run as full vectors and their rest at times, other code as that for short
rows. Every other one has functions that clang does not inline, which stay calls
(tests/pure/random/calling.py). With --log a run goes on where the last one with that file ended. Prints the
seeds that fail, and a summary.
"""

from __future__ import annotations

import math
import random
import sys
from contextlib import contextmanager, nullcontext

from cl_driver.records import replace
from tests.runtime.emulation import IS_EMULATED
from tests.runtime.random_shares import failure, main

WIDTHS = (1, 8, 16)
N = 5  # the argument n
BATCH = 40  # kernels of a run of clang, or three: see Batch
LARGE = 100  # every so many is a large one
PARTS = (*((1, 0),) * 8, (2, 0), (2, 1), (4, 1), (3, 0))
# LLVM's passes for small kernels, and the level of its code generator: it is not what is compared.
LLVM = (*(("short", 0),) * 5, ("short", 2), ("O2", 2))
ORDERED = 0.3  # the share of vector code whose blocks are ordered anew, however short they are
CPUS = ("native", "native", "x86-64-v3", "x86-64-v2")


def make(seed: int):
    """The random kernel of a seed."""
    from tests.pure.random.calling import CallingKernel
    from tests.pure.random.small import SmallKernel
    from tests.pure.random.typed import TypedKernel

    if seed % LARGE == LARGE - 1:
        return TypedKernel(seed)
    return (CallingKernel if seed % 2 else SmallKernel)(seed)


@contextmanager
def kept_calls():
    """Where all calls stay calls that can, however small what they call."""
    from cl_driver.passes.lower import kept_calls as limits

    names = "FEW", "FEW_WITH_LINES", "SMALL", "LEAST_CALLS", "LARGE"
    before = [getattr(limits, name) for name in names]
    for name in names:
        setattr(limits, name, 0)
    try:
        yield
    finally:
        for name, value in zip(names, before, strict=True):
            setattr(limits, name, value)


@contextmanager
def lanes_alone():
    """Where lanes go one by one to all branches with loops that they can, whatever these do."""
    from cl_driver.passes import pipeline
    from cl_driver.passes.vectorize import lane_loops

    before = pipeline.may_send_lanes_alone, lane_loops.is_scattered
    pipeline.may_send_lanes_alone = lambda plan: plan.options.parts == 1 and not plan.options.sub_groups
    lane_loops.is_scattered = lambda blocks, shapes: True
    try:
        yield
    finally:
        pipeline.may_send_lanes_alone, lane_loops.is_scattered = before


@contextmanager
def all_ordered():
    """Where "ordered" takes another order for every block, and keeps it."""
    from cl_driver.jit.printed_ir import kept_order, long_blocks, register_order

    limits = (long_blocks, "LEAST_TEXT", 0), (register_order, "LEAST", 1), (register_order, "WORTH", -1)
    limits = *limits, (register_order, "GAIN", math.inf), (kept_order, "LEAST", 1), (kept_order, "TIMES", 0)
    limits = *limits, (kept_order, "STEPS", 0), (kept_order, "SHARE", math.inf), (kept_order, "APART", 1)
    before = [getattr(module, name) for module, name, _ in limits]
    for module, name, value in limits:
        setattr(module, name, value)
    try:
        yield
    finally:
        for (module, name, _), value in zip(limits, before, strict=True):
            setattr(module, name, value)


def join(kernels: dict) -> str:
    """One source of several kernels: that of seed 5 is k5."""
    from tests.pure.random.calling import CALLEES

    texts = []
    for seed, kernel in kernels.items():
        names = "k", "h0", "h1", "h2", "mixed", *CALLEES
        texts += [f"#define {name} {name}{seed}" if name[0] != "h" else f"#define {name} {name}_{seed}"
                  for name in names]  # fmt: skip
        texts += [kernel.source, *(f"#undef {name}" for name in names)]
    return "\n".join(texts)


def _aligned(array):
    """A copy that begins at a multiple of 128 bytes, as memory objects do: the largest type has so many."""
    import numpy as np

    space = np.empty(array.nbytes + 128, np.uint8)
    copy = space[-space.ctypes.data % 128 :][: array.nbytes].view(array.dtype)
    copy[:] = array
    return copy


class Batch:
    """Kernels of several seeds, compiled by clang together; those with functions apart, and of these those
    with halves, since in a module that has halves no call stays a call."""

    def __init__(self, seeds: list[int]):
        from tests.runtime.kernel_harness import Program, compile_c

        self.kernels = {seed: make(seed) for seed in seeds}
        together: dict = {}
        for seed, kernel in self.kernels.items():
            together.setdefault(seed % 2 + (seed % 2 and "half" in kernel.source), {})[seed] = kernel
        self.programs = {}
        for kernels in together.values():
            self.programs |= dict.fromkeys(kernels, Program(compile_c(join(kernels))))

    def check(self, seed: int, widths=WIDTHS) -> None:
        """AssertionError where the code of a kernel differs from the interpreter."""
        import numpy as np

        from cl_driver.interp.run import run as interpret
        from tests.pure.random.typed import COUNTERS, OWN
        from tests.runtime.kernel_harness import builtin_library

        kernel, program = self.kernels[seed], self.programs[seed]
        items = int(np.prod(kernel.global_size))
        draw = np.random.default_rng(seed)
        given = draw.integers(-50, 100, 32).astype(np.int32)
        memory = draw.integers(-(1 << 31), 1 << 31, items * OWN).astype(np.int32)
        counters = draw.integers(0, 1 << 32, COUNTERS).astype(np.uint32)
        sizes, offset = (kernel.global_size, kernel.local_size), (*getattr(kernel, "offset", ()), 0, 0, 0)[:3]
        want: list = []
        for width in widths:
            if not want or kernel.sub_groups:
                want = [np.zeros(items, np.int32), _aligned(memory), _aligned(counters)]
                arguments, library = [want[0], given.copy(), N, *want[1:]], builtin_library()
                interpret(program.module, f"k{seed}", arguments, *sizes, offset, library, width)
            choice = random.Random(f"{seed} {width}")
            parts, axis = choice.choice(PARTS) if width > 1 else (1, 0)
            keeps = seed % 2 and width > 1 and not kernel.barriers and choice.random() < 0.8
            if keeps:  # lanes call functions one vector at a time, along rows
                parts, axis = 1, 0
            cpu, comes_apart, llvm = choice.choice(CPUS), choice.random() < 0.3, choice.choice(LLVM)
            if width > 1 or seed % LARGE == LARGE - 1:
                is_ordered = random.Random(f"ordered {seed} {width}").random() < ORDERED
                llvm = ("ordered", 2) if is_ordered else ("short", llvm[1])
            got = [np.zeros(items, np.int32), _aligned(memory), _aligned(counters)]
            arguments = [got[0], given.copy(), np.int32(N), *got[1:]]
            comes_apart &= not kernel.sub_groups
            whole = "short" if random.Random(f"short {seed} {width}").random() < 0.3 else "full and rest"
            for vectors in ("full", "rest") if comes_apart else (whole,):
                maker = _Maker(program, width, parts, axis, cpu, vectors, llvm)
                maker.options = replace(maker.options, slow_masked_stores=choice.random() < 0.5)
                may_end = not IS_EMULATED and random.Random(f"ends {seed} {width}").random() < 0.2
                maker.options = replace(maker.options, terminable=may_end)
                maker.set(thorough=choice.random() < 0.5, keeps_calls=bool(keeps))
                maker.set(few_lanes=random.Random(f"few {seed} {width}").random() < 0.5)
                if choice.random() < 0.2 and not keeps:
                    maker.set(argument_values=((2, np.int32(N).tobytes()),))
                if kernel.barriers and not kernel.sub_groups and choice.random() < 0.8:
                    maker.hold_groups(*sizes)
                if kernel.sub_groups:
                    maker.hold_sub_groups(flat=not kernel.has_whole_rows(width) or choice.random() < 0.5)
                elif choice.random() < 0.3 and not keeps:
                    maker.hold_linear(*sizes)
                alone = choice.random() < 0.5
                calls = kept_calls() if seed % 2 else nullcontext()
                with calls, lanes_alone() if alone else nullcontext(), all_ordered():
                    has_rest = maker.run(f"k{seed}", *sizes, *arguments, offset=offset)
                if not has_rest:
                    break
            for name, a, b in zip(("out", "memory", "counters"), want, got, strict=True):
                where = np.flatnonzero(a != b)[:4]
                assert not len(where), (
                    f"width {width}, {parts} parts along {axis}, {cpu}, apart {comes_apart}, {whole}, "
                    f"{llvm}, {maker.ways}, alone {alone}: "
                    f"{name}{where} is {b[where]}, not {a[where]}; "
                    f"{kernel.global_size} in groups of {kernel.local_size}"
                )


class _Maker:
    """A way to make code of the kernels of a Program, by the LLVM that the driver uses."""

    def __init__(self, program, width: int, parts: int, axis: int, cpu: str, vectors: str, llvm):
        from cl_driver.compiler import pipeline
        from cl_driver.device.target import host_target

        self.program, self.vectors, self.llvm = program, vectors, llvm
        self.context = pipeline.Context(host_target(cpu), "", {})
        self.options = pipeline.codegen_options(self.context)
        self.plan_options = replace(
            program.plan_options,
            width=width, parts=parts, part_axis=axis, native_half=self.options.has_native_half, verify=False,
        )  # fmt: skip

    def set(self, **fields) -> None:
        """Fields of PlanOptions."""
        self.plan_options = replace(self.plan_options, **fields)

    def hold_groups(self, global_size, local_size) -> None:
        """Code for groups of that size, if they can be executed in lockstep and none is cut off."""
        from cl_driver.passes.cost.width import MOST_GROUP_PARTS

        width, items = self.plan_options.width, math.prod(local_size)
        whole = not any(of % size for of, size in zip(global_size, local_size, strict=True))
        if whole and width > 1 and local_size[0] % width == 0 and items <= width * MOST_GROUP_PARTS:
            self.set(group=(*local_size, 1, 1)[:3], parts=items // width, part_axis=0, thorough=True)

    def hold_linear(self, global_size, local_size) -> None:
        """Code for groups of that size whose lanes go on in the next row, if none is cut off."""
        whole = not any(of % size for of, size in zip(global_size, local_size, strict=True))
        if whole and self.plan_options.width > 1 and not self.plan_options.group:
            self.set(linear_lanes=True, linear_group=(*local_size, 1, 1)[:3], parts=1, part_axis=0)

    def hold_sub_groups(self, flat: bool) -> None:
        """flat: lanes follow the linear local id; else rows are whole vectors, or the only ones of groups."""
        self.set(sub_groups=True, linear_lanes=flat, parts=1, part_axis=0)

    @property
    def ways(self) -> str:
        """What else is special about it."""
        fields = (
            "group",
            "argument_values",
            "thorough",
            "few_lanes",
            "keeps_calls",
            "linear_lanes",
            "linear_group",
        )
        return ", ".join(f"{field} {getattr(self.plan_options, field)}" for field in fields)

    def run(self, name: str, global_size, local_size, *arguments, offset) -> bool:
        """Whether that leaves a rest."""
        from cl_driver.builtins.library import suitable
        from cl_driver.codegen.kernel.emit import emit
        from cl_driver.jit import emit as jit
        from cl_driver.passes.ir.plan import PlanError
        from cl_driver.passes.pipeline import plan
        from tests.runtime.code_loader import Code
        from tests.runtime.kernel_harness import builtin_library

        program, library = self.program, builtin_library()
        entry = next(point for point in program.module.entry_points if point.name == name)
        functions = suitable(library, self.options.features)
        try:
            planned = plan(program.module, entry, self.plan_options, functions)
        except PlanError:
            if not (self.plan_options.group or self.plan_options.linear_group):
                raise
            # Not every kernel's groups can be held.
            self.set(group=(), parts=1, linear_lanes=False, linear_group=())
            planned = plan(program.module, entry, self.plan_options, functions)
        vectors = self.vectors
        if vectors == "full" and not (planned.has_free_groups or self._are_whole(global_size, local_size)):
            vectors = "full and rest"
        made = emit(planned, self.options, library, program.globals_layout, vectors)
        data = jit.compile_ir(made.text, self.context.target, *self.llvm)
        code = Code(data)
        try:
            program._kernels[name] = made, code.kernel(made.symbol)
            program.run(name, global_size, local_size, *arguments, offset=offset)
        finally:
            program._kernels.clear()
            code.unload()
        return made.has_rest and planned.has_free_groups and not self.plan_options.linear_group

    def _are_whole(self, global_size, local_size) -> bool:
        """Whether all groups consist of whole tiles."""
        options = self.plan_options
        rows = options.parts if options.part_axis else 1
        tile = options.width * options.parts // rows, rows
        return not any(
            local % step or size % local % step
            for size, local, step in zip((*global_size, 1), (*local_size, 1), tile, strict=False)
        )


def work(first: int, end: int, widths) -> None:
    """A process's share: says `start SEED`, then `ok` or what is wrong."""
    for start in range(first, end, BATCH):
        seeds = list(range(start, min(start + BATCH, end)))
        print(f"start {start}", flush=True)
        try:
            batch = Batch(seeds)
        except Exception:  # one of them; who it is shows when they are alone
            batch = None
        for seed in seeds:
            print(f"start {seed}", flush=True)
            try:
                (batch or Batch([seed])).check(seed, widths)
                print("ok", flush=True)
            except Exception as problem:
                print(failure(problem), flush=True)


if __name__ == "__main__":
    sys.exit(main(__spec__.name, __doc__.splitlines()[0], ",".join(map(str, WIDTHS)), work))
