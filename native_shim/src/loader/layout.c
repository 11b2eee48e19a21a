/* Lays an object's sections out in one range, and writes the range with all relocations applied. */
#include "loader/internal.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

/* Kernels are kilobytes. The limit keeps every 32-bit distance, and AArch64's 27-bit branches, in reach. */
static const uint64_t MAX_IMAGE = UINT64_C(64) << 20;

enum segment { EXECUTE, READ, WRITE, SEGMENTS };

static enum segment segment_of(const struct cld_elf_section *section) {
    if (section->flags & SHF_EXECINSTR)
        return EXECUTE;
    /* Written by relocations only, and they are done before the pages are protected. */
    if (!strncmp(section->name, ".data.rel.ro", 12))
        return READ;
    return section->flags & SHF_WRITE ? WRITE : READ;
}

static bool check_loaded(const struct cld_elf_section *section, uint64_t page,
                         const struct cld_code_error *error) {
    if (section->flags & SHF_TLS)
        return cld_fail(error, "section %s is thread-local", section->name);
    if (section->flags & SHF_COMPRESSED)
        return cld_fail(error, "section %s is compressed", section->name);
    if ((section->flags & SHF_WRITE) && (section->flags & SHF_EXECINSTR))
        return cld_fail(error, "section %s is writable and executable", section->name);
    if (section->type != SHT_PROGBITS && section->type != SHT_NOBITS && section->type != SHT_NOTE &&
        section->type != 0x70000001 /* SHT_X86_64_UNWIND */)
        return cld_fail(error, "section %s has type %#x, which is not loaded", section->name, section->type);
    if (section->align & (section->align - 1) || section->align > page)
        return cld_fail(error, "section %s wants an alignment of %llu", section->name,
                        (unsigned long long)section->align);
    if (section->size > MAX_IMAGE)
        return cld_fail(error, "section %s has %llu bytes", section->name, (unsigned long long)section->size);
    return true;
}

/* Reserves `bytes` at `align` and returns their offset; false if the image grows too large. */
static bool take(uint64_t *end, uint64_t bytes, uint64_t align, uint64_t *at,
                 const struct cld_code_error *error) {
    *at = (*end + align - 1) & ~(align - 1);
    *end = *at + bytes; /* no overflow: both parts are at most MAX_IMAGE */
    return *end <= MAX_IMAGE ||
           cld_fail(error, "the object needs more than %llu bytes of memory", (unsigned long long)MAX_IMAGE);
}

/* The relocation section's target, or NULL if it is none or its target is not loaded. */
static const struct cld_elf_section *target_of(const struct cld_elf *elf, const struct cld_layout *layout,
                                               uint32_t index) {
    const struct cld_elf_section *section = &elf->sections[index];
    if (section->type != SHT_RELA || layout->section_at[section->info] == UINT64_MAX)
        return NULL;
    return &elf->sections[section->info];
}

static bool check_relocations(const struct cld_elf *elf, const struct cld_layout *layout,
                              const struct cld_code_error *error) {
    for (uint32_t i = 0; i < elf->section_count; i++) {
        const struct cld_elf_section *section = &elf->sections[i];
        if (section->type != SHT_RELA && section->type != SHT_REL && section->type != 19 /* SHT_RELR */)
            continue;
        if (section->type != SHT_RELA)
            return cld_fail(error, "section %s has relocations without addends", section->name);
        if (section->info >= elf->section_count)
            return cld_fail(error, "section %s relocates section %u of %u", section->name, section->info,
                            elf->section_count);
        if (!target_of(elf, layout, i))
            continue;
        if (!elf->symbol_table || section->link != elf->symbol_table || section->size % CLD_ELF_RELA_SIZE)
            return cld_fail(error, "section %s is malformed", section->name);
        if (elf->sections[section->info].type == SHT_NOBITS)
            return cld_fail(error, "section %s relocates bytes that the file does not have", section->name);
    }
    return true;
}

