"""What is long and done for each lane, as functions of the module that all places call which do the same.

Written out, there is a copy for each lane. A little of that is faster than calls, as nothing that lives
meanwhile goes to memory. Kernels with much of it, unrolled loops over rows or bytes say, are
megabytes of LLVM IR then, for which LLVM takes long, and code that no cache for instructions holds.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from ...passes.ir.dominance import LoopNest, dominators
from ...passes.ir.instructions import predecessors
from ...spirv.module import Block
from ..layout.lanes import LaneEmitter
from ..llvm.types import flat

# Lines of such code up to which a kernel has more written out: about what a cache for instructions holds, in
# loops without others inside, and half of it elsewhere.
MOST_LINES = 4000


def is_written_out(e: LaneEmitter, lines: int) -> bool:
    """Whether so many lines more are no function, but written where they are needed: e.written_out says how
    many these are. Code for groups in lockstep, of which there is no more than can be unrolled, always is."""
    if e.group or e.written_out + lines <= MOST_LINES // 2:
        return True
    return e.written_out + lines <= MOST_LINES and e.current in _inner_blocks(e)


def _inner_blocks(e: LaneEmitter) -> set[Block]:
    """The blocks of a region's loops that have no loops inside."""
    if e.inner_blocks is None or e.inner_blocks[0] is not e.function:
        before = predecessors(e.function)
        nest = LoopNest(e.function, dominators(e.function, before), before)
        inner = {block for loop in nest.loops if not loop.children for block in loop.blocks}
        e.inner_blocks = e.function, inner
    return e.inner_blocks[1]


def shared(
    e: LaneEmitter,
    key: Hashable,
    parameters: Sequence[tuple[str, str]],
    results: Sequence[str],
    build: Callable[[list[str]], list[str]],
) -> list[str]:
    """A call of a function that does what build() emits, given the names of operands.

    key: tells apart what build() emits besides its operands. parameters: types and operands; results: types.
    build() may ask for nothing that belongs to the kernel: no operand of a Value, no metadata.
    """
    types = tuple(t for t, _ in parameters)
    symbol = e.module.shared_function((key, types), lambda symbol: _define(e, symbol, types, results, build))
    arguments = ", ".join(f"{t} {operand}" for t, operand in parameters)
    if not results:
        e.emit_void(f"call void {symbol}({arguments})")
        return []
    given = e.emit(f"call {_result_type(results)} {symbol}({arguments})")
    if len(results) == 1:
        return [given]
    return [e.emit(f"extractvalue {_result_type(results)} {given}, {k}") for k in range(len(results))]


def _result_type(results: Sequence[str]) -> str:
    if not results:
        return "void"
    return results[0] if len(results) == 1 else f"{{ {', '.join(results)} }}"


def _define(
    e: LaneEmitter,
    symbol: str,
    types: Sequence[str],
    results: Sequence[str],
    build: Callable[[list[str]], list[str]],
) -> str:
    """The text of a function, emitted by the emitter of the kernel, whose own text is put aside."""
    outer = e.lines, e.label, e.prologue, e.head, e.allocas
    e.lines, e.label, e.prologue, e.allocas = [], "entry", [], []
    e.head = e.prologue
    names = [e.name("x") for _ in types]
    found = build(names)
    whole, result = "", _result_type(results)
    if len(results) == 1:
        whole = found[0]
    elif results:
        whole = "poison"
        for k, (t, value) in enumerate(zip(results, found, strict=True)):
            whole = e.emit(f"insertvalue {result} {whole}, {t} {value}, {k}")
    e.emit_void(f"ret {result} {whole}" if results else "ret void")
    parameters = ", ".join(f"{t} {name}" for t, name in zip(types, names, strict=True))
    text = [*e.allocas, *flat(e.prologue), *flat(e.lines)]
    e.lines, e.label, e.prologue, e.head, e.allocas = outer
    return "\n".join([f"define internal {result} {symbol}({parameters}) #2 {{", "entry:", *text, "}"])
