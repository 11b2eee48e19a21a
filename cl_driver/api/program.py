"""Chapters 5.8.1 to 5.8.3: program objects and how they come to be."""

from __future__ import annotations

import sys

from ..frontend.options import without_context
from .context import Context
from .device import Device
from .entrypoint import adopt, entrypoint, peer
from .errors import CLError, require
from .generated import enums as cl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import ClassVar

    from ..jit.executable import Executable
    from ..service.client import Cut

SOURCE, IL, BINARY, LINKED = "source", "IL", "binary", "linked"


class DeviceBuild:
    """What a program has for one device.

    status, log, options, binary_type: CL_PROGRAM_BUILD_*, the options behind those of the context
    (frontend/options.for_context()); spirv: of a compiled object or library; cut: if
    that is only what the object's kernels reach, what client.complete() makes all of it of;
    code_options: those of its options that a link has to know; executable: of a built program, or of a binary
    that waits for clBuildProgram; arg_info: -cl-kernel-arg-info was given.
    """

    __slots__ = (
        "arg_info",
        "binary",
        "binary_type",
        "code_options",
        "cut",
        "executable",
        "log",
        "options",
        "spirv",
        "status",
    )

    def __init__(self) -> None:
        self.status = cl.CL_BUILD_NONE
        self.log = ""
        self.options = ""
        self.binary_type = cl.CL_PROGRAM_BINARY_TYPE_NONE
        self.spirv: bytes | None = None
        self.cut: Cut | None = None
        self.code_options: frozenset[str] = frozenset()
        self.executable: Executable | None = None
        self.arg_info = False
        self.binary = b""  # kept once asked for

    @property
    def is_built(self) -> bool:
        """True if kernels can be made of it."""
        return self.executable is not None and self.status == cl.CL_BUILD_SUCCESS

    @property
    def is_ready_binary(self) -> bool:
        """True for an executable binary for which clBuildProgram was not called. Programs that rely on other
        drivers make kernels of it at once; it is an executable that was built successfully."""
        return self.executable is not None and self.status == cl.CL_BUILD_NONE


class Program:
    """A program object.

    origin: SOURCE, IL, BINARY or LINKED; builds: by device key, in the order of CL_PROGRAM_DEVICES.
    """

    invalid: ClassVar[int] = cl.CL_INVALID_PROGRAM

    def __init__(self, context: Context, origin: str, devices: Iterable[int] | None = None) -> None:
        """devices: keys; None for all of the context."""
        self.context = context
        self.origin = origin
        self.source = b""
        self.il: bytes | None = None
        self.spec_sizes: dict[int, int] = {}
        self.specialisation: dict[int, bytes] = {}
        self.builds = {key: DeviceBuild() for key in (context.devices if devices is None else devices)}
        # What build_run is to do, while the status is CL_BUILD_IN_PROGRESS; it answers an error code.
        self.job: Callable[[], int] | None = None

    def build_of(self, device: int) -> DeviceBuild:
        """The build for a device of the program; CL_INVALID_DEVICE for others."""
        require(device in self.builds, cl.CL_INVALID_DEVICE, "not a device of the program")
        return self.builds[device]

    def build_used_by(self, device: int) -> DeviceBuild:
        """The device's own build, or where it has none that of the nearest ancestor that has one (5.8: "If a
        program binary has not been built for a sub-device, the program binary associated with the parent
        device will be used"). Workers of a cluster are no sub-devices."""
        own = self.build_of(device)
        peers = {key: peer(key, Device) for key in self.builds}
        ancestor: Device | None = peers[device]
        while ancestor is not None:
            for key, candidate in peers.items():
                build = self.builds[key]
                if candidate is ancestor and (build.status != cl.CL_BUILD_NONE or build.is_ready_binary):
                    return build
            ancestor = None if ancestor.is_remote else ancestor.parent
        return own

    @property
    def usable(self) -> list[DeviceBuild]:
        """The builds that kernels can be made of, in the order of the devices."""
        return [build for build in self.builds.values() if build.is_built or build.is_ready_binary]

    @property
    def executables(self) -> list[Executable]:
        """Of what is usable; devices that were built in one call share theirs."""
        builds = [self.build_used_by(device) for device in self.builds]
        usable = self.usable
        found = [build.executable for build in builds if build in usable and build.executable is not None]
        return list({id(executable): executable for executable in found}.values())

    @property
    def built(self) -> DeviceBuild | None:
        """The first build that kernels can be made of."""
        return next(iter(self.usable), None)


