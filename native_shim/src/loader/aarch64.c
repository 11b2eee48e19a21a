/* Relocations of AArch64 (ELF for the Arm 64-bit Architecture, section 5.7), for position-independent code of
 * the small model. Instructions are little endian on every AArch64 that runs Linux. */
#include "loader/internal.h"

#include <elf.h>
#include <string.h>

#ifndef R_AARCH64_PLT32
#define R_AARCH64_PLT32 314
#endif

static enum cld_reloc_use use(uint32_t type, uint32_t *bytes) {
    *bytes = 4;
    switch (type) {
    case R_AARCH64_NONE:
        *bytes = 0;
        return CLD_RELOC_NONE;
    case R_AARCH64_ABS64:
        *bytes = 8;
        return CLD_RELOC_VALUE64;
    case R_AARCH64_PREL64:
        *bytes = 8;
        return CLD_RELOC_VALUE;
    case R_AARCH64_ABS32:
    case R_AARCH64_PREL32:
    case R_AARCH64_ADR_PREL_LO21:
    case R_AARCH64_ADR_PREL_PG_HI21:
    case R_AARCH64_ADD_ABS_LO12_NC:
    case R_AARCH64_LDST8_ABS_LO12_NC:
    case R_AARCH64_LDST16_ABS_LO12_NC:
    case R_AARCH64_LDST32_ABS_LO12_NC:
    case R_AARCH64_LDST64_ABS_LO12_NC:
    case R_AARCH64_LDST128_ABS_LO12_NC:
    case R_AARCH64_LD_PREL_LO19:
    case R_AARCH64_CONDBR19:
    case R_AARCH64_TSTBR14:
        return CLD_RELOC_VALUE;
    case R_AARCH64_CALL26:
    case R_AARCH64_JUMP26:
    case R_AARCH64_PLT32:
        return CLD_RELOC_CALL;
    case R_AARCH64_ADR_GOT_PAGE:
    case R_AARCH64_LD64_GOT_LO12_NC:
        return CLD_RELOC_GOT;
    default:
        *bytes = 0;
        return CLD_RELOC_UNKNOWN;
    }
}

/* Replaces `width` bits of an instruction, from bit `low` up. */
static void set_field(uint8_t *place, uint32_t low, uint32_t width, uint64_t value) {
    uint32_t word, mask = ((UINT32_C(1) << width) - 1) << low;
    memcpy(&word, place, 4);
    word = (word & ~mask) | (((uint32_t)value << low) & mask);
    memcpy(place, &word, 4);
}

/* True if value is a signed number of that many bits, and a multiple of 1 << shift. */
static bool fits(int64_t value, uint32_t bits, uint32_t shift) {
    int64_t limit = INT64_C(1) << (bits - 1);
    return value >= -limit && value < limit && !(value & ((INT64_C(1) << shift) - 1));
}

/* adr and adrp: the low two bits of the immediate stand apart. */
static void set_adr(uint8_t *place, int64_t value) {
    set_field(place, 29, 2, (uint64_t)value & 3);
    set_field(place, 5, 19, (uint64_t)value >> 2);
}

/* The low 12 bits of an address as the scaled offset of a load or store of 1 << scale bytes. */
static bool set_low12(uint8_t *place, uint64_t value, uint32_t scale) {
    uint64_t low = value & 0xfff;
    set_field(place, 10, 12, low >> scale);
    return !(low & ((UINT64_C(1) << scale) - 1));
}

static int64_t page_distance(uint64_t value, uint64_t address) {
    return (int64_t)((value & ~UINT64_C(0xfff)) - (address & ~UINT64_C(0xfff)));
}

static bool apply(uint32_t type, uint8_t *place, uint64_t address, uint64_t target, int64_t addend) {
    uint64_t absolute = target + (uint64_t)addend;
    int64_t relative = (int64_t)(absolute - address);
    int64_t pages = page_distance(absolute, address);
    switch (type) {
    case R_AARCH64_ABS64:
        memcpy(place, &absolute, 8);
        return true;
    case R_AARCH64_PREL64:
        memcpy(place, &relative, 8);
        return true;
    case R_AARCH64_ABS32: /* may be meant signed or unsigned: -2^31 <= X < 2^32 */
        memcpy(place, &absolute, 4);
        return absolute <= UINT32_MAX || (int64_t)absolute == (int32_t)absolute;
    case R_AARCH64_PREL32:
    case R_AARCH64_PLT32:
        memcpy(place, &relative, 4);
        return relative == (int32_t)relative;
    case R_AARCH64_ADR_PREL_LO21:
        set_adr(place, relative);
        return fits(relative, 21, 0);
    case R_AARCH64_ADR_PREL_PG_HI21:
    case R_AARCH64_ADR_GOT_PAGE:
        set_adr(place, pages / 4096);
        return fits(pages, 33, 12);
    case R_AARCH64_ADD_ABS_LO12_NC:
    case R_AARCH64_LDST8_ABS_LO12_NC:
        return set_low12(place, absolute, 0);
    case R_AARCH64_LDST16_ABS_LO12_NC:
        return set_low12(place, absolute, 1);
    case R_AARCH64_LDST32_ABS_LO12_NC:
        return set_low12(place, absolute, 2);
    case R_AARCH64_LDST64_ABS_LO12_NC:
    case R_AARCH64_LD64_GOT_LO12_NC:
        return set_low12(place, absolute, 3);
    case R_AARCH64_LDST128_ABS_LO12_NC:
        return set_low12(place, absolute, 4);
    case R_AARCH64_LD_PREL_LO19:
    case R_AARCH64_CONDBR19:
        set_field(place, 5, 19, (uint64_t)relative >> 2);
        return fits(relative, 21, 2);
    case R_AARCH64_TSTBR14:
        set_field(place, 5, 14, (uint64_t)relative >> 2);
        return fits(relative, 16, 2);
    default: /* CALL26, JUMP26 */
        set_field(place, 0, 26, (uint64_t)relative >> 2);
        return fits(relative, 28, 2);
    }
}

/* adrp x16, slot; ldr x16, [x16, slot's low bits]; br x16; brk. x16 is the linkers' register (AAPCS64). */
static bool stub(uint8_t *place, uint64_t address, uint64_t slot) {
    static const uint32_t code[4] = {0x90000010, 0xf9400210, 0xd61f0200, 0xd4200000};
    memcpy(place, code, sizeof code);
    return apply(R_AARCH64_ADR_PREL_PG_HI21, place, address, slot, 0) &&
           apply(R_AARCH64_LDST64_ABS_LO12_NC, place + 4, address + 4, slot, 0);
}

const struct cld_arch cld_arch_aarch64 = {EM_AARCH64, "AArch64", 16, use, apply, stub};
