"""Random OpenCL C kernels of all types: what kernels.py makes, and scalars and vectors of every
type with the functions that are exact for them, typed memory of each work-item's own, atomics, functions that
take vectors and pointers, do-while loops, early returns, groups of one to three dimensions.

Also free of undefined behaviour, and of what may be rounded in two ways: functions of floating-point numbers
are exact or correctly rounded ones (clang says in the SPIR-V what it contracts to fma), no signs are
taken from zeros or NaNs, and no bits of floating-point numbers are read.
"""

from __future__ import annotations

from .kernels import Kernel

REGION = 32  # ints of global memory that each work-item has for itself, for each size of integer
OWN = 4 * REGION
COUNTERS = 32
_SIGNED = {"char": 8, "short": 16, "int": 32, "long": 64}
_INTEGERS = _SIGNED | {f"u{name}": bits for name, bits in _SIGNED.items()}
_FLOATS = ("half", "float", "double")
_BASES = (*_INTEGERS, *_FLOATS)
_COUNTS = (1, 1, 1, 2, 3, 4, 8, 16)
_SHAPES = ((32,), (16,), (8, 4), (4, 2, 2), (64,), (20,), (2,), (5, 3))
_WHOLE = tuple(shape for shape in _SHAPES if shape != (20,) and shape != (5, 3))  # powers of two


def _name(base: str, count: int) -> str:
    return base if count == 1 else f"{base}{count}"


