/* The trace's file.
 *
 * Several processes write to one file, each whole packets at the file's end. The first one begins it anew:
 * each has a shared lock on it as long as it writes, and who gets an exclusive one is alone. */
#define _GNU_SOURCE
#include "trace/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/own_thread.h"
#include "base/thread.h"
#include "trace/encode.h"
#include "trace/ring.h"

enum {
    FIRST_FREE = 512, /* descriptors below are those that hosts close by number */
    FLUSH_SIZE = 1 << 18,
    PAUSE = 10000000, /* ns: what is lost at most if the process is killed */
    QUIET_TURNS = 20, /* pauses without records until the thread sleeps */
    STACK = 256 << 10,
    NICE = 10,
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* all but what is atomic */
static char *path;
static int file = -1;
static dev_t device;
static ino_t inode;
static bool is_begun, is_broken;
static struct cld_packets packets;
static struct cld_ring *rings;
static pid_t forking; /* the thread that calls fork() */
static _Atomic(struct cld_ring *) new_rings;
static _Atomic uint64_t lost;

enum { NO_THREAD, AWAKE, ASLEEP };
static _Atomic uint32_t state, calls, settled;

static const int FLAGS = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

/* The absolute path, with the number of the process for %p. */
static char *path_of_process(void) {
    const char *mark = strstr(path, "%p");
    char *text = NULL;
    int size = mark ? asprintf(&text, "%.*s%d%s", (int)(mark - path), path, (int)getpid(), mark + 2)
                    : asprintf(&text, "%s", path);
    return size < 0 ? NULL : text;
}

static bool open_file(bool is_first) {
    char *name = path_of_process();
    int low = name ? open(name, FLAGS, 0600) : -1;
    int high = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, FIRST_FREE);
    struct stat status;
    if (low < 0)
        cld_log(1, "the trace %s cannot be written: %s", name ? name : path, strerror(errno));
    file = high < 0 ? low : high;
    if (high >= 0)
        close(low);
    free(name);
    if (file < 0 || fstat(file, &status))
        return false;
    device = status.st_dev;
    inode = status.st_ino;
    if (!S_ISREG(status.st_mode))
        return true;
    if (is_first && !flock(file, LOCK_EX | LOCK_NB) && ftruncate(file, 0))
        return false;
    flock(file, LOCK_SH); /* without one, another process may take the file for an old one */
    return true;
}

/* Hosts close descriptors that they do not know, and open files of their own in their place. */
static bool is_ours(void) {
    struct stat status;
    return file >= 0 && !fstat(file, &status) && status.st_dev == device && status.st_ino == inode;
}

static void write_packets(void) {
    if (packets.failed) { /* the last message may be half of one */
        packets.size = 0;
        packets.failed = false;
        atomic_fetch_add(&lost, 1);
    }
    if (!is_broken && !is_ours())
        is_broken = !open_file(false);
    for (size_t done = 0; done < packets.size && !is_broken;) {
        ssize_t written = write(file, packets.bytes + done, packets.size - done);
        if (written >= 0)
            done += (size_t)written;
        else if (errno != EINTR && !(errno == EAGAIN && done)) {
            cld_log(1, "the trace ends here: %s", strerror(errno));
            is_broken = true;
        }
    }
    packets.size = 0;
}

static const struct cld_record *first_of(struct cld_ring *ring) {
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_acquire);
    while (tail != head) {
        const struct cld_record *record =
            (const struct cld_record *)(const void *)&ring->words[tail % CLD_RING_WORDS];
        if (record->kind != CLD_RECORD_SKIP)
            return record;
        tail += CLD_RING_WORDS - tail % CLD_RING_WORDS;
        atomic_store_explicit(&ring->tail, tail, memory_order_release);
    }
    return NULL;
}

static void drop(struct cld_ring *ring, const struct cld_record *record) {
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed) + record->words;
    atomic_store_explicit(&ring->tail, tail, memory_order_release);
}

static void take_new_rings(void) {
    struct cld_ring *ring = atomic_exchange(&new_rings, NULL);
    while (ring) {
        struct cld_ring *next = ring->next;
        ring->next = rings;
        rings = ring;
        ring = next;
    }
}

static void free_done_rings(void) {
    for (struct cld_ring **at = &rings; *at;) {
        struct cld_ring *ring = *at;
        if (atomic_load_explicit(&ring->is_done, memory_order_acquire) && !first_of(ring)) {
            *at = ring->next;
            free(ring);
        } else {
            at = &ring->next;
        }
    }
}

/* In the order of time, up to now: what comes meanwhile is for the next time. True if there was something.
 * With the lock held. */
