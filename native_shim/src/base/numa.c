/* Memory nodes: which CPU is near which memory, as the kernel's files say. */
#define _GNU_SOURCE
#include "base/numa.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_NODES = 1024, UNKNOWN = UINT16_MAX };

/* Whether a list like "0-3,8" names the CPU. */
static bool lists(FILE *file, uint32_t cpu) {
    unsigned first, last;
    rewind(file);
    while (fscanf(file, "%u", &first) == 1) {
        int next = fgetc(file);
        last = first;
        if (next == '-' && fscanf(file, "%u", &last) == 1)
            next = fgetc(file);
        if (first <= cpu && cpu <= last)
            return true;
        if (next != ',')
            break;
    }
    return false;
}

/* Stable, so that CPUs keep their order within a node. */
static void sort(uint32_t *cpus, uint16_t *nodes, uint32_t count) {
    for (uint32_t i = 1; i < count; i++) {
        uint32_t cpu = cpus[i], at = i;
        uint16_t node = nodes[i];
        for (; at && nodes[at - 1] > node; at--) {
            nodes[at] = nodes[at - 1];
            cpus[at] = cpus[at - 1];
        }
        nodes[at] = node;
        cpus[at] = cpu;
    }
}

uint16_t *cld_numa_nodes(const char *folder, uint32_t *cpus, uint32_t count) {
    uint16_t *nodes = count ? malloc(count * sizeof *nodes) : NULL;
    if (!nodes)
        return NULL;
    for (uint32_t i = 0; i < count; i++)
        nodes[i] = UNKNOWN;
    uint32_t left = count;                                       /* each has one */
    for (unsigned node = 0; left && node < MOST_NODES; node++) { /* numbers may be missing */
        char path[256];
        snprintf(path, sizeof path, "%s/node%u/cpulist", folder, node);
        FILE *file = fopen(path, "r");
        if (!file)
            continue;
        for (uint32_t i = 0; i < count; i++)
            if (nodes[i] == UNKNOWN && lists(file, cpus[i])) {
                nodes[i] = (uint16_t)node;
                left--;
            }
        fclose(file);
    }
    bool several = false, known = true;
    for (uint32_t i = 0; i < count; i++) {
        several |= nodes[i] != nodes[0];
        known &= nodes[i] != UNKNOWN;
    }
    if (!several || !known) {
        free(nodes);
        return NULL;
    }
    sort(cpus, nodes, count);
    return nodes;
}

/* The CPUs, or those of one node. NULL when out of memory. */
static cpu_set_t *new_set(const uint32_t *cpus, const uint16_t *nodes, uint16_t node, uint32_t count,
                          size_t *size) {
    size_t bits = 64;
    for (uint32_t i = 0; i < count; i++)
        if (cpus[i] >= bits)
            bits = cpus[i] + 1;
    cpu_set_t *set = CPU_ALLOC(bits);
    *size = CPU_ALLOC_SIZE(bits);
    if (set)
        CPU_ZERO_S(*size, set);
    for (uint32_t i = 0; set && i < count; i++)
        if (!nodes || nodes[i] == node)
            CPU_SET_S(cpus[i], *size, set);
    return set;
}

void cld_numa_stay(const uint32_t *cpus, const uint16_t *nodes, uint16_t node, uint32_t count) {
    size_t size;
    cpu_set_t *set = new_set(cpus, nodes, node, count, &size);
    if (!set)
        return;
    sched_setaffinity(0, size, set);
    CPU_FREE(set);
}

void cld_cpus_bind(pthread_attr_t *attributes, const uint32_t *cpus, uint32_t count) {
    size_t size;
    cpu_set_t *set = new_set(cpus, NULL, 0, count, &size);
    if (!set)
        return;
    pthread_attr_setaffinity_np(attributes, size, set);
    CPU_FREE(set);
}
