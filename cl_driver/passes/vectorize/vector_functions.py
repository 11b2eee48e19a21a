"""Functions that stay calls where kernels have lanes, so that code grows with its source: vector functions.

A version of a function is made for the shapes of its arguments. It is linearised as a region is, with the
mask of the call for its entry mask: `PassOp.EntryMask` gives what the caller passes, all lanes where it
passes no mask. It has one exit, and is only called where a lane is in the mask. What a call returns is the
same in all lanes, or varies: whatever else is known of it does not outlive the call.

The shape analysis of a caller asks what calls return (KeptCalls). Versions are made when the caller is
finished and its shapes are known, callees before it, at most MOST_VERSIONS of a function: further calls get
the one in which all arguments vary.
"""

from __future__ import annotations

from ...records import record, replace
from ...spirv.enums import Op
from ...spirv.module import Block, Function, Instruction, Kind, Module, Value
from ..analysis.shape import analyse_shapes
from ..ir.instructions import append, instruction_count, remove_unreachable_blocks, substitute
from ..ir.lcssa import close_loops
from ..ir.ops import REGION_END, PassOp
from ..ir.plan import ArgumentShapes, PlanError, PlanOptions, VectorFunction
from ..ir.shapes import UNIFORM, VARYING, ShapeInfo, Stride
from ..lower.inline import inline
from ..scalar.reducible import make_reducible
from .linearise import linearise, merge_latches, open_endless_loops

MOST_VERSIONS = 6  # of a function
MOST_INSTRUCTIONS = 200_000  # of all versions

_ENDS = (Op.Return, Op.ReturnValue, Op.Unreachable, Op.Kill)


@record(eq=False)
class _Body:
    """A copy of a function with instructions for its parameters and one exit."""

    function: Function
    parameters: list[Instruction]
    result: Instruction | None


class VectorFunctions:
    """What a kernel goes on calling; PlanOptions.calls. made: versions, by their own functions."""

    def __init__(self, module: Module, options: PlanOptions) -> None:
        self.module = module
        self.options = replace(options, calls=self)
        self.parameters: dict[Instruction, tuple[Stride, bool]] = {}
        self.made: dict[Function, VectorFunction] = {}
        self._bodies: dict[Function, _Body] = {}  # for the analysis, which changes nothing
        self._versions: dict[Function, dict[ArgumentShapes, VectorFunction]] = {}
        self._results: dict[tuple[Function, ArgumentShapes], Stride] = {}
        self._size = 0  # of all versions

    def add(self, function: Function) -> None:
        """A function that is to be called from now on, simplified and with calls of such functions alone."""
        body = self._copy(function)
        make_reducible(body.function, self.module.types)
        merge_latches(body.function)
        open_endless_loops(body.function, self.module.types)
        close_loops(body.function, self.module.types)
        self._bodies[function], self._versions[function] = body, {}

    def keeps(self, function: Function) -> bool:
        """Whether calls of a function stay calls."""
        return function in self._bodies

    def result_of(self, function: Function, shapes: ArgumentShapes) -> Stride:
        """How what such a call returns differs between lanes."""
        if (function, shapes) not in self._results:
            body = self._bodies[function]
            self.parameters.update(zip(body.parameters, shapes, strict=True))
            found = analyse_shapes(body.function, self.options)
            self._results[function, shapes] = _stride_of(body.result, found)
        return self._results[function, shapes]

    def bind(self, function: Function, shapes: ShapeInfo) -> None:
        """Lets the calls of a finished function be of versions for the shapes of their arguments."""
        for call in (i for block in function.blocks for i in block.instructions if i.op is Op.FunctionCall):
            callee, *arguments = call.operands
            if callee in self._bodies:
                wanted = tuple((shapes.stride(a), a in shapes.private) for a in arguments)
                call.operands = [self._version(callee, wanted).function, *arguments]

    def _version(self, function: Function, shapes: ArgumentShapes) -> VectorFunction:
        versions = self._versions[function]
        if shapes not in versions and len(versions) >= MOST_VERSIONS:
            shapes = tuple((VARYING, is_private) for _, is_private in shapes)
        if shapes not in versions:
            versions[shapes] = self._make(function, shapes)
        return versions[shapes]

    def _make(self, function: Function, shapes: ArgumentShapes) -> VectorFunction:
        body = self._copy(function)
        self.parameters.update(zip(body.parameters, shapes, strict=True))
        found = linearise(body.function, self.module.types, self.options)
        ends = [b for b in body.function.blocks if b.terminator.op in (PassOp.RegionExit, Op.Unreachable)]
        if len(ends) != 1 or (body.result is not None and body.result not in ends[0].instructions):
            raise PlanError(f"function {function.name} has no one end")
        self._size += instruction_count(body.function)
        if self._size > MOST_INSTRUCTIONS:
            raise PlanError(f"more than {MOST_INSTRUCTIONS} instructions of functions that lanes call")
        self.bind(body.function, found)
        version = VectorFunction(function.name, body.function, found, body.parameters, body.result)
        self.made[body.function] = version
        return version

    def _copy(self, function: Function) -> _Body:
        copy = inline(self.module, function, {kept: kept for kept in (*self._bodies, function)})
        entry = copy.blocks[0]
        parameters = [
            Instruction(PassOp.Parameter, argument.type, [number], entry, argument.name)
            for number, argument in enumerate(copy.arguments)
        ]
        substitute(copy, dict(zip(copy.arguments, parameters, strict=True)))
        entry.instructions[:0] = parameters
        copy.arguments = []
        result = self._end_once(copy)
        remove_unreachable_blocks(copy)
        return _Body(copy, parameters, result)

    def _end_once(self, function: Function) -> Instruction | None:
        """All ways lead to one exit. What is undefined comes there, too, with any result."""
        types, type_ = self.module.types, function.type.element
        end = Block(function, "return")
        phi = Instruction(Op.Phi, type_, (), end, "returned")
        for block in [b for b in function.blocks if b.terminator.op in _ENDS]:
            last = block.instructions.pop()
            value: Value = last.operands[0] if last.op is Op.ReturnValue else types.undef(type_)
            phi.operands += [value, block]
            append(block, Op.Branch, None, [end])
        function.blocks.append(end)
        result = None
        if type_.kind is not Kind.VOID:
            end.instructions.append(phi)
            result = append(end, PassOp.Result, None, [phi])
        append(end, PassOp.RegionExit, None, [REGION_END])
        return result


def _stride_of(result: Instruction | None, shapes: ShapeInfo) -> Stride:
    if result is None:
        return VARYING
    value: Value = result.operands[0]
    is_number = value.type.kind is not Kind.POINTER
    return UNIFORM if is_number and shapes.is_uniform(value) and value not in shapes.private else VARYING
