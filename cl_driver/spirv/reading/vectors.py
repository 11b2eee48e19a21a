"""Decodes the declarations of vectors: of any number of components and of pointers, where a module says that
it has such (SPV_EXT_long_vector, VectorAnyINTEL, SPV_INTEL_masked_gather_scatter)."""

from __future__ import annotations

from ..enums import Capability, Op
from ..layout import is_of_any_width
from ..module import Kind
from ..types import MAX_COMPONENTS, MAX_DEPTH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .reader import Reader

# Of any number of components.
LONG = frozenset((Capability.LongVectorEXT, Capability.VectorAnyINTEL))


def type_vector(reader: Reader, p: int, n: int, op: Op) -> None:
    """OpTypeVector, and OpTypeVectorIdEXT, whose number of components is a constant."""
    id_, element_id, count = reader.words[p + 1 : p + 4]
    element, capabilities = reader.type(p, element_id), reader.module.capabilities
    has_int4 = Capability.Int4TypeINTEL in capabilities
    is_odd = is_of_any_width(element) and not (has_int4 and element.width == 4)
    is_number = element.kind in (Kind.INT, Kind.FLOAT, Kind.BOOL) and not is_odd
    is_address = element.kind is Kind.POINTER and Capability.MaskedGatherScatterINTEL in capabilities
    if not is_number and not is_address:
        raise reader.error(p, f"components of type {element!r}")
    if op == Op.TypeVectorIdEXT:
        length = reader.value(p, count).type
        if length.kind is not Kind.INT or length.width != 32:
            raise reader.error(p, "a number of components that is not an integer of 32 bits")
        count = reader.integer(p, count)
    if LONG.isdisjoint(capabilities):
        # Universal validation allows 2, 3, 4, 8 and 16; LLVM's SPIR-V back end makes others of vector
        # shuffles, and of its SLP vectoriser's <1 x T> pointers to a type that it otherwise takes for T.
        if count == 1 and is_number:
            reader.types_by_id[reader.new_id(p, id_)] = element
            return
        if not 2 <= count <= 16:
            raise reader.error(p, f"{count} components; a vector has 2 to 16")
    elif not 1 <= count <= MAX_COMPONENTS:
        raise reader.error(p, f"{count} components; a vector has 1 to {MAX_COMPONENTS}")
    if op == Op.TypeVector and LONG.isdisjoint(capabilities):
        reader.module.uses.setdefault(("TypeVector", count), p)
    type_ = reader.table.vector(element, count)
    if type_.depth > MAX_DEPTH:
        raise reader.error(p, f"types nest deeper than {MAX_DEPTH}")
    reader.types_by_id[reader.new_id(p, id_)] = type_
