"""Arrays in private memory whose length is a value (SPV_INTEL_variable_length_array), as ordinary variables.

Where the length is a constant, as a specialisation constant is, and one place does for all arrays that an
instruction makes, the array is a variable of its own. All others are parts of one variable of the kernel, a
stack: an instruction takes the next bytes, OpSaveMemoryINTEL and OpRestoreMemoryINTEL keep and restore how
many are taken. More than the stack has is an access to no memory, which faults as one of the program's own
would.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...spirv.enums import Decoration, Op, StorageClass
from ...spirv.module import Block, Constant, Function, Instruction, MemoryAccess, Type, Value
from ...spirv.types import TypeTable
from ..ir.dominance import DominatorTree, dominators
from ..ir.instructions import append, rename_phi_edge, replace_instructions
from ..ir.layout import alignment_of, size_of
from .private_initializers import put_zeros

# Bytes of arrays of a work-item whose lengths only a run knows, all together.
STACK = 64 << 10
ALIGNMENT = 128  # of the largest types
NOWHERE = 16  # an address that no process has memory at

OPS = frozenset((Op.VariableLengthArrayINTEL, Op.SaveMemoryINTEL, Op.RestoreMemoryINTEL))


def end_with_functions(functions: Iterable[Function], types: TypeTable) -> None:
    """Memory of arrays ends with the function that made them: it says so before it returns."""
    pointer = types.pointer(StorageClass.Function, types.int(8))
    for function in functions:
        if not any(
            i.op is Op.VariableLengthArrayINTEL for block in function.blocks for i in block.instructions
        ):
            continue
        first = function.blocks[0]
        saved = Instruction(Op.SaveMemoryINTEL, pointer, (), first)
        place = next(k for k, i in enumerate(first.instructions) if i.op is not Op.Variable)
        first.instructions.insert(place, saved)
        for block in function.blocks:
            if block.terminator.op in (Op.Return, Op.ReturnValue):
                restored = Instruction(Op.RestoreMemoryINTEL, None, [saved], block)
                block.instructions.insert(-1, restored)


def lower_variable_arrays(function: Function, types: TypeTable, is_zeroed: bool = False) -> None:
    """Changes a kernel whose calls are expanded. is_zeroed: arrays are zeros in the beginning."""
    _Lowering(function, types, is_zeroed).run()


class _Lowering:
    def __init__(self, function: Function, types: TypeTable, is_zeroed: bool) -> None:
        self.function = function
        self.types = types
        self.is_zeroed = is_zeroed
        self.bytes = types.pointer(StorageClass.Function, types.int(8))
        self.variables: list[Instruction] = []
        self.stack: Instruction | None = None
        self.counts: dict[Value, Value] = {}  # of OpSaveMemoryINTEL
        self.taken: Instruction  # how many bytes of the stack are

    def run(self) -> None:
        if not any(i.op in OPS for block in self.function.blocks for i in block.instructions):
            return
        arrays = [
            i for b in self.function.blocks for i in b.instructions if i.op is Op.VariableLengthArrayINTEL
        ]
        fixed = {i for i in arrays if type(i.operands[0]) is Constant and self.has_one_place(i)}
        if len(fixed) < len(arrays):
            self.make_stack()
        replaced: dict[Instruction, Value] = {}
        for block in list(self.function.blocks):
            self.lower(block, fixed, replaced)
        replace_instructions(self.function, replaced)
        entry = self.function.blocks[0]
        entry.instructions[:0] = self.variables
        for variable in self.variables:
            variable.block = entry
        zeros = self.variables if self.is_zeroed else [self.taken] if self.stack is not None else []
        put_zeros(self.function, zeros, self.types)

    def has_one_place(self, array: Instruction) -> bool:
        """Whether the memory of an array was given back whenever its instruction is executed again."""
        tree = dominators(self.function)
        saved = {
            i
            for block in self.function.blocks
            for i in block.instructions
            if i.op is Op.SaveMemoryINTEL and _comes_before(i, array, tree)
        }
        pending, seen = [(array.block, array.block.instructions.index(array) + 1)], set()
        while pending:
            block, start = pending.pop()
            for i in block.instructions[start:]:
                if i is array:
                    return False
                if i.op is Op.RestoreMemoryINTEL and i.operands[0] in saved:
                    break
            else:
                for successor in block.successors():
                    if successor not in seen:
                        seen.add(successor)
                        pending.append((successor, 0))
        return True

    def variable(self, element: Type, alignment: int = 0) -> Instruction:
        type_ = self.types.pointer(StorageClass.Function, element)
        made = Instruction(Op.Variable, type_, [StorageClass.Function])
        if alignment:
            made.decorations = {Decoration.Alignment: (alignment,)}
        self.variables.append(made)
        return made

    def make_stack(self) -> None:
        self.stack = self.variable(self.types.array(self.types.int(8), STACK), ALIGNMENT)
        self.taken = self.variable(self.types.int(64))

    def lower(self, block: Block, fixed: set[Instruction], replaced: dict[Instruction, Value]) -> None:
        current = block
        old, block.instructions = block.instructions, []
        for i in old:
            if i.op is Op.SaveMemoryINTEL:
                count = self.load(current) if self.stack is not None else self.types.integer(64, 0)
                self.counts[i] = count
                replaced[i] = append(current, Op.ConvertUToPtr, i.type, [count])
            elif i.op is Op.RestoreMemoryINTEL:
                if self.stack is not None:
                    known = self.counts.get(i.operands[0])
                    if known is None:
                        known = append(current, Op.ConvertPtrToU, self.types.int(64), i.operands)
                    self.store(current, known)
            elif i.op is not Op.VariableLengthArrayINTEL:
                i.block = current
                current.instructions.append(i)
            elif i in fixed:
                length = max(i.operands[0].value or 0, 1)
                asked = i.decorations.get(Decoration.Alignment, (0,))[0]
                array = self.variable(self.types.array(i.type.element, length), asked)
                array.name = i.name
                replaced[i] = append(current, Op.Bitcast, i.type, [array])
            else:
                current, replaced[i] = self.take(current, i)
        if current is not block:
            for successor in current.successors():
                rename_phi_edge(successor, block, current)

    def load(self, block: Block) -> Instruction:
        return append(block, Op.Load, self.types.int(64), [self.taken], MemoryAccess())

    def store(self, block: Block, count: Value) -> None:
        append(block, Op.Store, None, [self.taken, count], MemoryAccess())

    def take(self, block: Block, array: Instruction) -> tuple[Block, Instruction]:
        """The next bytes of the stack. The block to go on in, and the address."""
        types, word = self.types, self.types.int(64)
        assert self.stack is not None
        element = array.type.element
        alignment = max(alignment_of(element), array.decorations.get(Decoration.Alignment, (1,))[0])
        alignment = min(alignment, ALIGNMENT)
        length = array.operands[0]
        if length.type is not word:
            length = append(block, Op.UConvert, word, [length])
        # No more than there is, so that the product does not wrap.
        is_long = append(block, Op.UGreaterThan, types.bool(), [length, types.integer(64, STACK)])
        count = append(block, Op.Select, word, [is_long, types.integer(64, STACK + 1), length])
        size = append(block, Op.IMul, word, [count, types.integer(64, size_of(element))])
        rounded = append(block, Op.IAdd, word, [self.load(block), types.integer(64, alignment - 1)])
        start = append(block, Op.BitwiseAnd, word, [rounded, types.integer(64, -alignment)])
        end = append(block, Op.IAdd, word, [start, size])
        is_over = append(block, Op.UGreaterThan, types.bool(), [end, types.integer(64, STACK)])
        blocks = self.function.blocks
        over, after = Block(self.function, "overflow"), Block(self.function, block.name)
        append(block, Op.BranchConditional, None, [is_over, over, after])
        to_global = types.pointer(StorageClass.CrossWorkgroup, types.int(32))
        nowhere = append(over, Op.ConvertUToPtr, to_global, [types.integer(64, NOWHERE)])
        append(over, Op.Store, None, [nowhere, types.integer(32, 0)], MemoryAccess(4, volatile=True))
        append(over, Op.Branch, None, [after])
        place = blocks.index(block) + 1
        blocks[place:place] = [over, after]
        self.store(after, end)
        address = append(after, Op.AccessChain, self.bytes, [self.stack, start])
        pointer = append(after, Op.Bitcast, array.type, [address])
        pointer.name = array.name
        for made in (*block.instructions[-10:], *over.instructions, *after.instructions):
            made.line = made.line or array.line
        return after, pointer


def _comes_before(i: Instruction, other: Instruction, tree: DominatorTree[Block]) -> bool:
    if i.block is other.block:
        instructions = i.block.instructions
        return instructions.index(i) < instructions.index(other)
    return tree.dominates(i.block, other.block)
