"""The SSA form of a SPIR-V module: what the reader makes, the passes change and codegen/ lowers.

Instructions refer to their operands directly; ids exist only in the binary and its disassembly. Types and
constants are interned per module: two equal types are the same object, so `is` compares them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import ClassVar

from .enums import Op


class Kind:
    """Type constructors. Plain objects, compared with `is`: members of an Enum take four times as long to
    reach and to hash."""

    __slots__ = ("name", "value")

    def __init__(self, value: str):
        self.name = value.upper()
        self.value = value

    def __repr__(self):
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
    """One type. Which of the attributes mean something depends on `kind`."""

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
        width=0,
        element=None,
        count=0,
        members=(),
        packed=False,
        storage=None,
        name="",
        op=None,
        operands=(),
    ):
        self.kind = kind
        self.width = width  # INT, FLOAT: bits
        self.element = element  # VECTOR, ARRAY: of what; POINTER: the pointee; FUNCTION: the return type
        self.count = count  # VECTOR, ARRAY: how many
        self.members = members  # STRUCT: of which types; FUNCTION: the parameters' types
        self.packed = packed  # STRUCT: CPacked
        self.storage = storage  # POINTER: StorageClass
        self.name = name
        self.op = op  # OPAQUE: the Op that declares it
        self.operands = operands  # OPAQUE: its literals, an image's sampled type first; FLOAT: its encoding
        self.layout = None  # (size, alignment) in memory, once layout.py was asked
        # How deep other types nest in this one: bounds every recursion over types.
        depth = max((member.depth for member in members), default=0)
        self.depth = max(depth, element.depth if element else 0) + 1

    def __repr__(self):
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


NO_DECORATIONS = MappingProxyType({})  # shared, hence read-only: replace it, do not fill it


class Value:
    """Anything an instruction may use. `type` is a Type."""

    __slots__ = ("name", "type")

    def __init__(self, type_: Type | None, name: str = ""):
        self.type = type_
        self.name = name


class Constant(Value):
    """A constant of any type.

    `value`: BOOL: bool; INT: int, unsigned, masked to the width; FLOAT: int, the bits; VECTOR, ARRAY, STRUCT:
    tuple of Constants (or GlobalVariables and Functions where pointers are); POINTER: None is null;
    None of any type is OpConstantNull, kept as it is for composites.
    """

    __slots__ = ("spec_id", "value")

    def __init__(self, type_, value, spec_id=None):
        super().__init__(type_)
        self.value = value
        self.spec_id = spec_id


class Undef(Value):
    """OpUndef."""

    __slots__ = ()


class ConstantExpr(Value):
    """OpSpecConstantOp that reading/spec_constant_ops.py could not fold: address arithmetic on global
    variables."""

    __slots__ = ("op", "operands")

    def __init__(self, type_, op, operands):
        super().__init__(type_)
        self.op = op
        self.operands = operands


class Variable(Value):
    """A module-scope OpVariable; type is a pointer. Function variables are Instructions (Op.Variable)."""

    __slots__ = ("builtin", "decorations", "initializer", "linkage", "offset")

    def __init__(self, type_, initializer=None, name=""):
        super().__init__(type_, name)
        self.initializer = initializer
        self.builtin = None  # BuiltIn for Input variables
        self.linkage = None  # (name, LinkageType) or None
        self.decorations = NO_DECORATIONS
        self.offset = 0  # word offset in the binary, for messages


class Argument(Value):
    """A function parameter. decorations: see Instruction."""

    __slots__ = ("decorations", "index")

    def __init__(self, type_, index, name=""):
        super().__init__(type_, name)
        self.index = index
        self.decorations = NO_DECORATIONS


class Instruction(Value):
    """One instruction of a function body.

    operands: Values, Blocks, and literals (int, str) in the order of the grammar without result type and
    result id. Scope and memory-semantics operands stay Values (constants nearly always). OpPhi: value, block,
    value, block... OpSwitch: selector, default block, literal, block... OpExtInst: set name (str, always
    "OpenCL.std"), OpenCLStd, arguments. OpLoad/OpStore/OpCopyMemory*: memory operands are taken out into
    `memory`.
    decorations: {Decoration: tuple of literals or True}, FuncParamAttr: set.
    mask: after passes/vectorize/linearise.py, a bool Value: lanes that execute it (memory, calls, traps);
    None: all.
    """

    __slots__ = ("block", "decorations", "line", "mask", "memory", "offset", "op", "operands")

    def __init__(self, op, type_=None, operands=(), block=None, name=""):
        self.type = type_
        self.name = name
        self.op = op
        self.operands = list(operands)
        self.block = block
        self.decorations = NO_DECORATIONS
        self.memory = None  # MemoryAccess, or None
        self.mask = None
        self.line = None  # debug_info.Location, where there is debug information
        self.offset = 0  # word offset in the binary, for messages


@dataclass(frozen=True, slots=True)
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

    def __init__(self, function=None, name=""):
        self.function = function
        self.instructions = []
        self.name = name
        self.loop_control = None

    @property
    def terminator(self):
        return self.instructions[-1]

    def phis(self):
        for instruction in self.instructions:
            if instruction.op != Op.Phi:
                return
            yield instruction

    def successors(self):
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

    def __init__(self, type_, name="", control=0, load=None):
        super().__init__(type_, name)
        self._arguments = []
        self._blocks = []
        self._load = load  # fills arguments and blocks; None once that is done
        self.control = control  # FunctionControl mask
        self.linkage = None  # (name, LinkageType) or None
        self.decorations = NO_DECORATIONS
        self.offset = 0

    @property
    def blocks(self):
        """The entry block first."""
        if self._load is not None:
            self._decode()
        return self._blocks

    @blocks.setter
    def blocks(self, blocks):
        if self._load is not None:
            self._decode()
        self._blocks = blocks

    @property
    def arguments(self):
        if self._load is not None:
            self._decode()
        return self._arguments

    @arguments.setter
    def arguments(self, arguments):
        if self._load is not None:
            self._decode()
        self._arguments = arguments

    @property
    def decoded(self):
        return self._load is None

    def _decode(self):
        load, self._load = self._load, None
        try:
            load(self)
        except BaseException:
            self._load = load
            self._arguments, self._blocks = [], []
            raise


@dataclass
class EntryPoint:
    """OpEntryPoint Kernel with its execution modes: {ExecutionMode: tuple of ints}."""

    name: str
    function: Function
    interface: list
    modes: dict = field(default_factory=dict)


@dataclass
class Module:
    """A whole module."""

    version: tuple = (1, 0)
    address_bits: int = 64
    capabilities: set = field(default_factory=set)
    extensions: set = field(default_factory=set)
    entry_points: list = field(default_factory=list)
    functions: list = field(default_factory=list)
    variables: list = field(default_factory=list)
    spec_constants: dict = field(default_factory=dict)  # SpecId: Constant with its default
    source: tuple = ()  # (SourceLanguage, version) of OpSource
    strings: list = field(default_factory=list)  # texts of OpString
    memory_model: int = 2  # MemoryModel; 2 is OpenCL
    types: object = None  # the TypeTable that interns types and constants
    readers: list = field(default_factory=list)  # what decodes the bodies not looked at yet; link.py's
    # What the validator asks of declarations: enumerants and types by what first used them.
    uses: dict = field(default_factory=dict)  # (kind of the grammar, or TypeInt..., value): word offset
    images: list = field(default_factory=list)  # types
    misplaced: object = None  # SpirvError of the first declaration that breaks the logical layout
