"""What the API tells about kernels: arguments, attributes, requirements; and about a module.

Names, type names and qualifiers of arguments come from one of three places: strings that llvm-spirv writes,
strings in which the front end leaves what it asked clang for (frontend/arguments.py), or, for IL without any,
nowhere: `known` is False then and what the types tell is filled in.
"""

from __future__ import annotations

from ..fast_typing import NamedTuple
from .enums import (
    AccessQualifier,
    Decoration,
    Dim,
    ExecutionMode,
    FunctionParameterAttribute,
    Op,
    OpenCLStd,
    StorageClass,
)
from .layout import alignment_of, size_of
from .module import Decorations, EntryPoint, Function, Kind, Module, Type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self

# Kinds of arguments; jit/executable.py has the same numbers.
VALUE, GLOBAL, LOCAL, SAMPLER, IMAGE, PIPE, QUEUE = range(7)

# CL_KERNEL_ARG_...
ADDRESS_GLOBAL, ADDRESS_LOCAL, ADDRESS_CONSTANT, ADDRESS_PRIVATE = 0x119B, 0x119C, 0x119D, 0x119E
ACCESS_READ_ONLY, ACCESS_WRITE_ONLY, ACCESS_READ_WRITE, ACCESS_NONE = 0x11A0, 0x11A1, 0x11A2, 0x11A3
TYPE_NONE, TYPE_CONST, TYPE_RESTRICT, TYPE_VOLATILE, TYPE_PIPE = 0, 1, 2, 4, 8

_ADDRESSES = {
    StorageClass.CrossWorkgroup: ADDRESS_GLOBAL,
    StorageClass.Workgroup: ADDRESS_LOCAL,
    StorageClass.UniformConstant: ADDRESS_CONSTANT,
    StorageClass.Generic: ADDRESS_GLOBAL,
}
_ACCESSES = {
    AccessQualifier.ReadOnly: ACCESS_READ_ONLY,
    AccessQualifier.WriteOnly: ACCESS_WRITE_ONLY,
    AccessQualifier.ReadWrite: ACCESS_READ_WRITE,
}
_OPAQUE_KINDS = {
    Op.TypeImage: IMAGE,
    Op.TypeSampledImage: IMAGE,
    Op.TypeSampler: SAMPLER,
    Op.TypePipe: PIPE,
    Op.TypeQueue: QUEUE,
}


# CL_MEM_OBJECT_..., by dimensions and whether it is an array.
_IMAGE_TYPES = {
    (Dim.Dim1D, 0): 0x10F4,
    (Dim.Buffer, 0): 0x10F6,
    (Dim.Dim1D, 1): 0x10F5,
    (Dim.Dim2D, 0): 0x10F1,
    (Dim.Dim2D, 1): 0x10F3,
    (Dim.Dim3D, 0): 0x10F2,
}


class ArgReflection:
    """One argument.

    size: what clSetKernelArg must be given (0 for local memory); align: of the value, or of the pointee for
    local memory. The other attributes are CL_KERNEL_ARG_* values; known: whether the source told them;
    image_type: CL_MEM_OBJECT_IMAGE... of an image, else 0; depth: whether it is one of depth.
    """

    __slots__ = (
        "access_qualifier",
        "address_qualifier",
        "align",
        "constant",
        "depth",
        "image_type",
        "kind",
        "known",
        "name",
        "size",
        "type",
        "type_name",
        "type_qualifier",
    )

    def __init__(self, type_: Type, decorations: Decorations) -> None:
        self.type = type_
        self.name = self.type_name = ""
        self.known = False
        self.access_qualifier = ACCESS_NONE
        self.address_qualifier = ADDRESS_PRIVATE
        self.constant = False
        self.image_type, self.depth = 0, False
        attributes = decorations.get(Decoration.FuncParamAttr, frozenset())
        self.type_qualifier = TYPE_NONE
        if Decoration.Volatile in decorations:
            self.type_qualifier |= TYPE_VOLATILE
        if Decoration.Restrict in decorations or FunctionParameterAttribute.NoAlias in attributes:
            self.type_qualifier |= TYPE_RESTRICT
        if type_.kind is Kind.OPAQUE:
            self.kind, self.size, self.align = _OPAQUE_KINDS.get(type_.op, VALUE), 8, 8
            if type_.op == Op.TypeImage:
                self.access_qualifier = _ACCESSES[type_.operands[-1]]
                _, dim, depth, arrayed = type_.operands[:4]
                self.image_type, self.depth = _IMAGE_TYPES.get((dim, arrayed), 0), depth == 1
                self.address_qualifier = ADDRESS_GLOBAL
            elif type_.op == Op.TypePipe:
                self.access_qualifier = _ACCESSES[type_.operands[0]]
                self.address_qualifier = ADDRESS_GLOBAL
                self.type_qualifier |= TYPE_PIPE
        elif type_.kind is not Kind.POINTER:
            self.kind, self.size, self.align = VALUE, size_of(type_), alignment_of(type_)
        elif type_.storage == StorageClass.Function:  # a structure by value
            element = type_.element
            self.kind, self.size, self.align = VALUE, size_of(element), alignment_of(element)
        else:
            self.address_qualifier = _ADDRESSES.get(type_.storage, ADDRESS_PRIVATE)
            self.constant = type_.storage == StorageClass.UniformConstant
            if self.constant or FunctionParameterAttribute.NoWrite in attributes:
                self.type_qualifier |= TYPE_CONST
            self.kind, self.size, self.align = GLOBAL, 8, 8
            if type_.storage == StorageClass.Workgroup:
                self.kind, self.size = LOCAL, 0
                given = decorations.get(Decoration.Alignment)
                natural = alignment_of(type_.element) if type_.element else 1
                self.align = max(natural, given[0] if given else 1)


