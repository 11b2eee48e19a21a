/* cluster/choice.c: what is decided is what follows from the segments of each worker, one by one. */
#include "../harness.h"
#include "cluster/internal.h"

enum { MOST = 70, MOST_MEMS = 4, MOST_SIZE = 1 << 20, MOST_CUTS = 80, TRIES = 4000 };

static struct cld_worker workers[MOST];
static uint32_t worker_count;

struct cld_worker *__wrap_cld_worker_at(uint32_t number);
uint32_t __wrap_cld_worker_count(void);
struct cld_worker *__wrap_cld_worker_in(const struct cld_worker_set *set);

struct cld_worker *__wrap_cld_worker_at(uint32_t number) {
    return number < worker_count ? &workers[number] : NULL;
}

uint32_t __wrap_cld_worker_count(void) {
    return worker_count;
}

struct cld_worker *__wrap_cld_worker_in(const struct cld_worker_set *set) {
    for (uint32_t i = 0; i < worker_count; i++)
        if (cld_set_has(set, i) && !workers[i].is_gone)
            return &workers[i];
    return NULL;
}

static struct cld_mem mems[MOST_MEMS];
static struct cld_copies copies[MOST_MEMS];
static struct cld_kernel_info info;
static struct cld_launch_message message;
static struct cld_event launch;
static struct cld_parts *parts;
static struct cld_sum sum;

static uint64_t chosen; /* launches that one worker executes */

static void random_workers(void) {
    worker_count = 2 + (uint32_t)chance(MOST - 2);
    for (uint32_t i = 0; i < worker_count; i++) {
        workers[i] = (struct cld_worker){
            .number = i, .is_in_whole = true, .compute_units = 1 + chance(8), .place = (uint32_t)chance(9)};
        if (chance(3))
            workers[i].link.trip = (double)(1 + chance(1000000));
        workers[i].due = chance(2) ? chance(3) : 0;
        workers[i].chosen = chance(chosen + 1);
        if (!chance(3))
            workers[i].link.byte_time = (double)(1 + chance(100)) / 16;
    }
}

static void random_segments(struct cld_mem *mem, struct cld_copies *of) {
    *of = (struct cld_copies){.mem = mem};
    CHECK(cld_segments_begin(of, mem->size, chance(2)));
    for (uint64_t i = chance(MOST_CUTS); i--;) {
        size_t begin = chance(mem->size), end = begin + 1 + chance(mem->size - begin);
        struct cld_segment *segment = cld_segments_in(of, begin, end);
        CHECK(segment);
        segment->is_here = chance(2);
        segment->valid = (struct cld_worker_set){0};
        if (!chance(6))
            cld_set_fill(&segment->valid);
        for (uint64_t k = chance(chance(2) ? 2 : worker_count); k--;)
            cld_set_add(&segment->valid, (uint32_t)chance(worker_count));
    }
}

static struct cld_bytes_range random_range(size_t size) {
    size_t begin = chance(size), end = chance(4) ? begin + chance(size - begin + 1) : begin;
    return chance(3) ? (struct cld_bytes_range){begin, end} : (struct cld_bytes_range){0, size};
}

static void random_launch(void) {
    memset(&launch, 0, sizeof launch);
    launch.type = CL_COMMAND_NDRANGE_KERNEL;
    launch.operation = &cld_cluster_operation;
    launch.mem_count = (uint32_t)chance(MOST_MEMS + 1);
    launch.kernel.info = &info;
    launch.kernel.message = &message;
    message.only_read = chance(16);
    for (int i = 0; i < 3; i++)
        launch.kernel.launch.global_size[i] = 1 + chance(5000);
    for (uint32_t i = 0; i < launch.mem_count; i++) {
        mems[i] = (struct cld_mem){.size = 1 + chance(MOST_SIZE), .copies = &copies[i]};
        atomic_store(&mems[i].obj.tag, CLD_MEM);
        random_segments(&mems[i], &copies[i]);
        launch.mems[i] = &mems[i];
    }
}

