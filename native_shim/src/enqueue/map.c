/* Map, unmap and migrate (API specification, 5.2.4, 5.3.7, 5.5.3 and 5.5.5). All memory is the host's: to map
 * is to wait for the order of the queue, and to remember what was given out. */
#include <stdlib.h>
#include <string.h>

#include "check/check.h"
#include "enqueue/enqueue.h"
#include "memory/image.h"
#include "memory/mem.h"
#include "memory/svm.h"
#include "object/call.h"
#include "object/lock.h"
#include "runtime/enqueue_check.h"

#define MAP_WRITES (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION)

/* Kept by the memory object at the root, so that what sub-buffers and images made from it map is seen
 * together. */
struct cld_map {
    struct cld_map *next;
    struct cld_mem *mem;
    uint8_t *pointer;
    struct cld_rect rect; /* its offset is in pointer */
    size_t region[3];     /* bytes, rows, slices */
    bool writes;
};

static struct cld_mem *root_of(struct cld_mem *mem) {
    while (mem->parent)
        mem = mem->parent;
    return mem;
}

cl_int cld_check_map_flags(cl_map_flags flags) {
    CLD_REQUIRE(!(flags & ~(cl_map_flags)(CL_MAP_READ | MAP_WRITES)), CL_INVALID_VALUE,
                "map_flags is %#lx, with an unknown bit", (unsigned long)flags);
    /* "CL_MAP_READ or CL_MAP_WRITE and CL_MAP_WRITE_INVALIDATE_REGION are mutually exclusive." */
    CLD_REQUIRE(!(flags & CL_MAP_WRITE_INVALIDATE_REGION) || !(flags & (CL_MAP_READ | CL_MAP_WRITE)),
                CL_INVALID_VALUE, "map_flags is %#lx: CL_MAP_WRITE_INVALIDATE_REGION excludes the others",
                (unsigned long)flags);
    return CL_SUCCESS;
}

cl_int cld_check_migration_flags(cl_mem_migration_flags flags) {
    CLD_REQUIRE(!(flags & ~(cl_mem_migration_flags)(CL_MIGRATE_MEM_OBJECT_HOST |
                                                    CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED)),
                CL_INVALID_VALUE, "flags is %#lx, with an unknown bit", (unsigned long)flags);
    return CL_SUCCESS;
}

/* "CL_INVALID_OPERATION if mapping would lead to overlapping regions being mapped for writing." */
static cl_int remember(struct cld_mem *mem, const struct cld_image_rect *what, bool writes) {
    struct cld_mem *root = root_of(mem);
    struct cld_map *map = malloc(sizeof *map);
    CLD_REQUIRE(map, CL_OUT_OF_HOST_MEMORY, "no memory");
    *map = (struct cld_map){
        .mem = mem, .pointer = mem->data + what->rect.offset, .rect = what->rect, .writes = writes};
    memcpy(map->region, what->region, sizeof map->region);
    bool clash = false;
    cld_lock(root);
    for (struct cld_map *at = root->maps; at && writes && !clash; at = at->next)
        clash = at->writes &&
                cld_rects_overlap(at->pointer, &at->rect, at->region, map->pointer, &map->rect, map->region);
    if (!clash) {
        map->next = root->maps;
        root->maps = map;
    }
    cld_unlock(root);
    if (clash)
        free(map);
    CLD_REQUIRE(!clash, CL_INVALID_OPERATION, "the region overlaps one that is mapped for writing");
    atomic_fetch_add(&mem->map_count, 1);
    return CL_SUCCESS;
}

/* False if it was not mapped. */
static bool forget(struct cld_mem *mem, const void *pointer) {
    struct cld_mem *root = root_of(mem);
    cld_lock(root);
    struct cld_map **link = &root->maps;
    while (*link && ((*link)->mem != mem || (*link)->pointer != pointer))
        link = &(*link)->next;
    struct cld_map *map = *link;
    if (map)
        *link = map->next;
    cld_unlock(root);
    if (!map)
        return false;
    free(map);
    atomic_fetch_sub(&mem->map_count, 1);
    return true;
}

