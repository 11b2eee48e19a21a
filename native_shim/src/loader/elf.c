/* Reads and checks a relocatable ELF64 object. Nothing after this file sees an unchecked offset. */
#include "loader/internal.h"

#include <elf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool cld_fail(const struct cld_code_error *error, const char *format, ...) {
    if (error->text && error->size) {
        va_list args;
        va_start(args, format);
        vsnprintf(error->text, error->size, format, args);
        va_end(args);
    }
    return false;
}

static bool in_file(uint64_t offset, uint64_t bytes, uint64_t size) {
    return offset <= size && bytes <= size - offset;
}

/* The terminated string at `offset` of a string table, or NULL. */
static const char *string_at(const struct cld_elf_section *table, uint64_t offset) {
    if (!table->bytes || offset >= table->size)
        return NULL;
    const char *string = (const char *)table->bytes + offset;
    return memchr(string, 0, table->size - offset) ? string : NULL;
}

static bool check_header(const Elf64_Ehdr *header, size_t size, const struct cld_code_error *error) {
    if (memcmp(header->e_ident, ELFMAG, SELFMAG))
        return cld_fail(error, "not an ELF file");
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB)
        return cld_fail(error, "not a 64-bit little-endian ELF file");
    if (header->e_type != ET_REL)
        return cld_fail(error, "not a relocatable object (ELF type %u)", header->e_type);
    if (header->e_shentsize != sizeof(Elf64_Shdr) || !header->e_shnum || header->e_shnum >= SHN_LORESERVE)
        return cld_fail(error, "unusable section table (%u entries of %u bytes)", header->e_shnum,
                        header->e_shentsize);
    if (!in_file(header->e_shoff, (uint64_t)header->e_shnum * sizeof(Elf64_Shdr), size))
        return cld_fail(error, "section table outside the file");
    if (header->e_shstrndx >= header->e_shnum)
        return cld_fail(error, "section name table has index %u of %u", header->e_shstrndx, header->e_shnum);
    return true;
}

static bool read_sections(struct cld_elf *elf, const uint8_t *object, size_t size, const Elf64_Ehdr *header,
                          const struct cld_code_error *error) {
    elf->sections = calloc(header->e_shnum, sizeof *elf->sections);
    if (!elf->sections)
        return cld_fail(error, "out of memory");
    elf->section_count = header->e_shnum;
    for (uint32_t i = 0; i < elf->section_count; i++) {
        Elf64_Shdr raw;
        memcpy(&raw, object + header->e_shoff + (uint64_t)i * sizeof raw, sizeof raw);
        struct cld_elf_section *section = &elf->sections[i];
        section->type = raw.sh_type;
        section->flags = raw.sh_flags;
        section->size = raw.sh_size;
        section->align = raw.sh_addralign ? raw.sh_addralign : 1;
        section->link = raw.sh_link;
        section->info = raw.sh_info;
        if (raw.sh_type == SHT_NULL || raw.sh_type == SHT_NOBITS)
            continue;
        if (!in_file(raw.sh_offset, raw.sh_size, size))
            return cld_fail(error, "section %u lies outside the file", i);
        section->bytes = object + raw.sh_offset;
        if ((raw.sh_type == SHT_SYMTAB && raw.sh_entsize != sizeof(Elf64_Sym)) ||
            (raw.sh_type == SHT_RELA && raw.sh_entsize != CLD_ELF_RELA_SIZE))
            return cld_fail(error, "section %u has entries of %llu bytes", i,
                            (unsigned long long)raw.sh_entsize);
    }
    for (uint32_t i = 0; i < elf->section_count; i++) {
        Elf64_Shdr raw;
        memcpy(&raw, object + header->e_shoff + (uint64_t)i * sizeof raw, sizeof raw);
        elf->sections[i].name = string_at(&elf->sections[header->e_shstrndx], raw.sh_name);
        if (!elf->sections[i].name)
            return cld_fail(error, "section %u has no name", i);
    }
    return true;
}