static void random_parts(void) {
    uint32_t mem_count = launch.mem_count, count = 2 + (uint32_t)chance(worker_count - 1);
    parts = calloc(1, sizeof *parts + count * sizeof *parts->parts);
    CHECK(parts);
    parts->command = &launch;
    parts->is_cut = parts->could_be_cut = true;
    parts->count = count;
    parts->uses = calloc((size_t)(count + 1) * (mem_count + 1), sizeof *parts->uses);
    CHECK(parts->uses);
    parts->all = parts->uses + (size_t)count * mem_count;
    for (uint32_t p = 0; p <= count; p++)
        for (uint32_t i = 0; i < mem_count; i++) {
            struct cld_part_use *use = &parts->uses[(size_t)p * mem_count + i];
            use->is_known = chance(10);
            use->read = random_range(mems[i].size);
            use->written = random_range(mems[i].size);
        }
    uint32_t skipped = worker_count - count, at = 0;
    for (uint32_t p = 0; p < count; p++) { /* some workers have no part */
        for (; skipped && chance(2); skipped--)
            at++;
        parts->parts[p].worker = &workers[at++];
        parts->parts[p].uses = parts->uses + (size_t)p * mem_count;
        parts->parts[p].groups = (struct cld_group_range){0, 10 * p, 10 * p + 1 + chance(10)};
    }
    parts->sum_count = mem_count && !chance(3);
    parts->sums = &sum;
    if (parts->sum_count)
        sum = (struct cld_sum){parts, &copies[0], random_range(mems[0].size), 0};
}

/* What is expected: each worker and part by itself. */
struct lacking {
    size_t here, elsewhere;
};

static struct lacking lacking_of(const struct cld_part_use *uses, uint32_t number) {
    struct lacking lacking = {0};
    for (uint32_t i = 0; i < launch.mem_count; i++) {
        struct cld_used used;
        if (!cld_find_used_by(&launch, i, &uses[i], &used) || !used.use)
            continue;
        for (const struct cld_segment *at = copies[i].segments; at; at = at->next) {
            size_t begin = at->begin > used.begin ? at->begin : used.begin;
            size_t end = at->end < used.end ? at->end : used.end;
            if (begin < end && !cld_set_has(&at->valid, number))
                *(at->is_here ? &lacking.here : &lacking.elsewhere) += end - begin;
        }
    }
    return lacking;
}

static struct cld_link link_of(const struct cld_worker *worker) {
    struct cld_link link = worker->link;
    for (uint32_t i = 0; i < worker_count; i++) {
        link.trip = link.trip ? link.trip : workers[i].link.trip;
        link.byte_time = link.byte_time ? link.byte_time : workers[i].link.byte_time;
    }
    return link;
}

static double elsewhere_time(struct lacking lacking, struct cld_link link) {
    return lacking.elsewhere ? link.trip / 2 + (double)lacking.elsewhere * link.byte_time : 0;
}

static double sums_time(void) {
    double time = 0, bytes = (double)(sum.range.end - sum.range.begin);
    if (!parts->sum_count)
        return 0;
    for (uint32_t p = 0; p < parts->count; p++)
        time += bytes * link_of(parts->parts[p].worker).byte_time;
    for (const struct cld_segment *at = sum.copies->segments; at; at = at->next) {
        const struct cld_worker *holder = __wrap_cld_worker_in(&at->valid);
        if (at->begin < sum.range.end && at->end > sum.range.begin && !at->is_here && holder)
            time += link_of(holder).trip + bytes * link_of(holder).byte_time;
    }
    return time;
}

static struct cld_way way_in_parts(double time, double share_of_longest, size_t *lacks) {
    struct cld_way way = {.contents = sums_time()};
    double most = 0;
    uint64_t groups = 0;
    for (uint32_t p = 0; p < parts->count; p++)
        groups += parts->parts[p].groups.last - parts->parts[p].groups.first;
    for (uint32_t p = 0; p < parts->count; p++) {
        const struct cld_launch_part *part = &parts->parts[p];
        struct cld_link link = link_of(part->worker);
        struct lacking lacking = lacking_of(part->uses, part->worker->number);
        double share = (double)(part->groups.last - part->groups.first) / (double)groups;
        double taken = time * share / (double)part->worker->compute_units;
        double moved = elsewhere_time(lacking, link);
        lacks[p] = lacking.here + lacking.elsewhere;
        way.contents += (double)lacking.here * link.byte_time;
        way.execution = taken > way.execution ? taken : way.execution;
        most = moved > most ? moved : most;
        way.messages = link.trip > way.messages ? link.trip : way.messages;
    }
    way.contents += most;
    way.messages *= 1.05; /* nothing is known of several messages */
    way.execution = share_of_longest ? time * share_of_longest : way.execution;
    return way;
}

