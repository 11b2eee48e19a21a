/* Properties of buffers and images, and memory that comes from elsewhere: cl_khr_external_memory. */
#ifndef CLD_MEM_PROPERTIES_H
#define CLD_MEM_PROPERTIES_H

#include <CL/cl_ext.h>

#include "memory/mem.h"

enum { CLD_MEM_DEVICE_HANDLE_LIST = 0x2051 }; /* has had two names */

/* What they say. */
struct cld_mem_properties {
    size_t words; /* with the final 0; 0 where there are no properties */
    bool has_address;
    bool is_external;
    int descriptor;      /* of external memory */
    size_t first_device; /* where the list of devices is among the words; 0: there is none */
};

/* CL_INVALID_PROPERTY, CL_INVALID_DEVICE. */
cl_int cld_mem_properties_read(const struct cld_context *context, const cl_mem_properties *properties,
                               bool is_buffer, struct cld_mem_properties *read);

/* The memory object gets a copy of them; false: no memory. */
bool cld_mem_properties_keep(struct cld_mem *mem, const cl_mem_properties *properties,
                             const struct cld_mem_properties *read);

/* mem->data becomes the descriptor's memory, from its start; the descriptor is the driver's then. It is still
 * the application's after an error: CL_INVALID_PROPERTY, if it has no memory to write to or less than
 * mem->size, CL_MEM_OBJECT_ALLOCATION_FAILURE. */
cl_int cld_mem_import(struct cld_mem *mem, int descriptor);

/* Lets go of that. */
void cld_mem_unmap(struct cld_mem *mem);

/* Whether external memory may be used by queues of the device. */
bool cld_mem_is_for(const struct cld_mem *mem, const struct cld_device *device);

#endif
