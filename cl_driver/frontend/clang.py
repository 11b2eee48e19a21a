"""Runs clang as a child: OpenCL C source to SPIR-V and a log."""

from __future__ import annotations

import os
import resource
from collections import namedtuple
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache

from ..jit import clang_paths
from ..late_patterns import pattern
from . import corrections, effort, includes, prelude, resident
from .clang_start import environment
from .find_clang import Clang, ClangError, find, settle
from .options import BuildOptions

SOURCE_NAME = "program.cl"  # in diagnostics


class Language(namedtuple("Language", "extensions features images fma half_fma version")):
    """What the device offers to programs; device/capabilities.py knows.

    extensions: cl_khr_... names, each a macro; features: __opencl_c_... macros, which only programs
    of OpenCL C 3.0 and later see; images: CL_DEVICE_IMAGE_SUPPORT; fma, half_fma: fused multiply-add is
    fast; version: __OPENCL_VERSION__.
    """

    __slots__ = ()

    extensions: tuple[str, ...]
    features: tuple[str, ...]
    images: bool
    fma: bool
    half_fma: bool
    version: tuple[int, int]

    def __new__(
        cls,
        extensions: Iterable[str] = ("cl_khr_byte_addressable_store", "cl_khr_fp64"),
        features: Iterable[str] = ("__opencl_c_fp64", "__opencl_c_int64"),
        images: bool = False,
        fma: bool = True,
        half_fma: bool = False,
        version: tuple[int, int] = (3, 0),
    ) -> Language:
        """The defaults are what every device of OpenCL C 3.0 with double precision has."""
        return super().__new__(cls, tuple(extensions), tuple(features), images, fma, half_fma, tuple(version))


class FrontendResult(namedtuple("FrontendResult", "spirv log files", defaults=(includes.Files(),))):
    """spirv: None if the program is wrong, and log says why. files: what else it depends on."""

    __slots__ = ()

    spirv: bytes | None
    log: str
    files: includes.Files

    @property
    def dependencies(self) -> tuple[str, ...]:
        """Absolute paths of the files that the source includes, headers given by the program and clang's own
        left out."""
        return self.files.read


# Extensions of SPIR-V that clang may use where the program asks for what they offer.
SPIRV_EXTENSIONS = (
    "SPV_KHR_no_integer_wrap_decoration",
    "SPV_KHR_linkonce_odr",
    "SPV_KHR_expect_assume",
    "SPV_KHR_bit_instructions",
    "SPV_KHR_integer_dot_product",
    "SPV_EXT_shader_atomic_float16_add",
    "SPV_EXT_shader_atomic_float_add",
    "SPV_EXT_shader_atomic_float_min_max",
    "SPV_INTEL_optnone",
    "SPV_INTEL_bfloat16_conversion",
    "SPV_INTEL_long_composites",
    "SPV_KHR_shader_clock",
    "SPV_KHR_subgroup_rotate",
    "SPV_KHR_uniform_group_instructions",
    "SPV_INTEL_subgroups",
    "SPV_INTEL_split_barrier",
    "SPV_EXT_relaxed_printf_string_address_space",
    # Without it integers of other sizes than SPIR-V has become larger ones, and nothing cuts off the rest.
    "SPV_ALTERA_arbitrary_precision_integers",
)
EXTENSIONS_OPTION = "-spirv-ext="
_UNKNOWN_EXTENSION = pattern(r"Unknown SPIR-V extension: \+?(\w+)")
# By the clang's identity: names that it has said it does not know.
_unknown_extensions: dict[str, set[str]] = {}


def _extensions_option(clang: Clang) -> str:
    """SPIRV_EXTENSIONS as an option, without those that this clang, an older one, has refused."""
    unknown = _unknown_extensions.get(clang.identity, ())
    return EXTENSIONS_OPTION + ",".join("+" + e for e in SPIRV_EXTENSIONS if e not in unknown)


def _learn_unknown_extension(clang: Clang, errors: str) -> bool:
    """Whether clang gave up because of a name in the option, now left out. It names one at a time."""
    found = _UNKNOWN_EXTENSION.search(errors)
    unknown = _unknown_extensions.setdefault(clang.identity, set())
    if found is None or found[1] in unknown or found[1] not in SPIRV_EXTENSIONS:
        return False
    unknown.add(found[1])
    return True


@lru_cache(maxsize=2)
def device_language(is_remote: bool = False) -> Language:
    """What the device of this machine reports, or a worker of a cluster: the same rows that its queries come
    from."""
    from ..device import capabilities, cpu

    host = cpu.host_cpu()
    extensions, features = tuple(capabilities.extensions(host)), capabilities.features(host)
    version = capabilities.OPENCL_VERSION
    if is_remote:
        from ..device import remote

        extensions = tuple(name for name in extensions if name in remote.EXTENSIONS)
        features = tuple(name for name in features if name in remote.FEATURES)
        version = remote.OPENCL_VERSION
    return Language(
        extensions=extensions,
        features=features,
        images="__opencl_c_images" in features,
        fma=host.has_fma,
        half_fma=host.has_native_half,
        version=version,
    )


