"""Addresses that vary, as far as anybody knows before a kernel runs, and then mostly are those of neighbours.

`i ^ distance`, `clamp(x - 1, 0, width - 1)`, `i % width` and their like have no stride that holds for all
launches, but lanes that differ by 1 or by nothing in most vectors. Where an address is made of them, the code
generator asks when the kernel runs and has two versions of the access. The question is about the value whose
stride is not known (the coordinate), so it is asked once, where that value is computed, for all that is
computed from it by sums and conversions. Of what is clamped, the first and the last lane are asked about.
Where a loop adds the same in all lanes to such a value, the question is asked before the loop.

What is worth asking for is guessed before (natures.py).
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from ...fast_typing import Any
from ...passes.analysis.sums import BOUNDS
from ...passes.ir.instructions import ADDRESS
from ...spirv.enums import Decoration, Op
from ...spirv.module import Constant, Instruction, Kind, Undef, Value
from ..layout.lanes import LaneEmitter
from ..llvm.forms import SCALAR
from ..llvm.types import ir_type
from .natures import ALIKE, NEIGHBOURS, SAME, Natures, Term, sign_extended

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, TypeAlias

# Of a value that has a stride if conditions (i1) hold: these, and its value in lane 0.
Answer: TypeAlias = tuple[tuple[str, ...], str]
# A phi and a stride, the lines of its answer's phis and where they are among them, and their names.
Carried: TypeAlias = tuple[Instruction, int, list[Any], int, tuple[str, str]]


class Contiguity(Natures):
    """The questions of one emission of a function; see the module."""

    def __init__(self, emitter: LaneEmitter) -> None:
        super().__init__(emitter)
        self._answers: dict[tuple[Value, int], Answer | None] = {}  # by the value and the stride
        self._carried: list[Carried] = []  # answers of loops' phis to be completed by finish()
        self.counts: dict[
            Value, bool
        ] = {}  # overflow_versioning.py: values, and whether they are made of ids and sizes

    def guess(self, terms: Sequence[tuple[Value, int]]) -> str | None:
        """What is worth asking of a sum of terms (pointer, 1), (index, scale): NEIGHBOURS, ALIKE or None."""
        natures = [self.nature(value) for value, _ in terms]
        if None in natures:
            return None
        return NEIGHBOURS if NEIGHBOURS in natures else ALIKE

    def guess_either(self, terms: Sequence[tuple[Value, int]]) -> bool:
        """Whether it is worth asking for what was not guessed, too."""
        return any(self.is_either(value) for value, _ in terms)

    def ask(self, terms: Sequence[tuple[Value, int]], stride: int) -> tuple[str, str] | None:
        """Whether the sum of terms (pointer, 1), (index, scale) has a stride in bytes between lanes.

        Returns an i1 and the address of lane 0, or None if it is not worth asking. What lanes without a
        work-item or outside of a mask compute may make the answer false, never true.
        """
        if self.guess(terms) != (NEIGHBOURS if stride else ALIKE) and not self.guess_either(terms):
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
            if stride and self.extended_stride(value) == stride:
                first = e.operand(operands[0])
                no_wrap = self._no_wrap(operands[0], first, e.stride(operands[0]), True)
                return (no_wrap,), e.emit(f"ashr {t} {first}, {operands[1].value or 0}")
            if (inner := sign_extended(value)) is not None:
                return self._extension(value, inner, stride)
        if op in (Op.UDiv, Op.SDiv, Op.ShiftRightLogical) and stride and self.divided_stride(value) == stride:
            return self._quotient(value)
        if op is Op.ExtInst:
            return self._clamped(value, stride) if stride else self._beyond(value)
        if op not in SAME or not isinstance(operands[0], Instruction):
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
            elif self.is_step(v, value) and before.terminator.op is not Op.Switch:
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

    def forget(self, values: Container[Value]) -> None:
        """Forgets answers about values that are computed anew, or elsewhere."""
        self._answers = {key: found for key, found in self._answers.items() if key[0] not in values}

    def finish(self) -> None:
        """Completes the answers of loops, all blocks of which there are now."""
        for carried in self._carried:
            self._complete(*carried)
        self._carried.clear()

    def _beyond(self, value: Instruction) -> Answer | None:
        """Bounds of neighbours: the same for all lanes where the first and the last are beyond one."""
        found = self._ends(value, BOUNDS[value.operands[1]][0]) if value.operands[1] in BOUNDS else None
        if found is None:
            return None
        rises, first, last = found
        return (rises, self.e.emit(f"icmp eq {ir_type(value.type)} {first}, {last}")), first

    def _ends(self, value: Value, signed: bool) -> tuple[str, str, str] | None:
        """Of bounds of neighbours: that these do not wrap around, and what the first and last lane have."""
        e, t = self.e, ir_type(value.type)
        if not e.is_varying(value):
            stride = e.stride(value)
            if not stride or abs(stride) * e.width >> value.type.width - 1:
                return None
            first = e.emit(f"freeze {t} {e.operand(value)}")
            last = e.emit(f"add {t} {first}, {stride * (e.width - 1)}")
            return self._no_wrap(value, first, stride, signed), first, last
        if not isinstance(value, Instruction) or value.op is not Op.ExtInst:
            return None
        if value.operands[1] not in BOUNDS or BOUNDS[value.operands[1]][0] != signed:
            return None
        inner, *bounds = value.operands[2:]
        if len(bounds) == 1 and not e.is_varying(inner) and not e.stride(inner):
            inner, bounds = bounds[0], [inner]
        if any(e.is_varying(bound) or e.stride(bound) for bound in bounds):
            return None
        found = self._ends(inner, signed)
        if found is None:
            return None
        rises, *ends = found
        _, lower, upper = BOUNDS[value.operands[1]]
        sign = "s" if signed else "u"
        if lower:
            ends = [e.intrinsic(f"{sign}max", SCALAR, t, end, e.operand(bounds[0])) for end in ends]
        if upper:
            ends = [e.intrinsic(f"{sign}min", SCALAR, t, end, e.operand(bounds[-1])) for end in ends]
        return rises, ends[0], ends[1]

    def _clamped(self, value: Instruction, stride: int) -> Answer | Literal[False] | None:
        """A minimum, a maximum or both: neighbours stay neighbours where none of them is beyond a bound."""
        e, number, (inner, *bounds) = self.e, value.operands[1], value.operands[2:]
        if number not in BOUNDS or abs(stride) * e.width >> value.type.width - 1:
            return None
        signed, lower, upper = BOUNDS[number]
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

    def _quotient(self, value: Instruction) -> Answer:
        """Of an affine value by a number that divides its stride."""
        e, (inner, divisor), t = self.e, value.operands, ir_type(value.type)
        signed = value.op is Op.SDiv
        first = e.emit(f"freeze {t} {e.operand(inner)}")
        conditions: tuple[str, ...] = (self._no_wrap(inner, first, e.stride(inner), signed),)
        if signed:
            conditions = (*conditions, e.emit(f"icmp sge {t} {first}, 0"))
        name = {Op.SDiv: "sdiv", Op.UDiv: "udiv", Op.ShiftRightLogical: "lshr"}[value.op]
        return conditions, e.emit(f"{name} {t} {first}, {divisor.value}")

    def _sum(self, terms: Sequence[Term], stride: int) -> Answer | Literal[False] | None:
        """(Conditions, lane 0's sum), None or False as of _through.

        A sum has a stride if one NEIGHBOURS among the varying terms has what the others leave of it; without
        one, a term that may be either.
        """
        e = self.e
        rest = stride
        neighbour: tuple[Value, int] | None = None
        chosen: tuple[Value, int] | None = None
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
            elif self.is_either(value):
                chosen = value, scale
        if neighbour is None and rest:
            neighbour = chosen
        if rest if neighbour is None else rest % neighbour[1] or not (rest or self.is_either(neighbour[0])):
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