@entrypoint("clCreateProgramWithSource", Context)
def create_program_with_source(context: Context, strings: list[bytes]) -> tuple[int]:
    """The key of a new program (5.8.1). strings: its source, in parts."""
    program = Program(context, SOURCE)
    # "The source string returned is a concatenation of all source strings [...]. The concatenation strips any
    # nulls in the original source strings."
    program.source = b"".join(strings).replace(b"\0", b"")
    return (adopt(program),)


@entrypoint("clCreateProgramWithIL", Context)
def create_program_with_il(context: Context, il: bytes) -> tuple[int]:
    """The key of a new program (5.8.1). CL_INVALID_VALUE for what is no SPIR-V for OpenCL."""
    from .il import ILError, scan

    program = Program(context, IL)
    # "CL_INVALID_VALUE if the length-byte block of memory pointed to by il does not contain well-formed
    # intermediate language input that can be consumed by the OpenCL runtime."
    try:
        _, program.spec_sizes = scan(il)
    except ILError as error:
        raise CLError(cl.CL_INVALID_VALUE, str(error)) from error
    program.il = il
    return (adopt(program),)


@entrypoint("clCreateProgramWithBinary", Context)
def create_program_with_binary(
    context: Context, devices: list[int], binaries: list[bytes]
) -> tuple[int, list[int], str]:
    """The key of a new program (5.8.1), 0 if a binary is not valid, the status of each, which the host gets
    also where the call fails, and why."""
    from .program_binary import unpack

    program = Program(context, BINARY, devices)
    statuses, why = [], ""
    for device, binary in zip(devices, binaries, strict=True):
        build = program.builds[device]
        try:
            unpack(binary, build)
            _check_suits(build, context)
            build.arg_info = "-cl-kernel-arg-info" in build.options.split()
            build.binary = binary
            statuses.append(cl.CL_SUCCESS)
        except CLError as error:
            statuses.append(error.code)
            why = error.why
    # "CL_INVALID_BINARY if an invalid program binary was encountered for any device. binary_status will
    # return specific status for each device."
    return (0 if any(statuses) else adopt(program), statuses, why)


def _check_suits(build: DeviceBuild, context: Context) -> None:
    """CL_INVALID_BINARY for what was compiled without what the properties of a context ask for."""
    words, _ = without_context(build.options)
    lacking = [word for word in context.words if word not in words]
    require(not lacking, cl.CL_INVALID_BINARY, f"the binary was compiled without {' '.join(lacking)}")


@entrypoint("clCreateProgramWithBuiltInKernels", Context)
def create_program_with_built_in_kernels(context: Context, devices: list[int], kernel_names: bytes) -> None:
    """Raises CL_INVALID_VALUE (5.8.1)."""
    # "CL_INVALID_VALUE if [...] kernel_names contains a kernel name that is not supported by any of the
    # devices in device_list": there are no built-in kernels.
    raise CLError(cl.CL_INVALID_VALUE, "kernel_names has no built-in kernel of any device: there are none")


@entrypoint("clSetProgramSpecializationConstant", Program)
def set_program_specialization_constant(program: Program, spec_id: int, value: bytes) -> None:
    """For the next clBuildProgram (5.8.3). Raises CLError with the call's error codes."""
    # "CL_INVALID_PROGRAM if program is not a valid program object created from an intermediate language (e.g.
    # SPIR-V)".
    require(program.il is not None, cl.CL_INVALID_PROGRAM, "the program was not made from IL")
    # "CL_INVALID_SPEC_ID if spec_id is not a valid specialization constant identifier."
    require(
        spec_id in program.spec_sizes,
        cl.CL_INVALID_SPEC_ID,
        f"spec_id is {spec_id}, the id of no specialization constant",
    )
    # "CL_INVALID_VALUE if spec_size does not match the size of the specialization constant in the module".
    size = program.spec_sizes[spec_id]
    require(
        len(value) == size, cl.CL_INVALID_VALUE, f"spec_size is {len(value)}, the constant has {size} bytes"
    )
    program.specialisation[spec_id] = value


@entrypoint("clUnloadCompiler")
def unload_compiler() -> None:
    """Ends idle compiler processes (5.8.7, clUnloadPlatformCompiler)."""
    # Only if something was built: otherwise there are no compiler processes to end.
    client = sys.modules.get(__name__.removesuffix("api.program") + "service.client")
    if client:
        client.unload()
