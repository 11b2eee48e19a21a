/* Children that are invisible to the host.
 *
 * exec makes SIGCHLD a process's exit signal again, whatever clone gave it, so the helper cannot be the
 * host's own child. An intermediate process with exit signal 0 starts it and ends: the helper becomes init's
 * child. wait(-1) overlooks the intermediate, being a "clone child" (only __WCLONE and __WALL see those).
 * Where orphans come back to the host (it is PID 1 or a child subreaper), the intermediate stays, as the
 * helper's parent, until the helper ends.
 *
 * All of them share the host's memory until exec: no copy of page tables, no pthread_atfork handlers. The
 * code that runs in them makes system calls directly, because errno belongs to a thread of the host.
 *
 * qemu's user emulation knows threads and fork and nothing in between. There the intermediate is a fork with
 * SIGCHLD, which the host may notice, and what becomes of exec comes through a pipe. */
#define _GNU_SOURCE
#include "python/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/own_thread.h"
#include "base/system_call.h"
#include "python/guest.h"

#ifdef __SANITIZE_THREAD__
/* ThreadSanitizer's clone takes every clone for a fork, and changes its state in the memory that is shared.
 */
int __clone(int (*function)(void *), void *stack, int flags, void *argument, ...);
#define clone __clone
#endif

enum { STACK_SIZE = 64 << 10, FIRST_FREE = 4 };

struct request {
    char *const *argv;
    char *const *envp;
    int socket, error_output; /* descriptors, both above the range that the child fills; -1: none */
    int report; /* where memory is not shared: a pipe for the error of exec, which success closes; -1 */
    bool stay;
    uint8_t *stack; /* of the intermediate and, above it, of the child */
    _Atomic int error;
    _Atomic bool done; /* the child runs its program, or failed: for an intermediate that stays */
};

/* Closes every descriptor from `first` on. */
BARE static void close_from(int first) {
    if (cld_system_call(SYS_close_range, first, ~0U, 0, 0) >= 0)
        return;
    struct { /* of prlimit64 */
        uint64_t soft, hard;
    } limit = {0, 0};
    cld_system_call(SYS_prlimit64, 0, 7 /* RLIMIT_NOFILE */, 0, (long)&limit);
    long end = limit.soft < 1 << 20 ? (long)limit.soft : 1 << 20;
    for (long descriptor = first; descriptor < end; descriptor++)
        cld_system_call(SYS_close, descriptor, 0, 0, 0);
}

/* Gives the helper what reads nothing and keeps nothing under the standard numbers; where there is no /dev, a
 * file in memory that nobody reads. It is opened here, for the host may have no descriptor left. */
BARE static void open_standard(bool has_errors) {
    static const char path[] = "/dev/null", name[] = "null";
    long null = cld_system_call(SYS_openat, AT_FDCWD, (long)path, O_RDWR, 0);
    if (null < 0)
        null = cld_system_call(SYS_memfd_create, (long)name, 0, 0, 0);
    for (long number = 0; number < (has_errors ? 2 : 3); number++)
        cld_system_call(SYS_dup3, null, number, 0, 0); /* which changes nothing where they are the same */
    if (null >= FIRST_FREE)
        cld_system_call(SYS_close, null, 0, 0, 0);
}

/* In the helper itself: arranges its descriptors and signals, and becomes its program. */
BARE static int child(void *argument) {
    struct request *request = argument;
    struct {
        void *handler;
        unsigned long flags;
        void *restorer;
        uint64_t mask;
    } standard = {NULL, 0, NULL, 0}; /* the kernel's sigaction; SIG_DFL */
    for (int number = 1; number <= 64; number++)
        cld_system_call(SYS_rt_sigaction, number, (long)&standard, 0, 8);
    uint64_t none = 0;
    cld_system_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&none, 0, 8);
    cld_system_call(SYS_setsid, 0, 0, 0, 0);
    if (request->error_output >= 0)
        cld_system_call(SYS_dup3, request->error_output, 2, 0, 0);
    cld_system_call(SYS_dup3, request->socket, 3, 0, 0);
    bool reports = request->report >= 0;
    if (reports)
        cld_system_call(SYS_dup3, request->report, FIRST_FREE, O_CLOEXEC, 0);
    close_from(FIRST_FREE + reports);
    open_standard(request->error_output >= 0);
    int error = (int)-cld_system_call(SYS_execve, (long)request->argv[0], (long)request->argv,
                                      (long)request->envp, 0);
    request->error = error;
    if (reports)
        cld_system_call(SYS_write, FIRST_FREE, (long)&error, sizeof error, 0);
    cld_system_call(SYS_exit, 127, 0, 0, 0);
    return 127;
}

BARE static int intermediate(void *argument) {
    struct request *request = argument;
    if (request->stay)
        cld_system_call(SYS_setsid, 0, 0, 0, 0);
    int pid = clone(child, request->stack + 2 * STACK_SIZE, CLONE_VM | CLONE_VFORK | SIGCHLD, request);
    if (pid < 0) {
        const int again = EAGAIN;
        request->error = again;
        if (request->report >= 0)
            cld_system_call(SYS_write, request->report, (long)&again, sizeof again, 0);
    }
    request->done = true; /* `request` may be gone from here on */
    if (pid > 0 && request->stay) {
        close_from(0);
        long ended;
        do
            ended = cld_system_call(SYS_wait4, pid, 0, __WALL, 0);
        while (ended == -EINTR);
    }
    cld_system_call(SYS_exit, 0, 0, 0, 0);
    return 0;
}

