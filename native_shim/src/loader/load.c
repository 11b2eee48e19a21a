/* Maps one object: reserves pages, links into them, protects them, keeps the symbols. */
#define _GNU_SOURCE /* MAP_ANONYMOUS with -std=c11 */
#include "loader/load.h"
#include "loader/internal.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check/check.h"
#include "loader/sub_groups.h"

#if defined(__x86_64__)
#define HOST_ARCH cld_arch_x86_64
#elif defined(__aarch64__)
#define HOST_ARCH cld_arch_aarch64
#else
#error "the code loader knows x86-64 and AArch64"
#endif

struct symbol {
    char *name; /* in the names that follow the array */
    void *address;
};

struct cld_code {
    uint8_t *image;
    size_t size;
    size_t symbol_count;
    struct symbol *symbols; /* one allocation with their names */
    uint8_t *lines;         /* lines.c; NULL if the object has none */
    size_t lines_size;
    struct cld_code_debug_entry *debug;
};

/* Addresses are taken through (void *) casts of functions, which POSIX allows. */
int32_t cld_printf(void *printf_buffer, const char *format, const uint8_t *args, uint32_t args_size);
int32_t cld_assert_fail(void *printf_buffer, const char *expression, const uint8_t *args, uint32_t args_size);
void cld_yield(void);

enum provided {
#define CLD_CODE_SYMBOL(function)
#define CLD_CODE_PROVIDED(function) function##_PROVIDED,
#include "abi/code_symbols.def"
#undef CLD_CODE_PROVIDED
    PROVIDED_COUNT
};

static void *provided[PROVIDED_COUNT];

