"""The exceptions of this folder."""

from __future__ import annotations


class SpirvError(Exception):
    """A module that breaks a rule: where (word offset), in which instruction, which rule."""

    def __init__(self, offset: int, instruction: str, rule: str) -> None:
        super().__init__(offset, instruction, rule)
        self.offset = offset
        self.instruction = instruction
        self.rule = rule

    def __str__(self) -> str:
        return f"SPIR-V word {self.offset}: {self.instruction}: {self.rule}"


class LimitError(SpirvError):
    """A kernel that asks for more than the device has. It names what the source names, and no word of SPIR-V,
    which is nothing to those who wrote OpenCL C."""

    def __str__(self) -> str:
        return f"{self.instruction}: {self.rule}"


class LinkError(SpirvError):
    """Modules that do not fit together; one message per line. lacks_lines: some would have one of the source
    if there were debug information."""

    def __init__(self, messages: list[str], lacks_lines: bool = False) -> None:
        super().__init__(0, "link", "\n".join(messages))
        self.lacks_lines = lacks_lines

    def __str__(self) -> str:
        return "\n".join(f"link: {message}" for message in self.rule.splitlines())