class ArgumentRow(NamedTuple):
    """What the source says of an argument, the numbers as CL_KERNEL_ARG_*."""

    address: int
    access: int
    type_name: str
    type_qualifier: int
    name: str

    @classmethod
    def of(cls, fields: Iterable[str]) -> Self:
        """ValueError for what is none."""
        address, access, type_name, type_qualifier, name = fields
        return cls(int(address), int(access), type_name, int(type_qualifier), name)


class KernelReflection:
    """One kernel. Three-dimensional sizes are (0, 0, 0) where the source gives none."""

    __slots__ = (
        "args",
        "attributes",
        "local_size_hint",
        "max_local_size",
        "name",
        "required_local_size",
        "sub_group_size",
        "sub_groups_per_group",
        "vec_type_hint",
    )

    def __init__(self, entry: EntryPoint, vec_type_hint: str = "") -> None:
        """vec_type_hint: as in the source; SPIR-V itself does not tell uint from int."""
        modes = entry.modes
        self.name = entry.name
        self.args = [ArgReflection(a.type, a.decorations) for a in entry.function.arguments]
        self.required_local_size = modes.get(ExecutionMode.LocalSize, (0, 0, 0))
        self.max_local_size = modes.get(ExecutionMode.MaxWorkgroupSizeINTEL, (0, 0, 0))
        self.local_size_hint = modes.get(ExecutionMode.LocalSizeHint, (0, 0, 0))
        self.sub_group_size = modes.get(ExecutionMode.SubgroupSize, (0,))[0]
        self.sub_groups_per_group = modes.get(ExecutionMode.SubgroupsPerWorkgroup, (0,))[0]
        hint = modes.get(ExecutionMode.VecTypeHint)
        self.vec_type_hint = vec_type_hint or (_vector_name(hint[0]) if hint else "")
        attributes = []
        if self.vec_type_hint:
            attributes.append(f"vec_type_hint({self.vec_type_hint})")
        if any(self.local_size_hint):
            attributes.append(f"work_group_size_hint({_three(self.local_size_hint)})")
        if any(self.required_local_size):
            attributes.append(f"reqd_work_group_size({_three(self.required_local_size)})")
        if self.sub_group_size:
            attributes.append(f"intel_reqd_sub_group_size({self.sub_group_size})")
        self.attributes = " ".join(attributes)

    def take(self, information: list[ArgumentRow]) -> None:
        """Takes over what the source says of the arguments, if it says it of all."""
        if len(information) != len(self.args):
            return
        for arg, row in zip(self.args, information, strict=True):
            (arg.address_qualifier, arg.access_qualifier, arg.type_name, arg.type_qualifier, arg.name) = row
            arg.known = True


def _three(sizes: tuple[int, ...]) -> str:
    return ",".join(map(str, sizes[:3]))


def _vector_name(word: int) -> str:
    """The operand of VecTypeHint: components in the high half, the scalar type in the low one."""
    scalars = ("char", "short", "int", "long", "half", "float", "double")
    count, scalar = word >> 16, word & 0xFFFF
    if scalar >= len(scalars):
        return ""
    return scalars[scalar] + (str(count) if count > 1 else "")


