/* User callbacks. Those of events run on a thread of the driver's own, with no lock held. */
#ifndef CLD_CALLBACK_H
#define CLD_CALLBACK_H

#include "runtime/command.h"

/* Something to be run by the callback thread; embedded in or followed by its data. run frees it. */
struct cld_task {
    struct cld_task *next;
    void (*run)(struct cld_task *task);
};

/* Never blocks. The thread is made at first need; should that fail, the caller runs the task. */
void cld_callback_post(struct cld_task *task);

/* A callback is about to block: another thread takes over the tasks that wait behind it. */
void cld_callback_thread_blocks(void);

/* Hands the callbacks over that an event's status has reached. The status is set before: whoever registers a
 * callback looks at the status afterwards, so that one of the two sees the other. */
void cld_event_fire_callbacks(struct cld_event *event);

static inline void cld_event_fire(struct cld_event *event) {
    if (__builtin_expect(atomic_load(&event->callbacks) != NULL, 0))
        cld_event_fire_callbacks(event);
}

/* clSetMemObjectDestructorCallback, clSetContextDestructorCallback: adds to the list at *list, which belongs
 * to object. CL_OUT_OF_HOST_MEMORY if that fails. function is called as function(handle, user_data). */
cl_int cld_destructor_add(void *object, struct cld_callback **list,
                          void (*function)(void *handle, void *user_data), void *user_data);

/* For the kind's destructor (cld_object_on_destroy): calls them, the newest first, each once, and frees the
 * list. On the thread that released the object's last reference; on the callback thread where the end of a
 * command or another object's was the reason, because workers run no user code: then the calls come later
 * than this function's return, with the handle that the object had. */
void cld_destructors_run(void *object, struct cld_callback **list);

/* Around a fork: the lock of the tasks, of which the child starts without any. */
void cld_callback_fork_prepare(void);
void cld_callback_fork_parent(void);
void cld_callback_fork_child(void);

/* Has the context's pfn_notify called, if it has one, with the formatted text: for errors at run time that no
 * call returns, or whose code does not tell what happened. On the callback thread; never blocks. */
void cld_context_notify(struct cld_context *context, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
