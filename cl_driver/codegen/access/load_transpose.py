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
from ...spirv.module import Block, Function, Instruction, Kind, Type, Value
from ..llvm.forms import SCALAR, Form
from ..llvm.types import ir_type, size_of
from .emitter import AccessEmitter

_WHILE_LESS = {Op.SLessThan: "s", Op.ULessThan: "u"}


class Rows:
    """Where a load goes on by one element per iteration of a loop.

    terms: what its address is the sum of besides the count, as (value, factor) or (None, bytes), all of it
    from before the loop; index: a sum of 32 bits on the way there, which the count is part of, if there is
    one.
    """

    def __init__(self, loop: CountedLoop) -> None:
        self.loop = loop
        self.terms: list[tuple[Value | None, int]] = []
        self.index: Index | None = None


class Index:
    """A sum of 32 bits that becomes part of an address. scale: bytes that one is; is_signed: how it is
    extended; terms: (value, 1 or -1) besides the count, as many bits of each as it has."""

    def __init__(self, scale: int, is_signed: bool) -> None:
        self.scale = scale
        self.is_signed = is_signed
        self.terms: list[tuple[Value, int]] = []


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
    if loop.before not in e.before_jumps:
        return None
    rows, counts = Rows(loop), 0
    terms: list[tuple[Value | None, int]] = [(pointer, 1)]
    while terms:
        value, scale = terms.pop()
        if not isinstance(value, Instruction) or value not in loop.inside:
            if value is not None and _is_private(e, value):
                return None
            rows.terms.append((value, scale))
        elif value is loop.count and scale == size_of(type_) and not loop.may_turn:
            counts += 1
        elif more := _terms(e, value, scale):
            terms += more
        else:
            # A sum that the count is not in is as good as any other value, but only outside of the loop.
            index = _index_of(loop, value, scale)
            if index is None or scale != size_of(type_):
                return None
            rows.index = index
            counts += 1
    return rows if counts == 1 else None


def _is_private(e: AccessEmitter, value: Value) -> bool:
    """Whether it is a place in private memory, which is not the same in all lanes though it has no stride."""
    return not e.is_varying(value) and e.stride_is_mixed(value) and not e.stride(value)


def _index_of(loop: CountedLoop, value: Instruction, scale: int) -> Index | None:
    """A sum of 32 bits that the count is part of, once: of an access chain, which takes it with its sign, or
    of an extension."""
    index = Index(scale, value.op is not Op.UConvert)
    if value.op in (Op.UConvert, Op.SConvert) and value.type.width == 64:
        (value,) = value.operands
    if value.op not in (Op.IAdd, Op.ISub) or value.type.width != 32:
        return None
    counts, terms = 0, [(value, 1)]
    while terms:
        value, sign = terms.pop()
        if not isinstance(value, Instruction) or value not in loop.inside:
            index.terms.append((value, sign))
        elif value is loop.count and sign == 1:
            counts += 1
        elif value.op in (Op.IAdd, Op.ISub):
            terms += [(value.operands[0], sign), (value.operands[1], sign if value.op is Op.IAdd else -sign)]
        elif value.op in (Op.UConvert, Op.SConvert) and value.operands[0].type.width >= 32:
            terms.append((value.operands[0], sign))
        else:
            return None
    return index if counts == 1 else None


def _terms(e: AccessEmitter, value: Instruction, scale: int) -> list[tuple[Value | None, int]] | None:
    """What a value is the sum of, as (value, factor) or (None, bytes); None if it is none."""
    op, operands = value.op, value.operands
    if op in (Op.IAdd, Op.ISub) and value.type.width == 64:  # fewer bits may wrap
        return [(operands[0], scale), (operands[1], scale if op is Op.IAdd else -scale)]
    if op in (Op.Bitcast, Op.CopyObject):
        return [(operands[0], 1)] if operands[0].type.kind is Kind.POINTER else None
    terms = e.contiguity.address_terms(value) if op in ADDRESS else None
    return [*terms] if terms else None


