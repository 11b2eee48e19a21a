"""Throughput of the Python stages, reader to LLVM text at W = 1, on large modules of several shapes.

    python -m tests.bench.spirv [--sizes 20000,...] [--shapes straight,...] [--width W] [--stages]

prints thousands of SPIR-V instructions per second of processor time for each shape and size. The bars: at
least 25 at 20,000 instructions, and no worse than n log n growth.
"""

from __future__ import annotations

import argparse
import gc
import math
import struct
import time

from cl_driver.codegen.kernel.emit import emit
from cl_driver.codegen.layout.program_globals import layout_globals
from cl_driver.codegen.llvm.options import CodegenOptions
from cl_driver.compiler.pipeline import library
from cl_driver.passes import pipeline
from cl_driver.spirv import link, reflect
from cl_driver.spirv.enums import BuiltIn, Decoration, Op
from cl_driver.spirv.reading import reader
from cl_driver.spirv.types import TypeTable
from cl_driver.spirv.validation import validate

VOID, BOOL, I32, POINTER, PRIVATE, KERNEL_TYPE, FUNCTION_TYPE, KERNEL = range(1, 9)
ARGUMENT, ENTRY, I64, INPUT, ITEM, CONSTANTS = range(9, 15)
CONSTANT_COUNT = 64


class Writer:
    """A kernel k(global int *p) as words; ids are numbers."""

    def __init__(self, divergent: bool = False):
        self.divergent = divergent
        self.words: list[int] = []
        self.functions: list[int] = []  # words of other functions
        self.next = CONSTANTS + CONSTANT_COUNT
        self.count = 0  # instructions of bodies
        self.body = self.words

    def first(self) -> int:
        """The value that all others are computed from: the work-item's number, or what is in memory."""
        if not self.divergent:
            return self.value(Op.Load, ARGUMENT)
        number = self.id()
        self.add(Op.Load, I64, number, ITEM)
        return self.value(Op.UConvert, number)

    def id(self) -> int:
        self.next += 1
        return self.next - 1

    def add(self, op: Op, *operands: int) -> None:
        self.body += (len(operands) + 1 << 16 | op, *operands)
        self.count += 1

    def value(self, op: Op, *operands: int) -> int:
        """An instruction with an i32 result."""
        new = self.id()
        self.add(op, I32, new, *operands)
        return new

    def test(self, value: int) -> int:
        new = self.id()
        self.add(Op.SLessThan, BOOL, new, value, self.constant(5))
        return new

    def constant(self, value: int) -> int:
        return CONSTANTS + value % CONSTANT_COUNT

    def label(self, id_: int) -> None:
        self.add(Op.Label, id_)

    def data(self) -> bytes:
        head: list[int] = []

        def say(op: Op, *operands: int) -> None:
            head.extend((len(operands) + 1 << 16 | op, *operands))

        say(Op.Capability, 4)
        say(Op.Capability, 6)
        say(Op.Capability, 11)
        say(Op.MemoryModel, 2, 2)
        say(Op.EntryPoint, 6, KERNEL, ord("k"), ITEM)
        say(Op.Decorate, ITEM, Decoration.BuiltIn, BuiltIn.LocalInvocationIndex)
        say(Op.TypeVoid, VOID)
        say(Op.TypeBool, BOOL)
        say(Op.TypeInt, I32, 32, 0)
        say(Op.TypeInt, I64, 64, 0)
        say(Op.TypePointer, INPUT, 1, I64)
        say(Op.Variable, INPUT, ITEM, 1)
        say(Op.TypePointer, POINTER, 5, I32)
        say(Op.TypePointer, PRIVATE, 7, I32)
        say(Op.TypeFunction, KERNEL_TYPE, VOID, POINTER)
        say(Op.TypeFunction, FUNCTION_TYPE, I32, I32)
        for value in range(CONSTANT_COUNT):
            say(Op.Constant, I32, CONSTANTS + value, value)
        say(Op.Function, VOID, KERNEL, 0, KERNEL_TYPE)
        say(Op.FunctionParameter, POINTER, ARGUMENT)
        say(Op.Label, ENTRY)
        words = [0x07230203, 0x00010400, 0, self.next, 0, *head, *self.words, 1 << 16 | Op.Return]
        words += [1 << 16 | Op.FunctionEnd, *self.functions]
        return struct.pack(f"<{len(words)}I", *words)


def straight(w: Writer, size: int) -> None:
    """One block."""
    a = b = w.first()
    while w.count < size - 2:
        a, b = w.value((Op.IAdd, Op.IMul, Op.BitwiseXor)[w.count % 3], a, b), a
    w.add(Op.Store, ARGUMENT, a)


def blocks(w: Writer, size: int) -> None:
    """If-else after if-else, each with a phi."""
    a = w.first()
    while w.count < size - 12:
        left, right, join = w.id(), w.id(), w.id()
        w.add(Op.BranchConditional, w.test(a), left, right)
        w.label(left)
        x = w.value(Op.IAdd, a, w.constant(w.count))
        w.add(Op.Branch, join)
        w.label(right)
        y = w.value(Op.IMul, a, a)
        w.add(Op.Branch, join)
        w.label(join)
        a = w.value(Op.Phi, x, left, y, right)
        a = w.value(Op.IAdd, a, w.constant(3))
    w.add(Op.Store, ARGUMENT, a)


