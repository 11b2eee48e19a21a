/* Between libcl_driver.so and _cl_driver_embed-VERSION.so, which alone knows Python's own API. */
#ifndef CLD_EMBED_H
#define CLD_EMBED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cld_embed_config {
    bool join;         /* the Python of the process, instead of a new one */
    bool trusted;      /* cld_is_trusted() */
    const char *quirk; /* cld_quirk() */
    const char *python, *home;
    size_t stdlib_count, path_count;
    char *const *stdlib;
    char *const *path;
    bool (*answer)(void *reply, const void *bytes, size_t size);
    int (*spawn)(char *const *argv, char *const *envp, int socket_type);
    bool (*has_own_descriptors)(void); /* this thread, which must keep none */
    bool (*may_change_root)(void);
    void (*log)(const char *text);
};

/* The file, by folder and version of Python. */
#define CLD_EMBED_FILE "%s/_cl_driver_embed-%s.so"

/* Its functions, found by name. */
typedef int cld_embed_start_fn(const struct cld_embed_config *config); /* 0, or -1 after logging why */
typedef int cld_embed_serve_fn(const uint8_t *request, size_t size, void *reply); /* 0, or -1: no answer */
typedef int cld_embed_usable_fn(void);       /* Python is initialised and not finalising */
typedef int cld_embed_in_main_fn(void);      /* whether this thread reaches the main interpreter */
typedef void *cld_embed_release_fn(void);    /* lets the GIL go if this thread has it, else NULL */
typedef void cld_embed_take_fn(void *state); /* takes it again; nothing for NULL */
typedef void cld_embed_fork_fn(int step);    /* 0 before, 1 after in the parent, 2 after in the child */

#endif
