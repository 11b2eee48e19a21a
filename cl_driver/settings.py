"""Every environment variable that the driver reads: one table.

The C side's table (build/gen/settings_table.h) and that of SETTINGS.md are generated from it. Nothing else
in the driver reads the environment; passes get an options object and read nothing at all.
"""

from __future__ import annotations

from . import trust

TYPE_CHECKING = False  # typing takes longer to import than all of this
if TYPE_CHECKING:
    from collections.abc import Mapping

    Environment = Mapping[str, str] | None


class Setting:
    """One environment variable. (A plain class: dataclasses would be slow to import for the host's process.)

    type: "string", "path", "integer" (decimal, or with a suffix K, M, G of 1024), "flag" (0 or 1), "choice",
    "list" (of choices, with commas between them), "table" (a list of name=choice). wanted: the choices in
    words, where they are many. default: as text; "" where something else decides, which the sentence says.
    in_key: whether it changes what the compiler makes, and so enters the compile-cache key.
    """

    __slots__ = ("choices", "default", "in_key", "name", "sentence", "type", "wanted")

    def __init__(
        self,
        name: str,
        type: str,
        default: str,
        sentence: str,
        in_key: bool = False,
        choices: tuple[str, ...] = (),
        wanted: str = "",
    ) -> None:
        self.name = name
        self.type = type
        self.default = default
        self.sentence = sentence
        self.in_key = in_key
        self.choices = choices
        self.wanted = wanted or " or ".join(choices) or f"of type {type}"


