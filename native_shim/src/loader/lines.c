/* The source line of an instruction, from DWARF's line table (versions 2 to 4: codegen/llvm/debug.py asks for
 * 4).
 *
 * A table is kept as the object has it, with addresses filled in, and interpreted where a line is asked for:
 * nothing is paid for it before. That may be in a handler of a fault, so nothing here allocates or locks. The
 * bytes may come from anywhere: each is read within its bounds. */
#include "loader/internal.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

enum { DIRECTORIES_END = 0, VERSION_WITH_MAX_OPERATIONS = 4 };

enum standard_opcode {
    EXTENDED,
    COPY,
    ADVANCE_PC,
    ADVANCE_LINE,
    SET_FILE,
    CONST_ADD_PC = 8,
    FIXED_ADVANCE_PC,
};
enum extended_opcode { END_SEQUENCE = 1, SET_ADDRESS };

/* Bytes that are read one after the other; once they are at their end, zeros. */
struct bytes {
    const uint8_t *at, *end;
};

static uint64_t fixed(struct bytes *bytes, size_t size) {
    uint64_t value = 0; /* little-endian, as both architectures are */
    if ((size_t)(bytes->end - bytes->at) < size) {
        bytes->at = bytes->end;
        return 0;
    }
    memcpy(&value, bytes->at, size);
    bytes->at += size;
    return value;
}

static uint64_t unsigned_leb(struct bytes *bytes, unsigned *bits, uint8_t *last) {
    uint64_t value = 0;
    *bits = 0;
    do {
        *last = (uint8_t)fixed(bytes, 1);
        if (*bits < 64)
            value |= (uint64_t)(*last & 0x7f) << *bits;
        *bits += 7;
    } while (*last & 0x80);
    return value;
}

static uint64_t number(struct bytes *bytes) {
    unsigned bits;
    uint8_t last;
    return unsigned_leb(bytes, &bits, &last);
}

static uint64_t signed_number(struct bytes *bytes) {
    unsigned bits;
    uint8_t last;
    uint64_t value = unsigned_leb(bytes, &bits, &last);
    return last & 0x40 && bits < 64 ? value | ~UINT64_C(0) << bits : value;
}

/* A string without its terminator; NULL at the end of the bytes. */
static const char *string(struct bytes *bytes, size_t *size) {
    const char *text = (const char *)bytes->at;
    const uint8_t *end = memchr(bytes->at, 0, (size_t)(bytes->end - bytes->at));
    bytes->at = end ? end + 1 : bytes->end;
    *size = end ? (size_t)(end - (const uint8_t *)text) : 0;
    return end ? text : NULL;
}

/* Looks up the file of that number, counted from 1. */
static void find_file(struct bytes files, uint64_t wanted, struct cld_code_place *place) {
    size_t size;
    const char *name;
    for (uint64_t i = 1; (name = string(&files, &size)) && size; i++) {
        if (i == wanted) {
            place->file = name;
            place->file_size = size;
            return;
        }
        for (int j = 0; j < 3; j++) /* directory, time, length */
            number(&files);
    }
}

struct header {
    struct bytes program, files;
    unsigned min_length, line_range, opcode_base;
    int line_base;
    const uint8_t *operands; /* of standard opcodes, from 1 on: how many */
};

/* Reads the header of the unit at the front, and goes on to the next. False: no more that can be read. */
static bool next_unit(struct bytes *table, struct header *header) {
    size_t size;
    uint64_t length = fixed(table, 4);
    if (!length || length > (uint64_t)(table->end - table->at))
        return false;
    struct bytes unit = {table->at, table->at + length};
    table->at = unit.end;
    uint64_t version = fixed(&unit, 2), header_length = fixed(&unit, 4);
    if (version < 2 || version > 4 || header_length > (uint64_t)(unit.end - unit.at))
        return false;
    header->program = (struct bytes){unit.at + header_length, unit.end};
    header->files = (struct bytes){unit.at, unit.at + header_length};
    struct bytes *bytes = &header->files;
    header->min_length = (unsigned)fixed(bytes, 1);
    if (version >= VERSION_WITH_MAX_OPERATIONS)
        fixed(bytes, 1);
    fixed(bytes, 1); /* whether rows are statements, which nothing is made of */
    header->line_base = (int8_t)fixed(bytes, 1);
    header->line_range = (unsigned)fixed(bytes, 1);
    header->opcode_base = (unsigned)fixed(bytes, 1);
    header->operands = bytes->at;
    if (!header->line_range || !header->opcode_base ||
        (size_t)(bytes->end - bytes->at) < header->opcode_base - 1)
        return false;
    bytes->at += header->opcode_base - 1;
    while (string(bytes, &size) && size != DIRECTORIES_END)
        ;
    return true;
}