void cld_maps_free(struct cld_mem *mem) {
    struct cld_mem *root = root_of(mem);
    cld_lock(root);
    for (struct cld_map **link = &root->maps; *link;) {
        struct cld_map *map = *link;
        if (map->mem == mem) {
            *link = map->next;
            free(map);
        } else {
            link = &map->next;
        }
    }
    cld_unlock(root);
}

/* Whether the host may access the memory object as it wants to. */
static cl_int check_access(const struct cld_mem *mem, cl_map_flags map_flags) {
    if (map_flags & CL_MAP_READ)
        CLD_TRY(cld_check_host_reads(mem));
    if (map_flags & MAP_WRITES)
        CLD_TRY(cld_check_host_writes(mem));
    return CL_SUCCESS;
}

static cl_int map(struct cld_queue *queue, cl_command_type type, struct cld_mem *mem,
                  const struct cld_image_rect *what, cl_bool blocking_map, cl_map_flags map_flags,
                  const struct cld_wait *wait, void **pointer) {
    CLD_TRY(remember(mem, what, map_flags & MAP_WRITES));
    uint8_t *start = mem->data + what->rect.offset;
    cl_int status = cld_enqueue_nothing(queue, type, &mem, 1, blocking_map, wait);
    if (status)
        forget(mem, start);
    else
        *pointer = start;
    if (cld_kcheck_is_on && !status && map_flags & MAP_WRITES && !mem->image)
        cld_kcheck_written(start, what->region[0]);
    return status;
}

static cl_int map_buffer(cl_command_queue command_queue, cl_mem handle, cl_bool blocking_map,
                         cl_map_flags map_flags, size_t offset, size_t size, const struct cld_wait *wait,
                         void **pointer) {
    struct cld_queue *queue;
    struct cld_mem *buffer;
    CLD_TRY(cld_check_buffer_command(command_queue, handle, wait, &queue, &buffer));
    CLD_TRY(cld_check_map_flags(map_flags));
    CLD_TRY(check_access(buffer, map_flags));
    CLD_TRY(cld_check_range(buffer, offset, size));
    CLD_REQUIRE(size, CL_INVALID_VALUE, "size is 0, at least 1");
    struct cld_image_rect all = {{size, size, offset, size}, {size, 1, 1}, size};
    return map(queue, CL_COMMAND_MAP_BUFFER, buffer, &all, blocking_map, map_flags, wait, pointer);
}

CL_API_ENTRY void *CL_API_CALL clEnqueueMapBuffer(cl_command_queue command_queue, cl_mem handle,
                                                  cl_bool blocking_map, cl_map_flags map_flags, size_t offset,
                                                  size_t size, cl_uint num_events_in_wait_list,
                                                  const cl_event *event_wait_list, cl_event *event,
                                                  cl_int *errcode_ret) {
    struct cld_wait wait = {.count = num_events_in_wait_list, .list = event_wait_list, .event = event};
    void *pointer = NULL;
    cl_int status = map_buffer(command_queue, handle, blocking_map, map_flags, offset, size, &wait, &pointer);
    if (errcode_ret)
        *errcode_ret = status;
    return pointer;
}

static cl_int map_image(cl_command_queue command_queue, cl_mem handle, cl_bool blocking_map,
                        cl_map_flags map_flags, const size_t *origin, const size_t *region, size_t *row_pitch,
                        size_t *slice_pitch, const struct cld_wait *wait, void **pointer) {
    struct cld_queue *queue;
    struct cld_mem *image;
    struct cld_image_rect inside;
    CLD_TRY(cld_check_queue(command_queue, wait, &queue));
    CLD_TRY(cld_check_image(queue, handle, &image));
    CLD_TRY(cld_check_wait(queue, wait));
    CLD_TRY(cld_check_map_flags(map_flags));
    CLD_TRY(check_access(image, map_flags)); /* before the pitches: the CTS has none where it is refused */
    CLD_TRY(cld_check_image_region(image, origin, region, &inside));
    CLD_REQUIRE(row_pitch, CL_INVALID_VALUE, "image_row_pitch is NULL");
    /* "CL_INVALID_VALUE if image is a 3D image, 1D or 2D image array object and image_slice_pitch is NULL."
     */
    CLD_REQUIRE(slice_pitch || !cld_image_has_slices(image->type), CL_INVALID_VALUE,
                "image_slice_pitch is NULL");
    CLD_TRY(map(queue, CL_COMMAND_MAP_IMAGE, image, &inside, blocking_map, map_flags, wait, pointer));
    *row_pitch = inside.row_pitch;
    if (slice_pitch)
        *slice_pitch = cld_image_has_slices(image->type) ? inside.rect.slice : 0;
    return CL_SUCCESS;
}

