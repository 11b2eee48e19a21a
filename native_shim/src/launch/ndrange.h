/* The shape of a launch: its sizes, checked, and the local size that the driver chooses. */
#ifndef CLD_NDRANGE_H
#define CLD_NDRANGE_H

#include "kernel/kernel.h"

/* Fills all members of launch but the pointers. regroups: cld_ndrange_regroup() follows where it can, so that
 * no groups need to be chosen before. empty: no work-items; then launch is not filled. */
cl_int cld_ndrange_check(const struct cld_queue *queue, const struct cld_kernel_info *info, cl_uint work_dim,
                         const size_t *global_offset, const size_t *global_size, const size_t *local_size,
                         bool regroups, struct cld_launch *launch, bool *empty);

/* The same for a block. */
cl_int cld_ndrange_of_block(const struct cld_queue *queue, const struct cld_kernel_info *info,
                            const struct cld_ndrange *range, bool regroups, struct cld_launch *launch,
                            bool *empty);

/* Work-items that a group of the kernel may have. */
uint64_t cld_ndrange_most_items(const struct cld_device *device, const struct cld_kernel_info *info);

/* Exchanges dimensions 0 and 1; for CLD_KERNEL_EXCHANGED. */
void cld_ndrange_exchange(struct cld_launch *launch);

/* Divides the work-items into other groups, such that suit the entry; for CLD_KERNEL_FREE_GROUPS. */
void cld_ndrange_regroup(const struct cld_queue *queue, const struct cld_kernel_info *info,
                         struct cld_launch *launch);

#ifndef CL_VERSION_3_1 /* headers before 2026, or of the version that object.h asks for */
extern CL_API_ENTRY cl_int CL_API_CALL clGetKernelSuggestedLocalWorkSize(cl_command_queue command_queue,
                                                                         cl_kernel kernel, cl_uint work_dim,
                                                                         const size_t *global_work_offset,
                                                                         const size_t *global_work_size,
                                                                         size_t *suggested_local_work_size);
#endif

#endif
