"""Loops in which each lane walks through memory of its own, one element further each time: rows of a matrix,
say. The next W elements of all W lanes are loaded at once, as whole vectors, and transposed into a
tile on the stack, from which the following W iterations load what all lanes need as one vector.

Only what the loop is going to load anyway is loaded early: it has one exit, by a counter, that all lanes take
together, and nothing in it writes. Lanes that a condition outside of the loop leaves out read what another
lane reads. Iterations for which there is no full tile gather.
"""

from __future__ import annotations

from collections.abc import Callable

from ...passes.ir.dominance import Loop, LoopNest, dominators
from ...passes.ir.instructions import ADDRESS, EXTINST_WITH_EFFECT, PURE, is_constant_int, predecessors
from ...spirv.enums import Op
from ...spirv.module import Block, Function, Instruction, Kind, Value
from ..llvm.types import ir_type, size_of
from .emitter import AccessEmitter

_STEPS = (Op.PtrAccessChain, Op.InBoundsPtrAccessChain)
_WHILE_LESS = {Op.SLessThan: "s", Op.ULessThan: "u"}


class Rows:
    """Where a load goes on by one element per iteration of a loop. index: a sum of 32 bits on the way there,
    which grows with the count, or None; is_signed: how it is extended then."""

    def __init__(self, loop: CountedLoop, index: Value | None, is_signed: bool) -> None:
        self.loop = loop
        self.index = index
        self.is_signed = is_signed


def find_rows(e: AccessEmitter, i: Instruction) -> Rows | None:
    """The loop in which an OpLoad goes on by one element per iteration, for the same lanes each time."""
    pointer, type_ = i.operands[0], i.type
    if type_.kind not in (Kind.INT, Kind.FLOAT) or not isinstance(pointer, Instruction):
        return None
    if e.counted_loops is None:
        e.counted_loops = CountedLoops(e.function)
    loop = e.counted_loops.around(e.current)
    if loop is None or e.is_varying(loop.count) or e.stride_is_mixed(loop.count) or i.mask in loop.inside:
        return None
    found: list[Rows] = []
    terms: list[tuple[Value, int, Rows | None]] = [(pointer, 1, None)]
    while terms:
        value, scale, within = terms.pop()
        if not isinstance(value, Instruction) or value not in loop.inside:
            continue
        if value is loop.count and scale == size_of(type_) and (within or not loop.may_turn):
            found.append(within or Rows(loop, None, False))
        elif within:
            if (narrow := _narrow_terms(value, scale)) is None:
                return None
            terms += [(v, factor, within) for v, factor in narrow]
        elif (index := _narrow_index(value)) is not None:
            terms.append((index, scale, Rows(loop, index, value.op is not Op.UConvert)))
        elif more := _terms(e, value, scale):
            terms += [(v, factor, None) for v, factor in more]
        else:
            return None
    return found[0] if len(found) == 1 else None


def _narrow_index(value: Instruction) -> Value | None:
    """A sum of 32 bits that becomes an address, of an index or of a number that is extended; with its sign
    as an index."""
    if value.op in (Op.UConvert, Op.SConvert) and value.type.width == 64:
        (value,) = value.operands
    is_sum = isinstance(value, Instruction) and value.op in (Op.IAdd, Op.ISub)
    return value if is_sum and value.type.width == 32 else None


def _narrow_terms(value: Instruction, scale: int) -> list[tuple[Value, int]] | None:
    """What a value is the sum of as far as its lowest 32 bits go; None if it is none."""
    op, operands = value.op, value.operands
    if op in (Op.IAdd, Op.ISub):
        return [(operands[0], scale), (operands[1], scale if op is Op.IAdd else -scale)]
    if op in (Op.UConvert, Op.SConvert) and operands[0].type.width >= 32:
        return [(operands[0], scale)]
    return None


def _terms(e: AccessEmitter, value: Instruction, scale: int) -> list[tuple[Value, int]] | None:
    """What a value is the sum of, as (value, factor); None if it is none."""
    op, operands = value.op, value.operands
    if op in (Op.IAdd, Op.ISub) and value.type.width == 64:  # fewer bits may wrap
        return [(operands[0], scale), (operands[1], scale if op is Op.IAdd else -scale)]
    if op in (Op.Bitcast, Op.CopyObject):
        return [(operands[0], 1)] if operands[0].type.kind is Kind.POINTER else None
    terms = e.contiguity.address_terms(value) if op in ADDRESS else None
    return [(v, factor) for v, factor in terms if v is not None] if terms else None


