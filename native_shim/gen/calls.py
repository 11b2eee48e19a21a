"""Writes what stands before each entry point where there is a log: a function that keeps the arguments of the
call, so that a check that fails anywhere below can name the call and the arguments that are wrong."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from gen.headers import Prototype, parameters

_DEFINITION = re.compile(r"CL_API_ENTRY\s+([\w\s*]+?)\s*CL_API_CALL\s+(cl[A-Z]\w*)\s*\(([^{;]*)\)\s*\{")
_RETAIN_RELEASE = re.compile(r"^RETAIN_RELEASE\((\w+), (\w+),", re.MULTILINE)

# The letters of arguments in a form (object/call.c): handles, strings, sizes of each dimension, lists of
# properties, descriptions of images, their formats, other pointers, signed and unsigned numbers, and what is
# told in hexadecimal: bits and names.
_HANDLES = "platform_id|device_id|context|command_queue|mem|program|kernel|event|sampler"
_LETTERS = (
    (rf"cl_({_HANDLES}|command_buffer_khr|mutable_command_khr|semaphore_khr) \w+", "h"),
    (r"const char \*\w+", "s"),
    (r"const size_t \*(lengths|sizes)", "p"),  # as many as another argument says
    (r"const size_t \*\w+", "z"),
    (r"const (cl_\w+_propert(y|ies)\w*|cld_svm_\w+_property) \*\w+", "l"),
    (r"const cl_image_desc \*\w+", "d"),
    (r"const cl_image_format \*\w+", "f"),
    (r".*[*(].*", "p"),
    (r"(size_t|cl_uint|cl_ulong) (?!param_name|image_type)\w+", "u"),
    (r"(cl_int|int) \w+", "i"),
    (r".*", "x"),
)


def _prototype(name: str, result: str, arguments: str) -> Prototype:
    """Handles that C code calls so are named by their type, as in the specification."""
    named = re.sub(r"\b(cl_(\w+?)(?:_id|_khr)?) (?:\w+_)?handle\b", r"\1 \2", arguments)
    return Prototype(name, " ".join(result.split()), parameters(named))


def read(sources: Iterable[Path]) -> dict[str, Prototype]:
    """The entry points that C files define, by name."""
    found = {}
    for path in sources:
        text = path.read_text().replace("CL_CALLBACK ", "")
        for result, name, arguments in _DEFINITION.findall(text):
            found[name] = _prototype(name, result, arguments)
        for name, kind in _RETAIN_RELEASE.findall(text):
            for verb in ("Retain", "Release"):
                found[f"cl{verb}{name}"] = _prototype(f"cl{verb}{name}", "cl_int", f"{kind} handle")
    return found


def form(prototype: Prototype) -> str:
    """The name of a call and those of its arguments, each with its letter."""
    words = [prototype.name]
    for parameter in prototype.parameters:
        declaration = parameter.declaration.replace("* ", "*")
        words.append(next(f"{c}{parameter.name}" for rule, c in _LETTERS if re.fullmatch(rule, declaration)))
    return " ".join(words)


def _function(prototype: Prototype) -> list[str]:
    names = [p.name for p in prototype.parameters]
    has_code = "errcode_ret" in names
    call = f"{prototype.name}({', '.join('&code' if n == 'errcode_ret' else n for n in names)})"
    values = ", ".join(f"(uintptr_t){name}" for name in names) or "0"
    lines = [
        f"__attribute__((cold)) static {prototype.signature('logged_' + prototype.name)} {{",
        f"    const uintptr_t values[] = {{{values}}};",
        "    struct cld_call call;",
        "    cl_int code = CL_SUCCESS;",
        f'    cld_call_begin(&call, "{form(prototype)}", values, __builtin_return_address(0));',
    ]
    if prototype.result == "void":
        lines.append(f"    {call};")
    elif prototype.result == "cl_int":
        lines.append(f"    code = {call};")
    else:
        lines += [f"    {prototype.result} result = {call};", "    call.result = (uintptr_t)result;"]
    lines.append("    cld_call_end(&call, code);")
    if has_code:
        lines += ["    if (errcode_ret)", "        *errcode_ret = code;"]
    if prototype.result != "void":
        lines.append(f"    return {'code' if prototype.result == 'cl_int' else 'result'};")
    return [*lines, "}", ""]


def generate(prototypes: Iterable[Prototype]) -> list[str]:
    """The lines of these functions, and of the one that finds them."""
    lines = []
    for prototype in prototypes:
        lines += _function(prototype)
    return [
        *lines,
        "void *cld_logged(void *function) {",
        "    static void *const logged[][2] = {",
        *(f"        {{F({p.name}), F(logged_{p.name})}}," for p in prototypes),
        "    };",
        "    for (size_t i = 0; i < sizeof logged / sizeof *logged; i++)",
        "        if (logged[i][0] == function)",
        "            return logged[i][1];",
        "    return function;",
        "}",
        "",
    ]
