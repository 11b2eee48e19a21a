/* What commands do with memory objects: which bytes they read and write. */
#include "cluster/internal.h"
#include "memory/mem.h"

struct cld_mem *cld_mem_at(const struct cld_event *command, uint32_t i) {
    struct cld_mem *mem = command->more_mems ? command->more_mems[i] : command->mems[i];
    /* Queues are held like memory objects. */
    bool is_mem = atomic_load_explicit(&mem->obj.tag, memory_order_relaxed) == CLD_MEM;
    return is_mem ? mem : NULL;
}

/* What a kernel may write by the flags of the memory object, which are the promise of the program. */
static bool may_write(const struct cld_mem *mem) {
    return !(mem->flags & (CL_MEM_READ_ONLY | CLD_MEM_IMMUTABLE));
}

static enum cld_use use_of(const struct cld_event *command, const struct cld_mem *mem, uint32_t i) {
    switch (command->type) {
    case CL_COMMAND_READ_BUFFER:
    case CL_COMMAND_READ_BUFFER_RECT:
    case CL_COMMAND_READ_IMAGE:
    case CL_COMMAND_MAP_BUFFER:
    case CL_COMMAND_MAP_IMAGE:
        return CLD_READS;
    case CL_COMMAND_MIGRATE_MEM_OBJECTS:
        return CLD_USES_NOTHING;
    case CL_COMMAND_COPY_BUFFER:
    case CL_COMMAND_COPY_BUFFER_RECT:
    case CL_COMMAND_COPY_IMAGE:
    case CL_COMMAND_COPY_IMAGE_TO_BUFFER:
    case CL_COMMAND_COPY_BUFFER_TO_IMAGE:
        return i ? CLD_WRITES : CLD_READS;
    case CL_COMMAND_NDRANGE_KERNEL:
    case CL_COMMAND_TASK: {
        bool only_reads = command->operation == &cld_cluster_operation && cld_launch_only_reads(command, i);
        return only_reads || !may_write(mem) ? CLD_READS : CLD_WRITES;
    }
    default:
        return CLD_WRITES;
    }
}

/* What one part of a launch on all workers uses. */
static const struct cld_part_use *part_use(const struct cld_event *command, uint32_t i) {
    bool is_launch = command->operation == &cld_cluster_operation && command->kernel.message;
    const struct cld_launch_part *part = is_launch ? command->kernel.message->part : NULL;
    return part ? &part->uses[i] : NULL;
}

static void take_part(struct cld_used *used, const struct cld_part_use *part) {
    bool reads = part->read.begin < part->read.end, writes = part->written.begin < part->written.end;
    used->use = writes ? CLD_WRITES : reads ? CLD_READS : CLD_USES_NOTHING;
    used->written = part->written;
    used->begin =
        !writes || (reads && part->read.begin < part->written.begin) ? part->read.begin : part->written.begin;
    used->end = !writes || (reads && part->read.end > part->written.end) ? part->read.end : part->written.end;
}

bool cld_find_used_by(const struct cld_event *command, uint32_t i, const struct cld_part_use *part,
                      struct cld_used *used) {
    struct cld_mem *mem = cld_mem_at(command, i);
    *used = (struct cld_used){.use = mem ? use_of(command, mem, i) : CLD_USES_NOTHING};
    if (!used->use)
        return true;
    const uint8_t *data = cld_root_of(mem)->data;
    if (!(used->copies = cld_copies_of(mem)))
        return false;
    if (part && part->is_known) {
        take_part(used, part);
        return true;
    }
    used->begin = (size_t)(mem->data - data);
    used->end = used->begin + mem->size;
    used->written = (struct cld_bytes_range){used->begin, used->end};
    bool has_extent = !cld_command_is_launch(command) && command->operation && command->operation->extent;
    if (!has_extent)
        return true;
    struct cld_extent extent = command->operation->extent(command, used->use != CLD_READS);
    size_t begin = (uintptr_t)extent.begin - (uintptr_t)data, end = (uintptr_t)extent.end - (uintptr_t)data;
    if (begin < used->begin || end > used->end || begin >= end)
        return true;
    used->begin = begin;
    used->end = end;
    used->written = (struct cld_bytes_range){begin, end};
    if (extent.is_whole && used->use == CLD_WRITES)
        used->use = CLD_WRITES_ALL;
    return true;
}

bool cld_find_used(const struct cld_event *command, uint32_t i, bool uses_all, struct cld_used *used) {
    if (!cld_find_used_by(command, i, part_use(command, i), used))
        return false;
    if (!used->use || !uses_all)
        return true;
    used->begin = 0;
    used->end = used->copies->mem->size;
    used->written = (struct cld_bytes_range){0, used->end};
    if (used->use == CLD_WRITES_ALL)
        used->use = CLD_WRITES;
    return true;
}

bool cld_is_cut_up(const struct cld_event *command) {
    for (uint32_t i = 0; i < command->mem_count; i++) {
        struct cld_mem *mem = cld_mem_at(command, i);
        const struct cld_copies *copies = mem ? cld_root_of(mem)->copies : NULL;
        if (copies && cld_segments_are_many(copies, cld_worker_count()))
            return true;
    }
    return false;
}
