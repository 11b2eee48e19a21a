/* Each thread's copy of a buffer that a kernel adds to. */
#define _GNU_SOURCE
#include "launch/privatised_histogram.h"

#include "kernel/kernel.h"
#include "memory/mem.h"

#include <stdlib.h>
#include <string.h>

/* Copies are to stay in a core's cache, and each element costs a thread about as much as an atomic addition.
 * Additions of work-items that are worth emptying a table, which without entries costs some dozens.
 */
enum { MOST_BYTES = 1 << 20, LEAST_GAIN = 2, LINE = 64, REST = 64, LEAST_SHARE = 128 };

static const struct cld_mem *root_of(const struct cld_mem *mem) {
    while (mem->parent)
        mem = mem->parent;
    return mem;
}

/* Whether nothing but one argument leads to the memory that it is in. */
static bool is_alone(const struct cld_kernel *kernel, const struct cld_kernel_info *info, uint32_t index) {
    const struct cld_mem *root = root_of(kernel->mems[index]);
    if (root->svm)
        return false;
    for (uint32_t i = 0; i < info->arg_count; i++) {
        void *pointer;
        if (i == index || (info->args[i].kind != CLD_ARG_GLOBAL && info->args[i].kind != CLD_ARG_IMAGE))
            continue;
        memcpy(&pointer, kernel->block + info->args[i].offset, sizeof pointer);
        if (kernel->mems[i] ? root_of(kernel->mems[i]) == root : pointer != NULL)
            return false;
    }
    return true;
}

/* Whether tables of sums are worth a try: where hardly any address came again the last time, not for some
 * launches. */
static bool combines(struct cld_kernel_info *info) {
    if (atomic_load_explicit(&info->combining_rest, memory_order_relaxed) <= 0)
        return true;
    atomic_fetch_sub_explicit(&info->combining_rest, 1, memory_order_relaxed);
    return false;
}

void cld_histogram_choose(struct cld_event *command, const struct cld_kernel *kernel) {
    struct cld_kernel_info *info = command->kernel.info;
    const uint64_t *size = command->kernel.launch.global_size;
    if (!info->counted)
        return;
    const struct cld_mem *mem = kernel->mems[info->counted - 1];
    if (!mem || mem->size % info->counted_size || !is_alone(kernel, info, info->counted - 1))
        return;
    double items = (double)size[0] * (double)size[1] * (double)size[2] / LEAST_GAIN;
    double share = items / command->queue->device->compute_units;
    if (mem->size <= MOST_BYTES && share >= (double)(mem->size / info->counted_size))
        command->counted_bytes = (uint32_t)mem->size;
    else if (share >= LEAST_SHARE && combines(info))
        command->counted_bytes = CLD_COUNTED_COMBINES;
}

/* Zeros, of the size at least; what is not in use by a command is zeros. */
static uint8_t *copy_of(struct cld_self *self, size_t size) {
    if (size <= self->counts_capacity)
        return self->counts;
    size_t wanted = 4096;
    while (wanted < size)
        wanted *= 2;
    void *memory = NULL;
    if (posix_memalign(&memory, LINE, wanted))
        return NULL;
    memset(memory, 0, wanted);
    free(self->counts);
    self->counts = memory;
    self->counts_capacity = wanted;
    return memory;
}

/* Without entries; what is not in use by a command has none. */
static struct cld_combining_table *table_of(struct cld_self *self) {
    if (!self->table) {
        void *memory = NULL;
        if (posix_memalign(&memory, LINE, sizeof *self->table))
            return NULL;
        self->table = memset(memory, 0, sizeof *self->table);
    }
    return self->table;
}

void cld_histogram_take(struct cld_event *command, struct cld_self *self) {
    if (command->counted_bytes == CLD_COUNTED_COMBINES) {
        self->kernel.counts = (uint8_t *)table_of(self);
        self->has_table = self->table != NULL;
        self->kernel.combined = self->has_table ? command->kernel.info->counted : 0;
        return;
    }
    self->kernel.counts = copy_of(self, command->counted_bytes);
    if (!self->kernel.counts)
        return;
    self->kernel.counted = command->kernel.info->counted;
    self->has_counts = true;
}

/* Atomically: other threads do the same, and perhaps other commands. */
static void add_words(uint32_t *to, uint32_t *from, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (from[i]) {
            __atomic_fetch_add(&to[i], from[i], __ATOMIC_RELAXED);
            from[i] = 0;
        }
}

static void add_long_words(uint64_t *to, uint64_t *from, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (from[i]) {
            __atomic_fetch_add(&to[i], from[i], __ATOMIC_RELAXED);
            from[i] = 0;
        }
}

static void empty_table(struct cld_event *command, struct cld_combining_table *table) {
    struct cld_kernel_info *info = command->kernel.info;
    for (int i = 0; i < CLD_COMBINING_ENTRIES; i++) {
        void *address = table->entries[i].address;
        uint64_t *sum = &table->entries[i].sum;
        if (!address)
            continue;
        if (info->counted_size == sizeof *sum)
            add_long_words(address, sum, 1);
        else
            add_words(address, (uint32_t *)(void *)sum, 1);
        table->entries[i].address = NULL;
    }
    const uint64_t *size = command->kernel.launch.global_size;
    if (table->evictions * command->queue->device->compute_units > size[0] * size[1] * size[2] / LEAST_GAIN)
        atomic_store_explicit(&info->combining_rest, REST, memory_order_relaxed);
    table->evictions = 0;
}

void cld_histogram_leave(struct cld_event *command, struct cld_self *self) {
    if (self->has_table) {
        self->has_table = false;
        empty_table(command, self->table);
    }
    if (!self->has_counts)
        return;
    self->has_counts = false;
    const struct cld_kernel_info *info = command->kernel.info;
    void *to;
    memcpy(&to, command->kernel.args + info->args[info->counted - 1].offset, sizeof to);
    size_t count = command->counted_bytes / info->counted_size;
    if (info->counted_size == sizeof(uint64_t))
        add_long_words(to, (uint64_t *)(void *)self->counts, count);
    else
        add_words(to, (uint32_t *)(void *)self->counts, count);
}
