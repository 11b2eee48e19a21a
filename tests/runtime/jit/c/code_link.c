/* For tests of the code loader: links an object for either architecture into plain memory, and counts
 * printfs. */
#include "loader/internal.h"

#include <stdlib.h>
#include <string.h>

uint32_t printf_bytes; /* of the last cld_printf */

int32_t cld_printf(void *printf_buffer, const char *format, const uint8_t *args, uint32_t args_size);
int32_t cld_assert_fail(void *printf_buffer, const char *expression, const uint8_t *args, uint32_t args_size);

int32_t cld_printf(void *printf_buffer, const char *format, const uint8_t *args, uint32_t args_size) {
    (void)printf_buffer, (void)format, (void)args;
    printf_bytes = args_size;
    return 0;
}

int32_t cld_assert_fail(void *printf_buffer, const char *expression, const uint8_t *args,
                        uint32_t args_size) {
    (void)printf_buffer, (void)expression, (void)args, (void)args_size;
    abort();
}

void cld_yield(void);

void cld_yield(void) {
}

/* Any name that begins with "known" lies far away. */
static void *resolve(const char *name) {
    return strncmp(name, "known", 5) ? NULL : (void *)(uintptr_t)0x123456789abc;
}

/* Links as if the image were at `base`. The image goes to `out`, if it has room; starts: of the read-only and
 * the writable part. Returns the image's size, 0 with the reason in `reason` if the object is refused. */
size_t link_object(int aarch64, const void *object, size_t size, uint64_t base, uint8_t *out, size_t room,
                   uint64_t starts[2], char *reason, size_t reason_size) {
    struct cld_code_error error = {reason, reason_size};
    const struct cld_arch *arch = aarch64 ? &cld_arch_aarch64 : &cld_arch_x86_64;
    struct cld_elf elf;
    struct cld_layout layout;
    size_t result = 0;
    if (!cld_elf_open(&elf, object, size, &error))
        return 0;
    if (cld_layout_plan(&layout, &elf, arch, 4096, &error)) {
        uint8_t *image = calloc(1, layout.size);
        if (image && cld_layout_link(&layout, &elf, arch, image, base, resolve, &error)) {
            result = layout.size;
            starts[0] = layout.read_at;
            starts[1] = layout.write_at;
            memcpy(out, image, result < room ? result : room);
        }
        free(image);
        cld_layout_free(&layout);
    }
    cld_elf_close(&elf);
    return result;
}

/* One relocation on bytes. Returns -1 for an unknown type, 0 if the value does not fit, else 1. */
int relocate(int aarch64, uint32_t type, uint8_t *place, uint64_t address, uint64_t target, int64_t addend) {
    const struct cld_arch *arch = aarch64 ? &cld_arch_aarch64 : &cld_arch_x86_64;
    uint32_t bytes;
    if (arch->use(type, &bytes) == CLD_RELOC_UNKNOWN)
        return -1;
    return arch->apply(type, place, address, target, addend);
}

/* The object's line table, as if the image were at `base`; its size, 0 if there is none or no room. */
size_t line_table(int aarch64, const void *object, size_t size, uint64_t base, uint8_t *out, size_t room) {
    char reason[120];
    struct cld_code_error error = {reason, sizeof reason};
    struct cld_elf elf;
    struct cld_layout layout;
    size_t result = 0;
    if (!cld_elf_open(&elf, object, size, &error))
        return 0;
    if (cld_layout_plan(&layout, &elf, aarch64 ? &cld_arch_aarch64 : &cld_arch_x86_64, 4096, &error)) {
        uint8_t *table = cld_lines_copy(&elf, &layout, base, &result);
        if (!table || result > room)
            result = 0;
        if (result)
            memcpy(out, table, result);
        free(table);
        cld_layout_free(&layout);
    }
    cld_elf_close(&elf);
    return result;
}

/* The line of an address, 0 if it has none; its file's name is cut to `room`. */
uint32_t find_line(const uint8_t *table, size_t size, uint64_t address, char *file, size_t room) {
    struct cld_code_place place = {0};
    *file = 0;
    if (!cld_lines_find(table, size, address, &place))
        return 0;
    size_t length = place.file_size < room - 1 ? place.file_size : room - 1;
    if (place.file)
        memcpy(file, place.file, length);
    file[length] = 0;
    return place.line;
}
