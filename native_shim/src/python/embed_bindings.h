/* Between embed.c and the bindings that cffi writes (native_shim/gen/embed.py has the same lines). */
#ifndef CLD_EMBED_BINDINGS_H
#define CLD_EMBED_BINDINGS_H

#include <stddef.h>
#include <stdint.h>

/* Python, once cl_driver/door/embedded.py is registered. 0, or -1: no answer. */
int cld_embed_call(const uint8_t *request, size_t size, void *reply);

/* Appends to the reply: 0, or -1 when out of memory. */
int cld_embed_answer(void *reply, const void *bytes, size_t size);

/* Starts a process (python/spawn.h): its descriptor, or an error number, negated. */
int cld_embed_spawn(char **argv, char **envp, int socket_type);

/* Whether this thread has descriptors of its own (python/descriptors.c). */
int cld_embed_has_own_descriptors(void);

/* Whether this thread may change the process's root folder (python/spawn.h). */
int cld_embed_may_change_root(void);

#endif
