"""Addresses that vary, as far as anybody knows before a kernel runs, and then mostly are those of neighbours.

`i ^ distance`, `clamp(x - 1, 0, width - 1)`, `i % width` and their like have no stride that holds for all
launches, but lanes that differ by 1 or by nothing in most vectors. Where an address is made of them, the code
generator asks when the kernel runs and has two versions of the access. The question is about the value whose
stride is not known (the coordinate), so it is asked once, where that value is computed, for all that is
computed from it by sums and conversions. Of what is clamped, the first and the last lane are asked about.
Where a loop adds the same in all lanes to such a value, the question is asked before the loop.

The *nature* of a varying value guesses what is worth asking for: NEIGHBOURS (lanes differ by 1 or so), ALIKE
(lanes do not differ) or None. What is loaded from memory has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from ...passes.ir.instructions import ADDRESS
from ...spirv.enums import Decoration, Op
from ...spirv.enums import OpenCLStd as Std
from ...spirv.module import Constant, Instruction, Kind, Undef, Value
from ..layout.lanes import LaneEmitter
from ..llvm.types import ir_type, member_offset, size_of

# Of a value that has a stride if conditions (i1) hold: these, and its value in lane 0.
Answer: TypeAlias = tuple[tuple[str, ...], str]
# What a sum is made of: a value and its factor in bytes, the pointer first; None: steps by a constant.
Term: TypeAlias = tuple[Value | None, int]

# A phi and a stride, the lines of its answer's phis and where they are among them, and their names.
Carried: TypeAlias = tuple[Instruction, int, list[Any], int, tuple[str, str]]

NEIGHBOURS, ALIKE = "neighbours", "alike"

_SAME = frozenset((Op.UConvert, Op.SConvert, Op.Bitcast, Op.CopyObject, Op.PtrCastToGeneric,
                   Op.GenericCastToPtr, Op.ExpectKHR))  # fmt: skip
_BOUNDS = {  # whether signed numbers are bounded, from below, from above
    Std.s_clamp: (True, True, True), Std.s_max: (True, True, False), Std.s_min: (True, False, True),
    Std.u_clamp: (False, True, True), Std.u_max: (False, True, False), Std.u_min: (False, False, True),
}  # fmt: skip
_POINTER_STEPS = (Op.PtrAccessChain, Op.InBoundsPtrAccessChain)
_DEPTH = 40  # a guess need not follow expressions that are longer


class Contiguity:
    """The guesses and questions of one emission of a function; see the module."""

    def __init__(self, emitter: LaneEmitter) -> None:
        self.e = emitter
        self._natures: dict[Value, str | None] = {}
        self._open: set[Value] = set()  # values whose nature is being guessed
        self._answers: dict[tuple[Value, int], Answer | None] = {}  # by the value and the stride
        self._carried: list[Carried] = []  # answers of loops' phis to be completed by finish()
        self.counts: dict[
            Value, bool
        ] = {}  # overflow_versioning.py: values, and whether they are made of ids and sizes

    # Natures.

    def nature(self, value: Value, depth: int = 0) -> str | None:
        """What is worth asking of a value; affine values are NEIGHBOURS and uniform ones ALIKE."""
        e = self.e
        if not e.is_varying(value):
            if value.type.kind not in (Kind.INT, Kind.POINTER):
                return None
            return NEIGHBOURS if e.stride_is_mixed(value) else ALIKE
        if value in self._natures:
            return self._natures[value]
        if value in self._open:
            return None
        self._open.add(value)
        found = None
        is_address = value.type.kind in (Kind.INT, Kind.POINTER) and value not in e.shapes.private
        if depth < _DEPTH and is_address and isinstance(value, Instruction):
            found = self._guess(value, depth + 1)
        self._open.discard(value)
        self._natures[value] = found
        return found

    def _guess(self, value: Instruction, depth: int) -> str | None:
        """The nature of what an instruction computes, by those of its operands."""
        op, operands = value.op, value.operands
        if op is Op.Phi:
            return self._of_phi(value, depth)
        if op in ADDRESS:
            terms = self.address_terms(value)
            return self._of_sum([v for v, _ in terms if v is not None], depth) if terms else None
        if op in _SAME:
            return self.nature(operands[0], depth)
        if op is Op.ExtInst:
            operands = operands[2:] if operands[1] in _BOUNDS else []
        elif op is Op.Select:
            operands = operands[1:]
        if not operands or any(not isinstance(o, Value) for o in operands):
            return None
        natures = [self.nature(o, depth) for o in operands]
        rule = _RULES.get(op)
        return rule(self, value, natures, depth) if rule is not None and None not in natures else None

    def _of_phi(self, phi: Instruction, depth: int) -> str | None:
        values = [v for v in phi.operands[::2] if not isinstance(v, Undef)]
        entering = [v for v in values if not self._is_step(v, phi)]
        if len(entering) < len(values):
            natures = {self.nature(v, depth) for v in entering}
            return natures.pop() if len(natures) == 1 else None
        outer, self._open = self._open, set()
        # In a loop the question is whether what comes back is like what came in.
        for v in (v for v in values if not self.e.is_varying(v)):
            self._natures[phi] = self.nature(v, depth)
        coming = {self.nature(v, depth) for v in values}
        self._open = outer
        return coming.pop() if len(coming) == 1 else None

    def _is_step(self, value: Value, phi: Instruction) -> bool:
        """Whether a value is a phi plus what all lanes have in common, so that lanes differ as before."""

        def is_common(other: Value) -> bool:
            return not (self.e.is_varying(other) or self.e.stride(other))

        is_stepped = False
        while isinstance(value, Instruction):
            if value is phi:
                return is_stepped
            if value.op in (Op.IAdd, Op.ISub):
                a, b = value.operands
                if value.op is Op.IAdd and is_common(a):
                    a, b = b, a
                others = [b]
            elif value.op in ADDRESS and (terms := self.address_terms(value)) is not None:
                a, *others = [term for term, _ in terms if term is not None]
            elif value.op is Op.Bitcast and phi.type.kind is Kind.POINTER:
                a, others = value.operands[0], []
            else:
                return False
            if not all(is_common(other) for other in others):
                return False
            value, is_stepped = a, True
        return False

    # Rules: of an instruction whose operands have these natures, none of which is None.

    def _of_addition(self, value: Instruction, _: Sequence[str | None], depth: int) -> str | None:
        return self._of_sum(value.operands, depth)

    def _of_difference(self, value: Instruction, natures: Sequence[str | None], _: int) -> str | None:
        if natures[0] != natures[1]:
            return NEIGHBOURS if natures[1] == ALIKE else None
        first = value.operands[0]
        stride = self.e.stride(first) if not self.e.is_varying(first) else 1
        return NEIGHBOURS if stride > 1 else ALIKE

    def _of_product(self, value: Instruction, natures: Sequence[str | None], _: int) -> str | None:
        if natures == [ALIKE, ALIKE]:
            return ALIKE
        return NEIGHBOURS if _number_in(value) is not None else None

    def _of_shift_right(self, value: Instruction, natures: Sequence[str | None], depth: int) -> str | None:
        if self._extended_stride(value):
            return NEIGHBOURS
        inner = _sign_extended(value)
        return self._of_quotient(value, natures, depth) if inner is None else self.nature(inner, depth)

    def _of_quotient(self, value: Instruction, natures: Sequence[str | None], _: int) -> str | None:
        number = _number_in(value)
        if number is None:
            return ALIKE if natures[1] == ALIKE else None
        divisor = number if value.op in (Op.UDiv, Op.SDiv) else 1 << min(number, 64)
        return ALIKE if natures[0] == ALIKE or divisor >= self.e.width else None

    def _of_remainder(self, value: Instruction, natures: Sequence[str | None], _: int) -> str | None:
        return natures[0] if natures[1] == ALIKE else None

    def _of_bits(self, value: Instruction, natures: Sequence[str | None], depth: int) -> str | None:
        number = _number_in(value) if value.op is Op.BitwiseAnd else None
        if number is not None and not number & self.e.width - 1:  # which clears all that lanes differ in
            return ALIKE
        return self._of_choice(value, natures, depth)

    def _of_choice(self, _: Instruction, natures: Sequence[str | None], _depth: int) -> str | None:
        return NEIGHBOURS if NEIGHBOURS in natures else ALIKE

    def _of_sum(self, terms: Sequence[Value], depth: int) -> str | None:
        natures = [self.nature(t, depth) for t in terms]
        if None in natures or natures.count(NEIGHBOURS) > 1:
            return None
        return NEIGHBOURS if NEIGHBOURS in natures else ALIKE

    # Questions.

    def ask(self, terms: Sequence[tuple[Value, int]], stride: int) -> tuple[str, str] | None:
        """Whether the sum of terms (pointer, 1), (index, scale) has a stride in bytes between lanes.

        Returns an i1 and the address of lane 0, or None if it is not worth asking. What lanes without a
        work-item or outside of a mask compute may make the answer false, never true.
        """
        natures = [self.nature(value) for value, _ in terms]
        wanted = NEIGHBOURS if stride else ALIKE
        if None in natures or (NEIGHBOURS if NEIGHBOURS in natures else ALIKE) != wanted:
            return None
        found = self._sum(terms, stride)
        if not found or not found[0]:
            return None
        return self._all_of(found[0]), found[1]

    def _all_of(self, conditions: tuple[str, ...]) -> str:
        result, *others = conditions
        for condition in others:
            result = self.e.emit(f"and i1 {result}, {condition}")
        return result

    def _probe(self, value: Value, stride: int) -> Answer | None:
        """(Conditions, lane 0's value): value has the stride if they hold; None if it does not."""
        e = self.e
        if not e.is_varying(value):
            return ((), e.operand(value)) if e.stride(value) == stride else None
        key = value, stride
        if key not in self._answers:
            late = e.late.get(value)
            if late is None:
                return None
            self._answers[key] = None  # what a loop's phis ask of one another on the way round
            outer, e.lines = e.lines, late
            found = self._through(value, stride) if isinstance(value, Instruction) else None
            if found is None:
                found = self._compare(value, stride)
            if found and len(found[0]) > 1:
                found = (self._all_of(found[0]),), found[1]
            self._answers[key] = found or None
            e.lines = outer
        return self._answers[key]

    def _through(self, value: Instruction, stride: int) -> Answer | Literal[False] | None:
        """The question handed on to operands.

        None if it has to be asked of the value itself, False if the answer is known to be no.
        """
        e, op, operands = self.e, value.op, value.operands
        t = ir_type(value.type)
        if op in ADDRESS:
            terms = self.address_terms(value)
            return self._sum(terms, stride) if terms else None
        if op is Op.Phi:
            return self._phi(value, stride)
        if op in (Op.IAdd, Op.ISub):
            return self._sum([(operands[0], 1), (operands[1], 1 if op is Op.IAdd else -1)], stride)
        if op in (Op.IMul, Op.ShiftLeftLogical):
            return self._product(value, stride)
        if op is Op.ShiftRightArithmetic:
            if stride and self._extended_stride(value) == stride:
                first = e.operand(operands[0])
                no_wrap = self._no_wrap(operands[0], first, e.stride(operands[0]), True)
                return (no_wrap,), e.emit(f"ashr {t} {first}, {operands[1].value or 0}")
            if (inner := _sign_extended(value)) is not None:
                return self._extension(value, inner, stride)
        if op is Op.ExtInst and stride:
            return self._clamped(value, stride)
        if op not in _SAME or not isinstance(operands[0], Instruction):
            return None
        inner = operands[0]
        found = self._probe(inner, stride) if inner.type.kind is value.type.kind else None
        if found is None or value.type.kind is Kind.POINTER or inner.type.width == value.type.width:
            return found
        conditions, first = found
        opcode = "trunc"
        if inner.type.width < value.type.width:
            opcode = "sext" if op is Op.SConvert else "zext"
            if stride:
                conditions = (*conditions, self._no_wrap(inner, first, stride, opcode == "sext"))
        return conditions, e.emit(f"{opcode} {ir_type(inner.type)} {first} to {t}")

    def _phi(self, value: Instruction, stride: int) -> Answer | Literal[False] | None:
        """Phis of the answers. Where nothing comes in, no lane is in the masks of those who use the phi: then
        whole vectors cost least, at a place that is there."""
        e = self.e
        is_carried = False
        for v, before in zip(value.operands[::2], value.operands[1::2], strict=True):
            if before in e.exits:
                if before.terminator.op is Op.Switch:
                    return None
                if isinstance(v, Undef):
                    self._nowhere(value)
                elif self._probe(v, stride) is None:
                    return False
            elif self._is_step(v, value) and before.terminator.op is not Op.Switch:
                is_carried = True
            else:
                return None
        lines = e.beside_phis[value]
        names = e.name("v"), e.name("v")
        lines += ["", ""]
        carried = value, stride, lines, len(lines) - 2, names
        if is_carried:  # what comes back is not there yet
            self._carried.append(carried)
        else:
            self._complete(*carried)
        return (names[0],), names[1]

    def _nowhere(self, phi: Instruction) -> str:
        """What a phi may be where no lane uses it."""
        return self.e.harmless_memory("dump") if phi.type.kind is Kind.POINTER else "0"

    def _complete(
        self, phi: Instruction, stride: int, lines: list[Any], at: int, names: tuple[str, str]
    ) -> None:
        """Writes the phis of an answer."""
        e, t = self.e, ir_type(phi.type)
        conditions, firsts = [], []
        for v, before in zip(phi.operands[::2], phi.operands[1::2], strict=True):
            if isinstance(v, Undef):
                condition, first = "true", self._nowhere(phi)
            else:
                found = self._probe(v, stride)
                if found is None:  # an answer that no lanes need to agree with
                    condition, first = "false", "null" if t == "ptr" else "0"
                else:
                    condition, first = (*found[0], "true")[0], found[1]
            conditions.append(f"[ {condition}, %{e.exits[before]} ]")
            firsts.append(f"[ {first}, %{e.exits[before]} ]")
        lines[at] = f"  {names[0]} = phi i1 {', '.join(conditions)}"
        lines[at + 1] = f"  {names[1]} = phi {t} {', '.join(firsts)}"

    def finish(self) -> None:
        """Completes the answers of loops, all blocks of which there are now."""
        for carried in self._carried:
            self._complete(*carried)
        self._carried.clear()

    def _clamped(self, value: Instruction, stride: int) -> Answer | Literal[False] | None:
        """A minimum, a maximum or both: neighbours stay neighbours where none of them is beyond a bound."""
        e, number, (inner, *bounds) = self.e, value.operands[1], value.operands[2:]
        if number not in _BOUNDS or abs(stride) * e.width >> value.type.width - 1:
            return None
        signed, lower, upper = _BOUNDS[number]
        if len(bounds) == 1 and not e.is_varying(inner) and not e.stride(inner):
            inner, bounds = bounds[0], [inner]
        if any(e.is_varying(bound) or e.stride(bound) for bound in bounds):
            return None
        found = self._probe(inner, stride)
        if not found:
            return None
        conditions, first = found
        t, sign = ir_type(value.type), "s" if signed else "u"
        known = e.emit(f"freeze {t} {first}")
        last = e.emit(f"add {t} {known}, {stride * (e.width - 1)}")
        least, most = (known, last) if stride > 0 else (last, known)
        conditions = (*conditions, e.emit(f"icmp {sign}le {t} {least}, {most}"))
        if lower:
            conditions = (*conditions, e.emit(f"icmp {sign}ge {t} {least}, {e.operand(bounds[0])}"))
        if upper:
            conditions = (*conditions, e.emit(f"icmp {sign}le {t} {most}, {e.operand(bounds[-1])}"))
        return conditions, first

    def _no_wrap(self, value: Value, first: str, stride: int, signed: bool) -> str:
        """i1: a value that has a stride does not wrap around on its way from the first lane to the last."""
        e, t = self.e, ir_type(value.type)
        last = e.emit(f"add {t} {first}, {stride * (e.width - 1)}")
        predicate = ("s" if signed else "u") + ("ge" if stride > 0 else "le")
        return e.emit(f"icmp {predicate} {t} {last}, {first}")

    def _extended_stride(self, value: Instruction) -> int:
        """The stride of an affine value's upper bits, if the lower ones are the same in all lanes; else 0.

        It holds while the value does not wrap around: what `(int)` does to a size_t, a constant added within.
        """
        inner, back = value.operands
        if not isinstance(back, Constant) or self.e.is_varying(inner):
            return 0
        step, bits = self.e.stride(inner), back.value or 0
        is_whole = bits < value.type.width and step % (1 << bits) == 0
        return step >> bits if is_whole and abs(step) * self.e.width < 1 << value.type.width - 1 else 0

    def _extension(self, value: Instruction, inner: Value, stride: int) -> Answer | Literal[False] | None:
        """Of what is shifted to the left and back: it has the stride while it does not leave its range."""
        e, t = self.e, ir_type(value.type)
        there, back = value.operands[0].operands[1].value or 0, value.operands[1].value or 0
        if max(there, back) >= value.type.width:
            return None
        step = stride << back
        if step % (1 << there) or abs(step) * e.width >> value.type.width - 1:
            return None
        found = self._probe(inner, step >> there)
        if not found:
            return None
        conditions, first = found
        first = e.emit(f"shl {t} {first}, {there}")
        if step:
            conditions = (*conditions, self._no_wrap(value, first, step, True))
        return conditions, e.emit(f"ashr {t} {first}, {back}")

    def _product(self, value: Instruction, stride: int) -> Answer | Literal[False] | None:
        e, (a, b), t = self.e, value.operands, ir_type(value.type)
        if isinstance(a, Constant):
            a, b = b, a
        factor = e.integer(b)
        if factor is not None and value.op is Op.ShiftLeftLogical:
            factor = 1 << factor if factor < value.type.width else 0
        if stride and factor is not None and (not factor or stride % factor):
            return False
        if factor is None and (stride or e.is_varying(b) or value.op is Op.ShiftLeftLogical):
            return None
        found = self._probe(a, stride // factor if stride and factor else 0)
        if found is None:
            return False
        by = str(factor) if factor is not None else e.operand(b)
        return found[0], e.emit(f"mul {t} {found[1]}, {by}")

    def address_terms(self, chain: Instruction) -> list[Term] | None:
        """What an access chain adds up: (pointer, 1), (index, bytes)...; None if there is more to it.

        Steps by constants are terms, too: (None, bytes).
        """
        base, *indices = chain.operands
        type_ = base.type.element
        if not isinstance(base.type.element, type(base.type)) or getattr(base, "builtin", None) is not None:
            return None
        terms: list[Term] = [(base, 1)]
        constants: list[Term] = []
        if chain.op in _POINTER_STEPS:
            terms.append((indices.pop(0), size_of(type_)))
        for index in indices:
            if type_.kind is Kind.STRUCT:
                number = self.e.member_number(type_, index)
                offset = member_offset(type_, number)
                if offset:
                    constants.append((None, offset))
                type_ = type_.members[number]
            else:
                type_ = type_.element
                terms.append((index, size_of(type_)))
        return terms + constants

    def _sum(self, terms: Sequence[Term], stride: int) -> Answer | Literal[False] | None:
        """(Conditions, lane 0's sum), None or False as of _through.

        A sum has a stride if one NEIGHBOURS among the varying terms has what the others leave of it.
        """
        e = self.e
        rest = stride
        neighbour: tuple[Value, int] | None = None
        first = terms[0][0]
        is_address = first is not None and first.type.kind is Kind.POINTER
        if is_address:
            terms = [(v, scale) for value, scale in terms for v in self._summands(value) or (value,)]
        for value, scale in terms:
            if value is None:
                continue
            if not e.is_varying(value):
                if value in e.shapes.private:
                    return None
                rest -= e.stride(value) * scale
            elif self.nature(value) == NEIGHBOURS:
                if neighbour is not None:
                    return None
                neighbour = value, scale
        if rest if neighbour is None else rest == 0 or rest % neighbour[1]:
            return False
        conditions: tuple[str, ...] = ()
        total = ""
        for value, scale in terms:
            if value is None:
                total = e.emit(f"getelementptr i8, ptr {total}, i64 {scale}")
                continue
            step = e.stride(value) if not e.is_varying(value) else 0
            if neighbour is not None and value is neighbour[0]:
                step = rest // scale
            term = self._probe(value, step)
            if term is None:
                return False
            conditions += tuple(c for c in term[0] if c not in conditions)
            t = ir_type(value.type)
            if not total:
                total = term[1]
            elif is_address:
                if step and value.type.width < 64:
                    conditions += (self._no_wrap(value, term[1], step, True),)
                total = e.emit(f"getelementptr [{scale} x i8], ptr {total}, {t} {term[1]}")
            else:
                total = e.emit(f"{'add' if scale > 0 else 'sub'} {t} {total}, {term[1]}")
        return conditions, total

    def _summands(self, value: Value | None) -> tuple[Value, ...]:
        """What an index of 64 bits is the sum of, each extended alone, where sums do not wrap around: rows
        and columns. The addresses of several places in a row then have the row in common."""
        if not isinstance(value, Instruction) or value.op is not Op.SConvert or not self.e.is_varying(value):
            return ()
        inner = value.operands[0]
        if not isinstance(inner, Instruction) or inner.op is not Op.IAdd or value.type.width != 64:
            return ()
        return tuple(inner.operands) if Decoration.NoSignedWrap in inner.decorations else ()

    def _compare(self, value: Value, stride: int) -> Answer:
        """The question asked of the value itself: lanes are compared with what lane 0 makes them."""
        e = self.e
        f, t = e.form, ir_type(value.type)
        lanes = e.emit(f"freeze {f(t)} {e.leaf(value)}")
        first = e.emit(f"extractelement {f(t)} {lanes}, i32 0")
        expected = e.lanes_from(t, first, stride)
        equal = e.emit(f"icmp eq {f(t)} {lanes}, {expected}")
        bits = e.emit(f"bitcast {f('i1')} {equal} to i{e.width}")
        return (e.emit(f"icmp eq i{e.width} {bits}, -1"),), first


_RULES = {
    Op.IAdd: Contiguity._of_addition,
    Op.ISub: Contiguity._of_difference,
    **dict.fromkeys((Op.IMul, Op.ShiftLeftLogical), Contiguity._of_product),
    **dict.fromkeys((Op.UDiv, Op.SDiv, Op.ShiftRightLogical), Contiguity._of_quotient),
    Op.ShiftRightArithmetic: Contiguity._of_shift_right,
    **dict.fromkeys((Op.UMod, Op.SRem, Op.SMod), Contiguity._of_remainder),
    **dict.fromkeys((Op.BitwiseXor, Op.BitwiseOr, Op.BitwiseAnd), Contiguity._of_bits),
    **dict.fromkeys((Op.Select, Op.ExtInst), Contiguity._of_choice),
}


def _number_in(value: Instruction) -> int | None:
    """The first constant among the operands."""
    return next((o.value or 0 for o in value.operands if isinstance(o, Constant)), None)


def _sign_extended(value: Instruction) -> Value | None:
    """What is shifted to the left and back again, as `(int)` does to a size_t."""
    inner, back = value.operands
    if not isinstance(inner, Instruction) or inner.op is not Op.ShiftLeftLogical:
        return None
    there = inner.operands[1]
    both = isinstance(there, Constant) and isinstance(back, Constant)
    return inner.operands[0] if both and (there.value or 0) >= (back.value or 0) else None
