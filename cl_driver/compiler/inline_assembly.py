"""Whether a program's inline assembly (SPV_INTEL_inline_assembly) is for this device, and may run.

What it says is read by LLVM (jit/apart.py). "See the client API specification for more detail", says the
extension of the target's name and of constraints, and OpenCL's has none: they are taken as compilers write
them, a target triple and LLVM's constraints.
"""

from __future__ import annotations

from ..device import capabilities
from ..spirv.enums import Capability, Op
from ..spirv.errors import SpirvError
from ..spirv.module import Module
from ..spirv.reflect import called

# Names of architectures in triples.
_NAMES = {"x86_64": ("x86_64", "amd64"), "aarch64": ("aarch64", "arm64")}


def refuse(module: Module) -> None:
    """SpirvError for a module with assembly where programs may have none."""
    if Capability.AsmINTEL in module.capabilities and not capabilities.may_have_inline_assembly():
        raise SpirvError(
            0, "OpCapability", "AsmINTEL: inline assembly is refused (CL_DRIVER_INLINE_ASSEMBLY is 0, or the "
            "program has more rights than its user)",
        )  # fmt: skip


def check_targets(module: Module, architecture: str) -> None:
    """SpirvError for a valid module whose kernels have assembly for something else."""
    if Capability.AsmINTEL not in module.capabilities:
        return
    for function in {id(f): f for entry in module.entry_points for f in called(entry.function)}.values():
        for block in function.blocks:
            for i in block.instructions:
                if i.op is Op.AsmCallINTEL and not is_for(i.operands[0].target, architecture):
                    raise SpirvError(
                        i.offset,
                        "OpAsmCallINTEL",
                        f"assembly for {i.operands[0].target!r}; this device is of {architecture}",
                    )


def is_for(target: str, architecture: str) -> bool:
    """Whether a target's name is for an architecture. SPIR-V's triples, which compilers write where they know
    no more, are for all, but for those that name a device, as in spir64_x86_64."""
    name = target.strip().lower().partition("-")[0]
    if name.startswith("spir"):
        name = name.partition("_")[2]
    return not name or name in _NAMES[architecture]
