"""Integers of any width (SPV_INTEL_arbitrary_precision_integers), as integers that all stages know.

A value of another width than 8, 16, 32 or 64 becomes words: one of the next larger width, or, above 64 bits,
as many of 64 bits as it takes, the lowest first. Bits above the width are zero. In memory it takes the same
words (spirv/layout.py), as LLVM lays it out for SPIR-V; what is read there may have anything above the width.
Composites of such integers have words in their place, pointers to them stay what they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...spirv.enums import Op, OpenCLStd
from ...spirv.errors import SpirvError
from ...spirv.layout import is_of_any_width, word_width
from ...spirv.module import (
    Argument,
    Block,
    Constant,
    Function,
    Instruction,
    Kind,
    MemoryAccess,
    Operand,
    Type,
    Undef,
    Value,
)  # fmt: skip
from ...spirv.types import TypeTable
from ..ir.instructions import reverse_postorder
from .wide_integers import Words

_Std = OpenCLStd
_LOGIC = frozenset((Op.BitwiseAnd, Op.BitwiseOr, Op.BitwiseXor))
_SHIFTS = frozenset((Op.ShiftLeftLogical, Op.ShiftRightLogical, Op.ShiftRightArithmetic))
_DIVISIONS = {Op.UDiv: False, Op.UMod: False, Op.SDiv: True, Op.SRem: True, Op.SMod: True}  # whether signed
_COMPARISONS = frozenset((
    Op.IEqual, Op.INotEqual, Op.UGreaterThan, Op.UGreaterThanEqual, Op.ULessThan, Op.ULessThanEqual,
    Op.SGreaterThan, Op.SGreaterThanEqual, Op.SLessThan, Op.SLessThanEqual,
))  # fmt: skip
_WITH_SIGN = frozenset((
    Op.SGreaterThan, Op.SGreaterThanEqual, Op.SLessThan, Op.SLessThanEqual,
))  # fmt: skip
_TO_FLOAT = {Op.ConvertUToF: False, Op.ConvertSToF: True}
_FROM_FLOAT = {Op.ConvertFToU: False, Op.ConvertFToS: True}
_EXTREMES = {
    _Std.u_min: Op.ULessThan, _Std.u_max: Op.UGreaterThan, _Std.s_min: Op.SLessThan,
    _Std.s_max: Op.SGreaterThan,
}  # fmt: skip
# Whose operands may be integers that count or select, of any width.
_INDICES = frozenset((
    Op.AccessChain, Op.InBoundsAccessChain, Op.PtrAccessChain, Op.InBoundsPtrAccessChain,
    Op.VariableLengthArrayINTEL, Op.VectorExtractDynamic, Op.VectorInsertDynamic, Op.CopyMemorySized,
    Op.ConvertUToPtr,
))  # fmt: skip
_MOVES = frozenset((
    Op.Load, Op.Store, Op.Phi, Op.Select, Op.CopyObject, Op.CompositeExtract, Op.CompositeInsert,
    Op.CompositeConstruct, Op.FunctionCall, Op.ReturnValue, Op.Undef,
))  # fmt: skip


def lower_integers(functions: Iterable[Function], types: TypeTable) -> None:
    """Changes functions, and their types. SpirvError for what has no form in words."""
    divisions: dict[int, Function] = {}  # by numbers of words
    functions = list(functions)
    for function in functions:
        function.blocks  # noqa: B018  decoded while its type is still what it was
    for function in functions:
        _Lowering(function, types, divisions).run()


class _Lowering:
    def __init__(self, function: Function, types: TypeTable, divisions: dict[int, Function]) -> None:
        self.function = function
        self.types = types
        self.divisions = divisions
        self.words: dict[Value, list[Value]] = {}  # of values of odd widths
        self.widths: dict[Value, int] = {}
        self.phis: list[tuple[list[Instruction], Instruction]] = []
        self.out: list[Instruction] = []
        self.block: Block
        self.line: Instruction

    # Types.

    def legal(self, type_: Type) -> Type:
        """What values of a type are, with words in the place of integers of odd widths."""
        kind, types = type_.kind, self.types
        if is_of_any_width(type_):
            word = types.int(word_width(type_.width))
            count = -(-type_.width // word.width)
            return word if count == 1 else types.array(word, count)
        if kind is Kind.ARRAY:
            element = self.legal(type_.element)
            return type_ if element is type_.element else types.array(element, type_.count)
        if kind is Kind.STRUCT:
            members = tuple(map(self.legal, type_.members))
            return type_ if members == type_.members else types.struct(members, type_.packed, type_.name)
        return type_

    def emit(self, op: Op, type_: Type | None, operands: Sequence[Operand]) -> Instruction:
        """A new instruction at the end of what there is of the block."""
        made = Instruction(op, type_, operands, self.block)
        made.line, made.offset = self.line.line, self.line.offset
        self.out.append(made)
        return made

    def run(self) -> None:
        function, types = self.function, self.types
        if not self.concerns():
            return
        function.blocks = reverse_postorder(function)
        entry = function.blocks[0]
        self.block, self.line = entry, entry.instructions[0]
        for argument in function.arguments:
            self.take_argument(argument)
        started, self.out = self.out, []
        result = function.type.element
        members = tuple(argument.type for argument in function.arguments)
        function.type = types.function(self.legal(result), members)
        for block in function.blocks:
            self.block = block
            for i in block.instructions:
                self.line = i
                self.lower(i)
            block.instructions, self.out = self.out, []
        place = next(k for k, i in enumerate(entry.instructions) if i.op is not Op.Variable)
        entry.instructions[place:place] = started
        for made, phi in self.phis:
            for value, parent in zip(phi.operands[::2], phi.operands[1::2], strict=True):
                for one, word in zip(made, self.words_of(value), strict=True):
                    one.operands += [word, parent]

    def concerns(self) -> bool:
        values: list[Value] = list(self.function.arguments)
        for block in self.function.blocks:
            for i in block.instructions:
                values.append(i)
                values += (o for o in i.operands if isinstance(o, Value))
        return any(v.type is not None and self.legal(v.type) is not v.type for v in values)

    def take_argument(self, argument: Argument) -> None:
        type_ = argument.type
        argument.type = self.legal(type_)
        if is_of_any_width(type_):
            self.widths[argument] = type_.width
            self.words[argument] = self.masked(self.words_in(argument), type_.width)

    # Values as words.

    def words_in(self, value: Value) -> list[Value]:
        """The words that a value of a legal type consists of."""
        type_ = value.type
        if type_.kind is Kind.INT:
            return [value]
        return [self.emit(Op.CompositeExtract, type_.element, [value, k]) for k in range(type_.count)]

    def whole(self, words: list[Value], type_: Type) -> Value:
        """The value of a legal type."""
        return words[0] if type_.kind is Kind.INT else self.emit(Op.CompositeConstruct, type_, words)

    def width(self, value: Value) -> int:
        """Bits of an integer, of any width."""
        return self.widths.get(value) or value.type.width

    def is_odd(self, value: Value) -> bool:
        return value in self.widths or (value.type is not None and is_of_any_width(value.type))

    def words_of(self, value: Value) -> list[Value]:
        """The words of an integer, of any width."""
        found = self.words.get(value)
        if found is not None:
            return found
        if not is_of_any_width(value.type):
            return [value]
        width = value.type.width
        bits = word_width(width)
        if not isinstance(value, (Constant, Undef)):
            raise self.refusal(f"an integer of {width} bits that is not known here")
        number = (value.value or 0) if isinstance(value, Constant) else 0
        return [self.types.integer(bits, number >> k) for k in range(0, width, bits)]

    def value(self, value: Operand) -> Operand:
        """An operand as a value of a legal type: composites, and integers at functions' borders."""
        if not isinstance(value, Value) or value.type is None:
            return value
        if self.is_odd(value):
            type_ = self.legal(self.types.int(self.width(value)))
            return self.whole(self.words_of(value), type_)
        type_ = self.legal(value.type)
        if type_ is value.type:
            return value
        if isinstance(value, Undef):
            return self.types.undef(type_)
        if isinstance(value, Constant):
            if value.value is None:
                return self.types.null(type_)
            return self.types.constant(type_, tuple(map(self.constant, value.value)))
        raise self.refusal(f"a value of type {value.type!r} that is not known here")

    def constant(self, value: Value) -> Value:
        """A constituent of a constant."""
        if isinstance(value, Constant) and is_of_any_width(value.type):
            words = tuple(self.words_of(value))
            return words[0] if len(words) == 1 else self.types.constant(self.legal(value.type), words)
        found: Value = self.value(value)
        return found

    def arithmetic(self) -> Words:
        return Words(self.types, self.emit, self.divisions)

    def masked(self, words: list[Value], width: int) -> list[Value]:
        """Without what is above the width."""
        return self.arithmetic().masked(words, width)

    def extended(self, value: Value, width: int, signed: bool) -> list[Value]:
        """The words of an integer of this width, of another integer. Bits above the width may be ones."""
        return self.arithmetic().resized(self.words_of(value), self.width(value), width, signed)

    def signed(self, value: Value) -> list[Value]:
        """Words in which the sign fills what is above the width."""
        return self.arithmetic().with_sign(self.words_of(value), self.width(value))

    def define(self, i: Instruction, words: list[Value]) -> None:
        """Gives an integer of odd width its words, of which those above the width are dropped."""
        self.widths[i] = i.type.width
        self.words[i] = self.masked(words, i.type.width)

    def keep(self, i: Instruction) -> None:
        """The instruction stays."""
        self.out.append(i)

    def become(self, i: Instruction, op: Op, operands: Sequence[Operand]) -> None:
        """The instruction stays, as another."""
        i.op, i.operands = op, list(operands)
        self.out.append(i)

    def refusal(self, what: str) -> SpirvError:
        return SpirvError(self.line.offset, f"Op{self.line.op.name}", what)

    # Instructions.

    def lower(self, i: Instruction) -> None:
        if not self.touches(i):
            self.keep(i)
            return
        if i.op is Op.Variable:
            self.variable(i)
        elif i.op in _MOVES:
            self.move(i)
        elif i.op in _INDICES:
            self.indices(i)
        else:
            self.compute(i)

    def touches(self, i: Instruction) -> bool:
        """Whether an instruction has anything to do with integers of odd widths."""
        if i.op is Op.FunctionCall or (i.type is not None and self.legal(i.type) is not i.type):
            return True
        if i.op is Op.Store:  # of a composite that has words already
            pointee = i.operands[0].type.element
            if pointee is not None and self.legal(pointee) is not pointee:
                return True
        return any(map(self.has_odd, i.operands))

    def has_odd(self, operand: Operand) -> bool:
        """Whether an operand is such an integer, or a composite of them."""
        if not isinstance(operand, Value) or operand.type is None:
            return False
        return self.is_odd(operand) or self.legal(operand.type) is not operand.type

    def variable(self, i: Instruction) -> None:
        """Its initialiser becomes a store, since it is of another type."""
        *_, initial = i.operands
        i.operands = i.operands[:1]
        self.keep(i)
        store = Instruction(Op.Store, None, [i, initial], self.block)
        store.memory = MemoryAccess()
        self.move(store)

    def move(self, i: Instruction) -> None:
        op = i.op
        is_integer = i.type is not None and is_of_any_width(i.type)
        if op is Op.Load:
            self.load(i)
        elif op is Op.Store:
            self.store(i)
        elif op is Op.Phi and is_integer:
            word = self.types.int(word_width(i.type.width))
            count = -(-i.type.width // word.width)
            phis = [Instruction(Op.Phi, word, (), self.block) for _ in range(count)]
            self.out += phis
            self.widths[i], self.words[i] = i.type.width, list(phis)
            self.phis.append((phis, i))
        elif op is Op.Select and is_integer:
            condition, a, b = i.operands
            pairs = zip(self.words_of(a), self.words_of(b), strict=True)
            self.define(i, [self.emit(Op.Select, x.type, [condition, x, y]) for x, y in pairs])
        elif op is Op.CopyObject and is_integer:
            self.define(i, self.words_of(i.operands[0]))
        elif op is Op.CompositeExtract and is_integer:
            composite, *path = i.operands
            type_ = self.legal(i.type)
            made = self.emit(Op.CompositeExtract, type_, [self.value(composite), *path])
            self.define(i, self.words_in(made))
        elif op is Op.FunctionCall:
            self.call(i)
        else:
            i.operands = [o if isinstance(o, Block) else self.value(o) for o in i.operands]
            i.type = self.legal(i.type) if i.type is not None else i.type
            self.keep(i)

    def address(self, pointer: Value, type_: Type) -> Value:
        """A pointer to memory of a legal type."""
        wanted = self.types.pointer(pointer.type.storage, type_)
        return pointer if pointer.type is wanted else self.emit(Op.Bitcast, wanted, [pointer])

    def places(self, pointer: Value, type_: Type) -> list[Value]:
        """Where the words of an integer are."""
        word = self.types.int(word_width(type_.width))
        first = self.address(pointer, word)
        places = [first]
        for k in range(1, -(-type_.width // word.width)):
            index = self.types.integer(64, k)
            places.append(self.emit(Op.InBoundsPtrAccessChain, first.type, [first, index]))
        return places

    def access(self, i: Instruction, type_: Type) -> MemoryAccess:
        """What is said of the whole, of a word of it."""
        whole = i.memory or MemoryAccess()
        size = word_width(type_.width) // 8
        alignment = min(whole.alignment, size) if whole.alignment else 0
        return MemoryAccess(alignment, whole.volatile, whole.nontemporal)

    def load(self, i: Instruction) -> None:
        pointer = i.operands[0]
        if not is_of_any_width(i.type):
            i.type = self.legal(i.type)
            i.operands = [self.address(pointer, i.type)]
            self.keep(i)
            return
        words: list[Value] = []
        for place in self.places(pointer, i.type):
            words.append(self.emit(Op.Load, place.type.element, [place]))
            self.out[-1].memory = self.access(i, i.type)
        self.define(i, words)

    def store(self, i: Instruction) -> None:
        pointer, value = i.operands
        if not self.is_odd(value):
            value = self.value(value)
            i.operands = [self.address(pointer, value.type), value]
            self.keep(i)
            return
        type_ = self.types.int(self.width(value))
        for place, word in zip(self.places(pointer, type_), self.words_of(value), strict=True):
            self.emit(Op.Store, None, [place, word]).memory = self.access(i, type_)

    def call(self, i: Instruction) -> None:
        callee, *arguments = i.operands
        passed = [self.value(argument) for argument in arguments]
        if i.type is None or not is_of_any_width(i.type):
            i.operands, i.type = [callee, *passed], self.legal(i.type)
            self.keep(i)
            return
        made = self.emit(Op.FunctionCall, self.legal(i.type), [callee, *passed])
        made.decorations = i.decorations
        self.define(i, self.words_in(made))

    def indices(self, i: Instruction) -> None:
        """Integers that count, in 64 bits; those of steps through memory have signs."""
        signed = i.op not in (Op.VariableLengthArrayINTEL, Op.CopyMemorySized, Op.ConvertUToPtr)
        if i.type is not None and self.legal(i.type) is not i.type:
            raise self.refusal(f"a result of type {i.type!r}")
        i.operands = [
            self.extended(o, 64, signed)[0]
            if isinstance(o, Value) and o.type is not None and self.is_odd(o)
            else o
            for o in i.operands
        ]
        self.keep(i)

    def compute(self, i: Instruction) -> None:
        op, operands, words = i.op, i.operands, self.arithmetic()
        is_integer = i.type is not None and is_of_any_width(i.type)
        width = i.type.width if is_integer else 0
        if op in (Op.UConvert, Op.SConvert):
            made = self.extended(operands[0], i.type.width, op is Op.SConvert)
            if is_integer:
                self.define(i, made)
            else:
                self.become(i, Op.CopyObject, made)
        elif op in _COMPARISONS:
            read = self.signed if op in _WITH_SIGN else self.words_of
            self.become(i, Op.CopyObject, [words.compare(op, *map(read, operands))])
        elif op in _TO_FLOAT:
            value = operands[0]
            self.become(
                i,
                Op.CopyObject,
                [words.to_float(self.words_of(value), self.width(value), i.type, _TO_FLOAT[op])],
            )
        elif op is Op.Switch and self.width(operands[0]) <= 64:
            selector = self.words_of(operands[0])[0]
            self.become(i, op, [selector, *operands[1:]])
        elif not is_integer:
            self.count(i)
        elif op in _LOGIC:
            pairs = zip(*map(self.words_of, operands), strict=True)
            self.define(i, [self.emit(op, x.type, [x, y]) for x, y in pairs])
        elif op in (Op.Not, Op.SNegate):
            value = self.words_of(operands[0])
            self.define(i, words.inverted(value) if op is Op.Not else words.negated(value))
        elif op in (Op.IAdd, Op.ISub, Op.IMul):
            of = {Op.IAdd: words.sum, Op.ISub: words.difference, Op.IMul: words.product}[op]
            self.define(i, of(*map(self.words_of, operands)))
        elif op in _SHIFTS:
            read = self.signed if op is Op.ShiftRightArithmetic else self.words_of
            self.define(i, words.shifted(op, read(operands[0]), self.words_of(operands[1])))
        elif op in _DIVISIONS:
            read = self.signed if _DIVISIONS[op] else self.words_of
            self.define(i, words.divided(op, *map(read, operands)))
        elif op in _FROM_FLOAT:
            self.define(i, words.of_float(operands[0], width, _FROM_FLOAT[op]))
        elif op is Op.ConvertPtrToU:
            address = self.emit(op, self.types.int(64), operands)
            self.define(i, words.resized([address], 64, width, False))
        elif op is Op.Bitcast and self.is_odd(operands[0]) and self.width(operands[0]) == width:
            self.define(i, self.words_of(operands[0]))
        elif op is Op.BitCount:
            self.define(i, words.resized([words.bit_count(self.words_of(operands[0]))], 32, width, False))
        else:
            self.function_of(i)

    def count(self, i: Instruction) -> None:
        """What counts bits of an integer of odd width, in one that is not odd."""
        if i.op is not Op.BitCount or i.type.kind is not Kind.INT:
            raise self.unknown(i)
        words = self.arithmetic()
        number = words.bit_count(self.words_of(i.operands[0]))
        self.become(i, Op.CopyObject, words.resized([number], 32, i.type.width, False))

    def function_of(self, i: Instruction) -> None:
        number = i.operands[1] if i.op is Op.ExtInst else None
        words, width = self.arithmetic(), i.type.width
        if number in _EXTREMES:
            of, (a, b) = _EXTREMES[number], i.operands[2:]
            read = self.signed if of in _WITH_SIGN else self.words_of
            condition = words.compare(of, read(a), read(b))
            pairs = zip(self.words_of(a), self.words_of(b), strict=True)
            self.define(i, [self.emit(Op.Select, x.type, [condition, x, y]) for x, y in pairs])
        elif number == _Std.s_abs:
            self.define(i, words.magnitude(self.signed(i.operands[2])))
        elif number == _Std.popcount:
            self.define(i, words.resized([words.bit_count(self.words_of(i.operands[2]))], 32, width, False))
        elif number in (_Std.clz, _Std.ctz):
            of_zeros = words.leading_zeros if number == _Std.clz else words.trailing_zeros
            self.define(i, words.resized([of_zeros(self.words_of(i.operands[2]), width)], 32, width, False))
        else:
            raise self.unknown(i)

    def unknown(self, i: Instruction) -> SpirvError:
        widths = sorted({self.width(v) for v in (i, *i.operands)
                         if isinstance(v, Value) and v.type is not None and self.is_odd(v)})  # fmt: skip
        what = i.operands[1].name if i.op is Op.ExtInst else "not"
        return self.refusal(f"{what} available for integers of {' and '.join(map(str, widths))} bits")