static bool has_less(const struct cld_worker *a, const struct cld_worker *b) {
    return a->due == b->due ? a->chosen < b->chosen : a->due < b->due;
}

static const struct cld_worker *one_worker(double time, struct cld_way *way, size_t *lacks) {
    const struct cld_worker *best = NULL;
    for (uint32_t p = 0; p < parts->count; p++) {
        const struct cld_worker *worker = parts->parts[p].worker;
        struct lacking lacking = lacking_of(parts->all, worker->number);
        size_t size = lacking.here + lacking.elsewhere;
        bool is_freer = best && has_less(worker, best) && !info.uses_printf;
        if (best && (size > *lacks || (size == *lacks && !is_freer)))
            continue;
        struct cld_link link = link_of(worker);
        best = worker;
        *lacks = size;
        *way = (struct cld_way){time / (double)worker->compute_units, link.trip,
                                (double)lacking.here * link.byte_time + elsewhere_time(lacking, link)};
    }
    return best;
}

static void check_way(const struct cld_way *found, const struct cld_way *expected) {
    CHECK(found->execution == expected->execution);
    CHECK(found->messages == expected->messages);
    CHECK(found->contents == expected->contents);
}

static void check_works(const struct cld_works *expected) {
    for (int i = 0; i < CLD_WORK_CLASSES; i++) {
        const struct cld_work *a = &info.works->of[i], *b = &expected->of[i];
        CHECK(a->time == b->time && a->part == b->part && a->contents == b->contents && a->owed == b->owed);
        CHECK_IS(a->was_cut, b->was_cut);
    }
}

/* What workers had to do, and now have: those of parts more, and after these as before. */
static void check_due(const uint64_t *before, double time, bool is_cut) {
    struct cld_event *again = NULL;
    uint64_t groups = 0, more = 0;
    for (uint32_t p = 0; p < parts->count; p++)
        groups += parts->parts[p].groups.last - parts->parts[p].groups.first;
    for (uint32_t p = 0; p < parts->count; p++) {
        const struct cld_launch_part *part = &parts->parts[p];
        double share = (double)(part->groups.last - part->groups.first) / (double)groups;
        double expected = time * (is_cut ? share : 1) / (double)part->worker->compute_units;
        CHECK_IS(part->due,
                 expected < (double)((uint64_t)1 << 40) ? 1 + (uint64_t)expected : (uint64_t)1 << 40);
        CHECK_IS(part->worker->due, before[part->worker->number] + part->due);
        more += part->due > 0;
    }
    CHECK_IS(more, is_cut ? parts->count : 1);
    cld_part_leave(&parts->parts[0]);
    cld_parts_end(parts, &again);
    CHECK(!again);
    for (uint32_t i = 0; i < worker_count; i++)
        CHECK_IS(workers[i].due, before[i]);
}

/* Of a launch that cannot be cut: most of what it uses is there, and of several the one that has least to do.
 */
static void choose_alone(void) {
    struct cld_choice choice;
    const struct cld_worker *best = NULL;
    size_t most = 0;
    parts->count = 1;
    parts->is_cut = parts->could_be_cut = false;
    parts->parts[0].worker = NULL;
    for (uint32_t i = 0; i < worker_count; i++) {
        size_t held = 0;
        for (uint32_t m = 0; m < launch.mem_count; m++)
            for (const struct cld_segment *at = copies[m].segments; at; at = at->next)
                held += cld_set_has(&at->valid, i) ? at->end - at->begin : 0;
        bool is_freer = best && has_less(&workers[i], best) && !info.uses_printf;
        if (best && (held < most || (held == most && !is_freer)))
            continue;
        best = &workers[i];
        most = held;
    }
    CHECK(cld_parts_choose(parts, &choice));
    CHECK(parts->parts[0].worker == best && !choice.is_joined);
    CHECK_IS(best->chosen, ++chosen);
    CHECK(parts->parts[0].due > 0);
    cld_part_leave(&parts->parts[0]);
}

