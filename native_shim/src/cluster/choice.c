/* Launches on all workers: which of those that can be cut are, and what their execution tells of the next.
 *
 * In parts a launch is executed sooner; but these are more messages, and contents that parts have of one
 * another are moved. All of it is estimated from what was measured (worth.h). The first launches of a
 * kernel are cut: that may cost a few messages too many, while one worker alone might take for ever. Those
 * that come before one has ended wait for it, but not for long. What does not need a worker that is held up
 * is executed by others. */
#include <stdlib.h>

#include "base/log.h"
#include "base/mean.h"
#include "base/settings.h"
#include "cluster/internal.h"
#include "kernel/executable.h"
#include "kernel/kernel.h"
#include "memory/mem.h"

/* Launches of a kernel that are cut for what they tell. */
enum { MOST_TRIALS = 2 };

/* More messages are never for nothing, whatever a busy machine made of the few that were measured: launches
 * of little work would stay cut for ever by that, since it costs contents to put an end to it. */
#define LEAST_RATIO 1.05

/* ns; of so many launches that it can be added up. */
#define MOST_DUE ((uint64_t)1 << 40)

/* Running mean: the time that messages of a launch in parts take, until the last one has come back, divided
 * by that of a message alone; 0: not known. Either time depends on what else machines do. */
static double parts_ratio;

static uint64_t chosen_count; /* launches that one worker executes */

static uint64_t items_of(const struct cld_event *command) {
    const uint64_t *size = command->kernel.launch.global_size;
    return size[0] * size[1] * size[2];
}

/* How many bytes of a memory object are before a segment of it, by where they are. */
struct before {
    size_t begin; /* of the segment */
    struct cld_lacking bytes;
};

/* Of all its segments, and of its end: so many and one. */
static void note_before(const struct cld_copies *copies, struct before *list) {
    struct before at = {0};
    for (const struct cld_segment *segment = copies->segments; segment; segment = segment->next) {
        at.begin = segment->begin;
        *list++ = at;
        *(segment->is_here ? &at.bytes.here : &at.bytes.elsewhere) += segment->end - segment->begin;
    }
    at.begin = copies->mem->size;
    *list = at;
}

/* Those before any place of it. */
static struct cld_lacking bytes_before(const struct before *list, uint32_t count, size_t place) {
    uint32_t first = 0, last = count; /* it begins no later than the place, this one's end does not */
    while (last - first > 1) {
        uint32_t middle = first + (last - first) / 2;
        *(list[middle].begin <= place ? &first : &last) = middle;
    }
    struct cld_lacking bytes = list[first].bytes;
    bool is_here = list[first + 1].bytes.here > bytes.here;
    *(is_here ? &bytes.here : &bytes.elsewhere) += place - list[first].begin;
    return bytes;
}

/* The part of the worker among those that are looked at, or NULL. */
static struct cld_launch_part *part_of(struct cld_parts *parts, const struct cld_worker *worker) {
    struct cld_launch_part *part = worker->place < parts->count ? &parts->parts[worker->place] : NULL;
    return part && part->worker == worker ? part : NULL;
}

/* Takes off what the workers of parts have of a segment that these use. */
static void take_off(struct cld_parts *parts, const struct cld_segment *segment) {
    struct cld_worker *worker;
    for (uint32_t i = cld_set_next(&segment->valid, 0); (worker = cld_worker_at(i));
         i = cld_set_next(&segment->valid, i + 1)) {
        struct cld_launch_part *part = part_of(parts, worker);
        if (!part)
            continue;
        size_t begin = segment->begin > part->used.begin ? segment->begin : part->used.begin;
        size_t end = segment->end < part->used.end ? segment->end : part->used.end;
        if (begin < end)
            *(segment->is_here ? &part->lacking.here : &part->lacking.elsewhere) -= end - begin;
    }
}

