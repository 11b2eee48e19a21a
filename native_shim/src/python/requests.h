/* What requests through the door have in common. */
#ifndef CLD_REQUESTS_H
#define CLD_REQUESTS_H

#include "object/info.h"
#include "object/objects.h"
#include "python/door.h"

/* A list of integers. */
void cld_put_words(struct cld_msg *request, const intptr_t *words, size_t count);

/* A list of the devices' keys. */
void cld_put_devices(struct cld_msg *request, struct cld_device *const *devices, uint32_t count);

/* An info query through the door; frees the request. */
cl_int cld_query(const char *operation, struct cld_msg *request, size_t param_value_size, void *param_value,
                 size_t *param_value_size_ret);

/* An operation whose answer is the key of a new peer; frees the request. The key must end in a handle or be
 * forgotten (cld_door_forget). */
cl_int cld_call_for_key(const char *operation, struct cld_msg *request, uint64_t *key);

/* Runs run(argument) on a detached thread of the driver's own that takes no signals, with stack enough for
 * requests; false if there can be
 * none. */
bool cld_start_thread(void *(*run)(void *), void *argument);

#endif
