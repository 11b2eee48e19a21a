/* Commands that signal semaphores and wait for them. */
#define _GNU_SOURCE
#include "runtime/semaphore.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.h"
#include "runtime/worker.h"

enum { LINGER = 100 }; /* ms that the watching thread stays without anything to watch */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* all of these, signals and waits */
static struct cld_semaphore *watched;                    /* with a descriptor and a wait that is executed */
static bool has_watcher;
static int stirrer = -1; /* an eventfd that ends the watcher's poll */

bool cld_semaphore_is_signaled(const struct cld_semaphore *semaphore) {
    if (semaphore->descriptor >= 0) {
        struct pollfd at = {.fd = semaphore->descriptor, .events = POLLIN};
        return poll(&at, 1, 0) == 1 && at.revents & POLLIN;
    }
    pthread_mutex_lock(&lock);
    bool is_signaled = semaphore->signals > 0;
    pthread_mutex_unlock(&lock);
    return is_signaled;
}

int cld_semaphore_new_descriptor(void) {
    return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
}

/* An eventfd that blocks would block a worker; one that is read as a whole would lose signals. */
bool cld_semaphore_is_descriptor(int descriptor) {
    int flags = fcntl(descriptor, F_GETFL);
    if (flags < 0 || !(flags & O_NONBLOCK))
        return false;
    char path[64], name[64] = {0};
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    if (readlink(path, name, sizeof name - 1) < 0 || strcmp(name, "anon_inode:[eventfd]") != 0)
        return false;
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", descriptor);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    int is_counted = -1; /* kernels before 6.6 do not tell */
    char line[128];
    while (fgets(line, sizeof line, file))
        sscanf(line, "eventfd-semaphore: %d", &is_counted);
    fclose(file);
    return is_counted != 0;
}

/* With the lock held, as all that follow. False: there is no signal. */
static bool take(struct cld_semaphore *semaphore) {
    uint64_t count;
    if (semaphore->descriptor >= 0)
        return read(semaphore->descriptor, &count, sizeof count) == (ssize_t)sizeof count;
    if (!semaphore->signals)
        return false;
    semaphore->signals--;
    return true;
}

/* A count that is full stays so: nobody tells more signals than that from one another. */
static void give(struct cld_semaphore *semaphore) {
    const uint64_t one = 1;
    if (semaphore->descriptor >= 0) {
        if (write(semaphore->descriptor, &one, sizeof one) < 0)
            cld_log(1, "a shared semaphore has no room for more signals");
    } else if (semaphore->signals < UINT32_MAX) {
        semaphore->signals++;
    }
}

/* The newest of the semaphore's waits that is executed. */
static const struct cld_semaphore_use *newest_arrived(const struct cld_semaphore *semaphore) {
    const struct cld_semaphore_use *found = NULL;
    for (const struct cld_semaphore_use *at = semaphore->waits; at; at = at->next)
        if (at->command->semaphores.arrived)
            found = at;
    return found;
}

/* Waits that are executed get their signals, and so do older ones, for which theirs are kept. Commands that
 * have all are added to ended. True if some of those that are executed got none. */
static bool hand_out(struct cld_semaphore *semaphore, struct cld_ready *ended) {
    const struct cld_semaphore_use *last = newest_arrived(semaphore);
    while (last) {
        if (!take(semaphore))
            return true;
        struct cld_semaphore_use *use = semaphore->waits;
        if (use == last)
            last = NULL;
        semaphore->waits = use->next;
        use->is_listed = false;
        use->has_signal = true;
        if (!--use->command->semaphores.missing && use->command->semaphores.arrived)
            cld_ready_add(ended, use->command);
    }
    return false;
}

static void leave_list(struct cld_semaphore_use *use) {
    struct cld_semaphore_use **at = &use->semaphore->waits, *before = NULL;
    for (; *at != use; at = &(*at)->next)
        before = *at;
    *at = use->next;
    if (use->semaphore->newest == use)
        use->semaphore->newest = before;
    use->is_listed = false;
}

static void *watch(void *nothing);

/* False if nobody can watch. */
static bool have_watcher(void) {
    const uint64_t one = 1;
    if (stirrer < 0)
        stirrer = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (stirrer < 0)
        return false;
    if (!has_watcher)
        return has_watcher = cld_thread_start(NULL, CLD_DRIVER_THREAD, watch, NULL);
    return write(stirrer, &one, sizeof one) == (ssize_t)sizeof one;
}

/* False if nobody would see a signal. */
static bool start_watching(struct cld_semaphore *semaphore) {
    if (semaphore->is_watched)
        return true;
    if (!have_watcher())
        return false;
    cld_object_hold(semaphore);
    semaphore->is_watched = true;
    semaphore->next_watched = watched;
    watched = semaphore;
    return true;
}

