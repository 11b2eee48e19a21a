"""Modules for instructions that are no function of numbers: memory, pointers, atomics, groups, control flow,
constants, annotations, and what SPIR-V 1.1 to 1.6 added."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from . import streams
from .module import DTYPES, Kernel, vector

ITEMS = 37
STORAGES = ("Function", "Workgroup", "CrossWorkgroup")


def kernel(name: str, version=(1, 0), items: int = ITEMS) -> Kernel:
    """A kernel with scalar streams %a and %b of every integer type and float, loaded on demand."""
    return Kernel(name, items, "varying", version)


def operand(k: Kernel, type_: str, name: str = "a") -> str:
    """A stream of edge cases."""
    scalar, _, count = type_.partition("x")
    return k.stream(type_, streams.values(name, scalar, int(count or 1), k.items, 5))


def place(k: Kernel, storage: str, type_: str, label: str, rule="exact") -> str:
    """A pointer to memory of this work-item in a storage class; what is in it at the end is a result if the
    class is CrossWorkgroup."""
    if storage == "Function":
        return k.variable(type_)
    if storage == "CrossWorkgroup":
        return k.region("%out", k.add_output(label, type_, rule).offset, type_)
    array = f"{type_}[{k.items}]"
    variable = k.declare(k.fresh("local"), f"OpVariable {k.type('Workgroup*' + array)} Workgroup")
    return k.emit("InBoundsAccessChain", f"Workgroup*{type_}", variable, "%id")


def generic(k: Kernel, pointer: str, type_: str) -> str:
    return k.emit("PtrCastToGeneric", f"Generic*{type_}", pointer)


# Memory.

ACCESSES = ("", "Volatile", "Nontemporal", "Volatile|Nontemporal")


def loads_and_stores() -> Iterator[Kernel]:
    """OpLoad, OpStore, OpCopyMemory, OpCopyMemorySized in every storage class, with every memory access."""
    for version in ((1, 0), (1, 4)):
        for type_ in ("i8", "i16x3", "i32", "i64x2", "f32x4", "f64", "i8x8"):
            k = kernel(f"memory {type_} {version[0]}.{version[1]}", version)
            value = operand(k, type_)
            for storage in STORAGES:
                for access in ACCESSES if type_ != "i8x8" else ("",):
                    label = f"{type_} {storage} {access}"
                    pointer = place(k, storage, type_, f"OpStore {label}")
                    k.emit("Store", None, pointer, value, *filter(None, [access]))
                    k.store(f"OpLoad {label}", type_, k.emit("Load", type_, pointer, *filter(None, [access])))
                other = place(k, storage, type_, f"OpCopyMemory {type_} {storage}")
                accesses = ["Volatile", "Nontemporal"] if version >= (1, 4) else ["Volatile"]
                k.emit("CopyMemory", None, other, pointer, *accesses)
                k.store(f"OpCopyMemory {type_} {storage} again", type_, k.emit("Load", type_, other))
                third = place(k, storage, type_, f"OpCopyMemorySized {type_} {storage}")
                scalar, _, count = type_.partition("x")
                size = np.dtype(DTYPES[scalar]).itemsize
                bytes_ = k.constant("i64", size * int(count or 1))
                aligned = ["Aligned", size] * (2 if version >= (1, 4) else 1)
                k.emit("CopyMemorySized", None, third, other, bytes_, *aligned)
                k.store(f"OpCopyMemorySized {type_} {storage} again", type_, k.emit("Load", type_, third))
                wide = k.emit("Load", type_, generic(k, third, type_))
                k.store(f"OpLoad Generic {type_} {storage}", type_, wide)
            yield k


def pointers() -> Iterator[Kernel]:
    """Address arithmetic, casts between storage classes, comparisons, pointers as integers and in memory."""
    k = kernel("pointers", (1, 4))
    index = operand(k, "i64", "0..7")
    small = k.emit("UConvert", "i8", index)
    inner = k.struct("i32", "f32x4", "i16[5]")
    array = k._once(("array", inner), lambda: f"OpTypeArray {inner} {k.constant('i32', 8)}")
    value, x = operand(k, "i32"), operand(k, "f32x4")
    for storage in STORAGES:
        # Structures only where each work-item has its own: arrays of them would be megabytes of local memory.
        pointer_to = {
            name: k._once((storage, name), f"OpTypePointer {storage} {type_}")
            for name, type_ in (("array", array), ("inner", inner))
        }
        if storage != "Function":
            continue
        base = k.fresh("var")
        k.variables.append(f"{base} = OpVariable {pointer_to['array']} {storage}")
        k.emit("Store", None, base, k._once(("null", array), f"OpConstantNull {array}"))
        for op in ("AccessChain", "InBoundsAccessChain"):
            member = k.emit(op, f"{storage}*i32", base, small, k.constant("i32", 0))
            k.emit("Store", None, member, value)
            component = k.emit(op, f"{storage}*f32", base, index, k.constant("i32", 1), k.constant("i16", 2))
            k.emit("Store", None, component, k.emit("CompositeExtract", "f32", x, 3))
            k.store(f"{op} member", "i32", k.emit("Load", "i32", member))
            third = k.emit(op, f"{storage}*i32", base, k.constant("i8", 3), k.constant("i32", 0))
            k.store(f"{op} constant", "i32", k.emit("Load", "i32", third))
            whole = k.emit("Load", "f32x4", k.emit(op, f"{storage}*f32x4", base, index, k.constant("i32", 1)))
            k.store(f"{op} vector", "f32x4", whole)
        first = k.emit("AccessChain", pointer_to["inner"], base, k.constant("i32", 0))
        for op in ("PtrAccessChain", "InBoundsPtrAccessChain"):
            member = k.emit(op, f"{storage}*i32", first, index, k.constant("i32", 0))
            k.store(f"{op} member", "i32", k.emit("Load", "i32", member))
            fixed = k.emit(op, pointer_to["inner"], first, k.constant("i32", 3))
            difference = k.emit("PtrDiff", "i64", fixed, first)
            k.store(f"PtrDiff {op}", "i64", difference)
            back = k.emit(op, pointer_to["inner"], fixed, k.constant("i64", (1 << 64) - 3))
            k.store(f"PtrEqual {op}", "bool", k.emit("PtrEqual", "bool", back, first))
            k.store(f"PtrNotEqual {op}", "bool", k.emit("PtrNotEqual", "bool", back, fixed))
    yield k

    k = kernel("storage classes")
    value = operand(k, "i32")
    for storage in STORAGES:
        pointer = place(k, storage, "i32", f"cast {storage}")
        k.emit("Store", None, pointer, value)
        wide = generic(k, pointer, "i32")
        again = k.emit("GenericCastToPtr", f"{storage}*i32", wide)
        k.store(f"GenericCastToPtr {storage}", "i32", k.emit("Load", "i32", again))
        semantics = k.emit("GenericPtrMemSemantics", "i32", wide)
        k.store(f"GenericPtrMemSemantics {storage}", "i32", semantics)
        for target in STORAGES:
            cast = k.emit("GenericCastToPtrExplicit", f"{target}*i32", wide, target)
            known = k.emit("INotEqual", "bool", k.emit("ConvertPtrToU", "i64", cast), k.constant("i64", 0))
            k.store(f"GenericCastToPtrExplicit {storage} {target}", "bool", known)
        number = k.emit("ConvertPtrToU", "i64", pointer)
        moved = k.emit("ConvertUToPtr", f"{storage}*i32", k.emit("IAdd", "i64", number, k.constant("i64", 0)))
        k.store(f"ConvertUToPtr {storage}", "i32", k.emit("Load", "i32", moved))
        bits = k.emit("Bitcast", "i64", pointer)
        k.store(f"Bitcast pointer {storage}", "bool", k.emit("IEqual", "bool", bits, number))
        back = k.emit("Bitcast", f"{storage}*i32", bits)
        k.store(f"Bitcast to pointer {storage}", "i32", k.emit("Load", "i32", back))
        byte = k.emit("Load", "i8", k.emit("Bitcast", f"{storage}*i8", pointer))
        k.store(f"Bitcast pointee {storage}", "i8", byte)
        holder = k.variable(f"{storage}*i32")
        k.emit("Store", None, holder, pointer)
        held = k.emit("Load", f"{storage}*i32", holder)
        k.store(f"pointer in memory {storage}", "i32", k.emit("Load", "i32", held))
        chosen = k.emit(
            "Select",
            f"{storage}*i32",
            k.emit("SLessThan", "bool", value, k.constant("i32", 9)),
            held,
            k.emit("CopyObject", f"{storage}*i32", pointer),
        )
        k.store(f"Select pointer {storage}", "i32", k.emit("Load", "i32", chosen))
        null = k.constant(f"{storage}*i32", None)
        k.store(f"null {storage}", "i64", k.emit("ConvertPtrToU", "i64", null))
    yield k


def vector_memory() -> Iterator[Kernel]:
    """vloadn, vstoren and their half forms, with every rounding mode, and prefetch."""
    k = kernel("vload")
    k.capabilities.add("Float16Buffer")
    for scalar in ("i8", "i16", "i32", "i64", "f32", "f64"):
        for count in (2, 3, 4, 8, 16):
            type_ = vector(scalar, count)
            offset = k.add_input(scalar, 16, streams.values("a", scalar, 16, k.items, 7))
            size = np.dtype(DTYPES[scalar]).itemsize
            start = k.index("%in", "CrossWorkgroup*i8", k.constant("i64", offset + size))
            start = k.emit("Bitcast", f"CrossWorkgroup*{scalar}", start)
            value = k.extended("vloadn", type_, "%id", start, count)
            result = k.add_output(f"vstoren {type_}", vector(scalar, 16), "exact")
            target = k.index("%out", "CrossWorkgroup*i8", k.constant("i64", result.offset + size))
            target = k.emit("Bitcast", f"CrossWorkgroup*{scalar}", target)
            k.extended("vstoren", "void", value, "%id", target)
            k.extended("prefetch", "void", start, k.constant("i64", 4))
    yield k
    for count in (1, 2, 3, 4, 8, 16):
        k = kernel(f"halfs {count}")
        k.capabilities |= {"Float16Buffer"}
        half = k.declare("%half", "OpTypeFloat 16")
        pointer = k.declare("%phalf", f"OpTypePointer CrossWorkgroup {half}")
        offset = k.add_input("i16", 16, streams.values("a", "f16", 16, k.items, 8).view(np.uint16))
        source = k.index("%in", "CrossWorkgroup*i8", k.constant("i64", offset))
        source = k.emit("Bitcast", pointer, source)
        type_ = vector("f32", count)
        if count == 1:
            k.store("vload_half", type_, k.extended("vload_half", type_, "%id", source))
        else:
            for name in ("vload_halfn", "vloada_halfn"):
                k.store(f"{name} {count}", type_, k.extended(name, type_, "%id", source, count))
        for scalar in ("f32", "f64"):
            data = streams.values("a", "f16", count, k.items, 9).astype(DTYPES[scalar])
            third = np.arange(data.size).reshape(data.shape) % 3 == 0
            with np.errstate(invalid="ignore"):  # of NaN
                data = np.where(third, data * data.dtype.type(1 + 2.0**-14), data)
            value = k.stream(vector(scalar, count), data)
            for name in ("vstore_half",) if count == 1 else ("vstore_halfn", "vstorea_halfn"):
                rule = half3_rule if (name, count) == ("vstorea_halfn", 3) else half_rule
                for mode in (None, "RTE", "RTZ", "RTP", "RTN"):
                    result = k.add_output(f"{name} {scalar} {count} {mode}", "i16x16", rule)
                    target = k.index("%out", "CrossWorkgroup*i8", k.constant("i64", result.offset))
                    target = k.emit("Bitcast", pointer, target)
                    more = [] if mode is None else [["RTE", "RTZ", "RTP", "RTN"].index(mode)]
                    k.extended(name + ("_r" if mode else ""), "void", value, "%id", target, *more)
        yield k


def half_rule(got: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Where halves, as integers, differ: NaN may have any payload."""
    a, b = (np.ascontiguousarray(v).view(np.float16) for v in (got, wanted))
    return (got != wanted) & ~(np.isnan(a) & np.isnan(b))