/* Of the i-th memory object of the launch. */
static void add_lacking(struct cld_parts *parts, uint32_t i, bool is_alone, struct before *list) {
    const struct cld_copies *copies = NULL;
    for (uint32_t p = 0; p < parts->count; p++) {
        struct cld_launch_part *part = &parts->parts[p];
        struct cld_used used;
        bool is_used =
            cld_find_used_by(parts->command, i, is_alone ? &parts->all[i] : &part->uses[i], &used) &&
            used.use;
        part->used = is_used ? (struct cld_bytes_range){used.begin, used.end} : (struct cld_bytes_range){0};
        copies = is_used ? used.copies : copies;
    }
    if (!copies)
        return;
    note_before(copies, list);
    for (uint32_t p = 0; p < parts->count; p++) {
        struct cld_launch_part *part = &parts->parts[p];
        struct cld_lacking begin = bytes_before(list, copies->segment_count, part->used.begin);
        struct cld_lacking end = bytes_before(list, copies->segment_count, part->used.end);
        part->lacking.here += end.here - begin.here;
        part->lacking.elsewhere += end.elsewhere - begin.elsewhere;
    }
    for (const struct cld_segment *segment = copies->segments; segment; segment = segment->next)
        take_off(parts, segment);
}

/* What the worker of each part lacks of what that uses; is_alone: of what all of them use. All segments are
 * walked once, as there may be as many of them as workers. False: no memory. */
static bool find_lacking(struct cld_parts *parts, bool is_alone) {
    const struct cld_event *command = parts->command;
    uint32_t most = 0;
    for (uint32_t i = 0; i < command->mem_count; i++) {
        struct cld_mem *mem = cld_mem_at(command, i);
        const struct cld_copies *copies = mem ? cld_root_of(mem)->copies : NULL;
        most = copies && copies->segment_count > most ? copies->segment_count : most;
    }
    struct before *list = malloc(((size_t)most + 1) * sizeof *list);
    if (!list)
        return false;
    for (uint32_t p = 0; p < parts->count; p++) {
        parts->parts[p].worker->place = p;
        parts->parts[p].lacking = (struct cld_lacking){0};
    }
    for (uint32_t i = 0; i < command->mem_count; i++)
        add_lacking(parts, i, is_alone, list);
    free(list);
    return true;
}

/* What is not known of a worker is as it is of others: of the first of which it is. */
static struct cld_link known_link(void) {
    struct cld_link link = {0};
    const struct cld_worker *worker;
    for (uint32_t i = 0; !(link.trip && link.byte_time) && (worker = cld_worker_at(i)); i++) {
        link.trip = link.trip ? link.trip : worker->link.trip;
        link.byte_time = link.byte_time ? link.byte_time : worker->link.byte_time;
    }
    return link;
}

static struct cld_link link_of(const struct cld_worker *worker, const struct cld_link *known) {
    return (struct cld_link){.trip = worker->link.trip ? worker->link.trip : known->trip,
                             .byte_time = worker->link.byte_time ? worker->link.byte_time : known->byte_time};
}

/* What another worker has comes with a message of its own, one way. */
static double elsewhere_time(const struct cld_lacking *lacking, const struct cld_link *link) {
    return lacking->elsewhere ? link->trip / 2 + (double)lacking->elsewhere * link->byte_time : 0;
}

/* This machine adds up what each worker has come to. */
static double sums_time(const struct cld_parts *parts, const struct cld_link *known) {
    double time = 0;
    for (uint32_t i = 0; i < parts->sum_count; i++) {
        const struct cld_sum *sum = &parts->sums[i];
        double bytes = (double)(sum->range.end - sum->range.begin);
        const struct cld_segment *segment = sum->copies->segments;
        for (uint32_t p = 0; p < parts->count; p++)
            time += bytes * link_of(parts->parts[p].worker, known).byte_time;
        for (; segment; segment = segment->next) {
            const struct cld_worker *holder = cld_worker_in(&segment->valid);
            bool is_used = segment->begin < sum->range.end && segment->end > sum->range.begin;
            if (is_used && !segment->is_here && holder)
                time += link_of(holder, known).trip + bytes * link_of(holder, known).byte_time;
        }
    }
    return time;
}

/* False: no memory. */
static bool look_at_parts(struct cld_parts *parts, double time, double part, const struct cld_link *known,
                          struct cld_way *way) {
    double most = 0, longest = 0;
    uint64_t groups = 0;
    if (!find_lacking(parts, false))
        return false;
    for (uint32_t i = 0; i < parts->count; i++)
        groups += parts->parts[i].groups.last - parts->parts[i].groups.first;
    *way = (struct cld_way){.contents = sums_time(parts, known)};
    for (uint32_t i = 0; i < parts->count; i++) {
        struct cld_launch_part *one = &parts->parts[i];
        const struct cld_link link = link_of(one->worker, known);
        double moved = elsewhere_time(&one->lacking, &link);
        double share = (double)(one->groups.last - one->groups.first) / (double)groups;
        double taken = time * share / (double)one->worker->compute_units;
        one->lacks = one->lacking.here + one->lacking.elsewhere;
        way->contents += (double)one->lacking.here * link.byte_time; /* one after the other */
        way->execution = taken > way->execution ? taken : way->execution;
        most = moved > most ? moved : most;
        longest = link.trip > longest ? link.trip : longest;
    }
    way->contents += most;
    if (part)
        way->execution = time * part;
    way->messages = longest * (parts_ratio > LEAST_RATIO ? parts_ratio : LEAST_RATIO);
    return true;
}

