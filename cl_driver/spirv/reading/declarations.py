"""Decodes the instructions outside of functions: types, constants, variables, decorations, modes, names.

HANDLERS: {opcode: handler(reader, word offset, number of words, op)}.
"""

from __future__ import annotations

from .. import instruction_sets
from ..enums import AddressingModel, Decoration, ExecutionModel, FPEncoding, MemoryModel, Op, StorageClass
from ..module import NO_DECORATIONS, Constant, ConstantExpr, Kind, Type, Variable
from ..tables import of_class, parameters
from ..types import MAX_DEPTH, MAX_PARAMETERS, MAX_WIDTH
from .assembly import ASSEMBLY_HANDLERS
from .constants import CONSTANT_HANDLERS, Handler, continuation
from .vectors import type_vector

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .reader import Reader


def _nothing(reader: Reader, p: int, n: int, op: Op) -> None:
    pass


# Mode setting, extensions, debug.


def _capability(reader: Reader, p: int, n: int, op: Op) -> None:
    reader.module.capabilities.add(reader.enumerant(p, "Capability", reader.words[p + 1]))


def _extension(reader: Reader, p: int, n: int, op: Op) -> None:
    reader.module.extensions.add(reader.complete_string(p, p + 1, p + n))


def _ext_inst_import(reader: Reader, p: int, n: int, op: Op) -> None:
    name = reader.complete_string(p, p + 2, p + n)
    if name != instruction_sets.OPENCL and not instruction_sets.may_be_left_out(name):
        raise reader.error(p, f"unknown extended instruction set {name!r}")
    reader.sets[reader.new_id(p, reader.words[p + 1])] = name


def _ext_inst(reader: Reader, p: int, n: int, op: Op) -> None:
    """Debug information: its ids are no values. Other non-semantic sets are left out."""
    words = reader.words
    name = reader.sets.get(words[p + 3])
    if name is None:
        raise reader.error(p, f"id {words[p + 3]} is not an extended instruction set")
    if name == instruction_sets.OPENCL:
        raise reader.error(p, "not allowed outside of functions")
    if name in instruction_sets.DEBUG:
        reader.debug.places[words[p + 2]] = p


def _memory_model(reader: Reader, p: int, n: int, op: Op) -> None:
    if reader.module.memory_model is not None:
        raise reader.error(p, "a second one")
    addressing = reader.enumerant(p, "AddressingModel", reader.words[p + 1])
    reader.module.memory_model = model = reader.enumerant(p, "MemoryModel", reader.words[p + 2])
    if addressing not in (AddressingModel.Physical32, AddressingModel.Physical64):
        raise reader.error(p, f"addressing model {addressing.name}; kernels have Physical32 or Physical64")
    reader.module.address_bits = 32 if addressing == AddressingModel.Physical32 else 64
    if model != MemoryModel.OpenCL:
        raise reader.error(p, f"memory model {model.name}; kernels have OpenCL")


def _entry_point(reader: Reader, p: int, n: int, op: Op) -> None:
    words = reader.words
    model = reader.enumerant(p, "ExecutionModel", words[p + 1])
    if model != ExecutionModel.Kernel:
        raise reader.error(p, f"execution model {model.name}, not Kernel")
    name, q = reader.string(p + 3, p + n)
    reader.entry_points.append((p, words[p + 2], name, words[q : p + n]))


def _execution_mode(reader: Reader, p: int, n: int, op: Op) -> None:
    words = reader.words
    mode = reader.enumerant(p, "ExecutionMode", words[p + 2])
    literals = words[p + 3 : p + n]
    wanted = parameters("ExecutionMode", mode)
    if len(literals) != len(wanted):
        raise reader.error(p, f"{mode.name} has {len(wanted)} parameters, not {len(literals)}")
    by_id = any(operand.kind == "IdRef" for operand in wanted)
    reader.modes.append((p, words[p + 1], mode, tuple(literals), by_id))


def _source(reader: Reader, p: int, n: int, op: Op) -> None:
    reader.module.source = (reader.enumerant(p, "SourceLanguage", reader.words[p + 1]), reader.words[p + 2])


def _name(reader: Reader, p: int, n: int, op: Op) -> None:
    if reader.bytes.find(b"\0", 4 * (p + 2), 4 * (p + n)) < 4 * (p + n - 1):
        raise reader.error(p, "a string that does not end in the last word")
    reader.names[reader.words[p + 1]] = p


def _string(reader: Reader, p: int, n: int, op: Op) -> None:
    text = reader.string(p + 2, p + n)[0]
    reader.strings[reader.new_id(p, reader.words[p + 1])] = text
    reader.module.strings.append(text)