class TypedKernel(Kernel):
    """`k(global int *out, global const int *in, int n, global int *memory, global uint *counters)`.

    out: an int per work-item, memory: OWN of them, counters: COUNTERS, which all work-items count in.
    """

    def __init__(self, seed: int, sub_groups: bool = False):
        self.typed: list[tuple[str, str, int]] = []
        super().__init__(seed, sub_groups or self.meets(seed), sub_groups)

    def meets(self, seed: int) -> bool:
        """Whether its work-items meet at barriers."""
        return bool(seed & 1)

    def prepare(self) -> None:
        """Sizes of the launch. Groups without a barrier may be cut off, others are whole."""
        self.local_size = self.choose(*(_WHOLE if self.barriers else _SHAPES))
        groups = self.choose((1, 1, 1), (2, 1, 1), (3, 1, 1), (2, 2, 1), (1, 3, 1), (1, 2, 2))
        self.global_size = tuple(w * g for w, g in zip(self.local_size, groups, strict=False))
        if not self.barriers and self.random.random() < 0.5:
            self.global_size = tuple(max(1, s - self.random.randrange(0, 3)) for s in self.global_size)
        self.local = 1
        for size in self.local_size:
            self.local *= size

    # Types

    def literal(self, base: str, count: int) -> str:
        e = f"({self.expression(False, 1)}) & {self.choose(1, 15, 127)}"
        if count > 1 and self.random.random() < 0.4:
            parts = ", ".join(f"({base})({self.atom(False)} & 127)" for _ in range(count))
            return f"({_name(base, count)})({parts})"
        return f"({_name(base, count)})(({base})({e}))"

    def typed_atom(self, base: str, count: int) -> str:
        """A value of exactly this type."""
        same = [t for t in self.typed if t[1:] == (base, count)]
        if same and self.random.random() < 0.5:
            return self.choose(*same)[0]
        wide = [t for t in self.typed if t[1] == base and t[2] > 1]
        if wide and count > 1 and self.random.random() < 0.5:
            name, _, has = self.choose(*wide)
            return f"{name}.s{''.join(f'{self.random.randrange(has):x}' for _ in range(count))}"
        other = [t for t in self.typed if t[2] == count]
        if other and self.random.random() < 0.6:
            name, source, _ = self.choose(*other)
            saturated = "_sat" if source in _FLOATS and base in _INTEGERS else ""
            return f"convert_{_name(base, count)}{saturated}({name})"
        return self.literal(base, count)

    def value(self, base: str, count: int, depth: int = 2) -> str:
        text = self.vector_value(base, count, depth)
        return f"({base})({text})" if count == 1 else text  # small integers have become int

    def vector_value(self, base: str, count: int, depth: int) -> str:
        if depth == 0 or self.random.random() < 0.2:
            return self.typed_atom(base, count)
        a, b = self.value(base, count, depth - 1), self.value(base, count, depth - 1)
        type_ = _name(base, count)
        if self.random.random() < 0.15:
            compare = self.choose("<", "<=", "==", "!=", ">")
            if count == 1:
                return f"({self.condition(False, 0)} ? {a} : {b})"
            return f"(({self.typed_atom(base, count)} {compare} {self.typed_atom(base, count)}) ? {a} : {b})"
        if base in _FLOATS:
            return self.float_value(base, type_, a, b)
        unsigned = f"u{base.removeprefix('u')}"
        kind = self.random.randrange(8)
        if kind < 3:
            return (
                f"as_{type_}(({_name(unsigned, count)})(as_{_name(unsigned, count)}({a}) "
                + self.choose(*"+-*")
                + f" as_{_name(unsigned, count)}({b})))"
            )
        if kind == 3:
            return f"({type_})({a} {self.choose(*'&|^')} {b})"
        if kind == 4:
            return f"({type_})({a} {self.choose('>>')} ({type_})({b} & ({type_})(7)))"
        if kind == 5:
            return f"({type_})({a} {self.choose(*'/%')} (({type_})({b} & ({type_})(15)) | ({type_})(1)))"
        return self.choose(
            f"rotate({a}, {b})", f"popcount({a})", f"clz({a})", f"hadd({a}, {b})", f"rhadd({a}, {b})",
            f"add_sat({a}, {b})", f"sub_sat({a}, {b})", f"min({a}, {b})", f"max({a}, {b})",
            f"mul_hi({a}, {b})", f"clamp({a}, ({type_})(1), ({type_})(50))",
            f"as_{type_}(abs_diff({a}, {b}))", f"({type_})(~{a})",
        )  # fmt: skip

    def float_value(self, base: str, type_: str, a: str, b: str) -> str:
        signed = f"({type_})(({base})({self.expression(False, 1)}))"
        exact = (f"({a} / {b})", f"sqrt(fabs({a}))") if base == "double" else ()
        return self.choose(
            f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"fmin({a}, {b})", f"fmax({a}, {b})",
            f"fabs({a})", f"floor({a} * ({base})0.5)", f"ceil({a})", f"copysign({a}, {signed})",
            f"trunc({a})", f"rint({a})", f"fma({a}, {b}, {signed})",
            f"ldexp({a}, ({self.atom(False)}) & 7)", *exact,
        )  # fmt: skip

    def as_int(self, name: str, base: str, count: int) -> str:
        part = name if count == 1 else f"{name}.s{self.random.randrange(count):x}"
        return f"convert_int_sat({part})" if base in _FLOATS else f"(int)({part})"

    # Additions to the base

    def atom(self, uniform: bool) -> str:
        if not uniform and self.typed and "x" in self.varying and self.random.random() < 0.15:
            return self.as_int(*self.choose(*self.typed))
        return super().atom(uniform)

    def helper(self) -> None:
        super().helper()
        if len(self.helpers) == 1:
            base, count = self.choose(*_BASES), self.choose(*_COUNTS)
            self.mixed = base, count
            type_ = _name(base, count)
            self.helpers[0] += (
                f"\n{type_} mixed({type_} a, int b, private {type_} *p, global int *q) {{\n"
                f"    if (b & 1) return a;\n    do {{ *p = (b & 2) ? a : p[0]; q[b & 3] ^= b; b -= 5; }}"
                f" while (b > 20);\n    if (q[b & 3] == 7) return *p;\n    return (b & 4) ? *p : a;\n}}"
            )

    def body(self) -> None:
        self.prepare()
        size = self.local
        self.lines.append(
            "kernel void k(global int *out, global const int *in, int n, global int *memory,\n"
            "              global uint *counters) {"
        )
        self.say("int g = get_global_linear_id(), l = get_local_linear_id();")
        self.say(f"local int shared[{size}];\n    local int total;\n    int priv[8];")
        self.say("for (int i = 0; i < 8; i++) priv[i] = in[(g + i) & 31];")
        self.say("int x = in[g & 31], y = g * 3, z = l, u = n, w = get_group_id(0) + 2;")
        self.say("ulong m = x * 0x100001L; float f = l; int4 q = (int4)(x, y, z, g);")
        self.say(
            "struct { char c; short b[3]; int a; } s; s.c = x; s.b[0] = y; s.b[1] = z; s.b[2] = 5; s.a = u;"
        )
        self.say(f"global int *own = memory + g * {OWN};")
        typed = []
        for k in range(self.random.randrange(2, 6)):
            base, count = self.choose(*_BASES), self.choose(*_COUNTS)
            typed.append((f"t{k}", base, count))
            self.say(f"{_name(base, count)} t{k} = ({_name(base, count)})(({base})(x & {5 << k}));")
        if self.helpers:
            typed.append(("tm", *self.mixed))
            self.say(f"{_name(*self.mixed)} tm = ({_name(*self.mixed)})(({self.mixed[0]})(z));")
        self.typed = typed
        self.array = self.choose(*_BASES), self.choose(*_COUNTS)
        array = _name(*self.array)
        self.say(f"{array} ta[4]; for (int i = 0; i < 4; i++) ta[i] = ({array})(({self.array[0]})(y & 63));")
        if self.barriers:
            self.say(f"local {_name(*typed[0][1:])} tl[{size}]; tl[l] = t0;")
        self.say("shared[l] = g;")
        self.block(3, True, self.random.randrange(3, 7))
        self.say("uint r = (int)(m ^ m >> 32) + (int)f + q.x + 3u * q.y + 5u * q.z + 9u * q.w;")
        self.say("r += x + 31u * y + 17u * z + u + 7u * w + priv[x & 7] + s.c + s.b[0] + s.b[1] * 3 + s.a;")
        for name, base, count in [*typed, *((f"ta[{k}]", *self.array) for k in range(4))]:
            for part in [name] if count == 1 else [f"{name}.s{c:x}" for c in range(count)]:
                self.say(f"r = r * 33u + {self.as_int(part, base, 1)};")
        self.say("out[g] = r;")
        self.lines.append("}")

    def exchange(self) -> None:
        if self.random.random() < 0.3:
            index = self.choose(f"l ^ {self.random.randrange(self.local)}", self.expression(False))
            self.say("barrier(CLK_LOCAL_MEM_FENCE);")
            self.say(f"tl[l] = {self.value(*self.typed[0][1:])};")
            self.say("barrier(CLK_LOCAL_MEM_FENCE);")
            self.say(f"t0 = tl[{self.member(index)}];")
        else:
            super().exchange()

    def assign(self, together: bool) -> None:
        if self.random.random() < 0.55:
            self.assign_typed()
        elif not together and not self.barriers and self.random.random() < 0.06:
            self.say(f"if {self.condition(False)} {{ out[g] = {self.expression(False)}; return; }}")
        else:
            super().assign(together)

    def assign_typed(self) -> None:
        name, base, count = self.choose(*self.typed)
        bits = _INTEGERS.get(base, 32)
        scalars = f"(global {base} *)(own + {REGION * (32, 8, 16, 64).index(bits)})"
        spread = 1 << ((REGION * 32 // bits // count).bit_length() - 1)  # whole vectors in a region
        e = f"({self.expression(False, 1)}) & {spread - 1}"
        kind = self.random.randrange(12)
        if kind < 4:
            self.say(f"{name} = {self.value(base, count)};")
        elif kind == 4 and count > 1:
            self.say(f"{name}.s{self.random.randrange(count):x} = {self.value(base, 1)};")
        elif kind == 5:
            where = f"ta[({self.expression(False, 1)}) & 3]"
            self.say(
                self.choose(
                    f"{where} = {self.value(*self.array)};",
                    f"{name} = convert_{_name(base, count)}(convert_int{count if count > 1 else ''}"
                    f"{'_sat' if self.array[0] in _FLOATS else ''}({where}));"
                    if self.array[1] == count
                    else f"{where} = {self.typed_atom(*self.array)};",
                )
            )
        elif kind == 6 and base in _INTEGERS:
            # Integers alone: memory that was written as another type has every bit pattern.
            self.say(
                f"vstore{count}({name}, {e}, {scalars});" if count > 1 else f"({scalars})[{e}] = {name};"
            )
        elif kind == 7 and base in _INTEGERS:
            self.say(
                f"{name} = vload{count}({e}, {scalars});" if count > 1 else f"{name} ^= ({scalars})[{e}];"
            )
        elif kind == 8:
            which = self.random.randrange(6)
            op = ("add", "or", "xor", "max", "min", "and")[which]
            where = f"counters + {4 * which} + (({self.expression(False, 1)}) & 3)"
            amount = f"(uint)({self.expression(False, 1)})"
            self.say(
                self.choose(
                    f"atomic_{op}({where}, {amount});",
                    f"atomic_fetch_{op}_explicit((volatile global atomic_uint *)({where}), {amount}, "
                    "memory_order_relaxed, memory_scope_device);",
                )
            )
        elif kind == 9:
            where = f"own + (({self.expression(False, 1)}) & {REGION - 1})"
            a, b = self.expression(False, 1), self.expression(False, 1)
            self.say(
                f"{self.choose('x', 'y', 'z')} ^= "
                + self.choose(
                    f"atomic_xchg({where}, {a});",
                    f"atomic_cmpxchg({where}, {a}, {b});",
                    f"atomic_or({where}, {a});",
                    f"atomic_max({where}, {a});",
                )
            )
        elif kind == 10 and self.helpers:
            self.say(
                f"tm = mixed({self.value(*self.mixed, 1)}, ({self.expression(False, 1)}) & 63, &tm, own);"
            )
        else:
            self.say(f"{name} = {self.value(base, count, 3)};")

    def loop(self, budget: int, together: bool) -> None:
        if self.random.random() < 0.75:
            super().loop(budget, together)
            return
        i = self.name()
        saved, leaving = self.varying, self.leaving
        self.say(f"int {i} = ({self.expression(False, 1)}) & 7;")
        self.say("do {")
        self.loop_depth += 1
        self.leaving = True
        self.varying = [*saved, i]
        self.nest(budget, False)
        self.varying, self.leaving = saved, leaving
        self.loop_depth -= 1
        self.say(f"}} while (--{i} > 0 && {self.condition(False)});")
