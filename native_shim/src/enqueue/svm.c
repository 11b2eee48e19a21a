/* Commands on shared virtual memory (API specification, 5.6.1) and on unified shared memory
 * (cl_intel_unified_shared_memory 1.2), which differ by name. */
#include <stdlib.h>
#include <string.h>

#include "enqueue/enqueue.h"
#include "graph/recording.h"
#include "memory/svm.h"
#include "object/call.h"
#include "runtime/callback.h"
#include "runtime/enqueue_check.h"

static void call_free(struct cld_event *command) {
    command->svm_free.function((cl_command_queue)command->queue, command->svm_free.count,
                               command->svm_free.pointers, command->svm_free.user_data);
}

static cl_int run_free(struct cld_event *command, struct cld_self *self, uint64_t first, uint64_t last) {
    (void)first, (void)last;
    if (command->svm_free.function)
        return cld_command_call_user(command, self, call_free);
    for (cl_uint i = 0; i < command->svm_free.count; i++)
        clSVMFree((cl_context)command->context, command->svm_free.pointers[i]);
    return CL_SUCCESS;
}

static void end_free(struct cld_event *command, cl_int status) {
    (void)status;
    free(command->svm_free.pointers);
}

static const struct cld_operation free_operation = {.run = run_free, .end = end_free};

