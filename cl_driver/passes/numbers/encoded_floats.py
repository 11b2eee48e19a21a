"""What passes on numbers of an encoding of their own (bfloat16, float8) share: they move as bits, and what
computes with them does so in float."""

from __future__ import annotations

from collections.abc import Iterable

from ...spirv.enums import Decoration, FPRoundingMode, Op
from ...spirv.errors import SpirvError
from ...spirv.module import Block, Function, Instruction, Kind, Operand, Type, Value
from ...spirv.types import TypeTable
from ..ir.emission import Emission

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...spirv.enumerant import Enumerant

_MOVES = frozenset((
    Op.Load, Op.Store, Op.Phi, Op.Select, Op.CopyObject, Op.CompositeExtract, Op.CompositeInsert,
    Op.CompositeConstruct, Op.VectorShuffle, Op.VectorExtractDynamic, Op.VectorInsertDynamic, Op.FunctionCall,
    Op.ReturnValue, Op.Undef, Op.Bitcast, Op.Variable,
))  # fmt: skip
TO_FLOAT = frozenset((Op.ConvertSToF, Op.ConvertUToF))
FROM_FLOAT = frozenset((Op.ConvertFToS, Op.ConvertFToU))


def lower_encoded(lowering: type[EncodedFloats], functions: Iterable[Function], types: TypeTable) -> None:
    """Changes functions. SpirvError for instructions that the encoding is not for."""
    for function in functions:
        for block in function.blocks:
            lowering(block, types).run()


class EncodedFloats(Emission):
    """The instructions of one block."""

    ENCODINGS: frozenset[Enumerant]
    NAME: str  # of the type, for messages

    def __init__(self, block: Block, types: TypeTable) -> None:
        super().__init__(types)
        self.block = block

    def run(self) -> None:
        """Lowers all of them."""
        old, self.block.instructions = self.block.instructions, []
        for i in old:
            if i.op not in _MOVES and any(map(self.is_encoded, (i, *i.operands))):
                self.line = i
                self.check_mode(i)
                self.lower(i)
            self.block.instructions.append(i)

    def lower(self, i: Instruction) -> None:
        """Changes an instruction, and puts before it what it then needs."""
        raise NotImplementedError

    def is_encoded(self, value: Operand) -> bool:
        """Whether something is such a number, or a vector of them."""
        type_ = value.type if isinstance(value, Value) else None
        if type_ is None:
            return False
        scalar = _scalar(type_)
        return scalar.kind is Kind.FLOAT and not self.ENCODINGS.isdisjoint(scalar.operands)

    def check_mode(self, i: Instruction) -> None:
        """SpirvError for roundings other than to the nearest even number."""
        mode = i.decorations.get(Decoration.FPRoundingMode)
        if mode is not None and mode[0] != FPRoundingMode.RTE:
            raise SpirvError(i.offset, f"Op{i.op.name}", f"a rounding mode for {self.NAME} other than RTE")

    def refusal(self, i: Instruction) -> SpirvError:
        """What an instruction that the encoding is not for leads to."""
        return SpirvError(i.offset, f"Op{i.op.name}", f"not an instruction for numbers of type {self.NAME}")

    def float(self, type_: Type) -> Type:
        """float, or the vector of it."""
        return self.like(type_, self.types.float(32))


def _scalar(type_: Type) -> Type:
    return type_.element if type_.kind is Kind.VECTOR else type_
