"""The one exception of this folder."""

# How it begins where LLVM does not take the text it was given.
NOT_VALID = "the code generator made LLVM IR that is not valid: "


class CompileError(Exception):
    """A program or kernel that could not be compiled. The message is for the build log."""
