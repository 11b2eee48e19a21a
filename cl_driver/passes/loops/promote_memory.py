"""What a loop accumulates in memory is a value while it runs.

    for (k = 0; k < n; k++) c[i] += a[k] * b[k];

writes c[i] in each iteration, since a or b might lie there too. A place of which the address is the same in
each iteration, to which each iteration stores once, and that nothing else in the loop accesses, is loaded
before the loop and stored behind it. What follows then finds a loop that writes nothing.

Different variables are different places, and so is what `restrict` pointers point to. Whether the buffers of
two arguments overlap is known at launch: those of `apart` are taken to overlap no other, and who launches the
kernel has to look (KernelPlan.apart_args).

Other work-items see a place without barriers and atomics only once the kernel ends (OpenCL C 3.0, section
3.3.6), so a loop that has neither may store it late. A loop that may not store at all is left alone.
"""

from __future__ import annotations

from collections.abc import Container, Iterator

from ...spirv.enums import Op, StorageClass
from ...spirv.module import Argument, Block, Function, Instruction, Value
from ..analysis.roots import Root, is_restrict, roots
from ..ir.dominance import DominatorTree, Loop, LoopNest, dominators
from ..ir.instructions import PURE, TERMINATORS, is_arithmetic, phi_count, predecessors, substitute
from .licm import is_invariant, move_to, preheader, split_edge

_MOST = 16  # places of one function
_SHARED = (StorageClass.CrossWorkgroup, StorageClass.Workgroup)


def promote_memory(function: Function, apart: Container[Argument]) -> set[Argument]:
    """Changes a function in place, before masks are there. Returns those arguments of `apart` whose buffers
    must not overlap those of any other."""
    assumed: set[Argument] = set()
    for _ in range(_MOST):
        tree = dominators(function)
        nest = LoopNest(function, tree, predecessors(function))
        if not any(_promote_in(function, nest, loop, tree, apart, assumed) for loop in reversed(nest.loops)):
            break
    return assumed


def _promote_in(
    function: Function, nest: LoopNest, loop: Loop, tree: DominatorTree[Block], apart: Container[Argument],
    assumed: set[Argument],
) -> bool:  # fmt: skip
    """Makes one place of a loop a value, if there is one."""
    accesses: dict[Instruction, frozenset[Root]] = {}
    blocks = [block for block in function.blocks if block in loop.blocks]
    inside = {i for block in blocks for i in block.instructions}
    for i in (i for block in blocks for i in block.instructions):
        if i.op is Op.Load or i.op is Op.Store:
            storage = i.operands[0].type.storage
            if i.memory is not None and i.memory.volatile:
                return False
            if storage is StorageClass.Function or storage is StorageClass.Input:
                continue
            found = roots(i.operands[0])
            if not found:
                return False
            accesses[i] = found
        elif not (i.op in PURE or i.op in TERMINATORS or is_arithmetic(i)):
            return False
    ends = [b for b in loop.blocks if not loop.blocks.issuperset(b.successors())]
    if not ends:
        return False
    for store in [i for i in accesses if i.op is Op.Store]:
        is_always = all(tree.dominates(store.block, end) for end in (*ends, *loop.latches))
        if not is_always or nest.innermost[store.block] is not loop:
            continue
        others = _of_place(store, accesses)
        computed: dict[Instruction, None] = {}
        if others is None or not is_invariant(store.operands[0], inside, computed):
            continue
        needed = _needs(store, others, accesses)
        loads = _in_order(store, others, tree)
        if loads is None or not all(argument in apart for argument in needed):
            continue
        before = preheader(function, loop)
        if before is None:
            return False
        move_to(before, loop, list(computed))
        _promote(function, loop, before, store, *loads)
        assumed |= needed
        return True
    return False


def _of_place(store: Instruction, accesses: dict[Instruction, frozenset[Root]]) -> list[Instruction] | None:
    """The loads of the place of a store; None if something else may be of that place."""
    address, value = store.operands[:2]
    if address.type.storage not in _SHARED or len(accesses[store]) != 1:
        return None
    (root,) = accesses[store]
    same = [i for i, of in accesses.items() if root in of and i is not store]
    if any(i.op is Op.Store or i.operands[0] is not address or i.type is not value.type for i in same):
        return None
    return same


def _needs(
    store: Instruction, loads: list[Instruction], accesses: dict[Instruction, frozenset[Root]]
) -> set[Argument]:
    """What has to be assumed for nothing else to access the place of a store: no argument, or the one that it
    is of."""
    (root,) = accesses[store]
    others = {r for i, of in accesses.items() if i is not store and i not in loads for r in of}
    if not isinstance(root, Argument) or is_restrict(root):
        return set()
    if root.type.storage is StorageClass.Workgroup:  # each such argument is memory of its own
        return set()
    near = [r for r in others if isinstance(r, Argument) and r.type.storage is not StorageClass.Workgroup]
    return {root} if near else set()


def _in_order(
    store: Instruction, loads: list[Instruction], tree: DominatorTree[Block]
) -> tuple[list[Instruction], list[Instruction]] | None:
    """The loads that each iteration makes before the store, and those behind it."""
    before: list[Instruction] = []
    behind: list[Instruction] = []
    for load in loads:
        if load.block is store.block:
            instructions = store.block.instructions
            is_before = instructions.index(load) < instructions.index(store)
        elif tree.dominates(load.block, store.block):
            is_before = True
        elif tree.dominates(store.block, load.block):
            is_before = False
        else:
            return None
        (before if is_before else behind).append(load)
    return before, behind


def _promote(
    function: Function, loop: Loop, entry: Block, store: Instruction, before: list[Instruction],
    behind: list[Instruction],
) -> None:  # fmt: skip
    address, value = store.operands[:2]
    replaced: dict[Value, Value] = {}
    if before:
        first = Instruction(Op.Load, value.type, [address], entry, before[0].name)
        first.memory, first.line = before[0].memory, before[0].line
        entry.instructions.insert(-1, first)
        phi = Instruction(Op.Phi, value.type, [first, entry], loop.header, before[0].name)
        phi.operands += [o for latch in loop.latches for o in (value, latch)]
        loop.header.instructions.insert(0, phi)
        replaced.update((load, phi) for load in before)
        value = replaced.get(value, value)
    replaced.update((load, value) for load in behind)
    store.block.instructions.remove(store)
    for block in list(_exits(function, loop)):
        last = Instruction(Op.Store, None, [address, value], block)
        last.memory, last.line = store.memory, store.line
        block.instructions.insert(phi_count(block), last)
    gone = set(replaced)
    for block in loop.blocks:
        block.instructions = [i for i in block.instructions if i not in gone]
    substitute(function, replaced)


def _exits(function: Function, loop: Loop) -> Iterator[Block]:
    """A block behind each way out of a loop that only leads from there, made where there is none."""
    sources = predecessors(function)
    blocks = [block for block in function.blocks if block in loop.blocks]
    ways = {s: [b for b in sources[s] if b in loop.blocks] for b in blocks for s in b.successors()}
    for target, inside in ways.items():
        if target in loop.blocks:
            continue
        if len(inside) == len(sources[target]):
            yield target
        else:
            for source in inside:
                yield split_edge(function, source, target, "behind")
