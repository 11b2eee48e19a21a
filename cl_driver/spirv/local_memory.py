"""How much local memory kernels need for the variables that they and the functions they call declare."""

from __future__ import annotations

from collections.abc import Iterator

from .enums import Decoration, StorageClass
from .errors import LimitError
from .layout import alignment_of, size_of
from .link import plain_name
from .module import ConstantExpr, EntryPoint, Function, Module, Operand, Variable
from .reflect import called

_MOST_NAMES = 4  # in a message


def check(module: Module, limit: int) -> None:
    """Refuses kernels that no launch could give their local memory. LimitError.

    limit: CL_DEVICE_LOCAL_MEM_SIZE. What arguments take on top of it is for launches to check.
    """
    if any(variable.type.storage == StorageClass.Workgroup for variable in module.variables):
        for entry in module.entry_points:
            _kernel(entry, limit)


def _kernel(entry: EntryPoint, limit: int) -> None:
    users: dict[Variable, Function] = {}  # the first function that has each variable
    for function in called(entry.function):
        for variable in used_variables(function):
            users.setdefault(variable, function)
    total = 0
    for variable in users:
        (asked,) = variable.decorations.get(Decoration.Alignment, (0,))
        alignment = max(alignment_of(variable.type.element), asked)
        total = -(-total // alignment) * alignment + size_of(variable.type.element)
    if total <= limit:
        return
    largest = sorted(users, key=lambda v: -size_of(v.type.element))
    names = [_described(variable, users[variable]) for variable in largest[:_MOST_NAMES]]
    if len(largest) > _MOST_NAMES:
        names.append(f"and {len(largest) - _MOST_NAMES} more")
    raise LimitError(
        largest[0].offset,
        f"kernel '{entry.name}'",
        f"{total} bytes of local memory, of which the device has {limit}: {', '.join(names)}",
    )


def _described(variable: Variable, function: Function) -> str:
    name, where = variable.name, plain_name(function)
    return f"'{name.removeprefix(where + '.')}' of {size_of(variable.type.element)} bytes in '{where}'"


def used_variables(function: Function) -> Iterator[Variable]:
    """The Workgroup variables that the instructions of a function name."""
    for block in function.blocks:
        for instruction in block.instructions:
            for operand in instruction.operands:
                yield from _variables(operand)


def _variables(operand: Operand) -> Iterator[Variable]:
    if isinstance(operand, Variable):
        if operand.type.storage == StorageClass.Workgroup:
            yield operand
    elif isinstance(operand, ConstantExpr):
        for inner in operand.operands:
            yield from _variables(inner)
