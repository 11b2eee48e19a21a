/* The runtime process: the control plane in a process of its own (python -m cl_driver.runtime).
 *
 * One control socket (SOCK_SEQPACKET) carries nothing but descriptors: whoever wants a connection makes a
 * socket pair and sends one end. So a forked child gets connections of its own to the same runtime, and the
 * runtime ends when the last process that holds the control socket has gone. A connection carries one
 * request at a time: u64 size, message; the answer alike.
 *
 * Hosts close descriptors that they do not know, and the numbers come to mean other things: every use checks
 * that a descriptor is still the socket that it was. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/settings.h"
#include "python/guest.h"
#include "python/spawn.h"

struct channel {
    int descriptor; /* 0: none; ours are never 0 to 2 */
    ino_t inode;
};

enum { IDLE_MAX = 16 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct channel control;
static struct channel idle[IDLE_MAX];
static size_t idle_count;

_Atomic uint64_t cld_highest_key, cld_kept_keys;

static bool is_alive(const struct channel *channel) {
    struct stat status;
    return channel->descriptor && !fstat(channel->descriptor, &status) && S_ISSOCK(status.st_mode) &&
           status.st_ino == channel->inode;
}

static void close_channel(struct channel *channel) {
    if (is_alive(channel))
        close(channel->descriptor);
    channel->descriptor = 0;
}

/* A descriptor above the standard ones, as a channel. */
static bool open_channel(int descriptor, struct channel *channel) {
    struct stat status;
    if (descriptor <= 2) {
        int moved = fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
        close(descriptor);
        descriptor = moved;
    }
    if (descriptor < 0)
        return false;
    if (fstat(descriptor, &status)) {
        close(descriptor);
        return false;
    }
    *channel = (struct channel){descriptor, status.st_ino};
    return true;
}

/* Starts the runtime process. -I: nothing of the host's environment or folders; -S: nor of site-packages. */
static bool start(const struct cld_guest_config *config) {
    static const char code[] = "import sys; sys.path[:0] = sys.argv[4:]; "
                               "from cl_driver import trust; trust.hand(sys.argv[2] == 'trusted'); "
                               "from cl_driver import module_archive; module_archive.use(); "
                               "from cl_driver import settings; settings.use_quirk(sys.argv[3]); "
                               "from cl_driver.runtime import main; main(int(sys.argv[1]))";
    char highest[32];
    static char trusted[] = "trusted", untrusted[] = "untrusted";
    char *argv[11 + CLD_GUEST_PATHS] = {config->python,
                                        "-I",
                                        "-S",
                                        "-X",
                                        "utf8",
                                        "-c",
                                        (char *)(uintptr_t)code,
                                        highest,
                                        cld_is_trusted() ? trusted : untrusted,
                                        (char *)(uintptr_t)cld_quirk()->settings};
    size_t at = 10;
    snprintf(highest, sizeof highest, "%llu", (unsigned long long)cld_highest_key);
    for (size_t i = 0; i < config->path_count && at < sizeof argv / sizeof *argv - 1; i++)
        argv[at++] = config->path[i];
    argv[at] = NULL;
    int descriptor = cld_spawn(argv, environ, SOCK_SEQPACKET);
    return descriptor >= 0 && open_channel(descriptor, &control);
}

/* Whether the runtime at the other end of the control socket has ended. It never writes there. */
static bool has_ended(void) {
    char byte;
    return recv(control.descriptor, &byte, 1, MSG_DONTWAIT | MSG_PEEK) >= 0 || errno != EAGAIN;
}

static bool send_descriptor(int descriptor) {
    char byte = 0;
    struct iovec part = {&byte, 1};
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } rights;
    memset(&rights, 0, sizeof rights);
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = rights.space,
                             .msg_controllen = sizeof rights.space};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
    ssize_t sent;
    do
        sent = sendmsg(control.descriptor, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == 1;
}

/* A new connection; the lock is held. */
static bool connect_runtime(const struct cld_guest_config *config, struct channel *channel) {
    if (!is_alive(&control) || has_ended()) {
        if (control.descriptor)
            cld_log(1, "the runtime process has gone: its objects are lost, and it is started again");
        close_channel(&control);
        if (!start(config))
            return false;
    }
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
        return false;
    bool sent = send_descriptor(pair[1]);
    close(pair[1]);
    if (sent)
        return open_channel(pair[0], channel);
    close(pair[0]);
    return false;
}

static bool take(const struct cld_guest_config *config, struct channel *channel) {
    bool good = false;
    pthread_mutex_lock(&lock);
    while (!good && idle_count) {
        char byte;
        *channel = idle[--idle_count];
        /* A connection at whose other end nobody is any more reads as ended. */
        good = is_alive(channel) && recv(channel->descriptor, &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0 &&
               errno == EAGAIN;
        if (!good)
            close_channel(channel);
    }
    if (!good)
        good = connect_runtime(config, channel);
    pthread_mutex_unlock(&lock);
    return good;
}

static void give_back(struct channel *channel) {
    pthread_mutex_lock(&lock);
    if (idle_count < IDLE_MAX)
        idle[idle_count++] = *channel;
    else
        close_channel(channel);
    pthread_mutex_unlock(&lock);
}

static bool send_all(int descriptor, const void *data, size_t size) {
    for (const uint8_t *at = data; size;) {
        ssize_t sent = send(descriptor, at, size, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR)
            return false;
        if (sent > 0) {
            at += sent;
            size -= (size_t)sent;
        }
    }
    return true;
}

static bool receive_all(int descriptor, void *data, size_t size) {
    for (uint8_t *at = data; size;) {
        ssize_t got = recv(descriptor, at, size, 0);
        if (got == 0 || (got < 0 && errno != EINTR))
            return false;
        if (got > 0) {
            at += got;
            size -= (size_t)got;
        }
    }
    return true;
}

bool cld_runtime_exchange(const struct cld_guest_config *config, const struct cld_msg *request,
                          struct cld_msg *answer) {
    struct channel channel;
    uint64_t size = request->size;
    if (!take(config, &channel)) {
        cld_log(1, "no connection to the runtime process: error %d", errno);
        return false;
    }
    bool good = send_all(channel.descriptor, &size, sizeof size) &&
                send_all(channel.descriptor, request->data, request->size) &&
                receive_all(channel.descriptor, &size, sizeof size);
    void *place = good && size <= SIZE_MAX ? cld_msg_grow(answer, (size_t)size) : NULL;
    good = place && receive_all(channel.descriptor, place, (size_t)size);
    if (good) {
        give_back(&channel);
    } else {
        cld_log(1, "the runtime process has ended in mid-call");
        close_channel(&channel);
    }
    return good;
}

void cld_runtime_before_fork(void) {
    pthread_mutex_lock(&lock);
}

/* From now on two processes have handles of the same peers. Neither knows when the other is done with them:
 * they stay. The child leaves the parent's connections alone, which may be in use. */
void cld_runtime_after_fork(bool in_child) {
    cld_kept_keys = cld_highest_key;
    if (in_child) {
        while (idle_count)
            close_channel(&idle[--idle_count]);
        pthread_mutex_init(&lock, NULL);
    } else {
        pthread_mutex_unlock(&lock);
    }
}
