"""Chapter 5.8.9: program queries, and what the data plane loads of a built program."""

from __future__ import annotations

from ..door import answers
from ..frontend.options import without_context, without_remote
from .entrypoint import entrypoint
from .errors import CLError, require
from .generated import enums as cl
from .info import answer, int32, raw, size, sizes, string, uint
from .on_demand import compile_kernels, compiled, complete
from .program import DeviceBuild, Program
from .program_binary import pack_executable, pack_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..jit.executable import ArgInfo, Executable, KernelInfo
    from .info import Row


def _executable(program: Program) -> Executable:
    """The first that kernels can be made of."""
    # "CL_INVALID_PROGRAM_EXECUTABLE if param_name is CL_PROGRAM_NUM_KERNELS, CL_PROGRAM_KERNEL_NAMES, [...]
    # and a successful program executable has not been built for at least one device".
    built = program.built
    if built is None or built.executable is None:
        raise CLError(cl.CL_INVALID_PROGRAM_EXECUTABLE, "the program is not built")
    return built.executable


def _kernel_names(program: Program) -> list[str]:
    return _executable(program).kernel_names


def _absent(program: Program) -> int:
    # "may unconditionally return CL_FALSE if no devices [...] support constructors", or destructors.
    _executable(program)
    return cl.CL_FALSE


