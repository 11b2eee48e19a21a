"""Masks that live from block to block, as wide as what they were compared from.

A CPU without registers for masks compares into a vector, all ones or zeros for each lane. LLVM's code
generator looks at one block at a time, and passes `<8 x i1>` on to the next one as eight numbers of 16 bits:
loops whose lanes leave one by one pack each mask and unpack it again in every iteration. Here they are
passed on as vectors of integers, of which the upper bits count. A use asks whether an element is negative,
which costs nothing where the CPU itself looks at upper bits: blends, masked accesses, movmsk.

A select that asks for one bit of a number asks for the sign of what is shifted there: one operation less.

This comes after LLVM's passes on IR, which would make it what it was.
"""

from __future__ import annotations

from collections import Counter

from ...device.target import Target
from ...late_patterns import pattern
from .text import LABEL, NAME, free_prefix, rewrite

# A register of the smallest vectors. LLVM passes masks on in one whatever their comparisons were.
_SMALL = 128

# Lines of functions in which masks that loops carry may take several registers: where much is done in an
# iteration, packing is little of it, and registers are what it lacks. Other masks are made once, and would be
# unpacked at every use; where registers lack, a use loads them.
_SHORT = 500
_BITS = {"i8": 8, "i16": 16, "i32": 32, "i64": 64, "half": 16, "float": 32, "double": 64, "ptr": 64}

_BOOL = pattern(r"i1 (\w+)")
_CARRIED = pattern(r" = phi <\d+ x i1> ")
_USE = pattern(NAME)
_VALUE = rf"(?:{NAME}|zeroinitializer|poison|undef|splat \(i1 \w+\)|<[^<>]*>)"
_MASK = pattern(rf"  ({NAME}) = (phi|and|or(?: disjoint)?|xor|select|freeze) (.*)")
_PHI = pattern(r"<(\d+) x i1> (\[ .*? \])((?:, !\S+ !\d+)*)$")
_EDGE = pattern(rf"\[ ({_VALUE}), ({NAME}) \]")
_LOGIC = pattern(rf"<(\d+) x i1> ({_VALUE})(?:, ({_VALUE}))?((?:, !\S+ !\d+)*)$")
_CHOICE = pattern(rf"<(\d+) x i1> ({NAME}), <\d+ x i1> ({_VALUE}), <\d+ x i1> ({_VALUE})((?:, !\S+ !\d+)*)$")
_COMPARED = pattern(rf"  ({NAME}) = [if]cmp (?:\w+ )+<\d+ x (\w+)> ")
_CHOSEN = pattern(rf"select (?:\w+ )*<(\d+) x i1> ({NAME}), <\d+ x (\w+)> ")
_BIT = pattern(rf"  ({NAME}) = and <\d+ x (i32|i64)> ({NAME}), splat \(i\d+ (-?\d+)\)")
_ASKED = pattern(rf"  ({NAME}) = icmp (eq|ne) <(\d+) x (i32|i64)> ({NAME}), zeroinitializer(.*)")
_RESULT = pattern(rf"  ({NAME}) = ")
_FIRST = pattern(rf"  ({NAME}) = insertelement <\d+ x i1> (?:poison|undef), i1 ({_VALUE}), i\d+ 0")
_SPLAT = pattern(rf"  ({NAME}) = shufflevector <\d+ x i1> ({NAME}), .* zeroinitializer")


def may_help(text: str, target: Target) -> bool:
    """Whether there may be such masks in a module for a CPU without registers for masks."""
    if not target.triple.startswith("x86_64") or "+avx512f" in target.feature_string:
        return False
    return _CARRIED.search(text) is not None or _is_any_passed_on(text)


def _is_any_passed_on(text: str) -> bool:
    """Whether a block uses a mask that another one has made."""
    made: dict[str, int] = {}
    block = 0
    for line in text.splitlines():
        if not line.startswith(" "):
            if line.startswith("define"):
                made.clear()
            elif LABEL.match(line):
                block += 1
        elif " x i1> " in line:
            if found := _MASK.match(line):
                made[found[1]] = block
            if any(made.get(use, block) != block for use in _USE.findall(line)):
                return True
    return False


def widen(text: str, vector_bits: int) -> str | None:
    """A module, as LLVM prints it, with masks that are passed on as integers; None if there are none.
    vector_bits: of the CPU's registers."""
    prefix = free_prefix(text, "wide")
    return rewrite(text, lambda lines: _Function(lines, prefix, vector_bits).widened())


class _Operation:
    """A mask made of masks: `kind` is phi or an operation, `tail` metadata behind it. blocks: of a phi, the
    blocks that its operands come from."""

    __slots__ = ("block", "blocks", "kind", "operands", "tail", "width")

    def __init__(
        self, kind: str, width: int, operands: list[str], tail: str, block: str, blocks: list[str]
    ) -> None:
        self.kind, self.width, self.operands = kind, width, operands
        self.tail, self.block, self.blocks = tail, block, blocks


