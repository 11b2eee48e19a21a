/* What was put: the values of its messages. */
#include "executor/internal.h"

const void *cld_batch_data(struct cld_batch *batch, struct cld_msg *msg, size_t *size) {
    if (msg->failed || msg->at >= msg->size || msg->data[msg->at] == 'b')
        return cld_get_bytes(msg, size);
    *size = (size_t)cld_get_int(msg);
    const struct cld_range *payload =
        batch->payload_at < batch->payload_count ? &batch->payloads[batch->payload_at++] : NULL;
    if (payload && payload->size == *size)
        return payload->at;
    msg->failed = true;
    return NULL;
}
