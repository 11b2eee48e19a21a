/* Where CPUs are, as the kernel's files say. */
#define _GNU_SOURCE
#include "schedule/numa.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

/* A cache that fewer of the device's CPUs share is no place to stay in: threads that are bound to few CPUs
 * wait for them while others are idle. (Some virtual machines show each CPU with a cache of its own.) */
enum { LEAST_SHARERS = 4 };

enum { MOST_NODES = 1024, MOST_CACHES = 10, UNKNOWN = UINT16_MAX };

/* The next range of a list like "0-3,8", from the file. False at its end. */
static bool next_range(FILE *file, unsigned *first, unsigned *last) {
    if (fscanf(file, "%u", first) != 1)
        return false;
    *last = *first;
    int next = fgetc(file);
    if (next == '-' && fscanf(file, "%u", last) == 1)
        next = fgetc(file);
    if (next != ',' && next != EOF)
        ungetc(next, file); /* the end of the line: no number follows */
    return *first <= *last;
}

/* Whether such a list names the CPU. */
static bool lists(FILE *file, uint32_t cpu) {
    unsigned first, last;
    rewind(file);
    while (next_range(file, &first, &last))
        if (first <= cpu && cpu <= last)
            return true;
    return false;
}

uint32_t *cld_online_cpus(const char *folder, uint32_t most, uint32_t *count) {
    char path[256];
    snprintf(path, sizeof path, "%s/cpu/online", folder);
    FILE *file = fopen(path, "re");
    uint32_t *cpus = file ? calloc(most, sizeof *cpus) : NULL;
    unsigned first, last;
    *count = 0;
    while (cpus && *count < most && next_range(file, &first, &last))
        for (unsigned cpu = first; cpu <= last && *count < most; cpu++)
            cpus[(*count)++] = cpu;
    if (file)
        fclose(file);
    if (*count)
        return cpus;
    free(cpus);
    return NULL;
}

static bool is_before(struct cld_place a, struct cld_place b) {
    return a.node != b.node ? a.node < b.node : a.cache < b.cache;
}

/* Stable, so that CPUs keep their order within a place. */
static void sort(uint32_t *cpus, struct cld_place *places, uint32_t count) {
    for (uint32_t i = 1; i < count; i++) {
        uint32_t cpu = cpus[i], at = i;
        struct cld_place place = places[i];
        for (; at && is_before(place, places[at - 1]); at--) {
            places[at] = places[at - 1];
            cpus[at] = cpus[at - 1];
        }
        places[at] = place;
        cpus[at] = cpu;
    }
}

/* False where a CPU has none. */
static bool find_nodes(const char *folder, const uint32_t *cpus, struct cld_place *places, uint32_t count) {
    uint32_t left = count;
    for (unsigned node = 0; left && node < MOST_NODES; node++) { /* numbers may be missing */
        char path[256];
        snprintf(path, sizeof path, "%s/node/node%u/cpulist", folder, node);
        FILE *file = fopen(path, "re");
        if (!file)
            continue;
        for (uint32_t i = 0; i < count; i++)
            if (places[i].node == UNKNOWN && lists(file, cpus[i])) {
                places[i].node = (uint16_t)node;
                left--;
            }
        fclose(file);
    }
    return !left;
}

/* The list of those that share the CPU's cache of level 3, which is often the last of four. */
static FILE *open_sharers(const char *folder, uint32_t cpu) {
    for (unsigned i = 0; i < MOST_CACHES; i++) {
        char path[256];
        unsigned level = 0;
        snprintf(path, sizeof path, "%s/cpu/cpu%u/cache/index%u/level", folder, cpu, (3 + i) % MOST_CACHES);
        FILE *file = fopen(path, "re");
        if (!file)
            continue;
        bool is_found = fscanf(file, "%u", &level) == 1 && level == 3;
        fclose(file);
        if (!is_found)
            continue;
        snprintf(path, sizeof path, "%s/cpu/cpu%u/cache/index%u/shared_cpu_list", folder, cpu,
                 (3 + i) % MOST_CACHES);
        return fopen(path, "re");
    }
    return NULL;
}

