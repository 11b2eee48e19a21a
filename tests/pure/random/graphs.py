"""Random control-flow graphs in SPIR-V: irreducible, with switches, unreachable blocks, loops of any shape.

    python -m tests.pure.random.graphs FIRST LAST [--codegen]

A kernel and the functions that it calls are graphs of random blocks. Functions with barriers, and the kernel
if it has any, branch on values that all work-items of a group share; the others on anything. Every edge to a
block that came before takes fuel, so all of them end. What runs computes on the work-item's own numbers and
writes its own element, so each order of work-items must give the same result.
"""

from __future__ import annotations

import argparse
import random
import sys
import traceback

import numpy as np

from tests.pure.spirv.assembler import CAPABILITIES, SCALARS, assemble

LOCAL = 8  # work-items of a group
FUEL = 12  # backward edges that a function may take

HEAD = f"""{CAPABILITIES}
OpMemoryModel Physical64 OpenCL
OpEntryPoint Kernel %kernel "k" %local_id %global_id %group_id
OpDecorate %local_id BuiltIn LocalInvocationId
OpDecorate %global_id BuiltIn GlobalInvocationId
OpDecorate %group_id BuiltIn WorkgroupId
{SCALARS}
%v3 = OpTypeVector %i64 3
%true = OpConstantTrue %bool
%undef = OpUndef %i32
%length = OpConstant %i64 8
%array = OpTypeArray %i32 %length
%input = OpTypePointer Input %v3
%global = OpTypePointer CrossWorkgroup %i32
%shared = OpTypePointer Workgroup %i32
%shareds = OpTypePointer Workgroup %array
%private = OpTypePointer Function %i32
%local_id = OpVariable %input Input
%global_id = OpVariable %input Input
%group_id = OpVariable %input Input
%tile = OpVariable %shareds Workgroup
%kernel_type = OpTypeFunction %void %global %global %i32
%function_type = OpTypeFunction %i32 %i32 %i32 %global %i64
"""