def reflect(module: Module) -> list[KernelReflection]:
    """One per entry point."""
    strings = _string_information(module)
    embedded = _embedded_information(module)
    out = []
    for entry in module.entry_points:
        rows, hint = embedded.get(entry.name, (None, ""))
        kernel = KernelReflection(entry, hint)
        rows = rows or _from_strings(entry, strings)
        if rows:
            kernel.take(rows)
        out.append(kernel)
    return out


PREFIX, _FIELD = "cl_driver.kernel_arguments.", "\x1f"  # frontend/arguments.py writes it


def _embedded_information(module: Module) -> dict[str, tuple[list[ArgumentRow] | None, str]]:
    """What the front end put into strings: {kernel: (rows for take() or None, vector type)}."""
    out = {}
    for text in module.strings:
        if text.startswith(PREFIX):
            name, *fields = text[len(PREFIX) :].split(_FIELD)
            try:
                hint, has_rows, *fields = fields
                rows = [ArgumentRow.of(row) for row in zip(*[iter(fields)] * 5, strict=True)]
                out[name] = rows if has_rows == "1" else None, hint
            except ValueError:
                continue  # somebody else's string
    return out


def _string_information(module: Module) -> dict[tuple[str, str], list[str]]:
    """Strings "kernel_arg_type.<kernel>.a,b," as llvm-spirv writes them: {(which, kernel): entries}."""
    out = {}
    for text in module.strings:
        for which in ("kernel_arg_type", "kernel_arg_type_qual"):
            if text.startswith(which + "."):
                kernel, dot, rest = text[len(which) + 1 :].partition(".")
                if dot:
                    out[which, kernel] = rest.removesuffix(",").split(",") if rest else []
    return out


QUALIFIERS = {"const": TYPE_CONST, "restrict": TYPE_RESTRICT, "volatile": TYPE_VOLATILE, "pipe": TYPE_PIPE}


def qualifier_bits(text: str) -> int:
    """CL_KERNEL_ARG_TYPE_QUALIFIER of the words in a text; others are left out."""
    bits = 0
    for word in text.split():
        bits |= QUALIFIERS.get(word, 0)
    return bits


def _from_strings(entry: EntryPoint, strings: dict[tuple[str, str], list[str]]) -> list[ArgumentRow] | None:
    types = strings.get(("kernel_arg_type", entry.name))
    arguments = entry.function.arguments
    if types is None or len(types) != len(arguments) or not all(a.name for a in arguments):
        return None
    qualifiers = strings.get(("kernel_arg_type_qual", entry.name))
    out = []
    for i, argument in enumerate(arguments):
        plain = ArgReflection(argument.type, argument.decorations)
        bits = qualifier_bits(qualifiers[i]) if qualifiers and i < len(qualifiers) else plain.type_qualifier
        out.append(
            ArgumentRow(plain.address_qualifier, plain.access_qualifier, types[i], bits, argument.name)
        )
    return out


def called(function: Function) -> list[Function]:
    """A function and all that it calls, directly or not, each once; decodes their bodies."""
    found = {id(function): function}
    pending = [function]
    while pending:
        for block in pending.pop().blocks:
            for instruction in block.instructions:
                for operand in instruction.operands:
                    if isinstance(operand, Function) and id(operand) not in found:
                        found[id(operand)] = operand
                        pending.append(operand)
    return list(found.values())


def called_by_address(module: Module) -> list[Function]:
    """The functions of a program that calls through pointers may be of, in the order of the module; those
    whose addresses only hosts ask for, too."""
    addressed = {id(pointer.operands[0]) for pointer in module.function_pointers}
    return [
        function
        for function in module.functions
        if id(function) in addressed or Decoration.ReferencedIndirectlyINTEL in function.decorations
    ]


def uses_printf(entry: EntryPoint) -> bool:
    """Whether the kernel may print."""
    return any(
        instruction.op == Op.ExtInst and instruction.operands[1] == OpenCLStd.printf
        for function in called(entry.function)
        for block in function.blocks
        for instruction in block.instructions
    )


def spec_constants(module: Module) -> dict[int, int]:
    """SpecId to the size in bytes of its value."""
    return {
        spec_id: 1 if c.type.kind is Kind.BOOL else -(-c.type.width // 8)
        for spec_id, c in module.spec_constants.items()
    }
