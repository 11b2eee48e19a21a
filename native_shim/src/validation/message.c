/* Reports: each once, with the places in the host that they are about. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "validation/validation.h"

/* Of one kind, in all: a loop is not to fill the log. */
enum { MOST_TOLD = 2048, MOST_OF_A_KIND = 50 };

static struct told {
    const char *kind; /* a literal */
    const void *caller;
    uint64_t subject;
} told[MOST_TOLD];
static unsigned told_count;

static bool is_new(const char *kind, const struct place *place, uint64_t subject) {
    unsigned of_kind = 0;
    for (unsigned i = 0; i < told_count; i++) {
        if (told[i].kind != kind)
            continue;
        if (told[i].caller == place->caller && told[i].subject == subject)
            return false;
        of_kind++;
    }
    if (of_kind >= MOST_OF_A_KIND || told_count == MOST_TOLD)
        return false;
    told[told_count++] = (struct told){kind, place->caller, subject};
    return true;
}

struct message_text message_caller(const void *caller) {
    struct message_text text = {""};
    Dl_info info;
    if (!caller || !dladdr(caller, &info) || !info.dli_fname)
        return text;
    const char *file = strrchr(info.dli_fname, '/');
    int size = snprintf(text.text, sizeof text.text, "%.60s+%#zx", file ? file + 1 : info.dli_fname,
                        (size_t)((uintptr_t)caller - (uintptr_t)info.dli_fbase));
    if (info.dli_sname && size > 0 && (size_t)size < sizeof text.text)
        snprintf(text.text + size, sizeof text.text - (size_t)size, " (%.60s)", info.dli_sname);
    return text;
}

void message_add(struct message *message, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int more = vsnprintf(message->bytes + message->size, sizeof message->bytes - message->size, format, args);
    va_end(args);
    message->size += more < 0 ? 0 : (size_t)more;
    if (message->size >= sizeof message->bytes)
        message->size = sizeof message->bytes - 1;
}

void message_add_place(struct message *message, const char *what, const struct place *place) {
    struct message_text caller = message_caller(place->caller);
    message_add(message, "\n  %s%s%s, call %llu of the process, thread %d%s%s", what, *what ? " " : "",
                place->call, (unsigned long long)place->number, place->thread,
                *caller.text ? ", returns to " : "", caller.text);
}

bool message_begin(struct message *message, const char *kind, const struct place *place, uint64_t subject) {
    if (!is_new(kind, place, subject))
        return false;
    message->size = 0;
    message_add(message, "cl_driver check: %s: ", place->call);
    return true;
}

void message_end(struct message *message) {
    if (message->size > sizeof message->bytes - 2)
        message->size = sizeof message->bytes - 2;
    message->bytes[message->size++] = '\n';
    cld_log_text(message->bytes, message->size);
}
