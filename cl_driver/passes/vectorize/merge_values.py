"""What phis take by several edges into straight order, as selects (see linearise_branch.py)."""

from __future__ import annotations

from collections.abc import Callable

from ...spirv.enums import Op
from ...spirv.module import Block, Instruction, Kind, Type, Undef, Value
from ..ir.instructions import append
from ..ir.ops import PassOp
from .region_graph import Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from .linearise_branch import LinearisedBranch

LEFT_COST = 100  # of asking which lanes have left a loop, where asking for a negation is 1
FROZEN = 2  # of asking who keeps a value that lanes keep when they have left a loop

# A value, and the mask of the lanes that take it.
_Choice: TypeAlias = tuple[Value, Value]


def merged(
    branch: LinearisedBranch, phi: Instruction, sources: list[tuple[Block, Block]], base: Value | None = None
) -> tuple[Value, list[Any]]:
    """(what a phi takes from these edges, selected here; its operands for all others)

    base: what lanes get that come by no such edge.
    """
    names = {s for s, _ in sources}
    rest: list[Any] = []
    taken: dict[Block, Value] = {}
    for value, source in zip(phi.operands[::2], phi.operands[1::2], strict=True):
        if source in names:
            taken[source] = value
        else:
            rest += [value, source]
    is_varying = phi.type.kind is not Kind.BOOL and branch.worker.shapes.stride(phi) is None
    if is_varying and base is None:
        taken = instead(branch, phi, taken, lambda _: True)
    choices = [(value, branch.edge_masks[source, phi.block]) for source, value in taken.items()]
    came_from = {value: source for source, value in taken.items()}
    # Not `stay`, which is false in lanes that have left.
    if phi.type.kind is not Kind.BOOL and any(branch.costs.get(m, 0) >= LEFT_COST for _, m in choices):
        choices = with_block_masks(branch, choices, came_from)
        is_varying = False  # the masks may be of more lanes than come by the edges
    distinct = {v for v, _ in choices if not isinstance(v, Undef)}
    shapes = branch.worker.shapes
    if len(distinct) > 1 and shapes.stride(phi) is not None and phi not in branch.worker.stays:
        # All lanes come by one edge, and the value keeps its shape if any lane says which. `stay` is
        # the mask itself, and false for lanes that never came into the loop.
        by_part = shapes.across is not None and shapes.across.stride(phi) is None
        op = PassOp.AnyLaneOfPart if by_part else PassOp.AnyLane
        choices = [(v, any_of(branch, op, m)) for v, m in choices]
    value, otherwise = select(branch, phi.type, choices, base)
    if is_varying and otherwise is not value:
        branch.worker.unchanged.note(value, otherwise, phi.block)
    return value, rest


def instead(
    branch: LinearisedBranch, phi: Instruction, taken: dict[Block, Value], is_there: Callable[[Value], bool]
) -> dict[Block, Value]:
    """What a phi may take by some edges, by their sources, so that there are fewer values."""
    target = branch.worker.node_of(phi.block, branch.loop)
    edges = branch.graph.before[target]
    # The block behind a body has a place behind all of it.
    nodes = {s: s if s in branch.order else n for s, t, n in edges if t is phi.block}

    def goes_past(source: Block, block: Block) -> bool:
        # Each lane takes one edge into a block, and what is placed later is not on its way there.
        return block is phi.block or is_placed_before(branch, nodes[source], block)

    return branch.worker.unchanged.instead(taken, goes_past, is_there)


def is_placed_before(branch: LinearisedBranch, node: Node, later: Node) -> bool:
    """Whether a node has its place in straight order before another one of the influence region."""
    order = branch.order
    return node in order and later in branch.influence and order[node] < order.get(later, len(order))


def with_block_masks(
    branch: LinearisedBranch, choices: list[_Choice], came_from: dict[Value, Block]
) -> list[_Choice]:
    """Choices at the latch of a live loop under the masks of the blocks where lanes part, in their order.

    Lanes that part later are given their value later, and that of lanes that stay does not matter. So no
    mask is asked for but those that blocks have anyway.
    """
    defined = [(v, m) for v, m in choices if not isinstance(v, Undef)]
    live = None if branch.loop is None else branch.worker.live.get(branch.loop.header)
    left = [(v, m) for v, m in defined if branch.costs.get(m, 0) >= LEFT_COST]
    others = {v for v, m in defined if branch.costs.get(m, 0) < LEFT_COST}
    if len(others) == 1 and len(left) == 1 and left[0][0] not in others and live is not None:
        (other,) = others
        return [*left, (other, live)]
    if len(defined) != len({v for v, _ in defined}) or len(defined) < 2:
        return choices
    placed = []
    for value, mask in defined:
        source = came_from[value]
        before = branch.graph.before.get(source, ())
        at = before[0][2] if len(before) == 1 else source
        if branch.costs.get(mask, 0) >= LEFT_COST:
            placed.append((-1, value, mask))
        elif at not in branch.order:
            return choices
        else:
            placed.append((branch.order[at], value, mask if at is source else branch.masks[at]))
    placed.sort(key=lambda choice: choice[0])
    if placed[0][0] >= 0 or placed[1][0] < 0:
        return choices
    result, last = [], None
    for order, value, mask in placed:
        # Of two edges out of one block, the second has its own mask.
        result.append((value, dict(defined)[value] if order == last else mask))
        last = order
    return result


def any_of(branch: LinearisedBranch, op: Op, mask: Value) -> Value:
    """Appends AnyLane, or AnyLaneOfPart, of a mask, once."""
    key = op, mask
    found = branch.made.get(key)
    if found is None:
        found = branch.made[key] = append(branch.current, op, branch.worker.bool, [mask])
    return found


def select(
    branch: LinearisedBranch, type_: Type, choices: list[_Choice], base: Value | None = None
) -> tuple[Value, Value]:
    """(the value of the edge that each lane came by, what lanes have there that came by none)

    base: what these are to have, if that is not all the same.
    """
    masks_of: dict[Value, list[Value]] = {}
    for value, mask in choices:
        if not isinstance(value, Undef):
            masks_of.setdefault(value, []).append(mask)
    if not masks_of:
        value = branch.types.undef(type_) if base is None else base
        return value, value
    if len(masks_of) == 1 and (base is None or base in masks_of):
        (value,) = masks_of
        return value, value
    if type_.kind is Kind.BOOL:
        # False in lanes that do not take part, which `stay` of a live loop relies on.
        result: Value = branch.worker.false
        for value, masks in masks_of.items():
            for mask in masks:
                result = branch.emit_logic(
                    Op.LogicalOr, result, branch.emit_logic(Op.LogicalAnd, mask, value)
                )
        return result, result
    if base is None:
        frozen = branch.worker.unchanged.frozen
        costs = {v: sum(2 + branch.costs.get(m, 0) for m in masks) for v, masks in masks_of.items()}
        base = max(masks_of, key=lambda v: costs[v] + FROZEN * (v in frozen))
    result = base
    for value, masks in masks_of.items():
        if value is base:
            continue
        mask = masks[0]
        for other in masks[1:]:
            mask = branch.emit_logic(Op.LogicalOr, mask, other)
        result = append(branch.current, Op.Select, type_, [mask, value, result])
    return result, base
