"""What a build makes: object code, the layout of arguments, reflection, program-scope variables.

The same bytes are in the cache, in a compiler process's answer, and in program binaries. The last may come
from anywhere, so everything that the data plane will trust is checked by from_bytes(). No dataclasses here:
this module is imported by the host's process, where they would be slow to import.
"""

from __future__ import annotations

from .. import wire

try:
    from _blake2 import blake2b as blake2b  # hashlib would load OpenSSL
except ImportError:
    from hashlib import blake2b as blake2b

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, ClassVar, Self, TypeAlias, dataclass_transform

    Checks: TypeAlias = dict[str, Callable[[object], bool]]
else:

    def dataclass_transform(**_):
        """For the type checker alone."""
        return lambda cls: cls


MAGIC = b"CLDEXE\x00\x11"
_DIGEST = 16
_HEADER = len(MAGIC) + _DIGEST
_MAX_BYTES = 1 << 40  # of memory that an executable may ask for, so that sums of sizes cannot overflow

MOST_SPECIALISABLE = 8  # of KernelInfo.specialisable_args; CLD_MOST_SPECIALISABLE in objects.h

MOST_APART = 62  # KernelInfo.apart_args are among the first so many: bits of a signed word

# ArgInfo.kind; enum cld_arg_kind in objects.h has the same numbers, which a test compares.
VALUE, GLOBAL, LOCAL, SAMPLER, IMAGE, PIPE, QUEUE = range(7)


class ExecutableError(ValueError):
    """Bytes that are no executable of this version of the driver; says why."""


def _fields(**checks: Callable[[Any], bool]) -> Checks:
    """The fields of a record in their order, each with the check of its value."""
    return checks


@dataclass_transform(kw_only_default=True)
class _Record:
    """A value with named fields, which its class declares for the type checker and FIELDS for the rest."""

    __slots__ = ()
    FIELDS: ClassVar[Checks] = _fields()

    def __init__(self, **values: Any) -> None:
        for name in self.FIELDS:
            setattr(self, name, values.pop(name))
        if values:
            raise TypeError(f"{type(self).__name__} has no {', '.join(values)}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{n}={getattr(self, n)!r}' for n in self.FIELDS)})"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Record) and type(self) is type(other) and self.to_values() == other.to_values()
        )

    def to_values(self) -> list[Any]:
        """For the wire: the fields in their order."""
        return [getattr(self, name) for name in self.FIELDS]

    @classmethod
    def from_values(cls, values: object) -> Self:
        """The record that to_values() was asked of. ExecutableError, with the field, for what is none."""
        if type(values) is not list or len(values) != len(cls.FIELDS):
            raise ExecutableError(f"malformed {cls.__name__}")
        self = object.__new__(cls)
        for (name, check), value in zip(cls.FIELDS.items(), values, strict=True):
            if not check(value):
                raise ExecutableError(f"malformed {cls.__name__}.{name}")
            setattr(self, name, value)
        return self


def _text(value: object) -> bool:
    return type(value) is str


def _c_name(value: object) -> bool:
    return type(value) is str and value != "" and "\0" not in value


def _bytes(value: object) -> bool:
    return type(value) is bytes


def _flag(value: object) -> bool:
    return type(value) is bool


def _size(value: object) -> bool:
    return type(value) is int and 0 <= value <= _MAX_BYTES


def _small(value: object) -> bool:
    return type(value) is int and 0 <= value < 1 << 31


def _align(value: object) -> bool:
    return type(value) is int and 0 < value <= 4096 and not value & (value - 1)


def _any_int(value: object) -> bool:
    return type(value) is int and -(1 << 63) <= value < 1 << 64


def _three(value: object) -> bool:
    return type(value) is list and len(value) == 3 and all(map(_small, value))


def _list(value: object) -> bool:
    return type(value) is list


