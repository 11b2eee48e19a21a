"""The build, compile and link options of OpenCL 3.1 (API specification, sections 5.8.6 and 5.8.7).

Parsed once, in the host's process, so that a wrong option is an error code of the call itself: this module
imports nothing that costs time. What an option does is spread over two stages: `clang_arguments` here, and
the attributes that the code generator reads.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import TypeAlias

    Version: TypeAlias = tuple[int, int]
    Definition: TypeAlias = tuple[str, str | None]
    Field: TypeAlias = bool | str | Version | tuple[str, ...] | tuple[Definition, ...]
    Flags: TypeAlias = Mapping[str, tuple[str, ...]]

BUILD, COMPILE, LINK = "build", "compile", "link"

# How the log of a build begins, behind "error: ", where there is no compiler to build source with.
NO_COMPILER = "No clang of version"


def lacks_compiler(log: str) -> bool:
    """Whether that is why a build has failed, by its log."""
    return log.startswith(f"error: {NO_COMPILER}")


class OptionError(ValueError):
    """An option that is not valid, with the reason: CL_INVALID_BUILD/COMPILER/LINKER_OPTIONS."""


# name: default. Order is the order of the key.
FIELDS: dict[str, Field] = {
    "definitions": (),
    "include_folders": (),
    "standard": (1, 2),
    "cpp": "",
    "standard_given": False,
    "warnings_off": False,
    "warnings": (),
    "single_precision_constant": False,
    "denorms_are_zero": False,
    "fp32_correctly_rounded_divide_sqrt": False,
    "opt_disable": False,
    "mad_enable": False,
    "no_signed_zeros": False,
    "unsafe_math_optimizations": False,
    "finite_math_only": False,
    "fast_relaxed_math": False,
    "uniform_work_group_size": False,
    "no_subgroup_ifp": False,
    "kernel_arg_info": False,
    "debug": False,
    "create_library": False,
    "enable_link_options": False,
    "spir": False,
    "zero_local": False,
    "zero_private": False,
    "terminate": False,
    "remote": False,
}

# What the properties of a context ask for, and REMOTE. Programs cannot give them as options: the driver puts
# them before what they give (for_context()).
REMOTE = "-cld-remote"
CONTEXT_WORDS: Flags = {
    "-cld-zero-local": ("zero_local",),
    "-cld-zero-private": ("zero_private",),
    "-cld-terminate": ("terminate",),
    REMOTE: ("remote",),
}

# What each option sets, by where it is allowed.
_MATH: Flags = {
    "-cl-denorms-are-zero": ("denorms_are_zero",),
    "-cl-no-signed-zeros": ("no_signed_zeros",),
    # "This option includes the -cl-no-signed-zeros and -cl-mad-enable options."
    "-cl-unsafe-math-optimizations": ("unsafe_math_optimizations", "no_signed_zeros", "mad_enable"),
    "-cl-finite-math-only": ("finite_math_only",),
    # "Sets the optimization options -cl-finite-math-only and -cl-unsafe-math-optimizations."
    "-cl-fast-relaxed-math": (
        "fast_relaxed_math",
        "finite_math_only",
        "unsafe_math_optimizations",
        "no_signed_zeros",
        "mad_enable",
    ),
    "-cl-no-subgroup-ifp": ("no_subgroup_ifp",),
}
_COMPILER_FLAGS: Flags = {
    **_MATH,
    "-w": ("warnings_off",),
    "-cl-single-precision-constant": ("single_precision_constant",),
    "-cl-fp32-correctly-rounded-divide-sqrt": ("fp32_correctly_rounded_divide_sqrt",),
    "-cl-opt-disable": ("opt_disable",),
    "-cl-strict-aliasing": (),  # deprecated; OpenCL C's rules are what the compiler follows anyway
    "-cl-mad-enable": ("mad_enable",),
    "-cl-uniform-work-group-size": ("uniform_work_group_size",),
    "-cl-kernel-arg-info": ("kernel_arg_info",),
    "-g": ("debug",),
}
_LINKER_FLAGS: Flags = {
    **_MATH,
    "-create-library": ("create_library",),
    "-enable-link-options": ("enable_link_options",),
    # Not on the specification's list of link options, but passed by programs that give one string to both.
    "-cl-mad-enable": ("mad_enable",),
    "-cl-kernel-arg-info": ("kernel_arg_info",),
    "-cl-opt-disable": ("opt_disable",),
    "-cl-fp32-correctly-rounded-divide-sqrt": ("fp32_correctly_rounded_divide_sqrt",),
    "-g": ("debug",),
}
_STANDARDS: dict[str, Version] = {
    "CL1.0": (1, 0),
    "CL1.1": (1, 1),
    "CL1.2": (1, 2),
    "CL2.0": (2, 0),
    "CL3.0": (3, 0),
    "CL3.1": (3, 1),
    "CLC++": (2, 0),
    "CLC++1.0": (2, 0),
    "CLC++2021": (3, 0),
}
_CODE: Flags = {
    **_MATH,
    "-cl-fp32-correctly-rounded-divide-sqrt": ("fp32_correctly_rounded_divide_sqrt",),
    "-cl-mad-enable": ("mad_enable",),
    "-cl-opt-disable": ("opt_disable",),
    "-cl-uniform-work-group-size": ("uniform_work_group_size",),
}


# What C compilers of OpenCL's first years warned of, and programs of then still do.
LENIENT = (
    "-Wno-error=incompatible-pointer-types",
    "-Wno-error=int-conversion",
    "-Wno-error=incompatible-function-pointer-types",
    "-Wno-error=return-type",
)


_INLINE = ("inline", "__inline", "__inline__")


class BuildOptions:
    """What an options string says: FIELDS as attributes. Hashable; equal options compile equally."""

    __slots__ = tuple(FIELDS)

    definitions: tuple[Definition, ...]  # names and texts; None removes the macro
    include_folders: tuple[str, ...]
    standard: Version  # of OpenCL C; C++ for OpenCL is `cpp`
    cpp: str  # "CLC++1.0", "CLC++2021"
    standard_given: bool
    warnings_off: bool  # -w
    warnings: tuple[str, ...]  # -Werror, -Wall, -Wno-...
    single_precision_constant: bool
    denorms_are_zero: bool
    fp32_correctly_rounded_divide_sqrt: bool
    opt_disable: bool
    mad_enable: bool
    no_signed_zeros: bool
    unsafe_math_optimizations: bool
    finite_math_only: bool
    fast_relaxed_math: bool
    uniform_work_group_size: bool
    no_subgroup_ifp: bool
    kernel_arg_info: bool
    debug: bool  # -g
    create_library: bool
    enable_link_options: bool
    spir: bool  # -x spir
    zero_local: bool  # local memory is zeros when a work-group begins
    zero_private: bool  # private memory is zeros where the program does not say what it is
    terminate: bool  # kernels end when their context is terminated
    remote: bool  # for workers of a cluster, which offer less (device/remote.py)

    def __init__(self, **given: Field) -> None:
        for name, default in FIELDS.items():
            setattr(self, name, given.pop(name, default))
        if given:
            raise TypeError(f"no such option: {', '.join(given)}")

    def values(self) -> tuple[Field, ...]:
        """All of them, in the order of FIELDS."""
        return tuple(getattr(self, name) for name in FIELDS)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BuildOptions) and self.values() == other.values()

    def __hash__(self) -> int:
        return hash(self.values())

    def __repr__(self) -> str:
        changed = [f"{n}={v!r}" for n, v in zip(FIELDS, self.values(), strict=True) if v != FIELDS[n]]
        return f"BuildOptions({', '.join(changed)})"

    def replace(self, **changes: Field) -> BuildOptions:
        """A copy with changes. TypeError for one that is no option."""
        return BuildOptions(**{**dict(zip(FIELDS, self.values(), strict=True)), **changes})

    def code_options(self) -> frozenset[str]:
        """The options that also concern what is made of the SPIR-V later, each with all that it includes."""
        return frozenset(option for option, names in _CODE.items() if all(getattr(self, n) for n in names))

    def clang_arguments(self, fma: bool = True) -> list[str]:
        """Arguments for clang, all but those of the device (clang.py).

        fma: the CPU multiplies and adds in one instruction. Then clang contracts within expressions, as the
        FP_CONTRACT pragma says (on by default, OpenCL C 6.1); the code generator contracts no further unless
        an option allows it. Without the instruction a contracted operation would be far slower than two.
        """
        arguments = [*self.language]
        # C99 leaves calls of a plain `inline` function to a definition elsewhere if they are not inlined, as
        # other drivers do completely, on which programs rely (PyOpenCL's complex numbers). Exported instead,
        # the function of a header would clash with that of the next program.
        arguments += self.inlining
        if self.opt_disable and not self.cpp:
            arguments += (f"-D{word}={word} __attribute__((always_inline))" for word in _INLINE)
            arguments.append("-Wno-macro-redefined")
        for name, text in self.definitions:
            arguments.append(f"-U{name}" if text is None else f"-D{name}={text}")
        arguments += (f"-I{folder}" for folder in self.include_folders)
        if "-Werror" not in self.warnings:
            arguments += LENIENT
        arguments += self.warnings
        if self.warnings_off:
            arguments.append("-w")
        if self.single_precision_constant:
            arguments.append("-cl-single-precision-constant")
        if self.fast_relaxed_math:
            arguments.append("-cl-fast-relaxed-math")
        else:
            if self.unsafe_math_optimizations:
                arguments.append("-cl-unsafe-math-optimizations")
            if self.finite_math_only:
                arguments.append("-cl-finite-math-only")
            if self.no_signed_zeros:
                arguments.append("-cl-no-signed-zeros")
        if self.uniform_work_group_size and self.standard >= (2, 0):
            arguments.append("-cl-uniform-work-group-size")
        if self.kernel_arg_info:
            arguments.append("-cl-kernel-arg-info")
        if self.zero_private:
            arguments.append("-ftrivial-auto-var-init=zero")
        if self.debug and self.opt_disable:
            arguments.append("-fno-discard-value-names")  # those of variables
        arguments.append(f"-ffp-contract={'on' if fma else 'off'}")
        arguments.append(self.optimisation)
        return arguments

    @property
    def language(self) -> tuple[str, ...]:
        """The version of OpenCL C, and what clang lacks of it.

        clang knows no 3.1. That is 3.0 with functions of extensions, which every program gets (clang.py),
        length modifiers of printf, which clang takes in every version, and these macros.
        """
        if self.standard != (3, 1):
            return ("-cl-std=" + (self.cpp or f"CL{self.standard[0]}.{self.standard[1]}"),)
        macro = "__OPENCL_C_VERSION__"
        return "-cl-std=CL3.0", f"-U{macro}", f"-D{macro}=310", "-DCL_VERSION_3_1=310"

    @property
    def optimisation(self) -> str:
        """clang's level."""
        return "-O0" if self.opt_disable else "-O2"

    @property
    def inlining(self) -> tuple[str, ...]:
        """What lets clang inline each plain `inline` function, wherever it optimises, also in seldom code."""
        thresholds = "-inlinehint-threshold=100000000", "-inline-cold-callsite-threshold=100000000"
        return () if self.opt_disable else ("-mllvm", thresholds[0], "-mllvm", thresholds[1])


