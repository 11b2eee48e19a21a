"""What every pass needs to know of instructions, and the few edits of functions that several passes make."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...fast_typing import Any
from ...spirv.enums import Decoration, FunctionParameterAttribute, Op, Scope
from ...spirv.module import (
    Argument,
    Block,
    Constant,
    Function,
    Instruction,
    Kind,
    MemoryAccess,
    Operand,
    Type,
    Value,
    Variable,
)
from ...spirv.tables import of_class
from .ops import PassOp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias, TypeGuard

TERMINATORS = frozenset((
    Op.Branch, Op.BranchConditional, Op.Switch, Op.Return, Op.ReturnValue, Op.Unreachable, Op.Kill,
    PassOp.RegionExit,
))  # fmt: skip

# Instructions that compute a value from their operands and do nothing else.
PURE = frozenset(
    [op for op in Op if 77 <= op <= 84 or 109 <= op <= 205]
    + [Op.AccessChain, Op.InBoundsAccessChain, Op.PtrAccessChain, Op.InBoundsPtrAccessChain, Op.PtrEqual]
    + [Op.PtrNotEqual, Op.PtrDiff, Op.SizeOf, Op.GenericPtrMemSemantics, Op.Phi, Op.Undef]
    + [Op.SDot, Op.UDot, Op.SUDot, Op.SDotAccSat, Op.UDotAccSat, Op.SUDotAccSat]
    + [Op.ExpectKHR, Op.ConvertFToBF16INTEL, Op.ConvertBF16ToFINTEL]
    + [PassOp.PrivatePointer, PassOp.GroupItems, PassOp.EntryMask, PassOp.AnyLane, PassOp.FlushDenormals]
    + [PassOp.AnyLaneOfPart, PassOp.FirstItem]
)

# Pure, but not to be moved: values of control flow, and divisions, which trap.
STAY = frozenset((
    Op.Phi, Op.Undef, Op.UDiv, Op.SDiv, Op.UMod, Op.SRem, Op.SMod, PassOp.AnyLane, PassOp.EntryMask,
    PassOp.AnyLaneOfPart, PassOp.PrivatePointer, PassOp.GroupItems,
))  # fmt: skip

# Asynchronous copies, all, any, broadcasts, reductions and scans of work-groups and sub-groups.
GROUP_OPERATIONS = frozenset(op for op in Op if 259 <= op <= 271 or 6401 <= op <= 6408)

# A comparison of the same integers in the other order, and one that is true where the first is false.
SWAPPED = {
    Op.SLessThan: Op.SGreaterThan, Op.SLessThanEqual: Op.SGreaterThanEqual, Op.ULessThan: Op.UGreaterThan,
    Op.ULessThanEqual: Op.UGreaterThanEqual,
}  # fmt: skip
SWAPPED |= {b: a for a, b in SWAPPED.items()} | {op: op for op in (Op.IEqual, Op.INotEqual)}
NEGATED = {
    Op.SLessThan: Op.SGreaterThanEqual, Op.SLessThanEqual: Op.SGreaterThan,
    Op.ULessThan: Op.UGreaterThanEqual, Op.ULessThanEqual: Op.UGreaterThan,
}  # fmt: skip
NEGATED |= {b: a for a, b in NEGATED.items()}

ADDRESS = frozenset((Op.AccessChain, Op.InBoundsAccessChain, Op.PtrAccessChain, Op.InBoundsPtrAccessChain))

# OpenCL.std instructions that write through a pointer, print, or hint.
EXTINST_PRINTF = 184
EXTINST_PREFETCH = 185
EXTINST_WITH_EFFECT = frozenset((
    30, 31, 36, 45, 52, 58,  # fract frexp lgamma_r modf remquo sincos
    172, 175, 176, 177, 178, 180, 181,  # vstore...
    EXTINST_PRINTF, EXTINST_PREFETCH,
))  # fmt: skip
EXTINST_LOADS = frozenset((171, 173, 174, 179))  # vload...

# Operations on the lanes of a sub-group: they must stay where they are, but do nothing else.
ACROSS_LANES = frozenset((PassOp.Active, PassOp.Ballot, PassOp.ReadLane, PassOp.Permute, PassOp.LaneShuffle))

ATOMICS = of_class("Atomic")

# Atomics that combine an integer with what is in memory, in any order of the work-items.
INTEGER_ATOMICS = frozenset((
    Op.AtomicIAdd, Op.AtomicISub, Op.AtomicIIncrement, Op.AtomicIDecrement, Op.AtomicAnd, Op.AtomicOr,
    Op.AtomicXor, Op.AtomicSMin, Op.AtomicSMax, Op.AtomicUMin, Op.AtomicUMax,
))  # fmt: skip

# Reads that may be left out when nobody uses the result.
REMOVABLE = PURE | ACROSS_LANES | {Op.Load, Op.Variable, PassOp.SlotLoad, PassOp.SlotLoadItem}


def reads_builtin(instruction: Instruction) -> bool:
    """True for a load of a built-in variable, of which a work-item always reads the same."""
    variable = instruction.operands[0] if instruction.op is Op.Load else None
    return isinstance(variable, Variable) and variable.builtin is not None


def is_removable(instruction: Instruction) -> bool:
    """True if an instruction whose result nobody uses may be left out."""
    op = instruction.op
    if op is Op.ExtInst:
        return instruction.operands[1] not in EXTINST_WITH_EFFECT
    if op in REMOVABLE:
        return instruction.memory is None or not instruction.memory.volatile
    return False


def is_arithmetic(instruction: Instruction) -> bool:
    """True for functions of OpenCL.std that compute a value from their operands and do nothing else."""
    return instruction.op is Op.ExtInst and instruction.operands[1] not in EXTINST_WITH_EFFECT | EXTINST_LOADS


def is_extinst(instruction: Instruction, number: int) -> bool:
    """Whether an instruction is the one of OpenCL.std with this number."""
    return instruction.op is Op.ExtInst and instruction.operands[1] == number


# What stands in a copy of some blocks for these, and for their instructions.
Copies: TypeAlias = dict[Any, Any]


def predecessors(function: Function) -> dict[Block, list[Block]]:
    """The predecessors of every block, in the order of the blocks, without repeats."""
    result: dict[Block, list[Block]] = {block: [] for block in function.blocks}
    for block in function.blocks:
        last = block.instructions[-1]
        if last.op is Op.Branch:  # as most are
            result[last.operands[0]].append(block)
            continue
        for successor in block.successors():
            result[successor].append(block)
    return result


def reverse_postorder(function: Function) -> list[Block]:
    """The reachable blocks, every one before its successors but along back edges."""
    order = []
    entry = function.blocks[0]
    seen = {entry}
    stack = [(entry, iter(entry.successors()))]
    while stack:
        block, successors = stack[-1]
        for successor in successors:
            if successor not in seen:
                seen.add(successor)
                stack.append((successor, iter(successor.successors())))
                break
        else:
            order.append(block)
            stack.pop()
    order.reverse()
    return order


def block_times(function: Function, trips: float) -> Iterable[tuple[Block, float]]:
    """Each block and how often it may be executed: what is between the ends of a jump back is a loop."""
    times = dict.fromkeys(function.blocks, 1.0)
    places = {block: place for place, block in enumerate(function.blocks)}
    for place, block in enumerate(function.blocks):
        for start in (places[b] for b in block.successors() if places[b] <= place):
            for inside in function.blocks[start : place + 1]:
                times[inside] *= trips
    return times.items()


def phi_count(block: Block) -> int:
    """How many instructions of a block are phis: where what follows them begins."""
    return sum(1 for _ in block.phis())


def clone_instruction(instruction: Instruction, operands: list[Operand], block: Block) -> Instruction:
    """A copy of an instruction with other operands, not yet put into the block."""
    copy = Instruction(instruction.op, instruction.type, operands, block, instruction.name)
    copy.decorations = instruction.decorations
    copy.memory = instruction.memory
    copy.line = instruction.line
    copy.offset = instruction.offset
    copy.mask = instruction.mask
    return copy


def copy_function(function: Function) -> Function:
    """A copy that shares nothing with the original but what it calls, and module-scope values."""
    new = Function(function.type, function.name, function.control)
    new.decorations = function.decorations
    values: Copies = {}
    for argument in function.arguments:
        values[argument] = copy = Argument(argument.type, argument.index, argument.name)
        copy.decorations = argument.decorations
        new.arguments.append(copy)
    for block in function.blocks:
        values[block] = Block(new, block.name)
        values[block].loop_control = block.loop_control
    for block in function.blocks:
        copy = values[block]
        for i in block.instructions:
            values[i] = made = clone_instruction(i, i.operands, copy)
            copy.instructions.append(made)
        new.blocks.append(copy)
    for block in new.blocks:
        for i in block.instructions:
            i.operands = [values.get(o, o) for o in i.operands]
    return new


def append(
    block: Block,
    op: Op,
    type_: Type | None = None,
    operands: Iterable[Operand] = (),
    memory: MemoryAccess | None = None,
) -> Instruction:
    """Puts a new instruction at the end of a block."""
    instruction = Instruction(op, type_, operands, block)
    instruction.memory = memory
    block.instructions.append(instruction)
    return instruction


def substitute(function: Function, replacement: Mapping[Any, Value]) -> None:
    """Replaces values by others in all operands; chains of replacements are followed."""
    if not replacement:
        return

    def final(value: Value) -> Value:
        while value in replacement:
            value = replacement[value]
        return value

    flat = {value: final(value) for value in replacement}
    get, are_others = flat.get, flat.keys().isdisjoint
    for block in function.blocks:
        for instruction in block.instructions:
            if not are_others(instruction.operands):
                instruction.operands = [get(o, o) for o in instruction.operands]
            if instruction.mask is not None:
                instruction.mask = get(instruction.mask, instruction.mask)


def replace_instructions(function: Function, replacement: Mapping[Any, Value]) -> bool:
    """Replaces instructions by other values and takes them out. True if there were any."""
    if not replacement:
        return False
    substitute(function, replacement)
    for block in function.blocks:
        block.instructions = [i for i in block.instructions if i not in replacement]
    return True


def remove_phi_edge(block: Block, predecessor: Block) -> None:
    """Takes the operands for one predecessor out of the phis of a block."""
    for phi in block.phis():
        operands = phi.operands
        kept = []
        for i in range(0, len(operands), 2):
            if operands[i + 1] is not predecessor:
                kept += operands[i : i + 2]
        phi.operands = kept


def rename_phi_edge(block: Block, old: Block, new: Block) -> None:
    """Says in the phis of a block that what came from `old` comes from `new`."""
    for phi in block.phis():
        phi.operands = [new if o is old else o for o in phi.operands]


def replace_successor(block: Block, old: Block, new: Block) -> None:
    """Redirects the edges of a block's terminator; the phis are the caller's business."""
    terminator = block.terminator
    terminator.operands = [new if o is old else o for o in terminator.operands]


def remove_unreachable_blocks(function: Function) -> bool:
    """Drops blocks that no path reaches, and their edges in phis. The order becomes reverse postorder."""
    order = reverse_postorder(function)
    changed = len(order) != len(function.blocks)
    if changed:
        alive = set(order)
        for block in function.blocks:
            if block not in alive:
                for successor in block.successors():
                    if successor in alive:
                        remove_phi_edge(successor, block)
    function.blocks = order
    return changed


def users(function: Function) -> dict[Value, list[Instruction]]:
    """The instructions that use each value (an instruction that uses it twice is listed twice)."""
    result: dict[Value, list[Instruction]] = {}
    get = result.get
    for block in function.blocks:
        for instruction in block.instructions:
            for operand in instruction.operands:
                if isinstance(operand, Value):
                    found = get(operand)
                    if found is None:
                        result[operand] = [instruction]
                    else:
                        found.append(instruction)
    return result


def is_constant_int(value: object) -> TypeGuard[Constant]:
    """True for integer constants with a value, OpConstantNull included."""
    return isinstance(value, Constant) and value.type.kind is Kind.INT


def int_value(constant: Constant) -> int:
    """The unsigned value of an integer constant."""
    return constant.value or 0


def is_complement(instruction: Instruction) -> bool:
    """True for ~x of an integer, in either way to write it."""
    if instruction.type.kind is not Kind.INT:
        return False
    if instruction.op is Op.Not:
        return True
    ones = instruction.operands[-1]
    is_xor = instruction.op is Op.BitwiseXor and is_constant_int(ones)
    return is_xor and int_value(ones) == (1 << instruction.type.width) - 1


def instruction_count(function: Function) -> int:
    """The instructions in all blocks of a function."""
    return sum(len(block.instructions) for block in function.blocks)


def is_id(value: object) -> TypeGuard[Instruction]:
    """Whether a value is what a load of a built-in variable gave."""
    source = value.operands[0] if isinstance(value, Instruction) and value.op is Op.Load else None
    return isinstance(source, Variable) and source.builtin is not None


def is_boundary(instruction: Instruction) -> bool:
    """True for barriers that the work-items of a group wait at for one another."""
    if instruction.op is not Op.ControlBarrier:
        return False
    scope = instruction.operands[0]
    return not (isinstance(scope, Constant) and scope.value in (Scope.Subgroup, Scope.Invocation))


def is_by_value(parameter: Argument) -> bool:
    """Whether a parameter is a pointer to a copy of its own (ByVal)."""
    attributes = parameter.decorations.get(Decoration.FuncParamAttr)
    return attributes is not None and FunctionParameterAttribute.ByVal in attributes
