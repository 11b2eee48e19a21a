/* Launches, the threads that execute their groups, and barriers. */
#define _GNU_SOURCE
#include "check/shadow.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Launches by their commands: a command has no room for more. */
enum { BUCKETS = 256 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct cld_kcheck_launch *launches[BUCKETS];

static struct cld_kcheck_launch **bucket_of(const void *command) {
    return &launches[(uintptr_t)command / 1024 % BUCKETS];
}

struct cld_kcheck_launch *cld_kcheck_launch_of(const void *command) {
    pthread_mutex_lock(&lock);
    struct cld_kcheck_launch *launch = *bucket_of(command);
    while (launch && launch->command != command)
        launch = launch->next;
    pthread_mutex_unlock(&lock);
    return launch;
}

static void destroy(struct cld_kcheck_launch *launch) {
    for (uint32_t i = 0; launch->ranges && i < launch->argument_count; i++)
        block_drop(launch->ranges[i].block);
    if (launch->released)
        munmap((void *)launch->released, RELEASED * sizeof *launch->released);
    pthread_mutex_destroy(&launch->lock);
    free(launch->ranges);
    free(launch->kernel);
    free(launch);
}

struct cld_kcheck_launch *cld_kcheck_launch_new(const void *command, const char *kernel,
                                                uint32_t argument_count) {
    struct cld_kcheck_launch *launch = calloc(1, sizeof *launch);
    if (!launch)
        return NULL;
    pthread_mutex_init(&launch->lock, NULL);
    launch->kernel = strdup(kernel);
    launch->argument_count = argument_count;
    launch->ranges = calloc(argument_count + 1, sizeof *launch->ranges);
    if (!launch->kernel || !launch->ranges) {
        destroy(launch);
        return NULL;
    }
    launch->command = command;
    pthread_mutex_lock(&lock);
    launch->next = *bucket_of(command);
    *bucket_of(command) = launch;
    pthread_mutex_unlock(&lock);
    return launch;
}

void cld_kcheck_launch_copy(const void *command, const void *model) {
    const struct cld_kcheck_launch *launch = cld_kcheck_launch_of(model);
    struct cld_kcheck_launch *copy =
        launch ? cld_kcheck_launch_new(command, launch->kernel, launch->argument_count) : NULL;
    for (uint32_t i = 0; copy && i < copy->argument_count; i++) {
        copy->ranges[i] = launch->ranges[i];
        if (copy->ranges[i].block)
            atomic_fetch_add(&copy->ranges[i].block->holds, 1);
    }
}

void cld_kcheck_launch_free(const void *command) {
    pthread_mutex_lock(&lock);
    struct cld_kcheck_launch **link = bucket_of(command), *launch;
    while (*link && (*link)->command != command)
        link = &(*link)->next;
    launch = *link;
    if (launch)
        *link = launch->next;
    pthread_mutex_unlock(&lock);
    if (launch)
        destroy(launch);
}

static void set_range(struct cld_kcheck_launch *launch, uint32_t argument, struct range range) {
    block_drop(launch->ranges[argument].block);
    launch->ranges[argument] = range;
}

void cld_kcheck_launch_global(struct cld_kcheck_launch *launch, uint32_t argument, void *start, size_t size,
                              bool no_reads, bool no_writes, bool is_constant) {
    struct block *block = block_find(start);
    bool is_inside = block && (uint8_t *)start >= block->shadow.start &&
                     (size_t)((uint8_t *)start - block->shadow.start) + size <= block->shadow.size;
    set_range(launch, argument,
              (struct range){.start = start,
                             .size = size,
                             .shadow = is_inside ? &block->shadow : NULL,
                             .block = block,
                             .no_reads = no_reads,
                             .no_writes = no_writes,
                             .is_constant = is_constant,
                             .is_known = true});
}

void cld_kcheck_launch_pointer(struct cld_kcheck_launch *launch, uint32_t argument, void *pointer) {
    struct block *block = pointer ? block_find(pointer) : NULL;
    struct range range = {.is_known = !pointer};
    if (block)
        range = (struct range){.start = block->shadow.start,
                               .size = block->shadow.size,
                               .shadow = &block->shadow,
                               .block = block,
                               .is_known = true};
    set_range(launch, argument, range);
}

void cld_kcheck_launch_local(struct cld_kcheck_launch *launch, uint32_t argument, uint64_t offset,
                             size_t size) {
    if (launch)
        set_range(
            launch, argument,
            (struct range){
                .start = (uint8_t *)(uintptr_t)offset, .size = size, .is_local = true, .is_known = true});
}

void cld_kcheck_launch_begin(struct cld_kcheck_launch *launch, const struct cld_launch *sizes) {
    static _Atomic uint64_t count;
    if (!launch)
        return;
    launch->sizes = *sizes;
    /* A cell that a launch wrote when its age was over already is forgotten before its tag comes again. */
    enum { TAGS_OF_AGE = (1 << TAG_BITS) / 2 - 1 };
    uint64_t number = atomic_fetch_add(&count, 1);
    launch->tag = (number % (2 * TAGS_OF_AGE) + 1) << CELL_TAG_AT;
    launch->age = (uint32_t)(number / TAGS_OF_AGE);
    uint64_t items = sizes->local_size[0] * sizes->local_size[1] * sizes->local_size[2];
    launch->local_bits = items > 1 ? 64 - (uint32_t)__builtin_clzll(items - 1) : 0;
    launch->report_count = 0;
    launch->lost = 0;
    atomic_store(&launch->has_released, false);
    uint64_t groups = sizes->num_groups[0] * sizes->num_groups[1] * sizes->num_groups[2];
    if (launch->released) {
        memset((void *)launch->released, 0, RELEASED * sizeof *launch->released);
    } else if (groups > 1) {
        void *memory = mmap(NULL, RELEASED * sizeof *launch->released, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        launch->released = memory == MAP_FAILED ? NULL : memory;
    }
    launch->has_constants = false;
    for (uint32_t i = 0; i < launch->argument_count; i++) {
        struct range *range = &launch->ranges[i];
        if (range->shadow && shadow_make(range->shadow))
            shadow_forget_older(range->shadow, launch->age);
        launch->has_constants |= range->is_constant;
    }
    for (uint32_t i = 0; launch->has_constants && i < launch->argument_count; i++) {
        struct range *range = &launch->ranges[i];
        range->has_constants = !range->is_local && range_has_constants(launch, range->start, range->size);
    }
}

void cld_kcheck_launch_end(struct cld_kcheck_launch *launch) {
    if (launch)
        report_print_all(launch);
    if (launch && launch->has_run && !launch->sites)
        report_unchecked(launch);
}

struct cld_kcheck_thread *cld_kcheck_enter(struct cld_kcheck_launch *launch, const struct cld_thread *thread,
                                           size_t scratch_size) {
    struct cld_kcheck_thread *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    uint32_t count = launch->argument_count;
    made->launch = launch;
    launch->has_run = true;
    made->globals = launch->sizes.globals;
    made->ranges = malloc((count + 1) * sizeof *made->ranges);
    made->scratch = thread->scratch;
    made->scratch_size = scratch_size;
    made->stack_end = __builtin_frame_address(0);
    made->local = (struct shadow){.start = thread->local_memory, .size = thread->local_memory_size};
    made->nowhere = calloc(2, CLD_CHECK_GAP);
    bool has_memory = made->ranges && made->nowhere;
    if (has_memory && made->local.size) {
        void *written =
            mmap(NULL, made->local.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        made->local.written = written == MAP_FAILED ? NULL : written;
        has_memory = made->local.written && shadow_make(&made->local);
    }
    if (!has_memory) {
        cld_kcheck_leave(made);
        return NULL;
    }
    memcpy(made->ranges, launch->ranges, count * sizeof *made->ranges);
    for (uint32_t i = 0; i < count; i++) {
        struct range *range = &made->ranges[i];
        if (range->is_local) {
            range->start = thread->local_memory + (uintptr_t)range->start;
            range->shadow = &made->local;
        }
    }
    return made;
}

static void end_group(struct cld_kcheck_thread *thread);

void cld_kcheck_leave(struct cld_kcheck_thread *thread) {
    end_group(thread);
    shadow_free(&thread->local);
    block_drop(thread->recent);
    free(thread->ranges);
    free(thread->nowhere);
    free(thread);
}

static void set_base(struct cld_kcheck_thread *thread) {
    const struct cld_kcheck_launch *launch = thread->launch;
    uint64_t group = thread->group_index << launch->local_bits << CELL_ITEM_AT & CELL_ITEM;
    for (int i = 0; i < 2; i++)
        thread->base[i] = launch->tag | group | (thread->epoch[i] << CELL_EPOCH_AT & CELL_EPOCH);
}

void cld_kcheck_group(struct cld_kcheck_thread *thread, const struct cld_kcheck_sites *sites, uint64_t x,
                      uint64_t y, uint64_t z) {
    end_group(thread);
    thread->has_group = true;
    struct cld_kcheck_launch *launch = thread->launch;
    const struct cld_launch *sizes = &launch->sizes;
    const uint64_t group[3] = {x, y, z};
    thread->sites = launch->sites = sites;
    thread->group_index = (z * sizes->num_groups[1] + y) * sizes->num_groups[0] + x;
    thread->group_items = 1;
    for (int i = 0; i < 3; i++) {
        uint64_t rest = sizes->global_size[i] - group[i] * sizes->local_size[i];
        thread->group[i] = group[i];
        thread->group_size[i] = rest < sizes->local_size[i] ? rest : sizes->local_size[i];
        thread->group_items *= thread->group_size[i];
    }
    thread->epoch[0] = thread->epoch[1] = 0;
    thread->has_acquired = false;
    thread->released_here = thread->acquired_item = 0;
    thread->has_fenced = thread->has_diverged = false;
    thread->barrier = NULL;
    thread->copy = (struct copy){0};
    thread->events = 0;
    thread->has_unnamed = false;
    thread->arrived = 0;
    if (thread->local.written)
        memset(thread->local.written, 0, thread->local.size);
    /* What nobody has written is the same each time: what comes of it, such as a race, is found, too. */
    if (thread->local.size)
        memset(thread->local.start, 0, thread->local.size);
    set_base(thread);
}

static void diverges(struct cld_kcheck_thread *thread, const struct cld_kcheck_site *site,
                     const struct cld_kcheck_site *other, uint64_t missing) {
    if (thread->has_diverged)
        return;
    thread->has_diverged = true;
    struct report report = {.finding = DIVERGENCE,
                            .site = site,
                            .other = other,
                            .place = place_of(thread->launch, thread->group_index, thread->item),
                            .missing = missing};
    report_add(thread, &report);
}

void cld_kcheck_barrier(struct cld_kcheck_thread *thread, const struct cld_kcheck_site *site) {
    if (thread->barrier && thread->barrier != site)
        diverges(thread, site, thread->barrier, 0);
    if (!thread->barrier)
        thread->barrier = site;
    thread->arrived++;
}

uint64_t cld_kcheck_copy(struct cld_kcheck_thread *thread, uint8_t *target, uint8_t *source, uint64_t count,
                         uint64_t stride, uint64_t event, const struct cld_kcheck_site *site) {
    struct copy copy = {target, source, count, stride, site, {0, 0}, 0};
    if (!thread->barrier) {
        bool is_unnamed = event & CLD_CHECK_UNNAMED;
        event &= ~CLD_CHECK_UNNAMED;
        bool is_shared = event && event <= thread->events;
        copy.event = is_shared ? event : is_unnamed ? 0 : ++thread->events;
        thread->has_unnamed |= !copy.event;
        copy.count = copy_is_inside(thread, &copy) ? count : 0;
        thread->copy = copy;
        thread->is_copied = copy.count == count;
    } else if (thread->barrier == site && (thread->copy.target != target || thread->copy.source != source ||
                                           (thread->is_copied && thread->copy.count != count))) {
        diverges(thread, site, NULL, 0);
    }
    cld_kcheck_barrier(thread, site);
    return thread->barrier == site ? thread->copy.count : 0;
}

static void tell_wait(struct cld_kcheck_thread *thread, enum finding finding,
                      const struct cld_kcheck_site *site, uint64_t missing) {
    struct report report = {.finding = finding,
                            .site = site,
                            .place = place_of(thread->launch, thread->group_index, thread->item),
                            .missing = missing};
    report_add(thread, &report);
}

uint64_t cld_kcheck_event(struct cld_kcheck_thread *thread) {
    return thread->last_event;
}

/* Copies with an event are over. */
static void end_copies(struct cld_kcheck_thread *thread, uint64_t event) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < thread->pending_count; i++) {
        if (thread->pending[i].event == event)
            copy_end(thread, &thread->pending[i]);
        else
            thread->pending[kept++] = thread->pending[i];
    }
    thread->pending_count = kept;
}

/* Notes which events a work-item waits for. False: others of the group wait for other ones. */
static bool are_same_events(struct cld_kcheck_thread *thread, uint64_t events) {
    if (thread->waiting_item != thread->item + 1)
        thread->item_waits = 0;
    thread->waiting_item = thread->item + 1;
    uint64_t at = thread->item_waits++;
    if (at >= MOST_PENDING)
        return true;
    if (at == thread->waited_count) {
        thread->waited_count++;
        thread->waited[at] = events;
    }
    return thread->waited[at] == events;
}

void cld_kcheck_wait(struct cld_kcheck_thread *thread, const struct cld_kcheck_site *site, uint64_t count,
                     const uint64_t *events) {
    thread->waits++;
    thread->wait = site;
    uint64_t all = 0;
    for (uint64_t i = 0; i < count; i++)
        all = all * 31 + events[i];
    bool is_same = are_same_events(thread, all);
    for (uint64_t i = 0; i < count; i++) {
        bool is_unnamed = !events[i] && thread->has_unnamed;
        if (!is_unnamed && (!events[i] || events[i] > thread->events))
            tell_wait(thread, NO_EVENT, site, 0);
        else if (is_same) /* else not all work-items wait for it */
            end_copies(thread, events[i]);
    }
    if (!is_same && !thread->has_diverged) {
        thread->has_diverged = true;
        tell_wait(thread, DIVERGENCE, site, 0);
    }
}

/* All work-items of a group wait, or none. */
static void end_waits(struct cld_kcheck_thread *thread) {
    uint64_t over = thread->waits % thread->group_items;
    if (over && !thread->has_diverged) {
        thread->has_diverged = true;
        tell_wait(thread, DIVERGENCE, thread->wait, thread->group_items - over);
    }
    thread->waits = thread->waiting_item = thread->waited_count = 0;
}

static void end_group(struct cld_kcheck_thread *thread) {
    if (!thread->has_group)
        return;
    end_waits(thread);
    for (uint32_t i = 0; i < thread->pending_count; i++)
        tell_wait(thread, UNAWAITED, thread->pending[i].site, 0);
    thread->pending_count = 0;
    thread->has_group = false;
}

/* Also when the kernel begins, where nobody has come to a barrier. */
void cld_kcheck_region(struct cld_kcheck_thread *thread) {
    const struct cld_kcheck_site *site = thread->barrier;
    if (!site)
        return;
    if (thread->arrived < thread->group_items)
        diverges(thread, site, NULL, thread->group_items - thread->arrived);
    thread->last_event = thread->copy.event;
    if (thread->copy.count) {
        copy_note(thread, &thread->copy);
        if (thread->pending_count < MOST_PENDING)
            thread->pending[thread->pending_count++] = thread->copy;
    }
    thread->copy = (struct copy){0};
    if (site->flags & (CLD_CHECK_ORDERS_GLOBAL | CLD_CHECK_ORDERS_LOCAL))
        end_waits(thread);
    thread->epoch[0] += site->flags & CLD_CHECK_ORDERS_GLOBAL ? 1 : 0;
    thread->epoch[1] += site->flags & CLD_CHECK_ORDERS_LOCAL ? 1 : 0;
    thread->barrier = NULL;
    thread->arrived = 0;
    thread->has_fenced = false;
    thread->released_here = thread->acquired_item = 0;
    set_base(thread);
}
