"""Random OpenCL C kernels with nested control flow, barriers, local and private memory, for comparisons.

They are free of undefined behaviour: loops are bounded, divisors odd, indices masked, barriers only where
control flow is uniform. What a kernel reads from global memory nobody writes; it writes only its own
elements.
"""

from __future__ import annotations

import random

LOCAL = 8  # work-items of a group; local arrays have this many elements


class Kernel:
    """One random program: `source` is its text, the kernel is `k(global int *out, global const int *in,
    int n)`."""

    def __init__(self, seed: int, barriers: bool = True, sub_groups: bool = False):
        """sub_groups: some statements exchange values within sub-groups, wherever they stand."""
        self.sub_groups = sub_groups
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.depth = 0
        self.counter = 0
        self.barriers = barriers
        self.local = LOCAL
        self.varying = ["x", "y", "z"]
        self.uniform = ["u", "w"]
        self.loop_depth = 0
        self.leaving = False  # whether a divergent break or continue may stand here
        self.switch_in_loop = False  # whether a divergent continue may, for the loop around a switch
        self.helpers: list[str] = []
        for _ in range(self.random.randrange(3)):
            self.helper()
        self.body()
        self.source = "\n".join(self.helpers) + "\n" + "\n".join(self.lines) + "\n"

    def say(self, text: str) -> None:
        self.lines.append("    " * (self.depth + 1) + text)

    def name(self) -> str:
        self.counter += 1
        return f"v{self.counter}"

    def choose(self, *options):
        return self.random.choice(options)

    # Expressions

    def atom(self, uniform: bool) -> str:
        pool = self.uniform if uniform else self.uniform + self.varying * 2
        if self.random.random() < 0.3:
            return str(self.random.randrange(-5, 40))
        return self.random.choice(pool)

    def expression(self, uniform: bool, depth: int = 2) -> str:
        if depth == 0 or self.random.random() < 0.25:
            return self.atom(uniform)
        a, b = self.expression(uniform, depth - 1), self.expression(uniform, depth - 1)
        kind = self.random.randrange(14)
        if kind < 4:
            # Unsigned, for signed numbers must not overflow.
            return f"(int)((uint)({a}) {self.choose('+', '-', '*')} (uint)({b}))"
        if kind < 6:
            return f"({a} {self.choose('&', '|', '^')} {b})"
        if kind == 6:
            return self.choose(f"(int)((uint)({a}) << ({b} & 7))", f"({a} >> ({b} & 7))")
        if kind == 7:
            return f"({a} {self.choose('/', '%')} (({b} & 15) | 1))"
        if kind == 8:
            return f"({self.condition(uniform, depth - 1)} ? {a} : {b})"
        if kind == 9:
            return f"(int)({self.choose('char', 'short', 'uchar', 'ushort', 'long', 'float')})({a} & 0xFFFF)"
        if kind == 10 and not uniform:
            return f"priv[{a} & 7]"
        if kind == 11:
            return f"in[({a}) & 31]"
        if kind == 13 and not uniform and "x" in self.varying:
            return self.choose(
                f"(int)(m >> ({a} & 31))", f"q.{self.choose(*'xyzw')}", f"(int)s.b[{a} & 1]", "(int)f"
            )
        if kind == 12 and self.helpers and depth > 1:
            return f"h{self.random.randrange(len(self.helpers))}({a}, {b})"
        return f"{self.choose('max', 'min')}({a}, {b})"

    def condition(self, uniform: bool, depth: int = 1) -> str:
        a, b = self.expression(uniform, depth), self.expression(uniform, depth)
        text = f"({a} {self.choose('<', '<=', '==', '!=', '>', '>=')} {b})"
        if self.random.random() < 0.25:
            text = f"({text} {self.choose('&&', '||')} {self.condition(uniform, 0)})"
        return text

    # Statements; `together`: all work-items come here together

    def helper(self) -> None:
        number = len(self.helpers)
        saved = self.uniform, self.varying
        self.uniform, self.varying = ["a", "b"], ["a", "b"]
        e = [self.expression(True).replace("in[", "(31 & ") for _ in range(3)]
        e = [x.replace("(31 & (", "(31 & (").replace("])", "))") for x in e]
        conditions = [self.condition(True, 0) for _ in range(2)]
        self.uniform, self.varying = saved
        self.helpers.append(
            f"int h{number}(int a, int b) {{\n    if {conditions[0]} return a & b;\n"
            f"    for (int i = 0; i < (b & 3); i++) {{ if (a > i * 9) return i + 1; a ^= i; }}\n"
            f"    return {conditions[1]} ? a : b;\n}}"
        )

    def body(self) -> None:
        self.lines.append("kernel void k(global int *out, global const int *in, int n) {")
        self.say("int g = get_global_id(0), l = get_local_id(0);")
        self.say(f"local int shared[{LOCAL}];")
        self.say("int priv[8];")
        self.say("for (int i = 0; i < 8; i++) priv[i] = in[(g + i) & 31];")
        self.say("int x = in[g & 31], y = g * 3, z = l, u = n, w = get_group_id(0) + 2;")
        self.say("ulong m = x * 0x100001L; float f = l; int4 q = (int4)(x, y, z, g);")
        self.say(
            "struct { char c; short b[3]; int a; } s; s.c = x; s.b[0] = y; s.b[1] = z; s.b[2] = 5; s.a = u;"
        )
        self.say("local int total;")
        self.say("shared[l] = g;")
        self.block(4, True, self.random.randrange(3, 8))
        self.say("uint r = (int)(m ^ m >> 32) + (int)f + q.x + 3u * q.y + 5u * q.z + 9u * q.w;")
        self.say("r += x + 31u * y + 17u * z + u + 7u * w + priv[x & 7] + s.c + s.b[0] + s.b[1] * 3 + s.a;")
        self.say("out[g] = r;")
        self.lines.append("}")

    def block(self, budget: int, together: bool, count: int) -> None:
        for _ in range(count):
            self.statement(budget, together)

    def sub_group(self) -> None:
        """What the work-items of a sub-group that are here give one another."""
        e, c = self.expression(False, 1), self.condition(False, 0)
        scan = self.choose("reduce", "scan_inclusive", "scan_exclusive")
        operation = self.choose("add", "mul", "min", "max", "and", "or", "xor")
        self.say(
            self.choose("x", "y", "z")
            + " ^= "
            + self.choose(
                f"sub_group_non_uniform_{scan}_{operation}({e});",
                f"sub_group_clustered_reduce_{operation}({e}, 4);",
                f"sub_group_broadcast_first({e});",
                f"(int)sub_group_ballot({c}).x;",
                f"sub_group_elect() + sub_group_non_uniform_any({c}) + 4 * sub_group_non_uniform_all({c});",
                f"sub_group_shuffle({e}, sub_group_ballot_find_msb(sub_group_ballot(1)));",
                f"(int)(get_sub_group_local_id() + sub_group_ballot_exclusive_scan(sub_group_ballot({c})));",
            )
        )

    def assign(self, together: bool) -> None:
        if self.sub_groups and self.random.random() < 0.4:
            self.sub_group()
        elif self.random.random() < 0.25 and together:
            target = self.random.choice(["u", "w"])
            self.say(f"{target} = {self.expression(True)};")
        elif self.random.random() < 0.3:
            self.assign_other()
        elif self.random.random() < 0.2:
            self.say(
                f"priv[{self.expression(False, 1)} & 7] {self.choose('=', '^=')} {self.expression(False)};"
            )
        else:
            self.say(f"{self.choose('x', 'y', 'z')} {self.choose('=', '|=', '^=')} {self.expression(False)};")

    def assign_other(self) -> None:
        """Other types: wide integers, exact floats, vectors, structures."""
        e, lane = self.expression(False, 1), self.choose(*"xyzw")
        self.say(
            self.choose(
                f"m ^= (ulong)({e}) * 0x{self.random.randrange(1 << 20):x}UL;",
                f"m = (m >> ({e} & 15)) - (m << 3);",
                f"f = f * 0.5f + (float)({e} & 255);",
                f"f = fabs(f - {self.random.randrange(99)}.25f) < 40.0f ? f + 2.0f : 1.5f;",
                f"q.{lane} = {e};",
                f"q = q.{self.choose('yzwx', 'wzyx', 'xxzz')} ^ (int4)({e});",
                f"q = select(q, q.wzyx, q > (int4)({e}));",
                f"s.b[({e}) & 1] += {self.random.randrange(99)};",
                f"s.c ^= {e};",
                f"s.a = s.b[1] + s.c * ({e} & 7);",
            )
        )

    def statement(self, budget: int, together: bool) -> None:
        kind = self.random.randrange(20) if budget > 0 else 0
        if kind < 6:
            self.assign(together)
        elif kind < 10:
            self.branch(budget, together)
        elif kind < 14:
            self.loop(budget, together)
        elif kind == 14:
            self.switch(budget, together)
        elif kind == 15 and self.switch_in_loop and not self.loop_depth:
            self.say(f"if {self.condition(False)} continue;")  # of the loop around the switch
        elif kind == 15 and self.loop_depth:
            uniform = together and self.random.random() < 0.5
            if not uniform and not self.leaving:
                self.assign(together)  # it would part the work-items from a barrier
            else:
                self.say(f"if {self.condition(uniform)} {self.choose('break', 'continue')};")
        elif kind == 16 and not together and not self.barriers:
            self.say(f"if {self.condition(False)} {{ out[g] = {self.expression(False)}; return; }}")
        elif kind >= 17 and together and self.barriers:
            self.exchange()
        else:
            self.assign(together)

    def exchange(self) -> None:
        kind = self.random.randrange(6)
        if kind == 5:
            self.say("barrier(CLK_LOCAL_MEM_FENCE);")
            self.say(f"if ({self.one()}) total = 0;")
            self.say("barrier(CLK_LOCAL_MEM_FENCE);")
            self.say(f"if {self.condition(False)} atomic_add(&total, {self.expression(False, 1)} & 15);")
            self.say("barrier(CLK_LOCAL_MEM_FENCE);")
            self.say(f"{self.choose('x', 'y', 'u')} ^= total;")
        elif kind == 0:
            op = self.choose("add", "max", "min")
            where = self.choose("reduce", "scan_inclusive", "scan_exclusive")
            self.say(f"{self.choose('x', 'y')} ^= work_group_{where}_{op}({self.expression(False)});")
        elif kind == 1:
            self.say(f"u ^= work_group_{self.choose('all', 'any')}({self.condition(False)});")
        else:
            self.say("barrier(CLK_LOCAL_MEM_FENCE);")
            self.say(f"shared[l] = {self.expression(False)};")
            self.say("barrier(CLK_LOCAL_MEM_FENCE);")
            index = self.choose(f"l ^ {self.random.randrange(self.local)}", "(l + 1)", self.expression(False))
            self.say(f"{self.choose('x', 'y', 'z')} ^= shared[{self.member(index)}];")

    def one(self) -> str:
        """What holds for one work-item of each group."""
        return "l == 1"

    def member(self, index: str) -> str:
        """The linear local id of some work-item of the group."""
        return f"({index}) & {self.local - 1}"

    def branch(self, budget: int, together: bool) -> None:
        uniform = self.random.random() < 0.4
        inner = together and uniform
        self.say(f"if {self.condition(uniform)} {{")
        self.nest(budget, inner)
        if self.random.random() < 0.5:
            self.say("} else {")
            self.nest(budget, inner)
        self.say("}")

    def nest(self, budget: int, together: bool) -> None:
        self.depth += 1
        self.block(budget - 1, together, self.random.randrange(1, 4))
        self.depth -= 1

    def loop(self, budget: int, together: bool) -> None:
        uniform = self.random.random() < 0.5
        inner = together and uniform
        i = self.name()
        bound = f"(({self.expression(uniform, 1)}) & 7)"
        trips = self.choose("for", "for", "while")
        pools = (self.uniform, self.varying, self.leaving)
        self.loop_depth += 1
        self.leaving = not (inner and self.barriers)
        if trips == "for":
            self.say(f"for (int {i} = 0, e{i} = {bound}; {i} < e{i}; {i}++) {{")
        else:
            self.say(f"int {i} = {bound};")
            self.say(f"while ({i}-- > 0) {{")
        if uniform:
            self.uniform = [*self.uniform, i]
        else:
            self.varying = [*self.varying, i]
        self.nest(budget, inner)
        self.say("}")
        self.uniform, self.varying, self.leaving = pools
        self.loop_depth -= 1

    def switch(self, budget: int, together: bool) -> None:
        uniform = self.random.random() < 0.3
        saved, self.loop_depth = self.loop_depth, 0  # break means the switch here
        inside, self.switch_in_loop = self.switch_in_loop, self.leaving and (saved or self.switch_in_loop)
        self.say(f"switch (({self.expression(uniform, 1)}) & 3) {{")
        for case in range(self.random.randrange(1, 4)):
            self.say(f"case {case}:")
            self.nest(budget, together and uniform)
            if self.random.random() < 0.7:
                self.depth += 1
                self.say("break;")
                self.depth -= 1
        if self.random.random() < 0.7:
            self.say("default:")
            self.nest(budget, together and uniform)
        self.say("}")
        self.loop_depth, self.switch_in_loop = saved, inside