static bool read_symbol(struct cld_elf *elf, uint32_t index, const struct cld_elf_section *table,
                        const struct cld_elf_section *strings, const struct cld_code_error *error) {
    Elf64_Sym raw;
    memcpy(&raw, table->bytes + (uint64_t)index * sizeof raw, sizeof raw);
    struct cld_elf_symbol *symbol = &elf->symbols[index];
    symbol->name = string_at(strings, raw.st_name);
    if (!symbol->name)
        return cld_fail(error, "symbol %u has no name", index);
    symbol->value = raw.st_value;
    symbol->size = raw.st_size;
    symbol->section = raw.st_shndx;
    symbol->type = ELF64_ST_TYPE(raw.st_info);
    symbol->binding = ELF64_ST_BIND(raw.st_info);
    if (symbol->type == STT_TLS)
        return cld_fail(error, "symbol '%s' is thread-local", symbol->name);
    if (symbol->type == STT_GNU_IFUNC)
        return cld_fail(error, "symbol '%s' is an indirect function", symbol->name);
    if (raw.st_shndx == SHN_UNDEF || raw.st_shndx == SHN_ABS)
        return true;
    if (raw.st_shndx == SHN_COMMON)
        return cld_fail(error, "symbol '%s' is a common symbol", symbol->name);
    if (raw.st_shndx >= elf->section_count)
        return cld_fail(error, "symbol '%s' is in section %u of %u", symbol->name, raw.st_shndx,
                        elf->section_count);
    const struct cld_elf_section *section = &elf->sections[raw.st_shndx];
    if (raw.st_value > section->size || raw.st_size > section->size - raw.st_value)
        return cld_fail(error, "symbol '%s' lies outside its section", symbol->name);
    return true;
}

static bool read_symbols(struct cld_elf *elf, const struct cld_code_error *error) {
    for (uint32_t i = 1; i < elf->section_count; i++) {
        if (elf->sections[i].type != SHT_SYMTAB)
            continue;
        if (elf->symbol_table)
            return cld_fail(error, "two symbol tables");
        elf->symbol_table = i;
    }
    if (!elf->symbol_table)
        return true;
    const struct cld_elf_section *table = &elf->sections[elf->symbol_table];
    if (table->link >= elf->section_count)
        return cld_fail(error, "the symbol table has no string table");
    uint64_t count = table->size / sizeof(Elf64_Sym);
    if (count >= UINT32_MAX)
        return cld_fail(error, "too many symbols");
    elf->symbols = calloc(count ? count : 1, sizeof *elf->symbols);
    if (!elf->symbols)
        return cld_fail(error, "out of memory");
    elf->symbol_count = (uint32_t)count;
    for (uint32_t i = 0; i < elf->symbol_count; i++)
        if (!read_symbol(elf, i, table, &elf->sections[table->link], error))
            return false;
    return true;
}

bool cld_elf_open(struct cld_elf *elf, const void *object, size_t size, const struct cld_code_error *error) {
    *elf = (struct cld_elf){0};
    Elf64_Ehdr header;
    if (size < sizeof header)
        return cld_fail(error, "not an ELF file: %zu bytes", size);
    memcpy(&header, object, sizeof header);
    if (!check_header(&header, size, error))
        return false;
    elf->machine = header.e_machine;
    if (read_sections(elf, object, size, &header, error) && read_symbols(elf, error))
        return true;
    cld_elf_close(elf);
    return false;
}

void cld_elf_close(struct cld_elf *elf) {
    free(elf->sections);
    free(elf->symbols);
    *elf = (struct cld_elf){0};
}

struct cld_elf_rela cld_elf_rela(const struct cld_elf_section *section, uint64_t index) {
    Elf64_Rela raw;
    _Static_assert(sizeof raw == CLD_ELF_RELA_SIZE, "the size of an entry");
    memcpy(&raw, section->bytes + index * sizeof raw, sizeof raw);
    return (struct cld_elf_rela){raw.r_offset, raw.r_addend, (uint32_t)ELF64_R_TYPE(raw.r_info),
                                 (uint32_t)ELF64_R_SYM(raw.r_info)};
}
