"""OpenCL.std instructions that touch memory, printf, and the look-up of all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..passes.ir.layout import size_of
from ..spirv.enums import OpenCLStd
from ..spirv.instruction_sets import ASSERTION
from ..spirv.module import Instruction, Kind, Type
from . import numbers as n
from .core import scalar_of
from .memory import Datum, InterpreterError, Memory
from .opencl_std import RULES, rule

if TYPE_CHECKING:
    from .machine import Machine


def _address(
    machine: Machine, instruction: Instruction, offset: int, pointer: int, pointer_index: int, step: int
) -> int:
    offset_type = instruction.operands[pointer_index - 1].type
    return n.mask(pointer + n.signed(offset, offset_type.width) * step, 64)


@rule("vloadn")
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    offset, pointer = operands[:2]
    element, count = instruction.type.element, instruction.type.count
    size = size_of(element)
    at = _address(machine, instruction, offset, pointer, 3, size * count)
    return tuple(machine.memory.load(element, at + i * size) for i in range(count))


@rule("vstoren")
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> None:
    data, offset, pointer = operands
    element = instruction.operands[2].type.element
    size = size_of(element)
    at = _address(machine, instruction, offset, pointer, 4, size * len(data))
    for i, value in enumerate(data):
        machine.memory.store(element, at + i * size, value)


def _half_at(machine: Machine, address: int) -> float:
    return n.float_from_bits(int.from_bytes(machine.memory.view(address, 2), "little"), 16)


@rule("vload_half")
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    return _half_at(machine, _address(machine, instruction, operands[0], operands[1], 3, 2))


@rule("vload_halfn", "vloada_halfn")
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    count = instruction.type.count
    aligned = instruction.operands[1] is OpenCLStd.vloada_halfn
    step = 2 * (4 if aligned and count == 3 else count)
    at = _address(machine, instruction, operands[0], operands[1], 3, step)
    return tuple(_half_at(machine, at + 2 * i) for i in range(count))


@rule("vstore_half", "vstore_half_r", "vstore_halfn", "vstore_halfn_r", "vstorea_halfn", "vstorea_halfn_r")
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> None:
    data, offset, pointer, *mode = operands
    data = data if isinstance(data, tuple) else (data,)
    aligned = instruction.operands[1] in (OpenCLStd.vstorea_halfn, OpenCLStd.vstorea_halfn_r)
    step = 2 * (4 if aligned and len(data) == 3 else len(data))
    at = _address(machine, instruction, offset, pointer, 4, step)
    for i, value in enumerate(data):
        half = n.round_float(value, 16, int(mode[0]) if mode else n.RTE)
        machine.memory.view(at + 2 * i, 2)[:] = n.float_to_bits(half, 16).to_bytes(2, "little")


@rule("prefetch")
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    return None


@rule("printf")
def _(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    types = [o.type for o in instruction.operands[3:]]
    if instruction.operands[0] == ASSERTION:
        expression = machine.memory.string(operands[0]).decode("latin-1")
        raise InterpreterError(f"Assertion `{expression}` failed")
    if not operands[0]:
        return -1 & 0xFFFFFFFF
    machine.printed.append(format_printf(machine.memory, operands[0], types, operands[1:]))
    return 0


def format_printf(memory: Memory, format_address: int, types: list[Type], values: list[Datum]) -> str:
    """The text that a printf prints (OpenCL C 6.15.14.2). InterpreterError for a format without an end."""
    text = memory.string(format_address).decode("latin-1")
    result, i = [], 0
    arguments = iter(zip(types, values, strict=True))
    while i < len(text):
        if text[i] != "%":
            result.append(text[i])
            i += 1
            continue
        j = i + 1
        while j < len(text) and text[j] not in "diouxXcspfFeEgGaA%":
            j += 1
        if j == len(text):
            raise InterpreterError(f"printf format without an end: {text!r}")
        spec, conversion = text[i + 1 : j], text[j]
        i = j + 1
        if conversion == "%":
            result.append("%")
            continue
        flags = spec.split("v")[0].rstrip("hl")
        type_, value = next(arguments)
        parts = value if type_.kind is Kind.VECTOR else (value,)
        result.append(",".join(_format(memory, flags, conversion, scalar_of(type_), v) for v in parts))
    return "".join(result)


def _format(memory: Memory, flags: str, conversion: str, type_: Type, value: Datum) -> str:
    if conversion == "s":
        return f"%{flags}s" % memory.string(value).decode("latin-1")
    if conversion == "c":
        byte: int = value & 0xFF
        return f"%{flags}c" % byte
    if conversion == "p":
        return f"%{flags}s" % hex(value)
    if conversion in "di":
        return f"%{flags}d" % n.signed(value, type_.width)
    if conversion in "aA":
        return float(value).hex()
    shown: str = f"%{flags}{conversion}" % value
    return shown


def run_instruction(machine: Machine, instruction: Instruction, operands: list[Datum]) -> Datum:
    """One OpExtInst of OpenCL.std; operands without set and number. InterpreterError for unknown numbers."""
    number = instruction.operands[1]
    found = RULES.get(number)
    if found is None:
        raise InterpreterError(f"OpenCL.std instruction {number} is not known to the interpreter")
    return found(machine, instruction, operands)
