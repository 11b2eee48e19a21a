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


def _registrar(table: dict, what: str):
    """A decorator with keys of a table, each of which gets one lowering."""

    def lowers(*keys):
        def register(lowering):
            for key in keys:
                if key in table:
                    raise ValueError(f"two {what} {key}")
                table[key] = lowering
            return lowering

        return register

    return lowers


# Of instructions; of OpenCL.std instructions, whose arguments are instruction.operands[2:]. The wide ones are
# for values that vary between lanes: without one, each lane is lowered by itself.
lowers = _registrar(LOWERINGS, "lowerings of")
lowers_extended = _registrar(EXTENDED, "lowerings of OpenCL.std")
lowers_wide = _registrar(WIDE, "wide lowerings of")
lowers_wide_extended = _registrar(WIDE_EXTENDED, "wide lowerings of OpenCL.std")


def _componentwise(lowers, first: int):
    """A decorator for build(emitter, form, instruction, *operands) -> operand, applied to whole vectors.

    first: the first operand of the instruction that is an argument.
    """

    def of(*keys):
        def register(build):
            def lowering(emitter, instruction):
                emitter.componentwise(instruction, instruction.operands[first:], build)

            COMPONENTWISE.add(lowering)
            lowers(*keys)(lowering)
            return build

        return register

    return of


componentwise = _componentwise(lowers, 0)
componentwise_extended = _componentwise(lowers_extended, 2)