def _alias_declaration(reader: Reader, p: int, n: int, op: Op) -> None:
    """What memory operands and decorations say of aliasing (SPV_INTEL_memory_access_aliasing) is permission
    to move accesses; it is not made use of."""
    reader.new_id(p, reader.words[p + 1])


# Decorations.


def _decorate(reader: Reader, p: int, n: int, op: Op) -> None:
    words = reader.words
    decoration = reader.enumerant(p, "Decoration", words[p + 2])
    literals = words[p + 3 : p + n]
    value: Any
    if decoration in (Decoration.AliasScopeINTEL, Decoration.NoAliasINTEL):
        return
    if decoration in CACHE_CONTROLS and len(literals) == 2:
        _cache_control(reader, p, words[p + 1], decoration, literals)
        return
    if decoration == Decoration.HostAccessINTEL and n > 4:
        value = (
            reader.enumerant(p, "HostAccessQualifier", words[p + 3]),
            reader.complete_string(p, p + 4, p + n),
        )
        reader.decorations.setdefault(words[p + 1], {})[decoration] = value
        return
    if decoration == Decoration.ClobberINTEL:  # there once for each register
        named = reader.decorations.setdefault(words[p + 1], {})
        named[decoration] = (*named.get(decoration, ()), reader.complete_string(p, p + 3, p + n))
        return
    if decoration == Decoration.LinkageAttributes:
        name, q = reader.string(p + 3, p + n)
        if q != p + n - 1:
            raise reader.error(p, "LinkageAttributes has a name and a linkage type")
        value = (name, reader.enumerant(p, "LinkageType", words[q]))
    elif decoration == Decoration.FuncParamAttr and len(literals) == 1:
        attributes = reader.decorations.get(words[p + 1], NO_DECORATIONS).get(decoration, frozenset())
        value = attributes | {reader.enumerant(p, "FunctionParameterAttribute", literals[0])}
    elif decoration == Decoration.BuiltIn and len(literals) == 1:
        value = reader.enumerant(p, "BuiltIn", literals[0])
    else:
        wanted = parameters("Decoration", decoration)
        fixed = sum(1 for operand in wanted if not operand.quantifier)
        if (
            len(literals) < fixed
            or (
                len(literals) > fixed
                and wanted[-1:] != ()
                and not wanted[-1].quantifier
                and wanted[-1].kind != "LiteralString"
            )
            or (literals and not wanted)
        ):
            raise reader.error(p, f"{decoration.name} has {fixed} parameters, not {len(literals)}")
        value = tuple(literals) or True
        if decoration == Decoration.Alignment:
            # clang-22 writes 128 as 0xffffff80; a multiple of a number is one of its lowest bit, too.
            value = (literals[0] & -literals[0],)
    reader.decorations.setdefault(words[p + 1], {})[decoration] = value


# By the kind of cache control, that of its enumerants.
CACHE_CONTROLS = {
    Decoration.CacheControlLoadINTEL: "LoadCacheControl",
    Decoration.CacheControlStoreINTEL: "StoreCacheControl",
}


def _cache_control(reader: Reader, p: int, id_: int, decoration: Decoration, literals: list[int]) -> None:
    """SPV_INTEL_cache_controls: the decoration is there once for each level of cache. {level: control}."""
    level, word = literals
    decorations = reader.decorations.setdefault(id_, {})
    controls = dict(decorations.get(decoration, ()))
    if level in controls:
        raise reader.error(p, f"{decoration.name} of cache level {level} decorates id {id_} twice")
    controls[level] = reader.enumerant(p, CACHE_CONTROLS[decoration], word)
    decorations[decoration] = controls


def _member_decorate(reader: Reader, p: int, n: int, op: Op) -> None:
    """Members of kernels' structures are laid out by OpenCL C's rules; no decoration of one changes code."""
    reader.enumerant(p, "Decoration", reader.words[p + 3])


def _decoration_group(reader: Reader, p: int, n: int, op: Op) -> None:
    reader.groups.add(reader.new_id(p, reader.words[p + 1]))


def _group_decorate(reader: Reader, p: int, n: int, op: Op) -> None:
    words = reader.words
    if words[p + 1] not in reader.groups:
        raise reader.error(p, f"id {words[p + 1]} is not a decoration group")
    decorations = reader.decorations.get(words[p + 1])
    if not decorations:
        return
    for target in words[p + 2 : p + n]:
        reader.decorations.setdefault(target, {}).update(decorations)


