"""Copies of bytes of private memory become loads and stores of elements where that lets the memory of all
lanes lie together, as private_arrays.py does it, though its address is passed to functions that stay calls.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...spirv.enums import Op, StorageClass
from ...spirv.module import Function, Instruction, Kind, Value
from ...spirv.types import TypeTable
from ..analysis.private_uses import PrivateUses, Uses
from ..ir.instructions import int_value, is_constant_int, users
from .copies import Copy, expand_copy
from .simplify import simplify
from .sroa import MAX_PIECES


def expand_passed_copies(functions: Sequence[Function], types: TypeTable) -> None:
    """functions: those that stay calls, and who calls them. Changes them in place."""
    own = set(functions)
    uses = PrivateUses(lambda function: (function, function.arguments) if function in own else None)
    for function in functions:
        of: dict[Value, Uses] = {}  # by all pointers that are made of a variable or parameter
        for origin in _origins(function):
            found = uses.of(function, origin)
            of |= dict.fromkeys(found.pointers, found)
        copies = dict.fromkeys(copy for found in of.values() for copy in found.copies)
        sizes = {copy: _element(copy, of) for copy in copies}
        if any(sizes.values()):
            used_by = users(function)
            for copy, size in sizes.items():
                if size:
                    count = int_value(copy.operands[2])
                    pieces = dict.fromkeys(range(0, count, size), types.int(8 * size))
                    expand_copy(Copy(copy, 0, count, True), pieces, types, used_by)
            simplify(function, types)


def _origins(function: Function) -> list[Value]:
    variables = [i for block in function.blocks for i in block.instructions if i.op is Op.Variable]
    pointers = [a for a in function.arguments if a.type.kind is Kind.POINTER]
    return [*variables, *(a for a in pointers if a.type.storage is StorageClass.Function)]


def _element(copy: Instruction, of: dict[Value, Uses]) -> int:
    """The size of the elements to copy, 0 where the bytes are better left as they are."""
    sizes = set()
    for pointer in copy.operands[:2]:
        if pointer in of:
            found = of[pointer]
            if found.why or found.sizes:
                size, _ = found.element
                sizes.add(size)
        elif pointer.type.storage is StorageClass.Function:
            return 0
    size = sizes.pop() if len(sizes) == 1 else 0
    count = int_value(copy.operands[2]) if is_constant_int(copy.operands[2]) else 0
    return size if size and count % size == 0 and 0 < count <= size * MAX_PIECES else 0
