/* Memory nodes (NUMA). */
#ifndef CLD_NUMA_H
#define CLD_NUMA_H

#include <stdint.h>

#define CLD_NUMA_FOLDER "/sys/devices/system/node"

/* The number of the memory node of each of the CPUs, which are put in the order of their nodes. NULL where
 * they are of one node, where the folder does not tell, and when out of memory: then their order stays. */
uint16_t *cld_numa_nodes(const char *folder, uint32_t *cpus, uint32_t count);

#endif