class ArgInfo(_Record):
    """One kernel argument.

    kind: VALUE, GLOBAL (constant too), LOCAL, SAMPLER...; size: what clSetKernelArg must be given, 0 for
    LOCAL; align: of the value, or of the pointee for LOCAL; offset: in the argument block; constant: the
    pointee is in the constant address space. The rest is CL_KERNEL_ARG_*, enums as the API has them; known:
    whether they are (CL_KERNEL_ARG_INFO_NOT_AVAILABLE otherwise). image_type: CL_MEM_OBJECT_IMAGE... of an
    image, else 0; depth: whether it is declared as an image of depth; written: the kernel certainly writes to
    the buffer that it points to (passes/analysis/written_arguments.py); only_read: it certainly does not
    (read_arguments.py).
    """

    FIELDS = _fields(
        kind=lambda v: type(v) is int and 0 <= v <= QUEUE,
        size=_small,
        align=_align,
        offset=_small,
        constant=_flag,
        known=_flag,
        name=_text,
        type_name=_text,
        address_qualifier=_any_int,
        access_qualifier=_any_int,
        type_qualifier=_any_int,
        image_type=_small,
        depth=_flag,
        written=_flag,
        only_read=_flag,
    )
    __slots__ = tuple(FIELDS)

    kind: int
    size: int
    align: int
    offset: int
    constant: bool
    known: bool
    name: str
    type_name: str
    address_qualifier: int
    access_qualifier: int
    type_qualifier: int
    image_type: int
    depth: bool
    written: bool
    only_read: bool


