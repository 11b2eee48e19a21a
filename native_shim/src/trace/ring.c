/* A buffer of records for each thread. */
#include "trace/ring.h"

#include <stdlib.h>

#include "base/thread.h"
#include "trace/writer.h"

static _Thread_local struct cld_ring *mine;

static struct cld_ring *ring_of_thread(void) {
    struct cld_self *self = cld_self(); /* so that its end is told */
    if (mine)
        return mine;
    struct cld_ring *ring = aligned_alloc(64, sizeof *ring);
    if (!ring)
        return NULL;
    ring->thread = cld_thread_id();
    ring->role = (uint8_t)self->role;
    ring->is_known = false;
    atomic_init(&ring->is_done, false);
    atomic_init(&ring->head, 0);
    atomic_init(&ring->tail, 0);
    ring->seen = 0;
    mine = ring;
    cld_writer_add(ring);
    return ring;
}

static void end_thread(struct cld_self *self) {
    (void)self;
    if (mine)
        atomic_store_explicit(&mine->is_done, true, memory_order_release); /* it may be gone from here on */
    mine = NULL;
}

static bool has_room(struct cld_ring *ring, uint64_t head, uint64_t words) {
    if (head + words - ring->seen <= CLD_RING_WORDS)
        return true;
    ring->seen = atomic_load_explicit(&ring->tail, memory_order_acquire);
    return head + words - ring->seen <= CLD_RING_WORDS;
}

struct cld_record *cld_ring_reserve(enum cld_record_kind kind, unsigned words) {
    struct cld_ring *ring = ring_of_thread();
    if (!ring) {
        cld_writer_lose(1);
        return NULL;
    }
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    uint64_t left = CLD_RING_WORDS - head % CLD_RING_WORDS, skipped = left < words ? left : 0;
    if (!has_room(ring, head, skipped + words)) {
        cld_writer_drain();
        if (!has_room(ring, head, skipped + words)) {
            cld_writer_lose(1);
            return NULL;
        }
    }
    if (skipped) {
        ((struct cld_record *)(void *)&ring->words[head % CLD_RING_WORDS])->kind = CLD_RECORD_SKIP;
        head += skipped;
        atomic_store_explicit(&ring->head, head, memory_order_release);
    }
    struct cld_record *record = (struct cld_record *)(void *)&ring->words[head % CLD_RING_WORDS];
    record->kind = (uint16_t)kind;
    record->words = (uint16_t)words;
    record->value = 0;
    return record;
}

void cld_ring_publish(struct cld_record *record) {
    uint64_t head = atomic_load_explicit(&mine->head, memory_order_relaxed) + record->words;
    atomic_store_explicit(&mine->head, head, memory_order_release);
    cld_writer_call();
}

void cld_ring_register(void) {
    cld_on_thread_end(end_thread);
}
