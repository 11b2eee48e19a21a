"""The table of instructions that work component by component: what they take, give, and how exact they are.

A row is "Instruction operands [>result] [rule]": an operand is a stream's name (streams.py), after a colon
its type: `T` the kernel's type (the default), `S` its scalar, `I` i32 with as many components, `i` i32,
`B` the integer of the same width, `b` one of that. The rule is "exact" unless given (compare.py).
"""

from __future__ import annotations

from collections.abc import Iterator

from cl_driver.accuracy.functions import FUNCTIONS as ACCURACY

from . import streams
from .module import Kernel, split, vector

INTEGERS = ("i8", "i16", "i32", "i64")
FLOATS = ("f16", "f32", "f64")
COUNTS = (1, 2, 3, 4, 8, 16)
MODES = ("varying", "uniform", "affine", "masked")

CORE_INTEGER = """
IAdd a b; ISub a b; IMul a b; UDiv a d; UMod a d; SDiv e d; SRem e d; SMod e d; SNegate a; Not a
BitwiseAnd a b; BitwiseOr a b; BitwiseXor a b
ShiftLeftLogical a s; ShiftRightLogical a s; ShiftRightArithmetic a s; BitCount a
IEqual a b >bool; INotEqual a b >bool; UGreaterThan a b >bool; SGreaterThan a b >bool
UGreaterThanEqual a b >bool; SGreaterThanEqual a b >bool; ULessThan a b >bool; SLessThan a b >bool
ULessThanEqual a b >bool; SLessThanEqual a b >bool; CopyObject a
"""
BIT_INSTRUCTIONS = """
BitReverse a; BitFieldInsert a b o:i q:i; BitFieldSExtract a o:i q:i; BitFieldUExtract a o:i q:i
"""
CORE_FLOAT = """
FNegate a; FAdd a b; FSub a b; FMul a b; FDiv a b 3; FRem a b zero; FMod a b zero; CopyObject a
IsNan a >bool; IsInf a >bool; IsFinite a >bool; IsNormal a >bool; SignBitSet a >bool
LessOrGreater a b >bool; Ordered a b >bool; Unordered a b >bool
FOrdEqual a b >bool; FUnordEqual a b >bool; FOrdNotEqual a b >bool; FUnordNotEqual a b >bool
FOrdLessThan a b >bool; FUnordLessThan a b >bool; FOrdGreaterThan a b >bool; FUnordGreaterThan a b >bool
FOrdLessThanEqual a b >bool; FUnordLessThanEqual a b >bool; FOrdGreaterThanEqual a b >bool
FUnordGreaterThanEqual a b >bool
"""
CORE_FLOAT_VECTOR = "VectorTimesScalar a b:S; Dot z z >S"
STD_INTEGER = """
s_abs a; u_abs a; s_abs_diff a b; u_abs_diff a b; s_add_sat a b; u_add_sat a b; s_sub_sat a b; u_sub_sat a b
s_hadd a b; u_hadd a b; s_rhadd a b; u_rhadd a b; s_clamp a l h; u_clamp a L H; clz a; ctz a; popcount a
s_mad_hi a b c; u_mad_hi a b c; s_mad_sat a b c; u_mad_sat a b c; s_max a b; u_max a b; s_min a b; u_min a b
s_mul_hi a b; u_mul_hi a b; rotate a b; bitselect a b c; select a b c:B
"""
STD_INT32 = "s_mad24 m m a; u_mad24 n n a; s_mul24 m m; u_mul24 n n"
STD_FLOAT = """
acos a; acosh a; acospi a; asin a; asinh a; asinpi a; atan a; atan2 a b; atanh a; atanpi a; atan2pi a b
cbrt a; ceil a; copysign a b; cos a; cosh a; cospi a; erfc a; erf a; exp a; exp2 a; exp10 a; expm1 a; fabs a
fdim a b; floor a; fma a b c; fmax a b zero; fmin a b zero; fmod a b; hypot a b; ilogb a >I; ldexp a p:I
lgamma 3..30 16; log a; log2 a; log10 a; log1p a; logb a; mad g g g 2; maxmag a b zero; minmag a b zero
nan a:B; nextafter a b; pow a b; pown a p:I; powr a b; remainder a b; rint a; rootn a p:I; round a; rsqrt a
sin a; sinh a; sinpi a; sqrt a 3; tan a; tanh a; tanpi a; tgamma a; trunc a; fclamp a l h zero; degrees a 2
fmax_common l h zero; fmin_common l h zero; mix g g g 8; radians a 2; step a b zero
smoothstep 0..1 2..3 0..4 40; sign a; bitselect a b c; select a b c:B
"""
STD_NATIVE = """
half_cos g; half_divide g g; half_exp g; half_exp2 g; half_exp10 g; half_log g; half_log2 g; half_log10 g
half_powr g g; half_recip g; half_rsqrt g; half_sin g; half_sqrt g; half_tan g; native_cos g
native_divide g g; native_exp g; native_exp2 g; native_exp10 g; native_log g; native_log2 g; native_log10 g
native_powr g g; native_recip g; native_rsqrt g; native_sin g; native_sqrt g; native_tan g
"""
STD_GEOMETRIC = """
distance l h >S 40; length l >S 40; normalize l 40
"""
STD_FAST = "fast_distance g g >S 8192; fast_length g >S 8192; fast_normalize g 8192"
STD_POINTER = "fract a; frexp a >I; lgamma_r 3..30 16 >I; modf a; remquo a b >I; sincos a"
HALF_BOUND = 8192  # ulp, which is what the specification says of half_ functions
F16_BOUND = 1  # ulp of functions that are not exact: float's error, rounded once


