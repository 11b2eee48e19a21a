"""Values of a function for the work-items that stand for a launch (launch.py), as far as they are known.

A Frame holds what loops are at: their phis' values in one iteration. Frames within it are for other
iterations of one of the loops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from ...spirv.enums import Op
from ...spirv.module import Argument, Block, Constant, Instruction, Kind, Type, Value, Variable
from ..analysis.roots import SAME_OBJECT
from ..ir.dominance import DominatorTree, Loop, LoopNest
from ..ir.fold import signed
from ..ir.instructions import ADDRESS
from ..ir.layout import member_offset, size_of
from ..ir.ops import PassOp
from ..ir.plan import Slot
from ..ir.shapes import ShapeInfo
from ..lower.images import DATA, DEPTH, HEIGHT, ROW_PITCH, SLICE_PITCH, WIDTH
from .launch import Number, Samples
from .sampled_ops import compute, of_constant

Numbers: TypeAlias = list[Number]  # of all lanes

_SAME = frozenset((
    Op.Bitcast, Op.CopyObject, Op.PtrCastToGeneric, Op.GenericCastToPtr, Op.ExpectKHR, PassOp.FirstItem,
    Op.ConvertPtrToU, Op.ConvertUToPtr,
))  # fmt: skip
_CERTAIN = 0.95  # a probability from which on a condition counts as known


class Surroundings:
    """What all frames of a region share. slots: values that other regions have left; shift_of: by how much
    ids that an instruction reads are above those of the first part; crossing: comparisons for equality of
    what grows from one visit to the next, with the difference in the first of them."""

    def __init__(
        self,
        samples: Samples,
        nest: LoopNest,
        tree: DominatorTree[Block],
        shapes: ShapeInfo,
        slots: Mapping[Slot, Numbers],
        shift_of: Callable[[Instruction], tuple[int, int]],
        crossing: Mapping[Instruction, list[int | None]] | None = None,
    ) -> None:
        self.samples, self.nest, self.tree, self.shapes = samples, nest, tree, shapes
        self.slots, self.shift_of, self.crossing = slots, shift_of, crossing
        self.headers = {loop.header for loop in nest.loops}
        self.exits: dict[Loop, Frame] = {}  # what loops leave behind
        self.nothing: Numbers = [None] * samples.size
        self.guesses: Numbers = [0.5] * samples.size

    def left_between(self, block: Block | None, user: Block | None) -> Loop | None:
        """The outermost loop that a block is in and its user is not."""
        found, loop = None, self.nest.innermost.get(block) if block is not None else None
        while loop is not None and user not in loop.blocks:
            found, loop = loop, loop.parent
        return found


class Frame:
    """Values with phis bound to those of one iteration. loop: the one whose iteration differs from that of
    the frame around; crossing: comparisons for equality of what the loop changes, with the difference in its
    first iteration: what was equal in an iteration before counts as equal."""

    def __init__(
        self,
        around: Surroundings,
        bound: dict[Instruction, Numbers],
        outer: Frame | None = None,
        loop: Loop | None = None,
        crossing: Mapping[Instruction, list[int | None]] | None = None,
    ) -> None:
        self.around, self.bound, self.outer, self.loop = around, bound, outer, loop
        self.crossing = around.crossing if crossing is None else crossing
        self._known: dict[Instruction, Numbers] = {}

    def of(self, value: Value) -> Numbers:
        """The numbers of a value in all lanes."""
        found = self._ready(value)
        if found is not None:
            return found
        assert isinstance(value, Instruction)
        stack = [value]
        while stack:
            i = stack[-1]
            if i in self._known:
                stack.pop()
                continue
            missing = [o for o in self._needed(i) if self._at(o, i) is None and o not in self._known]
            if missing and len(stack) < 4_000:
                stack += missing
                continue
            self._known[i] = self._compute(i) if not missing else self.around.nothing
            stack.pop()
        return self._known[value]

    def _ready(self, value: Value) -> Numbers | None:
        """What need not be computed here."""
        samples = self.around.samples
        if isinstance(value, Instruction):
            if value in self.bound:
                return self.bound[value]
            if value in self._known:
                return self._known[value]
            if self.outer is not None and (self.loop is None or value.block not in self.loop.blocks):
                return self.outer.of(value)
            return None
        if isinstance(value, Constant):
            return [of_constant(value)] * samples.size
        if isinstance(value, Argument):
            if value.type.kind is Kind.POINTER or value.index in samples.launch.images:
                return [0] * samples.size
            return [samples.launch.values.get(value.index)] * samples.size
        if isinstance(value, Variable):
            return [0] * samples.size
        return self.around.nothing

    def _at(self, value: Instruction, user: Instruction) -> Numbers | None:
        """The same for an operand: what a loop computed and leaves behind is that of its last iteration."""
        left = self.around.left_between(value.block, user.block)
        if left is not None:
            frame = self.around.exits.get(left)
            return self.around.nothing if frame is None or frame is self else frame.of(value)
        return self._ready(value)

    def _operand(self, value: Value, user: Instruction) -> Numbers:
        found = self._at(value, user) if isinstance(value, Instruction) else self._ready(value)
        if found is None:
            found = self._known.get(value) if isinstance(value, Instruction) else None
        return self.around.nothing if found is None else found

    def _needed(self, i: Instruction) -> list[Instruction]:
        if i.op is Op.Phi:
            if i.block in self.around.headers:
                return []  # of a loop that is at no iteration
            return [o for o in (*i.operands[::2], self._condition(i)) if isinstance(o, Instruction)]
        if i.op is Op.Load and isinstance(i.operands[0], Instruction) and image_of(i.operands[0]):
            return [i.operands[0]]
        if i.op in (Op.Load, Op.FunctionCall) or i.op in (PassOp.SlotLoad, PassOp.EntryMask):
            return []
        return [o for o in i.operands if isinstance(o, Instruction)]

    def _condition(self, phi: Instruction) -> Value | None:
        above = self.around.tree.immediate(phi.block)
        if above is None or above.terminator.op is not Op.BranchConditional:
            return None
        condition: Value = above.terminator.operands[0]
        return condition

    def _compute(self, i: Instruction) -> Numbers:
        around, samples, op = self.around, self.around.samples, i.op
        if op is Op.Phi:
            return around.nothing if i.block in around.headers else self._phi(i)
        if op is Op.Load:
            return self._field(i) or self._load(i)
        if op is PassOp.EntryMask:
            return list(samples.live)
        if op is PassOp.SlotLoad:
            return around.slots.get(i.operands[0], around.nothing)
        values = [self._operand(o, i) for o in i.operands if isinstance(o, Value)]
        if op in (PassOp.AnyLane, PassOp.AnyLaneOfPart):
            return any_lane(samples, values[0])
        if op in ADDRESS:
            return self._address(i, values)
        if op in _SAME:
            if i.operands[0].type.kind is Kind.OPAQUE:
                return values[0]
            return values[0] if _is_alike(i.type, i.operands[0].type) else around.nothing
        if op is Op.Select:
            return self._select(*values)
        if op is Op.CompositeExtract:
            places = i.operands[1:]
            return [v[places[0]] if type(v) is tuple and len(places) == 1 else None for v in values[0]]
        if op is Op.CompositeConstruct and i.type.kind is Kind.VECTOR:
            return [p if len(p) == i.type.count else None for p in zip(*values, strict=True)]
        if i.type is None or i.type.kind is Kind.POINTER:
            return around.nothing
        if self.crossing is not None and i in self.crossing:
            return self._crossed(i, *values)
        if not values:
            return around.guesses if i.type.kind is Kind.BOOL else around.nothing
        return [compute(i, list(lane)) for lane in zip(*values, strict=True)]

    def _field(self, i: Instruction) -> Numbers | None:
        """What a load from the descriptor of an image gives, if that is known."""
        image = image_of(i.operands[0])
        shape = self.around.samples.launch.images.get(image.index) if image is not None else None
        if shape is None:
            return None
        width, height, depth, pixel = shape
        fields = {
            DATA: 0, ROW_PITCH: width * pixel, SLICE_PITCH: width * height * pixel, WIDTH: width,
            HEIGHT: height, DEPTH: depth,
        }  # fmt: skip
        places = self._operand(i.operands[0], i)
        return [fields.get(place) if isinstance(place, int) else None for place in places]

    def _load(self, i: Instruction) -> Numbers:
        source = i.operands[0]
        if isinstance(source, Variable) and source.builtin is not None:
            return self.around.samples.of_builtin(source.builtin, self.around.shift_of(i))
        if isinstance(source, Instruction) and source.op in ADDRESS:
            variable, place = source.operands[0], source.operands[-1]
            if isinstance(variable, Variable) and variable.builtin is not None and type(place) is Constant:
                whole = self.around.samples.of_builtin(variable.builtin, self.around.shift_of(i))
                at = int(place.value or 0)
                return [v[at] if type(v) is tuple and at < len(v) else None for v in whole]
        return self.around.guesses if i.type.kind is Kind.BOOL else self.around.nothing

    def _phi(self, i: Instruction) -> Numbers:
        values = [self._operand(v, i) for v in i.operands[::2]]
        if len(values) == 1 or all(v == values[0] for v in values[1:]):
            return values[0]
        tree, above = self.around.tree, self.around.tree.immediate(i.block)
        condition = self._condition(i)
        if len(values) == 2 and condition is not None and above is not None:
            first, second = above.terminator.operands[1:3]
            sides = []
            for before in i.operands[1::2]:
                ways = [
                    before is above if way is i.block else tree.dominates(way, before)
                    for way in (first, second)
                ]
                sides.append(ways.index(True) if sum(ways) == 1 else -1)
            if sorted(sides) == [0, 1]:
                chances = self._operand(condition, i)
                return self._select(chances, values[sides.index(0)], values[sides.index(1)])
        if i.type.kind is Kind.BOOL:
            return [_mean(lane) for lane in zip(*values, strict=True)]
        return self.around.nothing

    def _select(self, chances: Numbers, yes: Numbers, no: Numbers) -> Numbers:
        samples = self.around.samples
        each = len(samples.lanes)
        out: Numbers = []
        for k, (p, a, b) in enumerate(zip(chances, yes, no, strict=True)):
            if a == b:
                out.append(a)
            elif not isinstance(p, float):
                out.append(None)
            elif p >= _CERTAIN or p <= 1 - _CERTAIN:
                out.append(a if p > 0.5 else b)
            elif isinstance(a, float) and isinstance(b, float):
                out.append(p * a + (1 - p) * b)
            else:
                out.append(a if samples.chance[k // each][1] < p else b)
        return out

    def _address(self, i: Instruction, values: list[Numbers]) -> Numbers:
        """The offset of a pointer from what it points into."""
        base = i.operands[0].type.element
        if not isinstance(base, Type):
            return self.around.nothing
        steps: list[tuple[Numbers, int, int]] = []
        fixed, type_ = 0, base
        for number, index in enumerate(i.operands[1:]):
            if number or i.op not in (Op.PtrAccessChain, Op.InBoundsPtrAccessChain):
                if type_.kind is Kind.STRUCT:
                    member = int(index.value or 0) if isinstance(index, Constant) else 0
                    fixed += member_offset(type_, member)
                    type_ = type_.members[member]
                    continue
                type_ = type_.element
            steps.append((values[number + 1], size_of(type_), index.type.width))
        out: Numbers = []
        for lane, start in enumerate(values[0]):
            total = None if start is None or not isinstance(start, int) else start + fixed
            for numbers, size, width in steps:
                index = numbers[lane]
                if total is None or not isinstance(index, int):
                    total = None
                    break
                total += signed(index, width) * size
            out.append(total)
        return out

    def _crossed(self, i: Instruction, left: Numbers, right: Numbers) -> Numbers:
        """A comparison for equality of what only grows or only shrinks: whether it has been true by now."""
        assert self.crossing is not None
        out: Numbers = []
        for a, b, first in zip(left, right, self.crossing[i], strict=True):
            if not isinstance(a, int) or not isinstance(b, int) or first is None:
                out.append(compute(i, [a, b]))
                continue
            width = i.operands[0].type.width if i.operands[0].type.kind is Kind.INT else 64
            now = signed((a - b) & ((1 << width) - 1), width)
            is_past = now == 0 or (now > 0) != (first > 0)
            out.append(float(is_past == (i.op is Op.IEqual)))
        return out


def image_of(pointer: Value) -> Argument | None:
    """The image whose descriptor a pointer is into, if it is one."""
    while isinstance(pointer, Instruction) and pointer.op in SAME_OBJECT:
        pointer = pointer.operands[0]
    is_image = isinstance(pointer, Argument) and pointer.type.kind is Kind.OPAQUE
    return pointer if is_image else None  # type: ignore[return-value]


def base_of(pointer: Value) -> Value:
    """What a pointer is computed from: an argument, an image, a variable, or where nobody knows."""
    seen: set[Value] = set()
    while isinstance(pointer, Instruction) and pointer not in seen:
        seen.add(pointer)
        if pointer.op is Op.Load:
            return image_of(pointer.operands[0]) or pointer
        if pointer.op is Op.Phi or pointer.op in SAME_OBJECT:
            pointer = pointer.operands[0]
        elif pointer.op is Op.Select:
            pointer = pointer.operands[1]
        else:
            break
    return pointer


def differences(i: Instruction, frame: Frame) -> list[int | None]:
    """By how much the first operand of a comparison of integers is above the second."""
    width = i.operands[0].type.width
    out: list[int | None] = []
    for a, b in zip(*(frame.of(o) for o in i.operands), strict=True):
        known = isinstance(a, int) and isinstance(b, int)
        out.append(signed((a - b) & ((1 << width) - 1), width) if known else None)
    return out


def any_lane(samples: Samples, mask: Numbers) -> Numbers:
    """How probable it is that some lane of a vector is in a mask, for each of its lanes. Lanes that nobody
    looks at are like the others; data of neighbours are often alike, so that it takes fewer lanes to tell."""
    each = len(samples.lanes)
    power = max(1.0, samples.width / 2 / each)
    out: Numbers = []
    for start in range(0, samples.size, each):
        none = 1.0
        for p in mask[start : start + each]:
            none *= 1 - (p if isinstance(p, float) else 0.5)
        out += [1 - none**power] * each
    return out


def _is_alike(type_: Type, other: Type) -> bool:
    """Whether numbers of one type are as many of the other."""
    if type_.kind is Kind.VECTOR and other.kind is Kind.VECTOR and type_.count != other.count:
        return False
    return _is_number(type_) == _is_number(other)


def _is_number(type_: Type) -> bool:
    """Whether bits of a type are an integer, or an address, as numbers here are."""
    return type_.kind in (Kind.INT, Kind.POINTER)


def _mean(values: tuple[Number, ...]) -> Number:
    known = [v for v in values if isinstance(v, float)]
    return sum(known) / len(known) if known else 0.5
