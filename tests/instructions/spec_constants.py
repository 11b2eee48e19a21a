"""Modules where every operation of OpSpecConstantOp stands beside the instruction that does the same at run
time: results come in pairs, "NAME folded" and "NAME", which must be equal."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .module import DTYPES, Kernel, vector
from .special import kernel

COUNT = 4  # pairs of operands, as components
INTEGERS = {
    "IAdd ISub IMul BitwiseAnd BitwiseOr BitwiseXor": ([5, 0, -1, "max"], [3, 0, "min", 1]),
    "UDiv UMod SDiv SRem SMod": ([7, -7, "max", -1], [3, 2, -3, "min"]),
    "ShiftLeftLogical ShiftRightLogical ShiftRightArithmetic": ([5, -7, "min", 1], [0, 1, 3, 7]),
}
COMPARISONS = (
    "IEqual INotEqual UGreaterThan SGreaterThan UGreaterThanEqual SGreaterThanEqual ULessThan SLessThan "
    "ULessThanEqual SLessThanEqual"
)
FLOATS = {"FAdd FSub FMul FDiv FRem FMod": ([1.5, -0.0, np.inf, -7.25], [0.1, 0.0, 3.0, 2.0])}
OTHERS = ("i8", "i16", "i32", "i64", "f32", "f64")


def number(scalar: str, value) -> int:
    """A value as the bits of a type."""
    width = int(scalar[1:])
    if scalar[0] == "f":
        return int(np.array(value, DTYPES[scalar]).view(DTYPES[f"i{width}"]))
    named = {"min": 1 << width - 1, "max": (1 << width - 1) - 1}
    return named[value] if value in named else value & (1 << width) - 1


class Folding:
    """Pairs of the same operation, folded and at run time."""

    def __init__(self, k: Kernel, scalar: str):
        self.k, self.scalar, self.type = k, scalar, vector(scalar, COUNT)
        self.next_id = 100

    def operand(self, values) -> tuple[str, str, str, str]:
        """Specialisation constants of these values, and the same values loaded: each scalar and vector."""
        k, scalar = self.k, self.scalar
        bits = [number(scalar, value) for value in values]
        parts = []
        for value in bits:
            constant = k.declare(k.fresh("spec"), f"OpSpecConstant {k.type(scalar)} {value}")
            k.decorations.append(f"OpDecorate {constant} SpecId {self.next_id}")
            self.next_id += 1
            parts.append(constant)
        whole = k.declare(k.fresh("spec"), f"OpSpecConstantComposite {k.type(self.type)} {' '.join(parts)}")
        data = np.tile(np.array(bits, DTYPES[f"i{scalar[1:]}"]).view(DTYPES[scalar]), (k.items, 1))
        loaded = k.stream(self.type, data)
        return parts[0], whole, k.emit("CompositeExtract", scalar, loaded, 0), loaded

    def both(self, op: str, target: str, operands, literals=()) -> None:
        """One operation, on scalars and on vectors."""
        k = self.k
        for position, type_ in ((0, target), (1, vector(target, COUNT))):
            label = f"{op} {self.scalar} {type_}"
            text = " ".join([op, *(o[position] for o in operands), *map(str, literals)])
            folded = k.declare(k.fresh("spec"), f"OpSpecConstantOp {k.type(type_)} {text}")
            k.store(f"{label} folded", type_, k.emit("CopyObject", type_, folded))
            k.store(label, type_, k.emit(op, type_, *(o[position + 2] for o in operands), *literals))

    def composites(self, a, b) -> None:
        """Operations on whole vectors, and OpSelect."""
        k, type_, scalar = self.k, self.type, self.scalar
        cases = [
            ("VectorShuffle", type_, [a[1], b[1]], [a[3], b[3]], "7 0 5 2"),
            ("CompositeExtract", scalar, [a[1]], [a[3]], "2"),
            ("CompositeInsert", type_, [b[0], a[1]], [b[2], a[3]], "3"),
        ]
        for op, target, constants, values, literals in cases:
            folded = k.declare(
                k.fresh("spec"), f"OpSpecConstantOp {k.type(target)} {op} {' '.join(constants)} {literals}"
            )
            k.store(f"{op} {scalar} folded", target, k.emit("CopyObject", target, folded))
            k.store(f"{op} {scalar}", target, k.emit(op, target, *values, literals))


def kernels() -> Iterator[Kernel]:
    """One module per type, one of booleans, one of everything that counts something."""
    for scalar in ("i8", "i16", "i32", "i64"):
        k = kernel(f"folding {scalar}")
        f = Folding(k, scalar)
        for ops, (left, right) in INTEGERS.items():
            a, b = f.operand(left), f.operand(right)
            for op in ops.split():
                f.both(op, scalar, [a, b])
        for op in ("SNegate", "Not"):
            f.both(op, scalar, [a])
        a, b = f.operand([5, -1, "min", 0]), f.operand([5, 1, "max", -1])
        for op in COMPARISONS.split():
            f.both(op, "bool", [a, b])
        for target in OTHERS:
            if target[0] == "f":
                f.both("ConvertSToF", target, [a])
                f.both("ConvertUToF", target, [a])
            elif target != scalar:
                f.both("UConvert", target, [a])
                f.both("SConvert", target, [a])
        f.composites(a, b)
        yield k
    for scalar in ("f32", "f64"):
        k = kernel(f"folding {scalar}")
        f = Folding(k, scalar)
        for ops, (left, right) in FLOATS.items():
            a, b = f.operand(left), f.operand(right)
            for op in ops.split():
                f.both(op, scalar, [a, b])
        f.both("FNegate", scalar, [a])
        f.both("FConvert", "f64" if scalar == "f32" else "f32", [a])
        whole = f.operand([1.75, 0.0, 100.5, 3.0])
        for target in ("i8", "i16", "i32", "i64"):
            f.both("ConvertFToS", target, [whole])
            f.both("ConvertFToU", target, [whole])
        f.both("Bitcast", f"i{scalar[1:]}", [a])
        f.composites(a, b)
        yield k
    yield from booleans_and_sizes()


def booleans_and_sizes() -> Iterator[Kernel]:
    """Boolean operations; a constant as the length of an array and as the size of the work-group."""
    k = kernel("folding bool", (1, 2))
    bool_ = k.type("bool")
    names = {}
    for name, value, number_ in (("t", "True", 1), ("f", "False", 2)):
        names[name] = k.declare(f"%spec_{name}", f"OpSpecConstant{value} {bool_}")
        k.decorations.append(f"OpDecorate %spec_{name} SpecId {number_}")
    two, three = k.constant("i32", 2), k.constant("i32", 3)
    for op in ("LogicalOr", "LogicalAnd", "LogicalEqual", "LogicalNotEqual"):
        for a in "tf":
            for b in "tf":
                folded = k.declare(k.fresh("spec"), f"OpSpecConstantOp {bool_} {op} {names[a]} {names[b]}")
                k.store(f"{op} {a}{b} folded", "bool", k.emit("CopyObject", "bool", folded))
                k.store(
                    f"{op} {a}{b}",
                    "bool",
                    k.emit(op, "bool", k.constant("bool", a == "t"), k.constant("bool", b == "t")),
                )
    for a in "tf":
        folded = k.declare(k.fresh("spec"), f"OpSpecConstantOp {bool_} LogicalNot {names[a]}")
        k.store(f"LogicalNot {a} folded", "bool", k.emit("CopyObject", "bool", folded))
        k.store(f"LogicalNot {a}", "bool", k.constant("bool", a == "f"))
        folded = k.declare(
            k.fresh("spec"), f"OpSpecConstantOp {k.type('i32')} Select {names[a]} {two} {three}"
        )
        k.store(f"Select {a} folded", "i32", k.emit("CopyObject", "i32", folded))
        k.store(f"Select {a}", "i32", k.constant("i32", 2 if a == "t" else 3))
    i32 = k.type("i32")
    k.declare("%length", f"OpSpecConstant {i32} 6")
    k.decorations.append("OpDecorate %length SpecId 3")
    k.declare("%longer", f"OpSpecConstantOp {i32} IAdd %length {two}")
    k.declare("%array", f"OpTypeArray {i32} %longer")
    k.declare("%parray", "OpTypePointer Function %array")
    k.variables.append("%memory = OpVariable %parray Function")
    k.declare("%last", f"OpSpecConstantOp {i32} ISub %longer {k.constant('i32', 1)}")
    pointer = k.emit("AccessChain", "Function*i32", "%memory", "%last")
    k.emit("Store", None, pointer, "%length")
    k.store("array folded", "i32", k.emit("Load", "i32", pointer))
    k.store("array", "i32", k.constant("i32", 6))
    if k.version >= (1, 2):
        one = k.constant("i32", 1)
        k.declare("%items", f"OpSpecConstant {i32} {k.items}")
        k.decorations.append("OpDecorate %items SpecId 4")
        k.modes.append(f"OpExecutionModeId %k LocalSizeId %items {one} {one}")
    yield k


def unequal(k: Kernel, out: np.ndarray) -> list[str]:
    """The pairs of results that are not equal."""
    results = {result.label: result.of(out, k.items) for result in k.results}
    lines = []
    for label, value in results.items():
        if (other := results.get(f"{label} folded")) is not None:
            same = (other == value) | ((other != other) & (value != value))
            if not same.all():
                lines.append(f"{k.name} {label}: folded {other[0]}, at run time {value[0]}")
    return lines
