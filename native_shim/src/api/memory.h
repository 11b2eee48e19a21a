/* What buffers and images share: their handles, flags and storage (memory.c). */
#ifndef CLD_MEMORY_H
#define CLD_MEMORY_H

#include "memory/mem.h"

/* Flags of which at most one may be given. */
#define CLD_KERNEL_ACCESS (CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY)
#define CLD_HOST_ACCESS (CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS)
#define CLD_HOST_POINTER (CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR)

/* "CL_INVALID_VALUE if values specified in flags are not valid as defined in the Memory Flags table", "or if
 * CL_MEM_IMMUTABLE_EXT is set in flags and CL_MEM_READ_WRITE, CL_MEM_WRITE_ONLY, or CL_MEM_HOST_WRITE_ONLY is
 * set". */
bool cld_memory_flags_are_valid(cl_mem_flags flags);

/* The flags of what is made from another memory object: its own where given, else the parent's. */
cl_mem_flags cld_memory_inherited_flags(cl_mem_flags flags, cl_mem_flags parent);

/* Whether what never changes has contents: the host's, a handle's (is_external) or those of a parent. */
bool cld_memory_has_contents(cl_mem_flags flags, bool is_external, const struct cld_mem *parent);

/* Whether the flags do not widen what the parent allows. */
bool cld_memory_allowed_by_parent(cl_mem_flags flags, cl_mem_flags parent);

/* Whether an image may have that type and those dimensions, and how many bytes of a buffer it takes, of a
 * supported format. CL_INVALID_IMAGE_DESCRIPTOR. */
cl_int cld_image_check_described(const cl_image_desc *desc);
cl_int cld_image_size_in_buffer(const cl_image_format *format, const cl_image_desc *desc, size_t *size);

/* A handle without storage, of type CL_MEM_OBJECT_BUFFER; NULL: out of memory. */
struct cld_mem *cld_memory_new(struct cld_context *context, cl_mem_flags flags, size_t size);

/* Storage of mem->size bytes; false: out of memory. */
bool cld_memory_allocate(struct cld_mem *mem);

#endif
