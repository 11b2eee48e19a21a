/* What a context's pfn_notify is told. */
#ifndef CLD_CONTEXT_NOTIFY_H
#define CLD_CONTEXT_NOTIFY_H

#include "object/objects.h"

/* Has the context's pfn_notify called, if it has one, with the formatted text: for errors at run time that no
 * call returns, or whose code does not tell what happened. On the callback thread; never blocks. */
void cld_context_notify(struct cld_context *context, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
