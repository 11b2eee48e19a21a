"""Names blocks in LLVM IR in text form, for a clang into which the library that does it cannot be loaded.

What is done, and why, is in native_shim/clang/blocks.c. The size and the alignment of a block are what clang
stores in its first two members.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

# What clang calls, and the argument that is the block's kernel; the next one is the block.
_CALLEES = {
    "__enqueue_kernel_basic": 3,
    "__enqueue_kernel_basic_events": 6,
    "__enqueue_kernel_varargs": 3,
    "__enqueue_kernel_events_varargs": 6,
    "__get_kernel_work_group_size_impl": 0,
    "__get_kernel_preferred_work_group_size_multiple_impl": 0,
    "__get_kernel_sub_group_count_for_ndrange_impl": 1,
    "__get_kernel_max_sub_group_size_for_ndrange_impl": 1,
}
# Parts of names that the back end takes for something else, and what stands for them.
_OTHERS = (("12ocl_clkevent", "12cld_clkevent"), ("9ocl_queue", "9cld_queue"))
_NDRANGE, _OWN_NDRANGE = "_Z10ndrange_", "_Z14cld_ndrange_"

_NAME = r'("[^"]*"|[-\w.$]+)'
_FUNCTION = re.compile(rf"@{_NAME}")
_CALL = re.compile(rf"(  (?:%{_NAME} = )?(?:tail )?call spir_func \S+) @(\w+)\(")
_DECLARED = re.compile(r"(declare spir_func \S+) @(\w+)\(")
# The first two members: of a block on the stack, and of one without captures.
_MEMBER = re.compile(
    rf"  %{_NAME} = getelementptr [^%@]*<\{{ i32, i32, .*\}}>, ptr %{_NAME}, i32 0, i32 ([01])\b"
)
_STORED = re.compile(rf"  store i32 (\d+), ptr %{_NAME},")
_CAST = re.compile(rf"  %{_NAME} = addrspacecast ptr %{_NAME} to ptr addrspace\(4\)")
_LITERAL = re.compile(rf"@{_NAME} = .*constant \{{ i32, i32, [^{{]*\}} \{{ i32 (\d+), i32 (\d+),")
_VALUE = re.compile(rf"[@%]{_NAME}")
_ADDRESS = re.compile(r'addrspacecast \(ptr @[-\w.$"]*_block_invoke[-\w.$"]* to ptr addrspace\(4\)\)')


def named(text: str) -> str | None:
    """The module with names in the place of addresses; None if it enqueues no blocks."""
    if not any(f"@{callee}(" in text for callee in _CALLEES):
        return None
    lines = text.split("\n")
    types = {
        match[2]: (match[1], _arguments(line, match.end())[0])
        for line in lines
        if (match := _DECLARED.match(line)) and match[2] in _CALLEES
    }
    declared: dict[str, str] = {}
    out = []
    for line, sizes in _with_sizes(lines):
        match = _CALL.match(line)
        if match and match[3] in types:
            line = _named_call(line, match, sizes, types[match[3]], declared)
        out.append(_renamed(_ADDRESS.sub("null", line)))
    called = {match[3] for line in out if (match := _CALL.match(line))}
    out = [line for line in out if not ((m := _DECLARED.match(line)) and m[2] in types.keys() - called)]
    return "\n".join([*out, *declared.values(), ""])


def _with_sizes(lines: list[str]) -> Iterable[tuple[str, dict[str, list[int]]]]:
    """Each line, and what is known there of blocks: the size and the alignment, by the value's name."""
    literals = {f"@{m[1]}": [int(m[2]), int(m[3])] for line in lines if (m := _LITERAL.match(line))}
    sizes: dict[str, list[int]] = {}
    members: dict[str, tuple[str, int]] = {}
    for line in lines:
        if line.startswith("define "):
            sizes, members = dict(literals), {}
        elif match := _MEMBER.match(line):
            members[match[1]] = match[2], int(match[3])
        elif (match := _STORED.match(line)) and match[2] in members:
            block, number = members[match[2]]
            sizes.setdefault(f"%{block}", [0, 0])[number] = int(match[1])
        elif (match := _CAST.match(line)) and f"%{match[2]}" in sizes:
            sizes[f"%{match[1]}"] = sizes[f"%{match[2]}"]
        yield line, sizes


def _named_call(
    line: str,
    match: re.Match[str],
    sizes: dict[str, list[int]],
    type_: tuple[str, list[str]],
    declared: dict[str, str],
) -> str:
    """A call of a function that has the kernel's name in its own, which is declared; the same call if it is
    not seen which kernel it is."""
    arguments, end = _arguments(line, match.end())
    at = _CALLEES[match[3]]
    kernel, block = _FUNCTION.search(arguments[at]), _VALUE.search(arguments[at + 1])
    if kernel is None or block is None or block[0] not in sizes:
        return line
    name = f'@"__cld{match[3]}.{kernel[1].strip(chr(34))}"'
    given = [*arguments[:at], *arguments[at + 1 :], *(f"i32 {number}" for number in sizes[block[0]])]
    before, parameters = type_
    parameters = [*parameters[:at], *parameters[at + 1 :], "i32", "i32"]
    declared[name] = f"{before} {name}({', '.join(parameters)})"
    return f"{match[1]} {name}({', '.join(given)}){line[end:]}"


def _arguments(line: str, start: int) -> tuple[list[str], int]:
    """What is between a parenthesis and the one that closes it, and where that ends."""
    found, depth, begin = [], 0, start
    for place in range(start, len(line)):
        character = line[place]
        if character in "([{<":
            depth += 1
        elif character in ")]}>":
            depth -= 1
        if depth < 0 or (character == "," and not depth):
            found.append(line[begin:place].strip())
            begin = place + 1
        if depth < 0:
            return found, begin
    return found, len(line)


def _renamed(line: str) -> str:
    """With other names for functions of which the back end must not see their own."""
    if not line.startswith(("declare ", "define ", "  ")):
        return line
    return _FUNCTION.sub(lambda match: f"@{_other_name(match[1])}", line)


def _other_name(name: str) -> str:
    if name.startswith(_NDRANGE):
        name = _OWN_NDRANGE + name.removeprefix(_NDRANGE)
    for part, other in _OTHERS:
        name = name.replace(part, other)
    return name