void cld_code_provide(const char *name, void *function) {
#define CLD_CODE_PROVIDED(function_name)                                                                     \
    if (!strcmp(name, #function_name))                                                                       \
        provided[function_name##_PROVIDED] = function;
#include "abi/code_symbols.def"
#undef CLD_CODE_SYMBOL
#undef CLD_CODE_PROVIDED
}

void *cld_code_resolve(const char *name) {
#define CLD_CODE_SYMBOL(function)                                                                            \
    if (!strcmp(name, #function))                                                                            \
        return (void *)(uintptr_t)function;
#define CLD_CODE_PROVIDED(function)                                                                          \
    if (!strcmp(name, #function))                                                                            \
        return provided[function##_PROVIDED];
#include "abi/code_symbols.def"
#undef CLD_CODE_SYMBOL
#undef CLD_CODE_PROVIDED
    return NULL;
}

static bool is_visible(const struct cld_elf *elf, const struct cld_layout *layout, uint32_t index) {
    const struct cld_elf_symbol *symbol = &elf->symbols[index];
    return symbol->binding != STB_LOCAL && symbol->section != SHN_UNDEF && symbol->section != SHN_ABS &&
           layout->section_at[symbol->section] != UINT64_MAX;
}

/* Copies names and addresses of the global symbols: the object's bytes belong to the caller. */
static bool keep_symbols(struct cld_code *code, const struct cld_elf *elf, const struct cld_layout *layout) {
    size_t count = 0, bytes = 0;
    for (uint32_t i = 0; i < elf->symbol_count; i++) {
        if (is_visible(elf, layout, i)) {
            count++;
            bytes += strlen(elf->symbols[i].name) + 1;
        }
    }
    code->symbols = malloc(count * sizeof *code->symbols + bytes + 1);
    if (!code->symbols)
        return false;
    char *names = (char *)(code->symbols + count);
    for (uint32_t i = 0; i < elf->symbol_count; i++) {
        const struct cld_elf_symbol *symbol = &elf->symbols[i];
        if (!is_visible(elf, layout, i))
            continue;
        size_t length = strlen(symbol->name) + 1;
        memcpy(names, symbol->name, length);
        code->symbols[code->symbol_count++] =
            (struct symbol){names, code->image + layout->section_at[symbol->section] + symbol->value};
        names += length;
    }
    return true;
}

/* Has instructions read what was written. (The compiler's way on AArch64 needs its run-time library, which
 * wheels are linked without.) */
static void make_executable(uint8_t *begin, size_t size) {
#if defined(__aarch64__)
    uint64_t caches; /* CTR_EL0: sizes of lines, and what need not be done */
    __asm__ volatile("mrs %0, ctr_el0" : "=r"(caches));
    size_t code_line = 4u << (caches & 15), data_line = 4u << (caches >> 16 & 15);
    bool data_is_seen = caches >> 28 & 1, code_is_seen = caches >> 29 & 1;
    uintptr_t first = (uintptr_t)begin, end = first + size;
    for (uintptr_t line = first & -data_line; line < end && !data_is_seen; line += data_line)
        __asm__ volatile("dc cvau, %0" ::"r"(line) : "memory");
    __asm__ volatile("dsb ish" ::: "memory");
    for (uintptr_t line = first & -code_line; line < end && !code_is_seen; line += code_line)
        __asm__ volatile("ic ivau, %0" ::"r"(line) : "memory");
    __asm__ volatile("dsb ish\n\tisb" ::: "memory");
#else
    __builtin___clear_cache((char *)begin, (char *)begin + size);
#endif
}

static bool protect(const struct cld_code *code, const struct cld_layout *layout) {
    make_executable(code->image, layout->read_at);
    if (layout->read_at && mprotect(code->image, layout->read_at, PROT_READ | PROT_EXEC))
        return false;
    size_t bytes = layout->write_at - layout->read_at;
    return !bytes || !mprotect(code->image + layout->read_at, bytes, PROT_READ);
}

static bool load(struct cld_code *code, const struct cld_elf *elf, const struct cld_layout *layout,
                 const void *object, size_t size, const struct cld_code_error *error) {
    code->size = layout->size;
    void *image = mmap(NULL, code->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (image == MAP_FAILED)
        return cld_fail(error, "no memory for %zu bytes of code: %s", code->size, strerror(errno));
    code->image = image;
    uint64_t base = (uint64_t)(uintptr_t)image;
    if (!cld_layout_link(layout, elf, &HOST_ARCH, image, base, cld_code_resolve, error))
        return false;
    if (!keep_symbols(code, elf, layout))
        return cld_fail(error, "out of memory");
    if (!protect(code, layout))
        return cld_fail(error, "the system refuses executable memory: %s", strerror(errno));
    code->lines = cld_lines_copy(elf, layout, base, &code->lines_size);
    code->debug = cld_code_debug_loaded(elf, layout, object, size, base);
    return true;
}

struct cld_code *cld_code_load(const void *object, size_t size, char *error_text, size_t error_size) {
    struct cld_code_error error = {error_text, error_size};
    struct cld_code *code = calloc(1, sizeof *code);
    if (!code) {
        cld_fail(&error, "out of memory");
        return NULL;
    }
    struct cld_elf elf;
    if (cld_elf_open(&elf, object, size, &error)) {
        struct cld_layout layout;
        if (cld_layout_plan(&layout, &elf, &HOST_ARCH, (uint64_t)sysconf(_SC_PAGESIZE), &error)) {
            bool loaded = load(code, &elf, &layout, object, size, &error);
            cld_layout_free(&layout);
            if (loaded) {
                cld_elf_close(&elf);
                return code;
            }
        }
        cld_elf_close(&elf);
    }
    cld_code_unload(code);
    return NULL;
}

void *cld_code_symbol(const struct cld_code *code, const char *name) {
    for (size_t i = 0; i < code->symbol_count; i++)
        if (!strcmp(code->symbols[i].name, name))
            return code->symbols[i].address;
    return NULL;
}

void cld_code_set_terminated(struct cld_code *code, const _Atomic uint32_t *word) {
    void *place = cld_code_symbol(code, "cld_terminated");
    if (place)
        memcpy(place, &word, sizeof word);
}

bool cld_code_find(const struct cld_code *code, const void *address, struct cld_code_place *place) {
    const uint8_t *at = address, *nearest = code->image;
    if (at < code->image || at >= code->image + code->size)
        return false;
    for (size_t i = 0; i < code->symbol_count; i++) {
        const uint8_t *symbol = code->symbols[i].address;
        if (symbol <= at && symbol > nearest)
            nearest = symbol;
    }
    *place = (struct cld_code_place){.offset = (uint64_t)(at - nearest)};
    if (code->lines)
        cld_lines_find(code->lines, code->lines_size, (uint64_t)(uintptr_t)address, place);
    return true;
}

void cld_code_unload(struct cld_code *code) {
    if (!code)
        return;
    cld_code_debug_unloaded(code->debug);
    if (code->image)
        munmap(code->image, code->size);
    free(code->symbols);
    free(code->lines);
    free(code);
}
