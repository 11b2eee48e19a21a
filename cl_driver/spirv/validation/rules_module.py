"""Rules of a module outside of its functions: versions, capabilities, extensions, variables, entry points.

SPIR-V 2.4 (logical layout) and 2.16 (universal validation); OpenCL SPIR-V environment 2.8 (kernels), 2.9
(built-in variables) and 4 (validation rules).
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from ..enums import (
    BuiltIn,
    Capability,
    Decoration,
    Dim,
    ExecutionMode,
    FunctionParameterAttribute,
    ImageFormat,
    LinkageType,
    Op,
    StorageClass,
)
from ..errors import SpirvError
from ..layout import size_of
from ..module import Argument, EntryPoint, Kind, Module, Type, Variable
from ..tables import ROWS, EnumerantRow, Row, enumerant

MAX_BYTES = 1 << 40  # of one variable
VARIABLE_CLASSES = (
    StorageClass.CrossWorkgroup,
    StorageClass.Workgroup,
    StorageClass.UniformConstant,
    StorageClass.Input,
)

# What declares each scalar and vector type that is not in all modules: one of these.
TYPE_CAPABILITIES = {
    ("TypeInt", 8): (Capability.Int8,),
    ("TypeInt", 16): (Capability.Int16,),
    ("TypeInt", 64): (Capability.Int64,),
    ("TypeFloat", 16): (Capability.Float16, Capability.Float16Buffer, Capability.BFloat16TypeKHR),
    ("TypeFloat", 8): (Capability.Float8EXT,),
    ("TypeFloat", 64): (Capability.Float64,),
    ("TypeVector", 8): (Capability.Vector16,),
    ("TypeVector", 16): (Capability.Vector16,),
}
_TYPES = frozenset(kind for kind, _ in TYPE_CAPABILITIES)


def refuse(what: str, rule: str, offset: int = 0) -> SpirvError:
    """The SpirvError for a rule of a module's declarations. what: the instruction it names."""
    return SpirvError(offset, what, rule)


def implied(capabilities: Iterable[int]) -> frozenset[int]:
    """These capabilities and those that they declare implicitly."""
    found: set[int] = set()
    pending = list(capabilities)
    while pending:
        capability = pending.pop()
        if capability not in found:
            found.add(capability)
            pending += map(Capability, enumerant("Capability", capability).capabilities)
    return frozenset(found)


class Requirements:
    """What a module has declared, and whether that suffices for what it uses (SPIR-V 2.16.1, 3.x)."""

    def __init__(self, module: Module) -> None:
        self.version = module.version
        self.extensions = module.extensions
        self.capabilities = implied(module.capabilities)

    def missing(self, row: Row | EnumerantRow) -> str | None:
        """What lacks for an instruction or enumerant of the grammar, as a rule; None if nothing does."""
        names = row.capabilities
        if names and self.capabilities.isdisjoint(names):
            return f"needs the capability {' or '.join(sorted(Capability(n).name for n in names))}"
        return self.too_new(row)

    def too_new(self, row: Row | EnumerantRow) -> str | None:
        """As missing, but for capabilities themselves: the ones in their rows are implied, not needed."""
        if not self.extensions.isdisjoint(row.extensions):
            return None
        ways = [f'the extension "{name}"' for name in row.extensions]
        if row.version is not None:
            if row.version <= self.version:
                return None
            ways.insert(0, "SPIR-V {}.{}".format(*row.version))
        elif isinstance(row, Row) and row.capabilities:
            return None  # the extension is that of the capability
        return f"needs {' or '.join(ways)}" if ways else None


def check_module(
    module: Module, capabilities: Container[int] | None, extensions: Container[str] | None
) -> Requirements:
    """All but the functions and entry points. capabilities, extensions: of the device, None for any."""
    if module.misplaced is not None:
        raise module.misplaced
    if capabilities is not None and module.address_bits != 64:
        # OpenCL SPIR-V environment specification, chapter 4: as CL_DEVICE_ADDRESS_BITS says.
        raise refuse("OpMemoryModel", "addressing model Physical32 on a device with addresses of 64 bits")
    if Capability.Kernel not in module.capabilities:
        raise refuse("OpCapability", "the module does not declare Kernel")
    for capability in module.capabilities:
        if capabilities is not None and capability not in capabilities:
            raise refuse("OpCapability", f"{capability.name} is not supported")
    for extension in module.extensions:
        if extensions is not None and extension not in extensions:
            raise refuse("OpExtension", f"{extension} is not supported")
    requirements = Requirements(module)
    check_uses(module, requirements)
    names: set[str] = set()  # by which hosts know variables
    for variable in module.variables:
        _variable(variable)
        _, name = variable.decorations.get(Decoration.HostAccessINTEL, (0, ""))
        if name in names:
            raise refuse(
                f"OpVariable '{variable.name}'",
                f"HostAccessINTEL has the name '{name}' again",
                variable.offset,
            )
        names |= {name} - {""}
    for type_ in module.images:
        _image(type_)
    return requirements


