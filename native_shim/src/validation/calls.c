/* Watches the calls of the API, where CL_DRIVER_CHECK asks for it. */
#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/settings.h"
#include "base/thread.h"
#include "kernel/kernel.h"
#include "runtime/command.h"
#include "validation/validation.h"

/* All that is kept here. No call of the API is made under it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t call_count;
static pid_t process; /* a child of fork() tells nothing at its exit */

static struct place place_of(const struct cld_call *call) {
    struct place place = {.number = call->number, .thread = (int)cld_thread_id(), .caller = call->caller};
    size_t size = strcspn(call->form, " ");
    memcpy(place.call, call->form, size < sizeof place.call - 1 ? size : sizeof place.call - 1);
    return place;
}

/* Whether a handle that was released may be used all the same: it may come from a query about something that
 * lives and has it. */
static bool is_kept(const struct known *known) {
    bool is_of_others = known->kind == CLD_CONTEXT || known->kind == CLD_PROGRAM ||
                        known->kind == CLD_QUEUE || known->kind == CLD_DEVICE || known->is_parent;
    return cld_object_check((const void *)known->handle, known->kind) && is_of_others;
}

static void tell_released(const struct place *place, const struct known *known, const char *what) {
    struct message message;
    if (!message_begin(&message, what, place, known->number))
        return;
    message_add(&message, "%s ", what);
    object_describe(&message, known);
    message_add_place(&message, "", place);
    message_add_place(&message, "released by", &known->released);
    message_add_place(&message, "made by", &known->made);
    message_end(&message);
}

static void check_handle(const struct cld_call *call, const struct place *place, uintptr_t handle) {
    const struct known *known = handle ? object_find(handle) : NULL;
    if (!known || !known->released.number || known->kind == CLD_DEAD)
        return;
    const struct cld_object *object = cld_object_check((const void *)handle, known->kind);
    if (object && cld_object_refs(object))
        return;
    if (call_begins(call, "clRelease"))
        tell_released(place, known, "released once too often:");
    else if (!is_kept(known))
        tell_released(place, known, "used after its last release:");
}

/* Handles among the arguments. */
static void check_handles(const struct cld_call *call, const struct place *place) {
    const char *at = strchr(call->form, ' ');
    for (size_t i = 0; at; i++, at = strchr(at + 1, ' '))
        if (at[1] == 'h')
            check_handle(call, place, call->values[i]);
    const cl_event *events = (const cl_event *)call_word(call, "event_wait_list");
    uintptr_t count = call_word(call, "num_events_in_wait_list");
    if (!events) {
        events = (const cl_event *)call_word(call, "event_list");
        count = call_word(call, "num_events");
    }
    for (uintptr_t i = 0; events && i < count; i++)
        check_handle(call, place, (uintptr_t)events[i]);
}

static const struct cld_arg_info *argument_of(const struct cld_call *call) {
    const struct cld_kernel *kernel = cld_object_check((const void *)call_word(call, "kernel"), CLD_KERNEL);
    uintptr_t index = call_word(call, "arg_index");
    return kernel && index < kernel->info->arg_count ? &kernel->info->args[index] : NULL;
}

static bool sets_kernel(const struct cld_call *call) {
    return call_begins(call, "clSetKernel") || call_is(call, "clCloneKernel");
}

/* "The state of a kernel object is undefined if clSetKernelArg, [...] are called from multiple host threads
 * on the same kernel object at the same time." */
static void enter_kernel(const struct cld_call *call, const struct place *place) {
    uintptr_t handle = 0;
    if (!call_value(call, "kernel", &handle) && !call_value(call, "source_kernel", &handle))
        return;
    struct known *known = object_find(handle);
    if (!known || known->kind != CLD_KERNEL)
        return;
    struct message message;
    if (known->users && known->user != place->thread && sets_kernel(call) && known->is_being_set &&
        message_begin(&message, "kernel", place, known->number)) {
        message_add(&message, "thread %d is setting ", known->user);
        object_describe(&message, known);
        message_add(&message, " at the same time");
        message_add_place(&message, "", place);
        message_add_place(&message, "made by", &known->made);
        message_end(&message);
    }
    known->users++;
    known->user = place->thread;
    known->is_being_set = sets_kernel(call);
}

static void leave_kernel(const struct cld_call *call) {
    uintptr_t handle = 0;
    if (!call_value(call, "kernel", &handle) && !call_value(call, "source_kernel", &handle))
        return;
    struct known *known = object_find(handle);
    if (known && known->users)
        known->users--;
}

/* "Developers should be careful when releasing their last reference count on events created by
 * clCreateUserEvent that have not yet been set": what waits for it waits for ever. */
