"""The SSA form of a SPIR-V module: what the reader makes, the passes change and codegen/ lowers.

Instructions refer to their operands directly; ids exist only in the binary and its disassembly. Types and
constants are interned per module: two equal types are the same object, so `is` compares them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from .enums import Op, StorageClass


class Kind(Enum):
    """Type constructors."""

    VOID = "void"
    BOOL = "bool"
    INT = "int"
    FLOAT = "float"
    VECTOR = "vector"
    ARRAY = "array"
    STRUCT = "struct"
    POINTER = "pointer"
    FUNCTION = "function"
    OPAQUE = "opaque"  # image, sampler, sampled image, event, device event, queue, reserve id, pipe, barrier


class Type:
    """One type. Which of the attributes mean something depends on `kind`."""

    __slots__ = ("count", "element", "kind", "members", "name", "op", "operands", "packed", "storage", "width")

    def __init__(self, kind: Kind, *, width=0, element=None, count=0, members=(), packed=False, storage=None,
                 name="", op=None, operands=()):
        self.kind = kind
        self.width = width  # INT, FLOAT: bits
        self.element = element  # VECTOR, ARRAY: of what; POINTER: the pointee; FUNCTION: the return type
        self.count = count  # VECTOR, ARRAY: how many
        self.members = members  # STRUCT: of which types; FUNCTION: the parameters' types
        self.packed = packed  # STRUCT: CPacked
        self.storage = storage  # POINTER: StorageClass
        self.name = name
        self.op = op  # OPAQUE: the Op that declares it
        self.operands = operands  # OPAQUE: its literals


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
    """OpSpecConstantOp that specialise.py could not fold: address arithmetic on global variables."""

    __slots__ = ("op", "operands")

    def __init__(self, type_, op, operands):
        super().__init__(type_)
        self.op = op
        self.operands = operands


class Variable(Value):
    """A module-scope OpVariable; type is a pointer. Function variables are Instructions (Op.Variable)."""

    __slots__ = ("builtin", "decorations", "initializer", "linkage")

    def __init__(self, type_, initializer=None, name=""):
        super().__init__(type_, name)
        self.initializer = initializer
        self.builtin = None  # BuiltIn for Input variables
        self.linkage = None  # (name, LinkageType) or None
        self.decorations = {}


class Argument(Value):
    """A function parameter. decorations: see Instruction."""

    __slots__ = ("decorations", "index")

    def __init__(self, type_, index, name=""):
        super().__init__(type_, name)
        self.index = index
        self.decorations = {}


NO_DECORATIONS: dict = {}


class Instruction(Value):
    """One instruction of a function body.

    operands: Values, Blocks, and literals (int, str) in the order of the grammar without result type and
    result id. Scope and memory-semantics operands stay Values (constants nearly always). OpPhi: value, block,
    value, block... OpSwitch: selector, default block, literal, block... OpExtInst: set name (str), instruction
    number (int), arguments. OpLoad/OpStore/OpCopyMemory*: memory operands are taken out into `memory`.
    decorations: {Decoration: tuple of literals or True}, FuncParamAttr: set.
    mask: after passes/linearise.py, a bool Value: lanes that execute it (memory, calls, traps); None: all.
    """

    __slots__ = ("block", "decorations", "line", "mask", "memory", "offset", "op", "operands")

    def __init__(self, op, type_=None, operands=(), block=None, name=""):
        super().__init__(type_, name)
        self.op = op
        self.operands = list(operands)
        self.block = block
        self.decorations = NO_DECORATIONS
        self.memory = None  # MemoryAccess, or None
        self.mask = None
        self.line = None  # (file, line, column) from OpLine
        self.offset = 0  # word offset in the binary, for messages


@dataclass(frozen=True, slots=True)
class MemoryAccess:
    """Memory operands: alignment in bytes (0: the type's own), volatile, nontemporal."""

    alignment: int = 0
    volatile: bool = False
    nontemporal: bool = False


class Block:
    """A basic block: phis first, one terminator last."""

    __slots__ = ("function", "instructions", "name")

    def __init__(self, function=None, name=""):
        self.function = function
        self.instructions = []
        self.name = name

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
        return list(dict.fromkeys(o for o in self.terminator.operands if isinstance(o, Block)))


class Function(Value):
    """A function. `type` is a FUNCTION type; a declaration (Import linkage) has no blocks."""

    __slots__ = ("arguments", "blocks", "control", "decorations", "linkage")

    def __init__(self, type_, name="", control=0):
        super().__init__(type_, name)
        self.arguments = []
        self.blocks = []  # the entry block first
        self.control = control  # FunctionControl mask
        self.linkage = None  # (name, LinkageType) or None
        self.decorations = {}


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
    types: object = None  # the TypeTable that interns types and constants


def is_pointer_to(type_: Type, *storage: StorageClass) -> bool:
    """True for pointers into one of the storage classes."""
    return type_.kind is Kind.POINTER and type_.storage in storage
