/* Relocations of x86-64 (System V psABI, table 4.9), for position-independent code of the small model. */
#include "loader/internal.h"

#include <elf.h>
#include <string.h>

static enum cld_reloc_use use(uint32_t type, uint32_t *bytes) {
    *bytes = 4;
    switch (type) {
    case R_X86_64_NONE:
        *bytes = 0;
        return CLD_RELOC_NONE;
    case R_X86_64_64:
        *bytes = 8;
        return CLD_RELOC_VALUE64;
    case R_X86_64_PC64:
        *bytes = 8;
        return CLD_RELOC_VALUE;
    case R_X86_64_PC32:
    case R_X86_64_32:
    case R_X86_64_32S:
        return CLD_RELOC_VALUE;
    case R_X86_64_PLT32:
        return CLD_RELOC_CALL;
    case R_X86_64_GOTPCREL:
    case R_X86_64_GOTPCRELX:
    case R_X86_64_REX_GOTPCRELX:
        return CLD_RELOC_GOT;
    default:
        *bytes = 0;
        return CLD_RELOC_UNKNOWN;
    }
}

static bool apply(uint32_t type, uint8_t *place, uint64_t address, uint64_t target, int64_t addend) {
    uint64_t absolute = target + (uint64_t)addend;
    int64_t relative = (int64_t)(absolute - address);
    switch (type) {
    case R_X86_64_64:
        memcpy(place, &absolute, 8);
        return true;
    case R_X86_64_PC64:
        memcpy(place, &relative, 8);
        return true;
    case R_X86_64_32:
        memcpy(place, &absolute, 4);
        return absolute <= UINT32_MAX;
    case R_X86_64_32S:
        memcpy(place, &absolute, 4);
        return (int64_t)absolute == (int32_t)absolute;
    default: /* the relative ones of 32 bits */
        memcpy(place, &relative, 4);
        return relative == (int32_t)relative;
    }
}

/* jmp *slot(%rip), padded with int3. */
static bool stub(uint8_t *place, uint64_t address, uint64_t slot) {
    int64_t relative = (int64_t)(slot - (address + 6));
    static const uint8_t code[8] = {0xff, 0x25, 0, 0, 0, 0, 0xcc, 0xcc};
    memcpy(place, code, sizeof code);
    memcpy(place + 2, &relative, 4);
    return relative == (int32_t)relative;
}

const struct cld_arch cld_arch_x86_64 = {EM_X86_64, "x86-64", 8, use, apply, stub};