/* What every entry point here begins with. */
static cl_int begin(cl_command_queue command_queue, const struct cld_wait *wait, struct cld_queue **queue) {
    CLD_TRY(cld_check_queue(command_queue, wait, queue));
    /* "CL_INVALID_OPERATION if the device associated with command queue does not support SVM." */
    CLD_REQUIRE(!(*queue)->device->worker, CL_INVALID_OPERATION,
                "the device of the queue, of another machine, has no SVM");
    return cld_check_wait(*queue, wait);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueSVMFree(
    cl_command_queue command_queue, cl_uint num_svm_pointers, void *svm_pointers[],
    void(CL_CALLBACK *pfn_free_func)(cl_command_queue, cl_uint, void *[], void *), void *user_data,
    cl_uint num_events_in_wait_list, const cl_event *event_wait_list, cl_event *event) {
    struct cld_wait wait = {.count = num_events_in_wait_list, .list = event_wait_list, .event = event};
    struct cld_queue *queue;
    CLD_TRY(begin(command_queue, &wait, &queue));
    CLD_REQUIRE(!num_svm_pointers == !svm_pointers, CL_INVALID_VALUE,
                "svm_pointers and num_svm_pointers contradict each other");
    struct cld_event *command = cld_command_new(queue, CL_COMMAND_SVM_FREE, &free_operation, event);
    CLD_REQUIRE(command, CL_OUT_OF_HOST_MEMORY, "no memory");
    command->svm_free.function = pfn_free_func;
    command->svm_free.user_data = user_data;
    command->svm_free.count = num_svm_pointers;
    command->svm_free.pointers = malloc((num_svm_pointers ? num_svm_pointers : 1) * sizeof(void *));
    if (!command->svm_free.pointers)
        cld_command_discard(command);
    CLD_REQUIRE(command->svm_free.pointers, CL_OUT_OF_HOST_MEMORY, "no memory");
    if (num_svm_pointers)
        memcpy(command->svm_free.pointers, svm_pointers, num_svm_pointers * sizeof(void *));
    return cld_command_enqueue(command, &wait, 0);
}

static cl_int copy(cl_command_queue command_queue, cl_command_type type, cl_bool blocking_copy, void *dst_ptr,
                   const void *src_ptr, size_t size, const struct cld_wait *wait) {
    struct cld_queue *queue;
    CLD_TRY(begin(command_queue, wait, &queue));
    CLD_REQUIRE(dst_ptr && src_ptr, CL_INVALID_VALUE, "dst_ptr or src_ptr is NULL");
    uintptr_t to = (uintptr_t)dst_ptr, from = (uintptr_t)src_ptr;
    CLD_REQUIRE(to >= from ? to - from >= size : from - to >= size, CL_MEM_COPY_OVERLAP,
                "dst_ptr and src_ptr are less than %zu bytes apart", size);
    struct cld_copy_region region = cld_linear(dst_ptr, src_ptr, size);
    return cld_enqueue_copy(queue, type, NULL, NULL, &region, blocking_copy, wait);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueSVMMemcpy(cl_command_queue command_queue, cl_bool blocking_copy,
                                                   void *dst_ptr, const void *src_ptr, size_t size,
                                                   cl_uint num_events_in_wait_list,
                                                   const cl_event *event_wait_list, cl_event *event) {
    struct cld_wait wait = {.count = num_events_in_wait_list, .list = event_wait_list, .event = event};
    return copy(command_queue, CL_COMMAND_SVM_MEMCPY, blocking_copy, dst_ptr, src_ptr, size, &wait);
}

CL_API_ENTRY cl_int CL_API_CALL clCommandSVMMemcpyKHR(
    cl_command_buffer_khr command_buffer, cl_command_queue command_queue,
    const cl_command_properties_khr *properties, void *dst_ptr, const void *src_ptr, size_t size,
    cl_uint num_sync_points_in_wait_list, const cl_sync_point_khr *sync_point_wait_list,
    cl_sync_point_khr *sync_point, cl_mutable_command_khr *mutable_handle) {
    struct cld_command_recording recording;
    CLD_TRY(cld_recording_begin(&recording, command_buffer, command_queue, properties,
                                num_sync_points_in_wait_list, sync_point_wait_list, sync_point,
                                mutable_handle));
    return copy(NULL, CL_COMMAND_SVM_MEMCPY, false, dst_ptr, src_ptr, size, cld_recording_wait(&recording));
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueMemcpyINTEL(cl_command_queue command_queue, cl_bool blocking,
                                                     void *dst_ptr, const void *src_ptr, size_t size,
                                                     cl_uint num_events_in_wait_list,
                                                     const cl_event *event_wait_list, cl_event *event) {
    struct cld_wait wait = {.count = num_events_in_wait_list, .list = event_wait_list, .event = event};
    return copy(command_queue, CL_COMMAND_MEMCPY_INTEL, blocking, dst_ptr, src_ptr, size, &wait);
}

static cl_int fill(cl_command_queue command_queue, cl_command_type type, void *destination,
                   const void *pattern, size_t pattern_size, size_t size, const struct cld_wait *wait) {
    struct cld_queue *queue;
    CLD_TRY(begin(command_queue, wait, &queue));
    CLD_REQUIRE(destination, CL_INVALID_VALUE, "the destination is NULL");
    CLD_REQUIRE(pattern && cld_is_pattern_size(pattern_size), CL_INVALID_VALUE,
                "pattern is NULL, or pattern_size is %zu, none of 1, 2, 4, 8, 16, 32, 64, 128", pattern_size);
    CLD_REQUIRE((uintptr_t)destination % pattern_size == 0, CL_INVALID_VALUE,
                "the destination is %p, no multiple of %zu, pattern_size", destination, pattern_size);
    CLD_REQUIRE(size % pattern_size == 0, CL_INVALID_VALUE, "size is %zu, no multiple of %zu, pattern_size",
                size, pattern_size);
    return cld_enqueue_fill(queue, type, NULL, destination, size, pattern, pattern_size, wait);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueSVMMemFill(cl_command_queue command_queue, void *svm_ptr,
                                                    const void *pattern, size_t pattern_size, size_t size,
                                                    cl_uint num_events_in_wait_list,
                                                    const cl_event *event_wait_list, cl_event *event) {
    struct cld_wait wait = {.count = num_events_in_wait_list, .list = event_wait_list, .event = event};
    return fill(command_queue, CL_COMMAND_SVM_MEMFILL, svm_ptr, pattern, pattern_size, size, &wait);
}

CL_API_ENTRY cl_int CL_API_CALL clCommandSVMMemFillKHR(
    cl_command_buffer_khr command_buffer, cl_command_queue command_queue,
    const cl_command_properties_khr *properties, void *svm_ptr, const void *pattern, size_t pattern_size,
    size_t size, cl_uint num_sync_points_in_wait_list, const cl_sync_point_khr *sync_point_wait_list,
    cl_sync_point_khr *sync_point, cl_mutable_command_khr *mutable_handle) {
    struct cld_command_recording recording;
    CLD_TRY(cld_recording_begin(&recording, command_buffer, command_queue, properties,
                                num_sync_points_in_wait_list, sync_point_wait_list, sync_point,
                                mutable_handle));
    return fill(NULL, CL_COMMAND_SVM_MEMFILL, svm_ptr, pattern, pattern_size, size,
                cld_recording_wait(&recording));
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueMemFillINTEL(cl_command_queue command_queue, void *dst_ptr,
                                                      const void *pattern, size_t pattern_size, size_t size,
                                                      cl_uint num_events_in_wait_list,
                                                      const cl_event *event_wait_list, cl_event *event) {
    struct cld_wait wait = {.count = num_events_in_wait_list, .list = event_wait_list, .event = event};
    return fill(command_queue, CL_COMMAND_MEMFILL_INTEL, dst_ptr, pattern, pattern_size, size, &wait);
}

/* Deprecated in favour of clEnqueueMemFillINTEL: "value" is what memset takes. */
CL_API_ENTRY cl_int CL_API_CALL clEnqueueMemsetINTEL(cl_command_queue command_queue, void *dst_ptr,
                                                     cl_int value, size_t size,
                                                     cl_uint num_events_in_wait_list,
                                                     const cl_event *event_wait_list, cl_event *event) {
    struct cld_wait wait = {.count = num_events_in_wait_list, .list = event_wait_list, .event = event};
    const unsigned char byte = (unsigned char)value;
    return fill(command_queue, CL_COMMAND_MEMFILL_INTEL, dst_ptr, &byte, 1, size, &wait);
}

/* To map and to unmap is to wait for the order of the queue: the memory is the host's anyway. */
static cl_int map(cl_command_queue command_queue, cl_command_type type, bool is_range, bool blocking,
                  cl_map_flags flags, const struct cld_wait *wait) {
    struct cld_queue *queue;
    CLD_TRY(begin(command_queue, wait, &queue));
    CLD_REQUIRE(is_range, CL_INVALID_VALUE, "svm_ptr is NULL, or size is 0");
    CLD_TRY(cld_check_map_flags(flags));
    return cld_enqueue_nothing(queue, type, NULL, 0, blocking, wait);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueSVMMap(cl_command_queue command_queue, cl_bool blocking_map,
                                                cl_map_flags flags, void *svm_ptr, size_t size,
                                                cl_uint num_events_in_wait_list,
                                                const cl_event *event_wait_list, cl_event *event) {
    struct cld_wait wait = {.count = num_events_in_wait_list, .list = event_wait_list, .event = event};
    return map(command_queue, CL_COMMAND_SVM_MAP, svm_ptr && size, blocking_map, flags, &wait);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueSVMUnmap(cl_command_queue command_queue, void *svm_ptr,
                                                  cl_uint num_events_in_wait_list,
                                                  const cl_event *event_wait_list, cl_event *event) {
    struct cld_wait wait = {.count = num_events_in_wait_list, .list = event_wait_list, .event = event};
    return map(command_queue, CL_COMMAND_SVM_UNMAP, svm_ptr, false, 0, &wait);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueSVMMigrateMem(cl_command_queue command_queue,
                                                       cl_uint num_svm_pointers, const void **svm_pointers,
                                                       const size_t *sizes, cl_mem_migration_flags flags,
                                                       cl_uint num_events_in_wait_list,
                                                       const cl_event *event_wait_list, cl_event *event) {
    struct cld_wait wait = {.count = num_events_in_wait_list, .list = event_wait_list, .event = event};
    struct cld_queue *queue;
    CLD_TRY(begin(command_queue, &wait, &queue));
    CLD_REQUIRE(num_svm_pointers && svm_pointers, CL_INVALID_VALUE,
                "num_svm_pointers is 0 or svm_pointers NULL");
    CLD_TRY(cld_check_migration_flags(flags));
    /* "CL_INVALID_VALUE if sizes[i] is non-zero range [svm_pointers[i], svm_pointers[i]+sizes[i]) is not
     * contained within an existing clSVMAlloc allocation." */
    for (cl_uint i = 0; i < num_svm_pointers; i++) {
        size_t room = cld_svm_room(queue->context, svm_pointers[i]);
        CLD_REQUIRE(room && (!sizes || sizes[i] <= room), CL_INVALID_VALUE,
                    "svm_pointers[%u] is %p: %zu bytes there, clSVMAlloc's allocation has %zu", i,
                    svm_pointers[i], sizes ? sizes[i] : 0, room);
    }
    return cld_enqueue_nothing(queue, CL_COMMAND_SVM_MIGRATE_MEM, NULL, 0, false, &wait);
}

/* "This is a hint [...] not required for correctness." Any range may be told. */
CL_API_ENTRY cl_int CL_API_CALL clEnqueueMigrateMemINTEL(cl_command_queue command_queue, const void *ptr,
                                                         size_t size, cl_mem_migration_flags flags,
                                                         cl_uint num_events_in_wait_list,
                                                         const cl_event *event_wait_list, cl_event *event) {
    (void)ptr, (void)size;
    struct cld_wait wait = {.count = num_events_in_wait_list, .list = event_wait_list, .event = event};
    struct cld_queue *queue;
    CLD_TRY(begin(command_queue, &wait, &queue));
    CLD_TRY(cld_check_migration_flags(flags));
    return cld_enqueue_nothing(queue, CL_COMMAND_MIGRATEMEM_INTEL, NULL, 0, false, &wait);
}

/* No advice is defined but none. */
CL_API_ENTRY cl_int CL_API_CALL clEnqueueMemAdviseINTEL(cl_command_queue command_queue, const void *ptr,
                                                        size_t size, cl_mem_advice_intel advice,
                                                        cl_uint num_events_in_wait_list,
                                                        const cl_event *event_wait_list, cl_event *event) {
    (void)ptr, (void)size;
    struct cld_wait wait = {.count = num_events_in_wait_list, .list = event_wait_list, .event = event};
    struct cld_queue *queue;
    CLD_TRY(begin(command_queue, &wait, &queue));
    CLD_REQUIRE(!advice, CL_INVALID_VALUE, "advice is %u, 0: there is none yet", advice);
    return cld_enqueue_nothing(queue, CL_COMMAND_MEMADVISE_INTEL, NULL, 0, false, &wait);
}
