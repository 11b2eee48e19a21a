/* Preloaded into clang by cl_driver/frontend/resident.py: a clang that has been loaded forks a child for each
 * program, before its main() or, where it was asked to hold, once it has read everything before the program.
 *
 * A clang that is to hold has a main file of comment, which it maps, and includes (-include) a file without
 * text after OpenCL's header. When it opens that, it forks a child for each program, which puts the
 * program's text at the mapping's end: the program is the main file, as it is everywhere else.
 *
 * A request is one packet: the number of descriptors that come with it but for the first, whether the program
 * is whole (reached.c), the numbers that the child shall have them under, then strings: the working folder,
 * "" for this one's, and the arguments of main(). The first descriptor gets two ints: the child's process
 * number when it is about to run, and its wait status, with a bit more (CLD_CLANG_CUT). It writes the latter
 * itself when all that it made is written, and ends after that: to take a large process apart takes some
 * milliseconds. For one that dies, who forked it does. Requests may come from several processes: a child ends
 * when nobody can read its status any more, unless it is one that holds.
 *
 * Whatever clang opens to read it is a regular file of bounded size: programs may include what they like. Of
 * files that it looked for and that are not there a list is kept, and whether the program asked for the time;
 * clang appends the rule of make with those that are (-MF). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "confine.h"
#include "kernels.h"
#include "reached.h"
#include "shared.h"

#define PUBLIC __attribute__((visibility("default")))

/* Numbers of descriptors in a child. They are low: a process may have few. */
enum {
    SOURCE = CLD_CLANG_SOURCE,
    OUTPUT = CLD_CLANG_OUTPUT,
    MAIN = CLD_CLANG_MAIN,
    HOLD = CLD_CLANG_HOLD,
    LIST = CLD_CLANG_LIST,
    FREE = CLD_CLANG_FREE
};
static const char descriptors[] = CLD_CLANG_PATH;
static const char output_path[] = CLD_CLANG_OUTPUT_PATH, source_path[] = CLD_CLANG_SOURCE_PATH,
                  main_path[] = CLD_CLANG_MAIN_PATH;
static const char last_of_clangs[] = "/opencl-c-base.h"; /* what comes then is the program's */

enum {
    MOST_TEXT = CLD_CLANG_MOST_TEXT + (4 << 10),
    MOST_ARGUMENTS = 4096,
    MOST_DESCRIPTORS = 16,
    MOST_CHILDREN = 256
};

/* Bytes of stack that clang wants; where the limit is lower, a thread has them. */
enum { STACK_SIZE = 8 << 20 };

typedef int main_function(int, char **, char **);
typedef int start_function(main_function *, int, char **, void (*)(void), void (*)(void), void (*)(void),
                           void *);

static struct {
    struct {
        uint32_t count, whole; /* 0, 1, or CLD_CLANG_PERHAPS */
    } head;
    uint32_t numbers[MOST_DESCRIPTORS];
    int status, descriptors[MOST_DESCRIPTORS];
    const char *text;
    size_t size;
} request;

static struct {
    pid_t child;
    int status;
    bool is_watched;
} running[MOST_CHILDREN];
static unsigned running_count;

static main_function *clang_main;
static bool is_child, holds, is_guarded, is_programs, is_cut;
static char list_path[32];
static int list = -1; /* where what is not there is written, until clang writes what is */
static struct {
    char *at;
    size_t size;
} main_text;
static int own_status = -1; /* where this child tells how it is */

/* The next request; false where nobody can make one any more, or it makes no sense. */
static bool receive(int control) {
    static char packet[MOST_TEXT];
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int) * (MOST_DESCRIPTORS + 1))];
    } ancillary;
    struct iovec vector = {packet, sizeof packet - 1};
    struct msghdr message = {
        .msg_iov = &vector, .msg_iovlen = 1, .msg_control = &ancillary, .msg_controllen = sizeof ancillary};
    ssize_t size = recvmsg(control, &message, MSG_CMSG_CLOEXEC);
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (size < (ssize_t)sizeof request.head || message.msg_flags & (MSG_TRUNC | MSG_CTRUNC) || !header)
        return false;
    packet[size] = 0;
    memcpy(&request.head, packet, sizeof request.head);
    size_t numbers = sizeof *request.numbers * request.head.count;
    if (request.head.count > MOST_DESCRIPTORS || sizeof request.head + numbers > (size_t)size ||
        header->cmsg_len != CMSG_LEN(sizeof(int) * (request.head.count + 1)))
        return false;
    memcpy(request.numbers, packet + sizeof request.head, numbers);
    memcpy(&request.status, CMSG_DATA(header), sizeof request.status);
    memcpy(request.descriptors, CMSG_DATA(header) + sizeof request.status, sizeof(int) * request.head.count);
    request.text = packet + sizeof request.head + numbers;
    request.size = (size_t)size - sizeof request.head - numbers;
    return true;
}

