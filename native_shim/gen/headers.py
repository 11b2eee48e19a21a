"""Reads the OpenCL headers: the dispatch table's order, prototypes of the functions, names of error codes.

Works on the preprocessor's output, so that whatever version of the headers is installed decides.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# The C code's view of the extensions' header comes first: what that hides of it is not declared.
_OWN = Path(__file__).resolve().parents[1] / "src" / "object" / "command_buffer_khr.h"
_INCLUDES = f"""
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_0_APIS
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_2_0_APIS
#define CL_USE_DEPRECATED_OPENCL_2_1_APIS
#define CL_USE_DEPRECATED_OPENCL_2_2_APIS
#include "{_OWN}"
#include <CL/cl_icd.h>
"""


@dataclass(frozen=True)
class Parameter:
    """One parameter: its C declaration, and its name (p0, p1, ... where the header gives none)."""

    declaration: str
    name: str


@dataclass(frozen=True)
class Prototype:
    """A function of the API as the dispatch table types it."""

    name: str
    result: str
    parameters: tuple[Parameter, ...]

    def signature(self, name: str | None = None) -> str:
        """The C declarator, with another name if asked."""
        parameters = ", ".join(p.declaration for p in self.parameters) or "void"
        return f"{self.result} {name or self.name}({parameters})"


@dataclass(frozen=True)
class Headers:
    """What the generators need to know of the installed headers."""

    table: tuple[str, ...]  # names of the dispatch table's entries, in order
    prototypes: dict[str, Prototype]  # of those entries that the headers type; the others are void pointers
    declared: frozenset[str]  # functions that including <CL/cl_icd.h> declares
    errors: dict[int, str]  # error code: name


def _split(text: str) -> list[str]:
    """Splits a parameter list at its top-level commas."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        if c in "([":
            depth += 1
        elif c in ")]":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    parts.append(text[start:])
    return [" ".join(p.split()) for p in parts]


def _parameter(text: str, index: int) -> Parameter:
    function = re.search(r"\(\s*\*\s*(\w*)\s*\)", text)
    if function:
        name = function[1] or f"p{index}"
        return Parameter(f"{text[: function.start()]}(*{name}){text[function.end() :]}", name)
    array = re.fullmatch(r"(.*?)(\w+)\s*\[[^]]*\]", text)
    if array:
        return Parameter(f"{array[1].strip()} *{array[2]}", array[2])
    name = re.search(r"(?<=[\s*])(\w+)$", text)
    if name and name[1] not in ("int", "char", "short", "long"):
        return Parameter(text, name[1])
    return Parameter(f"{text} p{index}", f"p{index}")


def parameters(text: str) -> tuple[Parameter, ...]:
    """What stands between the parentheses of a function's declaration, whatever its spaces are."""
    text = re.sub(r"\* (?=\*)", "*", re.sub(r"\s*\*\s*", " *", text))
    split = [] if text.strip() in ("", "void") else _split(text)
    return tuple(_parameter(parameter, i) for i, parameter in enumerate(split))


def _closing(text: str, opening: int) -> int:
    """Where the parenthesis or brace that opens there is closed."""
    steps, depth = ({"(": 1, ")": -1} if text[opening] == "(" else {"{": 1, "}": -1}), 0
    for i in range(opening, len(text)):
        depth += steps.get(text[i], 0)
        if depth == 0:
            return i
    raise ValueError("unbalanced parentheses in the OpenCL headers")


# Types of functions: cl_api_clFinish is a pointer; clFinish_t of headers since 2024 is none.
_FUNCTION_TYPES = (
    r"typedef\s+([\w\s*]+?)\s*\(\s*\*\s*cl_api_(\w+)\s*\)\s*\(",
    r"typedef\s+([\w\s*]+?)\b(cl[A-Z]\w*)_t\s*\(",
)


# Parameters that older headers name otherwise than the specification. src/validation asks for them by name.
_RENAMED = {"clCreateSubDevices": {r"num_devices(?=\s*$)": "num_devices_ret", "num_entries": "num_devices"}}


def read(compiler: Sequence[str] = ("cc",), flags: Sequence[str] = ()) -> Headers:
    """Preprocesses <CL/cl_icd.h> and reads it. Raises subprocess.CalledProcessError without the headers."""

    def preprocess(*options: str) -> str:
        command = [*compiler, "-E", *options, *flags, "-x", "c", "-"]
        return subprocess.run(command, input=_INCLUDES, text=True, check=True, stdout=subprocess.PIPE).stdout

    text = preprocess("-P")
    prototypes = {}
    for match in (match for pattern in _FUNCTION_TYPES for match in re.finditer(pattern, text)):
        arguments = text[match.end() : _closing(text, match.end() - 1)]
        for old, new in _RENAMED.get(match[2], {"cb": "size"}).items():
            arguments = re.sub(rf"\b{old}\b", new, arguments)
        result = " ".join(match[1].split())
        prototypes[match[2]] = Prototype(match[2], result, parameters(arguments))

    start = re.search(r"struct\s+_cl_icd_dispatch\s*\{", text)
    if not start:
        raise ValueError("no dispatch table in <CL/cl_icd.h>")
    body = text[start.end() : _closing(text, start.end() - 1)]
    # Two entries are unions with the tags of cl_khr_icd 2.0.
    table = tuple(name for name in re.findall(r"\b(cl[A-Z]\w*)\s*;", body) if not name.endswith("_icd2_tag"))
    declared = frozenset(re.findall(r"\b(cl[A-Z]\w*)\s*\(", text))

    errors: dict[int, str] = {}
    for name, value in re.findall(r"^#define (CL_\w+)\s+\(?(-\d+)\)?$", preprocess("-dM"), re.MULTILINE):
        old = errors.get(int(value))
        if re.match("CL_(FLT|DBL|HALF|S?CHAR|SHRT|INT|LONG)_|CL_BUILD_(NONE|ERROR|IN_PROGRESS)$", name):
            continue  # limits of types, and the states of a build
        if old is None or len(name) < len(old):
            errors[int(value)] = name
    errors[0] = "CL_SUCCESS"
    return Headers(table, prototypes, declared, dict(sorted(errors.items(), reverse=True)))
