"""Splits a kernel at its barriers into regions: functions without barriers that all work-items of a group run
one after the other.

A region is what can be reached from one entry (the kernel's, or the instruction behind a barrier) without
passing a barrier; blocks reachable from several entries are copied into each region. A value that is needed
behind a barrier is

- computed again at the region's entry, if that is cheap and depends only on arguments and ids (which also
  keeps its shape);
- else kept in a slot: stored where control leaves a region that has changed it, loaded where a region
  that needs it begins.

Private variables that some region leaves to another become context variables.

All work-items or none meet a barrier, says the specification. Many programs break that rule in one way, which
every GPU forgives: work-items beyond the end of the data return before the first barrier. Where a barrier is
not provably met by all, a slot tells each region which work-items have returned.
"""

from __future__ import annotations

from ...spirv.enums import Op, StorageClass
from ...spirv.module import Argument, Block, Constant, Function, Instruction, Kind, Undef, Value, Variable
from ..analysis.shape import analyse_group, analyse_shapes
from ..ir.dominance import DominatorTree, dominators
from ..ir.instructions import (
    ADDRESS,
    GROUP_OPERATIONS,
    PURE,
    append,
    is_boundary,
    is_by_value,
    predecessors,
    users,
)  # fmt: skip
from ..ir.layout import size_of
from ..ir.lcssa import close_loops
from ..ir.ops import REGION_END, PassOp
from ..ir.plan import KernelPlan, PlanOptions, PrivateVariable, Region, Slot
from ..ir.plan_summary import variable_alignment
from ..ir.remarks import BARRIER
from ..ir.shapes import ShapeInfo
from ..lower.collectives import Once, lower_collectives
from ..scalar.simplify import simplify
from .regions import RegionMaker

MAX_RECOMPUTE = 10  # instructions that may be repeated per region instead of keeping a value

_CASTS = frozenset((Op.Bitcast, Op.CopyObject, Op.PtrCastToGeneric, Op.GenericCastToPtr))
_CHEAP = frozenset((
    Op.IAdd, Op.ISub, Op.IMul, Op.SNegate, Op.ShiftLeftLogical, Op.ShiftRightLogical, Op.ShiftRightArithmetic,
    Op.BitwiseAnd, Op.BitwiseOr, Op.BitwiseXor, Op.Not, Op.UConvert, Op.SConvert, Op.CompositeExtract,
    Op.CompositeConstruct, Op.Select, Op.IEqual, Op.INotEqual, Op.ULessThan, Op.ULessThanEqual,
    Op.UGreaterThan, Op.UGreaterThanEqual, Op.SLessThan, Op.SLessThanEqual, Op.SGreaterThan,
    Op.SGreaterThanEqual, Op.LogicalAnd, Op.LogicalOr, Op.LogicalNot, Op.LogicalEqual, Op.LogicalNotEqual,
    Op.ConvertPtrToU, Op.ConvertUToPtr,
)) | ADDRESS | _CASTS  # fmt: skip
_POINTERS = ADDRESS | _CASTS | {Op.Phi, Op.Select}  # what makes pointers of pointers


def note_boundaries(function: Function, options: PlanOptions, what: str) -> None:
    """Tells who wants to know what becomes of the barriers."""
    remarks = options.remarks
    if remarks is None:
        return
    for block in function.blocks:
        for i in block.instructions:
            if is_boundary(i):
                remarks.control(i, what)


def has_boundary(function: Function) -> bool:
    """Whether a function has a barrier that the work-items of a group wait at, or a collective operation."""
    for block in function.blocks:
        for instruction in block.instructions:
            op = instruction.op
            if op is Op.ControlBarrier or op in GROUP_OPERATIONS:
                return True
    return False


def split_at_barriers(function: Function, plan: KernelPlan) -> None:
    """Fills in the regions, slots and private variables of the plan. The function is used up."""
    note_boundaries(function, plan.options, BARRIER)
    _Splitter(function, plan).run()


