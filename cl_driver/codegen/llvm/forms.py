"""How a value is held: the lane abstraction.

A *single* value is one LLVM value of the type's own LLVM type: every value at width 1, and uniform values at
any width. A *varying* value of a scalar type is one `<W x T>`; a varying OpenCL vector is a list of these,
one per component. Code that is the same for each component is written against a Form, which knows how many
elements the LLVM values at hand have, and nothing else.
"""

from __future__ import annotations


class Form:
    """The vector form of a component-wise operation: f("float") is the LLVM type of its values."""

    __slots__ = ("count",)

    def __init__(self, count: int) -> None:
        self.count = count  # elements of the LLVM values; 0: they are scalars

    def __call__(self, element: str) -> str:
        """The LLVM type with such elements."""
        return f"<{self.count} x {element}>" if self.count else element

    def splat(self, element: str, literal: str) -> str:
        """A literal in all elements, without its type."""
        return f"splat ({element} {literal})" if self.count else literal

    def suffix(self, element: str) -> str:
        """The type's mangling in names of LLVM intrinsics, from the mangling of the element ("f32")."""
        return f"v{self.count}{element}" if self.count else element


SCALAR = Form(0)

_forms: dict[int, Form] = {0: SCALAR}


def form(count: int) -> Form:
    """The Form of LLVM vectors with so many elements; 0 for scalars."""
    found = _forms.get(count)
    if found is None:
        found = _forms[count] = Form(count)
    return found


MANGLED = {
    "float": "f32", "double": "f64", "half": "f16", "i1": "i1", "i8": "i8", "i16": "i16", "i32": "i32",
    "i64": "i64", "i128": "i128", "i256": "i256", "ptr": "p0",
}  # fmt: skip
