"""What AArch64 leaves out of /proc/cpuinfo: names for the numbers of MIDR_EL1, features by the bits of HWCAP.

Numbers: Arm's reference manuals of the cores; bits: Linux's ELF hwcaps for arm64.
"""

from __future__ import annotations

_VENDORS = {
    0x41: "Arm",
    0x42: "Broadcom",
    0x43: "Cavium",
    0x46: "Fujitsu",
    0x48: "HiSilicon",
    0x4E: "NVIDIA",
    0x50: "APM",
    0x51: "Qualcomm",
    0x61: "Apple",
    0xC0: "Ampere",
}
_CORES = {
    (0x41, 0xD03): "Cortex-A53",
    (0x41, 0xD04): "Cortex-A35",
    (0x41, 0xD05): "Cortex-A55",
    (0x41, 0xD07): "Cortex-A57",
    (0x41, 0xD08): "Cortex-A72",
    (0x41, 0xD09): "Cortex-A73",
    (0x41, 0xD0A): "Cortex-A75",
    (0x41, 0xD0B): "Cortex-A76",
    (0x41, 0xD0C): "Neoverse N1",
    (0x41, 0xD0D): "Cortex-A77",
    (0x41, 0xD40): "Neoverse V1",
    (0x41, 0xD41): "Cortex-A78",
    (0x41, 0xD44): "Cortex-X1",
    (0x41, 0xD46): "Cortex-A510",
    (0x41, 0xD47): "Cortex-A710",
    (0x41, 0xD48): "Cortex-X2",
    (0x41, 0xD49): "Neoverse N2",
    (0x41, 0xD4A): "Neoverse E1",
    (0x41, 0xD4D): "Cortex-A715",
    (0x41, 0xD4E): "Cortex-X3",
    (0x41, 0xD4F): "Neoverse V2",
    (0x41, 0xD80): "Cortex-A520",
    (0x41, 0xD81): "Cortex-A720",
    (0x41, 0xD82): "Cortex-X4",
    (0x41, 0xD84): "Neoverse V3",
    (0x41, 0xD85): "Cortex-X925",
    (0x41, 0xD8E): "Neoverse N3",
    (0x46, 0x001): "A64FX",
    (0x48, 0xD01): "Kunpeng 920",
    (0x4E, 0x004): "Carmel",
    (0x51, 0x001): "Oryon",
    (0x61, 0x022): "M1",  # of each chip first the small cores
    (0x61, 0x023): "M1",
    (0x61, 0x024): "M1 Pro",
    (0x61, 0x025): "M1 Pro",
    (0x61, 0x028): "M1 Max",
    (0x61, 0x029): "M1 Max",
    (0x61, 0x032): "M2",
    (0x61, 0x033): "M2",
    (0x61, 0x034): "M2 Pro",
    (0x61, 0x035): "M2 Pro",
    (0x61, 0x038): "M2 Max",
    (0x61, 0x039): "M2 Max",
    (0xC0, 0xAC3): "AmpereOne",
}
_HWCAP = """
    fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm jscvt fcma lrcpc dcpop sha3
    sm3 sm4 asimddp sha512 sve asimdfhm dit uscat ilrcpc flagm ssbs sb paca pacg
""".split()
_HWCAP2 = """
    dcpodp sve2 sveaes svepmull svebitperm svesha3 svesm4 flagm2 frint svei8mm svef32mm svef64mm svebf16 i8mm
    bf16
""".split()
_AT_HWCAP, _AT_HWCAP2 = 16, 26


def vendor_of(identity: int) -> str:
    """Who made a core with this MIDR_EL1; "" where that is unknown."""
    return _VENDORS.get(identity >> 24, "")


def name_of(identity: int) -> str:
    """As in "Arm Neoverse V2"; "" where the core is unknown."""
    core = _CORES.get((identity >> 24, identity >> 4 & 0xFFF))
    return f"{vendor_of(identity)} {core}" if core else ""


def flags_of(auxiliary: bytes) -> frozenset[str]:
    """The kernel's names of the extensions that a process's auxiliary vector has, pairs of 64-bit numbers."""
    words = memoryview(auxiliary[: len(auxiliary) // 16 * 16]).cast("Q")
    values = dict(zip(words[::2], words[1::2], strict=True))
    found = set()
    for key, names in ((_AT_HWCAP, _HWCAP), (_AT_HWCAP2, _HWCAP2)):
        bits = values.get(key, 0)
        found |= {name for i, name in enumerate(names) if bits >> i & 1}
    return frozenset(found)
