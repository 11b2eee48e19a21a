"""The one exception of this folder."""

from __future__ import annotations


class CodegenError(Exception):
    """A program that cannot be lowered: a call of a function that nothing defines, an unsupported operation.

    The message is for the build log and names the function or instruction.
    """
