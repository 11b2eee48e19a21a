"""What is known of how the values of a function differ between lanes; analysis/shape.py finds it out."""

from __future__ import annotations

from ...records import field, record
from ...spirv.module import Block, Instruction, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, TypeAlias

# By how much a lane's value is above that of the lane before (analysis/shape.py describes the lattice). A
# vector has one for all of its components, or one for each.
ScalarStride: TypeAlias = int | None
Stride: TypeAlias = ScalarStride | tuple[ScalarStride, ...]

UNIFORM: Final = 0
VARYING: Final = None


@record()
class ShapeInfo:
    """Shapes of all values of one function, and where control flow diverges."""

    strides: dict[Value, Stride] = field(default_factory=dict)
    private: set[Value] = field(default_factory=set)  # pointers into the lane's own memory
    divergent_branches: set[Block] = field(default_factory=set)  # their terminators' conditions differ
    divergent_joins: set[Block] = field(default_factory=set)
    influenced: set[Block] = field(default_factory=set)  # between a divergent branch and where its paths end
    divergent_loops: set[Block] = field(default_factory=set)  # headers
    assumes_small_ids: bool = False
    across: ShapeInfo | None = None  # the same between parts (vectorize/coarsening.py), if there are several
    # of what coarsening.py copied, if not part 0
    part_of: dict[Instruction, int] = field(default_factory=dict)

    def stride(self, value: Value) -> Stride:
        """0 uniform, s affine, None varying, a tuple of these for the components of a vector."""
        return self.strides.get(value, UNIFORM)

    def is_uniform(self, value: Value) -> bool:
        """True if a value is the same in all lanes of a part."""
        return self.strides.get(value, UNIFORM) == UNIFORM

    def is_common(self, value: Value) -> bool:
        """True if a value is the same in all lanes of all parts."""
        return self.is_uniform(value) and (self.across is None or self.across.is_uniform(value))

    def is_part_dependent(self, value: Value) -> bool:
        """True if a value may differ between parts."""
        return self.across is not None and (
            self.across.stride(value) != UNIFORM or value in self.across.private
        )

    def text(self, value: Value) -> str:
        """The value's stride for people."""
        stride = self.stride(value)
        return "varying" if stride is None else "uniform" if stride == 0 else f"stride {stride}"
