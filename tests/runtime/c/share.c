/* base/work_stealing.c: every unit exactly once, with any number of slots and threads, chunks of uneven
 * times, threads that come late or never, and units that are too many to be counted one by one. */
#include "base/work_stealing.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/numa.h"
#include "harness.h"

enum { UNITS = 100003, MOST_THREADS = 8, GRAINS = 5 };

static _Atomic uint8_t runs[UNITS];
static struct cld_work *share;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t grain;

static unsigned join(unsigned preferred) {
    pthread_mutex_lock(&lock);
    unsigned slot = cld_work_join(share, preferred);
    pthread_mutex_unlock(&lock);
    return slot;
}

static void *take_all(void *argument) {
    unsigned index = (unsigned)(uintptr_t)argument, slot = join(index);
    uint64_t first, last, random = index;
    while (cld_work_take(share, slot, &first, &last)) {
        CHECK(first < last && last <= UNITS);
        CHECK(last - first >= grain || last == UNITS);
        for (uint64_t i = first; i < last; i++)
            atomic_fetch_add(&runs[i], 1);
        random = random * 6364136223846793005u + 1442695040888963407u;
        for (volatile unsigned spin = (unsigned)(random >> 48) * (index == 0); spin; spin--)
            ;
        if (random >> 62 == 0)
            sched_yield();
    }
    return NULL;
}

static void each_once(unsigned slots, unsigned threads, uint64_t first) {
    pthread_t started[MOST_THREADS];
    share = cld_work_new(first, UNITS, grain, 3 * grain, slots, NULL);
    CHECK(share);
    for (unsigned i = 0; i < threads; i++)
        CHECK(!pthread_create(&started[i], NULL, take_all, (void *)(uintptr_t)i));
    for (unsigned i = 0; i < threads; i++)
        pthread_join(started[i], NULL);
    for (uint64_t i = 0; i < UNITS; i++)
        CHECK_IS(atomic_exchange(&runs[i], 0), i >= first);
    CHECK(!cld_work_is_open(share, 0));
    free(share);
}

static void slots_are_kept(void) {
    share = cld_work_new(0, UNITS, 1, 1, 3, NULL);
    CHECK_IS(join(2), 2);
    CHECK_IS(join(2), 0);
    CHECK(cld_work_is_open(share, 2));
    CHECK_IS(join(77), 1);
    CHECK(!cld_work_is_open(share, 3));
    uint64_t first, last;
    CHECK(cld_work_take(share, 2, &first, &last));
    CHECK_IS(first, UNITS - UNITS / 3);
    CHECK(cld_work_take(share, 0, &first, &last));
    CHECK_IS(first, 0);
    cld_work_stop(share);
    CHECK(!cld_work_take(share, 0, &first, &last));
    CHECK(!cld_work_is_open(share, 0));
    free(share);
}

/* Chunks of a range grow, from the smallest; all that follows the first one can be stolen, and a thief begins
 * with a small one, too. At the end of a range they are as small as usual. */
static void small_first(void) {
    uint64_t first, last, at = 0;
    share = cld_work_new(0, 2000, 2, 20, 2, NULL);
    CHECK_IS(join(0), 0);
    CHECK_IS(join(1), 1);
    for (uint64_t wanted = 2; wanted <= 64; wanted *= 2) {
        CHECK(cld_work_take(share, 0, &first, &last));
        CHECK_IS(first, at);
        CHECK_IS(last - first, wanted);
        at = last;
    }
    while (at < 1000) {
        CHECK(cld_work_take(share, 0, &first, &last));
        CHECK_IS(first, at);
        CHECK(last - first >= 20 || last == 1000);
        at = last;
    }
    CHECK(cld_work_take(share, 0, &first, &last));
    CHECK_IS(first, 1500);
    CHECK_IS(last - first, 2);
    CHECK(cld_work_take(share, 0, &first, &last));
    CHECK_IS(last - first, 4);
    free(share);
}

/* More units than fit the two counters of a range: chunks are of more than grain. */
static void many(void) {
    uint64_t total = UINT64_MAX - 5, sum = 0, first, last;
    share = cld_work_new(7, total, 1, 1, 3, NULL);
    unsigned slots[3] = {join(0), join(1), join(2)};
    for (unsigned i = 0, done = 0; done < 3; i++) {
        if (cld_work_take(share, slots[i % 3], &first, &last)) {
            CHECK(7 <= first && first < last && last <= total);
            sum += last - first;
        } else {
            done++;
        }
    }
    CHECK_IS(sum, total - 7);
    free(share);
}

/* Who has nothing left takes from its own node as long as there is something. */
static void near_first(void) {
    static const uint16_t nodes[] = {0, 0, 1, 1};
    uint64_t first, last, end[4];
    share = cld_work_new(0, 4000, 1, 1, 4, nodes);
    for (unsigned i = 0; i < 4; i++)
        CHECK_IS(join(i), i);
    for (unsigned i = 0; i < 3; i++) /* the longest range is on the other node */
        CHECK(cld_work_take(share, 1, &first, &end[1]));
    bool left = false;
    while (cld_work_take(share, 0, &first, &last)) {
        CHECK(!left || first >= 2000);
        left |= first >= 2000;
        CHECK(left || last <= 2000);
    }
    CHECK(left);
    free(share);
}

static void put(const char *folder, const char *node, const char *list) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, node);
    CHECK(!mkdir(path, 0700));
    snprintf(path, sizeof path, "%s/%s/cpulist", folder, node);
    FILE *file = fopen(path, "w");
    CHECK(file && fprintf(file, "%s\n", list) > 0 && !fclose(file));
}

/* A machine of which this test is sure not to be: the driver reads other folders than its own. */
static void nodes(void) {
    char folder[] = "/tmp/cld-nodes-XXXXXX", command[64];
    uint32_t cpus[] = {0, 1, 2, 5, 8, 9, 15}, same[] = {2, 3}, strange[] = {1, 99};
    CHECK(mkdtemp(folder));
    put(folder, "node0", "0-1,8-9");
    put(folder, "node1", "");
    put(folder, "node4", "2-7,10,15");
    uint16_t *found = cld_numa_nodes(folder, cpus, 7);
    static const uint32_t order[] = {0, 1, 8, 9, 2, 5, 15};
    CHECK(found && !memcmp(cpus, order, sizeof order));
    for (int i = 0; i < 7; i++)
        CHECK_IS(found[i], i < 4 ? 0 : 4);
    free(found);
    CHECK(!cld_numa_nodes(folder, same, 2));
    CHECK(!cld_numa_nodes(folder, strange, 2));
    CHECK(!cld_numa_nodes("/nowhere", cpus, 7));
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK(!system(command));
}

int main(void) {
    static const uint64_t grains[GRAINS] = {1, 2, 7, 5000, 2 * UNITS};
    for (int i = 0; i < GRAINS; i++) {
        grain = grains[i];
        each_once(1, 1, 0);
        each_once(2, 2, 25000);
        each_once(MOST_THREADS, MOST_THREADS, 0);
        each_once(MOST_THREADS, 3, UNITS - 3);
        each_once(5, 1, 0);
    }
    slots_are_kept();
    small_first();
    many();
    near_first();
    nodes();
    return 0;
}