def half3_rule(got: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The same for vstorea_half3, which may write the fourth place of each vector."""
    return half_rule(got, wanted) & (np.arange(got.shape[1]) % 4 != 3)


def atomics() -> Iterator[Kernel]:
    """Every atomic instruction, in every storage class and through generic pointers."""
    for scalar in ("i32", "i64"):
        k = kernel(f"atomics {scalar}")
        if scalar == "i64":
            k.capabilities.add("Int64Atomics")
        a, b = operand(k, scalar), operand(k, scalar, "b")
        scope, relaxed = k.constant("i32", 1), k.constant("i32", 0)
        order = k.constant("i32", 0x8 | 0x200)  # acquire and release, of global memory
        acquire, release = k.constant("i32", 0x2 | 0x200), k.constant("i32", 0x4 | 0x200)
        compares = ["CompareExchange", "CompareExchangeWeak"]
        takes_value = ["Exchange", "IAdd", "ISub", "SMin", "UMin", "SMax", "UMax", "And", "Or", "Xor"]
        for storage in (*STORAGES, "Generic"):
            for name in (*takes_value, "IIncrement", "IDecrement", *compares, "Load", "Store"):
                label = f"Atomic{name} {storage}"
                pointer = place(k, "CrossWorkgroup" if storage == "Generic" else storage, scalar, label)
                if storage == "Generic":
                    pointer = generic(k, pointer, scalar)
                k.emit("Store", None, pointer, a)
                if name == "Store":
                    k.emit("AtomicStore", None, pointer, scope, release, b)
                    old = None
                elif name == "Load":
                    old = k.emit("AtomicLoad", scalar, pointer, scope, acquire)
                elif name in compares:
                    comparator = k.emit(
                        "BitwiseAnd", scalar, a, k.constant(scalar, (1 << int(scalar[1:])) - 2)
                    )
                    old = k.emit(f"Atomic{name}", scalar, pointer, scope, order, acquire, b, comparator)
                elif name in takes_value:
                    old = k.emit(f"Atomic{name}", scalar, pointer, scope, order, b)
                else:
                    old = k.emit(f"Atomic{name}", scalar, pointer, scope, relaxed)
                if old is not None:
                    k.store(label + " old", scalar, old)
                k.store(label + " new", scalar, k.emit("Load", scalar, pointer))
        # All work-items on one place.
        shared = k.add_output("contended", scalar, "exact")
        start = k.index("%out", "CrossWorkgroup*i8", k.constant("i64", shared.offset))
        start = k.emit("Bitcast", f"CrossWorkgroup*{scalar}", start)
        for position, name in enumerate(takes_value[1:]):
            where = k.index(start, f"CrossWorkgroup*{scalar}", k.constant("i32", position))
            k.emit(f"Atomic{name}", scalar, where, scope, relaxed, b)
        yield k
    k = kernel("atomic flags")
    scope, relaxed = k.constant("i32", 1), k.constant("i32", 0)
    for storage in STORAGES:
        pointer = place(k, storage, "i32", f"AtomicFlagTestAndSet {storage} *", None)
        k.emit("AtomicFlagClear", None, pointer, scope, relaxed)
        for turn in range(2):
            was = k.emit("AtomicFlagTestAndSet", "bool", pointer, scope, relaxed)
            k.store(f"AtomicFlagTestAndSet {storage} {turn}", "bool", was)
    yield k
    k = kernel("atomic floats")
    scope, relaxed = k.constant("i32", 1), k.constant("i32", 0)
    a, b = operand(k, "f32"), operand(k, "f32", "b")
    for storage in STORAGES:
        pointer = place(k, storage, "f32", f"AtomicExchange f32 {storage}")
        k.emit("AtomicStore", None, pointer, scope, relaxed, a)
        old = k.emit("AtomicExchange", "f32", pointer, scope, relaxed, b)
        k.store(f"AtomicExchange f32 {storage} old", "f32", old)
        now = k.emit("AtomicLoad", "f32", pointer, scope, relaxed)
        k.store(f"AtomicLoad f32 {storage}", "f32", now)
    yield k