static void check_user_event(const struct cld_call *call, const struct place *place) {
    struct cld_event *event = cld_object_check((const void *)call_word(call, "event"), CLD_EVENT);
    if (!event || event->type != CL_COMMAND_USER || cld_event_status(event) <= CL_COMPLETE ||
        cld_object_refs(event) != 1)
        return;
    const struct known *known = object_find((uintptr_t)event);
    const struct cld_edge *edge = atomic_load_explicit(&event->dependents, memory_order_acquire);
    struct message message;
    if (!known || !edge || edge == CLD_EDGES_CLOSED ||
        !message_begin(&message, "user event", place, known->number))
        return;
    message_add(&message,
                "the last release of a user event that was not set: commands that wait for it never begin");
    message_add_place(&message, "", place);
    message_add_place(&message, "made by", &known->made);
    message_end(&message);
}

static void before(struct cld_call *call) {
    call->caller = caller_in_program(call);
    pthread_mutex_lock(&lock);
    call->number = ++call_count;
    struct place place = place_of(call);
    order_poll();
    order_before_call(call);
    check_handles(call, &place);
    enter_kernel(call, &place);
    if (call_begins(call, "clEnqueue")) {
        memory_before_enqueue(call, &place);
        shared_virtual_before(call, &place);
    }
    if (call_is(call, "clEnqueueNDRangeKernel") || call_is(call, "clEnqueueTask"))
        arguments_before_launch(call, &place);
    if (call_is(call, "clReleaseEvent"))
        check_user_event(call, &place);
    const struct cld_arg_info *argument = call_is(call, "clSetKernelArg") ? argument_of(call) : NULL;
    const void *value = (const void *)call_word(call, "arg_value");
    if (argument && argument->kind != CLD_ARG_VALUE && argument->kind != CLD_ARG_LOCAL && value &&
        call_word(call, "arg_size") == sizeof(uintptr_t)) {
        uintptr_t handle;
        memcpy(&handle, value, sizeof handle);
        check_handle(call, &place, handle);
    }
    pthread_mutex_unlock(&lock);
}

/* What calls make, by the beginnings of their names. */
static const struct {
    const char *prefix;
    enum cld_kind kind;
} makers[] = {
    {"clCreateContext", CLD_CONTEXT},
    {"clCreateCommandQueue", CLD_QUEUE},
    {"clCreateBuffer", CLD_MEM},
    {"clCreateSubBuffer", CLD_MEM},
    {"clCreateImage", CLD_MEM},
    {"clCreatePipe", CLD_MEM},
    {"clCreateSampler", CLD_SAMPLER},
    {"clCreateProgram", CLD_PROGRAM},
    {"clLinkProgram", CLD_PROGRAM},
    {"clCreateKernel ", CLD_KERNEL},
    {"clCloneKernel", CLD_KERNEL},
    {"clCreateUserEvent", CLD_EVENT},
    {"clCreateCommandBuffer", CLD_COMMAND_BUFFER},
    {"clRemapCommandBuffer", CLD_COMMAND_BUFFER},
    {"clCreateSemaphore", CLD_SEMAPHORE},
    {"clSVMAlloc", CLD_DEAD},
    {"clHostMemAlloc", CLD_DEAD},
    {"clDeviceMemAlloc", CLD_DEAD},
    {"clSharedMemAlloc", CLD_DEAD},
};

static void made(uintptr_t handle, enum cld_kind kind, const struct place *place, size_t size) {
    if (kind == CLD_DEAD ? !handle : !cld_object_check((const void *)handle, kind))
        return;
    struct known *before = object_find(handle);
    if (before && before->shared)
        host_memory_unshare(before);
    struct known *known = object_made(handle, kind, place, size);
    if (!known)
        return;
    const struct cld_kernel *kernel =
        kind == CLD_KERNEL ? cld_object_check((const void *)handle, CLD_KERNEL) : NULL;
    const struct cld_mem *mem = kind == CLD_MEM ? cld_object_check((const void *)handle, CLD_MEM) : NULL;
    if (kernel)
        strncpy(known->name, kernel->info->name, sizeof known->name - 1);
    if (mem) {
        known->size = mem->size;
        if (mem->svm)
            shared_virtual_of_buffer(mem);
        else if (mem->host_ptr && !mem->parent)
            host_memory_share(known, mem->host_ptr);
    }
    struct known *parent = mem && mem->parent ? object_find((uintptr_t)mem->parent) : NULL;
    if (parent)
        parent->is_parent = true;
}

static void made_list(const void *const *handles, uintptr_t room, const cl_uint *count, enum cld_kind kind,
                      const struct place *place) {
    for (uintptr_t i = 0; handles && i < room && (!count || i < *count); i++)
        made((uintptr_t)handles[i], kind, place, 0);
}

