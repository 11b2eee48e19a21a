"""The processor: its name, its instruction-set extensions, its clock.

Everything is read at run time from the operating system: nothing of the machine that built the package
enters the code or the cache.
"""

from __future__ import annotations

import os

from .files import read, read_bytes

# /proc/cpuinfo flags whose LLVM feature has another name. A flag that is in neither table is not passed on.
X86_RENAMED = {
    "pni": "sse3",
    "sse4_1": "sse4.1",
    "sse4_2": "sse4.2",
    "abm": "lzcnt",
    "lahf_lm": "sahf",
    "pclmulqdq": "pclmul",
    "rdrand": "rdrnd",
    "sha_ni": "sha",
    "avx512_bf16": "avx512bf16",
    "avx512_bitalg": "avx512bitalg",
    "avx512_fp16": "avx512fp16",
    "avx512_vbmi2": "avx512vbmi2",
    "avx512_vnni": "avx512vnni",
    "avx512_vp2intersect": "avx512vp2intersect",
    "avx512_vpopcntdq": "avx512vpopcntdq",
    "avx_vnni": "avxvnni",
    "bmi1": "bmi",
    "3dnowprefetch": "prfchw",
}
_X86_SAME = """
    adx aes avx avx2 avx512bw avx512cd avx512dq avx512f avx512ifma avx512vbmi avx512vl bmi2 cmov cx16 cx8 f16c
    fma fma4 fsgsbase fxsr gfni mmx movbe popcnt rdpid rdseed sse sse2 sse4a ssse3 tbm vaes vpclmulqdq xop
    xsave xsavec xsaveopt xsaves
"""
X86_SAME = frozenset(_X86_SAME.split())
AARCH64_RENAMED = {
    "asimd": "neon",
    "fp": "fp-armv8",
    "atomics": "lse",
    "crc32": "crc",
    "asimdhp": "fullfp16",
    "asimddp": "dotprod",
    "asimdfhm": "fp16fml",
    "asimdrdm": "rdm",
    "lrcpc": "rcpc",
    "fcma": "complxnum",
    "jscvt": "jsconv",
    "sha2": "sha2",
    "sha3": "sha3",
    "aes": "aes",
    "sve": "sve",
    "sve2": "sve2",
    "bf16": "bf16",
    "i8mm": "i8mm",
}


class Cpu:
    """architecture: "x86_64" or "aarch64"; flags: the kernel's names of the extensions; mhz: 0 if unknown;
    identity: what the processor tells of itself, EAX of CPUID's leaf 1 or MIDR_EL1; 0 if unknown.
    """

    __slots__ = ("architecture", "flags", "identity", "mhz", "name", "vendor")

    def __init__(
        self, architecture: str, name: str, vendor: str, flags: frozenset[str], mhz: int, identity: int = 0
    ) -> None:
        self.architecture = architecture
        self.identity = identity
        self.name = name
        self.vendor = vendor
        self.flags = flags
        self.mhz = mhz

    @property
    def features(self) -> tuple[str, ...]:
        """The LLVM target features that this processor has, sorted: part of every compile-cache key."""
        if self.architecture == "aarch64":
            found = {AARCH64_RENAMED[flag] for flag in self.flags if flag in AARCH64_RENAMED}
        else:
            found = {X86_RENAMED[flag] for flag in self.flags if flag in X86_RENAMED}
            found |= self.flags & X86_SAME
            if not self.flags >= {"avx512f", "avx512vl", "avx512bw", "avx512dq"}:
                # Xeon Phi's subset: its 512-bit registers lack what the code generator counts on.
                found = {feature for feature in found if not feature.startswith("avx512")}
        return tuple(sorted(found))

    @property
    def version(self) -> tuple[int, int, int]:
        """Family, model and stepping; of Arm's cores architecture, part's number and revision, as MIDR_EL1
        has them."""
        identity = self.identity
        if self.architecture == "aarch64":
            return identity >> 16 & 15, identity >> 4 & 0xFFF, identity >> 16 & 0xF0 | identity & 15
        family, model = identity >> 8 & 15, identity >> 4 & 15 | identity >> 12 & 0xF0
        return family + (identity >> 20 & 0xFF), model, identity & 15

    @property
    def vector_bytes(self) -> int:
        """Width of the widest vector registers in bytes."""
        if self.architecture == "aarch64":
            return 16
        if "avx512f" in self.features:
            return 64
        return 32 if "avx" in self.flags else 16

    @property
    def has_fma(self) -> bool:
        """A fused multiply-add instruction for float and double."""
        return self.architecture == "aarch64" or bool(self.flags & {"fma", "fma4"})

    @property
    def has_slow_division(self) -> bool:
        """Whether estimates and Newton's method are much faster than the divider for the longest vectors: of
        512 bits on Intel's cores, and NEON's on those that Arm has designed."""
        if self.architecture == "aarch64":
            return self.vendor == "Arm"
        return self.vendor == "GenuineIntel" and self.vector_bytes == 64

    @property
    def reads_far_ahead(self) -> bool:
        """Whether kernels that read many streams are faster if they fetch what the next group reads into the
        second cache, not what comes next of each stream into the first: measured on a Zen 4."""
        return self.vendor == "AuthenticAMD"

    @property
    def has_slow_masked_stores(self) -> bool:
        """Whether AVX's masked stores are microcode: 10 to 13 cycles for any mask on a Zen 3, where Intel's
        cores take one or two."""
        return self.vendor in ("AuthenticAMD", "HygonGenuine")

    @property
    def has_fast_gathers(self) -> bool:
        """Whether AVX2's gathers take about as long as loads of all lanes: Golden Cove in servers and what
        came after it. Those before are slower, or their microcode has made them so to keep data from leaking
        (Gather Data Sampling), and in clients some cores are small ones, which have them in microcode."""
        return self.vendor == "GenuineIntel" and self.flags >= {"avx512f", "avx_vnni"}

    @property
    def has_native_half(self) -> bool:
        """Arithmetic instructions for half."""
        return bool({"avx512fp16", "fullfp16"} & set(self.features))


