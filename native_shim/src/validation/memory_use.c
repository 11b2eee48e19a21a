/* What commands use of memory: uses that no order keeps apart, mapped memory that commands use, arguments
 * that were released, shared virtual memory that is freed while commands use it.
 *
 * Of each command the part that it certainly uses counts: the first row of a rectangle, the first pixel of a
 * region of an image, all of a kernel's argument. */
#include <stdlib.h>
#include <string.h>

#include "kernel/kernel.h"
#include "memory/image.h"
#include "validation/validation.h"

static struct use *host_uses; /* of the host's memory */

static bool overlap(uintptr_t start, uintptr_t end, uintptr_t other_start, uintptr_t other_end) {
    return start < other_end && other_start < end;
}

/* Whether both certainly touch a byte that one of them writes. Kernels may do with their arguments what they
 * like: of two launches of one kernel each may have its part, and of a transfer's part they may keep away,
 * unless it is all there is. */
static bool may_collide(const struct use *a, const struct use *b) {
    if (a->kind >= UNKNOWN_PART || b->kind >= UNKNOWN_PART || !(a->writes || b->writes) ||
        !overlap(a->start, a->end, b->start, b->end))
        return false;
    if (a->kind == KERNEL && b->kind == KERNEL)
        return strcmp(a->command->kernel, b->command->kernel) != 0;
    const struct use *kernel = a->kind == KERNEL ? a : b->kind == KERNEL ? b : NULL;
    const struct use *other = kernel == a ? b : a;
    return !kernel || (other->start <= kernel->start && other->end >= kernel->end);
}

/* "kernel 'name'", or the call. */
static void name_command(struct message *message, const struct command *command) {
    bool is_kernel = *command->kernel;
    message_add(message, "%s%s%s", is_kernel ? "kernel '" : "",
                is_kernel ? command->kernel : command->place.call, is_kernel ? "'" : "");
}

static void tell_race(const struct known *memory, const struct use *before, const struct use *now) {
    struct message message;
    if (!message_begin(&message, "race", &now->command->place, memory ? memory->number : 0))
        return;
    bool is_certain = before->kind == TRANSFER && now->kind == TRANSFER;
    name_command(&message, now->command);
    message_add(&message, " %s, and ", now->writes ? "writes" : "reads");
    name_command(&message, before->command);
    message_add(&message, " %s, ", before->writes ? "writes" : "reads");
    if (memory)
        object_describe(&message, memory);
    else
        message_add(&message, "the host's memory at %p",
                    (void *)(before->start > now->start ? before->start : now->start));
    message_add(&message, ", in no order%s",
                is_certain ? "" : ": a race unless they touch different parts of it");
    message_add_place(&message, "", &now->command->place);
    message_add_place(&message, "", &before->command->place);
    if (memory)
        message_add_place(&message, "made by", &memory->made);
    message_end(&message);
}

/* Whether what races with a use races with a later one, too: nobody need know of the first any more. */
static bool is_replaced(const struct use *before, const struct use *use) {
    return before->kind == use->kind && before->start >= use->start && before->end <= use->end &&
           (use->writes || !before->writes) && !use->command->is_gated && use->command->position &&
           command_precedes(before->command, use->command) &&
           !strcmp(before->command->kernel, use->command->kernel);
}

/* Adds a use, after it was compared with those before. memory: NULL, the host's. */
static void add_use(struct known *memory, uintptr_t start, uintptr_t end, bool writes, enum use_kind kind,
                    struct command *command) {
    struct use *use = malloc(sizeof *use), **list = memory ? &memory->uses : &host_uses;
    if (!use)
        return;
    *use = (struct use){*list, start, end, writes, kind, command};
    for (struct use **link = list; *link;) {
        struct use *before = *link;
        if (command_is_over(before->command) || (before->command != command && is_replaced(before, use))) {
            use_drop(link);
            continue;
        }
        if (before->command != command && may_collide(before, use) && command_races(before->command, command))
            tell_race(memory, before, use);
        link = &before->next;
    }
    use->next = *list;
    command->holds++;
    *list = use;
    if (memory && writes)
        memory->has_hash = false;
}

