/* The check mode (CL_DRIVER_CHECK): what kernels do with memory, work-item by work-item. README.md. */
#ifndef CLD_CHECK_H
#define CLD_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/check_abi.h"
#include "abi/image_abi.h"
#include "abi/kernel_abi.h"

/* Whether kernels are compiled with checks. Set before main(); never changes. */
extern bool cld_kcheck_is_on;

/* Bytes behind an allocation that belong to no other one. */
enum { CLD_CHECK_GAP = 4096 };

/* An allocation that kernels may access begins or ends. made_by: the call, a literal; is_written: all of it
 * has contents. */
void cld_kcheck_allocated(const void *start, size_t size, const char *made_by, bool is_written);
void cld_kcheck_freed(const void *start);

/* Whether an address lies in an allocation that was freed, and is nobody else's since. */
bool cld_kcheck_is_freed(const void *address);

/* Memory has another use, which nobody looks at: what was freed there is forgotten. */
void cld_kcheck_taken(const void *start, size_t size);

/* The host, or a command, has written to memory, or copied it. */
void cld_kcheck_written(const void *start, size_t size);
void cld_kcheck_copied(const void *destination, const void *source, size_t size);

/* A launch: made when it is enqueued, told of its arguments, used by the threads that execute it. */
/* All but the first take NULL, of a command that has none, for lack of memory. */
struct cld_kcheck_launch;
struct cld_kcheck_launch *cld_kcheck_launch_new(const void *command, const char *kernel,
                                                uint32_t argument_count);
struct cld_kcheck_launch *cld_kcheck_launch_of(const void *command);
void cld_kcheck_launch_copy(const void *command, const void *model); /* for a command, of another one's */
/* no_reads, no_writes: the memory object's flags do not let kernels; is_constant: of the argument's pointer.
 */
void cld_kcheck_launch_global(struct cld_kcheck_launch *launch, uint32_t argument, void *start, size_t size,
                              bool no_reads, bool no_writes, bool is_constant);
void cld_kcheck_launch_pointer(struct cld_kcheck_launch *launch, uint32_t argument, void *pointer);
void cld_kcheck_launch_local(struct cld_kcheck_launch *launch, uint32_t argument, uint64_t offset,
                             size_t size);
void cld_kcheck_launch_free(const void *command);

/* Before a launch is executed, and after that: prints what was found. */
void cld_kcheck_launch_begin(struct cld_kcheck_launch *launch, const struct cld_launch *sizes);
void cld_kcheck_launch_end(struct cld_kcheck_launch *launch);

/* Around the groups that a thread executes. scratch_size: of the thread's scratch memory. NULL: no memory, or
 * the launch has no checks. */
struct cld_kcheck_thread *cld_kcheck_enter(struct cld_kcheck_launch *launch, const struct cld_thread *thread,
                                           size_t scratch_size);
void cld_kcheck_leave(struct cld_kcheck_thread *thread);

/* What kernels call: abi/check_abi.h. */
void cld_kcheck_group(struct cld_kcheck_thread *thread, const struct cld_kcheck_sites *sites, uint64_t x,
                      uint64_t y, uint64_t z);
void cld_kcheck_region(struct cld_kcheck_thread *thread);
void cld_kcheck_barrier(struct cld_kcheck_thread *thread, const struct cld_kcheck_site *site);
void cld_kcheck_fence(struct cld_kcheck_thread *thread, const struct cld_kcheck_site *site);
uint8_t *cld_kcheck_access(struct cld_kcheck_thread *thread, uint8_t *address,
                           const struct cld_kcheck_site *site, uint64_t value);
uint8_t *cld_kcheck_range(struct cld_kcheck_thread *thread, uint8_t *address,
                          const struct cld_kcheck_site *site, uint64_t size);
uint8_t *cld_kcheck_outside(struct cld_kcheck_thread *thread, const struct cld_kcheck_site *site,
                            int64_t offset);
void cld_kcheck_unwritten(struct cld_kcheck_thread *thread, const struct cld_kcheck_site *site,
                          int64_t offset, uint64_t size);
void cld_kcheck_index(struct cld_kcheck_thread *thread, const struct cld_kcheck_site *site, int64_t index);
uint64_t cld_kcheck_copy(struct cld_kcheck_thread *thread, uint8_t *target, uint8_t *source, uint64_t count,
                         uint64_t stride, uint64_t event, const struct cld_kcheck_site *site);
uint64_t cld_kcheck_event(struct cld_kcheck_thread *thread);
void cld_kcheck_wait(struct cld_kcheck_thread *thread, const struct cld_kcheck_site *site, uint64_t count,
                     const uint64_t *events);
void cld_kcheck_unknown(struct cld_kcheck_thread *thread, uint8_t *address);
void cld_kcheck_operation(struct cld_kcheck_thread *thread, const struct cld_kcheck_site *site, uint64_t a,
                          uint64_t b);
uint8_t *cld_kcheck_fault(struct cld_kcheck_thread *thread, const struct cld_kcheck_site *site);
void cld_kcheck_image(struct cld_kcheck_thread *thread, const struct cld_kcheck_site *site,
                      const struct cld_image_desc *image, double x, double y, double z, uint64_t more);

#endif