/* The first launches of a kernel are cut, and others wait for each of them; whatever has become of it. */
static void wait_for_trials(void) {
    struct cld_choice choice;
    struct cld_event *again = NULL, others[2] = {launch, launch};
    struct cld_parts more[2] = {{.could_be_cut = true}, {.could_be_cut = true}};
    *info.works = (struct cld_works){0};
    more[0].command = &others[0];
    more[1].command = &others[1];
    for (int trial = 0; trial < 2; trial++) {
        parts->is_chosen = false;
        CHECK(cld_parts_choose(parts, &choice) && parts->is_cut && parts->is_trial);
        for (int i = 0; i < 2; i++)
            CHECK(!cld_parts_choose(&more[i], &choice) && !more[i].is_chosen);
        cld_parts_end(parts, &again);
        CHECK(again == &others[0] && again->next == &others[1] && !again->next->next);
        again = NULL;
    }
    parts->is_chosen = parts->is_trial = false;
    CHECK(cld_parts_choose(parts, &choice) && parts->is_cut && !parts->is_trial);
    cld_parts_end(parts, &again);
    CHECK(!again);
}

/* Whether the launch was cut. */
static bool choose(void) {
    uint64_t items = 1;
    for (int i = 0; i < 3; i++)
        items *= launch.kernel.launch.global_size[i];
    struct cld_works works = *info.works;
    struct cld_work *work = cld_work_of(&works, items);
    double time = 0, part = 0;
    size_t lacks[MOST], least = 0;
    bool is_known = cld_work_expect(&works, items, &time, &part) && link_of(parts->parts[0].worker).trip;
    struct cld_way in_parts = way_in_parts(is_known ? time : 0, is_known ? part : 0, lacks), by_one = {0};
    const struct cld_worker *worker = is_known ? one_worker(time, &by_one, &least) : NULL;
    bool is_cut = !is_known || cld_is_worth_cutting(work, &in_parts, &by_one);
    if (!is_known)
        work->was_cut = true;

    struct cld_choice choice;
    uint64_t due[MOST];
    for (uint32_t i = 0; i < worker_count; i++)
        due[i] = workers[i].due;
    CHECK(cld_parts_choose(parts, &choice));
    check_due(due, time, is_cut);
    CHECK_IS(choice.is_joined, !is_cut);
    CHECK_IS(parts->is_cut, is_cut);
    check_works(&works);
    for (uint32_t p = 0; is_cut && p < parts->count; p++)
        CHECK_IS(parts->parts[p].lacks, lacks[p]);
    if (is_cut)
        return true;
    check_way(&choice.in_parts, &in_parts);
    check_way(&choice.by_one, &by_one);
    CHECK(parts->parts[0].worker == worker);
    CHECK_IS(worker->chosen, ++chosen);
    CHECK_IS(parts->parts[0].lacks, least);
    return false;
}

static void end_launch(void) {
    for (uint32_t i = 0; i < launch.mem_count; i++)
        cld_segments_free(&copies[i]);
    free(parts->uses);
    free(parts);
}

int main(void) {
    unsigned cut = 0;
    info.name = (char *)(uintptr_t)"kernel";
    info.works = calloc(1, sizeof *info.works);
    CHECK(info.works);
    info.works->trials = 2;
    for (int i = 0; i < TRIES; i++) {
        random_workers();
        random_launch();
        random_parts();
        if (!chance(100)) /* nothing is known any more */
            *info.works = (struct cld_works){.trials = 2};
        else if (chance(2))
            cld_work_learn(info.works, 1 + chance(1u << 30), (double)chance(1u << 30),
                           chance(2) ? (double)(1 + chance(100)) / 100 : 0);
        info.uses_printf = !chance(4);
        if (chance(8))
            cut += choose();
        else if (chance(4))
            choose_alone();
        else
            wait_for_trials();
        end_launch();
    }
    free(info.works);
    CHECK(cut > TRIES / 10 && cut < TRIES - TRIES / 10); /* both happen */
    return 0;
}
