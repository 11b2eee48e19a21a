"""Builds SPIR-V modules with one kernel `k(global uchar *out, global uchar *in)` of many instructions.

Work-item i reads element i of each *stream* (a region of `in`) and writes element i of each *result* (a
region of `out`). Types are text: `i32`, `f32x4` (a vector), `boolx2`, `Function*f32x4` (a pointer).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tests.pure.spirv.assembler import assemble

DTYPES = {
    "i8": np.uint8,
    "i16": np.uint16,
    "i32": np.uint32,
    "i64": np.uint64,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
}
ALIGNMENT = 128  # of each region


def split(type_: str) -> tuple[str, int]:
    """`f32x4` to ("f32", 4); a scalar has one component."""
    scalar, _, count = type_.partition("x")
    return scalar, int(count or 1)


def vector(scalar: str, count: int) -> str:
    """The inverse of split()."""
    return scalar if count == 1 else f"{scalar}x{count}"


def slots(count: int) -> int:
    """Elements that a vector takes in memory."""
    return 4 if count == 3 else count


@dataclass
class Result:
    """A region of `out`. rule: how it is compared (compare.py)."""

    label: str
    type: str
    offset: int
    rule: object

    def of(self, out: np.ndarray, items: int) -> np.ndarray:
        """The results in a copy of `out`: items × components."""
        scalar, count = split(self.type)
        dtype = np.dtype(DTYPES[scalar])
        size = items * slots(count) * dtype.itemsize
        return out[self.offset : self.offset + size].view(dtype).reshape(items, slots(count))[:, :count]


def _aligned(size: int, fill: int) -> np.ndarray:
    """Bytes that begin where a buffer may begin."""
    whole = np.full(size + ALIGNMENT, fill, np.uint8)
    start = -whole.ctypes.data % ALIGNMENT
    return whole[start : start + size]


class Kernel:
    """One module in the making.

    mode: "varying"; "uniform": all operands but the first are item 0's; "affine": the first operand is an
    affine function of the id (integers); "masked": in a divergent branch.
    """

    def __init__(self, name: str, items: int, mode: str = "varying", version=(1, 0)):
        self.name, self.items, self.mode, self.version = name, items, mode, version
        self.local = items  # work-items of a group
        self.capabilities = {"Addresses", "Kernel", "Int8", "Int64"}
        self.extensions: set[str] = set()
        self.modes: list[str] = []  # execution modes and other lines after the entry point
        self.decorations: list[str] = []
        self.declarations: list[str] = []
        self.functions: list[str] = []
        self.variables: list[str] = []  # Function variables, which stand at the start
        self.body: list[str] = []
        self.results: list[Result] = []
        self.out_size = 0
        self.in_size = 0
        self.interface = ["%gid"]
        self._inputs: list[tuple[int, np.ndarray]] = []
        self._known: dict = {}
        self._serial = 0
        self._regions: dict = {}
        self.declare("%gid", f"OpVariable {self.type('Input*i64x3')} Input")
        self.decorations.append("OpDecorate %gid BuiltIn GlobalInvocationId")

    # Names.

    def fresh(self, stem: str = "v") -> str:
        self._serial += 1
        return f"%{stem}{self._serial}"

    def declare(self, name: str, text: str) -> str:
        self.declarations.append(f"{name} = {text}")
        return name

    def _once(self, key, text) -> str:
        if key not in self._known:
            made = text() if callable(text) else text
            self._known[key] = self.declare(self.fresh("t"), made)
        return self._known[key]

    def type(self, text: str) -> str:
        """The id of a type."""
        if text.startswith("%"):
            return text
        if "*" in text:
            storage, _, pointee = text.partition("*")
            if storage == "Generic":
                self.capabilities.add("GenericPointer")
            return self._once(text, lambda: f"OpTypePointer {storage} {self.type(pointee)}")
        if "[" in text:
            element, _, count = text.rstrip("]").rpartition("[")
            return self._once(
                text, lambda: f"OpTypeArray {self.type(element)} {self.constant('i32', int(count))}"
            )
        scalar, count = split(text)
        if count > 1:
            if count > 4:
                self.capabilities.add("Vector16")
            return self._once(text, lambda: f"OpTypeVector {self.type(scalar)} {count}")
        if scalar in ("void", "bool"):
            return self._once(text, f"OpType{scalar.capitalize()}")
        kind, width = ("Int" if scalar[0] == "i" else "Float"), scalar[1:]
        if width != "32":
            self.capabilities.add(kind + width)
        return self._once(text, f"OpType{kind} {width}" + (" 0" if kind == "Int" else ""))

    def struct(self, *members: str) -> str:
        """The id of a structure type."""
        return self._once(("struct", members), lambda: "OpTypeStruct " + " ".join(map(self.type, members)))

    def constant(self, type_: str, value) -> str:
        """A constant: a number for all components, or a list of them; True, False for booleans; None null."""
        key = (type_, tuple(value) if isinstance(value, list) else value, type(value).__name__)
        return self._once(key, lambda: self._constant(type_, value))

    def _constant(self, type_: str, value) -> str:
        if value is None:
            return f"OpConstantNull {self.type(type_)}"
        scalar, count = split(type_)
        if count > 1:
            values = value if isinstance(value, list) else [value] * count
            parts = " ".join(self.constant(scalar, v) for v in values)
            return f"OpConstantComposite {self.type(type_)} {parts}"
        if scalar == "bool":
            return f"OpConstant{bool(value)} {self.type(type_)}"
        if scalar[0] == "f":
            value = int(np.array(value, DTYPES[scalar]).view(DTYPES["i" + scalar[1:]]))
        return f"OpConstant {self.type(type_)} {value}"

    # Instructions.

    def emit(self, op: str, type_: str | None, *operands) -> str | None:
        """One instruction; its result."""
        text = " ".join([f"Op{op}", *([self.type(type_)] if type_ else []), *map(str, operands)])
        if type_ is None:
            self.body.append(text)
            return None
        result = self.fresh()
        self.body.append(f"{result} = {text}")
        return result

    def extended(self, name: str, type_: str, *operands) -> str:
        """One OpenCL.std instruction."""
        return self.emit("ExtInst", type_, "%std", name, *operands)

    def label(self, name: str) -> None:
        self.body.append(f"{name} = OpLabel")

    def variable(self, type_: str) -> str:
        """A Function variable."""
        result = self.fresh("var")
        self.variables.append(f"{result} = OpVariable {self.type('Function*' + type_)} Function")
        return result

    def index(self, base: str, type_: str, index: str, op: str = "InBoundsPtrAccessChain") -> str:
        """A pointer to element `index` of what a pointer of type `type_` points to."""
        return self.emit(op, type_, base, index)

    # Memory.

    def region(self, base: str, offset: int, type_: str, storage: str = "CrossWorkgroup") -> str:
        """A pointer to the element of this work-item in a region of `in` or `out`."""
        key = (base, offset, type_, storage)
        if key not in self._regions:
            pointer = f"{storage}*{type_}"
            first = self.index(base, f"{storage}*i8", self.constant("i64", offset))
            first = self.emit("Bitcast", pointer, first)
            self._regions[key] = first
        return self.index(self._regions[key], f"{storage}*{type_}", "%id")

    def stream(self, type_: str, values: np.ndarray, operand: int = 0) -> str:
        """A value that each work-item loads: values are items × components. operand: which of an
        instruction's it becomes, for the mode."""
        scalar, count = split(type_)
        offset = self.add_input(scalar, count, values)
        if self.mode == "affine" and operand == 0 and scalar[0] == "i" and count == 1:
            number = "%id" if scalar == "i64" else self.emit("UConvert", scalar, "%id")
            scaled = self.emit("IMul", scalar, number, self.constant(scalar, 3))
            return self.emit("IAdd", scalar, scaled, self.constant(scalar, 250 if scalar == "i8" else 65530))
        pointer = self.region("%in", offset, type_)
        if operand and self.mode in ("uniform", "affine"):
            pointer = self.emit(
                "Bitcast",
                f"CrossWorkgroup*{type_}",
                self.index("%in", "CrossWorkgroup*i8", self.constant("i64", offset)),
            )
        return self.emit("Load", type_, pointer, "Aligned", np.dtype(DTYPES[scalar]).itemsize)

    def add_input(self, scalar: str, count: int, values: np.ndarray) -> int:
        """Places a region of `in`; its offset."""
        data = np.zeros((self.items, slots(count)), DTYPES[scalar])
        data[:, :count] = values.reshape(self.items, count)
        offset = self.in_size
        self._inputs.append((offset, data))
        self.in_size += -(-data.nbytes // ALIGNMENT) * ALIGNMENT
        return offset

    def add_output(self, label: str, type_: str, rule) -> Result:
        """Places a region of `out`."""
        scalar, count = split(type_)
        size = self.items * slots(count) * np.dtype(DTYPES[scalar]).itemsize
        result = Result(label, type_, self.out_size, rule)
        self.results.append(result)
        self.out_size += -(-size // ALIGNMENT) * ALIGNMENT
        return result

    def store(self, label: str, type_: str, value: str, rule="exact") -> None:
        """Writes a result; booleans as bytes."""
        scalar, count = split(type_)
        if scalar == "bool":
            type_ = vector("i8", count)
            value = self.emit("Select", type_, value, self.constant(type_, 1), self.constant(type_, 0))
            scalar = "i8"
        result = self.add_output(label, type_, rule)
        pointer = self.region("%out", result.offset, type_)
        self.emit("Store", None, pointer, value, "Aligned", np.dtype(DTYPES[scalar]).itemsize)

    # The module.

    def text(self) -> str:
        """SPIR-V assembly."""
        void, fn = self.type("void"), self.fresh("fn")
        pointer = self.type("CrossWorkgroup*i8")
        long3, long = self.type("i64x3"), self.type("i64")
        self.declare(fn, f"OpTypeFunction {void} {pointer} {pointer}")
        start = [f"%ids = OpLoad {long3} %gid", f"%id = OpCompositeExtract {long} %ids 0"]
        end = ["OpReturn"]
        if self.mode == "masked":
            three, zero, bool_ = self.constant("i64", 3), self.constant("i64", 0), self.type("bool")
            start += [
                f"%rest = OpUMod {long} %id {three}",
                f"%taken = OpINotEqual {bool_} %rest {zero}",
                "OpSelectionMerge %skip None",
                "OpBranchConditional %taken %then %skip",
                "%then = OpLabel",
            ]
            end = ["OpBranch %skip", "%skip = OpLabel", "OpReturn"]
        lines = [
            *(f"OpCapability {name}" for name in sorted(self.capabilities)),
            *(f'OpExtension "{name}"' for name in sorted(self.extensions)),
            '%std = OpExtInstImport "OpenCL.std"',
            "OpMemoryModel Physical64 OpenCL",
            f'OpEntryPoint Kernel %k "k" {" ".join(self.interface)}',
            *self.modes,
            *self.decorations,
            *self.declarations,
            *self.functions,
            f"%k = OpFunction {void} None {fn}",
            f"%out = OpFunctionParameter {pointer}",
            f"%in = OpFunctionParameter {pointer}",
            "%entry = OpLabel",
            *self.variables,
            *start,
            *self.body,
            *end,
            "OpFunctionEnd",
        ]
        return "\n".join(lines)

    def module(self) -> bytes:
        """The module's bytes."""
        return assemble(self.text(), self.version)

    def input(self) -> np.ndarray:
        """The bytes of `in`."""
        data = _aligned(self.in_size + ALIGNMENT, 0)
        for offset, values in self._inputs:
            data[offset : offset + values.nbytes] = values.reshape(-1).view(np.uint8)
        return data

    def output(self) -> np.ndarray:
        """`out` as it is before the kernel."""
        return _aligned(self.out_size + ALIGNMENT, 0xA5)
