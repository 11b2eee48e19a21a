/* Pipes: rings of entries, from which any number of work-items reserve, write, read and commit without locks.
 *
 * The position of each side is one word, the lap in its upper half and the entry in its lower one. Each entry
 * has a state: twice the lap if it may be written in that lap, one more if it may be read. A reservation looks
 * at the states of the entries that it wants, which only the owner of an entry changes, and then moves the
 * position past them. A commit adds one to each state. So reservations may be committed in any order, and
 * entries are read in the order in which they were reserved for writing.
 *
 * The memory begins as zeros, but for the first four fields (struct cld_pipe of
 * native_shim/src/memory/pipe.h, passes/program/pipe_storage.py). */

struct ring {
    uint packet_size;
    uint max_packets;
    ulong data; /* bytes from here to the first packet */
    ulong unused[6];
    struct {
        atomic_ulong position;
        ulong unused[7];
    } side[2];
    atomic_ulong counted; /* entries up to here are known to have been written */
    ulong unused_too[7];
    atomic_uint state[];
};

void cld_yield(void); /* of the data plane */

#define ON_READ 0
#define ON_WRITE 1
#define LOAD(place, order) atomic_load_explicit(place, memory_order_##order, memory_scope_all_svm_devices)
#define STORE(place, value, order)                                                                           \
    atomic_store_explicit(place, value, memory_order_##order, memory_scope_all_svm_devices)
#define EXCHANGE_IF(place, expected, value)                                                                  \
    atomic_compare_exchange_strong_explicit(place, expected, value, memory_order_relaxed,                    \
                                            memory_order_relaxed, memory_scope_all_svm_devices)

static ulong pipe_behind(ulong position, uint count, uint max_packets) {
    uint lap = (uint)(position >> 32);
    ulong entry = (position & 0xffffffff) + count;
    if (entry >= max_packets) {
        entry -= max_packets;
        lap++;
    }
    return (ulong)lap << 32 | entry;
}

static bool pipe_is_ready(__global struct ring *ring, ulong position, uint side) {
    uint wanted = 2 * (uint)(position >> 32) + 1 - side;
    return LOAD(&ring->state[position & 0xffffffff], acquire) == wanted;
}

/* How many entries from a position on, of as many as are wanted, can be reserved. */
static uint pipe_ready(__global struct ring *ring, ulong position, uint side, uint wanted) {
    uint count = 0;
    while (count < wanted && pipe_is_ready(ring, position, side)) {
        position = pipe_behind(position, 1, ring->max_packets);
        count++;
    }
    return count;
}

/* Reserves for each of the lanes as many entries as it asks for, one lane after the other, all at once. A
 * reservation is the number of its entries in the upper half and the first of them in the lower one; 0 for a
 * lane that asks for none, or for more than there are. */
void __cld_pipe_reserve_lanes(__global uchar *memory, __private const uint *counts, __private ulong *reserved,
                              ulong lanes, uint packet_size, uint side) {
    __global struct ring *ring = (__global struct ring *)memory;
    uint max_packets = ring->max_packets;
    ulong wanted = 0;
    for (ulong rest = lanes; rest; rest &= rest - 1)
        wanted += counts[ctz(rest)];
    uint most = wanted < max_packets ? (uint)wanted : max_packets;
    if (ring->packet_size != packet_size)
        most = 0;
    ulong position = LOAD(&ring->side[side].position, relaxed);
    for (;;) {
        uint ready = pipe_ready(ring, position, side, most);
        uint taken = 0;
        for (ulong rest = lanes; rest; rest &= rest - 1) {
            uint lane = (uint)ctz(rest);
            uint count = counts[lane];
            bool fits = count <= ready - taken && count;
            ulong first = pipe_behind(position, taken, max_packets) & 0xffffffff;
            reserved[lane] = fits ? (ulong)count << 32 | first : 0;
            taken += fits ? count : 0;
        }
        if (taken) {
            if (EXCHANGE_IF(&ring->side[side].position, &position, pipe_behind(position, taken, max_packets)))
                return;
            continue;
        }
        /* Full, or empty, if nobody has moved the position while the states were looked at. */
        ulong now = LOAD(&ring->side[side].position, relaxed);
        if (now == position) {
            if (most)
                cld_yield();
            return;
        }
        position = now;
    }
}

ulong __cld_pipe_reserve(__global uchar *memory, uint count, uint packet_size, uint side) {
    ulong reserved;
    __cld_pipe_reserve_lanes(memory, &count, &reserved, 1, packet_size, side);
    return reserved;
}

void __cld_pipe_commit(__global uchar *memory, ulong reserved) {
    __global struct ring *ring = (__global struct ring *)memory;
    uint max_packets = ring->max_packets, entry = (uint)reserved;
    if ((long)reserved <= 0 || entry >= max_packets)
        return;
    for (uint count = min((uint)(reserved >> 32), max_packets); count; count--) {
        __global atomic_uint *state = &ring->state[entry];
        STORE(state, LOAD(state, relaxed) + 1, release);
        entry = entry + 1 < max_packets ? entry + 1 : 0;
    }
}

void __cld_pipe_commit_lanes(__global uchar *memory, __private const ulong *reserved, ulong lanes) {
    for (; lanes; lanes &= lanes - 1)
        __cld_pipe_commit(memory, reserved[ctz(lanes)]);
}

/* How many packets can be read. Where the last who asked has counted to is kept. */
uint __cld_pipe_packets(__global uchar *memory) {
    __global struct ring *ring = (__global struct ring *)memory;
    uint max_packets = ring->max_packets;
    ulong begin = LOAD(&ring->side[ON_READ].position, relaxed);
    ulong before = LOAD(&ring->counted, relaxed);
    ulong end = before;
    uint laps = (uint)(end >> 32) - (uint)(begin >> 32);
    ulong count = (ulong)laps * max_packets + (end & 0xffffffff) - (begin & 0xffffffff);
    if (count > max_packets) { /* what was counted has been read */
        end = begin;
        count = 0;
    }
    while (count < max_packets && pipe_is_ready(ring, end, ON_READ)) {
        end = pipe_behind(end, 1, max_packets);
        count++;
    }
    if (end != before)
        EXCHANGE_IF(&ring->counted, &before, end);
    return (uint)count;
}