def _group_member_decorate(reader: Reader, p: int, n: int, op: Op) -> None:
    if reader.words[p + 1] not in reader.groups:
        raise reader.error(p, f"id {reader.words[p + 1]} is not a decoration group")


# Types.


def _define_type(reader: Reader, p: int, id_: int, type_: Type) -> None:
    if type_.depth > MAX_DEPTH:
        raise reader.error(p, f"types nest deeper than {MAX_DEPTH}")
    reader.types_by_id[reader.new_id(p, id_)] = type_


def _type_void(reader: Reader, p: int, n: int, op: Op) -> None:
    _define_type(reader, p, reader.words[p + 1], reader.table.void())


def _type_bool(reader: Reader, p: int, n: int, op: Op) -> None:
    _define_type(reader, p, reader.words[p + 1], reader.table.bool())


def _type_int(reader: Reader, p: int, n: int, op: Op) -> None:
    id_, width, signed = reader.words[p + 1 : p + 4]
    if not 0 < width <= MAX_WIDTH:
        raise reader.error(p, f"width {width} is not one of 1 to {MAX_WIDTH}")
    if signed:
        raise reader.error(p, f"signedness {signed}; integers of kernels have none (0)")
    reader.module.uses.setdefault(("TypeInt", width), p)
    _define_type(reader, p, id_, reader.table.int(width))


_ENCODED_WIDTHS = {FPEncoding.BFloat16KHR: 16, FPEncoding.Float8E4M3EXT: 8, FPEncoding.Float8E5M2EXT: 8}


def _type_float(reader: Reader, p: int, n: int, op: Op) -> None:
    id_, width = reader.words[p + 1 : p + 3]
    encoding = reader.enumerant(p, "FPEncoding", reader.words[p + 3]) if n > 3 else None
    if encoding is not None and _ENCODED_WIDTHS.get(encoding) != width:
        raise reader.error(p, f"encoding {encoding.name} of width {width} is not supported")
    if encoding is None and width not in (16, 32, 64):
        raise reader.error(p, f"width {width} is not 16, 32 or 64")
    reader.module.uses.setdefault(("TypeFloat", width), p)
    _define_type(reader, p, id_, reader.table.float(width, encoding))


def _type_array(reader: Reader, p: int, n: int, op: Op) -> None:
    id_, element_id, length = reader.words[p + 1 : p + 4]
    element = reader.data_type(p, element_id)
    count = reader.integer(p, length)
    if not 0 < count < 1 << 48:
        raise reader.error(p, f"an array of {count} elements")
    _define_type(reader, p, id_, reader.table.array(element, count))


def _type_struct(reader: Reader, p: int, n: int, op: Op) -> None:
    words = reader.words
    id_, member_ids = words[p + 1], reader.operands(p, 2, n)
    members = tuple(
        reader.data_type(p, w) if w not in reader.forward else reader.forward[w] for w in member_ids
    )
    packed = Decoration.CPacked in reader.decorations.get(id_, ())
    name = reader.string(reader.names[id_] + 2)[0] if id_ in reader.names else ""
    _define_type(reader, p, id_, reader.table.struct(members, packed, name))


def _type_opaque_name(reader: Reader, p: int, n: int, op: Op) -> None:
    _define_type(reader, p, reader.words[p + 1], reader.table.opaque(op, (reader.string(p + 2, p + n)[0],)))


def _type_pointer(reader: Reader, p: int, n: int, op: Op) -> None:
    id_, storage_word, element_id = reader.words[p + 1 : p + 4]
    storage = reader.enumerant(p, "StorageClass", storage_word)
    ahead = reader.forward.pop(id_, None)
    if ahead is None:
        element = reader.forward[element_id] if element_id in reader.forward else reader.type(p, element_id)
        if storage in (StorageClass.Function, StorageClass.CodeSectionINTEL):
            # One address space to LLVM, which writes either for pointers to functions, and for those of which
            # it has lost the type.
            is_code = element.kind is Kind.FUNCTION
            storage = StorageClass.CodeSectionINTEL if is_code else StorageClass.Function
        _define_type(reader, p, id_, reader.table.pointer(storage, element))
        return
    if ahead.storage is not storage:
        raise reader.error(p, f"declared ahead with storage class {ahead.storage.name}")
    ahead.element = reader.type(p, element_id)
    reader.types_by_id[reader.new_id(p, id_)] = ahead


def _type_untyped_pointer(reader: Reader, p: int, n: int, op: Op) -> None:
    storage = reader.enumerant(p, "StorageClass", reader.words[p + 2])
    _define_type(reader, p, reader.words[p + 1], reader.table.pointer(storage, None))


