"""A small assembler, so that tests can write modules down. The syntax is that of spirv-as: one instruction
per line, `%name` for ids, enumerants by name (masks joined by |), strings in quotes, numbers for literals."""

from __future__ import annotations

import re
import struct

from cl_driver.spirv.enums import Op, OpenCLStd
from cl_driver.spirv.tables import ENUMS, ID_KINDS, MASK_KINDS, ROWS, VALUE_KINDS, parameters

# What the device of the tests has in any case.
CAPABILITIES = """
OpCapability Addresses
OpCapability Kernel
OpCapability Linkage
OpCapability Int8
OpCapability Int16
OpCapability Int64
OpCapability Float64
OpCapability Vector16
OpCapability GenericPointer
"""

SCALARS = """
%void = OpTypeVoid
%bool = OpTypeBool
%i8 = OpTypeInt 8 0
%i16 = OpTypeInt 16 0
%i32 = OpTypeInt 32 0
%i64 = OpTypeInt 64 0
%f32 = OpTypeFloat 32
%f64 = OpTypeFloat 64
"""


def constants(type_: str = "i32", **values: int) -> str:
    """Constants of a type of SCALARS, by their names."""
    return "".join(f"%{name} = OpConstant %{type_} {value}\n" for name, value in values.items())


PREAMBLE = f"""{CAPABILITIES}
OpCapability Groups
OpCapability Float16
%std = OpExtInstImport "OpenCL.std"
OpMemoryModel Physical64 OpenCL
"""

TYPES = f"""{SCALARS}
%v4i32 = OpTypeVector %i32 4
%v4f32 = OpTypeVector %f32 4
%gi32 = OpTypePointer CrossWorkgroup %i32
%gf32 = OpTypePointer CrossWorkgroup %f32
%pi32 = OpTypePointer Function %i32
%fn_void = OpTypeFunction %void
%fn_gi32 = OpTypeFunction %void %gi32
%fn_i32_i32 = OpTypeFunction %i32 %i32
%c0 = OpConstant %i32 0
%c1 = OpConstant %i32 1
%c2 = OpConstant %i32 2
%c7 = OpConstant %i32 7
%true = OpConstantTrue %bool
"""

KERNEL = (
    PREAMBLE
    + """
OpEntryPoint Kernel %k "k"
"""
    + TYPES
    + """
%k = OpFunction %void None %fn_gi32
%p = OpFunctionParameter %gi32
%entry = OpLabel
BODY
OpReturn
OpFunctionEnd
"""
)

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\S+')


def _string(text: str) -> list[int]:
    data = text.encode() + b"\0"
    data += b"\0" * (-len(data) % 4)
    return list(struct.unpack(f"<{len(data) // 4}I", data))


class _Assembler:
    def __init__(self):
        self.ids: dict[str, int] = {}
        self.widths: dict[int, int] = {}
        self.types: dict[int, int] = {}

    def id(self, name: str) -> int:
        assert name.startswith("%"), name
        return self.ids.setdefault(name, len(self.ids) + 1)

    def line(self, line: str) -> list[int]:
        tokens = _TOKEN.findall(line)
        result = None
        if len(tokens) > 1 and tokens[1] == "=":
            result = self.id(tokens[0])
            tokens = tokens[2:]
        op = Op[tokens[0].removeprefix("Op")]
        tokens, words, kinds = tokens[1:], [], [(o.kind, o.quantifier) for o in ROWS[op].operands]
        type_ = 0
        while kinds:
            kind, quantifier = kinds.pop(0)
            if kind == "IdResult":
                words.append(result)
                self.types[result] = type_
                continue
            if not tokens:
                continue
            if quantifier == "*":
                kinds.insert(0, (kind, "*"))
            if kind.startswith("Pair"):
                parts = {
                    "PairIdRefIdRef": ["IdRef", "IdRef"],
                    "PairLiteralIntegerIdRef": ["Switch", "IdRef"],
                    "PairIdRefLiteralInteger": ["IdRef", "LiteralInteger"],
                }[kind]
                kinds[:0] = [(part, "") for part in parts]
                continue
            token = tokens.pop(0)
            if kind == "IdResultType":
                type_ = self.id(token)
                words.append(type_)
            elif kind in ID_KINDS:
                # Some instructions of OpenCL.std have literals where the grammar of OpExtInst says ids.
                words.append(int(token) if op == Op.ExtInst and token.isdigit() else self.id(token))
            elif kind == "LiteralString":
                words += _string(token[1:-1].replace('\\"', '"').replace("\\n", "\n"))
            elif kind == "LiteralExtInstInteger":
                words.append(int(token) if token.isdigit() else OpenCLStd[token])
            elif kind == "LiteralSpecConstantOpInteger":
                words.append(Op[token])
                kinds = [(o.kind, o.quantifier) for o in ROWS[Op[token]].operands if "IdResult" not in o.kind]
            elif kind in ("LiteralContextDependentNumber", "Switch"):
                width = self.widths.get(type_ if kind != "Switch" else self.types.get(words[0], 0), 32)
                value = self.number(token, width, type_)
                words += [value >> k & 0xFFFFFFFF for k in range(0, width, 32)]
            elif kind in VALUE_KINDS:
                value = int(token) if token.isdigit() else ENUMS[kind][token]
                words.append(value)
                kinds[:0] = [tuple(o) for o in parameters(kind, value)]
            elif kind in MASK_KINDS:
                value = 0
                for name in token.split("|"):
                    value |= ENUMS[kind][name + "_" if name == "None" else name]
                words.append(value)
                kinds[:0] = [tuple(o) for o in parameters(kind, value)]
            else:
                words.append(int(token, 0) & 0xFFFFFFFF)
        assert not tokens, f"left over in {line!r}: {tokens}"
        if op in (Op.TypeInt, Op.TypeFloat):
            self.widths[words[0]] = words[1]
        return [len(words) + 1 << 16 | op, *words]

    def number(self, token: str, width: int, type_: int) -> int:
        if re.fullmatch(r"-?(\d+|0x[0-9a-fA-F]+)", token):
            return int(token, 0) & ((1 << width) - 1)
        return int.from_bytes(struct.pack({16: "<e", 32: "<f", 64: "<d"}[width], float(token)), "little")


def assemble(text: str, version: tuple[int, int] = (1, 4), big_endian: bool = False) -> bytes:
    """The module's bytes."""
    assembler = _Assembler()
    body: list[int] = []
    for line in text.splitlines():
        line = line.split(";", 1)[0].strip()
        if line:
            body += assembler.line(line)
    words = [0x07230203, version[0] << 16 | version[1] << 8, 0, len(assembler.ids) + 1, 0, *body]
    return struct.pack(f"{'>' if big_endian else '<'}{len(words)}I", *words)


def kernel(body: str, more: str = "") -> bytes:
    """A module with one kernel `k(global int *p)` of that body; more: declarations after the types."""
    text = KERNEL.replace("BODY", body)
    if more:
        text = text.replace("%k = OpFunction", more + "\n%k = OpFunction")
    return assemble(text)