_ROWS = (
    Setting(
        "CL_DRIVER_RUNTIME",
        "choice",
        "auto",
        "Where the control plane runs: embedded in the host's process, in a process of its own, or as fits.",
        choices=("auto", "embedded", "process"),
    ),
    Setting(
        "CL_DRIVER_LOG",
        "choice",
        "off",
        "What is logged: nothing, why calls failed, or every call that reaches the control plane too.",
        choices=("off", "errors", "calls"),
    ),
    Setting("CL_DRIVER_LOG_FILE", "path", "", "Where the log goes, instead of stderr; appended to."),
    Setting(
        "CL_DRIVER_THREADS",
        "integer",
        "",
        "The number of compute units, instead of the CPUs that the process may use.",
    ),
    Setting(
        "CL_DRIVER_MEMORY",
        "integer",
        "",
        "Bytes of memory that the device has, where it is not to have all of the machine's, or of what a "
        "control group leaves.",
    ),
    Setting(
        "CL_DRIVER_TOPOLOGY",
        "path",
        "",
        "A folder that tells of CPUs, memory nodes and caches as /sys/devices/system does, for tests: the "
        "device has the CPUs that are online there.",
    ),
    Setting(
        "CL_DRIVER_CACHE_DIR",
        "path",
        "",
        "The compile cache's folder, instead of $XDG_CACHE_HOME/cl_driver or ~/.cache/cl_driver. Users may "
        "share it: each has a private folder in it.",
    ),
    Setting(
        "CL_DRIVER_CACHE_SIZE",
        "integer",
        "1G",
        "Bytes that the compile cache may take; 0 keeps nothing on disk.",
    ),
    Setting(
        "CL_DRIVER_CPU",
        "string",
        "",
        "The CPU that code is made for, instead of the one found: an LLVM CPU name or feature list.",
        in_key=True,
    ),
    Setting(
        "CL_DRIVER_WIDTH",
        "choice",
        "",
        "Work-items per SIMD vector, and per sub-group, of all kernels. Unset or 0: chosen for each kernel "
        "by what the CPU's vectors hold.",
        in_key=True,
        choices=("0", "1", "2", "4", "8", "16", "32", "64"),
        wanted="0 or a power of two up to 64",
    ),
    Setting(
        "CL_DRIVER_SUB_GROUP_SIZE",
        "choice",
        "",
        "Work-items per sub-group of kernels that use sub-groups and require no size, for programs that take "
        "one for granted. Unset: what the CPU's vectors hold.",
        in_key=True,
        choices=("4", "8", "16", "32", "64"),
    ),
    Setting(
        "CL_DRIVER_KERNEL_SUB_GROUP_SIZES",
        "table",
        "",
        "The same for single kernels, by their names.",
        in_key=True,
        choices=("4", "8", "16", "32", "64"),
        wanted="such sizes, as in one_kernel=16,another=32",
    ),
    Setting(
        "CL_DRIVER_PARTS",
        "choice",
        "",
        "Vectors of work-items that are executed together, and the dimension in which they follow one "
        "another: 4x, 4y. Unset: chosen for each kernel.",
        in_key=True,
        choices=tuple(f"{count}{axis}" for axis in "xy" for count in range(1, 10)),
        wanted="a number from 1 to 9 and x or y, as in 4y",
    ),
    Setting(
        "CL_DRIVER_CLANG",
        "path",
        "",
        "The clang that compiles OpenCL C, or ziglang for the one of that package. Unset: the newest of "
        "PATH that can write SPIR-V, else ziglang's.",
        in_key=True,
    ),
    Setting(
        "CL_DRIVER_LLVM",
        "path",
        "",
        "LLVM's shared library, or llvmlite for the one of that package, which checks itself. Unset: the one "
        "of clang. One of a version that is not tested must pass a self-test (cl-driver doctor).",
        in_key=True,
    ),
    Setting(
        "CL_DRIVER_COMPILE",
        "choice",
        "process",
        "Where compilers run: in processes of their own, or in the control plane's (for debugging).",
        choices=("process", "inprocess"),
    ),
    Setting(
        "CL_DRIVER_COMPILE_KERNELS",
        "choice",
        "auto",
        "When kernels are compiled: by clBuildProgram, by clCreateKernel, or by clBuildProgram unless all "
        "together would take it long.",
        choices=("auto", "build", "create"),
    ),
    Setting(
        "CL_DRIVER_GROUP_CODE",
        "choice",
        "background",
        "When faster code that takes longer to compile is made, for the local size of a launch or with "
        "several vectors of work-items at a time: in the background once a kernel has run for a while, at "
        "the first launch, or not at all.",
        choices=("background", "now", "off"),
    ),
    Setting(
        "CL_DRIVER_VALUE_CODE",
        "choice",
        "background",
        "When code for the values of integer arguments is made: in the background for values that stay the "
        "same, and used if it is faster; at the first launch, and used; or not at all.",
        choices=("background", "now", "off"),
    ),
    Setting(
        "CL_DRIVER_COMPILE_TIMEOUT",
        "integer",
        "300",
        "Seconds of CPU time that a build, or a clCreateKernel that compiles, may take, of clang and of each "
        "compiler process; 0 for no limit.",
    ),
    Setting(
        "CL_DRIVER_COMPILE_MEMORY",
        "integer",
        "4G",
        "Bytes of memory that a compiler process may take; 0 for no limit.",
    ),
    Setting(
        "CL_DRIVER_INLINE_ASSEMBLY",
        "flag",
        "1",
        "Whether programs may bring machine instructions of their own (SPV_INTEL_inline_assembly). 0 is for "
        "hosts that run programs of others; those with more rights than their user never may.",
        in_key=True,
    ),
    Setting(
        "CL_DRIVER_DEVICE_ENQUEUE",
        "flag",
        "1",
        "Whether the device says that kernels may enqueue kernels (device-side enqueue).",
        in_key=True,
    ),
    Setting("CL_DRIVER_COMPILE_IDLE", "integer", "60", "Seconds that an idle compiler process stays."),
    Setting(
        "CL_DRIVER_JIT_DEBUG",
        "list",
        "",
        "Debuggers and profilers that are told where kernels are loaded.",
        choices=("gdb", "perf"),
        wanted="gdb, perf, or gdb,perf",
    ),
    Setting(
        "CL_DRIVER_FAULT_MESSAGE",
        "choice",
        "auto",
        "When a line on stderr tells of a fault in a kernel (its name, its source line if the program was "
        "built with -g, the address): if the host has no handler for the signal and ends; also before such "
        "a handler runs; or never.",
        choices=("auto", "on", "off"),
    ),
    Setting("CL_DRIVER_DUMP", "path", "", "A folder where builds leave the output of every stage."),
    Setting(
        "CL_DRIVER_TRACE",
        "path",
        "",
        "A file for a trace of all that the program does with OpenCL, by time, in Perfetto's format "
        "(cl-driver trace makes a page of it). Processes that run at the same time write to it together; "
        "%p in the name stands for the number of the process.",
    ),
    Setting(
        "CL_DRIVER_EXPLAIN",
        "path",
        "",
        "A folder where each build of a program leaves a report, as text and as a page, on how its kernels "
        "were compiled, line by line (cl-driver explain). Builds take longer, and do not use the cache.",
    ),
    Setting(
        "CL_DRIVER_PROFILE",
        "path",
        "",
        "Where a profile of what the program does with OpenCL goes when it ends: - for a table on stderr, or "
        "a file, as JSON (cl-driver profile makes a page of it). %p in its name stands for the process.",
    ),
    Setting(
        "CL_DRIVER_PROFILE_HARDWARE",
        "flag",
        "0",
        "Whether a profile counts cycles, instructions, and misses of caches and branches, too.",
    ),
    Setting(
        "CL_DRIVER_CHECK",
        "flag",
        "0",
        "Kernels are compiled with checks, and what they do wrong with memory is told on stderr or where the "
        "log goes: accesses out of bounds, of freed memory, of what nobody has written; races; operations "
        "without a result; atomics where there may be none; pixels outside of images; barriers that "
        "not all work-items come to. So is what calls do that OpenCL leaves undefined, and what is left over "
        "at exit.",
    ),
    Setting(
        "CL_DRIVER_CLUSTER",
        "string",
        "",
        "A Dask cluster whose workers are devices, too: its scheduler's address, as tcp://host:8786 or "
        "tls:// with the certificates of Dask's configuration, or a scheduler file, as a path with a / in "
        "it. With ;whole behind it the last device is all workers, on which launches are cut.",
    ),
    Setting(
        "CL_DRIVER_CLUSTER_CUT",
        "choice",
        "measured",
        "Which launches on all workers are cut: those that end sooner by what others took, or all that can "
        "be, for tests.",
        choices=("measured", "always"),
    ),
    Setting(
        "CL_DRIVER_CLUSTER_TIMEOUT",
        "integer",
        "30",
        "Seconds without a sign of life after which a worker is gone: its commands end with "
        "CL_DEVICE_NOT_AVAILABLE.",
    ),
    Setting(
        "CL_DRIVER_CLUSTER_PYTHON",
        "path",
        "",
        "The Python that has Dask's distributed, and connects with the cluster. Unset: the driver's own.",
    ),
    Setting(
        "CL_DRIVER_ICD2",
        "flag",
        "0",
        "Offers loader-managed dispatch (cl_khr_icd 2.0) to the ICD loader; some loaders crash with it.",
    ),
    Setting("CL_DRIVER_PLATFORM_NAME", "string", "", "CL_PLATFORM_NAME, for programs that select by it."),
    Setting("CL_DRIVER_PLATFORM_VENDOR", "string", "", "CL_PLATFORM_VENDOR, likewise."),
    Setting(
        "CL_DRIVER_DEVICE_NAME",
        "string",
        "",
        "CL_DEVICE_NAME, likewise; {} in it stands for the name of the CPU.",
    ),
    Setting("CL_DRIVER_DEVICE_VENDOR", "string", "", "CL_DEVICE_VENDOR, likewise."),
    Setting("CL_DRIVER_DEVICE_VERSION", "string", "", "CL_DEVICE_VERSION, likewise."),
    Setting(
        "CL_DRIVER_DEVICE_TYPE",
        "choice",
        "cpu",
        "CL_DEVICE_TYPE, for programs that want nothing but a GPU.",
        choices=("cpu", "gpu", "accelerator"),
    ),
    Setting(
        "CL_DRIVER_MAX_WORK_GROUP_SIZE",
        "choice",
        "4096",
        "CL_DEVICE_MAX_WORK_GROUP_SIZE, and the limit of launches, for programs that take no "
        "more for granted.",
        choices=("256", "512", "1024", "2048", "4096"),
    ),
    Setting(
        "CL_DRIVER_QUIRKS",
        "flag",
        "1",
        "Whether programs that are known to ask for a name where they mean a capability get settings of "
        "their own (cl-driver doctor lists them).",
    ),
)

