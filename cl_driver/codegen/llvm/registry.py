"""The tables of lowerings: which function lowers which instruction.

Every lowering has the signature lower(emitter, instruction). Component-wise instructions are written once,
as a function of the LLVM type forms and operands of one vector; the decorator makes the lowering of it.
"""

from __future__ import annotations

LOWERINGS: dict = {}  # Op or PassOp: lowering
EXTENDED: dict = {}  # OpenCL.std instruction number: lowering
COMPONENTWISE: set = set()  # lowerings made by componentwise()
WIDE: dict = {}  # Op or PassOp: lowering of an instruction whose result or effect varies between lanes
WIDE_EXTENDED: dict = {}  # the same for OpenCL.std instructions


def lowers(*ops):
    """Registers a lowering of instructions."""

    def register(lowering):
        for op in ops:
            if op in LOWERINGS:
                raise ValueError(f"two lowerings of {op}")
            LOWERINGS[op] = lowering
        return lowering

    return register


def lowers_extended(*numbers):
    """Registers a lowering of OpenCL.std instructions; their arguments are instruction.operands[2:]."""

    def register(lowering):
        for number in numbers:
            if number in EXTENDED:
                raise ValueError(f"two lowerings of OpenCL.std {number}")
            EXTENDED[number] = lowering
        return lowering

    return register


def componentwise(*ops):
    """Registers build(emitter, form, instruction, *operands) -> operand, applied to whole vectors."""

    def register(build):
        def lowering(emitter, instruction):
            emitter.componentwise(instruction, instruction.operands, build)

        COMPONENTWISE.add(lowering)
        for op in ops:
            lowers(op)(lowering)
        return build

    return register


def componentwise_extended(*numbers):
    """The same for OpenCL.std instructions."""

    def register(build):
        def lowering(emitter, instruction):
            emitter.componentwise(instruction, instruction.operands[2:], build)

        COMPONENTWISE.add(lowering)
        for number in numbers:
            lowers_extended(number)(lowering)
        return build

    return register


def lowers_wide(*ops):
    """Registers a lowering for values that vary between lanes; without one, each lane is lowered by
    itself."""

    def register(lowering):
        for op in ops:
            if op in WIDE:
                raise ValueError(f"two wide lowerings of {op}")
            WIDE[op] = lowering
        return lowering

    return register


def lowers_wide_extended(*numbers):
    """The same for OpenCL.std instructions."""

    def register(lowering):
        for number in numbers:
            if number in WIDE_EXTENDED:
                raise ValueError(f"two wide lowerings of OpenCL.std {number}")
            WIDE_EXTENDED[number] = lowering
        return lowering

    return register