def common_stride(shapes: ShapeInfo, values: list[Instruction]) -> int | None:
    """The stride that all the values have, or None."""
    strides = {shapes.stride(v) for v in values}
    (stride,) = strides if len(strides) == 1 else (None,)
    return None if isinstance(stride, tuple) or not shapes.private.isdisjoint(values) else stride


class _Splitter:
    def __init__(self, function: Function, plan: KernelPlan) -> None:
        self.function = function
        self.plan = plan
        self.types = plan.module.types
        self.entries: list[Block] = []  # of the regions of work-items
        self.next_region: dict[Block, int] = {}  # block that ends in a boundary: the region that follows
        self.live_in: dict[Block, list[Instruction]] = {}
        self.slot_of: dict[Instruction, Slot] = {}
        self.cost: dict[Value, int | None] = {}
        self.private_of: dict[Instruction, PrivateVariable] = {}

    def run(self) -> None:
        function, plan = self.function, self.plan
        drop_small_barriers(function)
        close_loops(function, self.types)
        shapes = analyse_shapes(function, plan.options)
        plan.assumes_small_ids |= shapes.assumes_small_ids
        group = analyse_group(function)
        boundaries = lower_collectives(
            function, self.types, plan.slots, plan.module.address_bits, group.influenced
        )
        drop_redundant_barriers(function, boundaries)
        self.some_may_return = any(is_boundary(i) for block in group.influenced for i in block.instructions)
        once = self.cut(boundaries)
        members = [self.reachable(entry) for entry in self.entries]
        self.number(members, once)
        self.find_live_values()
        self.choose_slots(shapes, group)
        self.place_variables(members)
        for index, (entry, blocks) in enumerate(zip(self.entries, members, strict=True)):
            plan.regions.append(RegionMaker(self, index, entry, blocks).make())
        self.finish_once(once)
        if self.some_may_return:
            self.remember_returns()

    def remember_returns(self) -> None:
        """Work-items that have returned do nothing in later regions, and have no say in what they are."""
        types = self.types
        bool_ = types.bool()
        slot = self.plan.returned = Slot(len(self.plan.slots), bool_, name="returned")
        self.plan.slots.append(slot)
        for region in self.plan.regions:
            if region.once:
                continue
            function = region.function
            exits = [b for b in function.blocks if b.terminator.op is PassOp.RegionExit]
            if any(b.terminator.operands[0] != REGION_END for b in exits):
                for block in exits:
                    if block.terminator.operands[0] == REGION_END:
                        store = Instruction(
                            PassOp.SlotStore, None, [slot, types.constant(bool_, True)], block
                        )
                        block.instructions.insert(-1, store)
            first = function.blocks[0]
            if region.index == 0:
                store = Instruction(PassOp.SlotStore, None, [slot, types.constant(bool_, False)], first)
                first.instructions.insert(0, store)
                continue
            head, leave = Block(function, "returned"), Block(function, "leave")
            returned = append(head, PassOp.SlotLoad, bool_, [slot])
            loads = [i for i in first.instructions if i.op is PassOp.SlotLoad]
            for load in loads:
                load.block = head
            head.instructions += loads
            first.instructions = [i for i in first.instructions if i.op is not PassOp.SlotLoad]
            append(head, Op.BranchConditional, None, [returned, leave, first])
            append(leave, PassOp.RegionExit, None, [REGION_END])
            function.blocks[:0] = [head, leave]

    def cut(self, boundaries: dict[Instruction, Once]) -> dict[Block, Once]:
        """Ends blocks at boundaries; entries[k] is where region k begins. Returns {block: Once}."""
        function = self.function
        self.entries = [function.blocks[0]]
        once: dict[Block, Once] = {}
        blocks = []
        for block in function.blocks:
            blocks.append(block)
            while True:
                instructions = block.instructions
                at = next((i for i, x in enumerate(instructions) if is_boundary(x)), None)
                if at is None:
                    break
                rest = Block(function, block.name)
                rest.instructions = instructions[at + 1 :]
                for instruction in rest.instructions:
                    instruction.block = rest
                for successor in rest.successors():
                    for phi in successor.phis():
                        phi.operands = [rest if o is block else o for o in phi.operands]
                boundary = instructions[at]
                block.instructions = instructions[:at]
                append(block, Op.Branch, None, [rest])
                if boundary in boundaries:
                    once[block] = boundaries[boundary]
                if rest.instructions[0].op is Op.Return and block not in once:
                    self.next_region[block] = REGION_END
                    block.instructions[-1] = rest.instructions[0]
                    rest.instructions[0].block = block
                    break
                self.next_region[block] = len(self.entries)
                self.entries.append(rest)
                blocks.append(rest)
                block = rest
        function.blocks = blocks
        return once

    def reachable(self, entry: Block) -> list[Block]:
        """The blocks of a region, in the order of the function."""
        seen = {entry}
        work = [entry]
        while work:
            block = work.pop()
            if block in self.next_region:
                continue
            for successor in block.successors():
                if successor not in seen:
                    seen.add(successor)
                    work.append(successor)
        return [b for b in self.function.blocks if b in seen]

    def number(self, members: list[list[Block]], once: dict[Block, Once]) -> None:
        """Regions that no region leads to are left out; regions that run once come last."""
        used = [0]
        for index in used:
            for block in members[index]:
                following = self.next_region.get(block, REGION_END)
                if following != REGION_END and following not in used:
                    used.append(following)
        used.sort()
        new = {old: i for i, old in enumerate(used)}
        self.entries = [self.entries[i] for i in used]
        members[:] = [members[i] for i in used]
        alive = {b for blocks in members for b in blocks}
        self.function.blocks = [b for b in self.function.blocks if b in alive]
        self.next_region = {b: new.get(i, REGION_END) for b, i in self.next_region.items() if b in alive}
        for block in [b for b in once if b not in alive]:
            del once[block]
        # A block with a Once exits to that region, which exits to the one that the block went on to.
        self.once_next: dict[Block, int] = {}
        for i, block in enumerate(once):
            self.once_next[block] = self.next_region[block]
            self.next_region[block] = len(self.entries) + i

    def find_live_values(self) -> None:
        """live_in of every region entry: the instructions whose values are needed there or later."""
        blocks = self.function.blocks
        index: dict[Instruction, int] = {}
        values: list[Instruction] = []
        uses: dict[Block, int] = {}
        defined: dict[Block, int] = {}
        at_end: dict[Block, int] = dict.fromkeys(blocks, 0)
        for block in blocks:
            made = 0
            for instruction in block.instructions:
                if instruction.type is not None and instruction.type.kind is not Kind.VOID:
                    made |= 1 << len(values)
                    index[instruction] = len(values)
                    values.append(instruction)
            defined[block] = made
        for block in blocks:
            used = 0
            for instruction in block.instructions:
                operands = instruction.operands
                if instruction.op is Op.Phi:
                    for i in range(0, len(operands), 2):
                        if type(operands[i]) is Instruction and operands[i + 1] in at_end:
                            at_end[operands[i + 1]] |= 1 << index[operands[i]]
                    continue
                for operand in operands:
                    if type(operand) is Instruction:
                        used |= 1 << index[operand]
            uses[block] = used & ~defined[block]
        live = dict.fromkeys(blocks, 0)
        before = predecessors(self.function)
        work = list(blocks)
        pending = set(work)
        while work:
            block = work.pop()
            pending.discard(block)
            out = at_end[block]
            for successor in block.successors():
                out |= live[successor]
            new = uses[block] | (out & ~defined[block])
            if new != live[block]:
                live[block] = new
                for predecessor in before[block]:
                    if predecessor not in pending:
                        pending.add(predecessor)
                        work.append(predecessor)
        for entry in self.entries:
            bits = live[entry]
            found = []
            while bits:
                low = bits & -bits
                found.append(values[low.bit_length() - 1])
                bits ^= low
            self.live_in[entry] = found

    def recompute_cost(self, value: Value) -> int | None:
        """How many instructions compute the value from arguments, constants and ids; None if too many."""
        if not isinstance(value, Instruction):
            return 0 if isinstance(value, (Argument, Constant, Variable, Undef)) else 1
        if value in self.cost:
            return self.cost[value]
        self.cost[value] = None  # also for phis: they are not computed again
        op = value.op
        total: int | None = None
        if op is Op.Variable:
            total = 0
        elif op in _CHEAP:
            total = 0 if op in _CASTS or op is Op.CompositeExtract else 1
            for operand in value.operands:
                if isinstance(operand, Value):
                    cost = self.recompute_cost(operand)
                    total = None if cost is None or total is None else total + cost
        elif op is Op.Load and self.is_invariant_load(value):
            total = 0  # ids and arguments are at hand in every region
        if total is not None and total > MAX_RECOMPUTE:
            total = None
        self.cost[value] = total
        return total

    def is_invariant_load(self, load: Instruction) -> bool:
        """A load of a built-in input, or of a by-value argument (which is only read)."""
        pointer = load.operands[0]
        while isinstance(pointer, Instruction) and (pointer.op in _CASTS or pointer.op in ADDRESS):
            if any(isinstance(o, Instruction) for o in pointer.operands[1:]):
                return False
            pointer = pointer.operands[0]
        if load.memory is not None and load.memory.volatile:
            return False
        if isinstance(pointer, Variable):
            return pointer.type.storage is StorageClass.Input
        return isinstance(pointer, Argument) and is_by_value(pointer)

    def choose_slots(self, shapes: ShapeInfo, group: ShapeInfo) -> None:
        crossing = dict.fromkeys(v for entry in self.entries for v in self.live_in[entry])
        webs = self.join_phis([v for v in crossing if self.recompute_cost(v) is None])
        for web in webs:
            stride = common_stride(shapes, web)
            part_stride = common_stride(shapes.across, web) if shapes.across is not None else None
            uniform = stride == 0 and all(group.is_uniform(v) for v in web)
            name = next((v.name for v in web if v.name), "")
            line = next((v.line for v in web if v.line is not None), None)
            slot = Slot(len(self.plan.slots), web[0].type, uniform, stride, part_stride, name, line)
            self.plan.slots.append(slot)
            for value in web:
                self.slot_of[value] = slot

    def join_phis(self, values: list[Instruction]) -> list[list[Instruction]]:
        """Values that share a slot: a phi and what flows into it, if no two are needed at once."""
        needed: dict[Instruction, set[int]] = {v: set() for v in values}  # at which entries
        for index, entry in enumerate(self.entries):
            for value in self.live_in[entry]:
                if value in needed:
                    needed[value].add(index)
        web_of = {v: [v] for v in values}
        for phi in values:
            if phi.op is not Op.Phi:
                continue
            for operand in phi.operands[::2]:
                web, other = web_of[phi], web_of.get(operand)
                if other is None or other is web or not needed[web[0]].isdisjoint(needed[other[0]]):
                    continue
                needed[web[0]] |= needed[other[0]]
                web += other
                for value in other:
                    web_of[value] = web
        return list({id(web): web for web in web_of.values()}.values())

    def place_variables(self, members: list[list[Block]]) -> None:
        """Decides which private variables live across regions."""
        variables = [i for i in self.function.blocks[0].instructions if i.op is Op.Variable]
        if not variables:
            return
        tree = dominators(self.function)
        regions_of: dict[Block, list[int]] = {}
        for index, blocks in enumerate(members):
            for block in blocks:
                regions_of.setdefault(block, []).append(index)
        recurring = self.recurring_regions(members)
        used_by = users(self.function)
        for variable in variables:
            if self.is_local_to_region(variable, used_by, regions_of, recurring, tree):
                continue
            type_ = variable.type.element
            private = PrivateVariable(
                len(self.plan.private_variables),
                type_,
                size_of(type_),
                variable_alignment(variable),
                None,
                variable.name,
            )
            self.plan.private_variables.append(private)
            self.private_of[variable] = private

    def recurring_regions(self, members: list[list[Block]]) -> set[int]:
        """Regions that a group may run more than once."""
        after = {
            i: {
                self.once_next.get(b, self.next_region[b])
                for b in blocks
                if b in self.next_region and self.once_next.get(b, self.next_region[b]) != REGION_END
            }
            for i, blocks in enumerate(members)
        }
        result = set()
        for start in after:
            seen: set[int] = set()
            work = list(after[start])
            while work:
                region = work.pop()
                if region not in seen:
                    seen.add(region)
                    work.extend(after[region])
            if start in seen:
                result.add(start)
        return result

    def is_local_to_region(
        self,
        variable: Instruction,
        used_by: dict[Value, list[Instruction]],
        regions_of: dict[Block, list[int]],
        recurring: set[int],
        tree: DominatorTree[Block],
    ) -> bool:
        """True if the variable's content never matters after the region that sets it."""
        derived, work = {variable}, [variable]
        while work:
            for user in used_by.get(work.pop(), ()):
                if user.op in _POINTERS and user not in derived:
                    derived.add(user)
                    work.append(user)
        used: set[int] = set()
        starts: list[Block] = []
        uses: list[Block] = []
        for pointer in derived:
            for user in used_by.get(pointer, ()):
                op = user.op
                if op is Op.LifetimeStart:
                    starts.append(user.block)
                    continue
                if op is Op.LifetimeStop or user in derived and op is not Op.Phi:
                    continue
                if op not in (Op.Load, Op.Store, Op.CopyMemory, Op.CopyMemorySized, Op.Phi):
                    return False
                if op is Op.Store and user.operands[1] in derived:
                    return False
                used.update(regions_of[user.block])
                uses.append(user.block)
        if len(used) > 1:
            return False
        if not used & recurring:
            return True
        region = next(iter(used))
        return any(
            regions_of[start] == [region] and all(tree.dominates(start, use) for use in uses)
            for start in starts
        )

    def finish_once(self, once: dict[Block, Once]) -> None:
        for block, made in once.items():
            following = self.once_next[block]
            append(made.end, PassOp.RegionExit, None, [following])
            simplify(made.function, self.types)
            index = len(self.plan.regions)
            successors = () if following == REGION_END else (following,)
            self.plan.regions.append(Region(index, made.function, True, successors, ShapeInfo()))


def drop_small_barriers(function: Function) -> None:
    """Barriers among one work-item, which is what a sub-group is here."""
    for block in function.blocks:
        block.instructions = [
            i for i in block.instructions if i.op is not Op.ControlBarrier or is_boundary(i)
        ]


def drop_redundant_barriers(function: Function, boundaries: dict[Instruction, Once]) -> None:
    """Of two barriers with no memory access between them in one block, one is enough."""
    harmless = PURE | {PassOp.SlotStore, PassOp.SlotLoad}
    for block in function.blocks:
        dropped = set()
        previous = None
        for instruction in block.instructions:
            if is_boundary(instruction):
                if previous is not None:
                    if instruction not in boundaries:
                        dropped.add(instruction)
                        continue
                    if previous not in boundaries:
                        dropped.add(previous)
                previous = instruction
            elif instruction.op not in harmless and not _reads_input(instruction):
                previous = None
        if dropped:
            block.instructions = [i for i in block.instructions if i not in dropped]


def _reads_input(instruction: Instruction) -> bool:
    return (
        instruction.op is Op.Load
        and isinstance(instruction.operands[0], Variable)
        and instruction.operands[0].type.storage is StorageClass.Input
    )
