"""Which functions outside of an object kernels may call: those of native_shim/src/abi/code_symbols.def."""

from __future__ import annotations

import functools
import os

_LINES = "CLD_CODE_SYMBOL(", "CLD_CODE_PROVIDED("


def _paths() -> list[str]:
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return [
        os.path.join(package, "_native", "code_symbols.def"),
        os.path.join(os.path.dirname(package), "native_shim", "src", "abi", "code_symbols.def"),
    ]


@functools.cache
def loader_symbols() -> frozenset[str]:
    """The names that the code loader resolves; FileNotFoundError where their list is not installed."""
    for path in _paths():
        try:
            with open(path, encoding="ascii") as file:
                lines = file.read().splitlines()
        except OSError:
            continue
        return frozenset(
            line[line.index("(") + 1 : line.index(")")] for line in lines if line.startswith(_LINES)
        )
    raise FileNotFoundError(f"code_symbols.def is in none of {', '.join(_paths())}")