/* Checks one relocation as far as its section and symbol go, and says how it uses the symbol. */
static bool check_rela(const struct cld_elf *elf, const struct cld_layout *layout,
                       const struct cld_arch *arch, const struct cld_elf_section *target,
                       const struct cld_elf_rela *rela, enum cld_reloc_use *use,
                       const struct cld_code_error *error) {
    uint32_t bytes;
    *use = arch->use(rela->type, &bytes);
    if (*use == CLD_RELOC_UNKNOWN)
        return cld_fail(error, "relocation type %u of %s is not supported", rela->type, arch->name);
    if (rela->offset > target->size || bytes > target->size - rela->offset)
        return cld_fail(error, "a relocation lies outside section %s", target->name);
    if (*use == CLD_RELOC_NONE)
        return true;
    if (!rela->symbol || rela->symbol >= elf->symbol_count)
        return cld_fail(error, "a relocation of %s names symbol %u of %u", target->name, rela->symbol,
                        elf->symbol_count);
    const struct cld_elf_symbol *symbol = &elf->symbols[rela->symbol];
    if (symbol->section == SHN_UNDEF) {
        if (*use == CLD_RELOC_VALUE)
            return cld_fail(error, "'%s' is outside the object and may be out of reach", symbol->name);
    } else if (symbol->section != SHN_ABS && layout->section_at[symbol->section] == UINT64_MAX) {
        return cld_fail(error, "'%s' is in section %s, which is not loaded", symbol->name,
                        elf->sections[symbol->section].name);
    }
    return true;
}

/* Gives every symbol that is reached through a word or a stub its place among them. */
static bool count_slots(struct cld_layout *layout, const struct cld_elf *elf, const struct cld_arch *arch,
                        uint32_t *slots, uint32_t *stubs, const struct cld_code_error *error) {
    for (uint32_t i = 0; i < elf->section_count; i++) {
        const struct cld_elf_section *target = target_of(elf, layout, i);
        if (!target)
            continue;
        for (uint64_t k = 0; k < elf->sections[i].size / CLD_ELF_RELA_SIZE; k++) {
            struct cld_elf_rela rela = cld_elf_rela(&elf->sections[i], k);
            enum cld_reloc_use use;
            if (!check_rela(elf, layout, arch, target, &rela, &use, error))
                return false;
            bool outside = use == CLD_RELOC_CALL && elf->symbols[rela.symbol].section == SHN_UNDEF;
            if (outside && layout->stub[rela.symbol] == UINT32_MAX)
                layout->stub[rela.symbol] = (*stubs)++;
            if ((outside || use == CLD_RELOC_GOT) && layout->slot[rela.symbol] == UINT32_MAX)
                layout->slot[rela.symbol] = (*slots)++;
        }
    }
    return true;
}

static bool plan_segment(struct cld_layout *layout, const struct cld_elf *elf, enum segment segment,
                         uint64_t page, uint64_t *end, const struct cld_code_error *error) {
    for (uint32_t i = 0; i < elf->section_count; i++) {
        const struct cld_elf_section *section = &elf->sections[i];
        if (!(section->flags & SHF_ALLOC) || section->type == SHT_NULL || segment_of(section) != segment)
            continue;
        if (!check_loaded(section, page, error) ||
            !take(end, section->size, section->align, &layout->section_at[i], error))
            return false;
    }
    return true;
}

static bool plan(struct cld_layout *layout, const struct cld_elf *elf, const struct cld_arch *arch,
                 uint64_t page, const struct cld_code_error *error) {
    /* Which sections are loaded must be known before stubs can be counted, their places not. */
    for (uint32_t i = 0; i < elf->section_count; i++)
        if (elf->sections[i].flags & SHF_ALLOC && elf->sections[i].type != SHT_NULL)
            layout->section_at[i] = 0;
    uint32_t slots = 0, stubs = 0;
    uint64_t end = 0, unused;
    return check_relocations(elf, layout, error) && count_slots(layout, elf, arch, &slots, &stubs, error) &&
           plan_segment(layout, elf, EXECUTE, page, &end, error) &&
           take(&end, (uint64_t)stubs * arch->stub_size, 16, &layout->stubs_at, error) &&
           take(&end, 0, page, &layout->read_at, error) &&
           plan_segment(layout, elf, READ, page, &end, error) &&
           take(&end, (uint64_t)slots * 8, 8, &layout->slots_at, error) &&
           take(&end, 0, page, &layout->write_at, error) &&
           plan_segment(layout, elf, WRITE, page, &end, error) && take(&end, 0, page, &unused, error) &&
           (layout->size = end, end > 0 || cld_fail(error, "the object is empty"));
}

bool cld_layout_plan(struct cld_layout *layout, const struct cld_elf *elf, const struct cld_arch *arch,
                     uint64_t page, const struct cld_code_error *error) {
    *layout = (struct cld_layout){0};
    if (elf->machine != arch->machine)
        return cld_fail(error, "the object is for ELF machine %u, not for %s", elf->machine, arch->name);
    layout->section_at = malloc(elf->section_count * sizeof *layout->section_at);
    layout->slot = malloc((elf->symbol_count + 1) * sizeof *layout->slot);
    layout->stub = malloc((elf->symbol_count + 1) * sizeof *layout->stub);
    bool ok = layout->section_at && layout->slot && layout->stub;
    if (!ok)
        cld_fail(error, "out of memory");
    else {
        memset(layout->section_at, 0xff, elf->section_count * sizeof *layout->section_at);
        memset(layout->slot, 0xff, (elf->symbol_count + 1) * sizeof *layout->slot);
        memset(layout->stub, 0xff, (elf->symbol_count + 1) * sizeof *layout->stub);
        ok = plan(layout, elf, arch, page, error);
    }
    if (!ok)
        cld_layout_free(layout);
    return ok;
}

