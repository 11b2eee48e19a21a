"""Decodes the body of one function, the reader's inner loop; decoders.py has the rarer forms."""

from __future__ import annotations

from ..enums import Op
from ..errors import SpirvError
from ..location import Location
from ..module import NO_DECORATIONS, Argument, Block, Function, Instruction, Operand, Type, Value
from .debug_info import Position
from .decoders import FORMS, IN_BLOCK, RESULT_IDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .reader import Reader


class Scope(dict[int, Value]):
    """ids of a function body to Values; those of the module are copied in when first used."""

    __slots__ = ("outer",)

    def __init__(self, outer: dict[int, Value]) -> None:
        super().__init__()
        self.outer = outer

    def __missing__(self, key: int) -> Value:
        value = self[key] = self.outer[key]
        return value


class Late(Value):
    """An operand whose definition comes later in the binary. Blocks come in an order of dominance, says the
    specification, but llvm-spirv does not always keep it; whether definitions dominate uses is for the
    validator to say."""

    __slots__ = ("id",)

    def __init__(self, id_: int) -> None:
        super().__init__(None)
        self.id = id_


def reverse_postorder(entry: Block) -> list[Block]:
    """The blocks that can be reached, each after those that dominate it."""
    order: list[Block] = []
    seen = {id(entry)}
    stack = [(entry, iter(entry.successors()))]
    while stack:
        block, rest = stack[-1]
        for successor in rest:
            if id(successor) not in seen:
                seen.add(id(successor))
                stack.append((successor, iter(successor.successors())))
                break
        else:
            stack.pop()
            order.append(block)
    return order[::-1]