class Graph:
    """One function: `lines` is its text. shared: its branches are the same for all work-items of a group."""

    def __init__(self, module: Module, name: str, shared: bool, callees: list[Graph]):
        self.module, self.name, self.shared, self.callees = module, name, shared, callees
        self.random = module.random
        self.lines: list[str] = []
        self.count = 0
        self.targets: list[list[int]] = []  # of each block
        self.make()

    def say(self, text: str) -> None:
        self.lines.append(text)

    def new(self, text: str) -> str:
        """A value; text: the instruction."""
        self.count += 1
        name = f"%{self.name}_{self.count}"
        self.say(f"{name} = {text}")
        return name

    def constant(self, value: int, width: int = 32) -> str:
        return self.module.constant(value, width)

    def make(self) -> None:
        r = self.random
        size = r.randrange(2, 12)
        unreachable = r.choice((0, 0, 0, 1, 2, 3))
        for i in range(size + unreachable):
            ends = r.random() < 0.12 and i > 0
            count = 0 if ends else r.choice((1, 1, 2, 2, 2, 3, 5))
            near = r.random() < 0.5
            pick = [
                min(size - 1, max(0, i + r.randrange(-2, 4))) if near else r.randrange(size)
                for _ in range(count)
            ]
            if i >= size and r.random() < 0.5 and pick:
                pick[0] = r.randrange(size, size + unreachable)
            self.targets.append(pick)
        self.emit(size)

    def order(self) -> list[int]:
        """The blocks that can be reached so that each comes after what dominates it, then the others."""
        seen, done = {0}, []
        stack = [(0, iter(self.targets[0]))]
        while stack:
            block, rest = stack[-1]
            for target in rest:
                if target not in seen:
                    seen.add(target)
                    stack.append((target, iter(self.targets[target])))
                    break
            else:
                done.append(block)
                stack.pop()
        return done[::-1] + [i for i in range(len(self.targets)) if i not in seen]

    def emit(self, size: int) -> None:
        order = self.order()
        place = {block: k for k, block in enumerate(order)}
        # Blocks with edges backward look at the fuel in a block of their own, unless one branch can do both.
        back = {b: [t for t in self.targets[b] if place[t] <= place[b]] for b in order}
        joined = {
            b: len(self.targets[b]) == 2
            and len(set(self.targets[b])) == 2
            and len(back[b]) == 1
            and self.random.random() < 0.6
            for b in order
        }
        self.last = {
            b: f"{self.name}_t{b}" if back[b] and not joined[b] else f"{self.name}_b{b}" for b in order
        }
        self.sources: dict[int, list[int]] = {b: [] for b in order}
        for b in order:
            for target in dict.fromkeys(self.targets[b]):
                self.sources[target].append(b)
        self.say(f"%{self.name}_entry = OpLabel")
        for variable in ("x", "u", "fuel"):
            self.say(f"%{self.name}_{variable} = OpVariable %private Function")
        self.say(f"OpStore %{self.name}_x %{self.name}_px")
        self.say(f"OpStore %{self.name}_u %{self.name}_pu")
        self.say(f"OpStore %{self.name}_fuel {self.constant(FUEL)}")
        self.say(f"OpBranch %{self.name}_b0")
        for b in order:
            self.block(b, back[b], joined[b])
        self.say(f"%{self.name}_out = OpLabel")
        self.leave()

    def block(self, b: int, back: list[int], joined: bool) -> None:
        r, name = self.random, self.name
        self.say(f"%{name}_b{b} = OpLabel")
        sources = [f"{name}_entry"] * (b == 0) + [self.last[s] for s in self.sources[b]]
        phis = []
        for _ in range(r.choice((0, 0, 1, 2)) if sources else 0):
            operands = []
            for k, source in enumerate(sources):
                block = self.sources[b][k - (b == 0)] if k or b else None
                value = (
                    self.constant(r.randrange(100))
                    if block is None or r.random() < 0.4
                    else f"%{name}_v{block}"
                )
                operands.append(f"{value} %{source}")
            phis.append(self.new(f"OpPhi %i32 {' '.join(operands)}"))
        x = self.new(f"OpLoad %i32 %{name}_x")
        u = self.new(f"OpLoad %i32 %{name}_u")
        for phi in phis:
            x = self.new(f"OpIAdd %i32 {x} {phi}")
        for _ in range(r.randrange(3)):
            other = r.choice((u, self.constant(r.randrange(1000)), self.constant(3)))
            x = self.new(f"Op{r.choice(('IAdd', 'IMul', 'BitwiseXor', 'ISub'))} %i32 {x} {other}")
        if r.random() < 0.3:
            x = self.action(x, u)
        u = self.new(f"OpIMul %i32 {u} {self.constant(r.choice((5, 7, 11, 0x10001)))}")
        u = self.new(f"OpIAdd %i32 {u} {self.constant(r.randrange(99))}")
        self.say(f"OpStore %{name}_x {x}")
        self.say(f"OpStore %{name}_u {u}")
        value = u if self.shared and r.random() < 0.5 else x
        self.say(f"%{name}_v{b} = OpBitwiseXor %i32 {value} {self.constant(b)}")
        decide = u if self.shared else r.choice((x, x, u))
        shifted = self.new(f"OpShiftRightLogical %i32 {decide} {self.constant(r.randrange(9))}")
        enough = None
        if back:
            fuel = self.new(f"OpLoad %i32 %{name}_fuel")
            left = self.new(f"OpISub %i32 {fuel} {self.constant(1)}")
            self.say(f"OpStore %{name}_fuel {left}")
            enough = self.new(f"OpSGreaterThan %bool {left} {self.constant(0)}")
        targets = self.targets[b]
        if joined:
            low = self.new(f"OpBitwiseAnd %i32 {shifted} {self.constant(1)}")
            test = self.new(f"OpINotEqual %bool {low} {self.constant(0)}")
            both = self.new(f"OpLogicalAnd %bool {test} {enough}")
            forward = next(t for t in targets if t != back[0])
            self.say(f"OpBranchConditional {both} %{name}_b{back[0]} %{name}_b{forward}")
            return
        if back:
            self.say(f"OpBranchConditional {enough} %{name}_t{b} %{name}_out")
            self.say(f"%{name}_t{b} = OpLabel")
        self.terminator(targets, shifted)

    def terminator(self, targets: list[int], value: str) -> None:
        r, labels = self.random, [f"%{self.name}_b{t}" for t in targets]
        if not labels:
            if r.random() < 0.1:  # a block that nothing can reach ends in OpUnreachable
                odd = self.new(f"OpBitwiseOr %i32 {value} {self.constant(1)}")
                never = self.new(f"OpIEqual %bool {odd} {self.constant(0)}")
                self.count += 1
                dead = f"%{self.name}_dead{self.count}"
                self.say(f"OpBranchConditional {never} {dead} %{self.name}_out")
                self.say(f"{dead} = OpLabel\nOpUnreachable")
            elif r.random() < 0.5:
                self.leave()
            else:
                self.say(f"OpBranch %{self.name}_out")
        elif len(labels) == 1:
            self.say(f"OpBranch {labels[0]}")
        elif len(labels) == 2:
            low = self.new(f"OpBitwiseAnd %i32 {value} {self.constant(r.choice((1, 1, 3)))}")
            test = self.new(f"Op{r.choice(('INotEqual', 'IEqual'))} %bool {low} {self.constant(0)}")
            self.say(f"OpBranchConditional {test} {labels[0]} {labels[1]}")
        else:
            self.switch(labels, value)

    def switch(self, labels: list[str], value: str) -> None:
        """Selectors of 8 to 64 bits; in the wide ones the upper half decides, too."""
        r, width = self.random, self.random.choice((8, 16, 32, 64))
        low = self.new(f"OpBitwiseAnd %i32 {value} {self.constant(7)}")
        literals = list(range(8))
        if width == 64:
            low = self.new(f"OpUConvert %i64 {low}")
            shift = r.choice((0, 32, 61))
            low = self.new(f"OpShiftLeftLogical %i64 {low} {self.constant(shift, 64)}")
            literals = [k << shift for k in literals]
        elif width < 32:
            low = self.new(f"OpUConvert %i{width} {low}")
        if r.random() < 0.3:  # negative ones
            low = self.new(f"OpNot %i{width} {low}")
            literals = [~k for k in literals]
            if width < 32 or r.random() < 0.5:
                literals = [k & ((1 << width) - 1) for k in literals]
        chosen = r.sample(literals, len(labels) - 1)
        cases = " ".join(f"{literal} {label}" for literal, label in zip(chosen, labels[1:], strict=True))
        self.say(f"OpSwitch {low} {labels[0]} {cases}")

    def action(self, x: str, u: str) -> str:
        """A call, an exchange through local memory, or a change of the work-item's element."""
        r, kind = self.random, self.random.random()
        if kind < 0.4 and self.callees:
            callee = r.choice(self.callees)
            return self.new(f"OpFunctionCall %i32 %{callee.name} {x} {u} %{self.name}_po %{self.name}_pl")
        if self.shared and kind < 0.8:
            scope, semantics = self.constant(2), self.constant(0x108)
            barrier = f"OpControlBarrier {scope} {scope} {semantics}"
            mine = self.new(f"OpInBoundsAccessChain %shared %tile %{self.name}_pl")
            self.say(f"OpStore {mine} {x} Aligned 4")
            self.say(barrier)
            flipped = self.new(f"OpBitwiseXor %i64 %{self.name}_pl {self.constant(r.randrange(1, 4), 64)}")
            other = self.new(f"OpInBoundsAccessChain %shared %tile {flipped}")
            loaded = self.new(f"OpLoad %i32 {other} Aligned 4")
            self.say(barrier)
            return self.new(f"OpIAdd %i32 {x} {loaded}")
        old = self.new(f"OpLoad %i32 %{self.name}_po Aligned 4")
        new = self.new(f"OpIAdd %i32 {old} {x}")
        self.say(f"OpStore %{self.name}_po {new} Aligned 4")
        return new if r.random() < 0.5 else x

    def leave(self) -> None:
        x = self.new(f"OpLoad %i32 %{self.name}_x")
        self.say(f"OpReturnValue {x}")

    @property
    def text(self) -> str:
        n = self.name
        head = f"%{n} = OpFunction %i32 None %function_type\n"
        head += "".join(
            f"%{n}_p{p} = OpFunctionParameter %{t}\n"
            for p, t in zip("xuol", ("i32", "i32", "global", "i64"), strict=True)
        )
        return head + "\n".join(self.lines) + "\nOpFunctionEnd\n"


