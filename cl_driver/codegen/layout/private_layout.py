"""Private memory laid out for lanes: element k of all lanes next to one another.

At widths above 1 each lane has a block of private memory of its own, so an access to the same place in each
is a gather. Variables of which nothing but elements of one size is ever accessed, by plain loads and stores
through addresses computed with access chains alone, are kept in pieces of that size instead, of which each is
W of them wide: an offset in the variable counts W times, and the next lane is a piece further.

Memory that lives across barriers has room for all work-items of the group. There a piece is as many wide as
these are, since vectors of a row may begin anywhere among them.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...passes.analysis.private_uses import PrivateUses
from ...passes.ir.ops import PassOp
from ...passes.ir.plan import KernelPlan, PrivateVariable, VectorFunction
from ...passes.ir.remarks import Remarks
from ...spirv.enums import Op
from ...spirv.module import Constant, Function, Instruction, Value, Variable


class PrivateLayout:
    """Which private memory lies so, of a kernel and the functions that its lanes call."""

    def __init__(self, functions: Mapping[Function, VectorFunction]) -> None:
        self._uses = PrivateUses(
            lambda function: (function, functions[function].parameters) if function in functions else None
        )

    def of_variables(self, function: Function, remarks: Remarks | None = None) -> dict[Value, int]:
        """Pointer: bytes of a piece, for variables of a function that can be laid out so and their
        addresses."""
        found: dict[Value, int] = {}
        for variable in (i for block in function.blocks for i in block.instructions if i.op is Op.Variable):
            if any(isinstance(o, (Constant, Variable)) for o in variable.operands):
                continue
            uses = self._uses.of(function, variable)
            piece, why = uses.piece
            if remarks is not None:
                remarks.fact("private", variable, piece, why)
            if piece:
                found |= dict.fromkeys(uses.pointers, piece)
        return found

    def of_parameter(self, function: Function, parameter: Instruction, piece: int) -> dict[Value, int]:
        """The same for a parameter that gets a pointer to memory of such pieces."""
        return dict.fromkeys(self._uses.of(function, parameter).pointers, piece)

    def spread(self, plan: KernelPlan) -> tuple[dict[Value, int], dict[PrivateVariable, int]]:
        """The same for private memory that lives across barriers: pointers, and variables, with pieces'
        sizes."""
        pieces: dict[PrivateVariable, set[int]] = {}
        pointers: dict[PrivateVariable, list[Value]] = {}
        for region in plan.regions:
            instructions = (i for block in region.function.blocks for i in block.instructions)
            for root in (i for i in instructions if i.op is PassOp.PrivatePointer):
                (variable,) = root.operands
                uses = self._uses.of(region.function, root)
                piece, _ = uses.piece
                strides = region.shapes.strides if region.shapes is not None else {}
                if region.once or any(strides.get(p, 0) not in (0, None) for p in uses.pointers):
                    piece = 0
                pieces.setdefault(variable, set()).add(piece)
                pointers.setdefault(variable, []).extend(uses.pointers)
        found = {v: min(sizes) for v, sizes in pieces.items() if len(sizes) == 1 and min(sizes)}
        return {p: piece for v, piece in found.items() for p in pointers[v]}, found
