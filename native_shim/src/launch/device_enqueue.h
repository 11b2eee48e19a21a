/* What kernels call to enqueue others (OpenCL C 3.0, 6.15.19; SPIR-V, DeviceEnqueue): functions of
 * abi/code_symbols.def. cl_driver/passes/program/device_enqueue.py makes the calls. Pointers are to private
 * memory of the caller's, but for `captured` and `values`, and are trusted; handles are not. */
#ifndef CLD_DEVICE_ENQUEUE_H
#define CLD_DEVICE_ENQUEUE_H

#include "abi/kernel_abi.h"
#include "object/objects.h"

struct cld_event;

/* Of the block argument: whether results say why nothing was enqueued (programs built with -g). */
#define CLD_BLOCK_TELLS 0x80000000u

/* block: its number among the program's; captured: so many bytes, which are copied; local_sizes: of the
 * block's local arguments. CLK_SUCCESS, or an error of enqueue_kernel. */
int32_t cld_enqueue_kernel(void *queue, uint32_t flags, const struct cld_ndrange *range, uint32_t wait_count,
                           struct cld_event *const *wait_list, struct cld_event **event, uint32_t block,
                           const void *captured, uint32_t size, uint32_t alignment, uint32_t local_count,
                           const uint64_t *local_sizes);

int32_t cld_enqueue_marker(void *queue, uint32_t wait_count, struct cld_event *const *wait_list,
                           struct cld_event **event, uint32_t tells);

/* range: for the sub-groups of one, else NULL; sub_groups: for the size of a group of so many. */
enum cld_block_size {
    CLD_GROUP_SIZE,
    CLD_GROUP_MULTIPLE,
    CLD_SUB_GROUP_COUNT,
    CLD_MAX_SUB_GROUP_SIZE,
    CLD_SIZE_FOR_COUNT,
    CLD_MOST_SUB_GROUPS
};
uint32_t cld_block_size(uint32_t which, uint32_t block, const struct cld_ndrange *range, uint32_t sub_groups);

void *cld_default_queue(void);

void *cld_create_user_event(void);
void cld_retain_event(void *event);
void cld_release_event(void *event);
uint32_t cld_is_valid_event(void *event);
void cld_set_user_event_status(void *event, int32_t status);
void cld_capture_event_profiling_info(void *event, uint32_t name, uint64_t *values);

#endif
