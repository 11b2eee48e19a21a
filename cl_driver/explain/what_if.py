"""What a kernel would cost if some of its instructions cost something else: what advice is weighed by.

The plan stays as it is, and the model of costs (passes/cost) adds it up again, with the cache lines that the
accesses would then touch. So a change of the source is worth what it does to the busiest resource, to the
longest chain and to memory, not the sum of what its instructions take.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from types import MappingProxyType
from typing import NamedTuple

from ..passes.cost.cpu_models import Cost, CpuModel
from ..passes.cost.estimate import Estimate, estimate
from ..passes.cost.launch import Launch
from ..passes.cost.operations import CONTIGUOUS, UNIFORM, Operations, size_in_memory
from ..passes.ir.plan import KernelPlan
from ..passes.ir.shapes import ShapeInfo
from ..spirv.enums import Op
from ..spirv.module import Function, Instruction


class Change(NamedTuple):
    """factors: of what instructions take, and of how long they take; together: accesses whose lanes reach
    places that follow one another; ready: instructions whose results are there at once."""

    factors: Mapping[Instruction, float] = MappingProxyType({})
    together: Container[Instruction] = frozenset()
    ready: Container[Instruction] = frozenset()


def estimate_with(plan: KernelPlan, model: CpuModel, launch: Launch, change: Change) -> Estimate:
    """What the plan costs with a change."""

    def operations(
        model: CpuModel, shapes: ShapeInfo, width: int, calls: Callable[[Function], float] | None
    ) -> Operations:
        return _Changed(change, model, shapes, width, calls)

    return estimate(plan, model, launch, operations)


class _Changed(Operations):
    def __init__(
        self,
        change: Change,
        model: CpuModel,
        shapes: ShapeInfo,
        width: int,
        calls: Callable[[Function], float] | None,
    ) -> None:
        super().__init__(model, shapes, width, calls)
        self.change = change

    def cost(self, i: Instruction) -> Cost:
        return self._changed(i, super().cost(i))

    def how_reached(self, i: Instruction, ask: Callable[[Instruction], int | None]) -> tuple[str, int | None]:
        kind, stride = super().how_reached(i, ask)
        if i in self.change.together and kind != UNIFORM:
            return CONTIGUOUS, size_in_memory(i)
        return kind, stride

    def access(self, i: Instruction, kind: str, lane_stride: int | None, mixed: float) -> Cost:
        return self._changed(i, super().access(i, kind, lane_stride, mixed))

    def atomic(self, i: Instruction, is_local: bool, kind: str) -> Cost:
        return self._changed(i, super().atomic(i, is_local, kind))

    def _changed(self, i: Instruction, cost: Cost) -> Cost:
        factor = self.change.factors.get(i, 1.0)
        is_ready = i in self.change.ready
        if factor == 1.0 and not is_ready:
            return cost
        latency = 0.0 if is_ready else cost.latency * (1.0 if i.op is Op.Load else factor)
        return Cost([slots * factor for slots in cost.slots], latency, cost.temporaries).finish()
