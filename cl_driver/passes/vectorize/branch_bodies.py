"""Bodies of divergent branches that are jumped over as a whole if no lane comes to them
(linearise_branch.py): a guard, a loop, a store of its result. One by one most of their blocks would not pay
to be asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...records import field, record
from ...spirv.enums import Op
from ...spirv.module import Block, Value
from ..ir.dominance import Loop
from ..ir.instructions import append
from .region_graph import Node

if TYPE_CHECKING:
    from .linearise_branch import LinearisedBranch

JUMP_COST = 8  # instructions above which an empty mask jumps over them
SCATTER_COST = 8  # instructions that a store to places of each lane's own stands for


@record(eq=False, slots=True)
class Body:
    """Nodes that are jumped over together, the edge that all their lanes leave by, and their mask.

    join, filled, made: where it is gone on behind it, and with which state of the branch.
    """

    nodes: set[Node]
    edge: tuple[Block, Block]
    mask: Value
    join: Block | None = None
    filled: set[Value] = field(default_factory=set)
    made: dict[tuple[Any, ...], Value] = field(default_factory=dict)


def find_body(branch: LinearisedBranch, nodes: list[Node], place: int, mask: Value) -> Body | None:
    """What is reached through one block alone, if all lanes leave it by one edge and it is more than that
    block, which does not pay to be jumped over: together they do.

    nodes: the influence region in straight order, the block at `place`; mask: the lanes that come to it.
    """
    first, graph, worker, loop = nodes[place], branch.graph, branch.worker, branch.loop
    if isinstance(first, Loop) or first in branch.uniform_branches or branch.weight(first) > JUMP_COST:
        return None
    if worker.has_lane(mask, branch.filled) or (loop is not None and loop.header in worker.live):
        return None
    inside = [n for n in nodes[place:] if graph.dominators.dominates(first, n)]
    if len(inside) < 2 or nodes[place : place + len(inside)] != inside:
        return None
    leaving = [(s, t, n) for n in inside for s, t, into in graph.edges[n] if into not in inside]
    if len(leaving) != 1 or not graph.post.dominates(leaving[0][2], first):
        return None
    blocks = [b for n in inside for b in (n.blocks if isinstance(n, Loop) else (n,))]
    if sum(map(branch.weight, blocks)) <= JUMP_COST:
        return None
    return Body(set(inside), leaving[0][:2], mask)


def enter_body(branch: LinearisedBranch, body: Body) -> Body:
    """Goes on in a new block, to which control comes if the mask has a lane."""
    start = Block(branch.worker.function, "body")
    branch.worker.add_block(start, branch.loop)
    body.join, body.filled, body.made = branch.jump(start, body.mask), branch.filled, branch.made
    # What is made in the body is not there behind it.
    branch.current, branch.filled, branch.made = start, branch.filled | {body.mask}, dict(branch.made)
    return body


def leave_body(branch: LinearisedBranch, body: Body) -> None:
    """Goes on behind a body."""
    assert body.join is not None  # enter_body() has made it
    append(branch.current, Op.Branch, None, [body.join])
    branch.current, branch.filled, branch.made = body.join, body.filled, body.made
    # All lanes that came in leave by this edge, whatever its mask was made of.
    branch.edge_masks[body.edge] = body.mask
