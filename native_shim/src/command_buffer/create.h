/* Making command-buffers: what create.c has for other files. */
#ifndef CLD_CREATE_H
#define CLD_CREATE_H

#include "graph/command_buffer.h"

/* CL_INVALID_VALUE, CL_INVALID_COMMAND_QUEUE, CL_INVALID_CONTEXT; context: NULL: that of the first. */
cl_int cld_check_queues(cl_uint num_queues, const cl_command_queue *queues,
                        const struct cld_context *context);

/* An empty one, of checked queues. NULL: no memory. */
struct cld_command_buffer *cld_command_buffer_new(cl_uint queue_count, const cl_command_queue *queues,
                                                  size_t property_count,
                                                  const cl_command_buffer_properties_khr *properties);

/* clFinalizeCommandBufferKHR. CL_INVALID_OPERATION, CL_OUT_OF_HOST_MEMORY. */
cl_int cld_command_buffer_end_recording(struct cld_command_buffer *buffer);

#endif