/* Without the lock. */
static void complete(struct cld_ready *ended, const struct cld_queue *queue, struct cld_ready *ready) {
    struct cld_event *command;
    while ((command = cld_ready_take(ended))) {
        bool is_ours = ready && cld_pool_has_both(command->queue, queue);
        cld_event_complete(command, atomic_load(&command->error), is_ours ? ready : NULL);
    }
}

/* What to poll: the stirrer, and what is watched. *count: of all of them; NULL: no memory. */
static struct pollfd *list_watched(nfds_t *count) {
    *count = 1;
    for (const struct cld_semaphore *at = watched; at; at = at->next_watched)
        ++*count;
    struct pollfd *list = calloc(*count, sizeof *list);
    if (!list)
        return NULL;
    list[0] = (struct pollfd){.fd = stirrer, .events = POLLIN};
    nfds_t place = 1;
    for (const struct cld_semaphore *at = watched; at; at = at->next_watched)
        list[place++] = (struct pollfd){.fd = at->descriptor, .events = POLLIN};
    return list;
}

/* Semaphores that need not be watched any more are added to left. */
static void look(struct cld_ready *ended, struct cld_semaphore **left) {
    uint64_t stirred;
    if (read(stirrer, &stirred, sizeof stirred) < 0)
        stirred = 0;
    for (struct cld_semaphore **at = &watched; *at;) {
        struct cld_semaphore *semaphore = *at;
        if (hand_out(semaphore, ended)) {
            at = &semaphore->next_watched;
            continue;
        }
        *at = semaphore->next_watched;
        semaphore->is_watched = false;
        semaphore->next_left = *left;
        *left = semaphore;
    }
}

/* Nobody else takes a semaphore out of the list: its descriptor stays open while it is polled. */
static void *watch(void *nothing) {
    (void)nothing;
    pthread_mutex_lock(&lock);
    for (;;) {
        nfds_t count;
        struct pollfd *list = list_watched(&count);
        bool is_empty = !watched;
        pthread_mutex_unlock(&lock);
        int found = list ? poll(list, count, is_empty ? LINGER : -1) : poll(NULL, 0, 1);
        free(list);
        pthread_mutex_lock(&lock);
        if (is_empty && !watched && !found)
            break;
        struct cld_ready ended = {0};
        struct cld_semaphore *left = NULL;
        look(&ended, &left);
        pthread_mutex_unlock(&lock);
        for (struct cld_semaphore *next; left; left = next) {
            next = left->next_left;
            cld_object_drop(left);
        }
        complete(&ended, NULL, NULL);
        pthread_mutex_lock(&lock);
    }
    has_watcher = false;
    pthread_mutex_unlock(&lock);
    return NULL;
}

static bool spread_wait(struct cld_event *command, struct cld_self *self, struct cld_ready *ready) {
    (void)self;
    struct cld_ready ended = {0};
    const struct cld_queue *queue = command->queue;
    bool is_seen = true;
    pthread_mutex_lock(&lock);
    command->semaphores.arrived = true;
    bool has_all = !command->semaphores.missing; /* others have kept them for it */
    for (uint32_t i = 0; i < command->semaphores.count; i++) {
        struct cld_semaphore *semaphore = command->semaphores.uses[i].semaphore;
        if (hand_out(semaphore, &ended) && semaphore->descriptor >= 0)
            is_seen = start_watching(semaphore) && is_seen;
    }
    /* Out of the lists, nobody else can complete it. */
    bool has_failed = atomic_load(&command->error); /* the context was terminated */
    bool fails = (!is_seen || has_failed) && command->semaphores.missing;
    for (uint32_t i = 0; fails && i < command->semaphores.count; i++)
        if (command->semaphores.uses[i].is_listed)
            leave_list(&command->semaphores.uses[i]);
    pthread_mutex_unlock(&lock); /* it may be complete from here on, and gone */
    if (fails)
        cld_command_fail(command, CL_OUT_OF_RESOURCES);
    if (fails || has_all)
        cld_ready_add(&ended, command);
    complete(&ended, queue, ready);
    return true;
}

static bool spread_signal(struct cld_event *command, struct cld_self *self, struct cld_ready *ready) {
    (void)self;
    struct cld_ready ended = {0};
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < command->semaphores.count; i++) {
        struct cld_semaphore *semaphore = command->semaphores.uses[i].semaphore;
        give(semaphore);
        if (semaphore->descriptor < 0)
            hand_out(semaphore, &ended);
    }
    pthread_mutex_unlock(&lock);
    complete(&ended, command->queue, ready);
    return false;
}

