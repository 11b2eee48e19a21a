"""Image instructions as calls of the builtin library's functions (builtins/cl/image/image.cl).

An image is the address of its descriptor (struct cld_image_desc), a sampler its word. The descriptor's fields
are loaded once, when the kernel begins. Where format and sampler are known (PlanOptions.argument_values: for
an image its channel order, channel data type and element size, for a sampler its word), calls are of copies
of the functions for just this case, which are inlined; otherwise they stay calls.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable

from ...late_patterns import pattern
from ...spirv.enums import AccessQualifier, Dim, LinkageType, Op, StorageClass
from ...spirv.module import (
    Argument,
    Constant,
    Function,
    Instruction,
    Kind,
    MemoryAccess,
    Operand,
    Type,
    Value,
)
from ...spirv.types import TypeTable
from ...spirv.validation.rules import RuleError, need
from ...spirv.validation.rules_images import check_access, check_query
from ..ir.instructions import substitute
from ..ir.library import Library
from ..ir.link_names import IMAGE_PREFIX
from ..ir.ops import PassOp
from ..ir.plan import PlanError
from . import image_blocks
from .clone_constants import Specialiser

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from typing import TypeAlias

# Where struct cld_image_desc has its fields (builtins/cl/image/image.h).
DATA, ROW_PITCH, SLICE_PITCH, WIDTH, HEIGHT, DEPTH, ARRAY_SIZE = 0, 8, 16, 24, 28, 32, 36
CHANNEL_ORDER, CHANNEL_DATA_TYPE, ELEMENT_SIZE, LEVELS = 40, 44, 48, 52

FORMAT = struct.Struct("<3I")  # what is known of an image: order, data type, bytes of a pixel
FIRST_ORDER, FIRST_DATA_TYPE = 0x10B0, 0x10D0  # OpImageQuery's enumerants count from these

NEAREST = 0x10  # a sampler's filter; linear filtering is twice as much
ANY_LOD = 0xFFFF << 48  # its largest level of detail

LOD, GRAD = 2, 4  # image operands; the others are not for kernels, or change nothing here
_BIAS = 1
_ITEMS = {Op.ImageSampleExplicitLod: 2, Op.ImageRead: 2, Op.ImageFetch: 2, Op.ImageWrite: 3}

_PIXELS = frozenset((Op.ImageSampleExplicitLod, Op.ImageRead, Op.ImageFetch, Op.ImageWrite))

# Functions that clang leaves as calls, and those that frontend/corrections.py calls in place of what it would
# get wrong.
_CALL = pattern(
    r"_Z\d+(?:(read|write)_image(f|i|ui|h)\d+ocl_image|__cld_(read|write)_image_(lod|gradient)"
    r"|(get_image_channel_order|get_image_channel_data_type|get_image_num_mip_levels)\d+ocl_image)"
)


def is_image_function(name: str) -> bool:
    """Whether programs may call this function, mangled, without defining it."""
    return image_call(name) is not None


def image_call(name: str) -> re.Match[str] | None:
    """What the name of such a function says, by the groups of _CALL."""
    return _CALL.match(name) if "image" in name else None  # most programs need no regular expressions


def image_args(function: Function) -> list[int]:
    """The numbers of arguments that are images and samplers."""
    kinds = (Op.TypeImage, Op.TypeSampler)
    return [a.index for a in function.arguments if a.type.kind is Kind.OPAQUE and a.type.op in kinds]


def depends_on_formats(functions: Iterable[Function]) -> bool:
    """Whether the code of functions is another for each format of their images: they read or write pixels."""
    return any(
        i.op in _PIXELS or _calls_for_pixels(i) for f in functions for b in f.blocks for i in b.instructions
    )


def _calls_for_pixels(i: Instruction) -> bool:
    if i.op is not Op.FunctionCall or not i.operands[0].linkage:
        return False
    found = image_call(i.operands[0].linkage[0])
    return found is not None and found[5] is None


def uses_images(function: Function) -> bool:
    """Whether a function, after inlining, has anything to lower."""
    return any(_is_image_instruction(i) for block in function.blocks for i in block.instructions)


def _is_image_instruction(i: Instruction) -> bool:
    if i.op in LOWERINGS:
        return True
    return (
        i.op is Op.FunctionCall
        and bool(i.operands[0].linkage)
        and is_image_function(i.operands[0].linkage[0])
    )


def sampler_word(value: tuple[int, int, int]) -> int:
    """OpenCL C's bits for the operands of OpConstantSampler."""
    addressing, normalized, filter_ = value
    return normalized | addressing << 1 | NEAREST << filter_ | ANY_LOD