def tokens(text: str) -> list[str]:
    """Splits an options string at white space.

    Double quotes group and disappear; a backslash makes a quote, a backslash or a space literal, and is
    itself elsewhere. Single quotes group where a token or the value of -D or -I begins, and stand for
    themselves elsewhere, as in -DSEPARATOR=','. Raises OptionError for a quote that does not end.
    """
    out: list[str] = []
    current: list[str] | None = None
    quote = ""
    i = 0
    while i < len(text):
        c = text[i]
        if c == "\\" and i + 1 < len(text) and text[i + 1] in "\"'\\ " and quote != "'":
            i += 1
            current = [*(current or []), text[i]]
        elif quote:
            if c == quote:
                quote = ""
            else:
                current = [*(current or []), c]
        elif c == '"' or (c == "'" and "".join(current or []) in ("", "-D", "-I")):
            quote = c
            current = current or []
        elif c.isspace() or c == "\0":
            if current is not None:
                out.append("".join(current))
            current = None
        elif current is None:
            current = [c]
        else:
            current.append(c)
        i += 1
    if quote:
        raise OptionError(f"a {quote} without its partner")
    if current is not None:
        out.append("".join(current))
    return out


def for_context(words: Iterable[str], text: str) -> str:
    """The options of an application with those of its context."""
    return " ".join([*words, text])