/* A command that uses mapped memory, before the host has unmapped it. */
static void check_mapped(struct known *memory, uintptr_t start, uintptr_t end, bool writes, bool is_kernel,
                         const struct command *command) {
    for (struct mapping *mapping = memory->mappings; mapping; mapping = mapping->next) {
        if (command->is_gated || !(mapping->writes || writes) ||
            !(is_kernel || overlap(start, end, mapping->start, mapping->end)))
            continue;
        struct message message;
        if (!message_begin(&message, "mapped", &command->place, memory->number))
            return;
        name_command(&message, command);
        message_add(&message, " %s ", writes ? "writes" : "reads");
        object_describe(&message, memory);
        message_add(&message, " while the host has it mapped for %s",
                    mapping->writes ? "writing" : "reading");
        message_add_place(&message, "", &command->place);
        message_add_place(&message, "mapped by", &mapping->place);
        message_add_place(&message, "made by", &memory->made);
        message_end(&message);
        return;
    }
}

static struct known *known_of(uintptr_t handle, const struct cld_mem **mem) {
    *mem = cld_object_check((const void *)handle, CLD_MEM);
    return *mem ? object_root(*mem) : NULL;
}

static void use_mem(const struct cld_mem *mem, struct known *root, size_t offset, size_t size, bool writes,
                    struct command *command) {
    uintptr_t start = (mem->parent ? mem->offset : 0) + offset;
    check_mapped(root, start, start + size, writes, false, command);
    add_use(root, start, start + size, writes, TRANSFER, command);
}

/* One of the arguments of a call is a buffer. */
static void use_buffer(const struct cld_call *call, const char *name, size_t offset, size_t size, bool writes,
                       struct command *command) {
    const struct cld_mem *mem;
    struct known *root = known_of(call_word(call, name), &mem);
    if (root && size)
        use_mem(mem, root, offset, size, writes, command);
}

/* The first row of a rectangle. */
static void use_rect(const struct cld_call *call, const char *name, const char *origin_name,
                     const char *row_name, const char *slice_name, bool writes, struct command *command) {
    const size_t *origin = (const size_t *)call_word(call, origin_name);
    const size_t *region = (const size_t *)call_word(call, "region");
    size_t row = call_word(call, row_name), slice = call_word(call, slice_name);
    row = row ? row : region[0];
    slice = slice ? slice : row * region[1];
    use_buffer(call, name, origin[0] + origin[1] * row + origin[2] * slice, region[0], writes, command);
}

/* The first pixel of a region: images are counted in pixels, by their coordinates. */
static uintptr_t first_pixel(const struct cld_mem *mem, const size_t *origin) {
    int dimensions = cld_image_dimensions(mem->type);
    return origin[0] + (dimensions > 1 ? origin[1] << 20 : 0) + (dimensions > 2 ? origin[2] << 40 : 0);
}

static void use_image(const struct cld_call *call, const char *name, const char *origin_name, bool writes,
                      struct command *command) {
    const struct cld_mem *mem;
    struct known *root = known_of(call_word(call, name), &mem);
    const size_t *origin = (const size_t *)call_word(call, origin_name);
    if (!root || !mem->image || mem->parent)
        return;
    use_mem(mem, root, first_pixel(mem, origin), 1, writes, command);
}

/* Memory that is given by its address. */
static void use_address(uintptr_t start, size_t size, bool writes, struct command *command) {
    struct known *memory = object_find_memory(start, size);
    if (size)
        add_use(memory, start, start + size, writes, TRANSFER, command);
    if (writes)
        host_memory_written((const void *)start, size);
}

static void use_arguments(const struct cld_call *call, struct command *command) {
    const struct cld_kernel *kernel = cld_object_check((const void *)call_word(call, "kernel"), CLD_KERNEL);
    if (!kernel)
        return;
    const struct cld_kernel_info *info = kernel->info;
    strncpy(command->kernel, info->name, sizeof command->kernel - 1);
    for (uint32_t i = 0; i < info->arg_count; i++) {
        const struct cld_arg_info *arg = &info->args[i];
        if (arg->kind == CLD_ARG_GLOBAL && !kernel->mems[i]) {
            uintptr_t pointer;
            memcpy(&pointer, kernel->block + arg->offset, sizeof pointer);
            struct known *memory = pointer ? object_find_memory(pointer, 1) : NULL;
            if (pointer)
                host_memory_written((const void *)pointer, 1);
            if (memory)
                add_use(memory, memory->handle, memory->handle + memory->size, true, UNKNOWN_PART, command);
            continue;
        }
        if (arg->kind != CLD_ARG_GLOBAL && arg->kind != CLD_ARG_IMAGE)
            continue;
        const struct cld_mem *mem;
        struct known *root = known_of((uintptr_t)kernel->mems[i], &mem);
        if (!root)
            continue;
        bool writes = arg->kind == CLD_ARG_IMAGE ? arg->access != CLD_READ_ONLY : arg->written;
        bool is_image_of = arg->kind == CLD_ARG_IMAGE && mem->parent;
        uintptr_t start = mem->parent ? mem->offset : 0;
        uintptr_t size = arg->kind == CLD_ARG_IMAGE ? UINTPTR_MAX : mem->size;
        check_mapped(root, start, start + mem->size, writes, true, command);
        if (!is_image_of)
            add_use(root, start, size == UINTPTR_MAX ? size : start + size, writes, KERNEL, command);
    }
}

