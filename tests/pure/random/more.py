"""Random OpenCL C kernels with more in them than typed.py's: bool, pointers that may lead to several
objects and address spaces, structures in arrays, unions, tables in constant memory, halves in memory, ids and
sizes of the launch, what is in neighbouring places, loops without a condition, barriers in groups of any
size and such as are cut off, work-group functions of all types, atomics in local memory, asynchronous copies,
sub-groups.

What of them a kernel uses is declared by whoever makes its text: DECLARED.
"""

from __future__ import annotations

from .typed import _FLOATS, _INTEGERS, REGION, TypedKernel

# Declarations by the names that need them, in order, and what of them goes into the result.
DECLARED = {
    "ls": ("int ls = get_local_size(0) * get_local_size(1) * get_local_size(2);", "0"),
    "bt": ("bool bt = x > 3;", "bt"),
    "ct": ("constant int ct[8] = {3, -1, 77, 0, 1 << 20, 5, -900, 12};", "ct[x & 7]"),
    "sa": (
        "struct { short a; long b; char c[3]; int2 d; } sa[3]; for (int i = 0; i < 3; i++) {"
        " sa[i].a = x + i; sa[i].b = y; sa[i].c[0] = z; sa[i].c[1] = i; sa[i].c[2] = 9;"
        " sa[i].d = (int2)(x, i); }",
        "sa[y & 1].a + (int)sa[1].b + sa[0].c[x & 1] * 5 + sa[2].d.y + sa[z & 1].d.x",
    ),
    "un": ("union { int i[4]; long l[2]; short8 s; } un; un.s = (short8)(x, y, z, u, w, 1, 2, 3);",
           "un.i[0] + un.i[x & 3] * 3u + (int)un.l[1]"),
    "lc": ("local uint lc[4];", "0"),
}  # fmt: skip
_ATOMICS = ("add", "sub", "or", "xor", "and", "min", "max")