def check_uses(module: Module, requirements: Requirements) -> None:
    """What has been used so far: bodies add to it when they are decoded."""
    for (kind, value), offset in module.uses.items():
        _check_use(requirements, kind, value, offset)


# Modes with one meaning only, which modules lack the capability for: those in oneMKL, and of LLVM's back end.
_CLEAR = {("ExecutionMode", ExecutionMode.SubgroupSize), ("ExecutionMode", ExecutionMode.FPFastMathDefault)}


def _check_use(requirements: Requirements, kind: str, value: int, offset: int) -> None:
    if kind in _TYPES:
        wanted = TYPE_CAPABILITIES.get((kind, value))
        if kind == "TypeInt" and value not in (8, 16, 32, 64):
            wanted = (Capability.ArbitraryPrecisionIntegersALTERA,)
            if value == 4:
                wanted += (Capability.Int4TypeINTEL,)
        if wanted and requirements.capabilities.isdisjoint(wanted):
            names = " or ".join(capability.name for capability in wanted)
            what = f"{value} components" if kind == "TypeVector" else f"width {value}"
            raise refuse(f"Op{kind}", f"{what} needs the capability {names}", offset)
        return
    if kind == "Instruction":
        lacking = requirements.missing(ROWS[value])
        if lacking:
            raise refuse(f"Op{Op(value).name}", lacking, offset)
        return
    row = enumerant(kind, value)
    if (kind, value) in _CLEAR:
        return
    if kind != "Capability":
        lacking = requirements.missing(row)
    else:
        # One that an extension has added says what it is of: modules in oneMKL do not name the extension.
        lacking = None if row.extensions else requirements.too_new(row)
    if lacking:
        raise refuse(f"{kind} {getattr(value, 'name', value)}", lacking, offset)


def _variable(variable: Variable) -> None:
    storage, pointee = variable.type.storage, variable.type.element
    name = f"OpVariable '{variable.name}'"
    offset = variable.offset
    if storage not in VARIABLE_CLASSES:
        raise refuse(name, f"storage class {storage.name} is not one of kernels", offset)
    if storage == StorageClass.Input:
        if variable.builtin is None:
            raise refuse(name, "an Input variable that is no BuiltIn", offset)
        if not _fits(variable.builtin, pointee):
            raise refuse(name, f"{variable.builtin.name} of type {pointee!r}", offset)
    elif variable.builtin is not None:
        raise refuse(name, f"BuiltIn {variable.builtin.name} in storage class {storage.name}", offset)
    if pointee is not None and size_of(pointee) > MAX_BYTES:
        raise refuse(name, f"{size_of(pointee)} bytes", offset)


# Environment 2.9: (components, bits) of the built-in variables; size_t has 64 bits.
_BUILTIN_TYPES = {
    **dict.fromkeys(
        (
            BuiltIn.GlobalSize,
            BuiltIn.GlobalInvocationId,
            BuiltIn.WorkgroupSize,
            BuiltIn.EnqueuedWorkgroupSize,
            BuiltIn.LocalInvocationId,
            BuiltIn.NumWorkgroups,
            BuiltIn.WorkgroupId,
            BuiltIn.GlobalOffset,
        ),
        (3, 64),
    ),
    BuiltIn.GlobalLinearId: (1, 64),
    BuiltIn.LocalInvocationIndex: (1, 64),
    **dict.fromkeys(
        (
            BuiltIn.WorkDim,
            BuiltIn.SubgroupSize,
            BuiltIn.SubgroupMaxSize,
            BuiltIn.NumSubgroups,
            BuiltIn.NumEnqueuedSubgroups,
            BuiltIn.SubgroupId,
            BuiltIn.SubgroupLocalInvocationId,
        ),
        (1, 32),
    ),
    **dict.fromkeys(
        (
            BuiltIn.SubgroupEqMask,
            BuiltIn.SubgroupGeMask,
            BuiltIn.SubgroupGtMask,
            BuiltIn.SubgroupLeMask,
            BuiltIn.SubgroupLtMask,
        ),
        (4, 32),
    ),
}


def _fits(builtin: BuiltIn, type_: Type | None) -> bool:
    """Whether a built-in variable has its type. Others than these are for the stage that lowers them."""
    wanted = _BUILTIN_TYPES.get(builtin)
    if wanted is None or type_ is None:
        return True
    scalar = type_.element if type_.kind is Kind.VECTOR else type_
    count = type_.count if type_.kind is Kind.VECTOR else 1
    return scalar.kind is Kind.INT and (count, scalar.width) == wanted


def _image(type_: Type) -> None:
    """Environment 4, of OpTypeImage: sampled type, dim, depth, arrayed, MS, sampled, format, access."""
    sampled_type, dim, _, arrayed, multisampled, sampled, format_, _ = type_.operands
    for broken, rule in (
        (sampled_type.kind is not Kind.VOID, f"a sampled type {sampled_type!r}, not void"),
        (sampled != 0, f"Sampled is {sampled}, not 0"),
        (multisampled != 0, "multisampled"),
        (arrayed > 1, f"Arrayed is {arrayed}"),
        (arrayed == 1 and dim not in (Dim.Dim1D, Dim.Dim2D), f"an array of dimension {dim.name}"),
        (dim not in (Dim.Dim1D, Dim.Dim2D, Dim.Dim3D, Dim.Buffer), f"dimension {dim.name}"),
        (format_ != ImageFormat.Unknown, f"format {format_.name}, not Unknown"),
    ):
        if broken:
            raise refuse("OpTypeImage", rule)


