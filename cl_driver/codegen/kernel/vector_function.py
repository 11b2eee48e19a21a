"""Functions that lanes call (passes/vectorize/vector_functions.py), in the LLVM module of a kernel."""

from __future__ import annotations

from ...passes.ir.plan import KernelPlan, Region
from ...records import replace
from ...spirv.module import Value
from ..access.packed_vectors import find_packed
from ..layout.scratch import Scratch
from ..llvm.alias import AliasScopes
from ..llvm.errors import CodegenError
from ..llvm.types import flat, ir_type, leaf_types
from ..simd.vector_calls import parameter_types, result_type, varies
from .wide_kernel import VectorForm, WideKernelEmitter


def emit_vector_functions(kernel: WideKernelEmitter) -> list[str]:
    """The text of all that a kernel's lanes call. CodegenError names the function."""
    texts = []
    while kernel.functions.pending:
        form, symbol = kernel.functions.pending.pop()
        try:
            texts.append(_VectorFunctionEmitter(kernel, form).text(symbol))
        except CodegenError as error:
            raise CodegenError(f"in function {form[0].name}: {error}") from error
    return texts


class _VectorFunctionEmitter(WideKernelEmitter):
    """Emits one form of a version, whose private memory is in the kernel's scratch memory."""

    def __init__(self, kernel: WideKernelEmitter, form: VectorForm) -> None:
        self._kernel = kernel
        self._version, pieces, self._is_masked = form
        version, whole = self._version, kernel.plan
        region = Region(0, version.function, shapes=version.shapes)
        options = replace(whole.options, remarks=None)
        plan = KernelPlan(version.name, whole.entry_point, whole.module, options, [], [region])
        plan.vector_functions = whole.vector_functions
        super().__init__(kernel.module, plan, kernel.width)
        self.ahead = self.nontemporal = None
        self.functions = kernel.functions
        self.pieces = dict(self.scratch.interleaved)
        for parameter, piece in zip(version.parameters, pieces, strict=True):
            if piece:
                self.pieces |= self.scratch.layout.of_parameter(version.function, parameter, piece)

    def make_scratch(self, plan: KernelPlan, on_stack: bool) -> Scratch:
        return self._kernel.scratch

    def entry_mask(self) -> str:
        return "%mask" if self._is_masked else self.form.splat("i1", "true")

    def emit_region_exit(self, next_region: int, left: Value | None = None) -> None:
        version = self._version
        if version.result is None:
            self.emit_void("ret void")
            return
        value, whole = version.result.operands[0], result_type(version, self.form)
        if version.returns_one:
            self.emit_void(f"ret {self.typed(value)}")
            return
        leaves = self.leaves(value)
        result = leaves[0]
        if len(leaves) > 1:
            result = "poison"
            for k, (t, leaf) in enumerate(zip(leaf_types(value.type), leaves, strict=True)):
                result = self.emit(f"insertvalue {whole} {result}, {self.form(ir_type(t))} {leaf}, {k}")
        self.emit_void(f"ret {whole} {result}")

    def text(self, symbol: str) -> str:
        """The LLVM function."""
        version, region = self._version, self.plan.regions[0]
        parameters = ["ptr %thread"]
        if self._is_masked:
            parameters.append(f"{self.form('i1')} %mask")
        for k, (parameter, types) in enumerate(
            zip(version.parameters, parameter_types(version, self.form), strict=True)
        ):
            names = [f"%arg{k}.{n}" for n in range(len(types))]
            parameters += [f"{t} {name}" for t, name in zip(types, names, strict=True)]
            if varies(version, parameter):
                self.define_leaves(parameter, names)
            else:
                self.define(parameter, names[0])
        self.function, self.shapes, self.has_lanes = region.function, region.shapes, True
        self.packed = find_packed(self, region.function)
        self.aliases = AliasScopes(self.plan, region, [])
        self.head = []
        self.lines.append(self.head)
        self.emit_blocks(region.function, "b")
        return "\n".join(
            [
                f"define internal {result_type(version, self.form)} {symbol}({', '.join(parameters)}) "
                "noinline #0 {",
                "entry:",
                *self.allocas,
                *flat(self.prologue),
                *flat(self.lines),
                *self.terminated_block(result_type(version, self.form)),
                "}",
            ]
        )
