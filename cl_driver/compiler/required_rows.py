"""Kernels that require groups whose rows are shorter than a vector."""

from __future__ import annotations

import math

from ..passes.cost import width
from ..spirv import reflect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .pipeline import Prepared


def requires_short_rows(program: Prepared, name: str) -> bool:
    """Whether a kernel requires groups whose rows leave lanes idle, or fill narrower vectors only, and which
    have enough work-items for a vector."""
    required, target = program.reflections[name].required_local_size, program.context.target
    if program.uses_sub_groups(name) or program.is_unoptimised(name) or program.is_too_large(name, True):
        return False
    lanes = lanes_of_any_size(program, name)
    return lanes > 1 and 0 < required[0] < target.vector_bits // 32 and math.prod(required) >= lanes


def lanes_of_any_size(program: Prepared, name: str) -> int:
    """How many lanes a kernel would get, did it require no local size."""
    functions = reflect.called(program.entry_points[name].function)
    return width.choose(functions, (0, 0, 0), program.context.target)
