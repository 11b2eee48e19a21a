"""Small changes of a Python source, one at a time: what a slip of the hand would make of it.

Only the code of functions is changed: not what a module or a class executes when it is imported, no
annotations, docstrings, defaults and decorators, and nothing that is only said to people (messages of errors,
assertions and remarks).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any


@dataclass(frozen=True)
class Mutation:
    """One change of a file: the `index`-th of those that `mutations` finds."""

    path: str
    index: int
    line: int
    function: str  # the qualified name of the outermost function that it is in
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.function}: {self.before}  ►  {self.after}"


@dataclass
class _Site:
    """A node that can be replaced, and by what."""

    line: int
    function: str
    before: ast.AST
    after: ast.AST
    apply: Callable[[], None]


_FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
_COMPARISONS: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_OPERATORS: dict[type, type] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
_FUNCTIONS = {"min": "max", "max": "min", "any": "all", "all": "any"}
_SAID = frozenset(("remarks", "say"))  # by whom remarks are taken, and what hands them on
_TEXTS = (ast.JoinedStr, ast.List, ast.Tuple, ast.ListComp)


def _is_said(node: ast.AST) -> bool:
    """Whether a node is for people only, or asks whether anybody listens."""
    if isinstance(node, (ast.Raise, ast.Assert)):
        return True
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return bool(_SAID & {word for part in ast.walk(node.value.func) for word in _words(part)})
    return isinstance(node, ast.Compare) and bool(_SAID & set(_words(node.left)))


def _words(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, _TEXTS) or (
        isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))
    )


def _constant(value: Any) -> ast.Constant:
    return ast.Constant(value)


def _replacements(node: ast.AST, parent: ast.AST, field: str) -> Iterator[ast.AST]:
    """What may stand in place of a node, which is that field of its parent."""
    is_test = field == "test" and isinstance(parent, (ast.If, ast.IfExp))
    if is_test or (field == "ifs" and isinstance(parent, ast.comprehension)):
        yield _constant(True)
        if is_test:
            yield _constant(False)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        op = type(node.ops[0])
        if not is_test or op in _ORDERED:  # others are the branch always taken, and never
            yield ast.Compare(node.left, [_COMPARISONS[op]()], node.comparators)
    elif isinstance(node, ast.BoolOp):
        for left_out in node.values:
            rest = [value for value in node.values if value is not left_out]
            yield rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) and not is_test:
        yield node.operand
    elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        if not _is_text(node.left) and not _is_text(node.right):
            yield ast.BinOp(node.left, _OPERATORS[type(node.op)](), node.right)
    elif isinstance(node, ast.Constant) and not is_test:
        if isinstance(node.value, bool):
            yield _constant(not node.value)
        elif isinstance(node.value, int):
            yield _constant(node.value + 1)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
        yield ast.Call(ast.Name(_FUNCTIONS[node.func.id], ast.Load()), node.args, node.keywords)
    elif (
        isinstance(node, (ast.AugAssign, ast.Continue, ast.Break))
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))
        or (isinstance(node, ast.Assign) and isinstance(node.targets[0], (ast.Attribute, ast.Subscript)))
    ):
        yield ast.Pass()


def _sites_in(node: ast.AST, function: str) -> Iterator[_Site]:
    """Those below a node, in the order of the text."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "type_params", "type_comment"):
            continue
        children = value if isinstance(value, list) else [value]
        for place, child in enumerate(children):
            if not isinstance(child, ast.AST) or _is_said(child):
                continue
            if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
                continue  # a docstring
            if hasattr(child, "lineno"):
                for after in _replacements(child, node, field):
                    yield _Site(
                        child.lineno, function, child, after, _setter(node, field, value, place, after)
                    )
            yield from _sites_in(child, function)


def _setter(parent: ast.AST, field: str, value: Any, place: int, after: ast.AST) -> Callable[[], None]:
    def apply() -> None:
        if isinstance(value, list):
            value[place] = after
        else:
            setattr(parent, field, after)

    return apply


def _sites(tree: ast.Module) -> Iterator[_Site]:
    """Those of all functions of a module."""
    yield from _of_functions(tree, "")


def _of_functions(node: ast.Module | ast.ClassDef, prefix: str) -> Iterator[_Site]:
    for child in node.body:
        if isinstance(child, ast.ClassDef):
            yield from _of_functions(child, f"{prefix}{child.name}.")
        elif isinstance(child, _FunctionNode):
            body = ast.Module(child.body, [])  # without its parameters
            yield from _sites_in(body, prefix + child.name)


def _text(node: ast.AST) -> str:
    """One line that shows a node."""
    text = " ".join(ast.unparse(ast.fix_missing_locations(node)).split())
    return text if len(text) <= 90 else text[:87] + "..."


def mutations(path: str, source: str) -> list[Mutation]:
    """All of a file, in the order of its text."""
    return [
        Mutation(path, index, site.line, site.function, _text(site.before), _text(site.after))
        for index, site in enumerate(_sites(ast.parse(source)))
    ]


def mutated(file: Path, mutation: Mutation) -> CodeType:
    """The code of the mutation's outermost function, changed. LookupError if it is not there."""
    tree = ast.parse(file.read_text())
    site = next(site for index, site in enumerate(_sites(tree)) if index == mutation.index)
    ast.copy_location(site.after, site.before)
    site.apply()
    ast.fix_missing_locations(tree)
    module = compile(tree, str(file), "exec", dont_inherit=True)
    for code in _codes(module):
        if code.co_qualname == mutation.function and _has_line(code, site.line):
            return code
    raise LookupError(str(mutation))


def _has_line(code: CodeType, line: int) -> bool:
    """Whether a line is one of a function's, or of one that is nested in it."""
    lines = [at for inner in (code, *_codes(code)) for _, _, at in inner.co_lines() if at]
    return min(lines) <= line <= max(lines)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """All that is nested in some code."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)
