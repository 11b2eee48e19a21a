"""The one exception of this folder."""


class CompileError(Exception):
    """A program or kernel that could not be compiled. The message is for the build log."""
