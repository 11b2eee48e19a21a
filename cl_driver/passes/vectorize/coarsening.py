"""Copies what differs between parts: vectors of work-items that are executed together (coarsening).

After linearise.py control flow is the same in all lanes of all parts, so parts need no code but copies of the
instructions whose values, masks or effects differ between them, each beside the original: the work of all
parts is done before the next instruction's, loads of values that all parts share are done once, and chains of
dependent instructions of several parts run side by side.

The original belongs to part 0, ShapeInfo.part_of says which part a copy is of. The shapes of a copy are those
of the original. An integer that is affine from part to part is not computed again but by an addition.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...spirv.enums import Op
from ...spirv.module import Function, Instruction, Kind, Operand, Value
from ...spirv.types import TypeTable
from ..ir.instructions import PURE, TERMINATORS, clone_instruction
from ..ir.ops import PassOp
from ..ir.shapes import ShapeInfo
from ..scalar.simplify import remove_dead_code
from .coarsening_cse import share

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# What happens as often as it is executed though nobody may use a result.
_ONCE = frozenset((Op.Nop, Op.MemoryBarrier, Op.ControlBarrier, Op.AssumeTrueKHR))


def copy_parts(function: Function, types: TypeTable, shapes: ShapeInfo, parts: int) -> None:
    """Changes a linearised region in place, and adds the copies to its shapes."""
    _Copier(function, types, shapes, parts).run()
    remove_dead_code(function)
    share(function, shapes)


class _Copier:
    def __init__(self, function: Function, types: TypeTable, shapes: ShapeInfo, parts: int) -> None:
        self.function = function
        self.types = types
        self.shapes = shapes
        self.parts = range(1, parts)
        self.copies: dict[Value, list[Instruction]] = {}  # of parts 1 and up
        self.clones: list[tuple[int, Instruction]] = []  # those whose operands are yet to be replaced
        self.any_part: dict[Value, Value] = {}  # a mask: where it is true in any part

    def run(self) -> None:
        for block in self.function.blocks:
            block.instructions = self.copied(block.instructions)
        for part, clone in self.clones:
            clone.operands = [self.of_part(o, part) for o in clone.operands]
            clone.mask = self.of_part(clone.mask, part)
        wanted = dict.fromkeys(self.shared_masks())
        for block in self.function.blocks:
            block.instructions = self.with_unions(block.instructions, wanted)
        for block in self.function.blocks:
            for i in block.instructions:
                self.share_mask(i)

    # Copies

    def copied(self, instructions: list[Instruction]) -> list[Instruction]:
        """The instructions of a block with the copies behind them, phis first."""
        phis: list[Instruction] = []
        rest: list[Instruction] = []
        for i in instructions:
            out = phis if i.op is Op.Phi else rest
            out.append(i)
            if not self.differs(i):
                continue
            step = self.step(i)
            if step is None:
                self.copies[i] = [self.clone(i, part) for part in self.parts]
                out += self.copies[i]
            else:
                self.copies[i] = [self.moved(i, step * part, part) for part in self.parts]
                rest += self.copies[i]
        return phis + rest

    def differs(self, i: Instruction) -> bool:
        """Whether the parts need instructions of their own."""
        if i.op in TERMINATORS or i.op in _ONCE or i.op is PassOp.AnyLane:
            return False
        if i.type is not None and i.type.kind is not Kind.VOID:
            return self.shapes.is_part_dependent(i)
        if i.op is not Op.Store and not (i.op is PassOp.SlotStore and i.operands[0].uniform):
            return True
        values = [o for o in (*i.operands, i.mask) if isinstance(o, Instruction)]
        return any(self.shapes.is_part_dependent(value) for value in values)

    def step(self, i: Instruction) -> int | None:
        """What to add for the next part, where that is all."""
        assert self.shapes.across is not None  # there are parts
        stride = self.shapes.across.stride(i)
        is_integer = i.type is not None and i.type.kind is Kind.INT
        if not is_integer or type(stride) is not int or i.mask is not None:
            return None
        return stride if i.op in PURE or i.op is Op.Load else None

    def clone(self, i: Instruction, part: int) -> Instruction:
        copy = clone_instruction(i, i.operands, i.block)
        self.clones.append((part, copy))
        return self.note(i, copy, part)

    def moved(self, i: Instruction, distance: int, part: int) -> Instruction:
        number = self.types.integer(i.type.width, distance)
        return self.note(i, Instruction(Op.IAdd, i.type, [i, number], i.block, i.name), part)

    def note(self, i: Instruction, copy: Instruction, part: int) -> Instruction:
        shapes = self.shapes
        shapes.part_of[copy] = part
        if i in shapes.strides:
            shapes.strides[copy] = shapes.strides[i]
        if i in shapes.private:
            shapes.private.add(copy)
        return copy

    def of_part(self, value: Operand, part: int) -> Any:
        found = self.copies.get(value) if isinstance(value, Instruction) else None
        return value if found is None else found[part - 1]

    # Masks of what is done once for all parts

    def shared_masks(self) -> Iterator[Instruction]:
        """Masks that differ between parts of instructions that are done once."""
        for block in self.function.blocks:
            for i in block.instructions:
                if i in self.copies or i in self.shapes.part_of:
                    continue
                mask = i.operands[0] if i.op is PassOp.AnyLane else i.mask
                if isinstance(mask, Instruction) and mask in self.copies:
                    yield mask

    def with_unions(
        self, instructions: list[Instruction], wanted: dict[Instruction, None]
    ) -> list[Instruction]:
        """The instructions of a block with the unions of the masks that it defines."""
        result: list[Instruction] = []
        pending: list[Instruction] = []  # masks that all parts' copies have yet to be seen of
        last = {self.copies[mask][-1]: mask for mask in wanted}
        for i in instructions:
            if pending and i.op is not Op.Phi:
                for mask in pending:
                    result += self.union(mask)
                pending = []
            result.append(i)
            if i in last:
                if i.op is Op.Phi:
                    pending.append(last[i])
                else:
                    result += self.union(last[i])
        return result

    def union(self, mask: Instruction) -> list[Instruction]:
        """The instructions that make a mask of the lanes that are in it in any part."""
        if mask.op is PassOp.EntryMask:  # the first part has all the lanes that any has
            self.any_part[mask] = mask
            return []
        made: list[Instruction] = []
        total: Value = mask
        for copy in self.copies[mask]:
            total = Instruction(Op.LogicalOr, mask.type, [total, copy], mask.block)
            self.shapes.strides[total] = self.shapes.stride(mask)
            made.append(total)
        self.any_part[mask] = total
        return made

    def share_mask(self, i: Instruction) -> None:
        if i in self.copies or i in self.shapes.part_of:
            return
        if i.op is PassOp.AnyLane:
            i.operands = [self.any_part.get(i.operands[0], i.operands[0])]
        elif i.mask is not None:
            i.mask = self.any_part.get(i.mask, i.mask)
