"""The builtin library as the compiler uses it: functions by their link names, and those for instructions."""

from __future__ import annotations

import functools

from ..codegen.library.names import (
    GEOMETRIC_INSTRUCTIONS,
    INSTRUCTIONS,
    LIBRARY_INSTRUCTIONS,
    SCALED,
    geometric_name,
    library_name,
)
from ..device.target import Target
from ..jit.errors import CompileError
from ..spirv.enums import Op
from ..spirv.module import Function, Type
from . import load, load_places, reader
from .strict import forbid_fast_math


def _library_name(name: str) -> str:
    """Names of OpenCL C have no dots: llvm.usub.sat.i32 is __llvm_usub_sat_i32 in builtins/cl/llvm.cl."""
    return "__" + name.replace(".", "_") if name.startswith("llvm.") else name


class Library:
    """The builtin library: read once per process, its functions decoded when they are called."""

    def __init__(self, data: bytes, places: bytes = b"") -> None:
        """data: of the library's SPIR-V module; places: in it (reader.py)."""
        self._reader = reader.LibraryReader(data, places)
        self.types = self._reader.table  # the base of the programs' tables, so that its code can be inlined
        self._strict: set[str] = set()

    def function(self, name: str) -> Function | None:
        """The function of that link name."""
        name = _library_name(name)
        found = self._reader.function_named(name)
        if found is None or not found.blocks:
            return None
        if name not in self._strict:
            self._strict.add(name)
            forbid_fast_math(found)
            _recognise_instructions(found)
        return found

    def has(self, name: str) -> bool:
        """Whether there is a function of that link name."""
        return self._reader.has(_library_name(name))

    def instruction(self, number: int, type_: Type) -> Function | None:
        """The function for an OpenCL.std instruction on a floating type."""
        if number in GEOMETRIC_INSTRUCTIONS:
            return self.function(geometric_name(GEOMETRIC_INSTRUCTIONS[number], type_))
        name = LIBRARY_INSTRUCTIONS.get(number)
        return None if name is None else self.function(library_name(name, type_))


class ScaledLibrary:
    """The library for CPUs that have its INSTRUCTIONS: some OpenCL.std instructions have other functions."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self.types, self.function, self.has = library.types, library.function, library.has

    def instruction(self, number: int, type_: Type) -> Function | None:
        """As Library.instruction()."""
        name = LIBRARY_INSTRUCTIONS.get(number)
        found = None if name is None else self.function(library_name(name, type_) + SCALED)
        return found or self._library.instruction(number, type_)


def _recognise_instructions(function: Function) -> None:
    """Makes instructions of the calls that stand for them, also in what the function calls."""
    for block in function.blocks:
        for i in block.instructions:
            if i.op is not Op.FunctionCall:
                continue
            linkage = i.operands[0].linkage
            if linkage is not None and linkage[0] in INSTRUCTIONS:
                i.op, i.operands = Op.ExtInst, ["OpenCL.std", INSTRUCTIONS[linkage[0]], *i.operands[1:]]
            else:
                _recognise_instructions(i.operands[0])


def library_for(target: Target) -> Library | ScaledLibrary:
    """The builtin library for a target."""
    return suitable(library(), frozenset(target.features))


def suitable(found: Library, features: frozenset[str]) -> Library | ScaledLibrary:
    """The functions of a library that are for CPUs with these features."""
    return ScaledLibrary(found) if features >= {"avx512vl", "avx512dq"} else found


@functools.cache
def library() -> Library:
    """The builtin library of this installation. CompileError if it is not there."""
    try:
        return Library(load(), load_places())
    except FileNotFoundError as error:
        raise CompileError(f"{error}\n") from error
