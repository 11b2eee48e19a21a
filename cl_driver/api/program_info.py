"""Chapter 5.8.9: program queries, and what the data plane loads of a built program."""

from __future__ import annotations

from .entrypoint import entrypoint
from .errors import require
from .generated import enums as cl
from .info import answer, int32, raw, size, sizes, string, uint
from .program import DeviceBuild, Program
from .program_binary import pack_executable, pack_object


def _built(program: Program) -> DeviceBuild:
    # "CL_INVALID_PROGRAM_EXECUTABLE if param_name is CL_PROGRAM_NUM_KERNELS, CL_PROGRAM_KERNEL_NAMES, [...]
    # and a successful program executable has not been built for at least one device".
    require(program.built, cl.CL_INVALID_PROGRAM_EXECUTABLE, "the program is not built")
    return program.built


def _kernel_names(program: Program) -> list[str]:
    return [kernel.name for kernel in _built(program).executable.kernels]


def _absent(program: Program) -> int:
    # "may unconditionally return CL_FALSE if no devices [...] support constructors", or destructors.
    _built(program)
    return cl.CL_FALSE


# CL_PROGRAM_REFERENCE_COUNT, _CONTEXT, _NUM_DEVICES and _DEVICES are handles: native_shim/src/api/program.c.
PROGRAM_INFO = {
    cl.CL_PROGRAM_SOURCE: string(lambda program: program.source),
    # "If program is created with clCreateProgramWithSource, [...] param_value_size_ret will be set to 0."
    cl.CL_PROGRAM_IL: raw(lambda program: program.il or b""),
    cl.CL_PROGRAM_BINARY_SIZES: sizes(
        lambda program: [len(binary_of(build)) for build in program.builds.values()]
    ),
    cl.CL_PROGRAM_NUM_KERNELS: size(lambda program: len(_kernel_names(program))),
    cl.CL_PROGRAM_KERNEL_NAMES: string(lambda program: ";".join(_kernel_names(program))),
    cl.CL_PROGRAM_SCOPE_GLOBAL_CTORS_PRESENT: uint(_absent),
    cl.CL_PROGRAM_SCOPE_GLOBAL_DTORS_PRESENT: uint(_absent),
}


def _log(build: DeviceBuild) -> bytes:
    return build.log.replace("\0", " ").encode("utf-8", "surrogateescape")


def _global_size(build: DeviceBuild) -> int:
    return build.executable.globals.size if build.is_built else 0


BUILD_INFO = {
    cl.CL_PROGRAM_BUILD_STATUS: int32(lambda build: build.status),
    # "If build status of the specified program for device is CL_BUILD_NONE, an empty string is returned."
    cl.CL_PROGRAM_BUILD_OPTIONS: string(
        lambda build: (
            b"" if build.status == cl.CL_BUILD_NONE else build.options.encode("utf-8", "surrogateescape")
        )
    ),
    cl.CL_PROGRAM_BUILD_LOG: string(_log),
    cl.CL_PROGRAM_BINARY_TYPE: uint(lambda build: build.binary_type),
    cl.CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE: size(_global_size),
}


def binary_of(build: DeviceBuild) -> bytes:
    """The program binary for a device; empty if there is none: "a size of zero is returned"."""
    if not build.binary:
        if build.is_built:
            build.binary = pack_executable(build)
        elif build.spirv is not None and build.status == cl.CL_BUILD_SUCCESS:
            build.binary = pack_object(build)
    return build.binary


@entrypoint("clGetProgramInfo", Program)
def get_program_info(program: Program, param_name: int):
    return (answer(PROGRAM_INFO, param_name, program),)


@entrypoint("clGetProgramBuildInfo", Program)
def get_program_build_info(program: Program, device: int, param_name: int):
    return (answer(BUILD_INFO, param_name, program.build_used_by(device)),)


@entrypoint("program_binaries", Program)
def program_binaries(program: Program):
    """CL_PROGRAM_BINARIES, one per device of the program; the C side copies them to the host's pointers."""
    return ([binary_of(build) for build in program.builds.values()],)


@entrypoint("program_executable", Program)
def program_executable(program: Program, with_il: int):
    """(executables, for each device of the program the index of its own, or -1), for the data plane.

    An executable is [objects, size, align and image of the program-scope variables, fix-ups, kernels, and,
    with_il, options and IL, of which kernel_variant_of makes more code]; a kernel [name, object index (-1: it
    has no entry), symbol, block size, local_static, scratch_fixed, scratch_per_item, required_local_size,
    max_group_size, width, uses_printf, flags, tile_width, tile_height, sub_group_width, sub_group_size,
    sub_groups_per_group, most_group_items, counted, counted_size, arguments, numbers of those for whose
    values there may be code]; an argument [kind, constant, size, align, offset, access (1 read-only, 2
    write-only, 3 read-write, 0 for what is no image), image type, depth].
    """
    usable = program.usable
    # "CL_INVALID_PROGRAM_EXECUTABLE if there is no successfully built executable for program."
    require(usable, cl.CL_INVALID_PROGRAM_EXECUTABLE, "the program is not built")
    builds = [program.build_used_by(device) for device in program.builds]
    found = program.executables
    numbers = {id(executable): number for number, executable in enumerate(found)}
    places = [numbers[id(build.executable)] if build in usable else -1 for build in builds]
    return [_for_data_plane(executable, with_il) for executable in found], places


def _flags(kernel) -> int:
    """enum cld_kernel_flags of native_shim/src/launch/kernel.h."""
    flags = (kernel.uniform_groups, kernel.is_wide, kernel.uses_sub_groups, kernel.free_groups)
    flags += (kernel.has_narrow, kernel.has_rest, kernel.has_tiled, kernel.tiles_first, kernel.has_more)
    flags += (kernel.reads_ahead,)
    return sum(int(flag) << bit for bit, flag in enumerate(flags))


_ACCESSES = {
    cl.CL_KERNEL_ARG_ACCESS_READ_ONLY: 1,
    cl.CL_KERNEL_ARG_ACCESS_WRITE_ONLY: 2,
    cl.CL_KERNEL_ARG_ACCESS_READ_WRITE: 3,
}  # enum cld_access


def _argument(arg) -> list[int]:
    access = _ACCESSES.get(arg.access_qualifier, 0)
    return [
        arg.kind,
        int(arg.constant),
        arg.size,
        arg.align,
        arg.offset,
        access,
        arg.image_type,
        int(arg.depth),
    ]


def _for_data_plane(executable, with_il: int) -> list:
    variables = executable.globals
    kernels = [
        [
            kernel.name,
            kernel.object_index if kernel.has_entry else -1,
            kernel.symbol,
            kernel.block_size,
            kernel.local_static,
            kernel.scratch_fixed,
            kernel.scratch_per_item,
            list(kernel.required_local_size),
            kernel.max_group_size,
            kernel.width,
            int(kernel.uses_printf),
            _flags(kernel),
            kernel.tile_width,
            kernel.tile_height,
            kernel.sub_group_width,
            kernel.sub_group_size,
            kernel.sub_groups_per_group,
            kernel.most_group_items,
            kernel.counted,
            kernel.counted_size,
            [_argument(arg) for arg in kernel.args],
            kernel.value_args,
        ]
        for kernel in executable.kernels
    ]
    return [
        executable.objects,
        variables.size,
        variables.align,
        variables.image,
        [word for fixup in variables.fixups for word in fixup],
        kernels,
        executable.options if with_il else None,
        executable.il if with_il else None,
    ]