def lower_images(
    function: Function, types: TypeTable, library: Library | None, values: tuple[tuple[int, bytes], ...] = ()
) -> bool:
    """Replaces all image instructions. True if there are calls to inline.

    values: PlanOptions.argument_values; those of images and samplers are used here. PlanError without a
    library.
    """
    _number_samplers(function, types)
    if not uses_images(function):
        return False
    if library is None:
        raise PlanError("images need the builtin library")
    return _Lowering(function, types, library, values).run()


def _number_samplers(function: Function, types: TypeTable) -> None:
    """OpConstantSampler's values become their words."""
    found = {
        o: types.constant(o.type, sampler_word(o.value))
        for block in function.blocks
        for i in block.instructions
        for o in i.operands
        if type(o) is Constant and o.type.op is Op.TypeSampler and type(o.value) is tuple
    }
    substitute(function, found)


# _Lowering.emit or emit_first.
_Emit: TypeAlias = Callable[..., Instruction]


class _Image:
    """What is known of an image value: its fields, loaded when first asked for."""

    def __init__(self, lowering: _Lowering, value: Value, known_format: tuple[int, int, int] | None) -> None:
        self.lowering, self.value, self.known_format = lowering, value, known_format
        _, self.dim, _, self.arrayed, _, _, _, self.access = value.type.operands
        self.dims = {Dim.Dim2D: 2, Dim.Dim3D: 3}.get(self.dim, 1)
        self.fields: dict[object, Value] = {}

    @property
    def shared(self) -> bool:
        """Whether the kernel may write what it reads."""
        return bool(self.access != AccessQualifier.ReadOnly)

    def descriptor(self) -> Value:
        types = self.lowering.types
        byte = types.pointer(StorageClass.UniformConstant, types.int(8))
        return self._once("descriptor", lambda emit: emit(Op.Bitcast, byte, [self.value]))

    def field(self, offset: int, width: int = 32) -> Value:
        """A field of the descriptor, or what is known of it."""
        types = self.lowering.types
        if self.known_format and CHANNEL_ORDER <= offset <= ELEMENT_SIZE:
            return types.integer(32, self.known_format[(offset - CHANNEL_ORDER) // 4])

        def load(emit: _Emit) -> Value:
            type_ = types.int(width)
            address = self.descriptor()
            address = emit(Op.InBoundsPtrAccessChain, address.type, [address, types.integer(64, offset)])
            pointer = types.pointer(StorageClass.UniformConstant, type_)
            return emit(Op.Load, type_, [emit(Op.Bitcast, pointer, [address])], MemoryAccess(width // 8))

        return self._once(offset, load)

    def pixels(self) -> list[Value]:
        """PIXELS of builtins/cl/image/image.h."""
        types = self.lowering.types
        storage = StorageClass.CrossWorkgroup if self.shared else StorageClass.UniformConstant
        pointer, vector = types.pointer(storage, types.int(8)), types.vector(types.int(32), 4)
        address = self.field(DATA, 64)
        data = self._once("data", lambda emit: emit(Op.ConvertUToPtr, pointer, [address]))
        sizes = [self.field(offset) for offset in (WIDTH, HEIGHT, DEPTH, ARRAY_SIZE)]
        size = self._once("size", lambda emit: emit(Op.CompositeConstruct, vector, sizes))
        return [data, self.field(ROW_PITCH), self.field(SLICE_PITCH, 64), size, *self.format()]

    def format(self) -> list[Value]:
        return [self.field(offset) for offset in (CHANNEL_ORDER, CHANNEL_DATA_TYPE, ELEMENT_SIZE)]

    def shape(self) -> list[Value]:
        """The library's `dims` and `arrayed`."""
        return [self.lowering.types.integer(32, n) for n in (self.dims, self.arrayed)]

    def sizes(self) -> list[Value]:
        """What OpImageQuerySize asks for: the size in each dimension, then layers."""
        sizes = [self.field(WIDTH + 4 * k) for k in range(self.dims)]
        return sizes + [self.field(ARRAY_SIZE)] if self.arrayed else sizes

    def _once(self, key: object, make: Callable[[_Emit], Value]) -> Value:
        """Made at the start of the kernel for arguments; for others where it is used, each time anew."""
        if not isinstance(self.value, (Argument, Constant)):
            return make(self.lowering.emit)
        if key not in self.fields:
            self.fields[key] = make(self.lowering.emit_first)
        return self.fields[key]


class _Lowering:
    def __init__(
        self, function: Function, types: TypeTable, library: Library, values: tuple[tuple[int, bytes], ...]
    ) -> None:
        self.function, self.types, self.library = function, types, library
        self.values = dict(values)
        self.specialiser = Specialiser.of(types)
        self.declarations: dict[str, Function] = {}
        self.images: dict[Value, _Image] = {}
        self.first: list[Instruction] = []  # to stand at the start of the kernel
        self.samplers: dict[Value, Value] = {}  # of arguments: their words
        self.block = function.blocks[0]  # where instructions go now
        self.float4 = types.vector(types.float(32), 4)
        self.inlines = False
        self.sampled: dict[Value, list[Operand]] = {}  # OpSampledImage: image and sampler
        self.taken: dict[Value, Value] = {}  # OpImage: the image

    def run(self) -> bool:
        replaced: dict[Value, Value] = {}
        for block in self.function.blocks:
            if not any(_is_image_instruction(i) for i in block.instructions):
                continue
            old, block.instructions, self.block = block.instructions, [], block
            for i in old:
                if not _is_image_instruction(i):
                    block.instructions.append(i)
                    continue
                count, first = len(block.instructions), len(self.first)
                lower = LOWERINGS.get(i.op) or _Lowering.call_of_program
                result = lower(self, i)
                for made in (*block.instructions[count:], *self.first[first:]):
                    made.line = i.line
                if result is not None:
                    replaced[i] = self.converted(result, i.type)
        entry = self.function.blocks[0]
        for i in self.first:
            i.block = entry
        at = sum(1 for i in entry.instructions if i.op is Op.Variable)
        entry.instructions[at:at] = self.first
        substitute(self.function, replaced)
        return self.inlines

    def emit(
        self, op: Op, type_: Type, operands: list[Operand], memory: MemoryAccess | None = None
    ) -> Instruction:
        made = Instruction(op, type_, operands, self.block)
        made.memory = memory
        self.block.instructions.append(made)
        return made

    def emit_first(
        self, op: Op, type_: Type, operands: list[Operand], memory: MemoryAccess | None = None
    ) -> Instruction:
        made = Instruction(op, type_, operands)
        made.memory = memory
        self.first.append(made)
        return made

    # What instructions refer to.

    def image(self, value: Value) -> _Image:
        """What is known of an image. PlanError if the value is none."""
        value = self.taken.get(value, value)
        if value.type.kind is not Kind.OPAQUE or value.type.op is not Op.TypeImage:
            raise PlanError(f"an image instruction on {value.type!r}")
        found = self.images.get(value)
        if found is None:
            data = self.values.get(value.index) if isinstance(value, Argument) else None
            found = self.images[value] = _Image(self, value, FORMAT.unpack(data) if data else None)
        return found

    def sampler(self, value: Value) -> Value:
        """The 64 bits of a sampler."""
        long = self.types.int(64)
        if type(value) is Constant:
            return self.types.integer(64, value.value or 0)
        if isinstance(value, Argument) and value.index in self.values:
            return self.types.integer(64, int.from_bytes(self.values[value.index], "little"))
        if not isinstance(value, Argument):
            return self.emit(Op.ConvertPtrToU, long, [value])
        if value not in self.samplers:
            self.samplers[value] = self.emit_first(Op.ConvertPtrToU, long, [value])
        return self.samplers[value]

    def word(self, sampler: Value) -> Value:
        """The lower half of a sampler."""
        if type(sampler) is Constant:
            return self.types.integer(32, sampler.value & 0xFFFFFFFF)
        return self.emit(Op.UConvert, self.types.int(32), [sampler])

    def four(self, value: Value) -> Value:
        """A coordinate or colour as a vector of 4, of int or float; the rest is 0."""
        count = value.type.count if value.type.kind is Kind.VECTOR else 1
        scalar = value.type.element if count > 1 else value.type
        wide = self.types.float(32) if scalar.kind is Kind.FLOAT else self.types.int(32)
        if scalar is not wide:
            op = Op.FConvert if scalar.kind is Kind.FLOAT else Op.UConvert
            value = self.emit(op, self.types.vector(wide, count) if count > 1 else wide, [value])
        if count == 4:
            return value
        components: list[Value] = [value]
        if count > 1:
            components = [self.emit(Op.CompositeExtract, wide, [value, k]) for k in range(count)]
        zero = self.types.constant(wide, 0)
        return self.emit(Op.CompositeConstruct, self.types.vector(wide, 4), components + [zero] * (4 - count))

    def converted(self, value: Value, type_: Type) -> Value:
        """A result of the library as the type that the program wants."""
        if value.type is type_:
            return value
        count = type_.count if type_.kind is Kind.VECTOR else 1
        scalar = type_.element if count > 1 else type_
        if value.type.kind is Kind.VECTOR:
            own = value.type.element
            if count == 1:
                value = self.emit(Op.CompositeExtract, own, [value, 0])
            elif count != value.type.count:
                kept = self.types.vector(own, count)
                value = self.emit(Op.VectorShuffle, kept, [value, value, *range(count)])
        if value.type is not type_:
            op = Op.FConvert if scalar.kind is Kind.FLOAT else Op.UConvert
            value = self.emit(op, type_, [value])
        return value

    def call(self, name: str, arguments: list[Value], is_decided: bool) -> Instruction:
        """A call of a function of the library; of a copy for the constants among its arguments, if the cases
        that it distinguishes are all known."""
        callee = self.library_function(name)
        if is_decided:
            self.inlines = True
            callee = self.specialiser.specialised(callee, arguments)
        else:
            callee = self.declared(callee)
        result = callee.type.element
        return self.emit(Op.FunctionCall, result, [callee, *arguments])

    def library_function(self, name: str) -> Function:
        """A function for images of the builtin library."""
        found = self.library.function(IMAGE_PREFIX + name)
        assert found is not None, name  # builtins/cl/image has it
        return found

    def declared(self, callee: Function) -> Function:
        """A declaration of a function of the library: calls of it are not expanded."""
        assert callee.linkage is not None  # the library exports it
        name = callee.linkage[0]
        found = self.declarations.get(name)
        if found is None:
            found = self.declarations[name] = Function(callee.type, name)
            found.linkage = name, LinkageType.Import
        return found

    # Instructions. Each returns what its result is, or None.

    def sampled_image(self, i: Instruction) -> None:
        self.sampled[i] = i.operands[:2]

    def image_of_sampled(self, i: Instruction) -> None:
        self.taken[i] = self.sampled[i.operands[0]][0]

    def sample(self, i: Instruction) -> Value:
        image, sampler = self.sampled[i.operands[0]]
        operands = image_operands(i)
        gradients = operands.get(GRAD)
        lod = gradients or operands.get(LOD)
        if lod is not None and type(lod[0]) is Constant and not lod[0].value:
            lod = None
        return self.read(image, sampler, i.operands[1], lod, i.type)

    def read(
        self, of: Value, sampler: Value | None, at: Value, lod: list[Value] | None, type_: Type
    ) -> Value:
        """lod: None for the first level, [level of detail] or [derivative, derivative]."""
        image, at = self.image(of), self.four(at)
        scalar = type_.element if type_.kind is Kind.VECTOR else type_
        kind = "f32" if scalar.kind is Kind.FLOAT else "i32"
        bits = self.types.integer(64, 0) if sampler is None else self.sampler(sampler)
        is_decided = image.known_format is not None and type(bits) is Constant
        if lod is not None:
            at = self.as_float(at)
            if len(lod) == 2:
                dims = self.types.integer(32, image.dims)
                descriptor = self.descriptor(image)
                lod = [self.call("gradient", [descriptor, dims, *map(self.four, lod)], is_decided)]
            arguments = [self.descriptor(image), *image.format(), bits, *image.shape(), at, *lod]
            return self.call(f"lod_{kind}", arguments, is_decided)
        name = "sample" if at.type is self.float4 else "fetch"
        if image.shared:
            name = "global_fetch"
        return self.call(f"{name}_{kind}", [*image.pixels(), self.word(bits), *image.shape(), at], is_decided)

    def as_float(self, at: Value) -> Value:
        return at if at.type is self.float4 else self.emit(Op.ConvertSToF, self.float4, [at])

    def descriptor(self, image: _Image) -> Value:
        """As the library declares it."""
        wanted = self.library_function("gradient").type.members[0]
        value = image.descriptor()
        return value if value.type is wanted else self.emit(Op.Bitcast, wanted, [value])

    def read_plainly(self, i: Instruction) -> Value:
        lod = image_operands(i).get(LOD)
        if lod is not None and not (type(lod[0]) is Constant and not lod[0].value):
            nearest = self.types.constant(self.types.opaque(Op.TypeSampler), NEAREST | ANY_LOD)
            number = self.emit(Op.ConvertSToF, self.types.float(32), lod)
            return self.read(i.operands[0], nearest, i.operands[1], [number], i.type)
        return self.read(i.operands[0], None, i.operands[1], None, i.type)

    def write(self, i: Instruction) -> None:
        lod = image_operands(i).get(LOD)
        image, at, colour = i.operands[:3]
        self.write_to(image, at, colour, None if lod is None else lod[0])

    def write_to(self, of: Value, at: Value, colour: Value, lod: Value | None) -> None:
        image, at, colour = self.image(of), self.four(at), self.four(colour)
        kind = "f32" if colour.type is self.float4 else "i32"
        is_decided = image.known_format is not None
        if lod is None:
            self.call(f"write_{kind}", [*image.pixels(), *image.shape(), at, colour], is_decided)
            return
        arguments = [self.descriptor(image), *image.format(), *image.shape(), at, lod, colour]
        self.call(f"write_lod_{kind}", arguments, is_decided)

    def query_size(self, i: Instruction) -> Value:
        image = self.image(i.operands[0])
        sizes = image.sizes()
        if len(i.operands) > 1:
            sizes = self.sizes_of_level(image, sizes, i.operands[1])
        scalar = i.type.element if i.type.kind is Kind.VECTOR else i.type
        sizes = [self.converted(size, scalar) for size in sizes]
        return sizes[0] if len(sizes) == 1 else self.emit(Op.CompositeConstruct, i.type, sizes)

    def sizes_of_level(self, image: _Image, sizes: list[Value], level: Value) -> list[Value]:
        """Each level has half the size of the one before, rounded down, and at least 1."""
        if type(level) is Constant and not level.value:
            return sizes
        word, one, zero = self.types.int(32), self.types.integer(32, 1), self.types.integer(32, 0)
        halved: list[Value] = []
        for size in sizes[: image.dims]:
            half = self.emit(Op.ShiftRightLogical, word, [size, level])
            is_none = self.emit(Op.IEqual, self.types.bool(), [half, zero])
            halved.append(self.emit(Op.Select, word, [is_none, one, half]))
        return halved + sizes[image.dims :]

    def query_format(self, i: Instruction) -> Value:
        return self.counted_from(i, CHANNEL_DATA_TYPE, FIRST_DATA_TYPE)

    def query_order(self, i: Instruction) -> Value:
        return self.counted_from(i, CHANNEL_ORDER, FIRST_ORDER)

    def counted_from(self, i: Instruction, field: int, first: int) -> Value:
        value = self.image(i.operands[0]).field(field)
        if type(value) is Constant:
            return self.types.integer(32, value.value - first)
        return self.emit(Op.ISub, value.type, [value, self.types.integer(32, first)])

    def query_levels(self, i: Instruction) -> Value:
        return self.image(i.operands[0]).field(LEVELS)

    def checked(self, i: Instruction) -> None:
        """In the check mode: a sampler becomes its bits, an image the argument that it is."""
        i.operands = [
            self.sampler(o) if isinstance(o, Value) and _is_sampler(o) else self.taken.get(o, o)
            for o in i.operands
        ]
        self.block.instructions.append(i)

    def call_of_program(self, i: Instruction) -> Value | None:
        """A function that clang leaves as a call. Its name says what it is; its type may be anything."""
        name = i.operands[0].linkage[0]
        try:
            found = image_call(name)
            assert found is not None  # _is_image_instruction() has seen it
            plain, _, special, form, query = found.groups()
            return self.called(i, plain, special, form, query)
        except RuleError as error:
            raise PlanError(f"{name}: {error}") from None

    def called(
        self, i: Instruction, plain: str | None, special: str | None, form: str | None, query: str | None
    ) -> Value | None:
        _, *arguments = i.operands
        if query:
            check_query(i)
            fields = {"get_image_channel_order": CHANNEL_ORDER, "get_image_num_mip_levels": LEVELS}
            return self.image(arguments[0]).field(fields.get(query, CHANNEL_DATA_TYPE))
        writes = "write" in (plain, special)
        levels = 1 if form == "lod" else 2 if form == "gradient" else 0
        samplers = len(arguments) - 2 - writes - levels
        need(samplers in ((0,) if writes else (1,) if levels else (0, 1)), "{} arguments", len(arguments))
        image, *arguments = arguments
        sampler = arguments.pop(0) if samplers else None
        at, *lod = arguments
        colour = lod.pop() if writes else None
        check_access(image, at, i.type if colour is None else colour.type, lod, sampler, writes)
        if colour is None:
            return self.read(image, sampler, at, lod or None, i.type)
        self.write_to(image, at, colour, lod[0] if lod else None)
        return None


def _is_sampler(value: Value) -> bool:
    return value.type is not None and value.type.kind is Kind.OPAQUE and value.type.op is Op.TypeSampler


def image_operands(i: Instruction) -> dict[int, list[Value]]:
    """{bit of the mask: its values}, for those that kernels may have."""
    rest = i.operands[_ITEMS[i.op] :]
    if not rest:
        return {}
    mask, *values = rest
    found = {}
    for bit, count in ((_BIAS, 1), (LOD, 1), (GRAD, 2)):
        if mask & bit:
            found[bit], values = values[:count], values[count:]
    return found


LOWERINGS: dict[Op, Callable[[_Lowering, Instruction], Value | None]] = {
    Op.SampledImage: _Lowering.sampled_image,
    Op.Image: _Lowering.image_of_sampled,
    Op.ImageSampleExplicitLod: _Lowering.sample,
    Op.ImageFetch: _Lowering.read_plainly,
    Op.ImageRead: _Lowering.read_plainly,
    Op.ImageWrite: _Lowering.write,
    Op.ImageQuerySize: _Lowering.query_size,
    Op.ImageQuerySizeLod: _Lowering.query_size,
    Op.ImageQueryFormat: _Lowering.query_format,
    Op.ImageQueryOrder: _Lowering.query_order,
    Op.ImageQueryLevels: _Lowering.query_levels,
    Op.SubgroupImageBlockReadINTEL: image_blocks.read,
    Op.SubgroupImageBlockWriteINTEL: image_blocks.write,
    PassOp.CheckImage: _Lowering.checked,
}
