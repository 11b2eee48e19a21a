"""Random kernels of small.py with functions that clang does not inline, of which each is called: with
numbers, with pointers to memory of all kinds, with structures, and by one another.
"""

from __future__ import annotations

import re

from .more import MoreKernel
from .small import VARIABLES, SmallKernel
from .typed import OWN

# Names of these functions, and of their structure.
CALLEES = "walk", "walk_rec", "walk_local", "walk_global", "change", "fold", "rec"

_APART = "__attribute__((noinline)) "
_TYPES = ("char", "short", "int", "uint", "long")
_CONDITIONS = ("a & 1", "p[b & 7] > a", "b > 3", "(a ^ b) & 2", "p[i & 7] & 4")
_CHANGES = (
    "p[i & 7] += a;", "p[(a + i) & 7] ^= b;", "p[b & 7] = i;", "a += p[i & 3];", "b ^= a;",
    "p[2] -= (uint)p[i & 7];",
)  # fmt: skip
_WAYS = ("return a;", "break;", "continue;", "a ^= b;", "return (uint)p[1] + i;")
_NUMBERS = ("x", "y", "z", "g", "u", "n", "w", "x & 7", "5", "(uint)z + u")
_ARRAYS = ("pw", "pv + 4", "&pv[x & 7]", "x & 2 ? pw : pv", "pv")


class CallingKernel(SmallKernel):
    """The same parameters and results."""

    def __init__(self, seed: int):
        super().__init__(seed)
        functions = re.compile(r"^(?=\w+ (?:h\d+|mixed)\()", re.MULTILINE)
        start, end = functions.sub(_APART, self.source).split(VARIABLES)
        calls = "".join(
            f"\n    if (z & {k + 1}) y += (uint)h{k}(x, z & 31); else z ^= h{k}(y & 63, u);"
            for k in range(len(self.helpers))
        )
        functions, more = self.callees()
        self.source = f"{functions}\n{start}{VARIABLES}\n    {more}{calls}{end}"

    def meets(self, seed: int) -> bool:
        """Where they do, no call stays a call at widths above 1."""
        return seed % 8 == 3

    def helper(self) -> None:
        MoreKernel.helper(self)

    def body(self) -> None:
        if not self.helpers:
            self.helper()
        super().body()

    def callees(self) -> tuple[str, str]:
        """Functions with pointers, and calls of them."""
        choose, type_ = self.choose, self.choose(*_TYPES)
        space = choose("private", "private", "")  # or generic
        functions = [
            f"struct rec {{ {choose('int', 'int', 'char')} c; int h[8]; int a; }};",
            self.walker("walk_rec", "int", space),
            self.walker("walk", type_, "private"),
            self.walker("walk_local", "int", "local"),
            self.walker("walk_global", "int", "global"),
            f"{_APART}void change({space} struct rec *s, uint a, uint b) {{",
            f"    if ({choose('a & 4', 'b & 1', 's->a > b')}) {choose('return', 's->c = a')};",
            "    for (int i = 0; i < (b & 3); i++)",
            f"        s->h[(i + a) & 7] += (uint)s->{choose('a', 'h[b & 7]', 'c')};",
            f"    {choose('s->a = a;', 's->a += b;', '*s = *(s + (a - a));')}",
            "    s->a ^= walk_rec(s->h, a, b & 3);\n}",
            f"{_APART}int4 fold(int4 v, uint a) {{",
            f"    if ({choose('v.x > a', 'a & 3', 'v.y & 1')}) return v.wzyx;",
            "    int p[8]; for (int i = 0; i < 8; i++) p[i] = v.x + i * a;",
            "    v.y += (uint)walk_rec(p, a, v.z & 3); return v;\n}",
        ]
        first, second, third = choose(*_ARRAYS), choose("&rs", "&rt"), choose("k", *_NUMBERS)
        lines = [
            f"{type_} pw[8], pv[16]; struct rec rs, rt; local int lw[{max(self.local, 24) * 8}];",
            "for (int i = 0; i < 8; i++) { pw[i] = in[(g + i) & 31]; pv[i] = i; pv[i + 8] = x; }",
            "for (int i = 0; i < 8; i++) { rs.h[i] = y; lw[l * 8 + i] = i; }",
            f"rs.a = x; rs.c = z; rt = rs; global int *ow = memory + g * {OWN};",
            f"if ({choose('x & 1', 'u & 1', 'z > 3', 'x > 50')}) y += (uint)walk(pw, {self.numbers()});",
            f"z ^= walk({first}, {self.numbers()});",
            f"for (int k = 0; k < ({choose('x & 3', 'u & 3', '2')}); k++)",
            f"    change({second}, {choose(*_NUMBERS)}, {third});",
            f"if ({choose('y & 2', 'n > 2', 'x > y')}) z += (uint)walk_local(lw + l * 8, {self.numbers()});",
            f"if ({choose('y & 1', 'n > 2', 'x < y')}) walk_global(ow, {self.numbers()});",
            f"int4 fv = fold((int4)(x, {choose(*_NUMBERS)}, z, 3), {choose(*_NUMBERS)});",
            "x ^= fv.x + 3u * fv.y;",
            "y += rt.h[x & 7] * 3u + rs.a + rs.c + (uint)pw[3] + (uint)pv[x & 15] + lw[l * 8 + 5];",
        ]
        return "\n".join(functions), "\n    ".join(lines)

    def numbers(self) -> str:
        """The last arguments of a walker."""
        return f"{self.choose(*_NUMBERS)}, {self.choose(*_NUMBERS)}"

    def walker(self, name: str, type_: str, space: str) -> str:
        """A function that goes through an array of eight."""
        choose = self.choose
        body = [choose(*_CHANGES) for _ in range(choose(1, 2, 3))]
        if self.random.random() < 0.7:
            leaves = f"if ({choose(*_CONDITIONS)}) {choose(*_WAYS)}"
            body.insert(self.random.randrange(len(body) + 1), leaves)
        early = f"    if ({choose('a & 8', 'b == 2', 'p[3] > b')}) return b;\n"
        return (
            f"{_APART}int {name}({space} {type_} *p, uint a, uint b) {{\n"
            f"{early if self.random.random() < 0.4 else ''}"
            f"    for (int i = 0; i < ({choose('a & 7', 'b & 3', '5')}); i++) {{ {' '.join(body)} }}\n"
            f"    return {choose('a', 'p[a & 7]', 'a ^ (int)p[2]', 'b')};\n}}"
        )
