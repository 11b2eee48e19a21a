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
/* clang-22 makes every atomic_store_explicit sequentially consistent. */
void OVERLOAD __spirv_AtomicStore(__global uint *place, int scope, int semantics, uint value);
#define RELEASE(place, value) __spirv_AtomicStore((__global uint *)(place), 0, 0x4, value)
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

/* How many entries of a lap, from one on, have this state; at most so many. */
static uint pipe_run(__global struct ring *ring, uint entry, uint most, uint wanted) {
    uint count = 0;
    while (count < most && LOAD(&ring->state[entry + count], acquire) == wanted)
        count++;
    return count;
}

/* How many entries from a position on can be reserved; at most so many, which are no more than there are. */
static uint pipe_ready(__global struct ring *ring, ulong position, uint side, uint most, uint max_packets) {
    uint entry = (uint)position, wanted = 2 * (uint)(position >> 32) + 1 - side;
    uint left = max_packets - entry, first = min(most, left);
    uint count = pipe_run(ring, entry, first, wanted);
    if (count == left)
        count += pipe_run(ring, 0, most - left, wanted + 2);
    return count;
}

/* Reserves for each of the lanes as many entries as it asks for, one lane after the other, all at once. A
 * reservation is the number of its entries in the upper half and the first of them in the lower one. What is
 * 0 before stays so for a lane that asks for none, or for more than there are. */
void __cld_pipe_reserve_lanes(__global uchar *memory, __private const uint *counts, __private ulong *reserved,
                              ulong lanes, uint packet_size, uint side) {
    __global struct ring *ring = (__global struct ring *)memory;
    uint max_packets = ring->max_packets;
    ulong wanted = 0;
    for (ulong rest = lanes; rest; rest &= rest - 1)
        wanted += counts[ctz(rest)];
    if (!wanted || ring->packet_size != packet_size)
        return;
    uint most = wanted < max_packets ? (uint)wanted : max_packets;
    ulong position = LOAD(&ring->side[side].position, relaxed);
    for (;;) {
        uint ready = pipe_ready(ring, position, side, most, max_packets);
        uint taken = 0, entry = (uint)position;
        for (ulong rest = lanes; rest; rest &= rest - 1) {
            uint lane = (uint)ctz(rest), asked = counts[lane];
            uint count = asked <= ready - taken ? asked : 0;
            reserved[lane] = count ? (ulong)count << 32 | entry : 0;
            taken += count;
            uint left = max_packets - entry;
            entry = count < left ? entry + count : count - left;
        }
        if (taken) {
            if (EXCHANGE_IF(&ring->side[side].position, &position, pipe_behind(position, taken, max_packets)))
                return;
            continue;
        }
        /* Full, or empty, if nobody has moved the position while the states were looked at. */
        ulong now = LOAD(&ring->side[side].position, relaxed);
        if (now == position) {
            cld_yield();
            return;
        }
        position = now;
    }
}

ulong __cld_pipe_reserve(__global uchar *memory, uint count, uint packet_size, uint side) {
    ulong reserved = 0;
    __cld_pipe_reserve_lanes(memory, &count, &reserved, 1, packet_size, side);
    return reserved;
}

static void pipe_commit(__global struct ring *ring, uint max_packets, ulong reserved) {
    uint entry = (uint)reserved;
    if ((long)reserved <= 0 || entry >= max_packets)
        return;
    for (uint count = min((uint)(reserved >> 32), max_packets); count; count--) {
        __global atomic_uint *state = &ring->state[entry];
        RELEASE(state, LOAD(state, relaxed) + 1);
        entry = entry + 1 < max_packets ? entry + 1 : 0;
    }
}

void __cld_pipe_commit(__global uchar *memory, ulong reserved) {
    __global struct ring *ring = (__global struct ring *)memory;
    pipe_commit(ring, ring->max_packets, reserved);
}

void __cld_pipe_commit_lanes(__global uchar *memory, __private const ulong *reserved, ulong lanes) {
    __global struct ring *ring = (__global struct ring *)memory;
    uint max_packets = ring->max_packets;
    for (; lanes; lanes &= lanes - 1)
        pipe_commit(ring, max_packets, reserved[ctz(lanes)]);
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