class MoreKernel(TypedKernel):
    """The same parameters and results."""

    def atom(self, uniform: bool) -> str:
        chance = self.random.random()
        if chance < 0.05 and "w" in self.uniform:
            d = self.random.randrange(3)
            of_group = "get_group_id", "get_num_groups", "get_local_size", "get_enqueued_local_size"
            varying = "get_global_id", "get_local_id", "get_global_size", "get_global_offset"
            return f"(int){self.choose(*(of_group if uniform else of_group + varying))}({d})"
        if chance < 0.08 and "w" in self.uniform:
            return f"ct[{self.random.choice(self.uniform if uniform else self.varying)} & 7]"
        if chance < 0.12 and not uniform and "w" in self.uniform:
            return f"in[({self.neighbour()}) & 31]"
        return super().atom(uniform)

    def neighbour(self) -> str:
        """Near the work-item's place, also in the rows above and below."""
        down, aside = self.random.randrange(-2, 3), self.random.randrange(-1, 2)
        return self.choose(
            f"(int)get_global_id(1) + {down}",
            f"((int)get_global_id(1) + {down}) * 5 + (int)get_global_id(0) + {aside}",
            f"clamp((int)get_global_id(1) + {down}, 0, n) * 4 + (int)get_global_id(0)",
            f"(int)get_global_id(0) + {aside}",
        )

    def condition(self, uniform: bool, depth: int = 1) -> str:
        if not uniform and "x" in self.varying and self.random.random() < 0.06:
            return self.choose("(bt)", "(!bt)")
        return super().condition(uniform, depth)

    def assign(self, together: bool) -> None:
        if together and self.sub_groups and self.random.random() < 0.3:
            self.whole_sub_group()
        elif self.random.random() < 0.14:
            self.assign_more()
        else:
            super().assign(together)

    def assign_more(self) -> None:
        e, f, c = self.expression(False, 1), self.expression(False, 1), self.condition(False, 0)
        target = self.choose("x", "y", "z")
        kind = self.random.randrange(7)
        if kind == 0:
            self.say(f"bt {self.choose('=', '^=', '|=', '&=')} {self.condition(False)};")
        elif kind == 1:
            self.pointer(target, e, f, c)
        elif kind == 2:
            member = self.choose("a", "b", "c[1]", f"c[({f}) & 1]", "d.x", "d.y")
            self.say(
                self.choose(
                    f"sa[({e}) & 1].{member} ^= {f};",
                    f"sa[({e}) & 1] = sa[2];",
                    f"sa[{self.random.randrange(3)}] = sa[({e}) & 1];",
                    f"{target} ^= (int)sa[({e}) & 1].{member};",
                )
            )
        elif kind == 3:
            self.say(
                self.choose(
                    f"un.i[({e}) & 3] = {f};",
                    f"un.l[({e}) & 1] ^= (long)({f}) * 0x10001L;",
                    f"un.s.s{self.random.randrange(8)} = {f};",
                    f"{target} ^= (int)(un.l[{e} & 1] >> 24);",
                    f"{target} ^= un.s.s{self.random.randrange(8)};",
                )  # fmt: skip
            )
        elif kind == 4:
            self.half_in_memory(target, e, f)
        elif kind == 5:
            where = f"(volatile global ulong *)counters + {12 + self.random.randrange(2) * 2} + (({e}) & 1)"
            self.say(f"atom_add({where}, (ulong)({f}) * 0x100000001UL);")
        else:
            self.say(f"{target} = (uint){e} + (uint)ct[({f}) & 7] * ({c} ? 2u : 7u);")

    def pointer(self, target: str, e: str, f: str, c: str) -> None:
        """A pointer that leads to one of two places, or through an array."""
        v = self.name()
        own = f"own + (({e}) & {REGION - 1})"
        self.say(
            self.choose(
                f"{{ int *{v} = {c} ? &priv[({e}) & 7] : &{target}; *{v} ^= {f}; }}",
                f"{{ int *{v} = {c} ? (int *)({own}) : &priv[({f}) & 7]; *{v} ^= {f}; }}",
                f"{{ int *{v} = {c} ? (int *)({own}) : (int *)&shared[l]; {target} ^= *{v}; }}",
                f"{{ global int *{v} = {c} ? {own} : own + 7; {target} ^= *{v}; *{v} = {f}; }}",
                f"for (global int *{v} = own + (({e}) & 15), *e{v} = own + (({f}) & 15); {v} < e{v}; {v}++)"
                f" {target} ^= *{v};",
                f"for (int *{v} = priv + (({e}) & 7); {v} < priv + 8; {v} += 2) *{v} ^= {f};",
            )
        )

    def half_in_memory(self, target: str, e: str, f: str) -> None:
        """Halves that are converted on their way, in the region of 16-bit numbers."""
        count = self.choose(1, 2, 3, 4, 8, 16)
        n = "" if count == 1 else str(count)
        halves = f"(global half *)(own + {2 * REGION})"
        aligned = "a" if count > 1 and self.random.random() < 0.5 else ""
        at = f"({e}) & {2 * REGION // (4 if count == 3 else count) - 1}"
        wide = self.choose("float", "double")
        if self.random.random() < 0.5:
            mode = self.choose("", "_rte", "_rtz", "_rtp", "_rtn")
            value = f"({wide}{n})(({wide})(({f}) & 0xFFFFF)) * ({wide})0.078125 - ({wide})9000"
            self.say(f"vstore{aligned}_half{n}{mode}({value}, {at}, {halves});")
        else:
            part = "" if count == 1 else f".s{self.random.randrange(count):x}"
            self.say(f"{target} ^= convert_int_sat(vload{aligned}_half{n}({at}, {halves}){part});")

    def loop(self, budget: int, together: bool) -> None:
        if self.random.random() < 0.85:
            super().loop(budget, together)
            return
        uniform = self.random.random() < 0.5
        inner = together and uniform
        i, leaving = self.name(), self.leaving
        self.say(f"int {i} = 0;")
        self.say("for (;;) {")
        self.say(f"    if ({i}++ >= (({self.expression(uniform, 1)}) & 7)) break;")
        self.loop_depth += 1
        self.leaving = not (inner and self.barriers)
        self.nest(budget, inner)
        self.leaving = leaving
        self.loop_depth -= 1
        self.say("}")

    # Groups and sub-groups

    def whole_sub_group(self) -> None:
        """What all work-items of a sub-group compute together."""
        e, c = self.expression(False, 1), self.condition(False, 0)
        where = self.choose("reduce", "scan_inclusive", "scan_exclusive")
        sizes = "get_sub_group_id", "get_num_sub_groups", "get_sub_group_size", "get_max_sub_group_size"
        self.say(
            self.choose("x", "y", "z")
            + " ^= "
            + self.choose(
                f"sub_group_{where}_{self.choose('add', 'min', 'max')}({e});",
                f"sub_group_{self.choose('any', 'all')}({c});",
                f"sub_group_broadcast({e}, 0);",
                f"(int)({self.choose(*sizes)}() + 3 * get_sub_group_local_id());",
                f"sub_group_shuffle({e}, get_sub_group_size() - 1 - get_sub_group_local_id());",
            )
        )

    def one(self) -> str:
        return "l == ls / 2"

    def member(self, index: str) -> str:
        return f"(uint)({index}) % (uint)ls"

    def exchange(self) -> None:
        kind = self.random.randrange(10)
        e, c = self.expression(False, 1), self.condition(False, 0)
        scalars = [t for t in self.typed if t[2] == 1 and (t[1] in _FLOATS or _INTEGERS[t[1]] >= 32)]
        where = self.choose("reduce", "scan_inclusive", "scan_exclusive")
        if kind == 0 and scalars:
            name, base, _ = self.choose(*scalars)
            operation = self.choose("add", "min", "max")
            small = f"({base})({e} & 7)"  # sums of them are exact
            value = small if base in _FLOATS else f"{name} + {small}"
            if base in _FLOATS and where == "scan_exclusive" and operation != "add":
                where = "scan_inclusive"  # the other begins with an infinity
            self.say(f"{name} = work_group_{where}_{operation}({value});")
        elif kind == 1:
            ids = ["0", *(f"get_local_size({d}) - 1" for d in range(len(self.local_size)))]
            ids = [self.choose(ids[0], ids[d + 1]) for d in range(len(self.local_size))]
            self.say(f"{self.choose('x', 'y', 'z')} ^= work_group_broadcast({e}, {', '.join(ids)});")
        elif kind == 2:
            operation = self.choose(*_ATOMICS)
            self.say("barrier(CLK_LOCAL_MEM_FENCE);")
            self.say("for (int i = l; i < 4; i += ls) lc[i] = i * 0x1010101;")
            self.say("barrier(CLK_LOCAL_MEM_FENCE);")
            self.say(f"if {c} atomic_{operation}(&lc[({e}) & 3], (uint)({self.expression(False, 1)}));")
            self.say("barrier(CLK_LOCAL_MEM_FENCE);")
            self.say(f"{self.choose('x', 'y', 'z')} ^= lc[({e}) & 3];")
        elif kind == 3:
            self.say("barrier(CLK_LOCAL_MEM_FENCE);")
            self.say(
                "{ event_t event = async_work_group_copy(shared, in + (w & 7), min(ls, 24), 0);"
                " wait_group_events(1, &event); }"
            )
            self.say(f"{self.choose('x', 'y', 'z')} ^= shared[{self.member(e)}];")
        else:
            super().exchange()