SETTINGS: dict[str, Setting] = {row.name: row for row in _ROWS}

# What the row of device/quirks.toml says that the host wants, by the names of settings.
_quirk: dict[str, str] = {}

_SUFFIXES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def parse_integer(text: str) -> int | None:
    """A non-negative integer with an optional K, M, G or T, or None if it is not one."""
    factor = _SUFFIXES.get(text[-1:].upper(), 0)
    digits = text[:-1] if factor else text
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 19:
        return None
    value = int(digits) * (factor or 1)
    return value if value < 1 << 63 else None


def _valid(setting: Setting, text: str) -> bool:
    match setting.type:
        case "integer":
            return parse_integer(text) is not None
        case "flag":
            return text in ("0", "1")
        case "choice":
            return text in setting.choices
        case "list":
            return all(part in setting.choices for part in text.split(","))
        case "table":
            parts = [part.partition("=") for part in text.split(",")]
            return all(name and choice in setting.choices for name, _, choice in parts)
    return True


def text(name: str, environment: Environment = None) -> str:
    """A setting's text: the variable's; where it is unset, empty or malformed, what the host's quirk says, or
    the default.

    environment: of this process when None; nothing of it in a process that is not trusted.
    """
    setting = SETTINGS[name]
    value = (trust.environment() if environment is None else environment).get(name, "")
    if value and _valid(setting, value):
        return value
    return setting.default if environment is not None else _quirk.get(name, setting.default)


