"""Random OpenCL C kernels of a few dozen instructions: what more.py makes, less of it in each, so
that a great many can be compared. A kernel declares, and adds to its result, only what its statements use.
"""

from __future__ import annotations

import re

from .more import DECLARED, MoreKernel
from .typed import _BASES, OWN, _name

_COUNTS = (1,) * 16 + (2, 2, 2, 3, 4, 8, 16)
_SHAPES = ((16,), (16,), (32,), (20,), (8, 2), (5, 3), (4, 2, 2), (2,))
_OF_BARRIERS = ((16,), (16,), (32,), (8, 2), (4, 2, 2), (4,), (20,), (5, 3), (3, 2, 2), (7,))
_SUB_GROUPS = 16  # every so many has sub-groups

# Declarations by the names that need them, in order, and what of them goes into the result.
_DECLARED = {
    "m": ("ulong m = x * 0x100001L;", "(int)(m ^ m >> 32)"),
    "f": ("float f = l;", "(int)f"),
    "q": ("int4 q = (int4)(x, y, z, g);", "q.x + 3u * q.y + 5u * q.z + 9u * q.w"),
    "s": (
        "struct { char c; short b[3]; int a; } s; s.c = x; s.b[0] = y; s.b[1] = z; s.b[2] = 5; s.a = u;",
        "s.c + s.b[0] + s.b[1] * 3 + s.a",
    ),
    "priv": ("int priv[8]; for (int i = 0; i < 8; i++) priv[i] = in[(g + i) & 31];", "priv[x & 7] + priv[3]"),
    "own": (f"global int *own = memory + g * {OWN};", "0"),
    "total": ("local int total;", "0"),
    **DECLARED,
}


VARIABLES = "int x = in[g & 31], y = g * 3, z = l, u = n, w = get_group_id(0) + 2;"


class SmallKernel(MoreKernel):
    """The same parameters and results; `offset` is the launch's global offset, which only ids show."""

    def __init__(self, seed: int):
        super().__init__(seed, seed % _SUB_GROUPS == 5)

    def prepare(self) -> None:
        self.local_size = self.choose(*(_OF_BARRIERS if self.barriers else _SHAPES))
        groups = self.choose((1, 1, 1), (2, 1, 1), (2, 1, 1), (1, 2, 1))
        self.global_size = tuple(w * g for w, g in zip(self.local_size, groups, strict=False))
        self.offset = tuple(self.choose(0, 0, 0, 3, 64) for _ in self.local_size)
        if self.random.random() < (0.25 if self.barriers else 0.6):  # about a group and a half
            first, *others = self.global_size
            self.global_size = max(1, first - self.random.randrange(0, self.local_size[0])), *others
        self.local = 1
        for size in self.local_size:
            self.local *= size

    def has_whole_rows(self, width: int) -> bool:
        """Whether lanes that follow dimension 0 are those that follow the linear local id."""
        (row, *others), first = self.local_size, self.global_size[0]
        return all(size == 1 for size in others) or (row % width == 0 and first % width == 0)

    def expression(self, uniform: bool, depth: int = 2) -> str:
        return super().expression(uniform, min(depth, 1) if self.random.random() < 0.7 else depth)

    def helper(self) -> None:
        if self.random.random() < 0.2:
            super().helper()

    def value(self, base: str, count: int, depth: int = 2) -> str:
        return super().value(base, count, min(depth, 1) if self.random.random() < 0.7 else depth)

    def nest(self, budget: int, together: bool) -> None:
        self.depth += 1
        if self.loop_depth and self.leaving and self.random.random() < 0.12:
            self.say(f"if {self.condition(False)} {self.choose('break', 'continue')};")
        self.block(budget - 1, together, self.choose(1, 1, 2))
        self.depth -= 1

    def body(self) -> None:
        self.prepare()
        self.typed = [
            (f"t{k}", self.choose(*_BASES), self.choose(*_COUNTS)) for k in range(self.choose(1, 1, 1, 2))
        ]
        if self.helpers:
            self.typed.append(("tm", *self.mixed))
        self.array = self.choose(*_BASES), self.choose(*_COUNTS)
        self.block(self.choose(1, 2, 2, 3), True, self.choose(1, 1, 2))
        if self.barriers and not any("barrier" in line or "work_group" in line for line in self.lines):
            self.exchange()
        if self.sub_groups and not any("sub_group" in line for line in self.lines):
            self.whole_sub_group()
        statements, self.lines = self.lines, []
        words = set(re.findall(r"\w+", "\n".join(statements)))
        self.lines.append(
            "kernel void k(global int *out, global const int *in, int n, global int *memory,\n"
            "              global uint *counters) {"
        )
        self.say("int g = get_global_linear_id(), l = get_local_linear_id();")
        self.say(VARIABLES)
        result = ["x + 31u * y + 17u * z + u + 7u * w"]
        for name, (declaration, part) in _DECLARED.items():
            if name in words:
                is_volatile = name == "total" and len(statements) % 2
                self.say(f"volatile {declaration}" if is_volatile else declaration)
                result.append(part)
        typed = [entry for entry in self.typed if entry[0] in words | {"t0"}]
        for k, (name, base, count) in enumerate(typed):
            self.say(f"{_name(base, count)} {name} = ({_name(base, count)})(({base})(x & {5 << k}));")
        if "ta" in words:
            base, count = self.array
            array = _name(base, count)
            self.say(f"{array} ta[4]; for (int i = 0; i < 4; i++) ta[i] = ({array})(({base})(y & 63));")
            typed.append((f"ta[{self.random.randrange(4)}]", base, count))
        if "shared" in words:
            self.say(f"local int shared[{max(self.local, 24)}]; shared[l] = g;")
        if "tl" in words:
            self.say(f"local {_name(*self.typed[0][1:])} tl[{self.local}]; tl[l] = t0;")
        self.lines += statements
        self.say(f"uint r = {' + '.join(result)};")
        for name, base, count in typed:
            for part in [name] if count == 1 else [f"{name}.s{c:x}" for c in range(count)]:
                self.say(f"r = r * 33u + {self.as_int(part, base, 1)};")
        self.say("out[g] = r;")
        self.lines.append("}")