class Row:
    """One row of the table."""

    def __init__(self, text: str, bound=None):
        self.name, *words = text.split()
        self.operands, self.result, self.rule = [], "T", bound
        for word in words:
            if word[0] == ">":
                self.result = word[1:]
            elif word in ("zero", "exact"):
                self.rule = word
            elif word.isdigit():
                self.rule = int(word)
            else:
                self.operands.append(tuple((word + ":T").split(":")[:2]))


def rows(text: str) -> Iterator[Row]:
    for part in text.replace("\n", ";").split(";"):
        if part.strip():
            yield Row(part)


def type_of(code: str, scalar: str, count: int) -> str:
    """The type that a row's letter stands for."""
    return {
        "T": vector(scalar, count),
        "S": scalar,
        "I": vector("i32", count),
        "i": "i32",
        "B": vector("i" + scalar[1:], count),
        "b": "i" + scalar[1:],
        "bool": vector("bool", count),
    }[code]


class Table:
    """Puts rows into kernels of one type."""

    def __init__(self, kernel: Kernel, scalar: str, count: int, seed: int = 1):
        self.k, self.scalar, self.count, self.seed = kernel, scalar, count, seed
        self._loaded: dict = {}

    @property
    def type(self) -> str:
        return vector(self.scalar, self.count)

    def operand(self, name: str, type_: str | None = None, position: int = 0) -> str:
        """A stream's value."""
        type_ = type_ or self.type
        moved = position if self.k.mode in ("uniform", "affine") else 0
        if self.k.mode == "affine" and name not in ("a", "b", "c"):
            moved = 1  # an affine value would leave the stream's range
        key = (name, type_, bool(moved))
        if key not in self._loaded:
            scalar, count = split(type_)
            if name in "oq":
                data = streams.values(
                    f"0..{int(self.scalar[1:]) // 2}", scalar, count, self.k.items, ord(name)
                )
            elif name == "x":
                data = streams.values(f"0..{self.count - 1}", scalar, count, self.k.items, self.seed)
            else:
                data = streams.values(
                    name, scalar, count, self.k.items, self.seed + len(self._loaded) * (name == "z")
                )
            self._loaded[key] = self.k.stream(type_, data, moved)
        return self._loaded[key]

    def operands(self, row: Row) -> list[str]:
        return [
            self.operand(name, type_of(code, self.scalar, self.count), position)
            for position, (name, code) in enumerate(row.operands)
        ]

    def rule(self, row: Row, default="exact"):
        """The row's rule; half floats have bounds of their own."""
        if isinstance(row.rule, int) and self.scalar == "f16":
            return "exact" if row.name in ("FDiv", "sqrt") else row.rule if row.rule < 8192 else F16_BOUND
        return default if row.rule is None else row.rule

    def core(self, text: str) -> None:
        """Core instructions."""
        for row in rows(text):
            result = type_of(row.result, self.scalar, self.count)
            value = self.k.emit(row.name, result, *self.operands(row))
            self.k.store(row.name, result, value, self.rule(row))

    def std(self, text: str, bound=None) -> None:
        """OpenCL.std instructions."""
        for row in rows(text):
            result = type_of(row.result, self.scalar, self.count)
            value = self.k.extended(row.name, result, *self.operands(row))
            self.k.store(row.name, result, value, self.std_rule(row, bound))

    def std_rule(self, row: Row, bound=None):
        if bound is None and row.rule is None and row.name in ACCURACY and self.scalar[0] == "f":
            known = ACCURACY[row.name].bounds[self.scalar == "f64"]
            if known:  # the interpreter's own error comes on top
                bound = F16_BOUND if self.scalar == "f16" else int(known) + 2
        return self.rule(row, bound or "exact")

    def pointer_results(self) -> None:
        """OpenCL.std instructions with a second result through a pointer, to each storage class."""
        for row in rows(STD_POINTER):
            pointee = type_of(row.result, self.scalar, self.count)
            rule = self.std_rule(row)
            for storage in ("Function", "CrossWorkgroup", "Generic"):
                second = self.k.add_output(f"{row.name} {storage} *", pointee, rule)
                if storage == "Function":
                    pointer = self.k.variable(pointee)
                else:
                    pointer = self.k.region("%out", second.offset, pointee)
                if storage == "Generic":
                    pointer = self.k.emit("PtrCastToGeneric", f"Generic*{pointee}", pointer)
                value = self.k.extended(row.name, self.type, *self.operands(row), pointer)
                self.k.store(f"{row.name} {storage}", self.type, value, rule)
                if storage == "Function":
                    target = self.k.region("%out", second.offset, pointee)
                    self.k.emit("Store", None, target, self.k.emit("Load", pointee, pointer))

    # Groups of cases that are no rows.

    def booleans(self) -> None:
        """OpSelect with a condition per component and one for all; logical instructions; OpAny, OpAll."""
        k, type_ = self.k, self.type
        a, b = self.operand("a"), self.operand("b", position=1)
        op = "ULessThan" if self.scalar[0] == "i" else "FOrdLessThan"
        other = "SLessThan" if self.scalar[0] == "i" else "FUnordLessThan"
        bools = vector("bool", self.count)
        p, q = k.emit(op, bools, a, b), k.emit(other, bools, b, a)
        k.store("Select", type_, k.emit("Select", type_, p, a, b))
        for name in ("LogicalEqual", "LogicalNotEqual", "LogicalOr", "LogicalAnd"):
            k.store(name, bools, k.emit(name, bools, p, q))
        k.store("LogicalNot", bools, k.emit("LogicalNot", bools, p))
        k.store("Select bool", bools, k.emit("Select", bools, p, q, k.constant(bools, True)))
        if self.count > 1:
            for name in ("Any", "All"):
                k.store(name, "bool", k.emit(name, "bool", p))
            k.store("CompositeExtract bool", "bool", k.emit("CompositeExtract", "bool", q, self.count - 1))

    def carries(self) -> None:
        """Instructions that give two integers."""
        k, type_ = self.k, self.type
        pair = k.struct(type_, type_)
        for name in ("IAddCarry", "ISubBorrow", "UMulExtended", "SMulExtended"):
            both = k.emit(name, pair, self.operand("a"), self.operand("b", position=1))
            for member in (0, 1):
                part = k.emit("CompositeExtract", type_, both, member)
                k.store(f"{name} {member}", type_, part)

    def conversions(self, others: tuple[str, ...]) -> None:
        """Conversions to every other type, with every decoration that they may have."""
        k, scalar, count = self.k, self.scalar, self.count

        def store(op, target, operand, *decorations, rule="exact"):
            type_ = vector(target, count)
            value = k.emit(op, type_, operand)
            k.decorations += [f"OpDecorate {value} {text}" for text in decorations]
            label = " ".join([op, target, *decorations]).replace("FPRoundingMode ", "")
            k.store(label, type_, value, rule)

        modes = ["RTE", "RTZ", "RTP", "RTN"]
        a = self.operand("a")
        for target in others:
            if scalar[0] == "i" and target[0] == "i":
                if scalar != target:
                    store("UConvert", target, a)
                    store("SConvert", target, a)
                    store("UConvert", target, a, "SaturatedConversion")
                    store("SConvert", target, a, "SaturatedConversion")
                store("SatConvertSToU", target, a)
                store("SatConvertUToS", target, a)
            elif scalar[0] == "i":
                for op in ("ConvertSToF", "ConvertUToF"):
                    store(op, target, a)
                    for mode in modes:
                        store(op, target, a, f"FPRoundingMode {mode}")
            elif target[0] == "i":
                width = int(target[1:])
                most = 65504 if scalar == "f16" else 1 << 62
                for op, low, high in (
                    ("ConvertFToS", -(1 << width - 1), (1 << width - 1) - 1),
                    ("ConvertFToU", 0, (1 << width) - 1),
                ):
                    inside = self.operand(f"{max(low, -most)}..{min(high, most)}")
                    store(op, target, inside)
                    store(op, target, a, "SaturatedConversion")
                    for mode in modes:
                        store(op, target, inside, f"FPRoundingMode {mode}")
                        store(op, target, a, f"FPRoundingMode {mode}", "SaturatedConversion")
            elif scalar != target:
                store("FConvert", target, a)
                for mode in modes:
                    store("FConvert", target, a, f"FPRoundingMode {mode}")

    def composites(self) -> None:
        """Vectors put together and taken apart."""
        k, type_, scalar, count = self.k, self.type, self.scalar, self.count
        a, b, s = self.operand("a"), self.operand("b", position=1), self.operand("c", scalar)
        x = self.operand("x", "i32")
        k.store("VectorExtractDynamic", scalar, k.emit("VectorExtractDynamic", scalar, a, x))
        k.store("VectorInsertDynamic", type_, k.emit("VectorInsertDynamic", type_, a, s, x))
        parts = [k.emit("CompositeExtract", scalar, b, i) for i in range(count)]
        k.store("CompositeExtract", scalar, parts[-1])
        k.store("CompositeConstruct", type_, k.emit("CompositeConstruct", type_, *reversed(parts)))
        k.store("CompositeInsert", type_, k.emit("CompositeInsert", type_, s, a, count // 2))
        for other in COUNTS[1:]:
            choice = [(i * 5 + 3) % (2 * count) for i in range(other)]
            target = vector(scalar, other)
            k.store(f"VectorShuffle {other}", target, k.emit("VectorShuffle", target, a, b, *choice))
        if count != 3:
            mask = self.operand("a", vector("i" + scalar[1:], count))
            k.store("shuffle", type_, k.extended("shuffle", type_, a, mask))
            k.store("shuffle2", type_, k.extended("shuffle2", type_, a, b, mask))

    def halves(self) -> None:
        """OpCompositeConstruct of vectors and scalars."""
        k, type_, scalar, count = self.k, self.type, self.scalar, self.count
        a, b = self.operand("a"), self.operand("b", position=1)
        parts = [k.emit("CompositeExtract", scalar, b, i) for i in range(count)]
        if count % 2:
            pair = k.emit("VectorShuffle", vector(scalar, 2), a, b, 1, count)
            whole = k.emit("CompositeConstruct", type_, pair, parts[0])
        else:
            half = vector(scalar, count // 2)
            low = k.emit("VectorShuffle", half, a, b, *range(count // 2))
            whole = k.emit("CompositeConstruct", type_, low, *parts[: count // 2])
        k.store("CompositeConstruct of vectors", type_, whole)

    def bitcasts(self) -> None:
        """OpBitcast to every type of the same size, also with other component counts."""
        k, bits = self.k, int(self.scalar[1:]) * self.count
        a = self.operand("a", type_of("B", self.scalar, self.count))
        a = k.emit("Bitcast", self.type, a) if self.scalar[0] == "f" else a
        for target in (*INTEGERS, *FLOATS):
            width = int(target[1:])
            count = bits // width
            if bits % width == 0 and count in COUNTS and vector(target, count) != self.type:
                type_ = vector(target, count)
                k.store(f"Bitcast {type_}", type_, k.emit("Bitcast", type_, a))

    def upsample(self) -> None:
        """u_upsample, s_upsample."""
        wider = vector(f"i{2 * int(self.scalar[1:])}", self.count)
        for name in ("u_upsample", "s_upsample"):
            value = self.k.extended(name, wider, self.operand("a"), self.operand("b", position=1))
            self.k.store(name, wider, value)

    def dot_products(self) -> None:
        """Integer dot products: of four bytes, as a vector or packed."""
        k = self.k
        k.capabilities.add("DotProduct")
        k.capabilities.add("DotProductInput4x8Bit" + ("" if self.count == 4 else "Packed"))
        k.extensions.add("SPV_KHR_integer_dot_product")
        packed = [] if self.count == 4 else ["PackedVectorFormat4x8Bit"]
        a, b = self.operand("a"), self.operand("b", position=1)
        for target in ("i8", "i16", "i32", "i64"):
            c = self.operand("c", target)
            for name in ("SDot", "UDot", "SUDot"):
                # Undefined where it does not fit, which 16 bits do not always hold.
                if target in ("i32", "i64"):
                    k.store(f"{name} {target}", target, k.emit(f"{name}KHR", target, a, b, *packed))
                    total = k.emit(f"{name}AccSatKHR", target, a, b, c, *packed)
                    k.store(f"{name}AccSat {target}", target, total)


def integer_kernels(scalar: str, count: int, items: int, mode: str) -> Iterator[Kernel]:
    """All integer instructions of a type."""
    name = f"{vector(scalar, count)} {mode}"
    k = Kernel(f"{name} core", items, mode)
    t = Table(k, scalar, count)
    t.core(CORE_INTEGER)
    k.capabilities.add("BitInstructions")
    k.extensions.add("SPV_KHR_bit_instructions")
    t.core(BIT_INSTRUCTIONS)
    t.booleans()
    yield k
    k = Kernel(f"{name} extended", items, mode)
    Table(k, scalar, count).carries()
    yield k
    k = Kernel(f"{name} std", items, mode)
    t = Table(k, scalar, count)
    t.std(STD_INTEGER)
    if scalar == "i32":
        t.std(STD_INT32)
    if scalar != "i64":
        t.upsample()
    yield k
    if (scalar, count) in (("i8", 4), ("i32", 1)):
        k = Kernel(f"{name} dot", items, mode, (1, 6))
        Table(k, scalar, count).dot_products()
        yield k


def float_kernels(scalar: str, count: int, items: int, mode: str) -> Iterator[Kernel]:
    """All floating-point instructions of a type."""
    name = f"{vector(scalar, count)} {mode}"
    k = Kernel(f"{name} core", items, mode)
    t = Table(k, scalar, count)
    t.core(CORE_FLOAT)
    if count > 1:
        t.core(CORE_FLOAT_VECTOR)
    t.booleans()
    yield k
    k = Kernel(f"{name} std", items, mode)
    t = Table(k, scalar, count)
    t.std(STD_FLOAT)
    yield k
    k = Kernel(f"{name} more", items, mode)
    t = Table(k, scalar, count)
    if scalar == "f32":
        t.std(STD_NATIVE, HALF_BOUND)
    if count <= 4:
        t.std(STD_GEOMETRIC)
    if count in (3, 4):
        t.std("cross z z")
    t.pointer_results()
    yield k
    if count <= 4:
        k = Kernel(f"{name} fast", items, mode)
        Table(k, scalar, count).std(STD_FAST)
        yield k


def kernels(
    scalar: str, count: int, items: int, mode: str = "varying", all_types=(*INTEGERS, *FLOATS)
) -> list[Kernel]:
    """Every kernel of the table for one type, with items of each operand."""
    made = list((integer_kernels if scalar[0] == "i" else float_kernels)(scalar, count, items, mode))
    for part in ("conversions", "bitcasts", "composites", "halves")[
        : 2 if count == 1 else 3 if count == 2 else 4
    ]:
        made.append(Kernel(f"{vector(scalar, count)} {mode} {part}", items, mode))
        t = Table(made[-1], scalar, count)
        t.conversions(all_types) if part == "conversions" else getattr(t, part)()
    return made
