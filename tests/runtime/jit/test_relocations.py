"""Relocations of both architectures, on bytes: expected values are computed from the ABIs' formulas."""

import struct

import pytest

from cl_driver.jit import emit
from tests.runtime.code_loader import LoadError, link, relocate
from tests.runtime.jit.test_code_loader import AARCH64, X86_64

P, S = 0x7F00_0000_1000, 0x7F00_0012_3458

# ELF for the Arm 64-bit Architecture, tables 4-6 to 4-13.
PG_HI21, ADD_LO12, LDST8, LDST16, LDST32, LDST64, LDST128 = 275, 277, 278, 284, 285, 286, 299
CALL26, JUMP26, ABS64, ABS32, PREL64, PREL32, LO21, LO19, CONDBR19, TSTBR14 = (
    283, 282, 257, 258, 260, 261, 274, 273, 280, 279)  # fmt: skip
# System V ABI for x86-64, table 4.9.
R_64, PC32, GOTPCREL, PLT32, R_32, R_32S, PC64 = 1, 2, 9, 4, 10, 11, 24


def word(value: int) -> bytes:
    return struct.pack("<I", value)


def arm(instruction: int, type_: int, target: int, addend: int = 0, address: int = P) -> int | None:
    patched = relocate(word(instruction), type_, address, target, addend, aarch64=True)
    return None if patched is None else struct.unpack("<I", patched)[0]


@pytest.mark.parametrize("distance", [0, 4, -4, 0x123458, (1 << 31) - 1, -(1 << 31)])
@pytest.mark.parametrize("type_", [PC32, PLT32, GOTPCREL])
def test_x86_64_relative(type_, distance):
    assert relocate(b"\xaa" * 4, type_, P, P + distance + 4, -4) == struct.pack("<i", distance)


@pytest.mark.parametrize("distance", [1 << 31, -(1 << 31) - 1, 1 << 40])
def test_x86_64_relative_out_of_reach(distance):
    assert relocate(bytes(4), PC32, P, P + distance) is None


def test_x86_64_absolute():
    assert relocate(bytes(8), R_64, P, S, 5) == struct.pack("<Q", S + 5)
    assert relocate(bytes(8), PC64, P, S, 5) == struct.pack("<q", S + 5 - P)
    assert relocate(bytes(4), R_32, P, 0xFFFFFFF0, 5) == word(0xFFFFFFF5)
    assert relocate(bytes(4), R_32, P, 0xFFFFFFF0, 16) is None
    assert relocate(bytes(4), R_32S, P, 0x7FFFFFF0, 15) == word(0x7FFFFFFF)
    assert relocate(bytes(4), R_32S, P, 0x7FFFFFF0, 16) is None


@pytest.mark.parametrize("aarch64", [False, True])
def test_unknown_types_are_refused(aarch64):
    with pytest.raises(LoadError):
        relocate(bytes(8), 200 if not aarch64 else 600, P, S, aarch64=aarch64)