/* Of two workers that have as much of what a launch uses: whether the first one has less to do, or was chosen
 * longer ago. Whoever is chosen for launches that print is so for all of them: text is in their order then.
 */
static bool is_freer(const struct cld_worker *worker, const struct cld_worker *other,
                     const struct cld_event *command) {
    bool has_less = worker->due < other->due || (worker->due == other->due && worker->chosen < other->chosen);
    return has_less && !command->kernel.info->uses_printf;
}

/* Whether all that the launch uses is here or at one of these workers. */
static bool is_among(const struct cld_event *command, const struct cld_worker_set *workers) {
    for (uint32_t i = 0; i < command->mem_count; i++) {
        struct cld_mem *mem = cld_mem_at(command, i);
        const struct cld_copies *copies = mem ? cld_root_of(mem)->copies : NULL;
        const struct cld_segment *segment = copies ? copies->segments : NULL;
        for (; segment; segment = segment->next)
            if (!segment->is_here && !cld_sets_meet(&segment->valid, workers))
                return false;
    }
    return true;
}

/* Notes which workers had better not execute anything of the launch: those that are held up, if it needs none
 * of them. Whether there are such ones. */
static bool note_avoided(const struct cld_event *command) {
    struct cld_worker_set others = {0};
    struct cld_worker *worker;
    bool avoids = false, has_others = false;
    uint64_t now = cld_now();
    for (uint32_t i = 0; (worker = cld_worker_at(i)); i++) {
        worker->is_avoided = cld_is_in_whole(worker) && cld_is_held_up(worker, now);
        avoids |= worker->is_avoided;
        if (worker->is_avoided || !cld_is_in_whole(worker))
            continue;
        cld_set_add(&others, i);
        has_others = true;
    }
    if (!avoids || (has_others && is_among(command, &others)))
        return avoids;
    for (uint32_t i = 0; (worker = cld_worker_at(i)); i++)
        worker->is_avoided = false;
    return false;
}

/* The worker that lacks least; NULL: no memory. */
static struct cld_worker *look_at_one(struct cld_parts *parts, double time, const struct cld_link *known,
                                      struct cld_way *way, size_t *lacks) {
    const struct cld_event *command = parts->command;
    struct cld_worker *best = NULL;
    if (!find_lacking(parts, true))
        return NULL;
    for (uint32_t i = 0; i < parts->count; i++) {
        struct cld_worker *worker = parts->parts[i].worker;
        const struct cld_lacking *lacking = &parts->parts[i].lacking;
        size_t size = lacking->here + lacking->elsewhere;
        if (worker->is_avoided)
            continue;
        if (best && (size > *lacks || (size == *lacks && !is_freer(worker, best, command))))
            continue;
        const struct cld_link link = link_of(worker, known);
        best = worker;
        *lacks = size;
        *way = (struct cld_way){.execution = time / (double)worker->compute_units,
                                .messages = link.trip,
                                .contents =
                                    (double)lacking->here * link.byte_time + elsewhere_time(lacking, &link)};
    }
    return best;
}

/* One part, of all groups. */
static void join(struct cld_parts *parts, struct cld_worker *worker, size_t lacks) {
    for (uint32_t i = 1; i < parts->count; i++)
        free(parts->parts[i].command);
    parts->count = parts->unsent = parts->left = 1;
    parts->is_cut = false;
    parts->sum_count = 0;
    struct cld_launch_part *one = &parts->parts[0];
    one->message.has_local_size = parts->command->kernel.message->has_local_size;
    one->worker = worker;
    one->uses = parts->all;
    one->lacks = lacks;
}

static bool is_measured(void) {
    return !cld_setting_is(CL_DRIVER_CLUSTER_CUT_SETTING, "always");
}

