"""What code is made for: an architecture, its features, the width of its vectors.

Nothing here needs LLVM: the description is made in the host's process, where it enters the cache key, and is
handed to the compiler process. Features are passed one by one and never as the name of a CPU: a name promises
more than a virtual machine may have, and LLVM may not know it.
"""

from __future__ import annotations

from ..settings import SETTINGS
from .cpu import Cpu, host_cpu

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    class Settings(Protocol):
        """What is asked of settings.py."""

        def text(self, name: str) -> str:
            """A setting's text."""

        def integer(self, name: str) -> int | None:
            """A setting as an integer, None where it has none."""


# x86-64 psABI, "micro-architecture levels", as LLVM feature names; each level has those before it.
_LEVELS = {
    "x86-64": "cmov cx8 fxsr mmx sse sse2",
    "x86-64-v2": "cx16 sahf popcnt sse3 sse4.1 sse4.2 ssse3",
    "x86-64-v3": "avx avx2 bmi bmi2 f16c fma lzcnt movbe xsave",
    "x86-64-v4": "avx512bw avx512cd avx512dq avx512f avx512vl",
}

# Without these there is no OpenCL on either architecture (the base of its ABI).
_BASE = {"x86_64": frozenset(_LEVELS["x86-64"].split()), "aarch64": frozenset(("neon", "fp-armv8"))}

# What LLVM takes to be there with a feature, so what goes when one of these is taken away (prefixes).
_ON_TOP = {
    "sse3": ("ssse3",),
    "ssse3": ("sse4.1",),
    "sse4.1": ("sse4.2",),
    "sse4.2": ("avx",),
    "avx": ("avx", "fma", "f16c", "xop", "vaes", "vpclmulqdq"),
    "avx2": ("avx512",),
    "fma": ("avx512",),
    "f16c": ("avx512",),
    "avx512f": ("avx512",),
    "avx512bw": ("avx512vbmi", "avx512bitalg", "avx512fp16"),
    "neon": ("fullfp16", "dotprod", "sve"),
}


# What LLVM calls it that the gathers of AVX2 are worth taking. It asks for nothing of the kind with AVX-512.
_FAST_GATHER = "fast-gather"

WIDTHS = (0, 1, 2, 4, 8, 16, 32, 64)
PARTS = ("", *(f"{count}{axis}" for count in range(1, 10) for axis in "xy"))


