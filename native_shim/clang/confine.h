/* The rights and the root folder of another process: for compilers of a process that has changed its own. */
#ifndef CLD_CONFINE_H
#define CLD_CONFINE_H

#include <stdbool.h>
#include <sys/stat.h>

/* Before clang's main(): what the environment asks for (cl_driver/frontend/resident.py). Does not return
 * where that cannot be had. */
void cld_confine_clang(void);

/* Whether it was asked for. */
bool cld_is_confined(void);

/* One of clang's own files, which a clang that is confined does not find by name: a descriptor, or -1. */
int cld_open_own(const char *path);
/* The same as stat(); false: it is none. */
bool cld_stat_own(const char *path, struct stat *status);

#endif
