/* clEnqueueAcquireExternalMemObjectsKHR and clEnqueueReleaseExternalMemObjectsKHR. External memory is the
 * same for every process that maps it: all that such a command does is to take its place in the order. */
#include "enqueue/enqueue.h"
#include "memory/mem_properties.h"
#include "object/call.h"

static cl_int hand_over(cl_command_queue command_queue, cl_command_type type, cl_uint count,
                        const cl_mem *list, const struct cld_wait *wait) {
    struct cld_queue *queue;
    CLD_TRY(cld_check_queue(command_queue, wait, &queue));
    CLD_REQUIRE(!count == !list, CL_INVALID_VALUE, "mem_objects and num_mem_objects contradict each other");
    for (cl_uint i = 0; i < count; i++) {
        const struct cld_mem *mem = cld_object_check(list[i], CLD_MEM);
        CLD_REQUIRE(mem && mem->is_external, CL_INVALID_MEM_OBJECT,
                    "mem_objects[%u] is %s, not made from an external memory handle", i,
                    cld_describe(list[i]).text);
        CLD_REQUIRE(cld_mem_is_for(mem, queue->device), CL_INVALID_COMMAND_QUEUE,
                    "the memory object is not for the queue's device");
        CLD_REQUIRE(mem->context == queue->context, CL_INVALID_CONTEXT,
                    "the context of command_queue is not the context of mem_objects");
    }
    CLD_TRY(cld_check_wait(queue, wait));
    CLD_TRY(cld_check_wait_status(wait));
    /* A cl_mem is the address of its struct cld_mem. */
    return cld_enqueue_nothing(queue, type, (struct cld_mem *const *)(const void *)list, count, false, wait);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueAcquireExternalMemObjectsKHR(
    cl_command_queue command_queue, cl_uint num_mem_objects, const cl_mem *mem_objects,
    cl_uint num_events_in_wait_list, const cl_event *event_wait_list, cl_event *event) {
    struct cld_wait wait = {.count = num_events_in_wait_list, .list = event_wait_list, .event = event};
    return hand_over(command_queue, CL_COMMAND_ACQUIRE_EXTERNAL_MEM_OBJECTS_KHR, num_mem_objects, mem_objects,
                     &wait);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueReleaseExternalMemObjectsKHR(
    cl_command_queue command_queue, cl_uint num_mem_objects, const cl_mem *mem_objects,
    cl_uint num_events_in_wait_list, const cl_event *event_wait_list, cl_event *event) {
    struct cld_wait wait = {.count = num_events_in_wait_list, .list = event_wait_list, .event = event};
    return hand_over(command_queue, CL_COMMAND_RELEASE_EXTERNAL_MEM_OBJECTS_KHR, num_mem_objects, mem_objects,
                     &wait);
}
