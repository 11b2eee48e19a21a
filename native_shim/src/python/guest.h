/* How the door's requests reach Python: private to door.c, guest.c, runtime_process.c and stack.c. */
#ifndef CLD_GUEST_H
#define CLD_GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "python/door.h"

/* Sends a request and appends the answer. False where no Python can be had, or the one there was is gone;
 * why is logged. */
bool cld_guest_exchange(const struct cld_msg *request, struct cld_msg *answer);

/* cl_driver.conf: what the build recorded, and where; of an installed package, what was found. Once; NULL if
 * there is none. */
enum { CLD_GUEST_PATHS = 16 };
struct cld_guest_config {
    char *directory;    /* of libcl_driver.so */
    char *version;      /* "3.11" */
    char *python;       /* executable */
    char *home;         /* sys.base_prefix */
    char *libpython;    /* "" if that Python has no shared one */
    char *library_path; /* "LD_LIBRARY_PATH=..." of the build, NULL if there was none */
    size_t stdlib_count, path_count;
    char *stdlib[CLD_GUEST_PATHS]; /* folders of the standard library */
    char *path[CLD_GUEST_PATHS];   /* folders of cl_driver and cffi */
};
const struct cld_guest_config *cld_guest_config(void);

/* The environment of a helper process: without the variables that make the dynamic loader take the host's
 * libraries, of which Python and LLVM may need others; a fixed one where the host's is not trusted. The array
 * is malloced, its strings are not; NULL when out of memory. */
char **cld_helper_environment(char *const *environment);

/* The runtime process: started by the first exchange, and again after it died. */
bool cld_runtime_exchange(const struct cld_guest_config *config, const struct cld_msg *request,
                          struct cld_msg *answer);
void cld_runtime_before_fork(void);
void cld_runtime_after_fork(bool in_child);

/* The highest key of a peer that this process knows of, and what is not told to be forgotten any more because
 * a fork left the same peers to two processes. */
extern _Atomic uint64_t cld_highest_key, cld_kept_keys;

/* Runs function(argument) here if this thread has room enough on its stack for Python, else on a thread of
 * its own that has. False if that could not be started. */
bool cld_with_stack(void (*function)(void *argument), void *argument);
bool cld_on_own_thread(void (*function)(void *argument), void *argument);

/* As cld_with_stack; on a thread with descriptors of its own where the host may have used up those that there
 * are. Only for what keeps none that others use. */
bool cld_with_descriptors(void (*function)(void *argument), void *argument);

/* Whether this thread has descriptors of its own, which nobody else sees, and which end with it. */
bool cld_has_own_descriptors(void);

#endif
