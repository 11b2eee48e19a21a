"""Addresses that are chosen among several objects, by a condition or in a loop: beside each address a number
that says which object it leads into, chosen as the address is."""

from __future__ import annotations

from ...spirv.enums import Op
from ...spirv.module import Block, Function, Instruction, Value
from ...spirv.types import TypeTable
from ..analysis.roots import SAME_OBJECT, Root

NUMBER_BITS = 32


class Choices:
    """The numbers of a function's objects and addresses."""

    def __init__(self, function: Function, types: TypeTable) -> None:
        self.function = function
        self.types = types
        self._objects: dict[Root, int] = {}
        self._numbers: dict[Value, Value] = {}
        self._before: dict[Instruction, Instruction] = {}  # what is new, by what it comes before

    def object(self, root: Root) -> int:
        """The number of an object."""
        return self._objects.setdefault(root, len(self._objects))

    def number(self, pointer: Value, objects: frozenset[Root]) -> Value:
        """The number of the object that an address leads into, one of these: roots() has found no others."""
        while isinstance(pointer, Instruction) and pointer.op in SAME_OBJECT:
            pointer = pointer.operands[0]
        if pointer in objects:
            return self.types.integer(NUMBER_BITS, self.object(pointer))
        if pointer in self._numbers:
            return self._numbers[pointer]
        assert isinstance(pointer, Instruction) and pointer.op in (Op.Phi, Op.Select)
        made = Instruction(pointer.op, self.types.int(NUMBER_BITS), [], pointer.block)
        made.line = pointer.line
        self._numbers[pointer] = self._before[pointer] = made
        made.operands = [
            self.number(operand, objects)
            if isinstance(operand, Value) and _is_choice(pointer, k)
            else operand
            for k, operand in enumerate(pointer.operands)
        ]
        return made

    def insert(self) -> None:
        """Puts the numbers that were asked for into the function."""
        for block in self.function.blocks:
            if not self._before.keys().isdisjoint(block.instructions):
                self._insert(block)

    def _insert(self, block: Block) -> None:
        old, block.instructions = block.instructions, []
        for i in old:
            if i in self._before:
                block.instructions.append(self._before[i])
            block.instructions.append(i)


def _is_choice(pointer: Instruction, k: int) -> bool:
    """Whether operand k is one of the addresses that are chosen among."""
    return k % 2 == 0 if pointer.op is Op.Phi else k > 0
