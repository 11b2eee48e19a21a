"""The SSA form of a SPIR-V module: what the reader makes, the passes change and codegen/ lowers.

Instructions refer to their operands directly; ids exist only in the binary and its disassembly. Types and
constants are interned per module: two equal types are the same object, so `is` compares them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType

from ..fast_typing import Any, Protocol
from ..records import field, record
from .enums import Op
from .errors import SpirvError
from .location import Location

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar, TypeAlias

    from .enums import BuiltIn, Capability, Decoration, ExecutionMode, LinkageType, StorageClass
    from .types import TypeTable

# Operands of instructions: a Value, Block, int or str. Which of them, the grammar says of each position; the
# validator has checked it.
Operand: TypeAlias = Any
# Decoration: its literals, True where it has none; FuncParamAttr: the set of attributes.
Decorations: TypeAlias = "Mapping[Decoration, Any]"


class Kind:
    """Type constructors. Plain objects, compared with `is`: members of an Enum are slow to reach
    and to hash."""

    __slots__ = ("name", "value")

    def __init__(self, value: str) -> None:
        self.name = value.upper()
        self.value = value

    def __repr__(self) -> str:
        return f"Kind.{self.name}"

    VOID: ClassVar[Kind]
    BOOL: ClassVar[Kind]
    INT: ClassVar[Kind]
    FLOAT: ClassVar[Kind]
    VECTOR: ClassVar[Kind]
    ARRAY: ClassVar[Kind]
    STRUCT: ClassVar[Kind]
    POINTER: ClassVar[Kind]
    FUNCTION: ClassVar[Kind]
    OPAQUE: ClassVar[
        Kind
    ]  # image, sampler, sampled image, event, device event, queue, reserve id, pipe, barrier


for _kind in "void bool int float vector array struct pointer function opaque".split():
    setattr(Kind, _kind.upper(), Kind(_kind))


class Type:
    """One type. Which of the attributes mean something depends on `kind`; the others are 0, None or empty. An
    untyped pointer has the element None."""

    __slots__ = (
        "count",
        "depth",
        "element",
        "kind",
        "layout",
        "members",
        "name",
        "op",
        "operands",
        "packed",
        "storage",
        "width",
    )

    def __init__(
        self,
        kind: Kind,
        *,
        width: int = 0,
        element: Type | None = None,
        count: int = 0,
        members: tuple[Type, ...] = (),
        packed: bool = False,
        storage: StorageClass | None = None,
        name: str = "",
        op: Op | None = None,
        operands: tuple[Any, ...] = (),
    ) -> None:
        self.kind = kind
        self.width = width  # INT, FLOAT: bits
        # VECTOR, ARRAY: of what; POINTER: the pointee; FUNCTION: the return type
        self.element: Type = element  # type: ignore[assignment]  # the kind says whether it is there
        self.count = count  # VECTOR, ARRAY: how many
        self.members = members  # STRUCT: of which types; FUNCTION: the parameters' types
        self.packed = packed  # STRUCT: CPacked
        self.storage: StorageClass = storage  # type: ignore[assignment]  # POINTER
        self.name = name
        self.op: Op = op  # type: ignore[assignment]  # OPAQUE: the Op that declares it
        self.operands = operands  # OPAQUE: its literals, an image's sampled type first; FLOAT: its encoding
        self.layout: tuple[int, int] | None = None  # (size, alignment) in memory, once layout.py was asked
        # How deep other types nest in this one: bounds every recursion over types.
        depth: int = max((member.depth for member in members), default=0)
        self.depth: int = max(depth, element.depth if element else 0) + 1

    def __repr__(self) -> str:
        kind = self.kind
        if kind in (Kind.INT, Kind.FLOAT):
            return f"{kind.value}{self.width}"
        if kind in (Kind.VECTOR, Kind.ARRAY):
            return f"{kind.value}({self.element!r}, {self.count})"
        if kind is Kind.STRUCT:
            return f"struct({self.name or len(self.members)})"
        if kind is Kind.POINTER:
            pointee = self.element.kind.value if self.element else "untyped"
            return f"pointer({self.storage.name}, {pointee})"
        if kind is Kind.OPAQUE:
            return self.op.name.removeprefix("Type").lower()
        return kind.value


NO_DECORATIONS: Decorations = MappingProxyType({})  # shared, hence read-only: replace it, do not fill it


class Value:
    """Anything an instruction may use. Its type is None only of instructions that have no result."""

    __slots__ = ("name", "type")

    def __init__(self, type_: Type | None, name: str = "") -> None:
        self.type: Type = type_  # type: ignore[assignment]  # whoever uses it as an operand knows that it is there
        self.name = name


class Constant(Value):
    """A constant of any type.

    `value`: BOOL: bool; INT: int, unsigned, masked to the width; FLOAT: int, the bits; VECTOR, ARRAY, STRUCT:
    tuple of Constants (or GlobalVariables and Functions where pointers are); POINTER: None is null;
    None of any type is OpConstantNull, kept as it is for composites.
    """

    __slots__ = ("spec_id", "value")

    def __init__(self, type_: Type, value: Any, spec_id: int | None = None) -> None:
        super().__init__(type_)
        self.value = value
        self.spec_id = spec_id


class Undef(Value):
    """OpUndef."""

    __slots__ = ()


class ConstantExpr(Value):
    """OpSpecConstantOp that reading/spec_constant_ops.py could not fold: address arithmetic on global
    variables. OpConstantFunctionPointerINTEL of a Function, until passes/program/ numbers functions."""

    __slots__ = ("op", "operands")

    def __init__(self, type_: Type, op: Op, operands: tuple[Operand, ...]) -> None:
        super().__init__(type_)
        self.op = op
        self.operands = operands


class Variable(Value):
    """A module-scope OpVariable; type is a pointer. Function variables are Instructions (Op.Variable)."""

    __slots__ = ("builtin", "decorations", "initializer", "linkage", "offset")

    def __init__(self, type_: Type, initializer: Value | None = None, name: str = "") -> None:
        super().__init__(type_, name)
        self.initializer = initializer
        self.builtin: BuiltIn | None = None  # for Input variables
        self.linkage: tuple[str, LinkageType] | None = None
        self.decorations = NO_DECORATIONS
        self.offset = 0  # word offset in the binary, for messages


class InlineAssembly(Value):
    """OpAsmINTEL: a FUNCTION type, the target that it is for, instructions and constraints as LLVM has them.
    in_memory: numbers of the arguments that are addresses of operands; has_effects: SideEffectsINTEL."""

    __slots__ = ("constraints", "has_effects", "in_memory", "target", "text")

    def __init__(
        self,
        type_: Type,
        target: str,
        text: str,
        constraints: str,
        in_memory: frozenset[int],
        has_effects: bool,
    ) -> None:
        super().__init__(type_)
        self.target = target
        self.text = text
        self.constraints = constraints
        self.in_memory = in_memory
        self.has_effects = has_effects


class Argument(Value):
    """A function parameter. decorations: see Instruction."""

    __slots__ = ("decorations", "index")

    def __init__(self, type_: Type, index: int, name: str = "") -> None:
        super().__init__(type_, name)
        self.index = index
        self.decorations = NO_DECORATIONS


class Instruction(Value):
    """One instruction of a function body.

    operands: Values, Blocks, and literals (int, str) in the order of the grammar without result type and
    result id. Scope and memory-semantics operands stay Values (constants nearly always). OpPhi: value, block,
    value, block... OpSwitch: selector, default block, literal, block... OpExtInst: set name (str,
    "OpenCL.std", but for what assertions.py makes), OpenCLStd, arguments. OpLoad/OpStore/OpCopyMemory*:
    memory operands are taken out into `memory`.
    decorations: {Decoration: tuple of literals or True}, FuncParamAttr: set.
    mask: after passes/vectorize/linearise.py, a bool Value: lanes that execute it (memory, calls, traps);
    None: all.
    """

    __slots__ = ("block", "decorations", "line", "mask", "memory", "offset", "op", "operands")

    def __init__(
        self,
        op: Op,
        type_: Type | None = None,
        operands: Iterable[Operand] = (),
        block: Block | None = None,
        name: str = "",
    ) -> None:
        self.type: Type = type_  # type: ignore[assignment]  # as Value's
        self.name = name
        self.op = op
        self.operands: list[Operand] = list(operands)
        self.block: Block = block  # type: ignore[assignment]  # None only until it is put into one
        self.decorations = NO_DECORATIONS
        self.memory: MemoryAccess | None = None
        self.mask: Value | None = None
        self.line: Location | None = None  # where there is debug information
        self.offset = 0  # word offset in the binary, for messages


@record(frozen=True, slots=True)
class MemoryAccess:
    """Memory operands: alignment in bytes (0: the type's own), volatile, nontemporal."""

    alignment: int = 0
    volatile: bool = False
    nontemporal: bool = False


class Block:
    """A basic block: phis first, one terminator last.

    Merge instructions are left out (kernels need no structured control flow); what OpLoopMerge or
    OpLoopControlINTEL says stays in `loop_control` of the block that held it: (LoopControl mask, parameters).
    """

    __slots__ = ("function", "instructions", "loop_control", "name")

    def __init__(self, function: Function | None = None, name: str = "") -> None:
        self.function = function
        self.instructions: list[Instruction] = []
        self.name = name
        self.loop_control: tuple[int, tuple[int, ...]] | None = None

    @property
    def terminator(self) -> Instruction:
        """The last instruction: the block must have one."""
        return self.instructions[-1]

    def phis(self) -> Iterator[Instruction]:
        """The phis at its start, in order."""
        for instruction in self.instructions:
            if instruction.op != Op.Phi:
                return
            yield instruction

    def successors(self) -> list[Block]:
        """Blocks the terminator may go to, in operand order, without repeats."""
        terminator = self.instructions[-1]
        op, operands = terminator.op, terminator.operands
        if op is Op.Branch:
            return operands[:1]
        if op is Op.BranchConditional:
            return operands[1:3] if operands[1] is not operands[2] else operands[1:2]
        return list(dict.fromkeys(o for o in operands if isinstance(o, Block)))


class Function(Value):
    """A function. `type` is a FUNCTION type; a declaration (Import linkage) has no blocks.

    The body is decoded when `blocks` or `arguments` is first read, which may raise SpirvError.
    """

    __slots__ = ("_arguments", "_blocks", "_load", "control", "decorations", "linkage", "offset")

    def __init__(
        self, type_: Type, name: str = "", control: int = 0, load: Callable[[Function], None] | None = None
    ) -> None:
        super().__init__(type_, name)
        self._arguments: list[Argument] = []
        self._blocks: list[Block] = []
        self._load = load  # fills arguments and blocks; None once that is done
        self.control = control  # FunctionControl mask
        self.linkage: tuple[str, LinkageType] | None = None
        self.decorations = NO_DECORATIONS
        self.offset = 0

    @property
    def blocks(self) -> list[Block]:
        """The entry block first."""
        if self._load is not None:
            self._decode()
        return self._blocks

    @blocks.setter
    def blocks(self, blocks: list[Block]) -> None:
        if self._load is not None:
            self._decode()
        self._blocks = blocks

    @property
    def arguments(self) -> list[Argument]:
        """The parameters, in order."""
        if self._load is not None:
            self._decode()
        return self._arguments

    @arguments.setter
    def arguments(self, arguments: list[Argument]) -> None:
        if self._load is not None:
            self._decode()
        self._arguments = arguments

    @property
    def decoded(self) -> bool:
        """Whether the body has been decoded, or there never was one to decode."""
        return self._load is None

    def _decode(self) -> None:
        load, self._load = self._load, None
        assert load is not None
        try:
            load(self)
        except BaseException:
            self._load = load
            self._arguments, self._blocks = [], []
            raise


# ExecutionMode: its literals.
Modes: TypeAlias = "dict[ExecutionMode, tuple[int, ...]]"


@record()
class EntryPoint:
    """OpEntryPoint Kernel with its execution modes. is_block: no kernel of the host's (spirv/blocks.py)."""

    name: str
    function: Function
    interface: list[Value]
    modes: Modes = field(default_factory=dict)
    is_block: bool = False


class BodyReader(Protocol):
    """What decodes bodies that were not looked at yet, as link.py sees it: ids to what they stand for."""

    values: dict[int, Value]


@record()
class Module:
    """A whole module."""

    types: TypeTable  # interns types and constants
    version: tuple[int, int] = (1, 0)
    address_bits: int = 64
    capabilities: set[Capability] = field(default_factory=set)
    extensions: set[str] = field(default_factory=set)
    entry_points: list[EntryPoint] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)
    variables: list[Variable] = field(default_factory=list)
    spec_constants: dict[int, Constant] = field(default_factory=dict)  # SpecId: Constant with its default
    source: tuple[int, ...] = ()  # (SourceLanguage, version) of OpSource
    strings: list[str] = field(default_factory=list)  # texts of OpString
    memory_model: int | None = 2  # MemoryModel; 2 is OpenCL; None while it has not been read
    readers: list[BodyReader] = field(default_factory=list)
    # What the validator asks of declarations: (kind of the grammar, or TypeInt..., value) and the word offset
    # of what first used it.
    uses: dict[tuple[str, int], int] = field(default_factory=dict)
    images: list[Type] = field(default_factory=list)
    function_pointers: list[ConstantExpr] = field(default_factory=list)  # OpConstantFunctionPointerINTEL
    misplaced: SpirvError | None = None  # of the first declaration that breaks the logical layout