void cld_layout_free(struct cld_layout *layout) {
    free(layout->section_at);
    free(layout->slot);
    free(layout->stub);
    *layout = (struct cld_layout){0};
}

/* The run-time address of a symbol that check_rela() accepted. */
static bool address_of(const struct cld_layout *layout, const struct cld_elf_symbol *symbol, uint64_t base,
                       void *(*resolve)(const char *name), uint64_t *address,
                       const struct cld_code_error *error) {
    if (symbol->section == SHN_ABS) {
        *address = symbol->value;
    } else if (symbol->section != SHN_UNDEF) {
        *address = base + layout->section_at[symbol->section] + symbol->value;
    } else {
        *address = (uint64_t)(uintptr_t)resolve(symbol->name);
        if (!*address)
            return cld_fail(error, "'%s' is not a function that kernels may call", symbol->name);
    }
    return true;
}

static bool write_slots(const struct cld_layout *layout, const struct cld_elf *elf,
                        const struct cld_arch *arch, uint8_t *image, uint64_t base,
                        void *(*resolve)(const char *name), const struct cld_code_error *error) {
    for (uint32_t i = 0; i < elf->symbol_count; i++) {
        if (layout->slot[i] == UINT32_MAX)
            continue;
        uint64_t address, slot = layout->slots_at + (uint64_t)layout->slot[i] * 8;
        if (!address_of(layout, &elf->symbols[i], base, resolve, &address, error))
            return false;
        memcpy(image + slot, &address, 8);
        if (layout->stub[i] == UINT32_MAX)
            continue;
        uint64_t stub = layout->stubs_at + (uint64_t)layout->stub[i] * arch->stub_size;
        if (!arch->stub(image + stub, base + stub, base + slot))
            return cld_fail(error, "the stub of '%s' does not reach its word", elf->symbols[i].name);
    }
    return true;
}

static bool relocate(const struct cld_layout *layout, const struct cld_elf *elf, const struct cld_arch *arch,
                     uint8_t *image, uint64_t base, uint32_t index, const struct cld_elf_rela *rela,
                     void *(*resolve)(const char *name), const struct cld_code_error *error) {
    const struct cld_elf_symbol *symbol = &elf->symbols[rela->symbol];
    uint32_t bytes;
    uint64_t target, at = layout->section_at[index] + rela->offset;
    enum cld_reloc_use use = arch->use(rela->type, &bytes);
    if (use == CLD_RELOC_GOT)
        target = base + layout->slots_at + (uint64_t)layout->slot[rela->symbol] * 8;
    else if (use == CLD_RELOC_CALL && symbol->section == SHN_UNDEF)
        target = base + layout->stubs_at + (uint64_t)layout->stub[rela->symbol] * arch->stub_size;
    else if (!address_of(layout, symbol, base, resolve, &target, error))
        return false;
    if (!arch->apply(rela->type, image + at, base + at, target, rela->addend))
        return cld_fail(error, "relocation type %u of '%s' does not fit", rela->type, symbol->name);
    return true;
}

bool cld_layout_link(const struct cld_layout *layout, const struct cld_elf *elf, const struct cld_arch *arch,
                     uint8_t *image, uint64_t base, void *(*resolve)(const char *name),
                     const struct cld_code_error *error) {
    for (uint32_t i = 0; i < elf->section_count; i++)
        if (layout->section_at[i] != UINT64_MAX && elf->sections[i].bytes)
            memcpy(image + layout->section_at[i], elf->sections[i].bytes, elf->sections[i].size);
    if (!write_slots(layout, elf, arch, image, base, resolve, error))
        return false;
    for (uint32_t i = 0; i < elf->section_count; i++) {
        if (!target_of(elf, layout, i))
            continue;
        for (uint64_t k = 0; k < elf->sections[i].size / CLD_ELF_RELA_SIZE; k++) {
            struct cld_elf_rela rela = cld_elf_rela(&elf->sections[i], k);
            uint32_t bytes;
            if (arch->use(rela.type, &bytes) != CLD_RELOC_NONE &&
                !relocate(layout, elf, arch, image, base, elf->sections[i].info, &rela, resolve, error))
                return false;
        }
    }
    return true;
}
