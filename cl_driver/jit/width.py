"""How many work-items per vector a kernel gets when the setting leaves it to the driver."""

from __future__ import annotations

from cl_driver.codegen.library_names import LIBRARY_INSTRUCTIONS
from cl_driver.jit.target import Target
from cl_driver.spirv.enums import Op
from cl_driver.spirv.module import Function, Kind, Type

# Bytes of registers that one value of all lanes may take: with more, code grows and spills.
_VALUE_BYTES = 512

_BARRIERS = (Op.ControlBarrier,)


def choose(functions: list[Function], required_local_size, target: Target) -> int:
    """functions: the kernel and what it calls. 1 where LLVM's own vectoriser does better.

    A kernel without loops, barriers and calls is the body of one innermost loop over work-items: LLVM
    vectorises that, in more rows at a time than codegen/ does yet.
    """
    lanes = target.vector_bits // 32
    if not any(_defeats_llvm(function) for function in functions):
        return 1
    if 0 < required_local_size[0] < lanes:
        return 1
    widest = max((_bits(i.type) for f in functions for b in f.blocks for i in b.instructions), default=0)
    while lanes > 1 and lanes * widest > 8 * _VALUE_BYTES:
        lanes //= 2
    return lanes


def _bits(type_: Type | None) -> int:
    if type_ is None:
        return 0
    if type_.kind is Kind.VECTOR:
        return type_.count * type_.element.width
    return type_.width if type_.kind in (Kind.INT, Kind.FLOAT) else 0


def _defeats_llvm(function: Function) -> bool:
    """Whether a function has a loop, a barrier, or a call that is no instruction."""
    if not function.blocks or _has_loop(function):
        return True
    for block in function.blocks:
        for i in block.instructions:
            if i.op in _BARRIERS or (i.op is Op.ExtInst and i.operands[1] in LIBRARY_INSTRUCTIONS):
                return True
    return False


def _has_loop(function: Function) -> bool:
    """Whether the control flow has a cycle."""
    done, active = set(), set()
    stack = [(function.blocks[0], iter(function.blocks[0].successors()))]
    active.add(function.blocks[0])
    while stack:
        block, successors = stack[-1]
        following = next(successors, None)
        if following is None:
            active.discard(block)
            done.add(block)
            stack.pop()
        elif following in active:
            return True
        elif following not in done:
            active.add(following)
            stack.append((following, iter(following.successors())))
    return False