class KernelInfo(_Record):
    """One kernel: see struct cld_kernel_info for what the data plane does with it.

    has_entry: whether there is an entry from the start; without, launches have their code made (kernels with
    images); symbol: of the entry in objects[object_index]; block_size: of the argument block; local_static:
    bytes of kernel-scope local variables; scratch_fixed, scratch_per_item: see struct cld_thread;
    required_local_size, max_local_size: zeros if the kernel has none; max_group_size:
    CL_KERNEL_WORK_GROUP_SIZE; width: work-items per vector; uses_pipes: it may wait for other kernels;
    zeroes_local: local memory is zeros when a group begins; terminable: it ends when its context is
    terminated; enqueues: it may enqueue blocks, or uses their events; is_block: it is one; blocks: numbers of
    those that it enqueues, and that these do, among the executable's; takes_turns: its sub-groups may wait
    for one another; uniform_groups: every work-group must be full, as before OpenCL C 2.0; is_wide: the
    entry takes `width` work-items of dimension 0 at a time; has_narrow, has_rest, has_tiled: whether there is
    code of these kinds (variants.KINDS), for launches that the entry does not suit, those with global
    ids or sizes from 2^29 among them; for what it leaves of rows and columns that are not whole tiles
    (where groups can be told, "any", which takes its place); for groups of whole tiles; tiles_first: the
    first launch of such groups waits for that; has_more: whether there is code of that kind; has_linear:
    whether there may be code of that kind, for groups of one size whose rows leave lanes idle; reads_ahead:
    it fetches what it is about to read, where a launch wants it; tries_items: one work-item at a time may be
    faster, which depends on the data; private_size: bytes per work-item;
    attributes: CL_KERNEL_ATTRIBUTES; sub_group_size, sub_groups_per_group: as required by the kernel, or
    0; sub_group_width: work-items per sub-group; uses_sub_groups: it can tell them apart, so that lanes
    must be consecutive in the linear local id: the entry takes only launches whose rows are, narrow code
    is wide, too, and takes all; tile_width, tile_height: work-items of a row, and rows, that tiled code,
    or else the entry, takes at a time; free_groups: no work-item can tell how they are divided into
    groups, so the data plane may divide anew; exchanged: the code has dimensions 0 and 1 exchanged
    (passes/lower/exchange_ids.py), and so must have launches, but for those of the kind "plain";
    once_along: dimensions along which one work-item of a group does it for all; repeated_dimensions: so
    many of the last ones are such that all groups along them do the same, so that one is enough;
    aligned_groups: the entry, and what takes its place ("narrow" excepted), are for launches whose offset
    in dimension 0 is a multiple of any width; most_group_items: of groups for which there may be code of
    their own, by their size (passes/groups/lockstep.py); counted: 1 + the number of the argument of which
    threads may have copies to add to, or 0 (codegen/atomic/privatised_histogram.py);
    counted_size: bytes of its elements; apart_args: numbers of arguments whose buffers no other argument's
    may overlap where the entry runs, or what takes its place ("narrow" and "overlap" excepted);
    specialisable_args: numbers of the arguments for whose values there may be code
    (passes/lower/argument_values.py); account: bytes and operations of launches (passes/traffic/account.py),
    where a profile is wanted; extents: what work-groups read and write (passes/extents/extents.py), where
    launches may be cut among machines; remark: how it was vectorised, or why not.
    """

    FIELDS = _fields(
        name=_c_name,
        has_entry=_flag,
        symbol=_c_name,
        object_index=_small,
        args=_list,
        block_size=_small,
        local_static=_size,
        scratch_fixed=_size,
        scratch_per_item=_size,
        required_local_size=_three,
        max_local_size=_three,
        max_group_size=_size,
        width=_small,
        uses_printf=_flag,
        uses_pipes=_flag,
        zeroes_local=_flag,
        terminable=_flag,
        enqueues=_flag,
        is_block=_flag,
        takes_turns=_flag,
        blocks=_list,
        uniform_groups=_flag,
        is_wide=_flag,
        has_narrow=_flag,
        has_rest=_flag,
        has_tiled=_flag,
        tiles_first=_flag,
        has_more=_flag,
        has_linear=_flag,
        reads_ahead=_flag,
        tries_items=_flag,
        private_size=_size,
        attributes=_text,
        sub_group_size=_small,
        sub_groups_per_group=_small,
        sub_group_width=_small,
        uses_sub_groups=_flag,
        tile_width=_small,
        tile_height=_small,
        free_groups=_flag,
        exchanged=_flag,
        once_along=_list,
        aligned_groups=_flag,
        repeated_dimensions=_small,
        most_group_items=_small,
        counted=_small,
        counted_size=_small,
        apart_args=_list,
        specialisable_args=_list,
        account=_list,
        extents=_list,
        remark=_text,
    )
    __slots__ = tuple(FIELDS)

    name: str
    has_entry: bool
    symbol: str
    object_index: int
    args: list[ArgInfo]
    block_size: int
    local_static: int
    scratch_fixed: int
    scratch_per_item: int
    required_local_size: list[int]
    max_local_size: list[int]
    max_group_size: int
    width: int
    uses_printf: bool
    uses_pipes: bool
    zeroes_local: bool
    terminable: bool
    enqueues: bool
    is_block: bool
    takes_turns: bool
    blocks: list[int]
    uniform_groups: bool
    is_wide: bool
    has_narrow: bool
    has_rest: bool
    has_tiled: bool
    tiles_first: bool
    has_more: bool
    has_linear: bool
    reads_ahead: bool
    tries_items: bool
    private_size: int
    attributes: str
    sub_group_size: int
    sub_groups_per_group: int
    sub_group_width: int
    uses_sub_groups: bool
    tile_width: int
    tile_height: int
    free_groups: bool
    exchanged: bool
    once_along: list[int]
    aligned_groups: bool
    repeated_dimensions: int
    most_group_items: int
    counted: int
    counted_size: int
    apart_args: list[int]
    specialisable_args: list[int]
    account: list[int]
    extents: list[int]
    remark: str

    def to_values(self) -> list[Any]:
        """As _Record.to_values(), with those of the arguments."""
        values = super().to_values()
        values[4] = [arg.to_values() for arg in self.args]
        return values

    @classmethod
    def from_values(cls, values: object) -> Self:
        """As _Record.from_values(); the fields must fit one another, too, else ExecutableError."""
        self = super().from_values(values)
        self.args = [ArgInfo.from_values(arg) for arg in self.args]
        for arg in self.args:
            if arg.offset + (8 if arg.kind != VALUE else arg.size) > self.block_size:
                raise ExecutableError(f"an argument of {self.name} lies outside its block")
        others = self.has_narrow, self.has_rest, self.has_tiled, self.has_more, self.has_linear
        if not self.has_entry and (any(others) or self.most_group_items):
            raise ExecutableError(f"{self.name} has no entry, but code that takes its place")
        if self.repeated_dimensions > 3:
            raise ExecutableError("malformed KernelInfo.repeated_dimensions")
        if len(self.specialisable_args) > MOST_SPECIALISABLE or not all(
            map(self._has_word, self.specialisable_args)
        ):
            raise ExecutableError("malformed KernelInfo.specialisable_args")
        if not all(map(self._has_buffer, self.apart_args)):
            raise ExecutableError("malformed KernelInfo.apart_args")
        if not all(type(dimension) is int and 0 <= dimension < 3 for dimension in self.once_along):
            raise ExecutableError("malformed KernelInfo.once_along")
        for name in ("account", "extents"):
            numbers = getattr(self, name)
            if not all(type(number) is int and -(1 << 63) <= number < 1 << 63 for number in numbers):
                raise ExecutableError(f"malformed KernelInfo.{name}")
        return self

    def _has_buffer(self, index: object) -> bool:
        """Whether that is the number of an argument that is a pointer, and one of MOST_APART."""
        if type(index) is not int or not 0 <= index < min(len(self.args), MOST_APART):
            return False
        return self.args[index].kind == GLOBAL

    def _has_word(self, index: object) -> bool:
        """Whether that is the number of an argument by value that fits a word."""
        if type(index) is not int or not 0 <= index < len(self.args):
            return False
        return self.args[index].kind in (VALUE, IMAGE, SAMPLER) and self.args[index].size <= 8


