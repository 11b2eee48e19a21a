#include "cluster/worth.h"

#include "base/mean.h"
#include "cluster/messages.h"

/* Of what is known of contents so much counts once there is more: most tells what took longest, for it has
 * the smallest share of messages in it. And how much longer than expected contents may be said to take. */
#define KEPT 0.75
#define MOST_SURPRISE 4

void cld_link_learn(struct cld_link *link, double elapsed, double bytes) {
    if (bytes <= CLD_MOST_INLINE_BYTES) {
        link->trip = cld_mean(link->trip, elapsed);
        return;
    }
    double time = elapsed - link->trip, most = MOST_SURPRISE * link->byte_time * bytes;
    if (!link->trip || time <= 0)
        return;
    if (link->byte_time && time > most)
        time = most;
    link->time = link->time * KEPT + time;
    link->bytes = link->bytes * KEPT + bytes;
    link->byte_time = link->time / link->bytes;
}

static int class_of(uint64_t items) {
    return items ? 63 - __builtin_clzll(items) : 0;
}

struct cld_work *cld_work_of(struct cld_works *works, uint64_t items) {
    return &works->of[class_of(items)];
}

void cld_work_learn(struct cld_works *works, uint64_t items, double time, double part) {
    struct cld_work *work = cld_work_of(works, items);
    work->time = cld_mean(work->time, time);
    if (part)
        work->part = cld_mean(work->part, part);
}

bool cld_work_expect(const struct cld_works *works, uint64_t items, double *time, double *part) {
    int wanted = class_of(items);
    for (int distance = 0; distance < CLD_WORK_CLASSES; distance++)
        for (int sign = -1; sign <= 1; sign += 2) {
            int other = wanted + sign * distance;
            const struct cld_work *work = &works->of[other & (CLD_WORK_CLASSES - 1)];
            if (other < 0 || other >= CLD_WORK_CLASSES || !work->time)
                continue;
            double ratio = (double)((uint64_t)1 << distance);
            *time = sign < 0 ? work->time * ratio : work->time / ratio;
            *part = work->part;
            return true;
        }
    return false;
}

bool cld_is_worth_cutting(struct cld_work *work, const struct cld_way *cut, const struct cld_way *alone) {
    double in_parts = cld_way_time(cut), by_one = cld_way_time(alone);
    bool is_cut = in_parts < by_one;
    if (is_cut == work->was_cut) {
        if (is_cut)
            work->contents = cut->contents;
        /* Either way as it is once the contents lie as it leaves them; and what moving them costs. */
        double settled = is_cut ? by_one - alone->contents : in_parts - cut->contents + work->contents;
        double change = is_cut ? alone->contents : cut->contents - work->contents;
        double owed = work->owed + (is_cut ? in_parts : by_one) - settled;
        work->owed = owed > 0 ? owed : 0;
        if (work->owed > change && change > 0)
            is_cut = !is_cut;
    }
    if (is_cut != work->was_cut)
        work->owed = 0;
    work->was_cut = is_cut;
    return is_cut;
}