CL_API_ENTRY void *CL_API_CALL clEnqueueMapImage(
    cl_command_queue command_queue, cl_mem image, cl_bool blocking_map, cl_map_flags map_flags,
    const size_t *origin, const size_t *region, size_t *image_row_pitch, size_t *image_slice_pitch,
    cl_uint num_events_in_wait_list, const cl_event *event_wait_list, cl_event *event, cl_int *errcode_ret) {
    struct cld_wait wait = {.count = num_events_in_wait_list, .list = event_wait_list, .event = event};
    void *pointer = NULL;
    cl_int status = map_image(command_queue, image, blocking_map, map_flags, origin, region, image_row_pitch,
                              image_slice_pitch, &wait, &pointer);
    if (errcode_ret)
        *errcode_ret = status;
    return pointer;
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueUnmapMemObject(cl_command_queue command_queue, cl_mem handle,
                                                        void *mapped_ptr, cl_uint num_events_in_wait_list,
                                                        const cl_event *event_wait_list, cl_event *event) {
    struct cld_wait wait = {.count = num_events_in_wait_list, .list = event_wait_list, .event = event};
    struct cld_queue *queue;
    struct cld_mem *mem;
    CLD_TRY(cld_check_queue(command_queue, &wait, &queue));
    CLD_TRY(cld_check_mem(queue, handle, &mem));
    /* "CL_INVALID_MEM_OBJECT if memobj is not a valid memory object or is a pipe object." */
    CLD_REQUIRE(mem->type != CL_MEM_OBJECT_PIPE, CL_INVALID_MEM_OBJECT,
                "memobj is a pipe, which cannot be mapped");
    CLD_TRY(cld_check_wait(queue, &wait));
    /* "CL_INVALID_VALUE if mapped_ptr is not a valid pointer returned by clEnqueueMapBuffer or
     * clEnqueueMapImage for memobj." */
    CLD_REQUIRE(forget(mem, mapped_ptr), CL_INVALID_VALUE, "mapped_ptr is not mapped");
    return cld_enqueue_nothing(queue, CL_COMMAND_UNMAP_MEM_OBJECT, &mem, 1, false, &wait);
}

static cl_int migrate(cl_command_queue command_queue, cl_uint num_mem_objects, const cl_mem *mem_objects,
                      cl_mem_migration_flags flags, const struct cld_wait *wait) {
    struct cld_queue *queue;
    struct cld_mem *mem;
    CLD_TRY(cld_check_queue(command_queue, wait, &queue));
    CLD_TRY(cld_check_wait(queue, wait));
    CLD_REQUIRE(num_mem_objects && mem_objects, CL_INVALID_VALUE, "num_mem_objects is 0 or mem_objects NULL");
    for (cl_uint i = 0; i < num_mem_objects; i++)
        CLD_TRY(cld_check_mem(queue, mem_objects[i], &mem));
    CLD_TRY(cld_check_migration_flags(flags));
    /* A cl_mem is the address of its struct cld_mem. */
    return cld_enqueue_nothing(queue, CL_COMMAND_MIGRATE_MEM_OBJECTS,
                               (struct cld_mem *const *)(const void *)mem_objects, num_mem_objects, false,
                               wait);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueMigrateMemObjects(cl_command_queue command_queue,
                                                           cl_uint num_mem_objects, const cl_mem *mem_objects,
                                                           cl_mem_migration_flags flags,
                                                           cl_uint num_events_in_wait_list,
                                                           const cl_event *event_wait_list, cl_event *event) {
    struct cld_wait wait = {.count = num_events_in_wait_list, .list = event_wait_list, .event = event};
    return migrate(command_queue, num_mem_objects, mem_objects, flags, &wait);
}