class Module:
    """A kernel k(global int *out, global const int *in, int n) that calls a few random graphs."""

    def __init__(self, seed: int):
        self.random = r = random.Random(seed)
        self.constants: dict[tuple[int, int], str] = {}
        graphs: list[Graph] = []
        for k in range(r.choice((0, 1, 2))):
            graphs.append(Graph(self, f"f{k}", False, list(graphs)))
        if r.random() < 0.6:
            for k in range(r.choice((1, 1, 2))):
                graphs.append(Graph(self, f"g{k}", True, list(graphs)))
        elif not graphs:
            graphs.append(Graph(self, "f0", False, []))
        top = graphs[-1]
        body = f"""
%kernel = OpFunction %void None %kernel_type
%out = OpFunctionParameter %global
%in = OpFunctionParameter %global
%n = OpFunctionParameter %i32
%kernel_entry = OpLabel
%global_3 = OpLoad %v3 %global_id
%g = OpCompositeExtract %i64 %global_3 0
%local_3 = OpLoad %v3 %local_id
%l = OpCompositeExtract %i64 %local_3 0
%group_3 = OpLoad %v3 %group_id
%group = OpCompositeExtract %i64 %group_3 0
%at = OpInBoundsPtrAccessChain %global %in %g
%x0 = OpLoad %i32 %at Aligned 4
%group_32 = OpUConvert %i32 %group
%u0 = OpIAdd %i32 %n %group_32
%to = OpInBoundsPtrAccessChain %global %out %g
%first = OpFunctionCall %i32 %{top.name} %x0 %u0 %to %l
%second = OpFunctionCall %i32 %{graphs[0].name} %first %u0 %to %l
%old = OpLoad %i32 %to Aligned 4
%new = OpBitwiseXor %i32 %old %second
OpStore %to %new Aligned 4
OpReturn
OpFunctionEnd
"""
        declared = "".join(
            f"{name} = OpConstant %i{width} {value}\n" for (value, width), name in self.constants.items()
        )
        self.text = HEAD + declared + "".join(graph.text for graph in graphs) + body
        self.data = assemble(self.text)

    def constant(self, value: int, width: int) -> str:
        return self.constants.setdefault((value, width), f"%c{width}_{value}")