def _places(
    e: AccessEmitter, pointer: Instruction, affine: tuple[str, int] | None, mask: str | None
) -> list[str]:
    """Each lane's address. affine: lane 0's and the stride, where there is one. mask: lanes that are not in
    it, which must not be empty, get the address of one that is."""
    width, step = e.width, None
    if affine is not None:
        first, stride = affine
        if mask is None:
            return [e.emit(f"getelementptr i8, ptr {first}, i64 {lane * stride}") for lane in range(width)]
        offsets = ", ".join(f"i64 {lane * stride}" for lane in range(width))
        lanes = e.emit(f"getelementptr i8, ptr {first}, {e.form('i64')} <{offsets}>")
    else:
        last = pointer.operands[-1] if pointer.op in _STEPS and len(pointer.operands) == 2 else None
        if last is None or e.is_varying(last) or not e.is_varying(pointer.operands[0]):
            lanes = e.leaf(pointer)
        else:
            step = f"{ir_type(last.type)} {e.operand(last)}"
            lanes = e.leaf(pointer.operands[0])
    if mask is not None:
        active = e.splat(e.first_active("ptr", lanes, mask), "ptr", e.form)
        lanes = e.emit(f"select {e.form('i1')} {mask}, {e.form('ptr')} {lanes}, {e.form('ptr')} {active}")
    places = []
    for k in range(width):
        place = e.emit(f"extractelement {e.form('ptr')} {lanes}, i32 {k}")
        if step is not None:
            place = e.emit(f"getelementptr [{size_of(pointer.type.element)} x i8], ptr {place}, {step}")
        places.append(place)
    return places


def load_rows(
    e: AccessEmitter, i: Instruction, found: Rows, alignment: int, affine: tuple[str, int] | None,
    slow: Callable[[], str], metadata: str, mask: str | None,
) -> str:  # fmt: skip
    """The leaf of a load of find_rows. affine, mask: as of gather; slow(): the leaf of the last ones."""
    type_, loop = i.type, found.loop
    width, t, f, size = e.width, ir_type(type_), e.form, size_of(type_)
    c = ir_type(loop.count.type)
    count, start, limit = (e.operand(v) for v in (loop.count, loop.start, loop.limit))
    done = e.emit(f"sub {c} {count}, {start}")
    total = e.emit(f"sub {c} {limit}, {start}")
    if loop.signedness:  # such a loop runs once if the limit is not above the start
        runs = e.emit(f"icmp {loop.signedness}gt {c} {limit}, {start}")
        total = e.emit(f"select i1 {runs}, {c} {total}, {c} 0")
    whole = e.emit(f"and {c} {total}, {-width}")
    is_whole = e.emit(f"icmp ult {c} {done}, {whole}")
    if found.index is not None:
        stays = _stays_in_range(e, found, c, done, total, mask)
        is_whole = e.emit(f"and i1 {is_whole}, {stays}")
    if mask is not None:
        is_whole = e.emit(f"and i1 {is_whole}, {e.any_lane(mask)}")
    tile = e.alloca(f"[{width * width} x {t}]", 64)
    labels = [e.new_label(name) for name in ("rows", "transpose", "row", "gather", "loaded")]
    e.emit_void(f"br i1 {is_whole}, label %{labels[0]}, label %{labels[3]}")
    e.begin_block(labels[0])
    number = e.emit(f"and {c} {done}, {width - 1}")
    is_first = e.emit(f"icmp eq {c} {number}, 0")
    e.emit_void(f"br i1 {is_first}, label %{labels[1]}, label %{labels[2]}")
    e.begin_block(labels[1])
    rows = [
        e.emit(f"load {f(t)}, ptr {at}, align {alignment}{metadata}")
        for at in _places(e, i.operands[0], affine, mask)
    ]
    for k, row in enumerate(_transposed(e, t, rows)):
        at = e.emit(f"getelementptr i8, ptr {tile}, i64 {k * width * size}")
        e.emit_void(f"store {f(t)} {row}, ptr {at}, align {min(64, width * size)}")
    e.emit_void(f"br label %{labels[2]}")
    e.begin_block(labels[2])
    at = e.emit(f"getelementptr [{width * size} x i8], ptr {tile}, {c} {number}")
    fast = e.emit(f"load {f(t)}, ptr {at}, align {min(64, width * size)}")
    e.emit_void(f"br label %{labels[4]}")
    e.begin_block(labels[3])
    other = slow()
    end = e.label
    e.emit_void(f"br label %{labels[4]}")
    e.begin_block(labels[4])
    return e.emit(f"phi {f(t)} [ {fast}, %{labels[2]} ], [ {other}, %{end} ]")


def _stays_in_range(e: AccessEmitter, found: Rows, c: str, done: str, total: str, mask: str | None) -> str:
    """i1: whether no lane's index of 32 bits goes on at the other end of its range. It is asked of where the
    loop starts, so that the answer is the same for all its iterations."""
    assert found.index is not None
    f, end = e.form, -1 << 31 if found.is_signed else 0
    is_short = "true"
    if c != "i32" or found.is_signed:
        is_short = e.emit(f"icmp ule {c} {total}, {(1 << 32) - 1 + end}")

    def low(operand: str) -> str:
        return operand if c == "i32" else e.emit(f"trunc {c} {operand} to i32")

    room = e.splat(e.emit(f"sub i32 {end}, {low(total)}"), "i32", f)
    first = e.emit(f"sub {f('i32')} {e.leaf(found.index)}, {e.splat(low(done), 'i32', f)}")
    fits = e.emit(f"icmp {'sle' if found.is_signed else 'ule'} {f('i32')} {first}, {room}")
    if mask is not None:
        left_out = e.emit(f"xor {f('i1')} {mask}, splat (i1 true)")
        fits = e.emit(f"or {f('i1')} {fits}, {left_out}")
    beyond = e.emit(f"xor {f('i1')} {fits}, splat (i1 true)")
    some = e.any_lane(beyond)
    none = e.emit(f"xor i1 {some}, true")
    return e.emit(f"and i1 {none}, {is_short}")