/* Nothing is left to be done. */
static cl_int run_nothing(struct cld_event *command, struct cld_self *self, uint64_t first, uint64_t last) {
    (void)command, (void)self, (void)first, (void)last;
    return CL_SUCCESS;
}

/* A wait that has failed leaves its signals to others. */
static void end(struct cld_event *command, cl_int status) {
    struct cld_ready ended = {0};
    struct cld_semaphore_use *uses = command->semaphores.uses;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; status < 0 && i < command->semaphores.count; i++) {
        if (uses[i].is_listed)
            leave_list(&uses[i]);
        if (uses[i].has_signal)
            give(uses[i].semaphore);
        if (uses[i].semaphore->descriptor < 0)
            hand_out(uses[i].semaphore, &ended);
    }
    pthread_mutex_unlock(&lock);
    for (uint32_t i = 0; i < command->semaphores.count; i++)
        cld_object_drop(uses[i].semaphore);
    free(uses);
    complete(&ended, NULL, NULL);
}

const struct cld_operation cld_semaphore_wait = {.run = run_nothing, .spread = spread_wait, .end = end};
const struct cld_operation cld_semaphore_signal = {.run = run_nothing, .spread = spread_signal, .end = end};

struct ending {
    const struct cld_context *context;
    struct cld_ready ended;
};

/* With the lock held. Waits that are not executed yet will not be. */
static void end_waits(void *object, void *argument) {
    const struct cld_semaphore *semaphore = object;
    struct ending *ending = argument;
    if (semaphore->context != ending->context)
        return;
    for (struct cld_semaphore_use *use = semaphore->waits; use;) {
        struct cld_event *command = use->command;
        if (!command->semaphores.arrived) {
            use = use->next;
            continue;
        }
        for (uint32_t i = 0; i < command->semaphores.count; i++)
            if (command->semaphores.uses[i].is_listed)
                leave_list(&command->semaphores.uses[i]);
        cld_ready_add(&ending->ended, command);
        use = semaphore->waits; /* from the beginning: the next one may have been the same command's */
    }
}

void cld_semaphores_terminate(const struct cld_context *context) {
    const uint64_t one = 1;
    struct ending ending = {context, {0}};
    pthread_mutex_lock(&lock);
    cld_object_each_held(CLD_SEMAPHORE, end_waits, &ending);
    if (has_watcher && write(stirrer, &one, sizeof one) < 0) /* what it need not watch any more */
        cld_log(1, "the thread that watches semaphores cannot be told");
    pthread_mutex_unlock(&lock);
    complete(&ending.ended, NULL, NULL);
}

static bool uses(const struct cld_event *command, const struct cld_semaphore *semaphore) {
    for (uint32_t i = 0; i < command->semaphores.count; i++)
        if (command->semaphores.uses[i].semaphore == semaphore)
            return true;
    return false;
}

static void join_list(struct cld_semaphore_use *use) {
    struct cld_semaphore *semaphore = use->semaphore;
    if (semaphore->waits)
        semaphore->newest->next = use;
    else
        semaphore->waits = use;
    semaphore->newest = use;
    use->is_listed = true;
}

bool cld_semaphores_use(struct cld_event *command, struct cld_semaphore *const *list, uint32_t count) {
    command->semaphores.uses = calloc(count, sizeof *command->semaphores.uses);
    command->semaphores.count = 0;
    command->semaphores.arrived = false;
    if (!command->semaphores.uses)
        return false;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < count; i++) {
        if (uses(command, list[i]))
            continue;
        struct cld_semaphore_use *use = &command->semaphores.uses[command->semaphores.count++];
        use->semaphore = list[i];
        use->command = command;
        cld_object_hold(list[i]);
        if (command->operation == &cld_semaphore_wait)
            join_list(use);
    }
    command->semaphores.missing = command->semaphores.count;
    pthread_mutex_unlock(&lock);
    return true;
}

void cld_semaphores_fork_prepare(void) {
    pthread_mutex_lock(&lock);
}

void cld_semaphores_fork_parent(void) {
    pthread_mutex_unlock(&lock);
}

static void renew(void *object) {
    struct cld_semaphore *semaphore = object;
    semaphore->waits = semaphore->newest = NULL;
    semaphore->is_watched = false;
}

/* The stirrer is the parent's. */
void cld_semaphores_fork_child(void) {
    pthread_mutex_init(&lock, NULL);
    watched = NULL;
    has_watcher = false;
    if (stirrer >= 0)
        close(stirrer);
    stirrer = -1;
    cld_object_each(CLD_SEMAPHORE, renew);
}