# CL_PROGRAM_REFERENCE_COUNT, _CONTEXT, _NUM_DEVICES and _DEVICES are handles: native_shim/src/api/program.c.
PROGRAM_INFO: dict[int, Row[Program]] = {
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
    return build.executable.globals.size if build.executable is not None and build.is_built else 0


BUILD_INFO: dict[int, Row[DeviceBuild]] = {
    cl.CL_PROGRAM_BUILD_STATUS: int32(lambda build: build.status),
    # "If build status of the specified program for device is CL_BUILD_NONE, an empty string is returned."
    cl.CL_PROGRAM_BUILD_OPTIONS: string(
        lambda build: (
            b""
            if build.status == cl.CL_BUILD_NONE
            else without_context(build.options)[1].encode("utf-8", "surrogateescape")
        )
    ),
    cl.CL_PROGRAM_BUILD_LOG: string(_log),
    cl.CL_PROGRAM_BINARY_TYPE: uint(lambda build: build.binary_type),
    cl.CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE: size(_global_size),
}


def binary_of(build: DeviceBuild) -> bytes:
    """The program binary for a device; empty if there is none: "a size of zero is returned". All kernels are
    in it: CL_OUT_OF_RESOURCES if one cannot be compiled."""
    if not build.binary:
        if build.executable is not None and build.is_built:
            compile_kernels(build.executable, build.executable.names, [build])
            build.binary = pack_executable(build.executable)
        elif build.spirv is not None and build.status == cl.CL_BUILD_SUCCESS:
            complete(build)
            build.binary = pack_object(build)
    return build.binary


@entrypoint("clGetProgramInfo", Program)
def get_program_info(program: Program, param_name: int) -> tuple[bytes]:
    """The answer to a query (5.8.9). CL_INVALID_VALUE for one that is not in the table, and
    CL_INVALID_PROGRAM_EXECUTABLE for those that only a built program answers."""
    return (answer(PROGRAM_INFO, param_name, program),)


@entrypoint("clGetProgramBuildInfo", Program)
def get_program_build_info(program: Program, device: int, param_name: int) -> tuple[bytes]:
    """The answer to a query (5.8.9). CL_INVALID_VALUE for one that is not in the table, CL_INVALID_DEVICE for
    a device that is none of the program's."""
    return (answer(BUILD_INFO, param_name, program.build_used_by(device)),)


@entrypoint("program_binaries", Program)
def program_binaries(program: Program) -> tuple[list[bytes]]:
    """CL_PROGRAM_BINARIES, one per device of the program; the C side copies them to the host's pointers."""
    return ([binary_of(build) for build in program.builds.values()],)


@entrypoint("program_executable", Program)
def program_executable(program: Program, with_il: int) -> list[Any]:
    """EXECUTABLES, for the data plane. with_il: what kernel_variant_of makes more code of is in it.
    CL_INVALID_PROGRAM_EXECUTABLE if the program is not built."""
    usable = program.usable
    # "CL_INVALID_PROGRAM_EXECUTABLE if there is no successfully built executable for program."
    require(usable, cl.CL_INVALID_PROGRAM_EXECUTABLE, "the program is not built")
    builds = [program.build_used_by(device) for device in program.builds]
    found = program.executables
    numbers = {id(executable): number for number, executable in enumerate(found)}
    places = [numbers[id(build.executable)] if build in usable else -1 for build in builds]
    executables = [_for_data_plane(executable, with_il) for executable in found]
    return answers.EXECUTABLES(executables=executables, of_devices=places)


def _flags(kernel: KernelInfo) -> int:
    """enum cld_kernel_flags of native_shim/src/kernel/kernel.h."""
    flags = [kernel.uniform_groups, kernel.is_wide, kernel.uses_sub_groups, kernel.free_groups]
    flags += [kernel.has_narrow, kernel.has_rest, kernel.has_tiled, kernel.tiles_first, kernel.has_more]
    flags += [kernel.reads_ahead, kernel.has_linear]
    flags += [dimension in kernel.once_along for dimension in range(3)]
    flags += [kernel.aligned_groups, kernel.tries_items, kernel.exchanged, kernel.uses_pipes]
    flags += [kernel.zeroes_local, kernel.terminable]
    flags += [kernel.enqueues, kernel.is_block, kernel.takes_turns]
    return sum(int(flag) << bit for bit, flag in enumerate(flags))


_ACCESSES = {
    cl.CL_KERNEL_ARG_ACCESS_READ_ONLY: 1,
    cl.CL_KERNEL_ARG_ACCESS_WRITE_ONLY: 2,
    cl.CL_KERNEL_ARG_ACCESS_READ_WRITE: 3,
}  # enum cld_access


def _argument(arg: ArgInfo) -> list[Any]:
    return answers.ARGUMENT(
        kind=arg.kind,
        constant=int(arg.constant),
        size=arg.size,
        align=arg.align,
        offset=arg.offset,
        access=_ACCESSES.get(arg.access_qualifier, 0),
        image_type=arg.image_type,
        depth=int(arg.depth),
        written=int(arg.written),
        only_read=int(arg.only_read),
    )


def _kernel(kernel: KernelInfo, number: int) -> list[Any]:
    """A kernel for the data plane. number: of its object in the answer."""
    return answers.KERNEL(
        name=kernel.name,
        object=number if kernel.has_entry else -1,
        symbol=kernel.symbol,
        block_size=kernel.block_size,
        local_static=kernel.local_static,
        scratch_fixed=kernel.scratch_fixed,
        scratch_per_item=kernel.scratch_per_item,
        required_local_size=list(kernel.required_local_size),
        max_local_size=list(kernel.max_local_size),
        max_group_size=kernel.max_group_size,
        width=kernel.width,
        uses_printf=int(kernel.uses_printf),
        flags=_flags(kernel),
        tile_width=kernel.tile_width,
        tile_height=kernel.tile_height,
        repeated_dimensions=kernel.repeated_dimensions,
        sub_group_size=kernel.sub_group_width,
        required_sub_group_size=kernel.sub_group_size,
        required_sub_groups=kernel.sub_groups_per_group,
        most_group_items=kernel.most_group_items,
        counted=kernel.counted,
        counted_size=kernel.counted_size,
        arguments=[_argument(arg) for arg in kernel.args],
        apart=sum(1 << number for number in kernel.apart_args),
        blocks=kernel.blocks,
        account=kernel.account,
        extents=kernel.extents,
        specialisable_arguments=kernel.specialisable_args,
    )


def _for_data_plane(executable: Executable, with_il: int) -> list[Any]:
    variables = executable.globals
    by_name = {kernel.name: kernel for kernel in executable.kernels}
    kernels = [by_name[name] for name in executable.names if name in by_name]
    return answers.EXECUTABLE(
        objects=list(executable.objects),
        globals_size=variables.size,
        globals_align=variables.align,
        globals_image=variables.image,
        fixups=[word for fixup in variables.fixups for word in fixup],
        variables=[
            answers.VARIABLE(name=name, offset=offset, size=size, access=access)
            for name, offset, size, access in variables.variables
        ],
        functions=[answers.FUNCTION(name=name, address=address) for name, address in executable.functions],
        names=executable.names,
        blocks=len(executable.names) - len(executable.kernel_names),
        kernels=[_kernel(kernel, kernel.object_index) for kernel in kernels],
        options=without_remote(executable.options) if with_il else None,
        il=executable.il if with_il else None,
    )


@entrypoint("program_kernels", Program)
def program_kernels(program: Program, executable: int, names: list[bytes]) -> list[Any]:
    """KERNELS, of kernels that a build has left to be compiled. executable: as for kernel_variant.
    CL_OUT_OF_RESOURCES if one cannot be compiled; the program's log says why."""
    found, wanted = program.executables[executable], [name.decode() for name in names]
    compile_kernels(found, wanted, [build for build in program.builds.values() if build.executable is found])
    by_name = {kernel.name: kernel for kernel in found.kernels}
    return _answer([(info, found.objects[info.object_index :]) for info in map(by_name.__getitem__, wanted)])


@entrypoint("kernels_of")
def kernels_of(options: bytes, il: bytes, names: list[bytes]) -> list[Any]:
    """The same for a program whose peer was lost with the runtime process that had it."""
    wanted = {name.decode(): 1 for name in names}
    made = compiled(options.decode("utf-8", "surrogateescape"), il, wanted)
    return _answer([made[name] for name in wanted])


def _answer(kernels: list[tuple[KernelInfo, list[bytes]]]) -> list[Any]:
    """The answer of these, each with objects of which the first is its own."""
    given: list[Any] = []
    objects: list[bytes] = []
    for info, own in kernels:
        given.append(_kernel(info, len(objects)))
        objects += own[:1] if info.has_entry else []
    return answers.KERNELS(objects=objects, kernels=given)
