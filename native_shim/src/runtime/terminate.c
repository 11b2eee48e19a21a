/* Ends the commands of a context.
 *
 * Each is told the error that it is to end with. So those that have not begun end when their turn comes,
 * which is at once: what they might wait for is other commands, user events and semaphores, and those that
 * only the application can set let go of them. Kernels that run look at the context; pieces of commands that
 * several threads execute are not begun any more. */
#include "runtime/terminate.h"

#include "object/lock.h"
#include "runtime/callback.h"
#include "runtime/command.h"
#include "runtime/semaphore.h"

static void end_command(void *object, void *context) {
    struct cld_event *event = object;
    if (event->queue && event->context == context)
        cld_command_fail(event, CL_CONTEXT_TERMINATED_KHR);
}

/* "The status of user events can be set", but nobody waits for that. */
static void end_dependence(void *object, void *context) {
    struct cld_event *event = object;
    if (!event->queue && event->context == context && cld_event_status(event) > 0)
        cld_event_forget_dependents(event, CL_CONTEXT_TERMINATED_KHR);
}

bool cld_context_terminate(struct cld_context *context) {
    cld_lock(context);
    bool was_ending = context->is_ending;
    context->is_ending = true;
    for (struct cld_queue *queue = context->queues; queue; queue = queue->next) {
        atomic_store_explicit(&queue->is_terminated, true, memory_order_relaxed);
        atomic_store_explicit(&queue->refuses, true, memory_order_relaxed);
    }
    cld_unlock(context);
    if (was_ending)
        return false;
    cld_object_each_held(CLD_EVENT, end_command, context);
    /* Kernels see it only now: of what comes after one that they cut short, nothing may succeed. */
    atomic_store(&context->terminated, 1);
    cld_semaphores_terminate(context);
    cld_object_each_held(CLD_EVENT, end_dependence, context);
    cld_context_flush(context);
    cld_context_notify(context, "the context was terminated");
    return true;
}
