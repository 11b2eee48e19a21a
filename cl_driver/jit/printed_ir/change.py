"""All that is changed in a module between LLVM's passes on IR and its code generator."""

from __future__ import annotations

from ...device.target import Target
from . import byte_rotates, kept_order, long_blocks, register_order, wide_masks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def changed(text: str, printed: Callable[[], str], target: Target, passes: str) -> str | None:
    """A module as its code generator should get it; None for as it is.

    text: what it was before LLVM's passes, which are asked for as `passes` (emit.py); printed(): what it is
    now. That takes time, and so does to parse the result: both are done at most once.
    """
    is_long = len(text) >= long_blocks.LEAST_TEXT
    changes: list[Callable[[str], str | None]] = []
    if wide_masks.may_help(text, target):
        changes.append(lambda now: wide_masks.widen(now, target.vector_bits))
    if is_long and passes == "ordered":
        changes.append(lambda now: register_order.reorder(now, target))
    if byte_rotates.may_help(text, target):  # after the order, which moves nothing past a fence
        changes.append(byte_rotates.fence)
    if is_long and passes in ("short", "ordered"):
        changes.append(lambda now: kept_order.keep(now, target))
    if is_long:
        changes.append(long_blocks.cut)
    if not changes:
        return None
    original = now = printed()
    for change in changes:
        now = change(now) or now
    return None if now is original else now
