"""What Python answers to the data plane, field by field: one description, of which both sides are made.

Python calls an Answer with its fields by name; native_shim/gen/answers.py writes the structures that C has of
them, and what reads them. codec.py has the format of each value.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Integer:
    """An integer that fits so many bits; C refuses others."""

    def __init__(self, bits: int, signed: bool = False) -> None:
        self.bits = bits
        self.signed = signed


class Bytes:
    """Bytes or a string; None as well where it is optional."""

    def __init__(self, optional: bool = False) -> None:
        self.optional = optional


class List:
    """A list: of integers, at most so many of them if there is a bound; of bytes; of answers."""

    def __init__(self, of: Integer | Bytes | Answer, most: int | None = None) -> None:
        self.of = of
        self.most = most


U8, U32, U64, I32, I64 = Integer(8), Integer(32), Integer(64), Integer(32, True), Integer(64, True)


class Answer:
    """Named fields in the order in which they go through the door, each a type and what it is."""

    def __init__(self, name: str, about: str, /, **fields: tuple[Integer | Bytes | List, str]) -> None:
        self.name = name
        self.about = about
        self.fields = fields

    def __call__(self, **values: Any) -> list[Any]:
        """The values in order. TypeError where a field is missing, or is none of the answer's."""
        if values.keys() != self.fields.keys():
            raise TypeError(f"{self.name}: {sorted(values.keys() ^ self.fields.keys())}")
        return [values[name] for name in self.fields]


ARGUMENT = Answer(
    "argument",
    "An argument of a kernel: struct cld_arg_info.",
    kind=(U8, "enum cld_arg_kind"),
    constant=(U8, "its address space is constant"),
    size=(U32, "what clSetKernelArg must be given"),
    align=(U32, "of the value; of the pointee for local arguments"),
    offset=(U32, "in the argument block"),
    access=(U8, "of images: enum cld_access; 0 for others"),
    image_type=(U32, "cl_mem_object_type"),
    depth=(U8, "an image of depth"),
    written=(U8, "the kernel certainly writes to the buffer that it points to"),
    only_read=(U8, "it certainly does not"),
)

KERNEL = Answer(
    "kernel",
    "A kernel: struct cld_kernel_info.",
    name=(Bytes(), ""),
    object=(I64, "the number of the object that its entry is in; -1: it has no entry"),
    symbol=(Bytes(), "of its entry"),
    block_size=(U32, "of the argument block"),
    local_static=(U64, "bytes of kernel-scope local variables"),
    scratch_fixed=(U64, "bytes for a thread"),
    scratch_per_item=(U64, "bytes for each work-item of a group"),
    required_local_size=(List(U64, 3), "of reqd_work_group_size, or empty"),
    max_local_size=(List(U64, 3), "the largest size of each dimension, or empty"),
    max_group_size=(U64, "CL_KERNEL_WORK_GROUP_SIZE"),
    width=(U32, "work-items per vector"),
    uses_printf=(U32, ""),
    flags=(U64, "enum cld_kernel_flags"),
    tile_width=(U32, "work-items of a row that the tiled code takes at a time"),
    tile_height=(U32, "rows, likewise"),
    repeated_dimensions=(U32, "so many of the last ones: along them all groups do the same"),
    sub_group_size=(U64, "work-items per sub-group"),
    required_sub_group_size=(U64, "as the source requires, or 0"),
    required_sub_groups=(U64, "per work-group, likewise"),
    most_group_items=(U64, "of groups that there may be code for by their size, or 0"),
    counted=(U32, "1 + the argument of which threads may have copies, or 0"),
    counted_size=(U32, "bytes of its elements"),
    apart=(U64, "bits: arguments whose buffers no other argument's may overlap"),
    arguments=(List(ARGUMENT), ""),
    blocks=(List(U32), "numbers of the blocks that it enqueues, or that these do"),
    account=(List(I64), "bytes and operations of launches (passes/traffic/account.py), or empty"),
    extents=(List(I64), "what work-groups read and write (passes/extents/extents.py), or empty"),
    specialisable_arguments=(List(U32, 8), "numbers of arguments that there may be code for the values of"),
)

VARIABLE = Answer(
    "variable",
    "A program-scope variable that hosts may ask for: struct cld_program_variable.",
    name=(Bytes(), ""),
    offset=(U64, "in the memory of all of them"),
    size=(U64, "bytes"),
    access=(U8, "enum cld_host_access"),
)

FUNCTION = Answer(
    "function",
    "A function whose address hosts may ask for: struct cld_program_function.",
    name=(Bytes(), ""),
    address=(U64, "what kernels take for a pointer to it"),
)

EXECUTABLE = Answer(
    "executable",
    "What a build made of a program for one or more devices: struct cld_executable.",
    objects=(List(Bytes()), "object files"),
    globals_size=(U64, "bytes of program-scope variables"),
    globals_align=(U64, ""),
    globals_image=(Bytes(), "their initial values; what is missing at the end is zeros"),
    fixups=(List(U64), "offset, target: the 8 bytes at offset become the variables' address plus target"),
    variables=(List(VARIABLE), ""),
    functions=(List(FUNCTION), ""),
    names=(List(Bytes()), "CL_PROGRAM_KERNEL_NAMES, and then names of blocks that kernels enqueue"),
    blocks=(U32, "of the names"),
    kernels=(List(KERNEL), "those that are compiled, in the order of the names"),
    options=(Bytes(optional=True), "of which kernel_variant_of makes more code"),
    il=(Bytes(optional=True), "likewise"),
)

EXECUTABLES = Answer(
    "executables",
    "The answer of program_executable.",
    executables=(List(EXECUTABLE), ""),
    of_devices=(List(I64), "for each device of the program the number of its own, or -1"),
)

KERNELS = Answer(
    "kernels",
    "The answer of program_kernels and kernels_of: kernels that were compiled when they were asked for.",
    objects=(List(Bytes()), "object files"),
    kernels=(List(KERNEL), "in the order in which they were asked for"),
)

VARIANT = Answer(
    "variant",
    "The answer of kernel_variant and kernel_variant_of: code for some launches of a kernel.",
    object=(Bytes(), "an object file; empty: there is none"),
    symbol=(Bytes(), "of its entry; or why there is none"),
    local_static=(U64, "as of a kernel"),
    scratch_fixed=(U64, ""),
    scratch_per_item=(U64, ""),
)

LIMITS = Answer(
    "limits",
    "The answer of device_limits: what the data plane checks against.",
    max_group_size=(U64, "CL_DEVICE_MAX_WORK_GROUP_SIZE"),
    max_item_sizes=(List(U64, 3), "CL_DEVICE_MAX_WORK_ITEM_SIZES"),
    local_memory_size=(U64, "CL_DEVICE_LOCAL_MEM_SIZE"),
    max_alloc_size=(U64, "CL_DEVICE_MAX_MEM_ALLOC_SIZE"),
    base_align=(U32, "CL_DEVICE_MEM_BASE_ADDR_ALIGN in bytes"),
)

BUILD = Answer(
    "build",
    "The answer of build_run.",
    status=(I32, "an error code"),
    is_executable=(U32, "the program is one now"),
)

ANSWERS = (EXECUTABLES, KERNELS, VARIANT, LIMITS, BUILD)