def _type_forward_pointer(reader: Reader, p: int, n: int, op: Op) -> None:
    id_, storage = reader.words[p + 1 : p + 3]
    if id_ in reader.types_by_id or id_ in reader.forward:
        raise reader.error(p, f"id {id_} is declared already")
    reader.forward[id_] = Type(Kind.POINTER, storage=reader.enumerant(p, "StorageClass", storage))


def _type_function(reader: Reader, p: int, n: int, op: Op) -> None:
    words = reader.words
    result = reader.type(p, words[p + 2])
    if result.kind is Kind.FUNCTION:
        raise reader.error(p, "a function that returns a function")
    parameters_ = tuple(reader.data_type(p, w) for w in words[p + 3 : p + n])
    if len(parameters_) > MAX_PARAMETERS:
        raise reader.error(p, f"more than {MAX_PARAMETERS} parameters")
    _define_type(reader, p, words[p + 1], reader.table.function(result, parameters_))


def _type_simple(reader: Reader, p: int, n: int, op: Op) -> None:
    """Sampler, event, device event, queue, reserve id, pipe storage, named barrier."""
    if n != 2:
        raise reader.error(p, f"{n} words, where 2 are right")
    _define_type(reader, p, reader.words[p + 1], reader.table.opaque(op))


def _type_pipe(reader: Reader, p: int, n: int, op: Op) -> None:
    access = reader.enumerant(p, "AccessQualifier", reader.words[p + 2])
    _define_type(reader, p, reader.words[p + 1], reader.table.opaque(op, (access,)))


def _type_image(reader: Reader, p: int, n: int, op: Op) -> None:
    words = reader.words
    sampled_type = reader.type(p, words[p + 2])
    dim, format_ = (
        reader.enumerant(p, "Dim", words[p + 3]),
        reader.enumerant(p, "ImageFormat", words[p + 8]),
    )
    if n == 9:
        raise reader.error(p, "no access qualifier")
    access = reader.enumerant(p, "AccessQualifier", words[p + 9])
    type_ = reader.table.opaque(op, (sampled_type, dim, *words[p + 4 : p + 8], format_, access))
    reader.module.images.append(type_)
    _define_type(reader, p, words[p + 1], type_)


def _type_sampled_image(reader: Reader, p: int, n: int, op: Op) -> None:
    image = reader.type(p, reader.words[p + 2])
    if image.op != Op.TypeImage:
        raise reader.error(p, f"of type {image!r}, which is not an image")
    _define_type(reader, p, reader.words[p + 1], reader.table.opaque(op, (image,)))


def _variable(reader: Reader, p: int, n: int, op: Op) -> None:
    words = reader.words
    type_, id_ = reader.type(p, words[p + 1]), words[p + 2]
    storage = reader.enumerant(p, "StorageClass", words[p + 3])
    if type_.kind is not Kind.POINTER or type_.storage is not storage:
        raise reader.error(p, f"{type_!r} is not a pointer into {storage.name}")
    if storage == StorageClass.Function:
        raise reader.error(p, "storage class Function outside of functions")
    initializer = reader.value(p, words[p + 4]) if n > 4 else None
    if (
        isinstance(initializer, Constant)
        and initializer.type is not type_.element
        and type_.element is not None
        and type_.element.kind is Kind.POINTER
        and not initializer.value
    ):
        # LLVM's SPIR-V back end gives some pointers the null of another type.
        initializer = reader.table.constant(type_.element, None)
    if initializer is not None and type_.element is not None and initializer.type is not type_.element:
        raise reader.error(p, f"initializer of type {initializer.type!r} for {type_.element!r}")
    variable = Variable(type_, initializer)
    variable.offset = p
    reader.values[reader.new_id(p, id_)] = variable
    reader.describe(variable, id_)
    if variable.builtin is not None and storage is StorageClass.UniformConstant:
        # Where the first translators from LLVM had built-in variables.
        variable.type = reader.table.pointer(StorageClass.Input, type_.element)
    reader.module.variables.append(variable)


