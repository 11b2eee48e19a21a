/* clEnqueueWaitSemaphoresKHR and clEnqueueSignalSemaphoresKHR. */
#include "object/call.h"
#include "object/semaphore_khr.h"
#include "runtime/enqueue_check.h"
#include "runtime/semaphore.h"

/* "CL_INVALID_COMMAND_QUEUE [...] if the device associated with command_queue is not same as one of the
 * devices specified by CL_SEMAPHORE_DEVICE_HANDLE_LIST_KHR". */
static cl_int check_semaphores(const struct cld_queue *queue, cl_uint count, const cl_semaphore_khr *list) {
    CLD_REQUIRE(count, CL_INVALID_VALUE, "num_sema_objects is 0, at least 1");
    CLD_REQUIRE(list, CL_INVALID_VALUE, "sema_objects is NULL");
    for (cl_uint i = 0; i < count; i++) {
        const struct cld_semaphore *semaphore = cld_object_check(list[i], CLD_SEMAPHORE);
        CLD_REQUIRE(semaphore, CL_INVALID_SEMAPHORE_KHR, "sema_objects[%u] is %s, not a semaphore", i,
                    cld_describe(list[i]).text);
        CLD_REQUIRE(semaphore->device == queue->device, CL_INVALID_COMMAND_QUEUE,
                    "sema_objects[%u] is of another device than command_queue", i);
        CLD_REQUIRE(semaphore->context == queue->context, CL_INVALID_CONTEXT,
                    "the context of sema_objects is not the context of command_queue");
    }
    return CL_SUCCESS;
}

static cl_int enqueue(cl_command_queue command_queue, cl_command_type type,
                      const struct cld_operation *operation, cl_uint count, const cl_semaphore_khr *list,
                      const struct cld_wait *wait) {
    struct cld_queue *queue;
    CLD_TRY(cld_check_queue(command_queue, wait, &queue));
    CLD_TRY(check_semaphores(queue, count, list));
    CLD_TRY(cld_check_wait(queue, wait));
    CLD_TRY(cld_check_wait_status(wait));
    struct cld_event *command = cld_command_new(queue, type, operation, wait->event);
    CLD_REQUIRE(command, CL_OUT_OF_HOST_MEMORY, "no memory");
    command->estimate = 0;
    /* A cl_semaphore_khr is the address of its struct cld_semaphore. */
    if (!cld_semaphores_use(command, (struct cld_semaphore *const *)(const void *)list, count)) {
        cld_command_discard(command);
        return CL_OUT_OF_HOST_MEMORY;
    }
    CLD_TRY(cld_command_enqueue(command, wait, 0));
    /* Whoever waits for the semaphore may know nothing of this queue that it could flush. */
    if (type == CL_COMMAND_SEMAPHORE_SIGNAL_KHR)
        cld_queue_flush(queue, NULL);
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueWaitSemaphoresKHR(cl_command_queue command_queue,
                                                           cl_uint num_sema_objects,
                                                           const cl_semaphore_khr *sema_objects,
                                                           const cl_semaphore_payload_khr *sema_payload_list,
                                                           cl_uint num_events_in_wait_list,
                                                           const cl_event *event_wait_list, cl_event *event) {
    (void)sema_payload_list; /* binary semaphores need none */
    struct cld_wait wait = {.count = num_events_in_wait_list, .list = event_wait_list, .event = event};
    return enqueue(command_queue, CL_COMMAND_SEMAPHORE_WAIT_KHR, &cld_semaphore_wait, num_sema_objects,
                   sema_objects, &wait);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueSignalSemaphoresKHR(
    cl_command_queue command_queue, cl_uint num_sema_objects, const cl_semaphore_khr *sema_objects,
    const cl_semaphore_payload_khr *sema_payload_list, cl_uint num_events_in_wait_list,
    const cl_event *event_wait_list, cl_event *event) {
    (void)sema_payload_list; /* binary semaphores have none */
    struct cld_wait wait = {.count = num_events_in_wait_list, .list = event_wait_list, .event = event};
    return enqueue(command_queue, CL_COMMAND_SEMAPHORE_SIGNAL_KHR, &cld_semaphore_signal, num_sema_objects,
                   sema_objects, &wait);
}
