/* Waits until somebody wants compiler processes, and becomes what starts them: `holder PROGRAM ARGUMENT...`,
 * with a socket as descriptor 3.
 *
 * A host that may change its root folder can start nothing afterwards, so something has to be there before;
 * most of these hosts never do, or have their programs in the cache. So it is small: it keeps some pages, and
 * nothing of the host's folders. It ends when nobody can ask it any more. */
#define _GNU_SOURCE
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SOCKET = 3 };

int main(int count, char **arguments, char **environment) {
    struct pollfd polled = {SOCKET, POLLIN, 0};
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* it may do what the host has given up */
    if (count < 2 || chdir("/"))
        return 127;
    while (poll(&polled, 1, -1) != 1)
        ;
    char byte;
    if (recv(SOCKET, &byte, 1, MSG_PEEK) <= 0)
        return 0;
    execve(arguments[1], arguments + 1, environment);
    return 127;
}