/* One file for all that share a cache: there may be hundreds of CPUs. */
static void find_caches(const char *folder, const uint32_t *cpus, struct cld_place *places, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        FILE *file = places[i].cache == UNKNOWN && cpus[i] < UNKNOWN ? open_sharers(folder, cpus[i]) : NULL;
        if (!file)
            continue;
        for (uint32_t k = i; k < count; k++)
            if (places[k].cache == UNKNOWN && places[k].node == places[i].node && lists(file, cpus[k]))
                places[k].cache = (uint16_t)cpus[i];
        fclose(file);
    }
}

/* Where few of the CPUs share a cache, they are in their node, and nowhere else. A CPU may be there several
 * times: the device has more threads than CPUs. */
static void forget_small_caches(const uint32_t *cpus, struct cld_place *places, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        uint32_t sharers = 0;
        uint16_t cache = places[i].cache;
        for (uint32_t k = 0; k < count && sharers < LEAST_SHARERS; k++)
            sharers += places[k].cache == cache && cld_cpu_index(cpus, count, (int)cpus[k]) == k;
        for (uint32_t k = i; k < count && cache != CLD_NO_CACHE && sharers < LEAST_SHARERS; k++)
            if (places[k].cache == cache)
                places[k].cache = CLD_NO_CACHE;
    }
}

struct cld_place *cld_places(const char *folder, uint32_t *cpus, uint32_t count) {
    struct cld_place *places = count ? malloc(count * sizeof *places) : NULL;
    if (!places)
        return NULL;
    for (uint32_t i = 0; i < count; i++)
        places[i] = (struct cld_place){UNKNOWN, CLD_NO_CACHE};
    bool several = false, known = find_nodes(folder, cpus, places, count);
    if (known) {
        find_caches(folder, cpus, places, count);
        forget_small_caches(cpus, places, count);
    }
    for (uint32_t i = 0; i < count; i++)
        several |= cld_nearness(places[i], places[0]) < 2;
    if (!several || !known) {
        free(places);
        return NULL;
    }
    sort(cpus, places, count);
    return places;
}

uint32_t cld_cpu_index(const uint32_t *cpus, uint32_t count, int cpu) {
    uint32_t at = 0;
    while (at < count && (int)cpus[at] != cpu)
        at++;
    return at;
}

/* The CPUs, or those of one place. NULL when out of memory. */
static cpu_set_t *new_set(const uint32_t *cpus, const struct cld_place *places, struct cld_place place,
                          uint32_t count, size_t *size) {
    size_t bits = 64;
    for (uint32_t i = 0; i < count; i++)
        if (cpus[i] >= bits)
            bits = cpus[i] + 1;
    cpu_set_t *set = CPU_ALLOC(bits);
    *size = CPU_ALLOC_SIZE(bits);
    if (set)
        CPU_ZERO_S(*size, set);
    for (uint32_t i = 0; set && i < count; i++)
        if (!places || cld_nearness(places[i], place) == 2)
            CPU_SET_S(cpus[i], *size, set);
    return set;
}

void cld_stay(const uint32_t *cpus, const struct cld_place *places, struct cld_place place, uint32_t count) {
    size_t size;
    cpu_set_t *set = new_set(cpus, places, place, count, &size);
    if (!set)
        return;
    sched_setaffinity(0, size, set);
    CPU_FREE(set);
}

void cld_cpus_bind(pthread_attr_t *attributes, const uint32_t *cpus, uint32_t count) {
    size_t size;
    cpu_set_t *set = new_set(cpus, NULL, (struct cld_place){0}, count, &size);
    if (!set)
        return;
    pthread_attr_setaffinity_np(attributes, size, set);
    CPU_FREE(set);
}
