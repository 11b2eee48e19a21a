/* Runs kernels of another architecture for kernel_harness.py, under qemu's user emulation, with the driver's
 * own code loader. Requests on stdin, answers on stdout, numbers are uint64_t, little-endian: object size,
 * bytes; symbol size, bytes; number of memory regions, of each: address, size, bytes; they are mapped at the
 * same addresses here; addresses of launch, arguments and thread; first and last group. Answer: 0 and the
 * bytes of each region, or the size of an error message and its bytes; before either, for each cld_printf:
 * its argument size + 1, format size, format, arguments; then 0. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "abi/kernel_abi.h"
#include "loader/load.h"

enum { PAGE = 4096, MOST_REGIONS = 64 };

static void put(const void *data, size_t size) {
    if (fwrite(data, 1, size, stdout) != size)
        exit(2);
}

static void put_number(uint64_t number) {
    put(&number, sizeof number);
}

static void get(void *data, size_t size) {
    if (fread(data, 1, size, stdin) != size)
        exit(feof(stdin) ? 0 : 2);
}

static uint64_t number(void) {
    uint64_t value;
    get(&value, sizeof value);
    return value;
}

static void *bytes(uint64_t size) {
    char *memory = malloc(size + 1);
    if (!memory)
        exit(3);
    get(memory, size);
    memory[size] = 0;
    return memory;
}

int32_t cld_printf(void *printf_buffer, const char *format, const uint8_t *args, uint32_t args_size) {
    (void)printf_buffer;
    put_number((uint64_t)args_size + 1);
    put_number(strlen(format));
    put(format, strlen(format));
    put(args, args_size);
    return 0;
}

int32_t cld_assert_fail(void *printf_buffer, const char *expression, const uint8_t *args,
                        uint32_t args_size) {
    (void)printf_buffer, (void)expression, (void)args, (void)args_size;
    abort();
}

void cld_yield(void) {
}

/* Regions have pages of their own. */
static void map(uint64_t address, uint64_t size) {
    void *wanted = (void *)(uintptr_t)(address & -(uint64_t)PAGE);
    void *got = mmap(wanted, address % PAGE + size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (got != wanted)
        exit(4);
}

static void unmap(uint64_t address, uint64_t size) {
    munmap((void *)(uintptr_t)(address & -(uint64_t)PAGE), address % PAGE + size);
}

int main(void) {
    for (;;) {
        uint64_t size = number();
        uint8_t *object = bytes(size);
        char *symbol = bytes(number());
        uint64_t count = number(), at[MOST_REGIONS], length[MOST_REGIONS];
        if (count > MOST_REGIONS)
            exit(5);
        for (uint64_t i = 0; i < count; i++) {
            at[i] = number();
            length[i] = number();
            map(at[i], length[i]);
            get((void *)(uintptr_t)at[i], length[i]);
        }
        uint64_t launch = number(), args = number(), thread = number(), first = number(), last = number();
        char error[256] = "no such symbol";
        struct cld_code *code = cld_code_load(object, size, error, sizeof error);
        cld_kernel_fn entry = code ? (cld_kernel_fn)cld_code_symbol(code, symbol) : NULL;
        if (entry)
            entry((void *)(uintptr_t)launch, (void *)(uintptr_t)args, (void *)(uintptr_t)thread, first, last);
        put_number(0);
        put_number(entry ? 0 : strlen(error));
        if (!entry)
            put(error, strlen(error));
        else
            for (uint64_t i = 0; i < count; i++)
                put((void *)(uintptr_t)at[i], length[i]);
        fflush(stdout);
        for (uint64_t i = 0; i < count; i++)
            unmap(at[i], length[i]);
        if (code)
            cld_code_unload(code);
        free(object);
        free(symbol);
    }
}
