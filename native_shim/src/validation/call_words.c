/* What a call is, and its arguments by their names. */
#include <string.h>

#include "validation/validation.h"

bool call_value(const struct cld_call *call, const char *name, uintptr_t *value) {
    size_t size = strlen(name);
    const char *at = strchr(call->form, ' ');
    for (size_t i = 0; at; i++) {
        const char *word = at + 2, *end = strchr(word, ' ');
        if ((end ? (size_t)(end - word) : strlen(word)) == size && !memcmp(word, name, size)) {
            *value = call->values[i];
            return true;
        }
        at = end;
    }
    return false;
}

bool call_is(const struct cld_call *call, const char *name) {
    size_t size = strlen(name);
    return !strncmp(call->form, name, size) && (call->form[size] == ' ' || !call->form[size]);
}

bool call_begins(const struct cld_call *call, const char *prefix) {
    return !strncmp(call->form, prefix, strlen(prefix));
}
