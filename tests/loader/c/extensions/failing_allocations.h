/* Lets allocations of the driver fail. The client defines now_fails, which is asked for each of them. */
#ifndef FAILING_ALLOCATIONS_H
#define FAILING_ALLOCATIONS_H

#include "client.h"

#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>

static bool now_fails(void);

static uintptr_t code_begin, code_end; /* of the driver */

static bool fails(const void *caller) {
    return (uintptr_t)caller >= code_begin && (uintptr_t)caller < code_end && now_fails();
}

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

void *malloc(size_t size) {
    return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size) {
    return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(memory, size);
}

/* Not the memory of kernels that run: those would fail. */
int posix_memalign(void **memory, size_t alignment, size_t size) {
    if (size < 4096 && fails(__builtin_return_address(0)))
        return ENOMEM;
    *memory = __libc_memalign(alignment, size);
    return *memory ? 0 : ENOMEM;
}

static int find_driver(struct dl_phdr_info *library, size_t size, void *unused) {
    (void)size, (void)unused;
    if (!strstr(library->dlpi_name, "libcl_driver"))
        return 0;
    for (int i = 0; i < library->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &library->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && part->p_flags & PF_X) {
            code_begin = library->dlpi_addr + part->p_vaddr;
            code_end = code_begin + part->p_memsz;
        }
    }
    return 1;
}

#endif
