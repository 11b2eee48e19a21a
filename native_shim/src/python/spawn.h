/* Child processes that the host program never sees. */
#ifndef CLD_SPAWN_H
#define CLD_SPAWN_H

#include <stdbool.h>

/* Starts argv[0] (an absolute path). The child has one end of a UNIX socket of that type (SOCK_STREAM,
 * SOCK_SEQPACKET) as descriptor 3, /dev/null or the like as 0 to 2 (2 stays while CL_DRIVER_LOG asks for a
 * log), nothing else; the environment given without what only concerns the host's libraries
 * (cld_helper_environment); a session of its own, default signal handlers and an empty signal mask. It sends
 * the host no SIGCHLD, and no wait of the host's sees it. It must end when it reads end of file from its
 * socket. Returns our end of the socket, close-on-exec, or -errno. */
int cld_spawn(char *const *argv, char *const *envp, int socket_type);

/* Whether this thread may change the process's root folder. cld_spawn() finds nothing in another one. */
bool cld_may_change_root(void);

#endif
