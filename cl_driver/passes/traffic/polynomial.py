"""Integers as polynomials of what launches know, and of what work-items count: as if nothing wrapped."""

from __future__ import annotations

from collections.abc import Iterable

from ...fast_typing import Any, NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias


class Symbol(NamedTuple):
    """What a launch knows: a value argument, or a size of a dimension."""

    kind: int  # ARGUMENT, GLOBAL_SIZE...
    number: int  # of the argument, or the dimension


ARGUMENT, GLOBAL_SIZE, LOCAL_SIZE, GROUPS, OFFSET = range(5)


class Variable(NamedTuple):
    """What differs between work-items and iterations."""

    kind: int  # GLOBAL_ID...
    number: int  # of the dimension; of ITERATION, of the loop


# None of them is a kind of a symbol: tuples of equal numbers are equal.
GLOBAL_ID, LOCAL_ID, GROUP_ID, ITERATION = range(OFFSET + 1, OFFSET + 5)


class Quotient(NamedTuple):
    """Rounded down."""

    dividend: Polynomial
    divisor: Polynomial


Atom: TypeAlias = "Symbol | Variable | Quotient"
Product: TypeAlias = "tuple[Any, ...]"  # of atoms, or of terms of extents/


class Polynomial:
    """A sum of products of atoms, each with a factor. Immutable; equal ones are equal and have one hash."""

    __slots__ = ("_hash", "terms")

    def __init__(self, terms: Iterable[tuple[Product, int]] = ()) -> None:
        total: dict[Product, int] = {}
        for product, factor in terms:
            total[product] = total.get(product, 0) + factor
        self.terms: dict[Product, int] = {product: factor for product, factor in total.items() if factor}
        self._hash = hash(frozenset(self.terms.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Polynomial) and self.terms == other.terms

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return repr(sorted(self.terms.items(), key=repr))

    def plus(self, other: Polynomial, times: int = 1) -> Polynomial:
        """The sum with a multiple of another one."""
        return Polynomial([*self.terms.items(), *((p, f * times) for p, f in other.terms.items())])

    def times(self, other: Polynomial) -> Polynomial:
        """The product. Atoms of a product are in one order, so that equal products are equal."""
        return Polynomial(
            (tuple(sorted((*a, *b), key=repr)), x * y)
            for a, x in self.terms.items()
            for b, y in other.terms.items()
        )

    @property
    def number(self) -> int | None:
        """Its value, if it is a constant."""
        if not self.terms:
            return 0
        return self.terms.get((), None) if len(self.terms) == 1 else None

    def variables(self) -> list[Variable]:
        """Those in it, each once, in order."""
        found = (atom for product in self.terms for atom in product if isinstance(atom, Variable))
        return list(dict.fromkeys(found))

    def factor(self, variable: Variable) -> Polynomial:
        """What the variable is multiplied by; only where it is_linear()."""
        return Polynomial(
            (tuple(atom for atom in product if atom != variable), factor)
            for product, factor in self.terms.items()
            if variable in product
        )

    def without(self, variable: Variable) -> Polynomial:
        """The products without it."""
        return Polynomial((p, f) for p, f in self.terms.items() if variable not in p)

    def is_linear(self) -> bool:
        """Whether no product has more than one variable."""
        return all(sum(isinstance(atom, Variable) for atom in product) <= 1 for product in self.terms)


def constant(number: int) -> Polynomial:
    """A number."""
    return Polynomial([((), number)])


def atom(one: tuple[Any, ...]) -> Polynomial:
    """A symbol, a variable or a quotient."""
    return Polynomial([((one,), 1)])


def with_global_ids(number: Polynomial) -> Polynomial:
    """get_group_id(0) * get_local_size(0) + get_local_id(0) is get_global_id(0) - get_global_offset(0)."""
    for dimension in range(3 if number.is_linear() else 0):
        local, group = Variable(LOCAL_ID, dimension), Variable(GROUP_ID, dimension)
        of_local = number.factor(local)
        if not of_local.terms or number.factor(group) != of_local.times(atom(Symbol(LOCAL_SIZE, dimension))):
            continue
        ids = atom(Variable(GLOBAL_ID, dimension)).plus(atom(Symbol(OFFSET, dimension)), -1)
        number = number.without(local).without(group).plus(of_local.times(ids))
    return number


def quotient(dividend: Polynomial, divisor: Polynomial) -> Polynomial | None:
    """The quotient, rounded down, of what launches know; None for what they do not, or a division by 0."""
    a, b = dividend.number, divisor.number
    if b and all(factor % b == 0 for factor in dividend.terms.values()):  # without a remainder
        return Polynomial((product, factor // b) for product, factor in dividend.terms.items())
    if b == 0 or dividend.variables() or divisor.variables():
        return None
    if a is not None and b is not None:
        return constant(a // b)
    return atom(Quotient(dividend, divisor))


ZERO, ONE = constant(0), constant(1)
