/* Requests to Python: the envelope, and which peers may go. The way there is guest.c's. */
#include "python/door.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/error_names.h"
#include "base/log.h"
#include "object/call.h"
#include "python/guest.h"

/* Keys of destroyed handles, until a request takes them along. */
struct forgotten {
    struct forgotten *next;
    uint64_t key;
};
static _Atomic(struct forgotten *) forgotten;

void cld_door_forget(uint64_t key) {
    if (key <= cld_kept_keys)
        return;
    struct forgotten *node = malloc(sizeof *node);
    if (!node)
        return; /* the peer leaks */
    node->key = key;
    node->next = atomic_load(&forgotten);
    while (!atomic_compare_exchange_weak(&forgotten, &node->next, node))
        ;
}

static void put_forgotten(struct cld_msg *frame) {
    struct forgotten *list = atomic_exchange(&forgotten, NULL);
    uint32_t count = 0;
    for (const struct forgotten *node = list; node; node = node->next)
        count += node->key > cld_kept_keys;
    cld_put_list(frame, count);
    while (list) {
        struct forgotten *next = list->next;
        if (list->key > cld_kept_keys && count) {
            cld_put_int(frame, (int64_t)list->key);
            count--;
        }
        free(list);
        list = next;
    }
    while (count--) /* a fork in between kept some after all */
        cld_put_int(frame, 0);
}

/* An operation of the control plane fails: why, and whether that is an error, are in its answer. */
static void refuse(const char *op, int32_t status, struct cld_msg *reply) {
    size_t size;
    bool is_error = cld_get_int(reply) != 0;
    const char *why = cld_get_bytes(reply, &size);
    if (reply->failed || !size)
        why = "it failed", size = strlen(why);
    if (is_error)
        cld_refuse(op, status, "%.*s", (int)size, why);
    else
        cld_lack(op, status, "%.*s", (int)size, why);
}

int32_t cld_door_call(const char *op, const struct cld_msg *request, struct cld_msg *reply) {
    struct cld_msg frame;
    cld_msg_init(&frame);
    cld_msg_init(reply);
    int32_t status = CL_OUT_OF_HOST_MEMORY;
    cld_put_string(&frame, op);
    put_forgotten(&frame);
    if (request && request->size) {
        void *place = cld_msg_grow(&frame, request->size);
        if (place)
            memcpy(place, request->data, request->size);
    }
    if ((request && request->failed) || frame.failed) {
        cld_log(1, "%s: no memory for the request", op);
    } else if (cld_guest_exchange(&frame, reply)) {
        int64_t code = cld_get_int(reply);
        uint64_t highest = (uint64_t)cld_get_int(reply);
        if (!reply->failed && code <= 0 && code >= INT32_MIN) {
            status = (int32_t)code;
            if (status)
                refuse(op, status, reply);
            uint64_t seen = cld_highest_key;
            while (seen < highest && !atomic_compare_exchange_weak(&cld_highest_key, &seen, highest))
                ;
        } else {
            cld_log(1, "%s: the control plane's answer is malformed", op);
        }
    }
    cld_msg_free(&frame);
    if (status) {
        cld_msg_free(reply);
        cld_log(2, "%s: %s", op, cld_error_name(status));
    }
    return status;
}