def without_context(text: str) -> tuple[list[str], str]:
    """What for_context() has put together: the words, and what the application gave."""
    words: list[str] = []
    while True:
        word, _, rest = text.partition(" ")
        if word not in CONTEXT_WORDS:
            return words, text
        words.append(word)
        text = rest


def without_remote(text: str) -> str:
    """Options of for_context() for what is made of SPIR-V: the language of its source no longer matters."""
    words, given = without_context(text)
    return for_context((word for word in words if word != REMOTE), given)


def parse(text: str | None, stage: str = BUILD, has_context: bool = False) -> BuildOptions:
    """The options of clBuildProgram, clCompileProgram or clLinkProgram (5.8.6 and 5.8.7).

    text: as the application gave it, None for none; stage: BUILD, COMPILE or LINK; has_context: it is one of
    for_context(). Raises OptionError.
    """
    flags = _LINKER_FLAGS if stage == LINK else _COMPILER_FLAGS
    if has_context:
        flags = {**flags, **CONTEXT_WORDS}
    values: dict[str, Field] = {}
    definitions: list[Definition] = []
    folders: list[str] = []
    warnings: list[str] = []
    words = iter(tokens(text or ""))
    for word in words:
        if word in flags:
            values.update(dict.fromkeys(flags[word], True))
        elif stage == LINK:
            raise OptionError(f"{word!r} is not a link option")
        elif word[:2] in ("-D", "-U", "-I"):
            value = word[2:] or next(words, None)
            if not value:
                raise OptionError(f"{word[:2]} without a value")
            if word[:2] == "-I":
                folders.append(value)
            else:
                definitions.append(_definition(value) if word[:2] == "-D" else (_name(value), None))
        elif word.startswith("-cl-std="):
            standard = word[len("-cl-std=") :].upper()
            if standard not in _STANDARDS:
                raise OptionError(f"{word!r} names no version of OpenCL C")
            values["standard"], values["standard_given"] = _STANDARDS[standard], True
            values["cpp"] = standard if standard.startswith("CLC++") else ""
        elif word == "-x":
            language = next(words, None)
            if language not in ("spir", "cl", "clc", "clc++"):
                raise OptionError(f"-x {language or ''} is not a language of OpenCL")
            values["spir"] = language == "spir"
        elif word.startswith("-spir-std="):
            if word[len("-spir-std=") :] not in ("1.2", "2.0"):
                raise OptionError(f"{word!r} names no version of SPIR")
        elif word == "-Werror" or word.startswith(("-Wno-", "-Werror=")) or word in ("-Wall", "-Wextra"):
            warnings.append(word)
        elif word in ("-O0", "-O1", "-O2", "-O3", "-Os"):
            # Not OpenCL's, but harmless and common; -O0 is -cl-opt-disable.
            values["opt_disable"] = word == "-O0"
        else:
            raise OptionError(f"{word!r} is not a {'build' if stage == BUILD else 'compile'} option")
    return BuildOptions(
        definitions=tuple(definitions), include_folders=tuple(folders), warnings=tuple(warnings), **values
    )


def _name(name: str) -> str:
    """A macro name, or that of a function-like macro with its parameters."""
    plain = name.split("(", 1)[0]
    if not plain.replace("$", "_").isidentifier():
        raise OptionError(f"{plain!r} is not a macro name")
    return name


def _definition(text: str) -> tuple[str, str]:
    """name=definition; without one the definition is 1.

    "The contents of definition are tokenized and processed as if they appeared during translation phase three
    in a #define directive. In particular, the definition will be truncated by embedded newline characters."
    """
    name, equals, value = text.partition("=")
    return _name(name), value.split("\n", 1)[0] if equals else "1"
