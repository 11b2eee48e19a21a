"""Links modules: imports meet exports, one definition stays of each LinkOnceODR symbol.

All modules share one TypeTable, so nothing has to be renumbered: linking only replaces references to
declarations. Bodies that were not decoded yet find the definitions when they are.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from . import assertions, blocks, conversion_functions, group_copies
from .enums import Capability, FunctionControl, LinkageType, Op
from .errors import LinkError, SpirvError
from .layout import size_of
from .module import Constant, ConstantExpr, Function, Kind, Module, Operand, Type, Variable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .types import TypeTable


def link(modules: list[Module], provided: Callable[[str], bool] | None = None) -> Module:
    """One module of many; the inputs, of one type table (else ValueError), must not be used afterwards.
    LinkError has all that does not fit.

    provided: says whether the builtin library has a function of that name. If given, every other import that
    no module exports is an error (an executable is being made); otherwise such imports stay as they are.
    """
    if not modules:
        raise LinkError(["no modules"])
    if any(module.types is not modules[0].types for module in modules):
        raise ValueError("modules of different type tables")
    for number, module in enumerate(modules):
        if Capability.DeviceEnqueue in module.capabilities:
            blocks.name_blocks(module, number)
    errors: list[str] = []
    lacks_lines = False
    if len({module.address_bits for module in modules}) > 1:
        errors.append("modules of different addressing models, Physical32 and Physical64")
    exports = _exports(modules, errors)
    kernels: dict[str, Function] = {}
    for module in modules:
        for entry in module.entry_points:
            if entry.name in kernels:
                errors.append(f"kernel '{entry.name}' is defined more than once")
            kernels[entry.name] = entry.function
    replacements: dict[int, object] = {}  # id(declaration or superseded definition): the one that stays
    for module in modules:
        for symbol in _symbols(module):
            if symbol.linkage is None:
                continue
            name, kind = symbol.linkage
            kept = exports.get(name)
            if kind == LinkageType.Import and kept is None and isinstance(symbol, Function):
                kept = _kernel_body(name, exports, kernels)
            if kept is symbol or (
                kind == LinkageType.Import and getattr(symbol, "builtin", None) is not None
            ):
                continue
            if kept is not None:
                _check_types(symbol, kept, name, errors)
                replacements[id(symbol)] = kept
                if isinstance(symbol, Variable) and symbol.type is not kept.type:
                    replacements[id(symbol)] = ConstantExpr(symbol.type, Op.Bitcast, (kept,))
            elif provided is not None and not (
                isinstance(symbol, Function) and (_define(symbol, module.types) or provided(name))
            ):
                what = "function" if isinstance(symbol, Function) else "variable"
                user, place = _first_use(module, symbol)
                lacks_lines |= bool(user) and not place
                errors.append(f"undefined {what} '{name.removeprefix(BODY)}'{user}{place}")
    if errors:
        raise LinkError(list(dict.fromkeys(errors)), lacks_lines)
    if replacements:
        _replace(modules, replacements)
    return modules[0] if len(modules) == 1 and not replacements else _merge(modules, replacements)


def _define(function: Function, types: TypeTable) -> bool:
    """Whether the declaration is one of a function that has its body from here, which it gets."""
    return (
        conversion_functions.define(function)
        or assertions.define(function)
        or group_copies.define(function, types)
    )


def _first_use(module: Module, symbol: Function | Variable) -> tuple[str, str]:
    """Who uses a symbol, and where in the source: each in words, "" if it is not known."""
    with suppress(SpirvError):  # of a function that cannot be read
        for function in module.functions:
            for block in function.blocks:
                for instruction in block.instructions:
                    if any(operand is symbol for operand in instruction.operands):
                        line = instruction.line
                        place = f" at {line.file.rpartition('/')[2]}:{line.line}" if line is not None else ""
                        return f", which '{plain_name(function)}' uses", place
    return "", ""


def _symbols(module: Module) -> list[Function | Variable]:
    return [*module.functions, *module.variables]


def _exports(modules: list[Module], errors: list[str]) -> dict[str, Function | Variable]:
    """The definition of each exported name: an Export, else the first LinkOnceODR or inline one."""
    exports: dict[str, Function | Variable] = {}
    for module in modules:
        for symbol in _symbols(module):
            if symbol.linkage is None or symbol.linkage[1] == LinkageType.Import:
                continue
            name = symbol.linkage[0]
            before = exports.get(name)
            if before is None or (_is_shared(before) and not _is_shared(symbol)):
                exports[name] = symbol
            elif not _is_shared(before) and not _is_shared(symbol):
                shown = name.removeprefix(BODY)
                errors.append(
                    f"{'function' if isinstance(symbol, Function) else 'variable'} '{shown}' is "
                    "defined more than once"
                )
    return exports


# What clang puts before a kernel's name for the function that other kernels call. Khronos' translator uses
# the kernel's own name.
BODY = "__clang_ocl_kern_imp_"


def plain_name(function: Function) -> str:
    """The name of a function in the program's source."""
    return function.name.removeprefix(BODY)


