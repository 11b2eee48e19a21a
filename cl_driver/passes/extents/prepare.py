"""From an entry point to its extents."""

from __future__ import annotations

from ...spirv.module import EntryPoint, Module
from ..ir.library import Library
from ..ir.plan import PlanError
from ..lower.expand_builtins import expand_builtins
from ..lower.inline import inline
from ..lower.mul24 import multiply_plainly
from ..lower.vloadn import load_vectors
from ..scalar.exchange_loops import replace_exchanges
from ..scalar.reducible import make_reducible
from ..scalar.simplify import simplify
from ..scalar.sroa import promote
from .extents import Refusal, extents


def extents_of(module: Module, entry_point: EntryPoint, library: Library) -> list[int]:
    """The extents of a kernel (extents.py). Refusal. The module is not changed."""
    types = module.types
    try:
        function = inline(module, entry_point.function, {})
    except PlanError as error:
        raise Refusal(str(error)) from error
    if expand_builtins(function, types, library):
        function = inline(module, function)
    load_vectors(function, types)
    multiply_plainly(function)
    simplify(function, types)
    promote(function, types)
    simplify(function, types)
    if replace_exchanges(function, types):
        simplify(function, types)
    make_reducible(function, types)
    return extents(function)