def _operation(kind: str, rest: str, block: str) -> _Operation | None:
    """What a line's operation does, if it makes a mask of masks."""
    if kind == "phi":
        found = _PHI.match(rest)
        if found is None:
            return None
        edges = _EDGE.findall(found[2])
        values, blocks = [value for value, _ in edges], [label for _, label in edges]
        return _Operation(kind, int(found[1]), values, found[3], block, blocks)
    if kind == "select":
        found = _CHOICE.match(rest)
        if found is None:
            return None
        return _Operation(kind, int(found[1]), [found[2], found[3], found[4]], found[5], block, [])
    found = _LOGIC.match(rest)
    if found is None:
        return None
    operands = [operand for operand in (found[2], found[3]) if operand]
    return _Operation(kind, int(found[1]), operands, found[4], block, [])


class _Function:
    """The lines of a function, and what makes masks in it."""

    def __init__(self, lines: list[str], prefix: str, vector_bits: int) -> None:
        self._lines = lines
        self._prefix = prefix
        self._vector_bits = vector_bits
        self._operations: dict[str, _Operation] = {}
        self._comparisons: dict[str, int] = {}  # bits of what they compare
        self._first: dict[str, str] = {}  # conditions that are the first lane of a mask
        self._splats: dict[str, str] = {}  # masks of such a condition
        self._bits: dict[int, int] = {}  # of an element of wide masks, for each number of lanes

    def widened(self) -> list[str] | None:
        """The lines with masks passed on as integers, None if no masks are."""
        self._find()
        wide = self._to_widen()
        if not wide:
            return None
        self._bits = self._choose_bits(wide)
        wide = {name for name in wide if self._operations[name].width in self._bits}
        return self._write(wide) if wide else None

    def _signs(self) -> dict[str, list[str]]:
        """Lines in place of comparisons that ask for one bit, and that only selects of such numbers use."""
        bits: dict[str, tuple[str, int]] = {}
        made: dict[str, list[str]] = {}
        elements: dict[str, str] = {}
        uses: Counter[str] = Counter()
        for line in self._lines:
            if " = and <" in line and (found := _BIT.match(line)):
                number = int(found[4]) % (1 << _BITS[found[2]])
                if number and not number & (number - 1):
                    bits[found[1]] = found[3], number.bit_length() - 1
            elif bits and (asked := _ASKED.match(line)) and asked[5] in bits:
                name, how, width, element, of, tail = asked.groups()
                value, bit = bits[of]
                t, shifted = f"<{width} x {element}>", self._named("bit", name)
                sign = "slt", "zeroinitializer"
                if how == "eq":
                    sign = "sgt", f"splat ({element} -1)"
                made[name] = [
                    f"  {shifted} = shl {t} {value}, splat ({element} {_BITS[element] - 1 - bit}){tail}",
                    f"  {name} = icmp {sign[0]} {t} {shifted}, {sign[1]}{tail}",
                ]
                elements[name] = element
                uses[name] = -1
        for line in self._lines if made else ():
            for name in _USE.findall(line):
                if name in made:
                    uses[name] += 1
            chosen = _CHOSEN.search(line) if "select " in line else None
            if chosen and _BITS.get(chosen[3]) == _BITS.get(elements.get(chosen[2], "")):
                uses[chosen[2]] -= 1
        return {name: lines for name, lines in made.items() if uses[name] == 0}

    def _find(self) -> None:
        block = ""
        for line in self._lines:
            if line[:1] != " ":
                if label := LABEL.match(line):
                    block = "%" + label[1]
            elif " x i1> " in line:
                if found := _MASK.match(line):
                    operation = _operation(found[2], found[3], block)
                    if operation is not None:
                        self._operations[found[1]] = operation
                elif first := _FIRST.match(line):
                    self._first[first[1]] = first[2]
                elif (splat := _SPLAT.match(line)) and splat[2] in self._first:
                    self._splats[splat[1]] = self._first[splat[2]]
            if "cmp " in line and (compared := _COMPARED.match(line)) and compared[2] in _BITS:
                self._comparisons[compared[1]] = _BITS[compared[2]]

    def _to_widen(self) -> set[str]:
        """Masks that other blocks use, and those that these are made of."""
        work = [name for name, operation in self._operations.items() if operation.kind == "phi"]
        block = ""
        for line in self._lines:
            if line[:1] != " ":
                if label := LABEL.match(line):
                    block = "%" + label[1]
            elif " x i1> " in line:
                for use in _USE.findall(line):
                    operation = self._operations.get(use)
                    if operation is not None and operation.block != block:
                        work.append(use)
        wide: set[str] = set()
        while work:
            name = work.pop()
            if name not in wide and name in self._operations:
                wide.add(name)
                work += self._operations[name].operands
        return wide

    def _choose_bits(self, wide: set[str]) -> dict[int, int]:
        """The bits of an element for each number of lanes, where it is more than LLVM would take: those that
        most comparisons and selects have."""
        votes: dict[int, Counter[int]] = {}
        for name in wide:
            operation = self._operations[name]
            for operand in operation.operands:
                if operand in self._comparisons:
                    votes.setdefault(operation.width, Counter())[self._comparisons[operand]] += 1
        for line in self._lines:
            chosen = _CHOSEN.search(line) if "select " in line else None
            if chosen and chosen[2] in wide and chosen[3] in _BITS:
                votes.setdefault(int(chosen[1]), Counter())[_BITS[chosen[3]]] += 1
        is_carried = any(self._operations[name].kind == "phi" for name in wide)
        most_bits = self._vector_bits if is_carried and len(self._lines) > _SHORT else _SMALL * 64
        bits = {}
        for width, counts in votes.items():
            most = max(counts, key=lambda size: (counts[size], -size))
            if max(_SMALL, 8 * width) < most * width <= most_bits:
                bits[width] = most
        return bits

    def _write(self, wide: set[str]) -> list[str]:
        """The lines, with wide masks for those that are named."""
        extended = {
            operand: self._operations[name].width
            for name in wide
            for operand in self._operations[name].operands
            if operand[0] == "%" and operand not in wide
        }
        arguments = set(extended)
        made: list[str] = []
        after_phis: list[str] = []
        signs = self._signs()
        for line in self._lines:
            name = found[1] if line[:3] == "  %" and (found := _RESULT.match(line)) else ""
            arguments.discard(name)
            is_phi = " = phi " in line
            if after_phis and not is_phi and line[:2] == "  ":
                made += after_phis
                after_phis = []
            behind = after_phis if is_phi else made
            if name in wide:
                operation = self._operations[name]
                made += self._operation_lines(name, operation)
                t = self._type(operation.width)
                behind.append(
                    f"  {name} = icmp slt {t} {self._named('mask', name)}, zeroinitializer{operation.tail}"
                )
                continue
            made += signs.get(name) or [line]
            if name in extended:
                behind += self._extension(name, extended[name])
        if arguments:  # of the function
            first = next(number for number, line in enumerate(made) if line[:2] == "  ")
            made[first:first] = [
                line for name in sorted(arguments) for line in self._extension(name, extended[name])
            ]
        return self._without_numbers(made, wide)

    def _without_numbers(self, lines: list[str], wide: set[str]) -> list[str]:
        """Values without a name have numbers that grow from line to line, and phis have moved."""
        moved = {name: self._named("was", name) for name in wide if name[1:].isdigit()}
        if not moved:
            return lines
        return [_USE.sub(lambda use: moved.get(use[0], use[0]), line) for line in lines]

    def _type(self, width: int) -> str:
        return f"<{width} x i{self._bits[width]}>"

    def _named(self, what: str, name: str) -> str:
        quote = '"' if name[1] == '"' else ""
        return f"%{quote}{self._prefix}.{what}.{name[1 + len(quote) :]}"

    def _extension(self, name: str, width: int) -> list[str]:
        """Lines that make a mask wide; one of a single condition while that is a single one."""
        t, mask = self._type(width), self._named("mask", name)
        if name not in self._splats:
            return [f"  {mask} = sext <{width} x i1> {name} to {t}"]
        one, first, element = self._named("one", name), self._named("first", name), f"i{self._bits[width]}"
        return [
            f"  {one} = sext i1 {self._splats[name]} to {element}",
            f"  {first} = insertelement {t} poison, {element} {one}, i32 0",
            f"  {mask} = shufflevector {t} {first}, {t} poison, <{width} x i32> zeroinitializer",
        ]

    def _operand(self, operand: str, width: int) -> str:
        """An operand in the wide type."""
        if operand[0] == "%":
            return self._named("mask", operand)
        element = f"i{self._bits[width]}"
        return _BOOL.sub(lambda found: f"{element} {_NUMBERS.get(found[1], found[1])}", operand)

    def _operation_lines(self, name: str, operation: _Operation) -> list[str]:
        """A mask's operation on wide masks."""
        t, kind, tail = self._type(operation.width), operation.kind, operation.tail
        operands = [self._operand(operand, operation.width) for operand in operation.operands]
        result = self._named("mask", name)
        if kind == "phi":
            edges = ", ".join(
                f"[ {operand}, {label} ]" for operand, label in zip(operands, operation.blocks, strict=True)
            )
            return [f"  {result} = phi {t} {edges}{tail}"]
        if kind != "select":
            return [f"  {result} = {kind.split(maxsplit=1)[0]} {t} {', '.join(operands)}{tail}"]
        condition, yes, no = operands
        if operation.operands[1] == "splat (i1 true)":
            logic, other = "or", no
        elif operation.operands[2] == "zeroinitializer":
            logic, other = "and", yes
        else:
            narrow = f"<{operation.width} x i1> {operation.operands[0]}"
            return [f"  {result} = select {narrow}, {t} {yes}, {t} {no}{tail}"]
        # A select does not look at an operand that may be poison.
        frozen = self._named("frozen", name)
        return [f"  {frozen} = freeze {t} {other}", f"  {result} = {logic} {t} {condition}, {frozen}{tail}"]


_NUMBERS = {"true": "-1", "false": "0"}
