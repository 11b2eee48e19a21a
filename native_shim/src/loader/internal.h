/* What the files of the code loader share. */
#ifndef CLD_INTERNAL_H
#define CLD_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/load.h"

/* Where a reason goes. fail() returns false so that checks can be written `return cld_fail(...)`. */
struct cld_code_error {
    char *text;
    size_t size;
};
bool cld_fail(const struct cld_code_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The parts of an object that the loader uses, all checked against the file's bounds. Pointers go into the
 * object's bytes, which may be unaligned: nothing but bytes is read through them. */
struct cld_elf_section {
    const char *name;
    const uint8_t *bytes; /* NULL for NOBITS */
    uint64_t flags, size, align;
    uint32_t type, link, info;
};

struct cld_elf_symbol {
    const char *name;
    uint64_t value, size;
    uint16_t section; /* an index below section_count, SHN_UNDEF or SHN_ABS */
    uint8_t type, binding;
};

struct cld_elf {
    uint16_t machine;
    uint32_t section_count, symbol_count;
    uint32_t symbol_table; /* section index of the symbol table, 0 if there is none */
    struct cld_elf_section *sections;
    struct cld_elf_symbol *symbols;
};

/* Reads the headers, sections and symbols of an object, which must stay where it is; false, and error says
 * why, if anything in it is out of bounds. What was opened is to be closed. */
bool cld_elf_open(struct cld_elf *elf, const void *object, size_t size, const struct cld_code_error *error);
void cld_elf_close(struct cld_elf *elf);

/* One entry of a SHT_RELA section, read from unaligned bytes. */
struct cld_elf_rela {
    uint64_t offset;
    int64_t addend;
    uint32_t type, symbol;
};
enum { CLD_ELF_RELA_SIZE = 24 };
struct cld_elf_rela cld_elf_rela(const struct cld_elf_section *section, uint64_t index);

/* What a relocation type means by "the symbol". */
enum cld_reloc_use {
    CLD_RELOC_UNKNOWN, /* refused */
    CLD_RELOC_NONE,    /* nothing to do */
    CLD_RELOC_VALUE,   /* the symbol's address; refused for symbols outside the object unless 64 bits wide */
    CLD_RELOC_VALUE64, /* the same in 64 bits, which reach everything */
    CLD_RELOC_CALL,    /* the symbol's address or a stub that jumps there */
    CLD_RELOC_GOT,     /* the address of a word that holds the symbol's address */
};

/* One architecture. Everything here works on bytes alone, so that each can be tested on any host. */
struct cld_arch {
    uint16_t machine;
    const char *name;
    uint32_t stub_size; /* bytes, a multiple of 4 */
    /* How a type uses its symbol, and the bytes that it patches. */
    enum cld_reloc_use (*use)(uint32_t type, uint32_t *bytes);
    /* Patches `place`, which will run at `address`; `target` is the symbol, stub or word address without the
     * addend. False if the result does not fit the field. */
    bool (*apply)(uint32_t type, uint8_t *place, uint64_t address, uint64_t target, int64_t addend);
    /* Writes a stub that will run at `address` and jumps to what the word at `slot` holds. */
    bool (*stub)(uint8_t *place, uint64_t address, uint64_t slot);
};
extern const struct cld_arch cld_arch_x86_64, cld_arch_aarch64;

/* Where everything goes. The image is one range: executable pages, read-only pages, writable pages. */
struct cld_layout {
    uint64_t *section_at; /* offset of each section in the image, UINT64_MAX for those that are not loaded */
    uint32_t *slot;       /* per symbol: its word among the slots, or UINT32_MAX */
    uint32_t *stub;       /* per symbol: its stub among the stubs, or UINT32_MAX */
    uint64_t stubs_at, slots_at;
    uint64_t read_at, write_at, size; /* executable [0, read_at), read-only, writable [write_at, size) */
};

/* Lays out, then writes the image with all relocations applied. `image` has layout.size zeroed bytes and will
 * run at `base`; resolve gives the address of an undefined symbol or NULL. */
bool cld_layout_plan(struct cld_layout *layout, const struct cld_elf *elf, const struct cld_arch *arch,
                     uint64_t page, const struct cld_code_error *error);
bool cld_layout_link(const struct cld_layout *layout, const struct cld_elf *elf, const struct cld_arch *arch,
                     uint8_t *image, uint64_t base, void *(*resolve)(const char *name),
                     const struct cld_code_error *error);
void cld_layout_free(struct cld_layout *layout);

/* The function of abi/code_symbols.def with that name, or NULL. */
void *cld_code_resolve(const char *name);

/* The object's line table with addresses filled in, malloced; NULL if there is none (lines.c). */
uint8_t *cld_lines_copy(const struct cld_elf *elf, const struct cld_layout *layout, uint64_t base,
                        size_t *size);

/* Fills in the line of an address, if the table has one; it may be damaged. */
bool cld_lines_find(const uint8_t *table, size_t size, uint64_t address, struct cld_code_place *place);

/* Debuggers and profilers, when CL_DRIVER_JIT_DEBUG asks for them (debug.c). The entry is what gdb was
 * told, to be given back when the code goes; NULL if nothing was. */
struct cld_code_debug_entry;
struct cld_code_debug_entry *cld_code_debug_loaded(const struct cld_elf *elf, const struct cld_layout *layout,
                                                   const void *object, size_t size, uint64_t base);
void cld_code_debug_unloaded(struct cld_code_debug_entry *entry);

#endif