static void check_shared(uintptr_t handle, const struct place *place) {
    const struct cld_mem *mem;
    struct known *root = known_of(handle, &mem);
    if (root)
        host_memory_check_shared(root, place);
}

static void check_freed(uintptr_t address, const struct place *place) {
    const struct known *known = address ? object_find_freed(address) : NULL;
    struct message message;
    if (!known || !message_begin(&message, "freed before", place, known->number))
        return;
    message_add(&message, "used after it was freed: ");
    object_describe(&message, known);
    message_add_place(&message, "", place);
    message_add_place(&message, "freed by", &known->released);
    message_add_place(&message, "made by", &known->made);
    message_end(&message);
}

/* Before a command: of the memory that it is given by address, and that the host shares. */
void memory_before_enqueue(const struct cld_call *call, const struct place *place) {
    static const char *const names[] = {"buffer", "src_buffer", "dst_buffer"};
    static const char *const pointers[] = {"dst_ptr", "src_ptr", "svm_ptr", "ptr"};
    for (size_t i = 0; i < sizeof pointers / sizeof *pointers; i++)
        check_freed(call_word(call, pointers[i]), place);
    const struct cld_kernel *kernel = cld_object_check((const void *)call_word(call, "kernel"), CLD_KERNEL);
    for (uint32_t i = 0; kernel && i < kernel->info->arg_count; i++)
        check_shared((uintptr_t)kernel->mems[i], place);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        uintptr_t handle = call_word(call, names[i]);
        const struct cld_mem *mem = cld_object_check((const void *)handle, CLD_MEM);
        uintptr_t pointer = call_word(call, "ptr"), shared = mem ? (uintptr_t)mem->host_ptr : 0;
        /* To write such memory to its own buffer is the other way to tell of changes. */
        if (mem && pointer - shared < mem->size)
            host_memory_written((const void *)shared, mem->size);
        else
            check_shared(handle, place);
    }
    if (call_is(call, "clEnqueueNativeKernel") || call_is(call, "clEnqueueCommandBufferKHR"))
        host_memory_trust_nobody();
}

static void add_mapping(const struct cld_call *call, const char *name, struct command *command) {
    const struct cld_mem *mem;
    struct known *root = known_of(call_word(call, name), &mem);
    struct mapping *mapping = root ? malloc(sizeof *mapping) : NULL;
    if (!mapping)
        return;
    const size_t *origin = (const size_t *)call_word(call, "origin");
    size_t offset = mem->image ? first_pixel(mem, origin) : call_word(call, "offset");
    size_t size = mem->image ? 1 : call_word(call, "size");
    bool writes = call_word(call, "map_flags") & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION);
    uintptr_t start = (mem->parent ? mem->offset : 0) + offset;
    *mapping = (struct mapping){root->mappings, call->result, start, start + size, writes, command->place};
    add_use(root, start, start + size, writes, TRANSFER, command);
    root->mappings = mapping;
}

/* Of two mappings at one address it ends, as far as is known, that for writing. */
static void remove_mapping(const struct cld_call *call, struct command *command) {
    const struct cld_mem *mem;
    struct known *root = known_of(call_word(call, "memobj"), &mem);
    uintptr_t pointer = call_word(call, "mapped_ptr");
    struct mapping **found = NULL;
    for (struct mapping **link = root ? &root->mappings : NULL; link && *link; link = &(*link)->next)
        if ((*link)->pointer == pointer && (!found || (*link)->writes))
            found = link;
    if (!found)
        return;
    struct mapping *mapping = *found;
    *found = mapping->next;
    add_use(root, mapping->start, mapping->end, mapping->writes, TRANSFER, command);
    free(mapping);
}