class Body:
    """State while one body is decoded. The reader gives the module's words, ids, names and decorations."""

    def __init__(self, reader: Reader, function: Function) -> None:
        self.reader = reader
        self.function = function
        self.words = reader.words
        self.types = reader.types_by_id
        self.values = Scope(reader.values)
        self.labels: dict[int, Block] = {}
        self.placed: set[int] = set()  # labels whose block has begun
        self.blocks: list[Block] = []
        self.block: Block | None = None
        self.line: Location | None = None  # of what is decoded next
        self.position = Position(self)
        self.late: list[tuple[Instruction, int, int]] = []  # phi operands to resolve at the end
        self.has_late = False  # whether other operands are Late
        self.continued = 0  # where the last instruction that continued another ended

    def error(self, p: int, rule: str) -> SpirvError:
        """The SpirvError of the instruction at word p."""
        return self.reader.error(p, rule)

    def define(self, p: int, rid: int, value: Value) -> None:
        """Binds a result id, which must be new and below the bound."""
        self.need_new(p, rid)
        self.values[rid] = value

    def need_new(self, p: int, rid: int) -> None:
        """Raises SpirvError if a result id is not new, or not below the bound."""
        if not 0 < rid < self.reader.bound:
            raise self.error(p, f"result id {rid} is not below the bound {self.reader.bound}")
        if rid in self.values or rid in self.reader.values or rid in self.reader.types_by_id:
            raise self.error(p, f"result id {rid} is defined twice")

    def type(self, p: int, id_: int) -> Type:
        """The type with an id. SpirvError if it is no type."""
        type_ = self.types.get(id_)
        if type_ is None:
            raise self.error(p, f"id {id_} is not a type")
        return type_

    def value(self, p: int, id_: int) -> Value:
        """The value with an id; a Late if its definition is still to come. SpirvError if it is a type or
        label."""
        try:
            return self.values[id_]
        except KeyError:
            if id_ in self.types or id_ in self.labels:
                raise self.error(p, self.not_a_value(id_)) from None
            self.has_late = True
            return Late(id_)

    def not_a_value(self, id_: int) -> str:
        """Why an id is not a value: the rule that a SpirvError names."""
        if id_ in self.types:
            return f"id {id_} is a type where a value is needed"
        if id_ in self.labels:
            return f"id {id_} is a label where a value is needed"
        return f"id {id_} is used before its definition, or has none"

    def label(self, id_: int) -> Block:
        """The block of a label, made when it is first named."""
        block = self.labels.get(id_)
        if block is None:
            block = self.labels[id_] = Block(self.function)
        return block

    def add(self, p: int, op: Op, type_: Type | None, rid: int, operands: list[Operand]) -> Instruction:
        """Puts an instruction at the end of the block; rid: its result id, 0 if it has none."""
        assert self.block is not None
        instruction = Instruction(op, type_, operands, self.block)
        instruction.line = self.line
        instruction.offset = p
        if rid:
            self.define(p, rid, instruction)
            self.describe(instruction, rid)
        self.block.instructions.append(instruction)
        return instruction

    def describe(self, value: Instruction | Argument, rid: int) -> None:
        """Gives a value its name and decorations."""
        reader = self.reader
        if rid in reader.names:
            value.name = reader.string(reader.names[rid] + 2)[0]
        if rid in reader.decorations:
            value.decorations = reader.decorations[rid]

    def decode(self, start: int, end: int) -> None:
        """Words [start, end) are those after OpFunction up to OpFunctionEnd."""
        words, types, values, forms = self.words, self.types, self.values, FORMS
        names, decorations = self.reader.names, self.reader.decorations
        module_values, bound = self.reader.values, self.reader.bound
        p = start
        while p < end:
            word = words[p]
            n = word >> 16
            try:
                form = forms[word & 0xFFFF]
            except KeyError:
                raise self.error(p, "not an instruction of function bodies") from None
            kind, op, least, most, extra = form
            if not least <= n <= most:
                raise self.error(p, f"{n} words, where {least} to {most} are right")
            if kind <= RESULT_IDS:
                block = self.block
                if block is None:
                    raise self.error(p, "outside of a block")
                instruction = Instruction.__new__(Instruction)
                instruction.op = op
                try:
                    if kind:
                        instruction.type = types[words[p + 1]]
                        rid = words[p + 2]
                        try:
                            instruction.operands = [values[w] for w in words[p + 3 : p + n]]
                        except KeyError:
                            instruction.operands = [self.value(p, w) for w in words[p + 3 : p + n]]
                        if rid in values or rid in module_values or rid in types or not 0 < rid < bound:
                            self.need_new(p, rid)
                        values[rid] = instruction
                        instruction.name = self.reader.string(names[rid] + 2)[0] if rid in names else ""
                        instruction.decorations = decorations.get(rid, NO_DECORATIONS)
                    else:
                        instruction.type = None  # type: ignore[assignment]  # as Value's
                        try:
                            instruction.operands = [values[w] for w in words[p + 1 : p + n]]
                        except KeyError:
                            instruction.operands = [self.value(p, w) for w in words[p + 1 : p + n]]
                        instruction.name = ""
                        instruction.decorations = NO_DECORATIONS
                except KeyError:
                    raise self.error(p, f"id {words[p + 1]} is not a type") from None
                instruction.block = block
                instruction.memory = instruction.mask = None
                instruction.line = self.line
                instruction.offset = p
                block.instructions.append(instruction)
                if extra:
                    self.block = None
            else:
                if kind == IN_BLOCK and self.block is None:
                    raise self.error(p, "outside of a block")
                extra(self, p, n, op)
            p += n
        self.finish(end)

    def finish(self, end: int) -> None:
        """Resolves what was named ahead, and hands the blocks to the function. end: word offset of
        OpFunctionEnd."""
        function = self.function
        if self.block is not None:
            raise self.error(end, "a block without a terminator")
        for id_ in self.labels:
            if id_ not in self.placed or id_ in self.values or id_ in self.reader.values:
                raise self.error(end, f"id {id_} is used as a label but labels no block of this function")
        for phi, index, id_ in self.late:
            try:
                phi.operands[index] = self.values[id_]
            except KeyError:
                raise self.error(phi.offset, self.not_a_value(id_)) from None
        if self.has_late:
            self.resolve()
        self.unique_ids(end)
        if len(function._arguments) != len(function.type.members):
            raise self.error(
                end,
                f"{len(function._arguments)} parameters, the function's type has "
                f"{len(function.type.members)}",
            )
        function._blocks = self.blocks

    def unique_ids(self, end: int) -> None:
        """An id is defined once in a module, not in two of its functions."""
        reader = self.reader
        outer = reader.values  # a difference of the two would take as long as all functions' declarations
        mine = self.placed.union(id_ for id_ in self.values if id_ not in outer)
        if not reader.local_ids.isdisjoint(mine):
            raise self.error(end, f"id {min(reader.local_ids & mine)} is defined in two functions")
        reader.local_ids |= mine

    def resolve(self) -> None:
        """Puts the definitions in place of Late operands, and the blocks in an order of dominance."""
        for block in self.blocks:
            for instruction in block.instructions:
                for index, operand in enumerate(instruction.operands):
                    if operand.__class__ is not Late:
                        continue
                    value = self.values.get(operand.id)
                    if value is None or getattr(value, "block", None) is block:
                        raise self.error(instruction.offset, self.not_a_value(operand.id))
                    instruction.operands[index] = value
        order = reverse_postorder(self.blocks[0])
        reached = set(map(id, order))
        self.blocks = order + [block for block in self.blocks if id(block) not in reached]
