"""Bodies of divergent branches that are jumped over as a whole if no lane comes to them
(linearise_branch.py): a guard, a loop, a store of its result. One by one most of their blocks would not pay
to be asked for, and each of the others would be asked for: a kernel that most work-items leave early costs
one question for all of it."""

from __future__ import annotations

from functools import partial

from ...records import field, record
from ...spirv.enums import Op
from ...spirv.module import Block, Instruction, Kind, Undef, Value
from ..ir.dominance import Loop
from ..ir.instructions import append
from .merge_values import instead, is_placed_before, merged
from .region_graph import Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .linearise_branch import LinearisedBranch

JUMP_COST = 8  # instructions above which an empty mask jumps over them
SCATTER_COST = 8  # instructions that an access to places of each lane's own stands for
_MUCH = 3 * JUMP_COST  # the least that is worth a question of its own


@record(eq=False, slots=True)
class Body:
    """Nodes that are jumped over together, the first of which leads to all others, and their mask.

    before, join: where it is jumped from, and to; chosen: phis there (see Unchanged.note); filled, made,
    unchanged: with which state of the branch it is gone on.
    """

    first: Block
    nodes: set[Node]
    mask: Value
    targets: list[Node | None]  # where its lanes go on
    before: Block | None = None
    join: Block | None = None
    filled: set[Value] = field(default_factory=set)
    made: dict[tuple[Any, ...], Value] = field(default_factory=dict)
    unchanged: dict[Value, tuple[Value, Block]] = field(default_factory=dict)
    chosen: list[tuple[Value, Value, Block]] = field(default_factory=list)


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
    body.unchanged = dict(branch.worker.unchanged.known)
    return body


def leave_body(branch: LinearisedBranch, body: Body, around: set[Node]) -> None:
    """Goes on behind a body, which then has one edge to each of the places where its lanes go on.

    around: the nodes of the body around it, or of the whole influence region.
    """
    before, join = body.before, body.join
    assert before is not None and join is not None  # enter_body() has made them
    masks: list[tuple[Block, Value]] = []
    for target in body.targets:
        block = target.header if isinstance(target, Loop) else target
        assert block is not None  # the influence region has an end
        sources = [(s, t) for s, t, n in branch.graph.before[target] if n in body.nodes]
        _merge_values(branch, body, target, block, around)
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
    branch.order[join] = len(branch.order)
    branch.worker.unchanged.known = body.unchanged
    for value, base, block in body.chosen:
        branch.worker.unchanged.note(value, base, block)
    branch.current, branch.filled, branch.made = join, body.filled, body.made


def _merge_values(
    branch: LinearisedBranch, body: Body, target: Node | None, block: Block, around: set[Node]
) -> None:
    """The phis of a block get one value for all edges out of a body.

    What a phi takes by other edges stays as it is where nobody comes to the body. If it is there before that,
    the body itself chooses between the two, and nothing is left to do behind it, body or not.
    """
    before, join = body.before, body.join
    assert before is not None and join is not None  # enter_body() has made them
    edges = branch.graph.before[target]
    sources = [(s, t) for s, t, n in edges if n in body.nodes]
    others = {s for s, _, n in edges if n not in body.nodes and n in around}
    for phi in block.phis():
        base = _base_of(branch, body, phi, {s for s, _ in sources}, others)
        chosen = None if base is None or _is_kept(branch, phi, sources, base, body) else base
        value, rest = merged(branch, phi, sources, chosen)
        if base is not None and value is not base:
            value = Instruction(Op.Phi, phi.type, [value, branch.current, base, before], join, phi.name)
            join.instructions.append(value)
            for shapes in filter(None, (branch.worker.shapes, branch.worker.shapes.across)):
                shapes.strides[value] = None
            body.chosen.append((value, base, block))
            pairs = zip(rest[::2], rest[1::2], strict=True)
            rest = [o for v, s in pairs for o in (value if v is base and s in others else v, s)]
        phi.operands = [*rest, value, join]


def _base_of(
    branch: LinearisedBranch, body: Body, phi: Instruction, sources: set[Block], others: set[Block]
) -> Value | None:
    """What a phi takes by most of the other edges, if it is there before the body: for values of which each
    lane has its own."""
    worker = branch.worker
    if phi.type.kind is Kind.BOOL or worker.shapes.stride(phi) is not None or phi in worker.stays:
        return None
    pairs = list(zip(phi.operands[::2], phi.operands[1::2], strict=True))
    values = {s: v for v, s in pairs if s in sources or s in others}
    values = instead(branch, phi, values, partial(_is_there, branch, body))
    phi.operands = [o for v, s in pairs for o in (values.get(s, v), s)]
    found = [v for s, v in values.items() if s in others and _is_there(branch, body, v)]
    return max(found, key=lambda v: (v in body.unchanged, found.count(v)), default=None)


def _is_kept(
    branch: LinearisedBranch, phi: Instruction, sources: list[tuple[Block, Block]], base: Value, body: Body
) -> bool:
    """Whether all that a phi takes from a body is the base in lanes that do not come to the body."""
    names = {s for s, _ in sources}
    values = {v for v, s in zip(phi.operands[::2], phi.operands[1::2], strict=True) if s in names}
    if len(values) > 1:
        return False

    def goes_past(block: Block) -> bool:
        return block in (phi.block, body.first) or is_placed_before(branch, body.first, block)

    return branch.worker.unchanged.is_same(values.pop(), base, goes_past)


def _is_there(branch: LinearisedBranch, body: Body, value: Value) -> bool:
    """Whether a value is there before a body."""
    if isinstance(value, Undef):
        return False
    if type(value) is not Instruction or value in body.unchanged:
        return True
    tree = branch.worker.tree
    is_new = tree.number.get(value.block, len(tree.order)) >= len(tree.order)
    return not is_new and tree.dominates(value.block, branch.branch)