def _untyped_variable(reader: Reader, p: int, n: int, op: Op) -> None:
    """A variable of the type of its data, and its address without a type."""
    words = reader.words
    type_, id_ = reader.type(p, words[p + 1]), words[p + 2]
    storage = reader.enumerant(p, "StorageClass", words[p + 3])
    if type_.kind is not Kind.POINTER or type_.storage is not storage or type_.element is not None:
        raise reader.error(p, f"{type_!r} is not an untyped pointer into {storage.name}")
    if n < 5:
        raise reader.error(p, "no type of data")
    data = reader.data_type(p, words[p + 4])
    initializer = reader.value(p, words[p + 5]) if n > 5 else None
    if initializer is not None and initializer.type is not data:
        raise reader.error(p, f"initializer of type {initializer.type!r} for {data!r}")
    variable = Variable(reader.table.pointer(storage, data), initializer)
    variable.offset = p
    reader.values[reader.new_id(p, id_)] = ConstantExpr(type_, Op.Bitcast, (variable,))
    reader.describe(variable, id_)
    reader.module.variables.append(variable)


def _layout() -> dict[int, int]:
    """{opcode: section} of SPIR-V 2.4, of the instructions that are in one section only."""
    ops = list(map(Op, HANDLERS))
    sections: list[list[Op]] = [
        [Op.Capability],
        [Op.Extension],
        [Op.ExtInstImport],
        [Op.MemoryModel],
        [Op.EntryPoint],
        [Op.ExecutionMode, Op.ExecutionModeId],
        [Op.String, Op.SourceExtension, Op.Source, Op.SourceContinued],
        [Op.Name, Op.MemberName],
        [Op.ModuleProcessed],
        [op for op in ops if op in of_class("Annotation")],
        [op for op in ops if op in of_class("Type-Declaration", "Constant-Creation")]
        + [Op.ConstantPipeStorage, Op.ConstantFunctionPointerINTEL, Op.Variable]
        + [Op.UntypedVariableKHR, Op.Undef, Op.AsmTargetINTEL, Op.AsmINTEL],
        [Op.Function],
    ]
    return {int(op): number for number, section in enumerate(sections) for op in section}


HANDLERS: dict[int, Handler] = {
    **CONSTANT_HANDLERS,
    **ASSEMBLY_HANDLERS,
    Op.Nop: _nothing,
    Op.Capability: _capability,
    Op.Extension: _extension,
    Op.ExtInstImport: _ext_inst_import,
    Op.ExtInst: _ext_inst,
    Op.ExtInstWithForwardRefsKHR: _ext_inst,
    Op.MemoryModel: _memory_model,
    Op.EntryPoint: _entry_point,
    Op.ExecutionMode: _execution_mode,
    Op.ExecutionModeId: _execution_mode,
    Op.Source: _source,
    Op.SourceContinued: _nothing,
    Op.SourceExtension: _nothing,
    Op.Name: _name,
    Op.MemberName: _nothing,
    Op.String: _string,
    Op.Line: _nothing,
    Op.NoLine: _nothing,
    Op.ModuleProcessed: _nothing,
    Op.Decorate: _decorate,
    Op.DecorateId: _decorate,
    Op.DecorateString: _decorate,
    Op.MemberDecorate: _member_decorate,
    Op.MemberDecorateString: _member_decorate,
    Op.DecorationGroup: _decoration_group,
    Op.GroupDecorate: _group_decorate,
    Op.GroupMemberDecorate: _group_member_decorate,
    Op.AliasDomainDeclINTEL: _alias_declaration,
    Op.AliasScopeDeclINTEL: _alias_declaration,
    Op.AliasScopeListDeclINTEL: _alias_declaration,
    Op.TypeVoid: _type_void,
    Op.TypeBool: _type_bool,
    Op.TypeInt: _type_int,
    Op.TypeFloat: _type_float,
    Op.TypeVector: type_vector,
    Op.TypeVectorIdEXT: type_vector,
    Op.TypeArray: _type_array,
    Op.TypeStruct: _type_struct,
    Op.TypeStructContinuedINTEL: continuation,
    Op.TypeOpaque: _type_opaque_name,
    Op.TypePointer: _type_pointer,
    Op.TypeUntypedPointerKHR: _type_untyped_pointer,
    Op.TypeForwardPointer: _type_forward_pointer,
    Op.TypeFunction: _type_function,
    Op.TypeSampler: _type_simple,
    Op.TypeEvent: _type_simple,
    Op.TypeDeviceEvent: _type_simple,
    Op.TypeReserveId: _type_simple,
    Op.TypeQueue: _type_simple,
    Op.TypePipeStorage: _type_simple,
    Op.TypeNamedBarrier: _type_simple,
    Op.TypePipe: _type_pipe,
    Op.TypeImage: _type_image,
    Op.TypeSampledImage: _type_sampled_image,
    Op.Variable: _variable,
    Op.UntypedVariableKHR: _untyped_variable,
}
LAYOUT = _layout()
