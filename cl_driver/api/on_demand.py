"""What builds have left to be compiled when it is asked for: kernels, and what no kernel reaches."""

from __future__ import annotations

from ..jit.errors import CompileError
from ..jit.executable import ExecutableError
from .entrypoint import Lock
from .errors import CLError
from .generated import enums as cl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..jit.executable import Executable, KernelInfo
    from .program import DeviceBuild

# Of what is added to executables: two threads may create kernels of one program.
_adding = Lock()


def compiled(
    options: str, il: bytes, names: dict[str, int], others: dict[str, int] | None = None, before: int = 0
) -> dict[str, tuple[KernelInfo, list[bytes]]]:
    """client.kernels(). CL_OUT_OF_RESOURCES, and why, if one cannot be compiled."""
    try:
        from ..service import client

        return client.kernels(options, il, names, others, before)
    except (CompileError, ExecutableError) as error:
        raise CLError(cl.CL_OUT_OF_RESOURCES, str(error).rstrip("\n")) from error
    except (ImportError, OSError) as error:  # another root folder, say, or no descriptors
        why = f"a kernel cannot be compiled: the driver's files cannot be read any more ({error})"
        raise CLError(cl.CL_OUT_OF_RESOURCES, why) from error


def compile_kernels(executable: Executable, names: Iterable[str], builds: Iterable[DeviceBuild]) -> None:
    """Adds kernels to an executable where they are not there yet. builds: those whose log gets to know if
    one cannot be compiled, which is CL_OUT_OF_RESOURCES."""
    missing, before = executable.missing(), len(executable.kernels)
    wanted = {name: missing[name] for name in names if name in missing}
    if not wanted:
        return
    try:
        made = compiled(executable.options, executable.il, wanted, missing, before)
    except CLError as error:
        for build in builds:
            build.log += f"{error.why}\n"
        raise
    with _adding:
        missing = executable.missing()
        for name, (info, objects) in made.items():
            if name in missing:
                executable.add(info, objects)


def complete(build: DeviceBuild) -> None:
    """Makes a compiled object all of its program. CL_OUT_OF_RESOURCES if that fails."""
    if build.cut is None:
        return
    from ..service import client

    spirv, log = client.complete(build.cut)
    if spirv is None:
        build.log += log
        raise CLError(cl.CL_OUT_OF_RESOURCES, log.rstrip("\n"))
    build.spirv, build.cut = spirv, None