@pytest.mark.parametrize("target", [S, P, P - 0x5000_0000, P + 0xFFFF_F000])
def test_aarch64_page_and_offset(target):
    adrp = arm(0x90000001, PG_HI21, target)
    pages = (target >> 12) - (P >> 12)
    assert adrp == 0x90000001 | (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5
    assert arm(0x91000021, ADD_LO12, target) == 0x91000021 | (target & 0xFFF) << 10


def test_aarch64_page_out_of_reach():
    assert arm(0x90000001, PG_HI21, P + (1 << 32)) is None
    assert arm(0x90000001, PG_HI21, P - (1 << 32)) is not None
    assert arm(0x90000001, PG_HI21, P - (1 << 32) - 0x1000) is None


@pytest.mark.parametrize("type_, scale", [(LDST8, 0), (LDST16, 1), (LDST32, 2), (LDST64, 3), (LDST128, 4)])
def test_aarch64_load_offsets_are_scaled_and_must_be_aligned(type_, scale):
    target = 0x7F00_0000_2FF0
    assert arm(0xF9400000, type_, target) == 0xF9400000 | (0xFF0 >> scale) << 10
    if scale:
        assert arm(0xF9400000, type_, target + 1) is None


@pytest.mark.parametrize("type_, bits, low, width", [
    (CALL26, 28, 0, 26), (JUMP26, 28, 0, 26), (CONDBR19, 21, 5, 19), (LO19, 21, 5, 19), (TSTBR14, 16, 5, 14),
])  # fmt: skip
def test_aarch64_branches(type_, bits, low, width):
    last = (1 << bits - 1) - 4
    for distance in (0, 4, -4, 0x104, last, -(1 << bits - 1)):
        field = (distance >> 2) & ((1 << width) - 1)
        assert arm(0, type_, P + distance) == field << low
        others = 0xFFFFFFFF & ~(((1 << width) - 1) << low)
        assert arm(0xFFFFFFFF, type_, P + distance) == others | field << low
    assert arm(0, type_, P + last + 4) is None
    assert arm(0, type_, P - (1 << bits - 1) - 4) is None
    assert arm(0, type_, P + 2) is None


def test_aarch64_data():
    assert relocate(bytes(8), ABS64, P, S, -3, aarch64=True) == struct.pack("<Q", S - 3)
    assert relocate(bytes(8), PREL64, P, S, -3, aarch64=True) == struct.pack("<q", S - 3 - P)
    assert relocate(bytes(4), PREL32, P, S, 0, aarch64=True) == struct.pack("<i", S - P)
    assert relocate(bytes(4), PREL32, P, P + (1 << 31), 0, aarch64=True) is None
    assert relocate(bytes(4), ABS32, P, 0xFFFFFFFF, 0, aarch64=True) == word(0xFFFFFFFF)
    assert relocate(bytes(4), ABS32, P, 0xFFFFFFFF, 1, aarch64=True) is None
    assert arm(0x10000003, LO21, P - 3) == 0x10000003 | (-3 & 3) << 29 | (-3 >> 2 & 0x7FFFF) << 5


# Whole objects: what is loaded must be what the instructions say.

TABLE = """
@table = internal constant [4 x i64] [i64 11, i64 22, i64 33, i64 44]
@counter = internal global i64 7
@address = internal constant ptr @counter
declare i32 @cld_printf(ptr, ptr, ptr, i32)
define void @kernel(ptr %launch, ptr %args, ptr %thread, i64 %first, i64 %last) nounwind {
  %entry = getelementptr i64, ptr @table, i64 %first
  %value = load i64, ptr %entry
  store volatile i64 %value, ptr @counter
  %p = load volatile ptr, ptr @address
  notail call i32 @cld_printf(ptr %p, ptr null, ptr %args, i32 77)
  ret void
}
"""
FAR = 0x123456789ABC  # where the test's symbols are


def known(data: bytes) -> bytes:
    """The object with the name of the function that it calls changed to one that the test resolves."""
    return data.replace(b"cld_printf", b"known_____")


def signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> bits - 1 & 1 else value


@pytest.mark.parametrize("base", [0x10000, 0x7F12_3456_7000])
def test_an_aarch64_object(base):
    image, (read_at, write_at) = link(known(emit.compile_ir(TABLE, AARCH64)), base, aarch64=True)
    words = struct.unpack(f"<{read_at // 4}I", image[:read_at])

    def page(i):  # of the adrp at word i
        offset = (words[i] >> 29 & 3) | (words[i] >> 5 & 0x7FFFF) << 2
        return (base + 4 * i & ~0xFFF) + (signed(offset, 21) << 12)

    found = set()
    for i, instruction in enumerate(words[:-1]):
        if instruction & 0x9F000000 == 0x90000000:  # adrp: its partner uses the same register
            for partner in words[i + 1 : i + 12]:
                if partner >> 5 & 31 != instruction & 31:
                    continue
                offset = partner >> 10 & 0xFFF
                if partner & 0xFFC00000 == 0x91000000:  # add
                    found.add(page(i) + offset - base)
                elif partner & 0xFF800000 == 0xF9000000:  # ldr, str of 8 bytes
                    found.add(page(i) + offset * 8 - base)
    tables = [at for at in found if image[at : at + 32] == struct.pack("<4Q", 11, 22, 33, 44)]
    counters = [at for at in found if at >= write_at and image[at : at + 8] == struct.pack("<Q", 7)]
    assert len(tables) == 1 and read_at <= tables[0] < write_at
    assert len(counters) == 1
    assert struct.pack("<Q", base + counters[0]) in image[read_at:write_at]  # @address
    call = next(i for i, w in enumerate(words) if w >> 26 == 0b100101)
    stub = call + signed(words[call] & 0x3FFFFFF, 26)
    slot = page(stub) + (words[stub + 1] >> 10 & 0xFFF) * 8 - base
    assert words[stub + 1] & 0xFFC003FF == 0xF9400210 and words[stub + 2] == 0xD61F0200
    assert struct.unpack_from("<Q", image, slot) == (FAR,)


@pytest.mark.parametrize("base", [0x10000, 0x7F12_3456_7000])
def test_an_x86_64_object(base):
    image, (read_at, write_at) = link(known(emit.compile_ir(TABLE, X86_64)), base)
    code = image[:read_at]
    call = code.index(b"\xe8")
    stub = call + 5 + struct.unpack_from("<i", code, call + 1)[0]
    assert code[stub : stub + 2] == b"\xff\x25"
    slot = stub + 6 + struct.unpack_from("<i", code, stub + 2)[0]
    assert read_at <= slot < write_at and struct.unpack_from("<Q", image, slot) == (FAR,)
    counter = image.index(struct.pack("<Q", 7), write_at)
    assert struct.pack("<Q", base + counter) in image[read_at:write_at]


def test_an_object_of_the_other_architecture_is_refused():
    with pytest.raises(LoadError, match="machine 183, not for x86-64"):
        link(emit.compile_ir(TABLE, AARCH64), 0)
    with pytest.raises(LoadError, match="machine 62, not for AArch64"):
        link(emit.compile_ir(TABLE, X86_64), 0, aarch64=True)


def test_an_unknown_function_is_named():
    with pytest.raises(LoadError, match="'cld_printf' is not a function"):
        link(emit.compile_ir(TABLE, X86_64), 0)