/* Tells of the children that have ended. Nobody may be listening. */
static void report(int ended) {
    struct signalfd_siginfo information;
    while (read(ended, &information, sizeof information) > 0)
        ;
    int status;
    for (pid_t child; (child = waitpid(-1, &status, WNOHANG)) > 0;)
        for (unsigned i = 0; i < running_count; i++)
            if (running[i].child == child) {
                if (write(running[i].status, &status, sizeof status) < 0)
                    status = 0;
                close(running[i].status);
                running[i] = running[--running_count];
                break;
            }
}

static void tell(int what) {
    if (write(own_status, &what, sizeof what) < 0)
        own_status = -1;
}

/* Another number for the one of the request's descriptors that has this number, if one has. */
static bool make_room(int number) {
    int *all[MOST_DESCRIPTORS + 1] = {&request.status};
    for (uint32_t i = 0; i < request.head.count; i++)
        all[i + 1] = &request.descriptors[i];
    for (uint32_t i = 0; i <= request.head.count; i++)
        if (*all[i] == number) {
            *all[i] = fcntl(number, F_DUPFD_CLOEXEC, FREE);
            return *all[i] >= 0;
        }
    return true;
}

static void list_to(int number) {
    list = number;
    snprintf(list_path, sizeof list_path, CLD_CLANG_PATH "%d", number);
}

/* Adds a record to the list: its kind, and a path. */
static void note(char kind, const char *path) {
    int saved = errno;
    struct iovec parts[] = {{&kind, 1}, {(void *)path, strlen(path) + 1}};
    if (list >= 0 && writev(list, parts, 2) < 0)
        list = -1;
    errno = saved;
}

bool cld_note_cut(void) {
    is_cut = is_child && own_status >= 0;
    return is_cut;
}

void cld_note_kernels(const char *text) {
    note('K', text);
}

static void note_absence(const char *path) {
    if (is_programs && (errno == ENOENT || errno == ENOTDIR))
        note('A', path);
}

/* The child has what it asked for under the numbers that it asked for, and nothing of the others'. */
static void take_over(int control, int ended) {
    close(control);
    close(ended);
    if (own_status >= 0)
        close(own_status);
    while (running_count)
        close(running[--running_count].status);
    bool has_list = false;
    for (uint32_t i = 0; i < request.head.count; i++) {
        int number = (int)request.numbers[i], received = request.descriptors[i];
        request.descriptors[i] = -1;
        if (!make_room(number))
            _exit(127);
        int flags = received == number ? fcntl(number, F_SETFD, 0) : dup2(received, number);
        if (flags < 0)
            _exit(127);
        if (received != number)
            close(received);
        holds |= number == HOLD;
        has_list |= number == LIST;
    }
    if (has_list && !holds)
        list_to(LIST);
    own_status = request.status;
    if (request.head.whole)
        cld_program_is_whole(request.head.whole == CLD_CLANG_PERHAPS);
    if (request.size && *request.text && chdir(request.text))
        _exit(127);
    is_child = is_guarded = true;
    note('L', "");
    tell(getpid());
}

static bool is_to_hold(void) {
    for (uint32_t i = 0; i < request.head.count; i++)
        if (request.numbers[i] == HOLD)
            return true;
    return false;
}

/* Waits for a request or the end of a child, and ends children whose status nobody can read. */
static bool wait_for_request(int control, int ended) {
    static struct pollfd polled[2 + MOST_CHILDREN];
    polled[0] = (struct pollfd){control, POLLIN, 0};
    polled[1] = (struct pollfd){ended, POLLIN, 0};
    for (unsigned i = 0; i < running_count; i++)
        polled[2 + i] = (struct pollfd){running[i].is_watched ? running[i].status : -1, 0, 0};
    if (poll(polled, 2 + running_count, -1) < 0)
        return false;
    for (unsigned i = 0; i < running_count; i++)
        if (polled[2 + i].revents) {
            running[i].is_watched = false;
            kill(running[i].child, SIGKILL);
        }
    if (polled[1].revents)
        report(ended);
    return polled[0].revents;
}

/* Forks a child for each request, and returns in the children only. */
static void serve(int control) {
    sigset_t child, old;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, &old);
    signal(SIGPIPE, SIG_IGN);
    int ended = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    pid_t server = getpid();
    for (;;) {
        if (!wait_for_request(control, ended))
            continue;
        if (!receive(control))
            _exit(0);
        pid_t pid = running_count < MOST_CHILDREN ? fork() : -1;
        if (!pid) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != server)
                _exit(127);
            take_over(control, ended);
            signal(SIGPIPE, SIG_DFL);
            sigprocmask(SIG_SETMASK, &old, NULL);
            return;
        }
        if (pid > 0) {
            running[running_count].child = pid;
            running[running_count].is_watched = !is_to_hold();
            running[running_count++].status = request.status;
        } else {
            close(request.status);
        }
        for (uint32_t i = 0; i < request.head.count; i++)
            close(request.descriptors[i]);
    }
}

