/* What the enqueue functions share: one funnel per kind of check, and the copies and fills behind buffers and
 * shared virtual memory alike. */
#ifndef CLD_ENQUEUE_H
#define CLD_ENQUEUE_H

#include "memory/mem.h"
#include "runtime/enqueue_check.h"

/* Any memory object of the queue's context; CL_INVALID_MEM_OBJECT, CL_INVALID_CONTEXT. */
cl_int cld_check_mem(const struct cld_queue *queue, cl_mem handle, struct cld_mem **mem);
/* A buffer of it, a sub-buffer only if it is aligned as the device asks. */
cl_int cld_check_buffer(const struct cld_queue *queue, cl_mem handle, struct cld_mem **buffer);
/* A command of a queue, its wait list and one buffer, or a buffer to copy from and one to copy to. */
cl_int cld_check_buffer_command(cl_command_queue command_queue, cl_mem handle, const struct cld_wait *wait,
                                struct cld_queue **queue, struct cld_mem **buffer);
cl_int cld_check_buffer_copy(cl_command_queue command_queue, cl_mem source_handle, cl_mem destination_handle,
                             const struct cld_wait *wait, struct cld_queue **queue, struct cld_mem **source,
                             struct cld_mem **destination);
/* An image of it; CL_INVALID_MEM_OBJECT, CL_INVALID_CONTEXT. */
cl_int cld_check_image(const struct cld_queue *queue, cl_mem handle, struct cld_mem **image);
/* CL_INVALID_OPERATION where the flags of its creation forbid the host to read or write it. */
cl_int cld_check_host_reads(const struct cld_mem *buffer);
cl_int cld_check_host_writes(const struct cld_mem *buffer);

/* CL_INVALID_OPERATION if nothing may change the memory object, by a copy or fill either. */
cl_int cld_check_changes(const struct cld_mem *mem);
/* CL_INVALID_VALUE where the bytes are not all inside the buffer. */
cl_int cld_check_range(const struct cld_mem *buffer, size_t offset, size_t size);

/* CL_INVALID_VALUE for bits that are not in the specification's tables (map.c). */
cl_int cld_check_map_flags(cl_map_flags flags);
cl_int cld_check_migration_flags(cl_mem_migration_flags flags);

/* One side of a rectangle: its pitches with the defaults filled in, and the range of bytes that it spans. */
struct cld_rect {
    size_t row, slice;
    size_t offset, span;
};
cl_int cld_check_rect(const size_t *origin, const size_t *region, size_t row_pitch, size_t slice_pitch,
                      struct cld_rect *rect);

/* Whether some byte is in both rectangles. The regions' widths are in bytes. */
bool cld_rects_overlap(const uint8_t *a, const struct cld_rect *a_rect, const size_t *a_region,
                       const uint8_t *b, const struct cld_rect *b_rect, const size_t *b_region);

/* Whether both have their memory from the same buffer, image or allocation of the application's. */
bool cld_same_memory(const struct cld_mem *a, const struct cld_mem *b);

/* The copy between two rectangles of that region, the memory of which begins at destination and source; as
 * few rows as possible. */
struct cld_copy_region cld_rectangle(uint8_t *destination, const struct cld_rect *destination_rect,
                                     const uint8_t *source, const struct cld_rect *source_rect,
                                     const size_t *region);

/* A region of an image, checked: what it is in bytes. */
struct cld_image_rect {
    struct cld_rect rect;
    size_t region[3]; /* bytes, rows, slices: the rows of a 1D array are its layers */
    size_t row_pitch; /* of the image's level */
};
cl_int cld_check_image_region(const struct cld_mem *image, const size_t *origin, const size_t *region,
                              struct cld_image_rect *inside);

/* Copies region; a or b is held meanwhile unless NULL. Where both are there, a is what is read
 * (cluster/uses.c). Small ones are done at once if the queue is idle. */
cl_int cld_enqueue_copy(struct cld_queue *queue, cl_command_type type, struct cld_mem *a, struct cld_mem *b,
                        const struct cld_copy_region *region, bool blocking, const struct cld_wait *wait);

/* The same where one side is a program-scope variable of the executable: takes over a hold on it. */
cl_int cld_enqueue_variable_copy(struct cld_queue *queue, cl_command_type type,
                                 struct cld_executable *executable, const struct cld_copy_region *region,
                                 bool blocking, const struct cld_wait *wait);

/* Repeats the pattern over size bytes, a multiple of pattern_size, which is a power of two up to 128. */
cl_int cld_enqueue_fill(struct cld_queue *queue, cl_command_type type, struct cld_mem *buffer,
                        uint8_t *destination, size_t size, const void *pattern, size_t pattern_size,
                        const struct cld_wait *wait);

/* The same for the destination's rows of the region; pattern_size up to 16. */
cl_int cld_enqueue_fill_rows(struct cld_queue *queue, cl_command_type type, struct cld_mem *mem,
                             const struct cld_copy_region *region, const void *pattern, size_t pattern_size,
                             const struct cld_wait *wait);

/* A command that does nothing but take its place in the order. mem is held meanwhile unless NULL. */
cl_int cld_enqueue_nothing(struct cld_queue *queue, cl_command_type type, struct cld_mem *const *mems,
                           cl_uint mem_count, bool blocking, const struct cld_wait *wait);

static inline struct cld_copy_region cld_linear(void *destination, const void *source, size_t size) {
    return (struct cld_copy_region){
        .destination = destination, .source = source, .width = size, .height = 1, .depth = 1};
}

static inline bool cld_is_pattern_size(size_t size) {
    return size && size <= 128 && !(size & (size - 1));
}

/* A memory object's destructor calls it: forgets what is still mapped (map.c). */
void cld_maps_free(struct cld_mem *mem);

#endif
