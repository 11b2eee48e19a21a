"""What an emitter remembers of the atomics of a kernel."""

from __future__ import annotations

from ...passes.ir.plan import KernelPlan
from ..access.emitter import AccessEmitter
from ..llvm.emitter import ModuleText
from .atomic_reduction import AtomicReductions
from .privatised_histogram import PrivatisedHistogram


class AtomicEmitter(AccessEmitter):
    """An emitter of lanes with what this room keeps in it: all that lowerings of wide code may ask for.

    reductions: atomics that are gathered in registers; histogram: the argument that threads have copies of.
    """

    def __init__(self, module: ModuleText, plan: KernelPlan, width: int) -> None:
        super().__init__(module, plan, width)
        self.reductions = AtomicReductions(plan)
        self.histogram = PrivatisedHistogram(plan)