static bool is_file(const char *path, uintmax_t device, uintmax_t inode) {
    struct stat status;
    return !stat(path, &status) && status.st_dev == device && status.st_ino == inode;
}

/* Whether this process runs that file. qemu's user emulation reads the link as the program's, and leaves what
 * it leads to as it is: the emulator. */
static bool is_running(uintmax_t device, uintmax_t inode) {
    static const char self[] = "/proc/self/exe";
    char path[4096];
    if (is_file(self, device, inode))
        return true;
    ssize_t size = readlink(self, path, sizeof path);
    if (size < 0 || size == sizeof path)
        return false;
    path[size] = 0;
    return is_file(path, device, inode);
}

/* Whether this process runs the file that the variable's second and third number are of: the shell of a
 * script is preloaded as well, and what it starts. */
static bool is_meant(const char *meant, int *number) {
    uintmax_t device, inode;
    return meant && sscanf(meant, "%d %ju %ju", number, &device, &inode) == 3 && is_running(device, inode);
}

struct call {
    int count;
    char **words, **environment;
};

/* clang's main(), in a child, to the child's end. */
_Noreturn static void *run_child(void *argument) {
    struct call *call = argument;
    int status = clang_main(call->count, call->words, call->environment);
    fflush(NULL);
    tell((status & 0xFF) << 8 | (is_cut ? CLD_CLANG_CUT : 0));
    _exit(status);
}

static int main_of_child(int count, char **arguments, char **environment) {
    int control;
    if (!is_meant(getenv("CLD_CLANG_SOCKET"), &control)) {
        const char *name = strrchr(program_invocation_name, '/');
        is_guarded = !strncmp(name ? name + 1 : program_invocation_name, "clang", 5);
        const char *number = getenv("CLD_CLANG_LIST");
        if (is_guarded && number) {
            list_to(atoi(number));
            note('L', "");
        }
        if (is_guarded && getenv("CLD_CLANG_WHOLE"))
            cld_program_is_whole(false);
        return clang_main(count, arguments, environment);
    }
    unsetenv("LD_PRELOAD");
    unsetenv("CLD_CLANG_SOCKET");
    cld_confine_clang();
    serve(control);
    static char text[MOST_TEXT], *words[MOST_ARGUMENTS + 1];
    memcpy(text, request.text, request.size); /* the next request will be written over this one */
    count = 0;
    for (char *at = text + strlen(text) + 1; at < text + request.size && count < MOST_ARGUMENTS;
         at += strlen(at) + 1)
        words[count++] = at;
    struct call call = {count, words, environment};
    struct rlimit limit;
    pthread_attr_t attributes;
    pthread_t thread;
    if (!getrlimit(RLIMIT_STACK, &limit) && limit.rlim_cur < STACK_SIZE && !pthread_attr_init(&attributes) &&
        !pthread_attr_setstacksize(&attributes, STACK_SIZE) &&
        !pthread_create(&thread, &attributes, run_child, &call))
        pthread_join(thread, NULL);
    run_child(&call);
}

PUBLIC int __libc_start_main(main_function *main, int count, char **arguments, void (*init)(void),
                             void (*fini)(void), void (*end)(void), void *stack) {
    start_function *start = (start_function *)dlsym(RTLD_NEXT, "__libc_start_main");
    clang_main = main;
    return start(main_of_child, count, arguments, init, fini, end, stack);
}

/* There a clang that holds has its main file. Programs have nothing to do with it, whoever compiles them. */
static bool is_descriptor(const char *path) {
    return !strncmp(path, descriptors, sizeof descriptors - 1);
}

/* Opens a file to be read, unless it is none: a device may have no end, and a pipe nobody who writes. */
static int open_to_read(const char *path, int flags) {
    struct stat status;
    int descriptor = cld_open_own(path);
    if (descriptor < 0)
        descriptor = openat(AT_FDCWD, path, flags | O_NONBLOCK);
    if (descriptor < 0)
        note_absence(path);
    if (descriptor < 0 || fstat(descriptor, &status))
        return descriptor;
    if (S_ISDIR(status.st_mode) || (S_ISREG(status.st_mode) && status.st_size <= CLD_MOST_INCLUDED))
        return descriptor;
    bool is_large = S_ISREG(status.st_mode);
    close(descriptor);
    errno = is_large ? EFBIG : EACCES;
    return -1;
}