static struct cld_works *works_of(struct cld_kernel_info *info) {
    if (!info->works)
        info->works = calloc(1, sizeof *info->works);
    return info->works;
}

static void note_held(const struct cld_copies *copies) {
    struct cld_worker *worker;
    for (const struct cld_segment *segment = copies->segments; segment; segment = segment->next)
        for (uint32_t i = cld_set_next(&segment->valid, 0); (worker = cld_worker_at(i));
             i = cld_set_next(&segment->valid, i + 1))
            worker->held += segment->end - segment->begin;
}

/* Of a launch that cannot be cut: the worker that has most of what it uses. */
static struct cld_worker *find_holder(const struct cld_event *command) {
    struct cld_worker *best = NULL, *worker;
    for (uint32_t i = 0; (worker = cld_worker_at(i)); i++)
        worker->held = 0;
    for (uint32_t i = 0; i < command->mem_count; i++) {
        struct cld_mem *mem = cld_mem_at(command, i);
        if (mem && cld_root_of(mem)->copies)
            note_held(cld_root_of(mem)->copies);
    }
    for (uint32_t i = 0; (worker = cld_worker_at(i)); i++)
        if (cld_is_in_whole(worker) && !worker->is_avoided &&
            (!best || worker->held > best->held ||
             (worker->held == best->held && is_freer(worker, best, command))))
            best = worker;
    return best ? best : cld_worker_at(0);
}

/* Whether the launch is to wait for another one of its kernel: many that follow one another at once would all
 * be cut otherwise, before it is known whether that is worth it. They wait for few launches and messages,
 * once for each kernel: one tells how long it is executed, and the next one, before which workers had the
 * program, how long messages take. They do not wait for one that takes long (cld_trials_look). */
static bool waits_for_trial(struct cld_parts *parts, struct cld_works *works) {
    double time, part;
    if (!parts->could_be_cut || !is_measured() ||
        (parts_ratio && cld_work_expect(works, items_of(parts->command), &time, &part)))
        return false;
    if (works->is_tried) {
        parts->command->next = works->waiting;
        works->waiting = parts->command;
        return true;
    }
    if (works->trials < MOST_TRIALS) {
        works->is_tried = true;
        works->trials++;
        cld_trial_begin(parts);
    }
    return false;
}

/* time: ns on one compute unit; 0: it is not known, and the launch is cut, unless it avoids workers. */
static void choose_way(struct cld_parts *parts, struct cld_works *works, double time, double part,
                       bool avoids, struct cld_choice *choice) {
    struct cld_way in_parts, by_one;
    size_t lacks = 0;
    struct cld_work *work = cld_work_of(works, items_of(parts->command));
    const struct cld_link known = known_link();
    bool is_known = time && link_of(parts->parts[0].worker, &known).trip;
    bool is_looked_at = look_at_parts(parts, is_known ? time : 0, is_known ? part : 0, &known, &in_parts);
    struct cld_worker *worker = NULL;
    if (is_looked_at && is_measured() && (is_known || avoids))
        worker = look_at_one(parts, time, &known, &by_one, &lacks);
    if (!worker) {
        work->was_cut = true;
        return;
    }
    if (!avoids && cld_is_worth_cutting(work, &in_parts, &by_one))
        return;
    join(parts, worker, lacks);
    *choice = (struct cld_choice){true, cld_way_time(&by_one) > cld_way_time(&in_parts), in_parts, by_one};
}

/* What nothing is known of counts as little: of many of them each worker gets some all the same. */
static void add_due(struct cld_parts *parts, double time) {
    double groups = 0;
    for (uint32_t i = 0; i < parts->count; i++)
        groups += (double)(parts->parts[i].groups.last - parts->parts[i].groups.first);
    for (uint32_t i = 0; i < parts->count; i++) {
        struct cld_launch_part *part = &parts->parts[i];
        double share = (double)(part->groups.last - part->groups.first) / groups;
        double due = time * (parts->is_cut ? share : 1) / (double)part->worker->compute_units;
        part->due = due < MOST_DUE ? 1 + (uint64_t)due : MOST_DUE;
        part->worker->due += part->due;
    }
}

