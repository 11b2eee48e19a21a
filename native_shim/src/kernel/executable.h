/* The code of built programs, and what is known of their kernels. */
#ifndef CLD_EXECUTABLE_H
#define CLD_EXECUTABLE_H

#include "kernel/kernel.h"

/* Loads the code of a built program, once: program->builds are there afterwards, and stay until the next
 * build. CL_INVALID_PROGRAM_EXECUTABLE if it is not built. */
cl_int cld_program_load(struct cld_program *program);

/* Loads a program, and has a kernel of it compiled, or all for NULL, where the build has left that for later:
 * waits until it is. No error if the program has no such kernel; CL_OUT_OF_RESOURCES if it cannot be
 * compiled. */
cl_int cld_program_load_kernels(struct cld_program *program, const char *name);

/* Where a kernel of that name is in build->infos; -1: there is none. */
int64_t cld_program_build_find(const struct cld_program_build *build, const char *name);

/* Forgets what was loaded; kernels that exist keep their own hold on it. */
void cld_program_unload(struct cld_program *program);

/* Drops a hold. NULL is ignored. */
void cld_kernel_info_drop(struct cld_kernel_info *info);
void cld_executable_drop(struct cld_executable *executable);

#endif
