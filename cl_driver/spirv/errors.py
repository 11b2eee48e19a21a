"""The one exception of this folder."""

from __future__ import annotations


class SpirvError(Exception):
    """A module that breaks a rule: where (word offset), in which instruction, which rule."""

    def __init__(self, offset: int, instruction: str, rule: str):
        super().__init__(offset, instruction, rule)
        self.offset = offset
        self.instruction = instruction
        self.rule = rule

    def __str__(self):
        return f"SPIR-V word {self.offset}: {self.instruction}: {self.rule}"
