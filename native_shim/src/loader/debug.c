/* Tells gdb (its JIT interface) and perf (/tmp/perf-PID.map) about loaded kernels, when CL_DRIVER_JIT_DEBUG
 * asks: a comma-separated list of "gdb" and "perf". */
#define _GNU_SOURCE /* O_NOFOLLOW, dprintf, with -std=c11 */
#include "base/settings.h"
#include "loader/internal.h"

#include <elf.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* These four names and layouts are gdb's ("JIT Compilation Interface" of its manual). */
enum { JIT_NOACTION, JIT_REGISTER, JIT_UNREGISTER };

struct jit_code_entry {
    struct jit_code_entry *next_entry, *prev_entry;
    const char *symfile_addr;
    uint64_t symfile_size;
};

struct jit_descriptor {
    uint32_t version, action_flag;
    struct jit_code_entry *relevant_entry, *first_entry;
};

/* gdb finds the next two by name, in wheels among the exported symbols alone. Protected: other JIT compilers'
 * libraries export the same names, and each uses its own. */
#define SEEN_BY_GDB __attribute__((visibility("protected")))

SEEN_BY_GDB struct jit_descriptor __jit_debug_descriptor = {1, JIT_NOACTION, NULL, NULL};

/* gdb sets a breakpoint here. */
SEEN_BY_GDB void __attribute__((noinline)) __jit_debug_register_code(void) {
    __asm__ volatile("" ::: "memory");
}

struct cld_code_debug_entry {
    struct jit_code_entry gdb;
    char object[]; /* a copy with the sections' addresses filled in */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool asked_for(const char *what) {
    const char *setting = cld_setting(CL_DRIVER_JIT_DEBUG_SETTING);
    size_t length = strlen(what);
    while (*setting) {
        size_t word = strcspn(setting, ",");
        if (word == length && !strncmp(setting, what, length))
            return true;
        setting += word + (setting[word] == ',');
    }
    return false;
}

static void write_perf_map(const struct cld_elf *elf, const struct cld_layout *layout, uint64_t base) {
    char path[40];
    snprintf(path, sizeof path, "/tmp/perf-%ld.map", (long)getpid());
    /* The name can be guessed and the folder is everybody's: never follow a link, wait for a FIFO's reader or
     * write to a file of somebody else's. (Another compiler of this process may have made it.) */
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    struct stat status;
    if (fd < 0)
        return;
    if (fstat(fd, &status) || !S_ISREG(status.st_mode) || status.st_uid != geteuid() ||
        status.st_nlink != 1) {
        close(fd);
        return;
    }
    for (uint32_t i = 0; i < elf->symbol_count; i++) {
        const struct cld_elf_symbol *symbol = &elf->symbols[i];
        if (symbol->type != STT_FUNC || symbol->section == SHN_UNDEF || symbol->section == SHN_ABS ||
            layout->section_at[symbol->section] == UINT64_MAX)
            continue;
        dprintf(fd, "%llx %llx %s\n",
                (unsigned long long)(base + layout->section_at[symbol->section] + symbol->value),
                (unsigned long long)symbol->size, symbol->name);
    }
    close(fd);
}

static struct cld_code_debug_entry *register_gdb(const struct cld_elf *elf, const struct cld_layout *layout,
                                                 const void *object, size_t size, uint64_t base) {
    struct cld_code_debug_entry *entry = malloc(sizeof *entry + size);
    if (!entry)
        return NULL;
    memcpy(entry->object, object, size);
    Elf64_Ehdr header;
    memcpy(&header, entry->object, sizeof header);
    for (uint32_t i = 0; i < elf->section_count; i++) {
        if (layout->section_at[i] == UINT64_MAX)
            continue;
        uint64_t address = base + layout->section_at[i];
        memcpy(entry->object + header.e_shoff + (uint64_t)i * sizeof(Elf64_Shdr) +
                   offsetof(Elf64_Shdr, sh_addr),
               &address, sizeof address);
    }
    pthread_mutex_lock(&lock);
    entry->gdb = (struct jit_code_entry){__jit_debug_descriptor.first_entry, NULL, entry->object, size};
    if (entry->gdb.next_entry)
        entry->gdb.next_entry->prev_entry = &entry->gdb;
    __jit_debug_descriptor.first_entry = __jit_debug_descriptor.relevant_entry = &entry->gdb;
    __jit_debug_descriptor.action_flag = JIT_REGISTER;
    __jit_debug_register_code();
    pthread_mutex_unlock(&lock);
    return entry;
}

struct cld_code_debug_entry *cld_code_debug_loaded(const struct cld_elf *elf, const struct cld_layout *layout,
                                                   const void *object, size_t size, uint64_t base) {
    if (asked_for("perf"))
        write_perf_map(elf, layout, base);
    return asked_for("gdb") ? register_gdb(elf, layout, object, size, base) : NULL;
}

void cld_code_debug_unloaded(struct cld_code_debug_entry *entry) {
    if (!entry)
        return;
    pthread_mutex_lock(&lock);
    if (entry->gdb.prev_entry)
        entry->gdb.prev_entry->next_entry = entry->gdb.next_entry;
    else
        __jit_debug_descriptor.first_entry = entry->gdb.next_entry;
    if (entry->gdb.next_entry)
        entry->gdb.next_entry->prev_entry = entry->gdb.prev_entry;
    __jit_debug_descriptor.relevant_entry = &entry->gdb;
    __jit_debug_descriptor.action_flag = JIT_UNREGISTER;
    __jit_debug_register_code();
    pthread_mutex_unlock(&lock);
    free(entry);
}
