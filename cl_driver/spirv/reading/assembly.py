"""Decodes the declarations of inline assembly (SPV_INTEL_inline_assembly), in bodies, too.

ASSEMBLY_HANDLERS: see declarations.py. What the strings say is for LLVM to read.
"""

from __future__ import annotations

from ..enums import Decoration, Op
from ..module import InlineAssembly, Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .constants import Handler
    from .reader import Reader

OF_ASSEMBLY = frozenset((Decoration.ClobberINTEL, Decoration.SideEffectsINTEL))


def _target(reader: Reader, p: int, n: int, op: Op) -> None:
    text = reader.complete_string(p, p + 2, p + n)
    reader.assembly_targets[reader.new_id(p, reader.words[p + 1])] = text


def _assembly(reader: Reader, p: int, n: int, op: Op) -> None:
    result, id_, type_id, target_id = reader.words[p + 1 : p + 5]
    type_ = reader.type(p, type_id)
    if type_.kind is not Kind.FUNCTION or type_.element is not reader.type(p, result):
        raise reader.error(p, "the type of the assembly does not fit its result type")
    target = reader.assembly_targets.get(target_id)
    if target is None:
        raise reader.error(p, f"id {target_id} is not an OpAsmTargetINTEL")
    text, q = reader.string(p + 5, p + n)
    if q >= p + n:
        raise reader.error(p, "no constraints")
    constraints = reader.complete_string(p, q, p + n).split(",")
    decorations = reader.decorations.get(id_, {})
    # Clobbers are constraints to LLVM. Outputs are no arguments, but for those in memory.
    for register in decorations.get(Decoration.ClobberINTEL, ()):
        constraints.append(register if register.startswith("~") else f"~{{{register}}}")
    arguments = [c for c in constraints if not c.startswith("~") and (not c.startswith("=") or "*" in c)]
    reader.values[reader.new_id(p, id_)] = made = InlineAssembly(
        type_,
        target,
        text,
        ",".join(filter(None, constraints)),
        frozenset(k for k, constraint in enumerate(arguments) if "*" in constraint),
        Decoration.SideEffectsINTEL in decorations,
    )
    if id_ in reader.names:
        made.name = reader.string(reader.names[id_] + 2)[0]


ASSEMBLY_HANDLERS: dict[int, Handler] = {Op.AsmTargetINTEL: _target, Op.AsmINTEL: _assembly}
