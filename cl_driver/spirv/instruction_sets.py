"""The names of extended instruction sets."""

from __future__ import annotations

OPENCL = "OpenCL.std"

# Never read from a module: OpenCL.std, of which printf tells of an assertion that failed (assertions.py).
ASSERTION = "cl_driver.assertion"

# How names begin of sets that may be left out without a change of meaning (SPV_KHR_non_semantic_info).
_NON_SEMANTIC = "NonSemantic."

# Debug information: these sets number their instructions alike.
DEBUG = ("OpenCL.DebugInfo.100", "DebugInfo", "SPIRV.debug", "NonSemantic.Shader.DebugInfo.100",
         "NonSemantic.Kernel.DebugInfo.100")  # fmt: skip


def is_non_semantic(name: str) -> bool:
    """Whether a set is non-semantic by its name. All literals of its instructions are ids of constants."""
    return name.startswith(_NON_SEMANTIC)


def may_be_left_out(name: str) -> bool:
    """Whether nothing that a kernel computes depends on the instructions of a set."""
    return is_non_semantic(name) or name in DEBUG
