"""What may make a kernel slow, found in its plan: each with what would have to change, and where.

All of it is what the compiler decided by: how lanes reach memory, the masks that instructions are there for,
types, and what the model of costs says of each instruction. Nothing is read from the text of the source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ..passes.cost.cpu_models import CpuModel, cycles
from ..passes.cost.estimate import Estimate
from ..passes.cost.locality import Access
from ..passes.cost.operations import (
    SCATTERED,
    STRIDED,
    is_access,
    is_local,
    place_of,
)
from ..passes.cost.region_work import RegionWork
from ..passes.ir.instructions import (
    ADDRESS,
    ATOMICS,
    EXTINST_PRINTF,
    INTEGER_ATOMICS,
    int_value,
    is_constant_int,
    is_extinst,
)
from ..passes.ir.ops import PassOp
from ..passes.ir.plan import KernelPlan
from ..passes.ir.remarks import Remarks
from ..spirv.enums import Op, OpenCLStd, StorageClass
from ..spirv.module import Argument, Constant, Instruction, Kind, Type, Value
from .what_if import Change

GATHER, STRIDE, STRUCT, ATOMIC, DIVISION, DOUBLE, CALL, DIVERGENCE, WAITING = (
    "gather", "stride", "struct", "atomic", "division", "double", "call", "divergence", "waiting",
)  # fmt: skip

_INTEGER_DIVISIONS = frozenset((Op.UDiv, Op.SDiv, Op.UMod, Op.SRem, Op.SMod))
# What to add up in: a variable, a copy in local memory, the same of work-items that take more of the work.
VARIABLE, COPY, COPY_OF_MORE = range(3)

_SUMMING = INTEGER_ATOMICS | frozenset((Op.AtomicFAddEXT, Op.AtomicFMinEXT, Op.AtomicFMaxEXT))
_MULTIPLIED = 0.3  # of what a division takes: a product with the reciprocal, or with a fixed-point one
_SLOW_CHAIN = 3  # cycles of an iteration from which on its results are waited for
_SINGLE = 0.5  # of what a vector of doubles takes: it is in twice as many registers
_SAME_STEP = frozenset((
    Op.SConvert, Op.UConvert, Op.Bitcast, Op.CopyObject, Op.PtrCastToGeneric, Op.GenericCastToPtr,
    Op.ConvertPtrToU, Op.ConvertUToPtr, Op.SNegate, PassOp.FirstItem,
))  # fmt: skip
_SUMS = frozenset((Op.IAdd, Op.ISub)) | ADDRESS
_SHIFTS = frozenset((Op.ShiftLeftLogical, Op.ShiftRightArithmetic))
_COMPARISONS = frozenset((
    Op.ULessThan, Op.SLessThan, Op.UGreaterThan, Op.SGreaterThan, Op.ULessThanEqual, Op.SLessThanEqual,
    Op.UGreaterThanEqual, Op.SGreaterThanEqual, Op.IEqual, Op.INotEqual,
))  # fmt: skip
_ORDERED = _SAME_STEP | frozenset((
    Op.IAdd, Op.ISub, Op.IMul, Op.UDiv, Op.SDiv, Op.ShiftLeftLogical, Op.ShiftRightLogical,
    Op.ShiftRightArithmetic, Op.ConvertSToF, Op.ConvertUToF, Op.ConvertFToS, Op.ConvertFToU, Op.FConvert,
    Op.FAdd, Op.FSub, Op.FMul, Op.FDiv,
))  # fmt: skip
_LOGIC = frozenset((Op.LogicalAnd, Op.LogicalOr, Op.LogicalNot, Op.Select))
_HALF_OF_ALL = 0.5  # of lanes go one of two ways that depend on data
_DEEPEST = 60


class Cause(NamedTuple):
    """kind: GATHER ... WAITING; change: without it; instructions: that have it; detail: a number or a word
    that belongs to it; spared: which share of the memory traffic that the change saves is saved indeed."""

    kind: str
    change: Change
    instructions: list[Instruction]
    detail: object = None
    spared: float = 1.0


class Weighed(NamedTuple):
    """An instruction of a plan, how often a vector of work-items executes it, and cycles that it keeps the
    busiest resource in all."""

    instruction: Instruction
    work: RegionWork
    times: float
    cycles: float


def weighed(found: Estimate, model: CpuModel) -> Iterator[Weighed]:
    """All instructions that an estimate adds up."""
    for work, visits in found.works:
        for i, times in work.times.items():
            busy = cycles(work.costs[i].slots, model)[0] * times * visits
            yield Weighed(i, work, times * visits, busy)


def causes(found: Estimate, model: CpuModel, remarks: Remarks, plan: KernelPlan) -> list[Cause]:
    """What could be better about the plan that an estimate is of. remarks: what was noted of it."""
    all_of_it = list(weighed(found, model))
    makers: tuple[Callable[[list[Weighed]], Iterator[Cause]], ...] = (
        _accesses, _divisions, _doubles, _waiting,
    )  # fmt: skip
    made = [cause for make in makers for cause in make(all_of_it)]
    return [
        *made,
        *_atomics(all_of_it, model),
        *_calls(all_of_it, plan),
        *_divergence(all_of_it, remarks),
    ]


# Memory


def _accesses(all_of_it: list[Weighed]) -> Iterator[Cause]:
    """Those whose lanes do not reach neighbours, by what the distance between lanes is made of."""
    found: dict[str, list[Instruction]] = {}
    steps: dict[str, set[int]] = {}
    touched: dict[Instruction, Access] = {}
    for i, work, times, _ in all_of_it:
        if not is_access(i) or i.op in ATOMICS or not times or work.operations.width == 1:
            continue
        pointer, index, _step = place_of(i)
        kind, stride = work.operations.how_reached(i, work.sampled_stride)
        if kind not in (STRIDED, SCATTERED) or pointer.type.storage is StorageClass.Function:
            continue
        regular = _Regular(work)
        if not (regular.of(pointer) and (index is None or regular.of(index))):
            what = GATHER
        elif _has_struct(pointer) and stride is not None and not is_local(pointer):
            what = STRUCT
        else:
            what = STRIDE
        found.setdefault(what, []).append(i)
        if i in work.followed:
            touched[i] = work.followed[i]
        if stride is not None:
            steps.setdefault(what, set()).add(abs(stride))
    for what, instructions in found.items():
        only = steps.get(what, set())
        step = only.pop() if len(only) == 1 and not (what == GATHER) else None
        spared = _unused(instructions, touched, step) if what == STRUCT else 1.0
        yield Cause(what, Change(together=frozenset(instructions)), instructions, step, spared)


def _unused(instructions: list[Instruction], touched: dict[Instruction, Access], step: int | None) -> float:
    """How much of structures nobody uses, of what is beside one member: an array for each member takes as
    much memory as its members that are used do."""
    members: dict[object, dict[int, float]] = {}
    for access in (touched[i] for i in instructions if i in touched):
        if access.offset is not None and step:
            members.setdefault(access.base, {})[access.offset % step] = access.bytes
    shares = [
        (step - min(sum(sizes.values()), step)) / (step - min(sizes.values()))
        for sizes in members.values()
        if step and min(sizes.values()) < step
    ]
    return sum(shares) / len(shares) if shares else 1.0


class _Regular:
    """Whether lanes of a value are all the same distance apart, which nobody may know before a launch."""

    def __init__(self, work: RegionWork) -> None:
        self.shapes = work.operations.shapes
        self.known: dict[Value, bool] = {}

    def of(self, value: Value, depth: int = _DEEPEST) -> bool:
        stride = self.shapes.strides.get(value, 0)
        if stride is not None and not (type(stride) is tuple and None in stride):
            return True
        if not isinstance(value, Instruction) or not depth:
            return False
        if value not in self.known:
            self.known[value] = True  # while it is looked at: what a loop adds to it decides
            self.known[value] = self._of(value, depth - 1)
        return self.known[value]

    def is_ordered(self, value: Value, depth: int = _DEEPEST) -> bool:
        """Whether it goes up, or down, with the lanes, by steps that may differ: a quotient of an id, say."""
        if self.of(value):
            return True
        if not isinstance(value, Instruction) or value.op not in _ORDERED or not depth:
            return False
        varying = [o for o in value.operands if isinstance(o, Value) and not self.shapes.is_uniform(o)]
        return len(varying) == 1 and self.is_ordered(varying[0], depth - 1)

    def _of(self, i: Instruction, depth: int) -> bool:
        op, values = i.op, [o for o in i.operands if isinstance(o, Value)]
        if op in _SUMS or op in _SAME_STEP:
            return all(self.of(o, depth) for o in values)
        if op is Op.IMul:
            return any(self.shapes.is_uniform(o) for o in values) and all(self.of(o, depth) for o in values)
        if op in _SHIFTS:
            return self.shapes.is_uniform(values[1]) and self.of(values[0], depth)
        if op is Op.BitwiseAnd:  # of size_t to uint
            masks = [int_value(o) for o in values if isinstance(o, Constant) and is_constant_int(o)]
            is_low = any(mask >= 1 << 31 and mask & (mask + 1) == 0 for mask in masks)
            return is_low and all(self.of(o, depth) for o in values)
        if op is Op.Phi:
            return all(self.of(o, depth) for o in i.operands[::2])
        return False


def _has_struct(pointer: Value) -> bool:
    """Whether an address is that of a member of a structure."""
    for _ in range(_DEEPEST):
        if pointer.type.kind is Kind.POINTER and _holds_struct(pointer.type.element):
            return True
        if not isinstance(pointer, Instruction) or not isinstance(pointer.operands[0], Value):
            return False
        pointer = pointer.operands[0]
        if pointer.type is None or pointer.type.kind is not Kind.POINTER:
            return False
    return False


def _holds_struct(type_: Type | None) -> bool:
    while type_ is not None and type_.kind is Kind.ARRAY:
        type_ = type_.element
    return type_ is not None and type_.kind is Kind.STRUCT


def _atomics(all_of_it: list[Weighed], model: CpuModel) -> Iterator[Cause]:
    """Those that add something up. What a work-item adds at one address in a loop it may add in a variable;
    what work-items add all over an array they may add in a copy in local memory, which takes no lock. Of one
    address the code adds the lanes already, and more than that is not worth a barrier. The copy's way back
    to global memory counts as nothing: work-items are to take as much as that needs."""
    factors: dict[Instruction, float] = {}
    used = {o for i, *_ in all_of_it for o in i.operands if isinstance(o, Instruction)}
    steps = set()
    for i, work, times, _ in all_of_it:
        if i.op not in _SUMMING or not times:
            continue
        pointer, operations = i.operands[0], work.operations
        now = cycles(work.costs[i].slots, model)[0]
        outside = 1.0 if i in used else work.share_outside(i, pointer)  # who wants to know needs each
        if outside < 1:
            step, then = VARIABLE, now * outside + 1 / model.issue
        elif operations.is_varying(pointer) and not is_local(pointer):
            step = COPY if work.flow.nest.innermost.get(i.block) else COPY_OF_MORE
            then = cycles(operations.atomic(i, True, SCATTERED).slots, model)[0]
        else:
            continue
        if then < now:
            factors[i] = then / now
            steps.add(step)
    if factors:
        where = "local" if all(is_local(i.operands[0]) for i in factors) else "global"
        yield Cause(ATOMIC, Change(factors), list(factors), (where, min(steps)))


# Arithmetic


def _divisions(all_of_it: list[Weighed]) -> Iterator[Cause]:
    """By what is no constant: of integers by anything, of floats by what is the same again and again."""
    found = []
    for i, work, times, _ in all_of_it:
        if not times or i.op not in _INTEGER_DIVISIONS and i.op is not Op.FDiv:
            continue
        divisor = i.operands[1]
        if isinstance(divisor, Constant):
            continue
        if i.op is not Op.FDiv or _is_invariant(divisor, work):
            found.append(i)
    if found:
        floats = all(i.op is Op.FDiv for i in found)
        yield Cause(DIVISION, Change(dict.fromkeys(found, _MULTIPLIED)), found, floats)


def _is_invariant(value: Value, work: RegionWork) -> bool:
    """Whether a value is the same for all lanes, or for all iterations of the loop that uses it."""
    return not work.operations.is_varying(value) and work.operations.width > 1 or isinstance(value, Argument)


def _doubles(all_of_it: list[Weighed]) -> Iterator[Cause]:
    """Arithmetic in double on nothing but floats and constants, whose results become floats again."""
    of_double = {i for i, _, times, _ in all_of_it if times and _is_double(i.type) and not is_access(i)}
    users: dict[Value, list[Instruction]] = {}
    for i, *_ in all_of_it:
        for o in i.operands:
            if isinstance(o, Value):
                users.setdefault(o, []).append(i)
    wrong = {i for i in of_double if not _is_of_floats(i, of_double, users)}
    pending = list(wrong)
    while pending:  # what is computed from something else, or with it, needs its precision
        i = pending.pop()
        for near in (*users.get(i, ()), *i.operands):
            if near in of_double and near not in wrong:
                wrong.add(near)
                pending.append(near)
    found = [i for i in of_double if i not in wrong and i.op is not Op.Phi]
    if any(i.op is not Op.FConvert for i in found):
        factors = {i: 0.0 if i.op is Op.FConvert else _SINGLE for i in found}
        factors |= {u: 0.0 for i in found for u in users.get(i, ()) if u.op is Op.FConvert}
        yield Cause(DOUBLE, Change(factors), found)


def _is_double(type_: Type | None) -> bool:
    if type_ is not None and type_.kind is Kind.VECTOR:
        type_ = type_.element
    return type_ is not None and type_.kind is Kind.FLOAT and type_.width == 64


def _is_of_floats(i: Instruction, of_double: set[Instruction], users: dict[Value, list[Instruction]]) -> bool:
    if i.op is Op.FConvert:
        inside = not _is_double(i.operands[0].type)
    else:
        values = [o for o in i.operands if isinstance(o, Value) and _is_double(o.type)]
        inside = all(isinstance(o, Constant) or o in of_double for o in values)
        inside &= bool(values) and not any(
            isinstance(o, Value) and o.type is not None and o.type.kind is Kind.INT for o in i.operands
        )
    bool_ = Kind.BOOL
    return inside and all(
        u in of_double or u.op is Op.FConvert or (u.type is not None and u.type.kind is bool_)
        for u in users.get(i, ())
    )


def _calls(all_of_it: list[Weighed], plan: KernelPlan) -> Iterator[Cause]:
    """Of functions of the program that are no part of the kernel's code, and of printf."""
    own = {function.name for function in plan.module.functions if function.blocks}
    called = [
        i for i, _, times, _ in all_of_it if times and i.op is Op.FunctionCall and i.operands[0].name in own
    ]
    printed = [i for i, _, times, _ in all_of_it if times and is_extinst(i, EXTINST_PRINTF)]
    for found, is_printf in ((called, False), (printed, True)):
        if found:
            yield Cause(CALL, Change(dict.fromkeys(found, 0.1)), found, is_printf)