def load(setting: str = "") -> None:
    """Has the clang that programs need stay, for forks of this process. setting: CL_DRIVER_CLANG."""
    try:
        resident.load(find(setting).path, environment())
    except ClangError:
        pass  # the program that needs it will say so


# Of clang's own, what programs get without naming it, and what they may name.
_HEADERS = ("opencl-c-base.h", "opencl-c.h")


def confine(setting: str, rights: str, root: int) -> None:
    """From now on this process has a clang with other rights and another root folder, and can start no other
    (resident.confine()). Raises OSError, ClangError and CorrectionsError."""
    clang = find(setting)
    if clang_paths.is_zig(clang.path):
        raise OSError(f"{clang.path} is one file, into which nothing can be loaded that confines it")
    folders = os.path.dirname(os.path.dirname(os.path.realpath(clang.path)))
    resources = os.path.join(folders, "lib", "clang", str(clang.major), "include")
    own = [os.path.join(resources, name) for name in _HEADERS]
    own += corrections.settle(clang.path, clang.major)
    resident.confine(clang.path, environment(), rights, root, resources, own)
    settle(clang)


def marked_source(
    source: bytes,
    options: BuildOptions,
    language: Language,
    with_functions: bool = True,
    with_intel: bool = False,
) -> bytes:
    """The text for clang: prelude, then the program under its own name and from line 1."""
    before = prelude.text(options.standard, language, with_functions, with_intel)
    return before + f'# 1 "{SOURCE_NAME}"\n'.encode() + source.removeprefix(b"\xef\xbb\xbf") + b"\n"


# Of OpenCL C 3.0, but also what extensions define that have no such version.
_FEATURES_OF_EXTENSIONS = frozenset((
    "__opencl_c_integer_dot_product_input_4x8bit", "__opencl_c_integer_dot_product_input_4x8bit_packed",
    "__opencl_c_kernel_clock_scope_device", "__opencl_c_kernel_clock_scope_sub_group",
    "__opencl_c_kernel_clock_scope_work_group",
))  # fmt: skip


# "This extension defines a new language [...]. As such, there will be no preprocessor #define matching the
# extension name string."
_LANGUAGE = "cl_ext_cxx_for_opencl"


def device_arguments(language: Language, options: BuildOptions) -> list[str]:
    """The macros and language features of the device, exactly."""
    names = [name for name in language.extensions if name != _LANGUAGE]
    if options.standard >= (2, 0):
        names += language.features  # macros of OpenCL C 3.0; clang wants them for 2.0's functions, too
    if options.standard < (1, 2):
        names.append("cl_clang_storage_class_specifiers")  # see prelude.py
    arguments = ["-Xclang", "-cl-ext=" + ",".join(["-all", *("+" + name for name in names)])]
    # clang makes a macro of what it knows, from the version of OpenCL C on that it thinks it is for. With the
    # macro it declares the functions, in every version.
    macros = list(names)
    if options.standard < (2, 0):
        macros += (name for name in language.features if name in _FEATURES_OF_EXTENSIONS)
    if options.standard < (3, 0) and "__opencl_c_subgroups" in language.features:
        macros.append("__opencl_c_subgroups")  # clang's header has functions and a memory scope for it
    arguments += (f"-D{name}=1" for name in macros)
    arguments.append(f"-D__OPENCL_VERSION__={language.version[0]}{language.version[1]}0")
    if not language.images:
        arguments.append("-U__IMAGE_SUPPORT__")
    if language.fma:
        arguments += ("-DFP_FAST_FMAF=1", "-DFP_FAST_FMA=1")
    if language.half_fma:
        arguments.append("-DFP_FAST_FMA_HALF=1")
    return arguments


def base_arguments(clang: Clang, language: str = "cl") -> list[str]:
    """The same for every program.

    Vectorising, and widening loops for scalar CPUs, is the code generator's work and would hide the program's
    shape from it; so would loop strength reduction, which the SPIR-V back end runs. `#pragma unroll` without
    a number unrolls loops as often as they run: where that is not known, clang would make eight copies of the
    body, all of which are to be compiled, and vector code is no faster by them.
    """
    return [
        *clang_paths.command(clang.path),
        "-target",
        "spirv64",
        "-x",
        language,
        "-fno-vectorize",
        "-fno-slp-vectorize",
        "-mllvm",
        "-disable-lsr",
        "-mllvm",
        "-unroll-max-count=1",  # of loops of which only a part of the runs would be unrolled
        "-mllvm",
        _extensions_option(clang),
        "-ferror-limit=100",
        "-fno-color-diagnostics",
        "-fno-crash-diagnostics",  # the program, in files that stay
    ]


def link_arguments(clang: Clang, parts: Iterable[corrections.Part] = corrections.Part) -> list[str]:
    """Bodies of the functions that clang's back end gets wrong. Raises corrections.CorrectionsError."""
    libraries = (corrections.path(clang.path, clang.major, part) for part in parts)
    return [word for each in libraries for word in ("-Xclang", "-mlink-bitcode-file", "-Xclang", each)]


