/* Tells a context's pfn_notify what went wrong. */
#include "runtime/context_notify.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/callback.h"

struct notice {
    struct cld_task task;
    struct cld_context *context; /* held: no destructor callback comes before this one */
    char text[256];
};

static void give_notice(struct cld_task *task) {
    struct notice *notice = (struct notice *)task;
    notice->context->notify(notice->text, NULL, 0, notice->context->notify_data);
    cld_object_drop(notice->context);
    free(notice);
}

void cld_context_notify(struct cld_context *context, const char *format, ...) {
    struct notice *notice = context->notify ? malloc(sizeof *notice) : NULL;
    if (!notice)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(notice->text, sizeof notice->text, format, arguments);
    va_end(arguments);
    notice->task.run = give_notice;
    notice->context = context;
    cld_object_hold(context);
    cld_callback_post(&notice->task);
}
