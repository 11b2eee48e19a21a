"""Imports every topic, so that its lowerings are in the registry."""

from ..library import intrinsics  # noqa: F401
from . import (  # noqa: F401
    address_spaces,
    arithmetic,
    atomics,
    composite,
    control,
    conversion,
    extensions,
    extinst_geometric,
    extinst_integer,
    extinst_math,
    extinst_vector,
    float_to_integer,
    groups,
    integer_dot,
    integer_to_float,
    memory,
    printf,
)
