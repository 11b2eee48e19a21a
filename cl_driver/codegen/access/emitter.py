"""What an emitter remembers of how lanes reach memory."""

from __future__ import annotations

from ...fast_typing import NamedTuple, Protocol
from ...passes.cost.cpu_models import CpuModel, find_model
from ...passes.ir.plan import KernelPlan
from ...spirv.module import Instruction, Value, Variable
from ..llvm.emitter import ModuleText
from ..llvm.options import CodegenOptions
from ..lockstep.lane_constants import LockstepEmitter
from .nontemporal import NontemporalStores
from .runtime_contiguity import Contiguity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .interleaved_access import InterleavedAccess
    from .load_transpose import CountedLoops
    from .lut_permute import LookUp
    from .store_merging import MergedStores


class Inside(Protocol):
    """What is known of instructions in a version of a block."""

    def define(self, e: AccessEmitter, i: Instruction) -> bool:
        """Lowers an instruction of which something is known. False for all others."""


class MaskedStore(NamedTuple):
    """A store of the first `used` of every `stride` elements of type t, for each lane of a mask.

    is_global: to memory of which there may be no page where no lane stores. made_of: the instruction.
    """

    t: str
    size: int  # bytes of an element
    data: str
    address: str
    stride: int
    used: int
    alignment: int
    metadata: str
    is_global: bool = False
    made_of: Instruction | None = None


class AccessEmitter(LockstepEmitter):
    """An emitter of lanes with what this room keeps in it.

    cpu: by whose model ways are chosen. ways: those for accesses that look alike, by price (ways.py,
    gather_scatter.py). contiguity: what is guessed and asked of varying addresses, per emission of a
    function. nontemporal: what may be stored past the caches, None where no CPU does so.
    """

    def __init__(self, module: ModuleText, plan: KernelPlan, width: int) -> None:
        super().__init__(module, plan, width)
        self.cpu = _cpu(module.options)
        self.ways: dict[Any, Any] = {}
        self.contiguity = Contiguity(self)
        self.nontemporal = None if module.options.aarch64 else NontemporalStores(plan)
        # Of the region, once somebody asked (load_transpose.py).
        self.counted_loops: CountedLoops | None = None
        # lut_permute.py: small constant arrays in registers, by the array and the elements of a register.
        self.table_registers: dict[tuple[Variable, int], list[str]] = {}
        # Look-ups that wait for others, with the places as they are given; whether any may.
        self.look_ups: list[tuple[Instruction, LookUp, str]] = []
        self.has_waiting_look_ups = False
        # packed_vectors.py: values of the region that it holds; those that are the same in all lanes,
        # repeated; components of a packed value, by the label of the block where they were taken.
        self.packed: frozenset[Instruction] = frozenset()
        self.tiled: dict[tuple[Value, int], str] = {}
        self.apart: dict[tuple[Value, str], list[str]] = {}
        # Of the block: accesses that are made together with others.
        self.interleaved: dict[Instruction, InterleavedAccess] = {}
        self.merged_stores: dict[Instruction, MergedStores] = {}
        # block_versioning.py: loads, and where all lanes' values are if neighbours, or None.
        self.places: dict[Instruction, str | None] = {}
        # masked_access.py: stores that wait for others, by their masks, with the parts that they belong to;
        # instructions since the first; whether few masks are full, in what is left of a row.
        self.waiting: dict[str, tuple[set[int], list[MaskedStore]]] = {}
        # ../footprints/versions.py: what is known in one of its versions.
        self.inside: Inside | None = None
        self.waited = 0
        self.in_rest = False
        self.spare_vectors: dict[int, str] = {}  # zeros on the stack, by their size in bytes


def _cpu(options: CodegenOptions) -> CpuModel:
    """The CPU that code is for, as far as the options tell."""
    features = options.features
    bits = 512 if "avx512f" in features else options.vector_bits
    return find_model(features, bits, options.aarch64, options.slow_masked_stores, options.far_ahead)
