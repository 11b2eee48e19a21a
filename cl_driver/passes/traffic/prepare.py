"""From an entry point to its account."""

from __future__ import annotations

from ...spirv.module import EntryPoint, Module
from ..ir.plan import PlanError
from ..lower.inline import inline
from ..lower.mul24 import multiply_plainly
from ..lower.vloadn import load_vectors
from ..scalar.reducible import make_reducible
from ..scalar.simplify import simplify
from ..scalar.sroa import promote
from .account import account


def account_of(module: Module, entry_point: EntryPoint) -> list[int]:
    """The account of a kernel (account.py); [] if nothing is known. The module is not changed."""
    types = module.types
    try:
        function = inline(module, entry_point.function, {})
    except PlanError:
        return []
    load_vectors(function, types)
    multiply_plainly(function)
    simplify(function, types)
    promote(function, types)
    simplify(function, types)
    make_reducible(function, types)
    return account(function)
