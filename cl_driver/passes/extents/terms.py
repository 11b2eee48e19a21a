"""What expressions consist of besides the atoms of traffic/polynomial.py.

A value of so many bits is congruent to its polynomial. Where it has to be told from other numbers that it is
congruent to, the polynomial is assumed to be within its type: launches look whether it is.
"""

from __future__ import annotations

from collections.abc import Callable

from ...fast_typing import Any, NamedTuple
from ...spirv.enums import Dim
from ...spirv.module import Type
from ..traffic.polynomial import ITERATION, Polynomial, Quotient, atom

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias


class Assumption(NamedTuple):
    """That a number is one of so many bits."""

    number: Polynomial
    bits: int
    is_signed: bool


class Expression(NamedTuple):
    """A number, if all assumptions are true."""

    number: Polynomial
    assumes: frozenset[Assumption] = frozenset()


class Remainder(NamedTuple):
    """Of a dividend that is not negative. The third member: tuples of equal members are equal."""

    dividend: Polynomial
    divisor: Polynomial
    number: int = 0


class Between(NamedTuple):
    """Any number from the least of some to the greatest; two such are not the same."""

    number: int
    ends: tuple[Polynomial, ...]


class Extreme(NamedTuple):
    """The least of some numbers, or the greatest."""

    of: tuple[Polynomial, ...]
    is_greatest: bool


class Limit(NamedTuple):
    """What a condition says of a number, if all assumptions are true: it is at most, or at least, another."""

    is_upper: bool
    other: Polynomial
    assumes: frozenset[Assumption]


class Limited(NamedTuple):
    """A number of which conditions say something where it is used."""

    number: Polynomial
    limits: tuple[Limit, ...]


# Kinds of symbols: what launches know of an image, the argument of that number. Bytes and pixels; none is a
# kind of traffic/polynomial.py.
ELEMENT_SIZE, ROW_PITCH, SLICE_PITCH, WIDTH, HEIGHT, DEPTH, LAYERS = range(ITERATION + 1, ITERATION + 8)


def image_fields(image: Type) -> list[tuple[int, int]]:
    """For each coordinate of an image of that type: what steps along it are, and how many it has."""
    _, dim, _, arrayed, *_ = image.operands
    fields = [(ELEMENT_SIZE, WIDTH)]
    if dim in (Dim.Dim2D, Dim.Dim3D):
        fields.append((ROW_PITCH, HEIGHT))
    if dim == Dim.Dim3D or arrayed:
        fields.append((SLICE_PITCH, DEPTH if dim == Dim.Dim3D else LAYERS))
    return fields


Change: TypeAlias = Callable[[Polynomial], Polynomial]


def _changed(term: Any, change: Change) -> Any:
    """A term with the polynomials in it changed."""
    if isinstance(term, (Quotient, Remainder)):
        return term._replace(dividend=change(term.dividend), divisor=change(term.divisor))
    if isinstance(term, Between):
        return term._replace(ends=tuple(map(change, term.ends)))
    if isinstance(term, Extreme):
        return term._replace(of=tuple(map(change, term.of)))
    return term


def change_inside(number: Polynomial, change: Change) -> Polynomial:
    """The polynomial with those changed that its terms consist of."""
    total = Polynomial()
    for product, factor in number.terms.items():
        made = Polynomial([((), factor)])
        for term in product:
            made = made.times(atom(_changed(term, change)))
        total = total.plus(made)
    return total


def join_remainders(number: Polynomial) -> Polynomial:
    """a / b * b + a % b, also as a multiple of it, is a."""
    for product, factor in [*number.terms.items()]:
        for place, term in enumerate(product):
            if not isinstance(term, Remainder):
                continue
            around = Polynomial([((*product[:place], *product[place + 1 :]), factor)])
            whole = atom(Quotient(term.dividend, term.divisor)).times(term.divisor).times(around)
            if all(number.terms.get(p) == f for p, f in whole.terms.items()):
                rest = number.plus(whole, -1).plus(Polynomial([(product, factor)]), -1)
                return join_remainders(rest.plus(around.times(term.dividend)))
    return number
