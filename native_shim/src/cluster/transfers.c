/* Contents that go from one worker to another, which the host only says.
 *
 * Both are told while the lock is held: each does it in its place among what it is told, and all that a
 * transfer waits for was said before, so no two wait for each other. The worker that is to have them answers
 * when they are there, or will never be: then it fails what needs them. */
#include <stdlib.h>

#include "cluster/internal.h"

static void connect(struct cld_worker *from, const struct cld_worker *to) {
    struct cld_item *item = cld_item_of(CLD_CONNECT_MESSAGE, to->number);
    if (item && cld_send(from, item))
        cld_set_add(&from->asked, to->number);
}

struct cld_worker *cld_transfer_source(const struct cld_segment *segment, const struct cld_worker *to) {
    struct cld_worker *from;
    for (uint32_t i = cld_set_next(&segment->valid, 0); (from = cld_worker_at(i));
         i = cld_set_next(&segment->valid, i + 1)) {
        if (from->is_gone || from == to)
            continue;
        if (cld_set_has(&from->reachable, to->number))
            return from;
        if (!cld_set_has(&from->asked, to->number))
            connect(from, to);
    }
    return NULL;
}

static struct cld_item *transfer_item(int message, uint32_t count, uint64_t transfer,
                                      const struct cld_copies *copies, size_t offset, size_t size) {
    struct cld_item *item = cld_item_new();
    if (!item)
        return NULL;
    cld_put_list(&item->message, count);
    cld_put_int(&item->message, message);
    cld_put_int(&item->message, (int64_t)transfer);
    cld_put_int(&item->message, (int64_t)copies->known->number);
    cld_put_int(&item->message, (int64_t)offset);
    cld_put_int(&item->message, (int64_t)size);
    return item;
}

bool cld_transfer(struct cld_copies *copies, struct cld_worker *from, struct cld_worker *to, size_t offset,
                  size_t size) {
    uint64_t number = cld_cluster_number();
    struct cld_item *send = transfer_item(CLD_SEND_MESSAGE, 6, number, copies, offset, size);
    struct cld_item *receive = transfer_item(CLD_RECEIVE_MESSAGE, 5, number, copies, offset, size);
    struct cld_item *miss = cld_item_of(CLD_MISS_MESSAGE, number);
    if (send)
        cld_put_int(&send->message, to->number);
    /* Both or none: one that is to receive waits for the other. */
    bool is_made = send && receive && miss && !send->message.failed && !receive->message.failed;
    struct cld_request *request = is_made ? cld_request(to, number, NULL, offset, size) : NULL;
    if (!request) {
        cld_item_free(send);
        cld_item_free(receive);
        cld_item_free(miss);
        return false;
    }
    request->miss = miss;
    request->copies = copies;
    request->from = from;
    request->version = copies->version;
    if (!cld_is_idle(from))
        request->sent = 0;
    copies->transfers++;
    cld_send(from, send);
    cld_send(to, receive);
    return true;
}

void cld_transfer_end(struct cld_worker *to, const struct cld_request *request, int64_t status) {
    struct cld_copies *copies = request->copies;
    if (!copies) /* freed meanwhile */
        return;
    copies->transfers--;
    if (!status)
        return;
    size_t end = request->offset + request->size;
    struct cld_segment *segment = cld_segments_in(copies, request->offset, end);
    if (!segment) /* no memory for a part of one: all of it */
        segment = copies->segments;
    for (; segment && segment->begin < end; segment = segment->next)
        if (segment->end > request->offset && segment->version <= request->version)
            cld_set_remove(&segment->valid, to->number);
    cld_segments_join(copies, (struct cld_bytes_range){request->offset, end});
}

void cld_transfers_forget(const struct cld_copies *copies) {
    struct cld_worker *worker;
    for (uint32_t i = 0; copies->transfers && (worker = cld_worker_at(i)); i++)
        for (struct cld_request *request = worker->oldest; request; request = request->next)
            if (request->from && request->copies == copies)
                request->copies = NULL;
}

/* It is known where it is waited for, which then answers. */
static void miss(struct cld_worker *to, struct cld_request *request) {
    struct cld_item *item = request->miss;
    request->miss = NULL;
    if (item)
        cld_send(to, item);
}

void cld_transfers_miss(const struct cld_worker *from, const struct cld_worker *peer, uint64_t number) {
    struct cld_worker *to;
    for (uint32_t i = 0; (to = cld_worker_at(i)); i++)
        for (struct cld_request *request = !peer || to == peer ? to->oldest : NULL; request;
             request = request->next)
            if (request->from == from && (!number || request->number == number))
                miss(to, request);
}
