"""What the shape analysis knows of a value (see shape.py): strides, ranges, and those of built-in inputs."""

from __future__ import annotations

from collections.abc import Mapping

from ...fast_typing import Enum
from ...records import record
from ...spirv.enums import BuiltIn
from ..ir.ops import PassBuiltIn
from ..ir.plan import PlanOptions
from ..ir.shapes import UNIFORM, VARYING, Stride

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, TypeAlias


class Unknown(Enum):
    """The top of the lattice."""

    NOT_COMPUTED_YET = "?"


UNKNOWN: Final = Unknown.NOT_COMPUTED_YET

Found: TypeAlias = Stride | Unknown
Strides: TypeAlias = Mapping[BuiltIn, Stride]

# No id or size of a dimension is above this when PlanOptions.small_ids holds: `4 * i + 3` is an int then.
SMALL_ID = (1 << 29) - 1

SMALL_LOCAL_ID = 1 << 16  # groups have fewer work-items

ID_STRIDES: Strides = {
    BuiltIn.GlobalInvocationId: (1, 0, 0),
    BuiltIn.LocalInvocationId: (1, 0, 0),
    BuiltIn.LocalInvocationIndex: 1,
    BuiltIn.GlobalLinearId: 1,
    BuiltIn.SubgroupLocalInvocationId: 1,
    PassBuiltIn.Lane: 1,
}
LINEAR_STRIDES: Strides = {
    BuiltIn.GlobalInvocationId: VARYING,
    BuiltIn.LocalInvocationId: VARYING,
    BuiltIn.LocalInvocationIndex: 1,
    BuiltIn.GlobalLinearId: VARYING,
    BuiltIn.SubgroupLocalInvocationId: 1,
    PassBuiltIn.Lane: 1,
}


def aligned_ids(options: PlanOptions) -> frozenset[tuple[BuiltIn, int]]:
    """Ids, and their components, that are multiples of the width in the first lane of each vector, by which
    lanes differ."""
    if options.linear_lanes:
        return frozenset({(BuiltIn.LocalInvocationIndex, 0)})
    along_rows = {(BuiltIn.LocalInvocationId, 0)}
    if options.group:
        along_rows.add((BuiltIn.LocalInvocationIndex, 0))
    if options.aligned_groups:
        along_rows.add((BuiltIn.GlobalInvocationId, 0))
    return frozenset(along_rows)


def part_strides(width: int, axis: int, linear_lanes: bool) -> Strides:
    """What ids differ by from one part to the next: in the next `width` work-items, or in the next row."""
    if linear_lanes:
        return {**LINEAR_STRIDES, BuiltIn.LocalInvocationIndex: width}
    along = tuple((width if k == 0 else 1) if k == axis else 0 for k in range(3))
    linear = width if axis == 0 else VARYING
    return {
        BuiltIn.GlobalInvocationId: along,
        BuiltIn.LocalInvocationId: along,
        BuiltIn.LocalInvocationIndex: linear,
        BuiltIn.GlobalLinearId: linear,
    }


def group_part_strides(width: int, group: tuple[int, ...]) -> Strides:
    """The same where the parts are all vectors of groups of that size, in the order of linear local ids."""
    x, y, z = group
    steps = (width if y == z == 1 else UNIFORM if x == width else VARYING,
             UNIFORM if y == 1 else 1 if x == width and z == 1 else VARYING,
             UNIFORM if z == 1 else VARYING)  # fmt: skip
    return {
        BuiltIn.GlobalInvocationId: steps,
        BuiltIn.LocalInvocationId: steps,
        BuiltIn.LocalInvocationIndex: width,
        BuiltIn.GlobalLinearId: width if y == z == 1 else VARYING,
    }


# Between all work-items of a group instead of neighbours: what differs, and what is the same.
GROUP_STRIDES: Strides = {
    BuiltIn.GlobalInvocationId: VARYING,
    BuiltIn.LocalInvocationId: VARYING,
    BuiltIn.LocalInvocationIndex: VARYING,
    BuiltIn.GlobalLinearId: VARYING,
    BuiltIn.SubgroupLocalInvocationId: VARYING,
    BuiltIn.SubgroupId: VARYING,
    BuiltIn.SubgroupSize: VARYING,
}
# Inputs whose every component is an id or a size, so small_ids bounds it.
SMALL_INPUTS = frozenset((
    BuiltIn.GlobalInvocationId, BuiltIn.LocalInvocationId, BuiltIn.LocalInvocationIndex, BuiltIn.WorkgroupId,
    BuiltIn.WorkgroupSize, BuiltIn.EnqueuedWorkgroupSize, BuiltIn.GlobalSize, BuiltIn.NumWorkgroups,
    BuiltIn.GlobalOffset, BuiltIn.WorkDim, PassBuiltIn.GroupOrigin,
))  # fmt: skip
LOCAL_INPUTS = frozenset((BuiltIn.LocalInvocationId, BuiltIn.LocalInvocationIndex))
LARGEST_LANE = 63


@record(frozen=True, slots=True)
class Range:
    """What is known of an integer in all lanes: bounds as a signed number, trailing zero bits.

    exact: lane l's signed value is lane 0's plus stride·l without wrapping around.
    assumed: so if ids and sizes are small.
    span: a power of two, if not 0: lanes differ in the bits below it alone, which are 0 in lane 0.
    """

    low: int
    high: int
    zeros: int = 0
    exact: bool = True
    assumed: bool = False
    span: int = 0