class Target:
    """triple; features: LLVM feature names, sorted; vector_bits: of the widest registers to use; width:
    work-items per vector, a power of two up to 64; 0 to choose for each kernel (passes/cost/width.py);
    sub_group_size: work-items per sub-group; parts: vectors per iteration and their dimension, as in "4x",
    or "" to choose for each kernel; slow_division: Cpu.has_slow_division; far_ahead: Cpu.reads_far_ahead;
    slow_masked_stores: Cpu.has_slow_masked_stores; kernel_sub_groups: CL_DRIVER_KERNEL_SUB_GROUP_SIZES;
    checks: CL_DRIVER_CHECK."""

    __slots__ = (
        "checks",
        "far_ahead",
        "features",
        "kernel_sub_groups",
        "parts",
        "slow_division",
        "slow_masked_stores",
        "sub_group_size",
        "triple",
        "vector_bits",
        "width",
    )

    def __init__(
        self,
        triple: str,
        features: tuple[str, ...],
        vector_bits: int,
        width: int = 0,
        sub_group_size: int = 0,
        parts: str = "",
        slow_division: bool = False,
        far_ahead: bool = False,
        slow_masked_stores: bool = False,
        kernel_sub_groups: str = "",
        checks: bool = False,
    ) -> None:
        self.triple = triple
        self.features = features
        self.vector_bits = vector_bits
        self.width = width
        self.sub_group_size = sub_group_size or vector_bits // 32
        self.parts = parts
        self.slow_division = slow_division
        self.far_ahead = far_ahead
        self.slow_masked_stores = slow_masked_stores
        self.kernel_sub_groups = kernel_sub_groups
        self.checks = checks

    @property
    def architecture(self) -> str:
        """ "x86_64" or "aarch64"."""
        return self.triple.partition("-")[0]

    @property
    def feature_string(self) -> str:
        """For LLVM's target machine."""
        return ",".join("+" + feature for feature in self.features)

    @property
    def has_fma(self) -> bool:
        """A fused multiply-add instruction for float and double."""
        return self.architecture == "aarch64" or "fma" in self.features

    @property
    def has_native_half(self) -> bool:
        """Arithmetic instructions for half."""
        return ("fullfp16" if self.architecture == "aarch64" else "avx512fp16") in self.features

    def vector_width(self, element_bytes: int) -> int:
        """How many elements of that size a vector register holds, at most the 16 of OpenCL C's types."""
        return min(self.vector_bits // 8 // element_bytes, 16)

    @property
    def key(self) -> str:
        """Equal for equal targets: part of every cache key and of program binaries."""
        lanes = f"{self.vector_bits} {self.width} {self.sub_group_size} {self.parts or '-'}"
        lanes += " slow-division" * self.slow_division + " far-ahead" * self.far_ahead
        lanes += " slow-masked-stores" * self.slow_masked_stores
        lanes += f" {self.kernel_sub_groups}" if self.kernel_sub_groups else ""
        lanes += " checks" * self.checks
        return f"{self.triple} {lanes} {self.feature_string}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Target) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"Target({self.key})"

    def to_values(self) -> list[object]:
        """For the wire."""
        lanes = [self.vector_bits, self.width, self.sub_group_size, self.parts]
        return [
            self.triple,
            list(self.features),
            *lanes,
            self.slow_division,
            self.far_ahead,
            self.slow_masked_stores,
            self.kernel_sub_groups,
            self.checks,
        ]

    @classmethod
    def from_values(cls, values: list[Any]) -> Target:
        """The target that to_values() was asked of. TypeError or ValueError for other values."""
        triple, features, *lanes = values
        return cls(triple, tuple(features), *lanes)


def _triple(architecture: str) -> str:
    return f"{architecture}-unknown-linux-gnu"


def _vector_bits(architecture: str, features: set[str]) -> int:
    if architecture == "aarch64":
        return 128
    if "avx512f" in features:
        return 512
    return 256 if "avx2" in features else 128


def _without(features: set[str], name: str) -> set[str]:
    """The features that are left without one of them."""
    left = features - {name}
    for prefix in _ON_TOP.get(name, ()):
        for other in [feature for feature in left if feature.startswith(prefix)]:
            left = _without(left, other)
    return left


def _level(name: str) -> set[str]:
    names: set[str] = set()
    for level, features in _LEVELS.items():
        names |= set(features.split())
        if level == name:
            break
    return names


def parse_cpu(setting: str, cpu: Cpu) -> tuple[set[str], list[str]]:
    """The features that CL_DRIVER_CPU leaves of this CPU's, and a sentence for each word that means nothing.

    The setting is a comma-separated list: "native", "x86-64", "x86-64-v2" to "x86-64-v4", "+feature",
    "-feature". Never more than the CPU has: code for more would end in SIGILL.
    """
    host = set(cpu.features) | _BASE[cpu.architecture]
    features, complaints = set(host), []
    for word in filter(None, (part.strip() for part in setting.split(","))):
        if word == "native":
            features = set(host)
        elif word in _LEVELS and cpu.architecture == "x86_64":
            features = host & _level(word)
            missing = sorted(_level(word) - host)
            if missing:
                complaints.append(f"this CPU is no {word}: it lacks {', '.join(missing)}")
        elif word[0] == "-":
            features = _without(features, word[1:]) | _BASE[cpu.architecture]
        elif word[0] == "+" and word[1:] in host:
            features.add(word[1:])
        else:
            complaints.append(f"CL_DRIVER_CPU: this CPU has no '{word}'")
    return features, complaints


def make_target(
    cpu: Cpu,
    setting: str = "",
    width: int | None = None,
    parts: str = "",
    sub_group_size: int | None = None,
    kernel_sub_groups: str = "",
    checks: bool = False,
) -> Target:
    """The target for a CPU under the settings CL_DRIVER_CPU, CL_DRIVER_WIDTH, CL_DRIVER_PARTS,
    CL_DRIVER_SUB_GROUP_SIZE, CL_DRIVER_KERNEL_SUB_GROUP_SIZES and CL_DRIVER_CHECK."""
    features, _ = parse_cpu(setting, cpu)
    if width not in WIDTHS:
        width = None
    bits = _vector_bits(cpu.architecture, features)
    if bits == 256 and cpu.has_fast_gathers:
        features.add(_FAST_GATHER)
    names = tuple(sorted(features))
    if parts not in PARTS:
        parts = ""
    slow = bits == cpu.vector_bytes * 8 and cpu.has_slow_division
    lanes = bits, width or 0, width or sub_group_size or 0, parts
    return Target(
        _triple(cpu.architecture),
        names,
        *lanes,
        slow,
        cpu.reads_far_ahead,
        cpu.has_slow_masked_stores,
        kernel_sub_groups,
        checks,
    )


def complaints(cpu: Cpu, setting: str = "", width: int = 0, parts: str = "") -> list[str]:
    """A sentence for each of what make_target() is given that has no meaning."""
    found = parse_cpu(setting, cpu)[1]
    if width not in WIDTHS:
        found.append(f"a width of {width} is none of {', '.join(map(str, WIDTHS[1:]))}")
    if parts not in PARTS:
        found.append(f"parts '{parts}' must be {SETTINGS['CL_DRIVER_PARTS'].wanted}")
    return found


def host_target(setting: str = "", width: int | None = None, parts: str = "") -> Target:
    """The target for the CPU that this process runs on."""
    return make_target(host_cpu(), setting, width, parts)


def target_of(settings: Settings) -> Target:
    """The target of this machine under the settings."""
    width, parts = settings.integer("CL_DRIVER_WIDTH"), settings.text("CL_DRIVER_PARTS")
    size = settings.integer("CL_DRIVER_SUB_GROUP_SIZE")
    sizes = settings.text("CL_DRIVER_KERNEL_SUB_GROUP_SIZES")
    checks = settings.text("CL_DRIVER_CHECK") == "1"
    return make_target(host_cpu(), settings.text("CL_DRIVER_CPU"), width, parts, size, sizes, checks)