def _waiting(all_of_it: list[Weighed]) -> Iterator[Cause]:
    """What each iteration of a loop waits for the one before."""
    found: list[Instruction] = []
    lines: list[Instruction] = []
    for work in dict.fromkeys(entry.work for entry in all_of_it):
        for loop in work.flow.nest.loops:
            if loop.children or not work.flow.mean(loop.header):
                continue
            inside = [i for block in work.flow.nest.order if block in loop.blocks for i in block.instructions]
            for phi in loop.header.phis():
                ends = {
                    v for v, b in zip(phi.operands[::2], phi.operands[1::2], strict=True) if b in loop.latches
                }
                chain = _between(phi, ends, inside)
                if sum(work.costs[i].latency for i in chain if i in work.costs) >= _SLOW_CHAIN:
                    found += chain
                    lines += [i for i in chain if i.line is not None and i.op is not Op.Phi]
    if lines:
        own = {
            *found,
            *(o for i in found for o in i.operands if isinstance(o, Instruction) and o.op is Op.Phi),
        }
        yield Cause(WAITING, Change(ready=frozenset(found)), lines, all(_adds(i, own) for i in lines))


def _adds(i: Instruction, chain: set[Instruction]) -> bool:
    """Whether an instruction of a chain adds something to what it is handed, which could as well be added to
    another sum."""
    if i.op is Op.ExtInst and i.operands[1] in (OpenCLStd.fma, OpenCLStd.mad):
        return not any(o in chain for o in i.operands[2:4])
    return i.op in (Op.FAdd, Op.FSub, Op.IAdd, Op.ISub)