def _before_loop(
    e: AccessEmitter, found: Rows, size: int, affine: tuple[str, int] | None, mask: str | None
) -> tuple[str, str, int | None]:
    """What all iterations have in common: (how many have whole tiles, of the count's type; each lane's
    address in the first, or lane 0's; the stride if it is lane 0's)."""
    outer, e.lines = e.lines, e.before_jumps[found.loop.before]
    loop, c = found.loop, ir_type(found.loop.count.type)
    start, limit = e.operand(loop.start), e.operand(loop.limit)
    total = e.emit(f"sub {c} {limit}, {start}")
    if loop.signedness:  # such a loop runs once if the limit is not above the start
        runs = e.emit(f"icmp {loop.signedness}gt {c} {limit}, {start}")
        total = e.emit(f"select i1 {runs}, {c} {total}, {c} 0")
    whole = e.emit(f"and {c} {total}, {-e.width}")
    varying = found.index is not None or any(v is not None and e.is_varying(v) for v, _ in found.terms)
    stride = None if affine is None or varying or mask is not None else affine[1]
    f, value_of = (e.form, e.leaf) if stride is None else (SCALAR, e.operand)
    base, products = "", []
    for value, factor in found.terms:
        if value is None:
            products.append(f.splat("i64", str(factor)))
        elif value.type.kind is Kind.POINTER:
            base = value_of(value)
        else:
            products.append(_product(e, f, value_of(value), value.type, factor))
    if found.index is None:
        first = start if stride is not None else e.splat(start, c, f)
        products.append(_product(e, f, first, loop.start.type, size))
    else:
        first, stays = _first_index(e, found, start, total)
        whole = _if_all(e, stays, mask, c, whole)
        extended = e.emit(f"{'sext' if found.index.is_signed else 'zext'} {f('i32')} {first} to {f('i64')}")
        products.append(e.emit(f"mul {f('i64')} {extended}, {f.splat('i64', str(found.index.scale))}"))
    offset = products[0]
    for product in products[1:]:
        offset = e.emit(f"add {f('i64')} {offset}, {product}")
    rows = e.emit(f"getelementptr i8, {f('ptr')} {base}, {f('i64')} {offset}")
    if mask is not None:
        whole = e.emit(f"select i1 {e.any_lane(mask)}, {c} {whole}, {c} 0")
        active = e.splat(e.first_active("ptr", rows, mask), "ptr", f)
        rows = e.emit(f"select {f('i1')} {mask}, {f('ptr')} {rows}, {f('ptr')} {active}")
    e.lines = outer
    return whole, rows, stride


def _product(e: AccessEmitter, f: Form, operand: str, type_: Type, factor: int) -> str:
    """Bytes: an integer, extended with its sign as those of access chains are, times a factor."""
    if type_.width < 64:
        operand = e.emit(f"sext {f(ir_type(type_))} {operand} to {f('i64')}")
    return e.emit(f"mul {f('i64')} {operand}, {f.splat('i64', str(factor))}")


def _first_index(e: AccessEmitter, found: Rows, start: str, total: str) -> tuple[str, list[str]]:
    """All lanes' index of 32 bits in the first iteration, and what holds if none of them goes on at the other
    end of its range: an i1, `<W x i1>`."""
    index, loop, f = found.index, found.loop, e.form
    assert index is not None

    def low(g: Form, type_: Type, operand: str) -> str:
        return e.emit(f"trunc {g(ir_type(type_))} {operand} to {g('i32')}") if type_.width > 32 else operand

    first = e.splat(low(SCALAR, loop.start.type, start), "i32", f)
    for value, sign in index.terms:
        operand = low(f, value.type, e.leaf(value))
        first = e.emit(f"{'add' if sign > 0 else 'sub'} {f('i32')} {first}, {operand}")
    end, c = -1 << 31 if index.is_signed else 0, ir_type(loop.count.type)
    is_short = "true"
    if c != "i32" or index.is_signed:
        is_short = e.emit(f"icmp ule {c} {total}, {(1 << 32) - 1 + end}")
    room = e.splat(e.emit(f"sub i32 {end}, {low(SCALAR, loop.count.type, total)}"), "i32", f)
    fits = e.emit(f"icmp {'sle' if index.is_signed else 'ule'} {f('i32')} {first}, {room}")
    return first, [is_short, fits]


