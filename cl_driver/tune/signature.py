"""What a kernel's launches need: which arguments can be made up, and which somebody must give.

A buffer is as large as the launch accesses it, where the compiler can tell (bounds.py). Numbers are not
guessed: they may decide how much is accessed, and how long a kernel runs.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..compiler.pipeline import Prepared
from ..passes.traffic.prepare import account_of
from ..spirv import reflect
from ..spirv.enums import BuiltIn, Op, StorageClass
from ..spirv.module import Kind, Type, Value
from .bounds import UnknownError, accessed

_LEAST = 64  # bytes of a buffer
_PER_ITEM = "*items"
_LOCAL_IDS = frozenset((BuiltIn.LocalInvocationId, BuiltIn.LocalInvocationIndex, BuiltIn.WorkgroupSize))
_FLOATS = {16: "e", 32: "f", 64: "d"}


class MissingError(Exception):
    """What has to be given, or given otherwise: a line for each argument."""


class Argument(NamedTuple):
    """size: bytes of a buffer or of local memory, of the latter for each work-item of a group if per_item;
    data: of a number, else None; why: of the size, in words."""

    number: int
    name: str
    kind: int
    size: int
    data: bytes | None = None
    per_item: bool = False
    why: str = ""


def arguments_of(
    program: Prepared,
    kernel: str,
    given: Mapping[str, str],
    global_size: Sequence[int],
    local_sizes: Sequence[Sequence[int]],
) -> list[Argument]:
    """All arguments, for launches of all of these local sizes. given: texts by the names of arguments.
    MissingError."""
    args = program.reflections[kernel].args
    names = [argument.name or f"arg{index}" for index, argument in enumerate(args)]
    wrong = [
        f"{kernel} has no argument {name}; it has {', '.join(names)}" for name in given if name not in names
    ]
    made: list[Argument] = []
    buffers: list[int] = []
    for index, (name, argument) in enumerate(zip(names, args, strict=True)):
        try:
            if argument.kind == reflect.VALUE:
                made.append(
                    Argument(index, name, argument.kind, argument.size, _number(name, argument, given))
                )
            elif argument.kind == reflect.LOCAL:
                made.append(_local(index, name, given))
            elif argument.kind != reflect.GLOBAL:
                raise MissingError(
                    f"{name} is {argument.type_name or 'no buffer and no number'}, which cannot be made up: "
                    "profile a program that has one (cl-driver run --profile)"
                )
            elif name in given:
                size = _bytes(name, given[name])
                made.append(Argument(index, name, argument.kind, size, why="as given"))
            else:
                buffers.append(index)
        except MissingError as error:
            wrong.append(str(error))
    if wrong:
        raise MissingError("\n".join(wrong))
    values = {a.number: _signed(a.data) for a in made if a.data is not None and a.size in (1, 2, 4, 8)}
    values = {i: v for i, v in values.items() if args[i].type.kind is Kind.INT}
    if buffers:
        made += _sized(program, kernel, names, buffers, values, global_size, local_sizes)
    return sorted(made)


def _sized(
    program: Prepared,
    kernel: str,
    names: list[str],
    buffers: list[int],
    values: Mapping[int, int],
    global_size: Sequence[int],
    local_sizes: Sequence[Sequence[int]],
) -> list[Argument]:
    """Buffers that nobody gave a size of."""
    point = program.plain_points.get(kernel) or program.entry_points[kernel]
    account = account_of(program.module, point)
    ends = dict.fromkeys(buffers, 0)
    unknown = [i for i in buffers if program.reflections[kernel].args[i].constant]  # no account has these
    try:
        for local in local_sizes:
            found = accessed(account, _three(global_size), _three(local), values)
            for index, (first, end) in found.items():
                if first < 0:
                    raise MissingError(f"{names[index]} is accessed {-first} bytes before its beginning")
                if index in ends:
                    ends[index] = max(ends[index], end)
    except UnknownError:
        unknown = buffers
    if unknown:
        raise MissingError(
            "\n".join(
                f"how large {names[i]} is depends on more than the compiler can tell: --arg {names[i]}=BYTES"
                for i in unknown
            )
        )
    why = "by what the launch accesses"
    return [Argument(i, names[i], reflect.GLOBAL, max(_LEAST, ends[i]), why=why) for i in buffers]


def _three(sizes: Sequence[int]) -> list[int]:
    return [*sizes, 1, 1][:3]


def _signed(data: bytes) -> int:
    return int.from_bytes(data, "little", signed=len(data) >= 4)


def _number(name: str, argument: reflect.ArgReflection, given: Mapping[str, str]) -> bytes:
    type_, what = argument.type, argument.type_name or "a number"
    if type_.kind not in (Kind.INT, Kind.FLOAT):
        raise MissingError(f"{name} is {what} by value, which cannot be given: only numbers can")
    if name not in given:
        raise MissingError(f"the value of {name} ({what}) is not known: --arg {name}=NUMBER")
    try:
        if type_.kind is Kind.FLOAT:
            return struct.pack(f"<{_FLOATS[type_.width]}", float(given[name]))
        number, bits = int(given[name], 0), 8 * argument.size
        if not -(1 << bits - 1) <= number < 1 << bits:
            raise ValueError
        return (number & ((1 << bits) - 1)).to_bytes(argument.size, "little")
    except (ValueError, OverflowError, KeyError):
        raise MissingError(f"'{given[name]}' is no {what}, as {name} is") from None


def _bytes(name: str, text: str) -> int:
    try:
        size = int(text, 0)
    except ValueError:
        size = 0
    if size < 1:
        raise MissingError(f"'{text}' is no number of bytes, which {name} needs: --arg {name}=BYTES")
    return size


def _local(index: int, name: str, given: Mapping[str, str]) -> Argument:
    text = given.get(name)
    if text is None:
        raise MissingError(
            f"how many bytes of local memory {name} has is not known: --arg {name}=BYTES, or "
            f"--arg {name}=BYTES{_PER_ITEM} for so many times the work-items of a group"
        )
    size = _bytes(name, text.removesuffix(_PER_ITEM))
    return Argument(index, name, reflect.LOCAL, size, None, text.endswith(_PER_ITEM), "as given")


def may_fit_one_size(program: Prepared, kernel: str) -> bool:
    """Whether a kernel has memory that may be made for one local size: local memory, or private arrays where
    it asks for ids of its group."""
    has_arrays = asks = False
    for function in reflect.called(program.entry_points[kernel].function):
        for block in function.blocks:
            for i in block.instructions:
                values = [o for o in (i, *i.operands) if isinstance(o, Value)]
                if any(_is_in(v.type, StorageClass.Workgroup) for v in values):
                    return True
                has_arrays |= i.op is Op.Variable and _is_array(i.type)
                asks |= any(getattr(v, "builtin", None) in _LOCAL_IDS for v in values)
    return has_arrays and asks


def _is_in(type_: Type | None, storage: StorageClass) -> bool:
    return type_ is not None and type_.kind is Kind.POINTER and type_.storage == storage


def _is_array(type_: Type | None) -> bool:
    return type_ is not None and type_.kind is Kind.POINTER and type_.element.kind is Kind.ARRAY