def _between(phi: Instruction, ends: set[Value], inside: list[Instruction]) -> list[Instruction]:
    """What is computed from a phi and goes into its next value."""
    after = {phi}
    for i in inside:
        if i.op is not Op.Phi and any(o in after for o in i.operands):
            after.add(i)
    needed = {i for i in ends if i in after}
    for i in reversed(inside):
        if i in needed:
            needed.update(o for o in i.operands if o in after)
    return [i for i in inside if i in needed and i is not phi]


# Control flow


def _divergence(all_of_it: list[Weighed], remarks: Remarks) -> Iterator[Cause]:
    """What all lanes compute for those of a mask that depends on data, or on the id otherwise than by
    order: id < n leaves lanes out at edges only."""
    shares: dict[RegionWork, _Shares] = {}
    factors: dict[Instruction, float] = {}
    for i, work, times, _ in all_of_it:
        mask = remarks.masks.get(i)
        if mask is None or not times:
            continue
        share = shares.setdefault(work, _Shares(work)).of(mask, i)
        if share < 0.95:
            factors[i] = share
    if factors:
        yield Cause(DIVERGENCE, Change(factors), list(factors), sum(factors.values()) / len(factors))


class _Shares:
    """Which share of a vector's lanes is in a mask, where any is."""

    def __init__(self, work: RegionWork) -> None:
        self.work, self.regular = work, _Regular(work)

    def of(self, mask: Value, i: Instruction, depth: int = _DEEPEST) -> float:
        """i: the instruction, the library's own branches are not the program's."""
        if isinstance(mask, Constant):
            return 1.0 if mask.value else 0.0
        if not isinstance(mask, Instruction) or not depth or self.work.operations.shapes.is_uniform(mask):
            return 1.0
        rest = depth - 1
        operands = mask.operands
        if mask.op is PassOp.EntryMask:
            return 1.0
        if mask.op is Op.LogicalAnd:
            return self.of(operands[0], i, rest) * self.of(operands[1], i, rest)
        if mask.op is Op.LogicalOr:
            return min(1.0, self.of(operands[0], i, rest) + self.of(operands[1], i, rest))
        if mask.op is Op.Select:  # as clang has && and ||
            condition, one, other = operands
            if isinstance(other, Constant) and not other.value:
                return self.of(condition, i, rest) * self.of(one, i, rest)
            if isinstance(one, Constant) and one.value:
                return min(1.0, self.of(condition, i, rest) + self.of(other, i, rest))
        if mask.op is Op.LogicalNot:
            return self._opposite(operands[0], i, rest)
        if mask.op is Op.Phi:
            return self._of_loop(mask)
        return self._of_condition(mask, i)

    def _opposite(self, condition: Value, i: Instruction, depth: int) -> float:
        share = self.of(condition, i, depth)
        return 1.0 if share == 1.0 else 1 - share

    def _of_loop(self, phi: Instruction) -> float:
        """Of the lanes that are still in a loop. Where lanes leave it in the order of their ids, after nobody
        knows how many iterations, they leave close together."""
        for loop, trips in self.work.flow.trips.items():
            if loop.header is phi.block and (trips.is_known or not self._is_of_order(phi, set())):
                lanes, vectors = sum(trips.of_lanes), sum(trips.of_vectors)
                each = len(trips.of_lanes) / max(1, len(trips.of_vectors))
                return min(1.0, lanes / max(each * vectors, 1e-9))
        return 1.0

    def _is_of_order(self, mask: Value, seen: set[Value]) -> bool:
        """Whether a mask is made of comparisons of what differs between lanes by the same steps."""
        if not isinstance(mask, Instruction) or mask in seen or mask.op is PassOp.EntryMask:
            return True
        seen.add(mask)
        if mask.op in _COMPARISONS:
            return all(map(self.regular.is_ordered, mask.operands))
        if mask.op is Op.Phi:
            return all(self._is_of_order(o, seen) for o in mask.operands[::2])
        if mask.op in _LOGIC:
            return all(self._is_of_order(o, seen) for o in mask.operands)
        return self.work.operations.shapes.is_uniform(mask)

    def _of_condition(self, condition: Instruction, i: Instruction) -> float:
        if condition.op in _COMPARISONS and all(map(self.regular.is_ordered, condition.operands)):
            return 1.0
        if condition.line is not None and condition.line == i.line:
            return 1.0  # within a function of the library
        numbers = [n for n in self.work.flow.frame.of(condition) if isinstance(n, float)]
        return sum(numbers) / len(numbers) if numbers else _HALF_OF_ALL