def nested(w: Writer, size: int) -> None:
    """Ifs within ifs, as deep as they go."""
    a = w.first()
    ends = []
    for _ in range(size // 9):
        inside, behind = w.id(), w.id()
        w.add(Op.BranchConditional, w.test(a), inside, behind)
        w.label(inside)
        a = w.value(Op.IAdd, a, w.constant(w.count))
        a = w.value(Op.IMul, a, a)
        ends.append(behind)
    for behind in reversed(ends):
        w.add(Op.Store, ARGUMENT, w.constant(w.count))
        w.add(Op.Branch, behind)
        w.label(behind)


def loops(w: Writer, size: int) -> None:
    """Loops in loops, 40 deep, again and again."""
    block, n = ENTRY, w.first()
    while w.count < size - 600:
        heads = []
        for _ in range(40):
            head, body, latch, out = w.id(), w.id(), w.id(), w.id()
            following = w.id()
            w.add(Op.Branch, head)
            w.label(head)
            counter = w.value(Op.Phi, w.constant(0), block, following, latch)
            test = w.id()
            w.add(Op.SLessThan, BOOL, test, counter, n)
            w.add(Op.BranchConditional, test, body, out)
            w.label(body)
            block = body
            heads.append((head, latch, out, counter, following))
        for head, latch, out, counter, following in reversed(heads):
            w.add(Op.Store, ARGUMENT, counter)
            w.add(Op.Branch, latch)
            w.label(latch)
            w.add(Op.IAdd, I32, following, counter, w.constant(1))
            w.add(Op.Branch, head)
            w.label(out)
            block = out


def functions(w: Writer, size: int) -> None:
    """Many small functions, each called once."""
    a = w.first()
    while w.count < size - 12:
        function, parameter = w.id(), w.id()
        a = w.value(Op.FunctionCall, function, a)
        w.body = w.functions
        w.body += (5 << 16 | Op.Function, I32, function, 0, FUNCTION_TYPE)
        w.body += (3 << 16 | Op.FunctionParameter, I32, parameter)
        yes, no = w.id(), w.id()
        w.label(w.id())
        b = w.value(Op.IMul, parameter, parameter)
        w.add(Op.BranchConditional, w.test(b), yes, no)
        w.label(yes)
        w.add(Op.ReturnValue, b)
        w.label(no)
        w.add(Op.ReturnValue, w.value(Op.IAdd, b, w.constant(w.count)))
        w.body += (1 << 16 | Op.FunctionEnd,)
        w.body = w.words
    w.add(Op.Store, ARGUMENT, a)


def chain(w: Writer, size: int) -> None:
    """Functions that each call the next one."""
    callee = w.id()
    a = w.first()
    w.add(Op.Store, ARGUMENT, w.value(Op.FunctionCall, callee, a))
    w.body = w.functions
    while True:
        function, parameter, callee = callee, w.id(), w.id()
        w.body += (5 << 16 | Op.Function, I32, function, 0, FUNCTION_TYPE)
        w.body += (3 << 16 | Op.FunctionParameter, I32, parameter)
        w.label(w.id())
        a = w.value(Op.IAdd, parameter, parameter)
        for k in range(20):
            a = w.value(Op.IMul, a, w.constant(k))
        last = w.count > size
        w.add(Op.ReturnValue, a if last else w.value(Op.FunctionCall, callee, a))
        w.body += (1 << 16 | Op.FunctionEnd,)
        if last:
            break
    w.body = w.words


def switch(w: Writer, size: int) -> None:
    """One OpSwitch with very many cases."""
    a = w.first()
    cases, join = [w.id() for _ in range(size // 5)], w.id()
    operands = [word for literal, label in enumerate(cases) for word in (literal, label)]
    # 65,535 words are the longest instruction: several switches, then.
    step = 2 * 30000
    for first in range(0, len(operands), step):
        following = w.id()
        w.add(Op.Switch, a, following, *operands[first : first + step])
        w.label(following)
    w.add(Op.Branch, join)
    for label in cases:
        w.label(label)
        w.add(Op.Store, ARGUMENT, w.value(Op.IAdd, a, w.constant(label)))
        w.add(Op.Branch, join)
    w.label(join)


def phis(w: Writer, size: int) -> None:
    """A loop of many blocks, all values of which are in phis at its head and at the joins."""
    a = w.first()
    count, block = 100, ENTRY
    values = [w.constant(k) for k in range(count)]
    head, out = w.id(), w.id()
    w.add(Op.Branch, head)
    w.label(head)
    start = len(w.body)
    carried = [w.value(Op.Phi, value, block, 0, 0) for value in values]
    body = w.id()
    w.add(Op.BranchConditional, w.test(carried[0]), body, out)
    w.label(body)
    values, block = carried, body
    while w.count < size - 2 * count:
        left, join = w.id(), w.id()
        w.add(Op.BranchConditional, w.test(values[w.count % count]), left, join)
        w.label(left)
        new = w.value(Op.IAdd, values[0], a)
        w.add(Op.Branch, join)
        w.label(join)
        values = [
            w.value(Op.Phi, values[(k + 1) % count], block, new if k == 7 else value, left)
            for k, value in enumerate(values)
        ]
        block = join
    for k, value in enumerate(values):
        w.body[start + 7 * k + 5 : start + 7 * k + 7] = value, block
    w.add(Op.Branch, head)
    w.label(out)
    for value in carried[:20]:
        w.add(Op.Store, ARGUMENT, value)


def variables(w: Writer, size: int) -> None:
    """Very many local variables, in memory, loaded and stored in many blocks."""
    count = size // 20
    slots = [w.id() for _ in range(count)]
    for slot in slots:
        w.add(Op.Variable, PRIVATE, slot, 7)
    a = w.first()
    for slot in slots:
        w.add(Op.Store, slot, a)
    k = 0
    while w.count < size - 12:
        left, join = w.id(), w.id()
        b = w.value(Op.Load, slots[k % count])
        w.add(Op.BranchConditional, w.test(b), left, join)
        w.label(left)
        w.add(Op.Store, slots[(k * 7) % count], w.value(Op.IAdd, b, a))
        w.add(Op.Store, slots[(k * 3) % count], b)
        w.add(Op.Branch, join)
        w.label(join)
        w.add(Op.Store, slots[(k * 5) % count], w.value(Op.Load, slots[(k * 11) % count]))
        k += 1
    w.add(Op.Store, ARGUMENT, w.value(Op.Load, slots[3]))


def barriers(w: Writer, size: int) -> None:
    """A barrier after every 40 instructions, with values that live across all of them."""
    a = w.first()
    kept = [w.value(Op.IAdd, a, w.constant(k)) for k in range(10)]
    while w.count < size - 50:
        for k in range(39):
            a = w.value((Op.IAdd, Op.IMul, Op.BitwiseXor)[k % 3], a, kept[k % 10])
        w.add(Op.ControlBarrier, w.constant(2), w.constant(2), w.constant(0))
    w.add(Op.Store, ARGUMENT, a)


SHAPES = {
    shape.__name__: shape
    for shape in (straight, blocks, nested, loops, functions, chain, switch, phis, variables, barriers)
}


def module(shape: str, size: int, divergent: bool = False) -> tuple[bytes, int]:
    """A module of that shape, and how many instructions its functions have. divergent: its branches differ
    between work-items."""
    writer = Writer(divergent)
    SHAPES[shape](writer, size)
    return writer.data(), writer.count


def measure(data: bytes, width: int = 1) -> dict[str, float]:
    """Seconds of processor time for each stage, without garbage collection, as in service/worker.py."""
    gc.collect()
    gc.disable()
    pipeline.timings.clear()
    times = [time.process_time()]
    read = link.link([reader.read(data, None, TypeTable(library().types))])
    for function in read.functions:
        _ = function.blocks
    times.append(time.process_time())
    validate.validate(read)
    reflect.reflect(read)
    times.append(time.process_time())
    plan = pipeline.plan(read, read.entry_points[0], pipeline.PlanOptions(width=width), library())
    times.append(time.process_time())
    emit(plan, CodegenOptions(), library(), layout_globals(read))
    times.append(time.process_time())
    gc.enable()
    return dict(
        zip(
            ("read", "validate", "passes", "codegen"),
            (b - a for a, b in zip(times, times[1:], strict=False)),
            strict=True,
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default="20000,50000,100000,200000")
    parser.add_argument("--shapes", default=",".join(SHAPES))
    parser.add_argument("--width", type=int, default=1)
    parser.add_argument("--divergent", action="store_true", help="work-items part at branches")
    parser.add_argument("--stages", action="store_true", help="seconds of each stage and pass")
    args = parser.parse_args()
    sizes = [int(size) for size in args.sizes.split(",")]
    print("thousands of instructions a second; growth: exponent of time over size, less that of n log n")
    print(f"{'':10}" + "".join(f"{size:>10}" for size in sizes) + f"{'growth':>10}")
    for shape in args.shapes.split(","):
        rates, totals = [], []
        for size in sizes:
            data, count = module(shape, size, args.divergent)
            stages = measure(data, args.width)
            totals.append((count, sum(stages.values())))
            rates.append(count / totals[-1][1] / 1000)
            if args.stages:
                parts = {**stages, **pipeline.timings}
                print(f"  {shape} {size}: " + ", ".join(f"{name} {s:.2f}" for name, s in parts.items()))
        (n0, t0), (n1, t1) = totals[0], totals[-1]
        growth = ""
        if n1 > n0:
            fair = n1 * math.log(n1) / (n0 * math.log(n0))
            growth = f"{math.log(t1 / t0 / fair) / math.log(n1 / n0):+10.2f}"
        print(f"{shape:10}" + "".join(f"{rate:10.1f}" for rate in rates) + growth, flush=True)


if __name__ == "__main__":
    main()