static bool drain(void) {
    uint64_t now = cld_now(), count = 0;
    take_new_rings();
    if (!is_begun) {
        is_begun = true;
        is_broken = file < 0 && !open_file(true);
        cld_encode_process(&packets);
    }
    for (;;) {
        struct cld_ring *oldest = NULL;
        const struct cld_record *record = NULL;
        for (struct cld_ring *ring = rings; ring; ring = ring->next) {
            const struct cld_record *first = first_of(ring);
            if (first && first->time <= now && (!record || first->time < record->time)) {
                oldest = ring;
                record = first;
            }
        }
        if (!record)
            break;
        if (!is_broken)
            cld_encode(&packets, oldest, record);
        drop(oldest, record);
        count++;
        if (packets.size >= FLUSH_SIZE)
            write_packets();
    }
    uint64_t missing = atomic_exchange(&lost, 0);
    if (missing && !is_broken)
        cld_encode_lost(&packets, missing);
    write_packets();
    free_done_rings();
    return count > 0;
}

void cld_writer_drain(void) {
    pthread_mutex_lock(&lock);
    drain();
    pthread_mutex_unlock(&lock);
}

static void *write_on(void *nothing) {
    (void)nothing;
    static _Atomic uint32_t never;
    setpriority(PRIO_PROCESS, 0, NICE); /* of this thread */
    for (unsigned quiet = 0;;) {
        uint32_t seen = atomic_load(&calls);
        pthread_mutex_lock(&lock);
        bool had_some = drain();
        pthread_mutex_unlock(&lock);
        quiet = had_some ? 0 : quiet + 1;
        if (quiet == QUIET_TURNS) /* who has not seen this yet is looked after once more */
            atomic_store(&state, ASLEEP);
        if (quiet <= QUIET_TURNS) {
            cld_futex_wait_for(&never, 0, PAUSE);
            continue;
        }
        quiet = 0;
        uint32_t is_asleep = ASLEEP;
        if (atomic_load(&state) != ASLEEP)
            continue;
        if (cld_rest(&calls, seen, &settled) == CLD_IS_LATE &&
            atomic_compare_exchange_strong(&state, &is_asleep, NO_THREAD))
            return NULL;
        atomic_store(&state, AWAKE);
    }
}

void cld_writer_call(void) {
    uint32_t seen = atomic_load_explicit(&state, memory_order_relaxed);
    if (seen == AWAKE || !atomic_compare_exchange_strong(&state, &seen, AWAKE))
        return;
    atomic_fetch_add(&calls, 1);
    if (seen == ASLEEP)
        cld_futex_wake(&calls, 1);
    else if (cld_own_thread(NULL, NULL, STACK, CLD_DRIVER_THREAD, write_on, NULL))
        cld_log(1, "no thread can be made that writes the trace: it is written when buffers are full");
}

void cld_writer_add(struct cld_ring *ring) {
    ring->next = atomic_load(&new_rings);
    while (!atomic_compare_exchange_weak(&new_rings, &ring->next, ring))
        ;
}

void cld_writer_lose(uint64_t count) {
    atomic_fetch_add(&lost, count);
}

static void before_fork(void) {
    pthread_mutex_lock(&lock);
    forking = cld_thread_id();
}

static void after_fork(void) {
    pthread_mutex_unlock(&lock);
}

/* What was not written yet is the parent's. Only the thread that forks goes on. */
static void in_child(void) {
    pthread_mutex_init(&lock, NULL);
    take_new_rings();
    for (struct cld_ring *ring = rings; ring; ring = ring->next) {
        atomic_store(&ring->tail, atomic_load(&ring->head));
        atomic_store(&ring->is_done, ring->thread != forking);
        ring->is_known = false;
        if (ring->thread == forking)
            ring->thread = cld_thread_id();
    }
    packets.size = 0;
    is_begun = false;
    if (strstr(path, "%p") && file >= 0) {
        close(file);
        file = -1;
    }
    atomic_store(&lost, 0);
    atomic_store(&state, NO_THREAD);
    atomic_store(&settled, 0);
}

static bool stir(void) {
    if (atomic_load(&settled)) {
        atomic_fetch_add(&calls, 1);
        cld_futex_wake(&calls, 1);
    }
    return false;
}

/* exit() may have been called by a handler that has interrupted the writing. */
__attribute__((destructor)) static void write_rest(void) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++;
    if (!path || (!rings && !atomic_load(&new_rings)) || pthread_mutex_timedlock(&lock, &until))
        return;
    drain();
    pthread_mutex_unlock(&lock);
}

void cld_writer_open(const char *name) {
    char *folder = *name == '/' ? NULL : getcwd(NULL, 0);
    if (asprintf(&path, "%s%s%s", folder ? folder : "", folder ? "/" : "", name) < 0)
        path = NULL;
    free(folder);
    if (!path)
        return;
    pthread_atfork(before_fork, after_fork, in_child);
    cld_on_hosts_end(stir);
}
