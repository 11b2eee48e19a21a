"""Atomics whose results nobody uses, on one place in memory for all work-items of a launch.

What the work-items of a call of the kernel add (or: and, or, exclusive or, least, greatest) is gathered in
registers and comes to memory at the end of the call, in one atomic. A call has many groups, so other threads
hardly ever have to wait for the cache line, and the loop over the work-items has no jumps.

Relaxed atomics to one place may come in any order, those of one thread's work-items together too. What could
tell: something that a work-item does after its atomic and that reads or writes the same place or puts the
atomic in order before something else. So behind it in a work-item's way there must be no fence or other
atomic, and no access to global memory that is not known to be elsewhere. The host, and devices that share
atomics with it, see memory change earlier than at the end of a call, so scopes wider than a device are left
alone. Integers only: another order of additions rounds differently, and no order gives sums of partial sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ...fast_typing import NamedTuple
from ...passes.analysis.roots import is_restrict, roots
from ...passes.ir.instructions import ACROSS_LANES, ADDRESS, PURE, is_arithmetic
from ...passes.ir.ops import REGION_END, PassOp
from ...passes.ir.plan import KernelPlan, Region
from ...spirv.enums import Op, Scope, StorageClass
from ...spirv.module import Argument, Block, Constant, Instruction, Value
from ..access.emitter import AccessEmitter
from ..llvm.forms import MANGLED
from ..llvm.registry import LOWERINGS
from ..llvm.types import ir_type

# Operation: LLVM's name for vector.reduce and atomicrmw, and the neutral element in so many bits.
COMBINED: dict[Op, tuple[str, Callable[[int], int]]] = {
    Op.AtomicIAdd: ("add", lambda bits: 0),
    Op.AtomicISub: ("add", lambda bits: 0),
    Op.AtomicIIncrement: ("add", lambda bits: 0),
    Op.AtomicIDecrement: ("add", lambda bits: 0),
    Op.AtomicAnd: ("and", lambda bits: -1),
    Op.AtomicOr: ("or", lambda bits: 0),
    Op.AtomicXor: ("xor", lambda bits: 0),
    Op.AtomicSMin: ("smin", lambda bits: (1 << bits - 1) - 1),
    Op.AtomicSMax: ("smax", lambda bits: -1 << bits - 1),
    Op.AtomicUMin: ("umin", lambda bits: -1),
    Op.AtomicUMax: ("umax", lambda bits: 0),
}
ATOMICRMW = {"smin": "min", "smax": "max"}

_HARMLESS = PURE | ACROSS_LANES | {
    Op.Branch, Op.BranchConditional, Op.Switch, Op.Variable, Op.Nop, Op.Unreachable, Op.AssumeTrueKHR,
    PassOp.RegionExit, PassOp.SlotLoad, PassOp.SlotStore,
}  # fmt: skip
_ARITHMETIC = ADDRESS | {
    Op.Bitcast, Op.CopyObject, Op.SConvert, Op.UConvert, Op.IAdd, Op.ISub, Op.IMul, Op.ShiftLeftLogical,
    Op.BitwiseAnd, Op.BitwiseOr, Op.BitwiseXor,
}  # fmt: skip
_ELSEWHERE = frozenset((  # no global memory
    StorageClass.Workgroup, StorageClass.Function, StorageClass.Private, StorageClass.UniformConstant,
    StorageClass.Input,
))  # fmt: skip


class Gathered(NamedTuple):
    """An atomic that is gathered: memory of the total, how it is combined, its type, what changes nothing."""

    total: str
    name: str
    t: str
    identity: str


class AtomicReductions:
    """The atomics of a kernel that come to memory at the end of a call, and what they have come to."""

    def __init__(self, plan: KernelPlan) -> None:
        self._plan = plan
        self._found: dict[Instruction, bool] = {}  # atomic: whether it is gathered
        self._gathered: dict[Instruction, Gathered] = {}

    def allow(self, e: AccessEmitter, i: Instruction) -> bool:
        """Whether an atomic is gathered."""
        if i not in self._found:
            self._found[i] = not self._plan.orders_memory and self._is_relaxed(i) and self._is_last(e, i)
        return self._found[i]

    def _is_relaxed(self, i: Instruction) -> bool:
        pointer, scope = i.operands[:2]
        if pointer.type.storage != StorageClass.CrossWorkgroup or not _is_of_launch(pointer):
            return False
        return isinstance(scope, Constant) and (scope.value or 0) != Scope.CrossDevice

    def _is_last(self, e: AccessEmitter, i: Instruction) -> bool:
        """Whether nothing that follows in a work-item's way can tell when the atomic comes to memory."""
        if e.is_used(i):
            return False
        region = next(r for r in self._plan.regions if i.block in r.function.blocks)
        behind = i.block.instructions[i.block.instructions.index(i) + 1 :]
        if not all(self._cannot_tell(e, i, other, True) for other in behind):
            return False
        seen: set[Block] = set()
        rest, regions = list(i.block.successors()), _exits([i.block])
        while rest:
            block = rest.pop()
            if block in seen:
                continue
            seen.add(block)
            rest += block.successors()
            if not all(self._cannot_tell(e, i, other, True) for other in block.instructions):
                return False
        regions |= _exits(seen)
        return all(
            self._cannot_tell(e, i, other, False)
            for other_region in self._reachable(regions, region)
            for block in other_region.function.blocks
            for other in block.instructions
        )

    def _reachable(self, indices: set[int], region: Region) -> list[Region]:
        by_index = {r.index: r for r in self._plan.regions}
        seen: set[int] = set()
        while indices:
            index = indices.pop()
            if index not in seen:
                seen.add(index)
                indices |= _exits(by_index[index].function.blocks)
        return [by_index[index] for index in sorted(seen)]

    def _cannot_tell(self, e: AccessEmitter, i: Instruction, other: Instruction, same_region: bool) -> bool:
        """same_region: no barrier is between the two, so that `restrict` speaks of them (llvm/alias.py)."""
        op = other.op
        if op in _HARMLESS or is_arithmetic(other):
            return True
        if op in COMBINED:  # the same operation commutes with itself, wherever it is
            return same_region and not e.is_used(other) and COMBINED[op][0] == COMBINED[i.op][0]
        if op not in (Op.Load, Op.Store):
            return False
        pointer = other.operands[0]
        if pointer.type.storage in _ELSEWHERE:
            return True
        mine, others = roots(i.operands[0]), roots(pointer)
        if not same_region or not mine or not others or mine & others:
            return False
        return all(map(is_restrict, mine)) or all(map(is_restrict, others))

    # Code.

    def gather(self, e: AccessEmitter, i: Instruction, values: str) -> None:
        """Combines the total with `values`, a `<W x iN>` that has the identity where a lane takes no part."""
        name, neutral = COMBINED[i.op]
        t = ir_type(i.type)
        if i not in self._gathered:
            total, identity = e.alloca(e.form(t), 64), str(neutral(i.type.width))
            e.prologue.append(f"  store {e.form(t)} {e.form.splat(t, identity)}, ptr {total}")
            self._gathered[i] = Gathered(total, name, t, identity)
        total = self._gathered[i].total
        old = e.emit(f"load {e.form(t)}, ptr {total}")
        e.emit_void(f"store {e.form(t)} {combine(e, name, t, old, values)}, ptr {total}")

    def finish(self, e: AccessEmitter) -> None:
        """At the end of a call: to memory, where there is anything to be done."""
        for i, (total, name, t, identity) in self._gathered.items():
            vector = e.emit(f"load {e.form(t)}, ptr {total}")
            sum_ = reduce(e, name, t, vector)
            body, after = e.new_label("total"), e.new_label("totalled")
            is_any = e.emit(f"icmp ne {t} {sum_}, {identity}")
            e.emit_void(f"br i1 {is_any}, label %{body}, label %{after}")
            e.begin_block(body)
            address = _again(e, i.operands[0])
            e.emit(f"atomicrmw {ATOMICRMW.get(name, name)} ptr {address}, {t} {sum_} monotonic")
            e.emit_void(f"br label %{after}")
            e.begin_block(after)


