/* Coarse-grained shared virtual memory (API specification, 5.6.1): the host changes it between
 * clEnqueueSVMMap and clEnqueueSVMUnmap only. */
#include <stdlib.h>
#include <string.h>

#include "kernel/kernel.h"
#include "validation/validation.h"

static struct known *coarse(uintptr_t address) {
    struct known *known = address ? object_find_memory(address, 1) : NULL;
    return known && known->is_coarse ? known : NULL;
}

void shared_virtual_made(struct known *known, uint64_t flags) {
    if (flags & CL_MEM_SVM_FINE_GRAIN_BUFFER)
        return;
    known->is_coarse = true;
    host_memory_share(known, (const uint8_t *)known->handle);
}

/* By way of a buffer the host may map it, too: which is not followed. */
void shared_virtual_of_buffer(const struct cld_mem *mem) {
    struct known *known = coarse((uintptr_t)mem->host_ptr);
    if (!known)
        return;
    known->is_coarse = false;
    host_memory_unshare(known);
}

static void tell_mapped(const struct known *known, const struct mapping *mapping, const struct place *place,
                        uint32_t argument, const struct cld_kernel *kernel) {
    struct message message;
    if (!message_begin(&message, "mapped", place, known->number))
        return;
    message_add(&message, "argument %u of kernel '%s' points into ", argument, kernel->info->name);
    object_describe(&message, known);
    message_add(&message, ", all of which the host has mapped for writing");
    message_add_place(&message, "", place);
    message_add_place(&message, "mapped by", &mapping->place);
    message_add_place(&message, "made by", &known->made);
    message_end(&message);
}

/* What an argument points to. Of memory that is mapped in part, the kernel may keep to the other one. */
static void check_argument(uintptr_t pointer, uint32_t argument, const struct cld_kernel *kernel,
                           const struct place *place) {
    struct known *known = coarse(pointer);
    if (!known)
        return;
    host_memory_check_shared(known, place);
    for (const struct mapping *mapping = known->mappings; mapping; mapping = mapping->next)
        if (mapping->writes && mapping->start <= known->handle &&
            mapping->end >= known->handle + known->size) {
            tell_mapped(known, mapping, place, argument, kernel);
            return;
        }
}

static void check_unmap(const struct cld_call *call, const struct place *place) {
    uintptr_t pointer = call_word(call, "svm_ptr");
    const struct known *known = coarse(pointer);
    const struct mapping *mapping = known ? known->mappings : NULL;
    while (mapping && mapping->pointer != pointer)
        mapping = mapping->next;
    struct message message;
    if (!known || mapping || !message_begin(&message, "unmapped", place, known->number))
        return;
    message_add(&message, "%p was not given to clEnqueueSVMMap, or is unmapped already: in ",
                (void *)pointer);
    object_describe(&message, known);
    message_add_place(&message, "", place);
    message_add_place(&message, "made by", &known->made);
    message_end(&message);
}

void shared_virtual_before(const struct cld_call *call, const struct place *place) {
    static const char *const pointers[] = {"dst_ptr", "src_ptr", "svm_ptr"};
    if (call_is(call, "clEnqueueSVMUnmap"))
        check_unmap(call, place);
    else if (call_begins(call, "clEnqueueSVMMem"))
        for (size_t i = 0; i < sizeof pointers / sizeof *pointers; i++) {
            struct known *known = coarse(call_word(call, pointers[i]));
            if (known)
                host_memory_check_shared(known, place);
        }
    const struct cld_kernel *kernel = cld_object_check((const void *)call_word(call, "kernel"), CLD_KERNEL);
    for (uint32_t i = 0; kernel && i < kernel->info->arg_count; i++) {
        const struct cld_arg_info *arg = &kernel->info->args[i];
        uintptr_t pointer;
        if (arg->kind != CLD_ARG_GLOBAL || kernel->mems[i])
            continue;
        memcpy(&pointer, kernel->block + arg->offset, sizeof pointer);
        check_argument(pointer, i, kernel, place);
    }
}

static void map(const struct cld_call *call, struct command *command) {
    uintptr_t pointer = call_word(call, "svm_ptr");
    struct known *known = coarse(pointer);
    struct mapping *mapping = known ? malloc(sizeof *mapping) : NULL;
    if (!mapping)
        return;
    bool writes = call_word(call, "flags") & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION);
    uintptr_t end = pointer + call_word(call, "size");
    *mapping = (struct mapping){known->mappings, pointer, pointer, end, writes, command->place};
    known->mappings = mapping;
}

static void unmap(const struct cld_call *call) {
    uintptr_t pointer = call_word(call, "svm_ptr");
    struct known *known = coarse(pointer);
    struct mapping **link = known ? &known->mappings : NULL;
    while (link && *link && (*link)->pointer != pointer)
        link = &(*link)->next;
    if (!link || !*link)
        return;
    struct mapping *mapping = *link;
    *link = mapping->next;
    known->has_hash = false;
    free(mapping);
}

/* Kernels may write to memory that they have no argument of: by pointers in memory. */
static void touch(struct known *known, void *command) {
    if (known->kind == CLD_DEAD && known->is_coarse)
        memory_may_be_used(known, command);
}

void shared_virtual_after(const struct cld_call *call, struct command *command) {
    if (call_is(call, "clEnqueueSVMMap"))
        map(call, command);
    else if (call_is(call, "clEnqueueSVMUnmap"))
        unmap(call);
    else if (call_is(call, "clEnqueueNDRangeKernel") || call_is(call, "clEnqueueTask"))
        object_each(touch, command);
}