static bool orphans_come_back(void) {
    int subreaper = 0;
    return getpid() == 1 || (!prctl(PR_GET_CHILD_SUBREAPER, &subreaper, 0, 0, 0) && subreaper);
}

/* Intermediates that stay: reaped by later calls, once they have ended. */
static struct staying {
    pid_t pid;
    struct request *request;
} stayed[64];
static pthread_mutex_t stayed_lock = PTHREAD_MUTEX_INITIALIZER;

enum { MAPPING = 3 * STACK_SIZE };

static void reap_stayed(pid_t pid, struct request *request) {
    pthread_mutex_lock(&stayed_lock);
    for (size_t i = 0; i < sizeof stayed / sizeof *stayed; i++) {
        if (stayed[i].pid && waitpid(stayed[i].pid, NULL, __WALL | WNOHANG) != 0) {
            munmap(stayed[i].request, MAPPING);
            stayed[i].pid = 0;
        }
        if (pid && !stayed[i].pid) {
            stayed[i] = (struct staying){pid, request};
            pid = 0;
        }
    }
    pthread_mutex_unlock(&stayed_lock); /* more than 64 at once: some stay unreaped, and mapped */
}

/* The descriptor with a number above those that the child fills: hosts may lack standard descriptors. -1
 * stays. */
static int out_of_the_way(int descriptor) {
    if (descriptor < 0 || descriptor >= FIRST_FREE)
        return descriptor;
    int moved = fcntl(descriptor, F_DUPFD_CLOEXEC, FIRST_FREE);
    close(descriptor);
    return moved;
}

/* The intermediate with memory of its own; waits until the helper runs its program, or cannot. */
static pid_t fork_intermediate(struct request *request) {
    int ends[2], error;
    if (pipe2(ends, O_CLOEXEC))
        return -1;
    int reads = out_of_the_way(ends[0]);
    request->report = out_of_the_way(ends[1]);
    pid_t pid = reads < 0 || request->report < 0
                    ? -1
                    : clone(intermediate, request->stack + STACK_SIZE, SIGCHLD, request);
    if (request->report >= 0)
        close(request->report);
    if (pid > 0) {
        ssize_t size;
        while ((size = read(reads, &error, sizeof error)) < 0 && errno == EINTR)
            ;
        request->error = size == sizeof error ? error : 0;
        request->done = true;
    }
    if (reads >= 0)
        close(reads);
    return pid;
}

/* Starts the processes of a request, which lies at the start of the mapping that holds their stacks. */
static int start(struct request *request) {
    int flags = CLONE_VM | (request->stay ? 0 : CLONE_VFORK); /* exit signal 0 */
    pid_t pid = clone(intermediate, request->stack + STACK_SIZE, flags, request);
    if (pid < 0 && errno == EINVAL)
        pid = fork_intermediate(request);
    if (pid < 0)
        return -errno;
    if (!request->stay)
        while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
            ;
    else
        while (!request->done)
            usleep(100);
    int error = request->error;
    if (request->stay)
        reap_stayed(pid, request);
    else
        munmap(request, MAPPING);
    return -error;
}

/* As cld_spawn, with the child's end of the socket. Returns 0 or -errno. */
static int launch(char *const *argv, char *const *environment, int socket) {
    struct request *request =
        mmap(NULL, MAPPING, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (request == MAP_FAILED)
        return -ENOMEM;
    int error_output = cld_log_level ? fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, FIRST_FREE) : -1;
    *request = (struct request){
        .argv = argv,
        .envp = environment,
        .socket = socket,
        .error_output = error_output,
        .report = -1,
        .stay = orphans_come_back(),
        .stack = (uint8_t *)request + STACK_SIZE,
    };
    sigset_t all, before;
    sigfillset(&all);
    reap_stayed(0, NULL);
    /* The host's signal handlers must not run in a process that shares its memory. */
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int result = start(request);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error_output >= 0)
        close(error_output);
    return result;
}

static int spawn(char *const *argv, char *const *envp, int socket_type) {
    int sockets[2], cancel, result;
    if (socketpair(AF_UNIX, socket_type | SOCK_CLOEXEC, 0, sockets))
        return -errno;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    int ours = out_of_the_way(sockets[0]), theirs = out_of_the_way(sockets[1]);
    char **environment = cld_helper_environment(envp);
    if (ours < 0 || theirs < 0)
        result = -EMFILE;
    else
        result = environment ? launch(argv, environment, theirs) : -ENOMEM;
    free(environment);
    if (theirs >= 0)
        close(theirs);
    if (result && ours >= 0)
        close(ours);
    pthread_setcancelstate(cancel, NULL);
    if (result)
        cld_log(1, "cannot start %s: error %d", argv[0], -result);
    return result ? result : ours;
}

struct spawning {
    char *const *argv, *const *envp;
    int socket_type, result;
};

static void spawn_for(void *pointer) {
    struct spawning *spawning = pointer;
    spawning->result = spawn(spawning->argv, spawning->envp, spawning->socket_type);
}

int cld_spawn(char *const *argv, char *const *envp, int socket_type) {
    struct spawning spawning = {argv, envp, socket_type, 0};
    cld_at_usual_priority(spawn_for, &spawning);
    return spawning.result;
}

bool cld_may_change_root(void) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    return !syscall(SYS_capget, &header, data) && data[0].effective & 1U << CAP_SYS_CHROOT;
}
