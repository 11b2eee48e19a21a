/* Memory nodes (NUMA). */
#ifndef CLD_NUMA_H
#define CLD_NUMA_H

#include <pthread.h>
#include <stdint.h>

#define CLD_NUMA_FOLDER "/sys/devices/system/node"

/* The number of the memory node of each of the CPUs, which are put in the order of their nodes. NULL where
 * they are of one node, where the folder does not tell, and when out of memory: then their order stays. */
uint16_t *cld_numa_nodes(const char *folder, uint32_t *cpus, uint32_t count);

/* The calling thread stays on those of the CPUs that are of a node. Where that is not allowed, it may go
 * everywhere. */
void cld_numa_stay(const uint32_t *cpus, const uint16_t *nodes, uint16_t node, uint32_t count);

/* The thread that is made with the attributes is bound to the CPUs. */
void cld_cpus_bind(pthread_attr_t *attributes, const uint32_t *cpus, uint32_t count);

#endif