def _if_all(e: AccessEmitter, stays: list[str], mask: str | None, c: str, whole: str) -> str:
    """As many iterations if that holds in all lanes of a mask, else 0."""
    is_short, fits = stays
    f = e.form
    beyond = e.emit(f"xor {f('i1')} {fits}, splat (i1 true)")
    if mask is not None:
        beyond = e.emit(f"and {f('i1')} {beyond}, {mask}")
    some = e.emit(f"or i1 {e.any_lane(beyond)}, {e.emit(f'xor i1 {is_short}, true')}")
    return e.emit(f"select i1 {some}, {c} 0, {c} {whole}")


def _places(e: AccessEmitter, rows: str, stride: int | None, done: str) -> list[str]:
    """Each lane's address, so many bytes after the row's start."""
    if stride is None:
        starts = [e.emit(f"extractelement {e.form('ptr')} {rows}, i32 {lane}") for lane in range(e.width)]
        return [e.emit(f"getelementptr i8, ptr {start}, i64 {done}") for start in starts]
    first = e.emit(f"getelementptr i8, ptr {rows}, i64 {done}")
    return [e.emit(f"getelementptr i8, ptr {first}, i64 {lane * stride}") for lane in range(e.width)]


def load_rows(
    e: AccessEmitter, i: Instruction, found: Rows, alignment: int, affine: tuple[str, int] | None,
    slow: Callable[[], str], metadata: str, mask: str | None,
) -> str:  # fmt: skip
    """The leaf of a load of find_rows. affine, mask: as of gather; slow(): the leaf of the last ones."""
    type_, loop = i.type, found.loop
    width, t, f, size = e.width, ir_type(type_), e.form, size_of(type_)
    whole, starts, stride = _before_loop(e, found, size, affine, mask)
    c = ir_type(loop.count.type)
    done = e.emit(f"sub {c} {e.operand(loop.count)}, {e.operand(loop.start)}")
    is_whole = e.emit(f"icmp ult {c} {done}, {whole}")
    tile = e.alloca(f"[{width * width} x {t}]", 64)
    labels = [e.new_label(name) for name in ("rows", "transpose", "row", "gather", "loaded")]
    e.emit_void(f"br i1 {is_whole}, label %{labels[0]}, label %{labels[3]}")
    e.begin_block(labels[0])
    number = e.emit(f"and {c} {done}, {width - 1}")
    is_first = e.emit(f"icmp eq {c} {number}, 0")
    e.emit_void(f"br i1 {is_first}, label %{labels[1]}, label %{labels[2]}")
    e.begin_block(labels[1])
    behind = done if loop.count.type.width == 64 else e.emit(f"zext {c} {done} to i64")
    behind = e.emit(f"mul i64 {behind}, {size}")
    rows = [
        e.emit(f"load {f(t)}, ptr {at}, align {alignment}{metadata}")
        for at in _places(e, starts, stride, behind)
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
    else "s" or "u" if it goes on below it; may_turn: whether the count may become negative on its way;
    inside: all its instructions; before: the block that it is entered from."""

    def __init__(
        self, count: Instruction, start: Value, limit: Value, signedness: str, inside: set[Instruction],
        before: Block,
    ) -> None:  # fmt: skip
        self.before = before
        self.count = count
        self.may_turn = count.type.width < 64 and signedness != "s"
        self.inside = inside
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
    ((before, start),) = edges.items()
    return CountedLoop(count, start, limit, signedness, inside, before)


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