class Globals(_Record):
    """Program-scope variables: size and align of their memory, its first bytes (the rest is zero), and
    fixups [[offset, target]]: the 8 bytes at offset become the address of the memory plus target.
    variables [[name, offset, size, access]]: those that hosts may ask for, each name once; access: bits, 1
    for reads, 2 for writes."""

    FIELDS = _fields(size=_size, align=_align, image=_bytes, fixups=_list, variables=_list)
    __slots__ = tuple(FIELDS)

    size: int
    align: int
    image: bytes
    fixups: list[list[int]]
    variables: list[list[Any]]

    @classmethod
    def from_values(cls, values: object) -> Self:
        """As _Record.from_values(); the fields must fit one another, too, else ExecutableError."""
        self = super().from_values(values)
        if len(self.image) > self.size:
            raise ExecutableError("program-scope variables are larger than their memory")
        for fixup in self.fixups:
            if type(fixup) is not list or len(fixup) != 2 or not all(map(_size, fixup)):
                raise ExecutableError("malformed Globals.fixups")
            if fixup[0] + 8 > self.size or fixup[1] > self.size:
                raise ExecutableError("a pointer to a program-scope variable lies outside their memory")
        for variable in self.variables:
            if type(variable) is not list or len(variable) != 4 or not _c_name(variable[0]):
                raise ExecutableError("malformed Globals.variables")
            if not all(map(_size, variable[1:])) or variable[3] > 3:
                raise ExecutableError("malformed Globals.variables")
            if variable[1] + variable[2] > self.size:
                raise ExecutableError("a program-scope variable lies outside their memory")
        return self


class VariantCode(_Record):
    """Code for some launches of a kernel (compiler/variants.py). object: ELF, empty where there is none;
    symbol: of its entry, or why there is none; the rest as of a kernel."""

    FIELDS = _fields(
        object=_bytes, symbol=_text, local_static=_size, scratch_fixed=_size, scratch_per_item=_size
    )
    __slots__ = tuple(FIELDS)

    object: bytes
    symbol: str
    local_static: int
    scratch_fixed: int
    scratch_per_item: int


