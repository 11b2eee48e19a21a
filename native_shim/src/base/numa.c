/* Memory nodes: which CPU is near which memory, as the kernel's files say. */
#include "base/numa.h"

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