def use_quirk(lines: str) -> None:
    """Takes what the host's quirk says, lines of NAME=text, from C, which knows the host."""
    _quirk.clear()
    _quirk.update((name, value) for name, _, value in (line.partition("=") for line in lines.splitlines()))


def integer(name: str, environment: Environment = None) -> int | None:
    """A setting as an integer; None where neither the variable nor the default has one."""
    value = text(name, environment)
    return parse_integer(value) if value else None


def parse_table(text: str) -> dict[str, str]:
    """The choices of a "table", by the names in it."""
    return dict(part.split("=", 1) for part in text.split(",") if part)


def flag(name: str, environment: Environment = None) -> bool:
    """A setting of type "flag"."""
    return text(name, environment) == "1"


def malformed(environment: Environment = None) -> list[str]:
    """A sentence for every variable that has no meaning: unknown, or with a value that is not of its type."""
    sentences = []
    for name, value in sorted((trust.environment() if environment is None else environment).items()):
        if not name.startswith("CL_DRIVER_"):
            continue
        setting = SETTINGS.get(name)
        if setting is None:
            sentences.append(f"{name} is not a setting of cl_driver")
        elif value and not _valid(setting, value):
            sentences.append(f"{name}={value} is ignored: it must be {setting.wanted}")
    return sentences


def cluster(value: str) -> tuple[str, bool]:
    """Of CL_DRIVER_CLUSTER: where the scheduler is, and whether all workers are to be a device, too."""
    place, _, wish = value.partition(";")
    return place, wish == "whole"


def markdown() -> str:
    """The table of SETTINGS.md."""
    lines = ["| variable | default | meaning |", "|---|---|---|"]
    for s in _ROWS:
        choices = f" ({s.wanted})" if s.choices else ""
        lines.append(f"| `{s.name}` | {s.default or '-'} | {s.sentence}{choices} |")
    return "\n".join(lines) + "\n"


def key_values(environment: Environment = None) -> tuple[tuple[str, str], ...]:
    """What enters the compile-cache key."""
    return tuple((s.name, text(s.name, environment)) for s in _ROWS if s.in_key)
