"""What the driver does is decided by enumerations and data, not by parts of names.

A name is for people: whoever gives an instruction, a block or a setting another one must not change what is
made of it. Text formats have to be taken apart, so these tests know the files that do.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.conftest import ROOT

PACKAGE = ROOT / "cl_driver"

METHODS = frozenset((
    "startswith", "endswith", "partition", "rpartition", "removeprefix", "removesuffix",
))  # fmt: skip
METHODS_OF_LISTS_TOO = frozenset(("find", "rfind", "index", "rindex"))
# Attributes and variables that hold one text.
TEXTS = frozenset((
    "name", "text", "mnemonic", "opcode", "operand", "errors", "output", "line", "ir", "comment", "symbol",
    "mangled", "title", "kind", "log", "hint", "label", "variant", "word", "type_", "element",
))  # fmt: skip

# Files and folders that read a text format: what it is.
FORMATS = {
    "registration.py": "names of files, and the lines of the loader's .icd files",
    "settings.py": "names of environment variables",
    "spirv/blocks.py": "names that clang, and native_shim/clang/blocks.c, make for blocks",
    "accuracy/": "arguments of a command",
    "tune/": "arguments of a command",
    "cli/": "arguments of commands, names of files, and what is shown to people",
    "explain/assembly.py": "LLVM's assembly",
    "explain/cost.py": "LLVM's assembly: mnemonics of x86",
    "explain/mca.py": "LLVM's assembly: calls",
    "explain/report.py": "LLVM's assembly: mnemonics of x86, symbols",
    "explain/program.py": "clang's diagnostics",
    "frontend/": "options of clBuildProgram, clang's options, diagnostics and files, OpenCL C, LLVM IR",
    "api/program.py": "options of clBuildProgram",
    "service/files.py": "options of clBuildProgram, paths",
    "service/standing.py": "lines of /proc/PID/status",
    "service/jobs.py": "names of modules",
    "late_modules.py": "names of modules",
    "module_archive.py": "names of modules and files",
    "service/process.py": "names of environment variables",
    "device/cpu.py": "/proc/cpuinfo",
    "device/files.py": "names of files in /proc and /sys",
    "device/memory.py": "files of /sys/fs/cgroup",
    "device/topology.py": "lists of CPUs in /sys",
    "native.py": "cl_driver.conf",
    "interp/opencl_memory.py": "the format of a printf",
    "device/target.py": "LLVM's names of CPU features, of which some imply others by their names",
    "jit/": "names of libraries and files, ELF's tables of strings, what a child prints",
    "builtins/library.py": "names of LLVM's intrinsics",
    "spirv/generate.py": "the names in Khronos' grammar",
    "spirv/tables.py": "the lines of grammar.py",
    "spirv/instruction_sets.py": "names of sets: SPV_KHR_non_semantic_info goes by their beginning",
    "spirv/reflect.py": "strings in which compilers describe kernels' arguments",
    "spirv/reading/assembly.py": "constraints of inline assembly",
    "compiler/inline_assembly.py": "target triples",
    "spirv/link.py": "link names",
    "passes/ir/link_names.py": "link names (Itanium C++ ABI)",
    "passes/lower/images.py": "link names, looked at before a regular expression is",
    "spirv/conversion_functions.py": "the same",
    "spirv/group_copies.py": "the same",
    "codegen/ops/address_spaces.py": "link names: qualifiers of a parameter",
    "codegen/library/names.py": "names of the builtin library's functions, from which its own list is made",
    "codegen/llvm/text.py": "instructions of LLVM IR: loads",
    "debugger/gdb_commands.py": "names of files that gdb has",
    "codegen/llvm/types.py": "operands and types of LLVM IR",
    "codegen/llvm/debug.py": "lines of LLVM IR, of which instructions are indented",
    "codegen/library/intrinsics.py": "literals of LLVM IR",
    # What is shown to people.
    "spirv/module.py": "a type as text",
    "spirv/reading/dis.py": "the names of values in a disassembly",
    "compiler/pipeline.py": "whether a message names the kernel already",
    "spirv/local_memory.py": "the name of a variable in a message",
    "passes/lower/collectives.py": "the name of a slot, in dumps",
}


def _last_name(node: ast.expr) -> str:
    """The name by which an expression is known: x of x, a.x, x[0]."""
    if isinstance(node, ast.Subscript):
        return _last_name(node.value)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_text(node: ast.expr) -> bool:
    """Whether an expression is known to be one text: a name, str(...), an element of a linkage."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in ("str", "repr")
    return _last_name(node) in TEXTS or (isinstance(node, ast.Subscript) and _last_name(node) == "linkage")


def decisions(source: str) -> Iterator[tuple[int, str]]:
    """(line, code) of what looks at a part of a text."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            method, of = node.func.attr, node.func.value
            if method in METHODS or (method in METHODS_OF_LISTS_TOO and _is_text(of)):
                yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Compare):
            for op, right in zip(node.ops, node.comparators, strict=True):
                if isinstance(op, (ast.In, ast.NotIn)) and _is_text(right):
                    yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Subscript) and _is_text(node.value) and not isinstance(node.ctx, ast.Store):
            if isinstance(node.slice, (ast.Slice, ast.Constant, ast.UnaryOp)):
                yield node.lineno, ast.unparse(node)


def _format_of(path: str) -> str | None:
    """Which row of FORMATS a file falls under."""
    return next((row for row in FORMATS if path == row or (row[-1] == "/" and path.startswith(row))), None)


@pytest.fixture(scope="module")
def decided() -> dict[str, list[tuple[int, str]]]:
    """{path: its decisions}"""
    return {
        file.relative_to(PACKAGE).as_posix(): found
        for file in sorted(PACKAGE.rglob("*.py"))
        if (found := list(decisions(file.read_text())))
    }


def test_nothing_is_decided_by_a_part_of_a_name(decided):
    places = [f"{path}:{line}: {code}" for path, found in decided.items() for line, code in found
              if _format_of(path) is None]  # fmt: skip
    assert places == []


def test_the_list_of_formats_is_no_longer_than_it_must_be(decided):
    assert sorted(FORMATS.keys() - {_format_of(path) for path in decided}) == []


@pytest.mark.parametrize(
    "code",
    [
        'op.name.startswith("Atomic")',
        '"Group" in op.name',
        'any(word in op.name for word in ("Atomic", "Pipe"))',
        'opcode[1:] == "rem"',
        'opcode[0] == "s"',
        'callee.linkage[0].endswith("barrier")',
        '"i1" in str(operand)',
        '"zmm" not in code.text',
        '{"SU": 1}[instruction.op.name[:2]]',
        'TABLE[op.name.removeprefix("Group")]',
    ],
)
def test_a_decision_is_found(code):
    assert [line for line, _ in decisions(f"def f():\n    return {code}\n")] != []


@pytest.mark.parametrize("code", ['"fma" in features', "op in ATOMICS", 'name == "main"', "operands[0]"])
def test_what_is_no_part_of_a_text_is_let_through(code):
    assert list(decisions(f"x = {code}\n")) == []