def arguments(seed: int, items: int) -> list:
    rng = np.random.default_rng(seed)
    return [np.zeros(items, np.int32), rng.integers(-9, 99, items).astype(np.int32), seed % 7]


def check(seed: int, widths=()) -> None:
    """Compares a module before and after the passes in the interpreter; every third in groups of 4."""
    widths = widths or ((1, 8), (4, 16))[seed & 1]
    odd = 0 if seed % 4 else 1  # lanes without work-items
    from cl_driver.spirv.reading import reader
    from cl_driver.spirv.validation import validate
    from tests.pure.passes.support import compare

    module = reader.read(Module(seed).data)
    validate.validate(module, everything=True)
    local, items = (LOCAL, LOCAL - odd) if seed % 3 else (4, 8)
    compare(module, "k", arguments(seed, items), (items,), (local,), widths)


def check_code(seed: int, widths=(1, 4, 8, 16)) -> None:
    """Compares the machine code with the interpreter."""
    from cl_driver.interp.run import run
    from tests.runtime.kernel_harness import Program

    data, items = Module(seed).data, 3 * LOCAL
    want = None
    for width in widths:
        program = Program(data, width=width)
        if want is None:
            given = arguments(seed, items)
            run(program.module, "k", given, (items,), (LOCAL,))
            want = given[0]
        out, inputs, n = arguments(seed, items)
        program.run("k", items, LOCAL, out, inputs, np.int32(n))
        np.testing.assert_array_equal(out, want, f"seed {seed} at width {width}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    parser.add_argument("--codegen", action="store_true")
    parser.add_argument("--text", action="store_true", help="print the modules")
    args = parser.parse_args()
    failed = 0
    for seed in range(args.first, args.last):
        if args.text:
            print(Module(seed).text)
        try:
            (check_code if args.codegen else check)(seed)
        except Exception as problem:
            failed += 1
            print(f"seed {seed}: {type(problem).__name__}: {str(problem)[:300]}", flush=True)
            if args.last - args.first == 1:
                traceback.print_exc()
    print(f"{failed} of {args.last - args.first} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
