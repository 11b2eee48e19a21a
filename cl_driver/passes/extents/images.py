"""Which pixels instructions read and write, and where these are in the memory of an image.

What is outside of an image is not written, and reading it comes to anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...fast_typing import NamedTuple
from ...spirv.enums import AccessQualifier, Op
from ...spirv.module import Instruction, Kind, Value
from ..traffic.polynomial import ONE, ZERO, Polynomial, Symbol, atom
from .terms import Assumption, Between, Expression, Limit, Limited, image_fields
from .values import Values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeGuard

_PLAIN = {Op.ImageRead: 2, Op.ImageWrite: 3}  # their operands without what is for mipmaps
_QUERIES = frozenset((
    Op.ImageQuerySize, Op.ImageQuerySizeLod, Op.ImageQueryFormat, Op.ImageQueryOrder, Op.ImageQueryLevels,
))  # fmt: skip


class Pixels(NamedTuple):
    """What an instruction does with an image: at coordinates, or None: anywhere."""

    image: Value
    reads: bool
    writes: bool
    coordinates: Value | None


def pixels_of(i: Instruction) -> Iterator[Pixels]:
    """Of all images that are operands."""
    if i.op in _QUERIES:
        return
    for operand in i.operands:
        if not _is_image(operand):
            continue
        if _PLAIN.get(i.op) == len(i.operands):
            yield Pixels(operand, i.op is Op.ImageRead, i.op is Op.ImageWrite, i.operands[1])
        else:
            access = operand.type.operands[-1]
            reads, writes = access != AccessQualifier.WriteOnly, access != AccessQualifier.ReadOnly
            yield Pixels(operand, reads, writes, None)


def offset(
    pixels: Pixels, number: int, values: Values, known: Callable[[Polynomial], Polynomial]
) -> Expression:
    """How many bytes of the image, the argument of that number, are before the pixels. known: a number with
    what is known of it where they are used."""
    total, assumes = ZERO, frozenset[Assumption]()
    for place, (step, size) in enumerate(image_fields(pixels.image.type)):
        last = atom(Symbol(size, number)).plus(ONE, -1)
        found = _coordinate(pixels.coordinates, place, values)
        if found is None:
            at = atom(Between(-1 - place, (ZERO, last)))
        else:
            limits = Limit(False, ZERO, frozenset()), Limit(True, last, frozenset())
            at = atom(Limited(known(found.number), limits))
            assumes |= found.assumes
        total = total.plus(at.times(atom(Symbol(step, number))))
    return Expression(total, assumes)


def _coordinate(coordinates: Value | None, place: int, values: Values) -> Expression | None:
    """One of them, a signed number; None: not known."""
    if coordinates is None:
        return None
    is_vector = coordinates.type.kind is Kind.VECTOR
    type_ = coordinates.type.element if is_vector else coordinates.type
    if type_.kind is not Kind.INT or type_.width != 32:
        return None
    found = values.of(coordinates, place if is_vector else -1)
    if found is None:
        return None
    return Expression(found.number, found.assumes | {Assumption(found.number, 32, True)})


def _is_image(operand: object) -> TypeGuard[Value]:
    return (
        isinstance(operand, Value)
        and operand.type is not None
        and operand.type.kind is Kind.OPAQUE
        and operand.type.op is Op.TypeImage
    )