def _again(e: AccessEmitter, value: Value) -> str:
    """A value that follows from the arguments, computed where the call ends."""
    if isinstance(value, Instruction):
        for operand in value.operands:
            _again(e, operand)
        LOWERINGS[value.op](e, value)
    return e.operand(value)


def reduce(e: AccessEmitter, name: str, t: str, values: str) -> str:
    """All lanes combined."""
    suffix = e.form.suffix(MANGLED[t])
    return e.emit(f"call {t} @llvm.vector.reduce.{name}.{suffix}({e.form(t)} {values})")


def combine(e: AccessEmitter, name: str, t: str, a: str, b: str) -> str:
    """Two vectors combined lane by lane."""
    if name in ("add", "and", "or", "xor"):
        return e.emit(f"{name} {e.form(t)} {a}, {b}")
    return e.intrinsic(name, e.form, t, a, b)


def _exits(blocks: Iterable[Block]) -> set[int]:
    """Regions that work-items go on to at the ends of blocks."""
    ends = [b.terminator for b in blocks if b.terminator.op == PassOp.RegionExit]
    return {end.operands[0] for end in ends} - {REGION_END}


def _is_of_launch(value: Value) -> bool:
    """Whether a value follows from the arguments of the kernel alone."""
    if isinstance(value, (Argument, Constant)):
        return True
    if not isinstance(value, Instruction) or value.op not in _ARITHMETIC:
        return False
    return all(map(_is_of_launch, value.operands))
