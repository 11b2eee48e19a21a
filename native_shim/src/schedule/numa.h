/* Where CPUs are: memory nodes (NUMA), and the caches of last level in these. What is decided here takes the
 * places of CPUs and asks the machine nothing, so that tests can make up machines. */
#ifndef CLD_NUMA_H
#define CLD_NUMA_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define CLD_SYSTEM_FOLDER "/sys/devices/system"

/* cache: the first of the CPUs that share the L3 cache; CLD_NO_CACHE where only few of the device's do, or
 * the kernel does not tell. Those of a node that have none are together. */
struct cld_place {
    uint16_t node, cache;
};

enum { CLD_NO_CACHE = UINT16_MAX };

/* The CPUs that are online, of a folder like CLD_SYSTEM_FOLDER: malloced, in order, at most `most`. NULL, and
 * *count is 0, where it does not tell, and when out of memory. */
uint32_t *cld_online_cpus(const char *folder, uint32_t most, uint32_t *count);

/* The place of each of the CPUs (malloced), which are put in the order of their places; CPUs of one place
 * keep theirs. NULL where all are in one place, where the folder does not tell the nodes, and when out of
 * memory: then the order stays. Nodes without CPUs, and CPUs that are not asked for, count for nothing. */
struct cld_place *cld_places(const char *folder, uint32_t *cpus, uint32_t count);

/* How near two places are: 2 if they share the cache, 1 if they share the node, else 0. */
static inline unsigned cld_nearness(struct cld_place a, struct cld_place b) {
    return a.node != b.node ? 0 : a.cache != b.cache ? 1 : 2;
}

/* The slots of a command are its equal parts, one after the other. Where it has fewer than the device has
 * threads, a thread goes where most of its part would be if it had as many: so the same data comes to the
 * same place, however many threads a command is worth. home: of the thread, less than threads. */
static inline unsigned cld_slot_of_home(unsigned home, unsigned slots, unsigned threads) {
    return (unsigned)((uint64_t)home * slots / threads);
}

/* The home of the thread to which most of a slot belongs: its middle. */
static inline unsigned cld_home_of_slot(unsigned slot, unsigned slots, unsigned threads) {
    return (unsigned)(((uint64_t)2 * slot + 1) * threads / ((uint64_t)2 * slots));
}

/* The first of the CPUs that is that one; count if none is. */
uint32_t cld_cpu_index(const uint32_t *cpus, uint32_t count, int cpu);

/* The calling thread stays on those of the CPUs that are in the place. Where that is not allowed, it may go
 * everywhere. */
void cld_stay(const uint32_t *cpus, const struct cld_place *places, struct cld_place place, uint32_t count);

/* The thread that is made with the attributes is bound to the CPUs. */
void cld_cpus_bind(pthread_attr_t *attributes, const uint32_t *cpus, uint32_t count);

#endif
