"""Bodies of divergent branches that are jumped over as a whole if no lane comes to them
(linearise_branch.py): a guard, a loop, a store of its result. One by one most of their blocks would not pay
to be asked for, and each of the others would be asked for: a kernel that most work-items leave early costs
one question for all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...records import field, record
from ...spirv.enums import Op
from ...spirv.module import Block, Instruction, Value
from ..ir.dominance import Loop
from ..ir.instructions import append
from .region_graph import Node

if TYPE_CHECKING:
    from .linearise_branch import LinearisedBranch

JUMP_COST = 8  # instructions above which an empty mask jumps over them
SCATTER_COST = 8  # instructions that an access to places of each lane's own stands for
_MUCH = 3 * JUMP_COST  # the least that is worth a question of its own


@record(eq=False, slots=True)
class Body:
    """Nodes that are jumped over together, the first of which leads to all others, and their mask.

    before, join: where it is jumped from, and to; filled, made: with which state of the branch it is gone on.
    """

    first: Block
    nodes: set[Node]
    mask: Value
    targets: list[Node | None]  # where its lanes go on
    before: Block | None = None
    join: Block | None = None
    filled: set[Value] = field(default_factory=set)
    made: dict[tuple[Any, ...], Value] = field(default_factory=dict)


def find_body(branch: LinearisedBranch, nodes: list[Node], place: int, mask: Value) -> Body | None:
    """What is reached through one block alone, if that is more than the block, and pays to be jumped over.

    nodes: the influence region in straight order, the block at `place`; mask: the lanes that come to it.
    """
    first, graph, worker = nodes[place], branch.graph, branch.worker
    if isinstance(first, Loop) or first in branch.uniform_branches:
        return None
    if worker.has_lane(mask, branch.filled):
        return None
    inside = [n for n in nodes[place:] if graph.dominators.dominates(first, n)]
    if len(inside) < 2 or nodes[place : place + len(inside)] != inside:
        return None
    leaving = [(n, into) for n in inside for _, _, into in graph.edges[n] if into not in inside]
    is_asked = branch.weight(first) > JUMP_COST
    # A first block that is jumped over by itself takes the others with it, if they are worth anything.
    blocks = [b for n in inside[is_asked:] for b in (n.blocks if isinstance(n, Loop) else (n,))]
    if sum(map(branch.weight, blocks)) <= JUMP_COST:
        return None
    if not is_asked and (len(leaving) > 1 or not graph.post.dominates(leaving[0][0], first)):
        # One question more, which has to save several, or much that nobody would ask for.
        rest = [n for n in inside if not isinstance(n, Loop) and branch.weight(n) <= JUMP_COST]
        if len(inside) - len(rest) < 2 and sum(map(branch.weight_without_lanes, rest)) < _MUCH:
            return None
    return Body(first, set(inside), mask, list(dict.fromkeys(into for _, into in leaving)))


def enter_body(branch: LinearisedBranch, body: Body) -> Body:
    """Goes on in a new block, to which control comes if the mask has a lane."""
    start = Block(branch.worker.function, "body")
    branch.worker.add_block(start, branch.loop)
    body.before = branch.current
    body.join, body.filled, body.made = branch.jump(start, body.mask), branch.filled, branch.made
    # What is made in the body is not there behind it.
    branch.current, branch.filled, branch.made = start, branch.filled | {body.mask}, dict(branch.made)
    return body


def leave_body(branch: LinearisedBranch, body: Body) -> None:
    """Goes on behind a body, which then has one edge to each of the places where its lanes go on."""
    before, join = body.before, body.join
    assert before is not None and join is not None  # enter_body() has made them
    masks: list[tuple[Block, Value]] = []
    for target in body.targets:
        block = target.header if isinstance(target, Loop) else target
        assert block is not None  # the influence region has an end
        sources = [(s, t) for s, t, n in branch.graph.before[target] if n in body.nodes]
        branch.merge_edges(block, sources, join)
        mask: Value = branch.worker.false
        for edge in sources:
            mask = branch.emit_logic(Op.LogicalOr, mask, branch.edge_masks[edge])
        masks.append((block, mask))
        others = [(s, t, n) for s, t, n in branch.graph.before[target] if n not in body.nodes]
        branch.graph.before[target] = [*others, (join, block, body.first)]
    for block, mask in masks:
        if len(masks) == 1:
            branch.edge_masks[join, block] = body.mask  # all lanes that came in
            continue
        phi = Instruction(Op.Phi, mask.type, [branch.worker.false, before, mask, branch.current], join)
        join.instructions.append(phi)
        branch.edge_masks[join, block] = phi
    append(branch.current, Op.Branch, None, [join])
    branch.current, branch.filled, branch.made = join, body.filled, body.made
