"""Chapter 5.9.4: kernel queries. A kernel has no peer: it is its program's, whose executables cannot change
while kernels are attached, and its name."""

from __future__ import annotations

from .. import settings
from ..door import answers
from .entrypoint import entrypoint
from .errors import CLError
from .generated import enums as cl
from .info import answer, size, string, uint, ulong, unknown
from .program import LINKED, SOURCE, DeviceBuild, Program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..jit.executable import ArgInfo, KernelInfo
    from .info import Row


class _Kernel:
    """The kernel of that name in the first executable of a program that has it, and the build of that."""

    __slots__ = ("build", "info", "program")

    def __init__(self, program: Program, build: DeviceBuild, info: KernelInfo) -> None:
        self.program = program
        self.build = build
        self.info = info


def _kernel(program: Program, name: bytes) -> _Kernel:
    text = name.decode()
    for build in program.usable:
        info = build.executable and build.executable.kernel(text)
        if info:
            return _Kernel(program, build, info)
    raise CLError(cl.CL_INVALID_KERNEL, "the kernel's program is no longer built")


# What the C side does not know: CL_KERNEL_FUNCTION_NAME and the rest are answered there.
KERNEL_INFO: dict[int, Row[_Kernel]] = {
    # "For kernels not created from OpenCL C source and the clCreateProgramWithSource API call the string
    # returned from this query will be empty."
    cl.CL_KERNEL_ATTRIBUTES: string(
        lambda kernel: kernel.info.attributes if kernel.program.origin in (SOURCE, LINKED) else ""
    ),
}


def _preferred_multiple(kernel: KernelInfo) -> int:
    if kernel.width > 1:
        return kernel.width
    # What is compiled for one work-item at a time is vectorised by LLVM, as widely as the target allows.
    from ..device.target import target_of

    return target_of(settings).vector_width(4)


# Others are answered by the C side, which has them for its own use.
WORK_GROUP_INFO: dict[int, Row[KernelInfo]] = {
    cl.CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE: size(_preferred_multiple),
    cl.CL_KERNEL_PRIVATE_MEM_SIZE: ulong(lambda kernel: kernel.private_size),
    # cl_intel_required_subgroup_size: "the amount of spill memory used by a kernel". The stack takes what
    # registers do not hold, as in any program.
    cl.CL_KERNEL_SPILL_MEM_SIZE_INTEL: ulong(0),
}

ARG_INFO: dict[int, Row[ArgInfo]] = {
    cl.CL_KERNEL_ARG_ADDRESS_QUALIFIER: uint(lambda arg: arg.address_qualifier),
    cl.CL_KERNEL_ARG_ACCESS_QUALIFIER: uint(lambda arg: arg.access_qualifier),
    cl.CL_KERNEL_ARG_TYPE_NAME: string(lambda arg: arg.type_name),
    cl.CL_KERNEL_ARG_TYPE_QUALIFIER: ulong(lambda arg: arg.type_qualifier),
    cl.CL_KERNEL_ARG_NAME: string(lambda arg: arg.name),
}


@entrypoint("clGetKernelInfo", Program)
def get_kernel_info(program: Program, name: bytes, param_name: int) -> tuple[bytes]:
    """The answer to a query (5.9.4). CL_INVALID_VALUE for one that is not in the table."""
    return (answer(KERNEL_INFO, param_name, _kernel(program, name)),)


@entrypoint("clGetKernelWorkGroupInfo", Program)
def get_kernel_work_group_info(program: Program, name: bytes, param_name: int) -> tuple[bytes]:
    """The answer to a query (5.9.4). CL_INVALID_VALUE for one that is not in the table."""
    return (answer(WORK_GROUP_INFO, param_name, _kernel(program, name).info),)


@entrypoint("kernel_variant", Program)
def kernel_variant(
    program: Program,
    executable: int,
    name: bytes,
    key: list[int],
    size: list[int],
    apart: int,
    values: list[Any],
) -> list[Any]:
    """VARIANT: code for some launches of a kernel, for the data plane.

    executable: number in the answer of program_executable; key: see variants.kind_of(); values: number of
    an argument, its bytes, those of the next one... apart: bits, KernelInfo.apart_args.
    """
    found = program.executables[executable]
    return _variant(found.options, found.il, name, key, size, apart, values)


@entrypoint("kernel_variant_of")
def kernel_variant_of(
    options: bytes, il: bytes, name: bytes, key: list[int], size: list[int], apart: int, values: list[Any]
) -> list[Any]:
    """The same for a program whose peer was lost with the runtime process that had it."""
    return _variant(options.decode("utf-8", "surrogateescape"), il, name, key, size, apart, values)


def _variant(
    options: str, il: bytes, name: bytes, key: list[int], size: list[int], apart: int, values: list[Any]
) -> list[Any]:
    from ..service import client

    pairs = list(zip(values[::2], values[1::2], strict=True))
    numbers = [number for number in range(apart.bit_length()) if apart >> number & 1]
    code = client.kernel_variant(options, il, name.decode(), key, size, pairs, numbers)
    return answers.VARIANT(
        object=code.object,
        symbol=code.symbol,
        local_static=code.local_static,
        scratch_fixed=code.scratch_fixed,
        scratch_per_item=code.scratch_per_item,
    )


@entrypoint("clGetKernelArgInfo", Program)
def get_kernel_arg_info(program: Program, name: bytes, arg_index: int, param_name: int) -> tuple[bytes]:
    """The answer to a query (5.9.4); the index is checked already. CL_INVALID_VALUE for one that is not in
    the table, CL_KERNEL_ARG_INFO_NOT_AVAILABLE where the program has none."""
    kernel = _kernel(program, name)
    arg = kernel.info.args[arg_index]
    # "CL_INVALID_VALUE if param_name is not valid"
    if param_name not in ARG_INFO:
        raise unknown(param_name)
    # "CL_KERNEL_ARG_INFO_NOT_AVAILABLE if the argument information is not available for kernel." "Kernel
    # argument information is only available if the program [...] is created with clCreateProgramWithSource
    # and the program executable is built with the -cl-kernel-arg-info option".
    if not (arg.known and kernel.build.arg_info):
        raise CLError(
            cl.CL_KERNEL_ARG_INFO_NOT_AVAILABLE,
            "the program was not built from source with -cl-kernel-arg-info",
        )
    return (answer(ARG_INFO, param_name, arg),)