bool cld_parts_choose(struct cld_parts *parts, struct cld_choice *choice) {
    struct cld_event *command = parts->command;
    double time = 0, part = 0;
    *choice = (struct cld_choice){0};
    if (parts->is_chosen)
        return true;
    for (uint32_t i = 0; parts->could_be_cut && i < parts->count; i++)
        if (parts->parts[i].worker->is_gone) { /* the launch fails */
            parts->is_chosen = true;
            return true;
        }
    struct cld_works *works = works_of(command->kernel.info);
    if (works && waits_for_trial(parts, works))
        return false;
    bool avoids = note_avoided(command);
    parts->is_chosen = true;
    if (works && !cld_work_expect(works, items_of(command), &time, &part))
        time = part = 0;
    if (works && parts->could_be_cut)
        choose_way(parts, works, parts->is_trial ? 0 : time, part, avoids, choice);
    if (!parts->parts[0].worker)
        parts->parts[0].worker = find_holder(command);
    if (!parts->is_cut)
        parts->parts[0].worker->chosen = ++chosen_count;
    add_due(parts, time);
    return true;
}

void cld_part_leave(struct cld_launch_part *part) {
    if (part->due)
        part->worker->due -= part->due;
    part->due = 0;
}

void cld_parts_end(struct cld_parts *parts, struct cld_event **again) {
    for (uint32_t i = 0; i < parts->count; i++)
        cld_part_leave(&parts->parts[i]);
    cld_trial_end(parts, again);
}

void cld_choice_log(const struct cld_event *command, const struct cld_choice *choice) {
    const struct cld_way *parts = &choice->in_parts, *one = &choice->by_one;
    if (choice->is_joined)
        cld_log(2,
                "cluster: one worker executes the launch of %s: %.0f us of execution, %.0f of messages and "
                "%.0f of contents, instead of %.0f, %.0f and %.0f in parts%s",
                command->kernel.info->name, one->execution / 1e3, one->messages / 1e3, one->contents / 1e3,
                parts->execution / 1e3, parts->messages / 1e3, parts->contents / 1e3,
                choice->is_owed ? ", which is sooner for the next ones" : "");
}

void cld_parts_time(struct cld_parts *parts) {
    const struct cld_executable *executable = parts->command->kernel.info->executable;
    parts->is_timed = parts->is_chosen && parts->could_be_cut;
    for (uint32_t i = 0; i < parts->count && parts->is_timed; i++) {
        const struct cld_worker *worker = parts->parts[i].worker;
        bool is_known = executable->known && cld_set_has(&executable->known->workers, worker->number);
        parts->is_timed &= is_known && cld_is_idle(worker);
    }
    parts->sent = cld_now();
}

/* What came back of launches that nothing else was sent with. */
static void learn_links(const struct cld_parts *parts) {
    double least = 0, most = 0;
    const struct cld_launch_part *fastest = NULL;
    size_t lacks = 0;
    for (uint32_t i = 0; i < parts->count; i++) {
        const struct cld_launch_part *part = &parts->parts[i];
        double elapsed = (double)(part->arrived - parts->sent) - (double)part->taken;
        if (elapsed <= 0)
            return;
        if (!fastest || elapsed < least) {
            fastest = part;
            least = elapsed;
        }
        most = elapsed > most ? elapsed : most;
        lacks += part->lacks;
    }
    struct cld_link *link = &fastest->worker->link;
    /* It may have waited for the others' messages, or for contents. */
    if (!link->trip || least < link->trip)
        cld_link_learn(link, least, 0);
    else if (parts->count == 1)
        cld_link_learn(link, least, (double)lacks);
    if (parts->count > 1 && !lacks) {
        /* One after the other; what took longer was held up by the execution of others' parts. */
        double ratio = most / link->trip;
        parts_ratio = cld_mean(parts_ratio, ratio < parts->count ? ratio : parts->count);
    }
}

void cld_parts_learn(const struct cld_parts *parts) {
    struct cld_works *works = parts->command->kernel.info->works;
    double time = 0, longest = 0;
    for (uint32_t i = 0; i < parts->count; i++) {
        const struct cld_launch_part *part = &parts->parts[i];
        if (!part->taken)
            return;
        time += (double)part->taken * (double)part->worker->compute_units;
        longest = (double)part->taken > longest ? (double)part->taken : longest;
    }
    if (works && parts->is_chosen)
        cld_work_learn(works, items_of(parts->command), time, parts->is_cut ? longest / time : 0);
    if (parts->is_timed)
        learn_links(parts);
}