def _transposed(e: AccessEmitter, t: str, rows: list[str]) -> list[str]:
    """Vectors of element k of all rows: squares of elements change places, ever larger ones."""
    width, f, distance = e.width, e.form, 1
    while distance < width:
        lanes = [
            ", ".join(f"i32 {(k & ~distance) + own + (width if k & distance else 0)}" for k in range(width))
            for own in (0, distance)
        ]
        rows = [
            e.emit(
                f"shufflevector {f(t)} {rows[k & ~distance]}, {f(t)} {rows[k | distance]}, "
                f"<{width} x i32> <{lanes[bool(k & distance)]}>"
            )
            for k in range(width)
        ]
        distance *= 2
    return rows


# Loops that count up by 1 and have no effects: what all iterations will load is known before the first.


class CountedLoop:
    """A loop that counts up by 1. count: phi; start, limit: Values; signedness: "" if it ends at the limit,
    else "s" or "u" if it goes on below it; may_turn: whether the count may become negative on its way."""

    def __init__(
        self, count: Instruction, start: Value, limit: Value, signedness: str, inside: set[Instruction]
    ) -> None:
        self.count = count
        self.may_turn = count.type.width < 64 and signedness != "s"
        self.inside = inside  # all its instructions
        self.start = start
        self.limit = limit
        self.signedness = signedness


class CountedLoops:
    """The counted loops without effects of a function."""

    def __init__(self, function: Function) -> None:
        before = predecessors(function)
        tree = dominators(function, before)
        nest = LoopNest(function, tree, before)
        self._nest, self._tree = nest, tree
        self._found: dict[Loop, CountedLoop | None] = {}

    def around(self, block: Block) -> CountedLoop | None:
        """The innermost loop around a block, if it is such a loop and always gets there."""
        loop = self._nest.innermost.get(block)
        if loop is None or len(loop.latches) != 1 or not self._tree.dominates(block, loop.latches[0]):
            return None
        if loop not in self._found:
            self._found[loop] = _counted(loop)
        return self._found[loop]


def _counted(loop: Loop) -> CountedLoop | None:
    latch, inside = loop.latches[0], {i for block in loop.blocks for i in block.instructions}
    if any(_leaves_or_acts(loop, block) for block in loop.blocks):
        return None
    found = _comparison(loop, latch)
    if found is None:
        return None
    following, limit, signedness = found
    if limit in inside or following.op is not Op.IAdd:
        return None
    count, step = following.operands
    if not is_constant_int(step) or step.value != 1 or not isinstance(count, Instruction):
        return None
    if count.op is not Op.Phi or count not in loop.header.instructions or len(count.operands) != 4:
        return None
    edges = dict(zip(count.operands[1::2], count.operands[::2], strict=True))
    if edges.pop(latch, None) is not following:
        return None
    (start,) = edges.values()
    return CountedLoop(count, start, limit, signedness, inside)


def _leaves_or_acts(loop: Loop, block: Block) -> bool:
    """Whether a block has effects, or leaves the loop though it is not the latch."""
    leaves = block is not loop.latches[0] and any(s not in loop.blocks for s in block.successors())
    return leaves or any(_has_effect(i) for i in block.instructions[:-1])


def _comparison(loop: Loop, latch: Block) -> tuple[Instruction, Value, str] | None:
    """What a latch compares with what to go on, and how: "s", "u", or "" for until they are equal."""
    if latch.terminator.op is not Op.BranchConditional:
        return None
    test, yes, no = latch.terminator.operands[:3]
    if not isinstance(test, Instruction) or (yes is loop.header) == (no is loop.header):
        return None
    if test.op in _WHILE_LESS and yes is loop.header:
        signedness = _WHILE_LESS[test.op]
    elif test.op is (Op.IEqual if no is loop.header else Op.INotEqual):
        signedness = ""
    else:
        return None
    following, limit = test.operands
    return (following, limit, signedness) if isinstance(following, Instruction) else None


def _has_effect(i: Instruction) -> bool:
    if i.op is Op.ExtInst:
        return i.operands[1] in EXTINST_WITH_EFFECT
    volatile = i.memory is not None and i.memory.volatile
    return volatile or (i.op is not Op.Load and i.op is not Op.Phi and i.op not in PURE)
