"""The one exception of this folder."""

# How it begins where LLVM does not take the text it was given.
NOT_VALID = "the code generator made LLVM IR that is not valid: "


class CompileError(Exception):
    """A program or kernel that could not be compiled. The message is for the build log. lacks_lines: it would
    have lines of the source if there were debug information."""

    def __init__(self, message: str, lacks_lines: bool = False) -> None:
        super().__init__(message)
        self.lacks_lines = lacks_lines