def check_entry_points(entry_points: list[EntryPoint]) -> None:
    """Raises SpirvError for entry points that are no kernels (OpenCL SPIR-V environment 2.8)."""
    names = set()
    for entry in entry_points:
        if entry.name in names:
            raise refuse(f"OpEntryPoint '{entry.name}'", "a second entry point of that name")
        names.add(entry.name)
        _entry_point(entry)


def _check_sizes(entry: EntryPoint) -> None:
    """SPV_INTEL_kernel_attributes: what LocalSize must be for the modes that limit it."""
    name, offset, modes = f"OpEntryPoint '{entry.name}'", entry.function.offset, entry.modes
    required = modes.get(ExecutionMode.LocalSize, ())
    largest = modes.get(ExecutionMode.MaxWorkgroupSizeINTEL)
    if largest is not None and 0 in largest:
        raise refuse(name, f"MaxWorkgroupSizeINTEL of {largest}", offset)
    if any(size > most for size, most in zip(required, largest or (), strict=False)):
        raise refuse(name, f"LocalSize {required} is above MaxWorkgroupSizeINTEL {largest}", offset)
    (dimensions,) = modes.get(ExecutionMode.MaxWorkDimINTEL, (3,))
    if dimensions > 3:
        raise refuse(name, f"MaxWorkDimINTEL of {dimensions} dimensions", offset)
    if any(size != 1 for size in required[dimensions:]):
        raise refuse(name, f"LocalSize {required} for MaxWorkDimINTEL of {dimensions} dimensions", offset)


_EXCLUDING = (
    (ExecutionMode.RoundingModeRTE, ExecutionMode.RoundingModeRTZ),
    (ExecutionMode.DenormPreserve, ExecutionMode.DenormFlushToZero),
)


def _entry_point(entry: EntryPoint) -> None:
    name = f"OpEntryPoint '{entry.name}'"
    offset = entry.function.offset
    if entry.function.type.element.kind is not Kind.VOID:
        raise refuse(name, "the result of a kernel is void", offset)
    for mode in (ExecutionMode.Initializer, ExecutionMode.Finalizer):
        if mode in entry.modes:  # the API of 3.0 deprecates the queries for what they do
            raise refuse(name, f"{mode.name}: a kernel of OpenCL 2.2 that no program enqueues", offset)
    if entry.function.linkage and entry.function.linkage[1] == LinkageType.Import:
        raise refuse(name, "a kernel without a body", offset)
    _check_sizes(entry)
    for one, other in _EXCLUDING:
        if not {*entry.modes.get(one, ())}.isdisjoint(entry.modes.get(other, ())):
            raise refuse(name, f"{one.name} and {other.name} for the same width", offset)
    for argument in () if entry.is_block else entry.function.arguments:
        rule = _broken_by(argument)
        if rule:
            raise refuse(name, f"argument {argument.index} {rule}", offset)


_NOT_ARGUMENTS = (Op.TypeEvent, Op.TypeDeviceEvent, Op.TypeReserveId, Op.TypeNamedBarrier)
_ARGUMENT_CLASSES = (StorageClass.CrossWorkgroup, StorageClass.Workgroup, StorageClass.UniformConstant)


def _broken_by(argument: Argument) -> str:
    """What environment 2.8.2 forbids of a kernel's argument, "" if nothing."""
    type_ = argument.type
    if type_.kind is Kind.POINTER:
        if type_.storage != StorageClass.Function:
            return "" if type_.storage in _ARGUMENT_CLASSES else f"points to {type_.storage.name}"
        attributes = argument.decorations.get(Decoration.FuncParamAttr, ())
        type_ = type_.element
        if FunctionParameterAttribute.ByVal not in attributes or type_ is None:
            return "points to private memory, not ByVal"
    elif type_.kind is Kind.ARRAY or (type_.kind is Kind.OPAQUE and type_.op in _NOT_ARGUMENTS):
        return f"of type {type_!r}"
    lacking = _unknown_to_hosts(type_, inside=False)
    if lacking is None:
        return ""
    return f"of type {type_!r}" + (f", with {lacking!r} inside" if lacking is not type_ else "")


def _unknown_to_hosts(type_: Type, inside: bool = True) -> Type | None:
    """The first type in an argument's that host programs have no values of.

    The text lets structures have no arrays either, but those of OpenCL C do.
    """
    if type_.kind is Kind.STRUCT:
        return next((found for m in type_.members if (found := _unknown_to_hosts(m)) is not None), None)
    if type_.kind in (Kind.ARRAY, Kind.VECTOR):
        return _unknown_to_hosts(type_.element)
    return type_ if type_.kind is Kind.BOOL or (inside and type_.kind is Kind.OPAQUE) else None
