"""What the driver's model of costs says of the zoo's launches: the plan that a kernel has once it has run for
a while, with the very sizes and arguments that were measured."""

from __future__ import annotations

import os

from cl_driver.api.generated import enums as cl
from cl_driver.codegen.llvm.errors import CodegenError
from cl_driver.compiler import pipeline
from cl_driver.compiler.source import Context, compile_source
from cl_driver.device.target import Target
from cl_driver.explain.alternatives import chosen_options, lockstep_plan, plan_of
from cl_driver.jit.errors import CompileError
from cl_driver.passes.analysis.redundant_items import redundant_dimensions
from cl_driver.passes.cost.cpu_models import model_of
from cl_driver.passes.cost.estimate import estimate
from cl_driver.passes.cost.launch import Launch
from cl_driver.passes.ir.plan import PlanError
from cl_driver.passes.lower.images import ANY_LOD, FORMAT, NEAREST
from cl_driver.spirv.enums import Op, SamplerAddressingMode
from cl_driver.spirv.errors import SpirvError
from cl_driver.spirv.module import Kind
from tests.zoo import arguments
from tests.zoo.table import Program

_PIXEL = 16  # bytes


def add(program: Program, result: dict, target: Target) -> None:
    """Notes the estimate of each kernel of a result that has a steady time."""
    timed = {name: kernel for name, kernel in result["kernels"].items() if kernel.get("steady")}
    if not timed:
        return
    cores = len(os.sched_getaffinity(0))
    try:
        kernels = Kernels(program, target)
        for name, kernel in timed.items():
            kernel["estimate"] = kernels.estimate(name, arguments.Sizes(*kernel["sizes"]), cores)
    except (CompileError, CodegenError, PlanError, SpirvError) as why:
        print(f"{program.title}: no estimate: {why}")


class Kernels:
    """The kernels of a program, built once. CompileError if it cannot be."""

    def __init__(self, program: Program, target: Target):
        self.program, self.target = program, target
        context = Context(target, program.options, {})
        compiled = compile_source(program.text.encode(), {}, context)
        if compiled.spirv is None:
            raise CompileError(compiled.log)
        self.prepared = pipeline.prepare(compiled.spirv, context)

    def estimate(self, name: str, sizes: arguments.Sizes, cores: int) -> dict:
        """{"ms": of a launch, "width": ..., "cycles": of a vector, ...}"""
        numbers, data = self._values(name, sizes.number)
        code = pipeline.entry(self.prepared, name)
        known = {index: data[index] for index in code.specialisable_args if index in data}
        global_size, local_size = (_three(size) for size in (sizes.global_size, sizes.local_size))
        plan = plan_of(self.prepared, name, chosen_options(self.prepared, code, known), known)
        if self.prepared.exchange_ids(name):
            global_size = global_size[1], global_size[0], global_size[2]
            local_size = local_size[1], local_size[0], local_size[2]
        # Where groups have work-items that do the same, one of them does it for all, but not in lockstep.
        if all(local_size[dimension] == 1 for dimension in redundant_dimensions(plan)):
            plan = lockstep_plan(self.prepared, code, local_size, known) or plan
        launch = Launch(global_size, local_size, numbers, self._images(name), cores)
        found = estimate(plan, model_of(self.target), launch)
        return {
            "ms": found.launch / 1000,
            "width": plan.options.width,
            "parts": plan.options.parts,
            "cycles": found.cycles,
            "limit": found.limit,
            "lines": found.lines,
        }

    def _images(self, name: str) -> dict[int, tuple[int, int, int, int]]:
        """By index of the argument: width, height, depth and bytes of a pixel."""
        found = {}
        for index, argument in enumerate(self.prepared.reflections[name].args):
            sides = arguments.image_sides(argument.type_name)
            if sides:
                width, height, depth = _three(sides)
                found[index] = width, height, depth, _PIXEL
        return found

    def _values(self, name: str, number: int) -> tuple[dict, dict]:
        """By index of the argument: numbers as the model has them, and bytes as PlanOptions has them."""
        numbers: dict = {}
        data: dict[int, bytes] = {}
        channel = arguments.channel(self.program.text, name)
        for index, argument in enumerate(self.prepared.reflections[name].args):
            type_ = argument.type
            if type_.kind is Kind.OPAQUE and type_.op is Op.TypeImage:
                data[index] = FORMAT.pack(cl.CL_RGBA, channel[0], _PIXEL)
            elif type_.kind is Kind.OPAQUE and type_.op is Op.TypeSampler:
                word = SamplerAddressingMode.ClampToEdge << 1 | NEAREST | ANY_LOD
                data[index] = word.to_bytes(8, "little")
            scalar = type_.element if type_.kind is Kind.VECTOR else type_
            count = type_.count if type_.kind is Kind.VECTOR else 1
            if scalar.kind is Kind.FLOAT:
                value: float = 0.5
            elif scalar.kind is Kind.INT:
                given, _ = arguments.canonical(argument.type_name, self.program.text, self.program.options)
                given = given or {8: "char", 16: "short", 32: "int", 64: "long"}[scalar.width]
                one = arguments.scalar_value(given, 1, number)
                value = int.from_bytes(one, "little")
                data[index] = one * (4 if count == 3 else count)
            else:
                continue
            numbers[index] = value if count == 1 else (value,) * count
        return numbers, data


def _three(sizes: list[int]) -> tuple[int, int, int]:
    x, y, z = [*sizes, 1, 1][:3]
    return x, y, z