def check(
    seed: int, level: str = "-O2", widths=(1, 4, 8, (2, 3, 0)), sub_groups: bool = False, inner: bool = False
) -> None:
    """Compares one random kernel before and after the passes; every third in groups of the full size.

    inner: see compare().
    """
    import numpy as np

    from tests.pure.passes.support import compare, compile_cl, forget

    kernel = Kernel(seed, bool(seed & 1), sub_groups)
    given = np.random.default_rng(3).integers(-50, 100, 32).astype(np.int32)
    local_size = LOCAL if seed % 3 == 0 else LOCAL // 2
    module = compile_cl(kernel.source, level)
    forget(kernel.source, level)
    options = {"inner": inner} | ({"sub_groups": True} if sub_groups else {})
    args = [np.zeros(20, np.int32), given, 5]
    compare(module, "k", args, (20,), (local_size,), widths, **options)


if __name__ == "__main__":
    import sys
    import traceback

    failed = 0
    for number in range(int(sys.argv[1]), int(sys.argv[2])):
        try:
            check(number, *sys.argv[3:4])
        except Exception as problem:
            failed += 1
            print(f"seed {number}: {type(problem).__name__}: {str(problem)[:500]}")
            if "-v" in sys.argv:
                traceback.print_exc()
    print(f"{failed} of {int(sys.argv[2]) - int(sys.argv[1])} failed")
    sys.exit(failed > 0)