_host: list[Cpu] = []


def host_cpu() -> Cpu:
    """The processor of this machine; read once."""
    if not _host:
        architecture = os.uname().machine
        fields = _first_processor("/proc/cpuinfo")
        _host.append(_arm(fields) if architecture == "aarch64" else _x86(architecture, fields))
    return _host[0]


def _x86(architecture: str, fields: dict[str, str]) -> Cpu:
    flags = frozenset(fields.get("flags", "").split())
    name = " ".join((fields.get("model name") or architecture).split())
    return Cpu(architecture, name, fields.get("vendor_id", ""), flags, _clock(fields), identity_of(fields))


def _arm(fields: dict[str, str]) -> Cpu:
    """The file is the host's, of whatever architecture, under an emulator (qemu's before 8.2): the process's
    own auxiliary vector tells then what there is."""
    from . import arm_cores

    if "Features" not in fields:
        return Cpu("aarch64", "aarch64", "", arm_cores.flags_of(read_bytes("/proc/self/auxv")), 0)
    identity = identity_of(fields)
    name = arm_cores.name_of(identity) or fields.get("model name") or fields.get("Hardware") or "aarch64"
    flags = frozenset(fields["Features"].split())
    vendor = arm_cores.vendor_of(identity)
    return Cpu("aarch64", " ".join(name.split()), vendor, flags, _clock(fields), identity)


def _first_processor(cpuinfo: str) -> dict[str, str]:
    """The fields of the first processor; empty where there is no such file."""
    fields: dict[str, str] = {}
    try:
        # Only the first block: on machines with hundreds of CPUs the whole file takes tens of milliseconds.
        with open(cpuinfo, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                key, _, value = line.partition(":")
                if not key.strip():
                    break
                fields[key.strip()] = value.strip()
    except OSError:
        return {}
    return fields


def identity_of(fields: dict[str, str]) -> int:
    """Cpu.identity, put together again from what /proc/cpuinfo has taken apart."""

    def number(name: str) -> int:
        try:
            return int(fields.get(name, "0"), 0)
        except ValueError:  # "CPU architecture: AArch64" of some kernels
            return 0

    if "CPU part" in fields:
        variant, revision = number("CPU variant"), number("CPU revision")
        return number("CPU implementer") << 24 | variant << 20 | 15 << 16 | number("CPU part") << 4 | revision
    family, model = number("cpu family"), number("model")
    more = max(family - 15, 0)
    return more << 20 | model >> 4 << 16 | (family - more) << 8 | (model & 15) << 4 | number("stepping")


def _clock(fields: dict[str, str]) -> int:
    """The highest configured clock in MHz, else the current one, else 0."""
    configured = read("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq")
    if configured.isdigit():
        return int(configured) // 1000
    try:
        return round(float(fields["cpu MHz"]))
    except (KeyError, ValueError):
        return 0