struct row {
    uint64_t address, file, line;
};

static const struct row first_row = {0, 1, 1};

/* Executes one instruction. True if it appends a row to the table; *ends: the last one of a sequence. */
static bool step(const struct header *header, struct bytes *program, struct row *row, bool *ends) {
    unsigned opcode = (unsigned)fixed(program, 1);
    unsigned most = (255 - header->opcode_base) / header->line_range;
    *ends = false;
    if (opcode >= header->opcode_base) {
        opcode -= header->opcode_base;
        row->address += (uint64_t)(opcode / header->line_range) * header->min_length;
        row->line += (uint64_t)(int64_t)(header->line_base + (int)(opcode % header->line_range));
        return true;
    }
    switch (opcode) {
    case EXTENDED: {
        uint64_t size = number(program);
        if (size > (uint64_t)(program->end - program->at))
            size = (uint64_t)(program->end - program->at);
        struct bytes operands = {program->at, program->at + size};
        program->at = operands.end;
        uint64_t extended = fixed(&operands, 1);
        if (extended == SET_ADDRESS)
            row->address = fixed(&operands, 8);
        *ends = extended == END_SEQUENCE;
        return *ends;
    }
    case COPY:
        return true;
    case ADVANCE_PC:
        row->address += number(program) * header->min_length;
        return false;
    case ADVANCE_LINE:
        row->line += signed_number(program);
        return false;
    case SET_FILE:
        row->file = number(program);
        return false;
    case CONST_ADD_PC:
        row->address += (uint64_t)most * header->min_length;
        return false;
    case FIXED_ADVANCE_PC:
        row->address += fixed(program, 2);
        return false;
    }
    for (unsigned i = 0; i < header->operands[opcode - 1]; i++)
        number(program);
    return false;
}

bool cld_lines_find(const uint8_t *table, size_t size, uint64_t address, struct cld_code_place *place) {
    struct bytes units = {table, table + size};
    struct header header;
    while (next_unit(&units, &header)) {
        struct row row = first_row, before = first_row;
        bool has_before = false, ends;
        while (header.program.at < header.program.end) {
            if (!step(&header, &header.program, &row, &ends))
                continue;
            if (has_before && before.address <= address && address < row.address) {
                if (!before.line || before.line > UINT32_MAX) /* code that stands for no line */
                    return false;
                place->line = (uint32_t)before.line;
                find_file(header.files, before.file, place);
                return true;
            }
            has_before = !ends;
            before = row;
            if (ends)
                row = first_row;
        }
    }
    return false;
}

/* The words that an address is written to: of 64 bits on both architectures. */
static bool is_address(const struct cld_elf *elf, uint32_t type) {
    return elf->machine == EM_X86_64 ? type == R_X86_64_64 : type == R_AARCH64_ABS64;
}

static bool relocate(const struct cld_elf *elf, const struct cld_layout *layout, uint32_t section,
                     uint64_t base, uint8_t *table, size_t size) {
    for (uint32_t i = 0; i < elf->section_count; i++) {
        const struct cld_elf_section *relocations = &elf->sections[i];
        if (relocations->type != SHT_RELA || relocations->info != section)
            continue;
        for (uint64_t j = 0; j < relocations->size / CLD_ELF_RELA_SIZE; j++) {
            struct cld_elf_rela rela = cld_elf_rela(relocations, j);
            if (!is_address(elf, rela.type) || size < 8 || rela.offset > size - 8 ||
                rela.symbol >= elf->symbol_count)
                return false;
            const struct cld_elf_symbol *symbol = &elf->symbols[rela.symbol];
            if (symbol->section >= elf->section_count || layout->section_at[symbol->section] == UINT64_MAX)
                return false;
            uint64_t address =
                base + layout->section_at[symbol->section] + symbol->value + (uint64_t)rela.addend;
            memcpy(table + rela.offset, &address, sizeof address);
        }
    }
    return true;
}

uint8_t *cld_lines_copy(const struct cld_elf *elf, const struct cld_layout *layout, uint64_t base,
                        size_t *size) {
    for (uint32_t i = 0; i < elf->section_count; i++) {
        const struct cld_elf_section *section = &elf->sections[i];
        if (strcmp(section->name, ".debug_line") || !section->bytes || !section->size)
            continue;
        uint8_t *table = malloc(section->size);
        if (!table)
            return NULL;
        memcpy(table, section->bytes, section->size);
        *size = section->size;
        if (relocate(elf, layout, i, base, table, *size))
            return table;
        free(table);
        return NULL;
    }
    return NULL;
}