class Run(namedtuple("Run", "output errors status files kernels", defaults=(None,))):
    """What a run of clang gave; status None: it was stopped, and errors say why. files, kernels: see
    includes.py."""

    __slots__ = ()

    output: bytes
    errors: str
    status: int | None
    files: includes.Files
    kernels: list[str] | None


def run(
    clang: Clang,
    arguments: list[str],
    source: bytes,
    headers: dict[str, bytes],
    folder: str | None,
    allowance: effort.Allowance | None = None,
    is_whole: bool | None = False,
    as_before: dict[str, bytes] | None = None,
) -> Run:
    """Runs clang with the source on its standard input; the result comes from its standard output.

    headers: name in #include to text, for clCompileProgram. folder: the working folder, to which relative
    include folders refer. is_whole: nothing will be linked with it; None: perhaps nothing (Files.is_cut).
    as_before: contents of files, by path, that are others on disk now. Raises OSError if it cannot be run,
    ValueError for names of headers that lead out of the program.
    """
    with _folder_of(headers) as private, _overlay_of(as_before or {}) as overlay:
        if private:
            arguments = [*arguments[:-1], "-I", private, arguments[-1]]
        if overlay:
            arguments = [*arguments[:-1], "-ivfsoverlay", overlay, arguments[-1]]
        listing = _listing() if resident.is_program(arguments) else -1
        try:
            output, errors, status, is_cut = _spawn(arguments, source, folder, listing, allowance, is_whole)
            while status and _learn_unknown_extension(clang, errors):
                option = _extensions_option(clang)
                arguments = [option if a.startswith(EXTENSIONS_OPTION) else a for a in arguments]
                if listing >= 0:
                    os.ftruncate(listing, 0)
                output, errors, status, is_cut = _spawn(
                    arguments, source, folder, listing, allowance, is_whole
                )
            files = includes.read(listing, source, private, folder)._replace(is_cut=is_cut)
            kernels = includes.of_kernels(listing)
        finally:
            if listing >= 0:
                os.close(listing)
        if errors and status is not None:
            from .log import without_quotes  # with the list closed: its descriptor may be the last one

            folders = [a[2:] for a in arguments if a.startswith("-I")] + [private] * bool(private)
            errors = without_quotes(errors, SOURCE_NAME, folders, folder)
    return Run(output, errors, status, files, kernels)


@contextmanager
def _folder_of(headers: dict[str, bytes]) -> Iterator[str]:
    """A folder with the program's headers while clang runs; "" if there are none."""
    if not headers:
        yield ""
        return
    import tempfile

    with tempfile.TemporaryDirectory(prefix="cl_driver-") as private:
        includes.write_headers(private, headers)
        yield private


@contextmanager
def _overlay_of(files: dict[str, bytes]) -> Iterator[str]:
    """A file that has clang find those contents under those paths (-ivfsoverlay); "" if there are none."""
    if not files:
        yield ""
        return
    import json
    import tempfile

    with tempfile.TemporaryDirectory(prefix="cl_driver-") as private:
        roots = []
        for number, (path, content) in enumerate(files.items()):
            place = os.path.join(private, str(number))
            with open(place, "wb") as file:
                file.write(content)
            roots.append({"name": path, "type": "file", "external-contents": place})
        overlay = os.path.join(private, "overlay")
        with open(overlay, "w", encoding="utf-8", errors="surrogateescape") as file:
            json.dump({"version": 0, "use-external-names": False, "roots": roots}, file, ensure_ascii=False)
        yield overlay


_LISTING = 1 << 20  # bytes that a listing may have


def _listing() -> int:
    """A file for what the program includes; -1 if it cannot be had: then nobody knows what it includes."""
    most, _ = resource.getrlimit(resource.RLIMIT_FSIZE)  # of files in memory, too; clang would die of it
    if most != resource.RLIM_INFINITY and most < _LISTING:
        return -1
    try:
        return os.memfd_create("files")
    except OSError:
        return -1


def _spawn(
    arguments: list[str],
    source: bytes,
    folder: str | None,
    listing: int,
    allowance: effort.Allowance | None,
    is_whole: bool | None,
) -> tuple[bytes, str, int | None, bool]:
    done = resident.run(arguments, source, folder, environment(), listing, allowance, is_whole)
    return done.output, done.errors.decode("utf-8", "replace"), done.status, done.is_cut


# What is tried where loops have become llvm.memset of more bytes than an instruction has words: its back end
# makes a constant of so many bytes, in one instruction whose number of words does not fit, or runs out of
# memory. See long_composites.py.
WITHOUT_MEMSET = ("-mllvm", "-disable-loop-idiom-memset")


def has_vector_hint(spirv: bytes) -> bool:
    """True if a kernel of the module has a vec_type_hint, of which SPIR-V keeps no signedness."""
    words = memoryview(spirv).cast("I")
    position, mode, hint, function = 5, 16, 30, 54
    while position < len(words):
        length, opcode = words[position] >> 16, words[position] & 0xFFFF
        if opcode == mode and words[position + 2] == hint:
            return True
        if opcode == function or not length:
            return False
        position += length
    return False
