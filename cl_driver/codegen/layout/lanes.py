"""How the lanes of values are held: what lowerings may ask of an emitter at a width above 1.

simd/operands.py and simd/emitter.py do it. Rooms between add what they need to remember of a kernel:
lockstep/lane_constants.py, access/emitter.py, atomic/emitter.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...passes.ir.plan import KernelPlan, Slot, VectorFunction
from ...passes.ir.shapes import ShapeInfo
from ...spirv.module import Block, Function, Instruction, Type, Value, Variable
from ..llvm.emitter import ModuleText
from ..llvm.forms import form
from ..llvm.registry import Lowering
from ..llvm.types import Lines
from .abi_fields import AbiFields

HARMLESS_BYTES = 128  # of the stack, which lanes outside of a mask get at


class LaneEmitter(AbiFields):
    """What is held of `width` work-items at a time.

    shapes: of the function at hand, if it has lanes (has_lanes): those that run once per group have none.
    leaves_of: leaves of varying values and of others where needed. private_stride: bytes between the private
    memory of two lanes. lane: the one that is lowered by itself, if any is: its number, or an i32.
    """

    private_stride = 0
    shapes: ShapeInfo
    function: Function  # of the region that is lowered

    def __init__(self, module: ModuleText, plan: KernelPlan, width: int) -> None:
        self.width = width
        self.form = form(width)
        self.leaves_of: dict[Value, list[str]] = {}
        self.has_lanes = False
        self.lane: int | str | None = None
        self.part = 0  # of the work-items, whose instructions are being lowered
        self.late: dict[Value, Lines] = {}  # where what is made of a value can be put
        self.beside_phis: dict[
            Value, Lines
        ] = {}  # of a varying phi: where other phis of its block can be put
        # library/shared_code.py: lines of what is written out; a function and the blocks of its inner loops.
        self.written_out = 0
        self.inner_blocks: tuple[Function, set[Block]] | None = None
        super().__init__(module, plan)

    # Shapes.

    def is_varying(self, value: Value) -> bool:
        """True for values held as leaves."""
        raise NotImplementedError

    def stride(self, value: Value) -> int:
        """From one lane to the next, of a scalar that is not varying; in bytes for pointers."""
        raise NotImplementedError

    def piece(self, pointer: Value) -> int:
        """Bytes of a piece of private memory of which those of all lanes lie together, 0 for other memory."""
        raise NotImplementedError

    def stride_is_mixed(self, value: Value) -> bool:
        """True for single values that are not the same in all lanes."""
        raise NotImplementedError

    def is_used(self, value: Value) -> bool:
        """True if any instruction of the region has the value for an operand or a mask."""
        raise NotImplementedError

    # Operands.

    def leaves(self, value: Value) -> list[str]:
        """The `<W x T>` operands of a value; made of a single one where that is defined."""
        raise NotImplementedError

    def leaf(self, value: Value) -> str:
        """The only leaf of a scalar."""
        raise NotImplementedError

    def define_leaves(self, value: Value, leaves: list[str]) -> None:
        """Binds a varying value."""
        self.leaves_of[value] = leaves

    def lanes_from(self, t: str, first: str, stride: int) -> str:
        """All lanes of a scalar from that of lane 0."""
        raise NotImplementedError

    def first_active(self, t: str, leaf: str, mask: str | None) -> str:
        """The value in the first lane of a mask; in lane 0 if there is none."""
        raise NotImplementedError

    def assemble(self, type_: Type, scalars: Iterator[str]) -> str:
        """A single value of a type from an iterator over its leaves in order."""
        raise NotImplementedError

    def explode(self, type_: Type, operand: str) -> list[str]:
        """The leaves, scalars, of a single value."""
        raise NotImplementedError

    def harmless_memory(self, name: str) -> str:
        """128 bytes of the stack for lanes outside of a mask: "spare" holds zeros, "dump" is written to,
        "counter" is written to and read."""
        raise NotImplementedError

    def id_leaves(self, type_: Type, variable: Variable, index: int | None) -> list[str]:
        """The leaves of an id that varies between lanes, or of one component, in the width of its type."""
        raise NotImplementedError

    def slot_leaf_address(self, slot: Slot, leaf: int, item: Value | None) -> str:
        """Where leaf number `leaf` of a slot is, for lane 0 or a work-item given by its linear local id."""
        raise NotImplementedError

    # Masks.

    def mask_of(self, instruction: Instruction) -> str | None:
        """The `<W x i1>` of the lanes in which an instruction takes effect; None: in all."""
        raise NotImplementedError

    def any_lane(self, mask: str) -> str:
        """i1: whether any lane of a mask is set."""
        raise NotImplementedError

    def entry_mask(self) -> str:
        """`<W x i1>`: the lanes that hold a work-item."""
        raise NotImplementedError

    # Calls.

    def vector_symbol(self, version: VectorFunction, pieces: tuple[int, ...], is_masked: bool) -> str:
        """The symbol of a function for all lanes, or for those of a mask. pieces: as piece() has it, of each
        argument."""
        raise NotImplementedError

    # Instructions.

    def select_part(self, part: int) -> None:
        """What follows is lowered for this part of the work-items."""
        raise NotImplementedError

    def emit_in_order(self, instructions: Sequence[Instruction]) -> None:
        """Lowers instructions one by one."""
        raise NotImplementedError

    def lane_by_lane(self, instruction: Instruction, lowering: Lowering) -> None:
        """Lowers an instruction once per lane, where it has a mask only in lanes of the mask."""
        raise NotImplementedError
