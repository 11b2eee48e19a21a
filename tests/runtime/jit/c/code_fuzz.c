/* Feeds damaged objects to the code loader: `code_fuzz rounds seed object...`, and
 * damaged line tables to what looks lines up. Built with sanitizers, it ends
 * with a report at the first access that is out of bounds. Prints how many were refused and accepted. */
#include "loader/load.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t link_object(int aarch64, const void *object, size_t size, uint64_t base, uint8_t *out, size_t room,
                   uint64_t starts[2], char *reason, size_t reason_size);

size_t line_table(int aarch64, const void *object, size_t size, uint64_t base, uint8_t *out, size_t room);
uint32_t find_line(const uint8_t *table, size_t size, uint64_t address, char *file, size_t room);

static uint64_t state;

static uint64_t next(void) { /* xorshift64* */
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * UINT64_C(2685821657736338717);
}

/* Values that overflow, or nearly do, when added to or multiplied. */
static uint64_t interesting(void) {
    static const uint64_t values[] = {0,          1,          0x7f,       0x80,         0xff,
                                      0xfff1,     0xffff,     0x7fffffff, 0x80000000,   0xffffffff,
                                      0xfffffff0, 0x10000000, 1ull << 63, ~0ull,        ~0ull - 7,
                                      1ull << 32, 1ull << 40, 0x1000,     0x0fffffffff, ~0ull << 12};
    return values[next() % (sizeof values / sizeof *values)];
}

static size_t damage(uint8_t *bytes, size_t size) {
    uint64_t count = 1 + next() % 4, tables;
    memcpy(&tables, bytes + 40, 8); /* e_shoff: half of the damage goes to the section headers and after */
    for (uint64_t i = 0; i < count; i++) {
        size_t width = (size_t)1 << next() % 4, start = next() % 2 && tables < size ? tables : 0;
        size_t at = start + next() % (size - start);
        uint64_t value = next() % 3 ? interesting() : next();
        if (at + width <= size)
            memcpy(bytes + at, &value, width);
    }
    return next() % 8 ? size : next() % size;
}

/* Looks up lines in a damaged table, in a block of just its size. */
static void damage_lines(const uint8_t *table, size_t size, uint64_t base) {
    uint8_t *exact = malloc(size);
    size_t left = next() % 8 ? size : 1 + next() % size;
    memcpy(exact, table, left);
    for (uint64_t i = 0, count = next() % 4; i < count; i++)
        exact[next() % left] = (uint8_t)(next() % 2 ? next() : interesting());
    exact = realloc(exact, left);
    for (uint64_t at = 0; at < 64; at += 8) {
        char file[20];
        find_line(exact, left, base + at, file, sizeof file);
    }
    free(exact);
}

int main(int argc, char **argv) {
    long rounds = argc > 3 ? atol(argv[1]) : 0, refused = 0, accepted = 0, lined = 0;
    state = argc > 3 ? strtoull(argv[2], NULL, 0) | 1 : 1;
    for (int file = 3; file < argc; file++) {
        FILE *stream = fopen(argv[file], "rb");
        static uint8_t original[1 << 16], image[1 << 16];
        size_t size = stream ? fread(original, 1, sizeof original, stream) : 0;
        if (!size)
            return 2;
        fclose(stream);
        static uint8_t lines[1 << 14];
        size_t line_bytes = 0;
        for (int arch = 0; arch < 2 && !line_bytes; arch++)
            line_bytes = line_table(arch, original, size, UINT64_C(1) << 32, lines, sizeof lines);
        for (long round = 0; line_bytes && round < 4 * rounds; round++)
            damage_lines(lines, line_bytes, UINT64_C(1) << 32);
        lined += line_bytes > 0;
        for (long round = 0; round < rounds; round++) {
            /* In a block of just that size, so that one byte past the end is found. */
            uint8_t *bytes = malloc(size);
            memcpy(bytes, original, size);
            size_t left = damage(bytes, size);
            uint8_t *exact = malloc(left ? left : 1);
            memcpy(exact, bytes, left);
            char reason[120] = "";
            uint64_t starts[2];
            struct cld_code *code = cld_code_load(exact, left, reason, sizeof reason);
            if (!code && !*reason)
                return 3; /* refused without a reason */
            *(code ? &accepted : &refused) += 1;
            if (code)
                cld_code_symbol(code, "kernel");
            cld_code_unload(code);
            for (int arch = 0; arch < 2; arch++)
                link_object(arch, exact, left, UINT64_C(0x7f0000000000), image, sizeof image, starts, reason,
                            sizeof reason);
            free(exact);
            free(bytes);
        }
    }
    printf("%ld refused, %ld accepted, %ld with lines\n", refused, accepted, lined);
    return 0;
}