static void note_made(const struct cld_call *call, const struct place *place) {
    if (call_is(call, "clCreateKernelsInProgram"))
        made_list((const void *const *)call_word(call, "kernels"), call_word(call, "num_kernels"),
                  (const cl_uint *)call_word(call, "num_kernels_ret"), CLD_KERNEL, place);
    else if (call_is(call, "clCreateSubDevices"))
        made_list((const void *const *)call_word(call, "out_devices"), call_word(call, "num_devices"),
                  (const cl_uint *)call_word(call, "num_devices_ret"), CLD_DEVICE, place);
    else
        for (size_t i = 0; i < sizeof makers / sizeof *makers; i++)
            if (call_begins(call, makers[i].prefix)) {
                made(call->result, makers[i].kind, place, call_word(call, "size"));
                struct known *memory = call_is(call, "clSVMAlloc") ? object_find(call->result) : NULL;
                if (memory)
                    shared_virtual_made(memory, call_word(call, "flags"));
                return;
            }
}

/* Memory that is freed at once. */
static void note_freed(const struct cld_call *call, const struct place *place) {
    uintptr_t address = call_word(call, call_begins(call, "clSVMFree ") ? "svm_pointer" : "ptr");
    struct known *known = address ? object_find(address) : NULL;
    if (known && known->kind == CLD_DEAD && !known->released.number) {
        memory_freed(known, place);
        if (known->shared)
            host_memory_unshare(known);
        object_forget_uses(known);
        object_released(known, place);
    }
}

static void note_freed_later(const struct cld_call *call, const struct place *place) {
    void *const *list = (void *const *)call_word(call, "svm_pointers");
    for (uintptr_t i = 0; list && i < call_word(call, "num_svm_pointers"); i++) {
        struct known *known = object_find((uintptr_t)list[i]);
        if (!known || known->kind != CLD_DEAD || known->released.number)
            continue;
        if (known->shared)
            host_memory_unshare(known);
        object_released(known, place);
    }
}

static void note_released(const struct cld_call *call, const struct place *place) {
    struct known *known = object_find(call->values[0]);
    if (!known || known->kind == CLD_DEAD || known->released.number)
        return;
    const struct cld_object *object = cld_object_check((const void *)known->handle, known->kind);
    if (object && cld_object_refs(object))
        return;
    object_released(known, place);
    if (known->shared)
        host_memory_unshare(known);
    if (known->kind == CLD_EVENT) {
        command_drop(known->command);
        known->command = NULL;
    }
}

static void note_enqueued(const struct cld_call *call, const struct place *place) {
    uintptr_t is_blocking = 0;
    static const char *const names[] = {"blocking_read", "blocking_write", "blocking_map", "blocking_copy",
                                        "blocking"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (call_value(call, names[i], &is_blocking))
            break;
    is_blocking = (cl_bool)is_blocking;
    const cl_event *event = (const cl_event *)call_word(call, "event");
    struct command *command = command_enqueued(call, place, is_blocking);
    if (event && *event)
        made((uintptr_t)*event, CLD_EVENT, place, 0);
    if (!command)
        return;
    if (event && *event)
        order_event_made((uintptr_t)*event, command);
    memory_after_enqueue(call, is_blocking, command);
    shared_virtual_after(call, command);
    /* What they call may tell the host that what came before has ended. */
    if (call_is(call, "clEnqueueNativeKernel") ||
        (call_is(call, "clEnqueueSVMFree") && call_word(call, "pfn_free_func"))) {
        host_memory_forget(&command->clock);
        order_host_knows(command);
    }
    command_drop(command);
}

static void after(struct cld_call *call, cl_int status) {
    pthread_mutex_lock(&lock);
    struct place place = place_of(call);
    leave_kernel(call);
    order_after_call(call, status);
    if (status >= 0) {
        if (call_is(call, "clEnqueueSVMFree"))
            note_freed_later(call, &place);
        if (call_begins(call, "clEnqueue"))
            note_enqueued(call, &place);
        else if (call_begins(call, "clSVMFree") || call_begins(call, "clMem"))
            note_freed(call, &place);
        else if (call_begins(call, "clRelease"))
            note_released(call, &place);
        else
            note_made(call, &place);
        if (call_is(call, "clSetKernelArg") || call_is(call, "clCloneKernel"))
            arguments_after_call(call);
    }
    pthread_mutex_unlock(&lock);
}

static void before_fork(void) {
    pthread_mutex_lock(&lock);
}

static void after_fork(void) {
    pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void watch(void) {
    if (!cld_setting_is(CL_DRIVER_CHECK_SETTING, "1"))
        return;
    process = getpid();
    pthread_atfork(before_fork, after_fork, after_fork);
    cld_object_hold_back();
    cld_call_watch(before, after);
}

/* After all that exit() calls: hosts release objects there, too. */
__attribute__((destructor)) static void report_left_over(void) {
    if (!process || process != getpid() || pthread_mutex_trylock(&lock))
        return;
    objects_report_left_over();
    pthread_mutex_unlock(&lock);
}