def _kernel_body(
    name: str, exports: dict[str, Function | Variable], kernels: dict[str, Function]
) -> Function | Variable | None:
    """The function to call for a kernel of another module, whichever compiler made either."""
    plain = name.removeprefix(BODY)
    return exports.get(plain) or exports.get(BODY + plain) or kernels.get(plain)


def _is_shared(symbol: Function | Variable) -> bool:
    """Whether several modules may define it: LinkOnceODR, and `inline` functions of headers, to which the
    front end gives bodies in every module."""
    if symbol.linkage is not None and symbol.linkage[1] == LinkageType.LinkOnceODR:
        return True
    return isinstance(symbol, Function) and bool(symbol.control & FunctionControl.Inline)


def _check_types(
    symbol: Function | Variable, kept: Function | Variable, name: str, errors: list[str]
) -> None:
    if type(symbol) is not type(kept):
        errors.append(f"'{name}' is a function in one module and a variable in another")
    elif not _fits(symbol.type, kept.type, top=True):
        errors.append(f"'{name}' has different types in different modules")


def _fits(a: Type, b: Type, top: bool = False) -> bool:
    """Equal but for what pointers in them point to, which each front end chooses for itself. Structures may
    differ in how they are written, not in size: clang spells out the padding where it has an initialiser."""
    if a is b:
        return True
    if a.kind is b.kind is Kind.STRUCT:
        return size_of(a) == size_of(b)
    if a.kind is not b.kind or (a.width, a.count, a.storage, a.packed) != (
        b.width,
        b.count,
        b.storage,
        b.packed,
    ):
        return False
    if a.kind is Kind.POINTER:
        return not top or a.element is None or b.element is None or _fits(a.element, b.element)
    if a.kind is Kind.OPAQUE:
        return a.op == b.op
    if len(a.members) != len(b.members) or not all(map(_fits, a.members, b.members)):
        return False
    return a.element is None or b.element is None or _fits(a.element, b.element)


def _replace(modules: list[Module], replacements: dict[int, object]) -> None:
    """Makes every reference to a replaced symbol one to what stays."""
    table = modules[0].types
    done: dict[int, object] = {}

    def new(value: Operand) -> Any:
        if id(value) in replacements:
            return replacements[id(value)]
        if not isinstance(value, Constant | ConstantExpr):
            return value
        if id(value) not in done:
            done[id(value)] = value  # constants have no cycles
            if isinstance(value, ConstantExpr):
                operands = tuple(o if isinstance(o, int) else new(o) for o in value.operands)
                if any(a is not b for a, b in zip(operands, value.operands, strict=True)):
                    done[id(value)] = ConstantExpr(value.type, value.op, operands)
            elif isinstance(value.value, tuple) and value.type.kind is not Kind.OPAQUE:
                constituents = tuple(map(new, value.value))
                if any(a is not b for a, b in zip(constituents, value.value, strict=True)):
                    done[id(value)] = table.constant(value.type, constituents)
        return done[id(value)]

    for module in modules:
        for reader in module.readers:
            reader.values = {id_: new(value) for id_, value in reader.values.items()}
        for variable in module.variables:
            if variable.initializer is not None:
                variable.initializer = new(variable.initializer)
        for entry in module.entry_points:
            entry.interface = list(map(new, entry.interface))
        module.function_pointers = list(map(new, module.function_pointers))
        for function in module.functions:
            if function.decoded:
                for block in function.blocks:
                    for instruction in block.instructions:
                        instruction.operands = [
                            o if isinstance(o, int | str) else new(o) for o in instruction.operands
                        ]


def _merge(modules: list[Module], replacements: dict[int, object]) -> Module:
    first = modules[0]
    out = Module(
        version=max(m.version for m in modules),
        address_bits=first.address_bits,
        source=first.source,
        memory_model=first.memory_model,
        types=first.types,
    )
    for module in modules:
        out.capabilities |= module.capabilities
        out.extensions |= module.extensions
        out.entry_points += module.entry_points
        out.functions += (f for f in module.functions if id(f) not in replacements)
        out.variables += (v for v in module.variables if id(v) not in replacements)
        out.strings += module.strings
        out.readers += module.readers
        out.images += module.images
        out.function_pointers += module.function_pointers
        out.uses = module.uses | out.uses
        out.misplaced = out.misplaced or module.misplaced
        for spec_id, constant in module.spec_constants.items():
            out.spec_constants.setdefault(spec_id, constant)
    return out