static void transfer(const struct cld_call *call, bool reads, bool is_blocking, struct command *command) {
    size_t size = call_word(call, "size");
    uintptr_t host = call_word(call, "ptr");
    use_buffer(call, "buffer", call_word(call, "offset"), size, !reads, command);
    use_address(host, size, reads, command);
    if (!reads && !is_blocking)
        host_memory_promise((const void *)host, size, command);
}

void memory_after_enqueue(const struct cld_call *call, bool is_blocking, struct command *command) {
    const char *name = call->form + strlen("clEnqueue");
    size_t length = strcspn(name, " ");
#define IS(text) (length == sizeof(text) - 1 && !memcmp(name, text, sizeof(text) - 1))
    if (IS("NDRangeKernel") || IS("Task")) {
        use_arguments(call, command);
    } else if (IS("ReadBuffer") || IS("WriteBuffer")) {
        transfer(call, IS("ReadBuffer"), is_blocking, command);
    } else if (IS("ReadBufferRect") || IS("WriteBufferRect")) {
        use_rect(call, "buffer", "buffer_origin", "buffer_row_pitch", "buffer_slice_pitch",
                 IS("WriteBufferRect"), command);
    } else if (IS("CopyBuffer")) {
        use_buffer(call, "src_buffer", call_word(call, "src_offset"), call_word(call, "size"), false,
                   command);
        use_buffer(call, "dst_buffer", call_word(call, "dst_offset"), call_word(call, "size"), true, command);
    } else if (IS("CopyBufferRect")) {
        use_rect(call, "src_buffer", "src_origin", "src_row_pitch", "src_slice_pitch", false, command);
        use_rect(call, "dst_buffer", "dst_origin", "dst_row_pitch", "dst_slice_pitch", true, command);
    } else if (IS("FillBuffer")) {
        use_buffer(call, "buffer", call_word(call, "offset"), call_word(call, "size"), true, command);
    } else if (IS("ReadImage") || IS("WriteImage")) {
        use_image(call, "image", "origin", IS("WriteImage"), command);
    } else if (IS("FillImage")) {
        use_image(call, "image", "origin", true, command);
    } else if (IS("CopyImage")) {
        use_image(call, "src_image", "src_origin", false, command);
        use_image(call, "dst_image", "dst_origin", true, command);
    } else if (IS("CopyImageToBuffer")) {
        use_image(call, "src_image", "src_origin", false, command);
        use_buffer(call, "dst_buffer", call_word(call, "dst_offset"), 1, true, command);
    } else if (IS("CopyBufferToImage")) {
        use_buffer(call, "src_buffer", call_word(call, "src_offset"), 1, false, command);
        use_image(call, "dst_image", "dst_origin", true, command);
    } else if (IS("MapBuffer") || IS("MapImage")) {
        add_mapping(call, IS("MapBuffer") ? "buffer" : "image", command);
    } else if (IS("UnmapMemObject")) {
        remove_mapping(call, command);
    } else if (IS("SVMMemcpy") || IS("MemcpyINTEL")) {
        use_address(call_word(call, "dst_ptr"), call_word(call, "size"), true, command);
        use_address(call_word(call, "src_ptr"), call_word(call, "size"), false, command);
    } else if (IS("SVMMemFill")) {
        use_address(call_word(call, "svm_ptr"), call_word(call, "size"), true, command);
    } else if (IS("MemFillINTEL") || IS("MemsetINTEL")) {
        use_address(call_word(call, "dst_ptr"), call_word(call, "size"), true, command);
    }
#undef IS
}

void memory_may_be_used(struct known *known, struct command *command) {
    add_use(known, known->handle, known->handle + known->size, true, MAYBE_NONE, command);
}

/* Shared virtual memory, or unified shared memory, is freed at once. */
void memory_freed(struct known *known, const struct place *place) {
    for (const struct use *use = known->uses; use; use = use->next) {
        if (use->kind == MAYBE_NONE || command_is_over(use->command))
            continue;
        struct message message;
        if (!message_begin(&message, "freed", place, known->number))
            return;
        object_describe(&message, known);
        message_add(&message, " is freed before the host knows that a command which uses it has ended: ");
        name_command(&message, use->command);
        message_add_place(&message, "", place);
        message_add_place(&message, "", &use->command->place);
        message_add_place(&message, "made by", &known->made);
        message_end(&message);
        return;
    }
}