/* Puts the program's text at the end of the main file's, in memory; what is opened has none. */
static int take_text(void) {
    struct stat status;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (fstat(SOURCE, &status) || (size_t)status.st_size > main_text.size)
        _exit(127);
    char *start = main_text.at + main_text.size - status.st_size;
    char *first = start - (uintptr_t)start % page;
    if (mprotect(first, (size_t)(main_text.at + main_text.size - first), PROT_READ | PROT_WRITE))
        _exit(127);
    for (off_t done = 0; done < status.st_size;) {
        ssize_t size = pread(SOURCE, start + done, (size_t)(status.st_size - done), done);
        if (size <= 0)
            _exit(127);
        done += size;
    }
    int empty = memfd_create("nothing", MFD_CLOEXEC);
    if (empty < 0)
        _exit(127);
    is_programs = true;
    return empty;
}

/* clang closes its output when all is written; opened by name it would be open twice. */
static int open_one(const char *path, int flags, mode_t mode) {
    if (is_child && !strcmp(path, output_path))
        return OUTPUT;
    if (list >= 0 && (flags & O_ACCMODE) != O_RDONLY && !strcmp(path, list_path)) {
        int number = list;
        list = -1; /* clang closes it, and then the number may be another file's */
        return number;
    }
    if (holds && !strcmp(path, main_path))
        return fcntl(MAIN, F_DUPFD_CLOEXEC, FREE);
    if (holds && !strcmp(path, source_path)) {
        holds = false;
        if (!main_text.at)
            _exit(127); /* it has not mapped its main file */
        serve(HOLD);
        return take_text();
    }
    if (is_guarded && (flags & O_ACCMODE) == O_RDONLY && !(flags & (O_CREAT | O_PATH))) {
        if (is_descriptor(path)) {
            errno = ENOENT;
            return -1;
        }
        int descriptor = open_to_read(path, flags);
        const char *name = strrchr(path, '/');
        is_programs |= descriptor >= 0 && name && !strcmp(name, last_of_clangs);
        return descriptor;
    }
    return openat(AT_FDCWD, path, flags, mode);
}

static mode_t mode_of(int flags, va_list more) {
    return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(more, mode_t) : 0;
}

#define OPEN(name)                                                                                           \
    PUBLIC int name(const char *path, int flags, ...) {                                                      \
        va_list more;                                                                                        \
        va_start(more, flags);                                                                               \
        mode_t mode = mode_of(flags, more);                                                                  \
        va_end(more);                                                                                        \
        return open_one(path, flags, mode);                                                                  \
    }

OPEN(open)
OPEN(open64)

/* What a clang that is confined was given: it finds no /proc, or may not look at its own part of it. */
static bool is_given(const char *path) {
    return cld_is_confined() && is_child && is_descriptor(path);
}

static int status_of(const char *path, struct stat *status) {
    if (cld_stat_own(path, status))
        return 0;
    if (is_given(path))
        return fstat(atoi(strrchr(path, '/') + 1), status);
    return fstatat(AT_FDCWD, path, status, 0);
}

#define STAT(name, type)                                                                                     \
    PUBLIC int name(const char *path, struct type *status) {                                                 \
        int failed = status_of(path, (struct stat *)status);                                                 \
        if (!failed && is_programs && is_descriptor(path)) {                                                 \
            errno = ENOENT;                                                                                  \
            return -1;                                                                                       \
        }                                                                                                    \
        if (failed)                                                                                          \
            note_absence(path);                                                                              \
        return failed;                                                                                       \
    }

STAT(stat, stat)
STAT(stat64, stat64)

/* clang asks whether it may write its output before it opens it. */
PUBLIC int access(const char *path, int mode) {
    return is_given(path) ? 0 : faccessat(AT_FDCWD, path, mode, 0);
}

/* Of the libraries that clang consists of, for the text of __DATE__, __TIME__ and __TIMESTAMP__ alone. */
PUBLIC struct tm *localtime(const time_t *at) {
    struct tm *(*real)(const time_t *) = (struct tm * (*)(const time_t *)) dlsym(RTLD_NEXT, "localtime");
    note('T', "");
    return real ? real(at) : NULL;
}

/* Remembers where the main file is. */
static void note_mapping(void *mapped, size_t size, int descriptor) {
    struct stat mapping, status;
    if (!fstat(descriptor, &mapping) && !fstat(MAIN, &status) && mapping.st_dev == status.st_dev &&
        mapping.st_ino == status.st_ino) {
        main_text.at = mapped;
        main_text.size = size;
    }
}

#define MMAP(name)                                                                                           \
    PUBLIC void *name(void *at, size_t size, int protection, int flags, int descriptor, off_t offset) {      \
        void *mapped = (void *)syscall(SYS_mmap, at, size, protection, flags, descriptor, offset);           \
        if (mapped != MAP_FAILED && holds && descriptor >= 0 && !offset)                                     \
            note_mapping(mapped, size, descriptor);                                                          \
        return mapped;                                                                                       \
    }

MMAP(mmap)
MMAP(mmap64)