class Executable(_Record):
    """names: of all kernels of the program, in order, and then of the blocks that they enqueue, which are
    block_count; weights: of the same, about how long each takes to
    compile; kernels: list[KernelInfo], those that are compiled, in any order: where there are many, a kernel
    is when it is asked for; objects: list[bytes], ELF; globals: Globals; target: Target.key of the CPU
    that it was made for; options: as given to the build; il: the program (jit/bundle.py) that it was made of,
    which kernels, and code for some launches, are made of; functions [[name, address]]: those whose addresses
    hosts may ask for."""

    FIELDS = _fields(
        target=_text,
        options=_text,
        names=_list,
        block_count=_small,
        weights=_list,
        kernels=_list,
        objects=_list,
        globals=_list,
        il=_bytes,
        functions=_list,
    )
    __slots__ = tuple(FIELDS)

    target: str
    options: str
    names: list[str]
    block_count: int
    weights: list[int]
    kernels: list[KernelInfo]
    objects: list[bytes]
    globals: Globals
    il: bytes
    functions: list[list[Any]]

    def to_values(self) -> list[Any]:
        """As _Record.to_values(), with those of kernels and variables."""
        return [self.target, self.options, self.names, self.block_count, self.weights,
                [kernel.to_values() for kernel in self.kernels], self.objects,
                self.globals.to_values(), self.il, self.functions]  # fmt: skip

    @classmethod
    def from_values(cls, values: object) -> Self:
        """As _Record.from_values(); the fields must fit one another, too, else ExecutableError."""
        self = super().from_values(values)
        self.kernels = [KernelInfo.from_values(kernel) for kernel in self.kernels]
        self.globals = Globals.from_values(self.globals)
        if not all(map(_bytes, self.objects)):
            raise ExecutableError("malformed Executable.objects")
        for kernel in self.kernels:
            if kernel.has_entry and kernel.object_index >= len(self.objects):
                raise ExecutableError(f"the object of {kernel.name} is missing")
        if not all(map(_c_name, self.names)) or not all(map(_small, self.weights)):
            raise ExecutableError("malformed Executable.names")
        for function in self.functions:
            if type(function) is not list or len(function) != 2 or not _c_name(function[0]):
                raise ExecutableError("malformed Executable.functions")
            if not _size(function[1]):
                raise ExecutableError("malformed Executable.functions")
        if self.block_count > len(self.names):
            raise ExecutableError("malformed Executable.block_count")
        for kernel in self.kernels:
            if not all(_small(number) and number < self.block_count for number in kernel.blocks):
                raise ExecutableError(f"{kernel.name} enqueues blocks that are not there")
        names = set(self.names)
        if len(names) != len(self.names) or len(self.weights) != len(self.names):
            raise ExecutableError("two kernels have one name")
        if len({kernel.name for kernel in self.kernels} & names) != len(self.kernels):
            raise ExecutableError("a kernel is not one of the program's, or is there twice")
        return self

    @property
    def kernel_names(self) -> list[str]:
        """CL_PROGRAM_KERNEL_NAMES."""
        return self.names[: len(self.names) - self.block_count]

    def add(self, info: KernelInfo, objects: list[bytes]) -> None:
        """Appends a kernel and its objects, which its fields number from 0."""
        info.object_index += len(self.objects)
        self.objects += objects  # first: who looks at the kernels meanwhile finds them
        self.kernels.append(info)

    def kernel(self, name: str) -> KernelInfo | None:
        """The kernel of that name, if it is compiled."""
        return next((kernel for kernel in self.kernels if kernel.name == name), None)

    def missing(self) -> dict[str, int]:
        """The names, and weights, of kernels that are not compiled, in order."""
        if len(self.kernels) == len(self.names):
            return {}
        there = {kernel.name for kernel in self.kernels}
        return {n: weight for n, weight in zip(self.names, self.weights, strict=True) if n not in there}

    def to_bytes(self) -> bytes:
        """Magic, digest of the rest, values."""
        body = wire.encode(self.to_values())
        return MAGIC + blake2b(body, digest_size=_DIGEST).digest() + body

    @classmethod
    def from_bytes(cls, data: bytes) -> Executable:
        """The reverse of to_bytes(). ExecutableError if the bytes are not exactly what it made."""
        if data[: len(MAGIC)] != MAGIC:
            raise ExecutableError("not an executable of this version of the driver")
        body = bytes(data[_HEADER:])
        if blake2b(body, digest_size=_DIGEST).digest() != data[len(MAGIC) : _HEADER]:
            raise ExecutableError("the executable is damaged")
        try:
            return cls.from_values(wire.decode(body))
        except wire.WireError as error:
            raise ExecutableError(str(error)) from error


def is_executable(data: bytes) -> bool:
    """True if the bytes look like one, of this version."""
    return data[: len(MAGIC)] == MAGIC
