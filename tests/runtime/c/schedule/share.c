/* schedule/work_stealing.c: every unit exactly once, with any number of slots and threads, chunks of uneven
 * times, threads that come late or never, and units that are too many to be counted one by one. */
#include "schedule/work_stealing.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "../harness.h"
#include "schedule/numa.h"

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
    share = cld_work_new(first, UNITS, grain, 3 * grain, slots, NULL, 0);
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
    share = cld_work_new(0, UNITS, 1, 1, 3, NULL, 0);
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
    share = cld_work_new(0, 2000, 2, 20, 2, NULL, 0);
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
    share = cld_work_new(7, total, 1, 1, 3, NULL, 0);
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

/* Makes a folder like /sys/devices/system, of a machine that this test is sure not to run on. */
static char folder[] = "/tmp/cld-places-XXXXXX";

static void put(const char *name, const char *format, unsigned first, unsigned last) {
    char path[256], text[64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    for (char *slash = path + sizeof folder; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = 0;
        CHECK(!mkdir(path, 0700) || errno == EEXIST);
    }
    snprintf(text, sizeof text, format, first, last);
    FILE *file = fopen(path, "w");
    CHECK(file && fprintf(file, "%s\n", text) >= 0 && !fclose(file));
}

static void put_node(unsigned node, unsigned first, unsigned last) {
    char name[64];
    snprintf(name, sizeof name, "node/node%u/cpulist", node);
    put(name, "%u-%u", first, last);
}

/* A cache of level 3 whose files have that index. */
static void put_cache(unsigned index, unsigned first, unsigned last) {
    for (unsigned cpu = first; cpu <= last; cpu++) {
        char name[64];
        snprintf(name, sizeof name, "cpu/cpu%u/cache/index%u/level", cpu, index);
        put(name, "3", 0, 0);
        snprintf(name, sizeof name, "cpu/cpu%u/cache/index%u/shared_cpu_list", cpu, index);
        put(name, "%u-%u", first, last);
    }
}

static void begin_machine(void) {
    strcpy(folder + sizeof folder - 7, "XXXXXX");
    CHECK(mkdtemp(folder));
}

static void end_machine(void) {
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK(!system(command));
}

enum { LARGE = 192 };

static struct cld_place *places_of(uint32_t *cpus, uint32_t first, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        cpus[i] = first + i;
    return cld_places(folder, cpus, count);
}

/* Chunks come in the order of that nearness, for a thread that takes all there is. */
static void takes_near_ones_first(const struct cld_place *places, unsigned threads, unsigned slots,
                                  unsigned slot) {
    const uint64_t units = 4800;
    struct cld_place own = places[cld_home_of_slot(slot, slots, threads)];
    uint64_t first, last, sum = 0;
    unsigned nearest = 2, seen[3] = {0};
    share = cld_work_new(0, units, 1, 1, slots, places, threads);
    for (unsigned i = 0; i < slots; i++)
        CHECK_IS(join(i), i);
    while (cld_work_take(share, slot, &first, &last)) {
        unsigned of = 0;
        while (!cld_work_is_own(share, of, first))
            of++;
        unsigned nearness = cld_nearness(own, places[cld_home_of_slot(of, slots, threads)]);
        CHECK(nearness <= nearest);
        nearest = nearness;
        seen[nearness]++;
        sum += last - first;
    }
    CHECK_IS(sum, units);
    CHECK(seen[2]);
    free(share);
}

/* Two nodes of 96 CPUs, of which 16 share a cache. */
static void large_machine(void) {
    uint32_t cpus[LARGE], count;
    begin_machine();
    put("cpu/online", "%u-%u", 0, LARGE - 1);
    for (unsigned i = 0; i < 2; i++)
        put_node(i, 96 * i, 96 * i + 95);
    for (unsigned i = 0; i < 12; i++)
        put_cache(3, 16 * i, 16 * i + 15);
    uint32_t *online = cld_online_cpus(folder, 4096, &count);
    CHECK(online && count == LARGE && online[LARGE - 1] == LARGE - 1);
    free(online);
    struct cld_place *places = places_of(cpus, 0, LARGE);
    for (unsigned i = 0; i < LARGE; i++)
        CHECK(places[i].node == i / 96 && places[i].cache == i / 16 * 16 && cpus[i] == i);
    for (unsigned slots = 12; slots <= LARGE; slots *= 2) { /* the same data comes to the same place */
        for (unsigned home = 0; home < LARGE; home++) {
            unsigned slot = cld_slot_of_home(home, slots, LARGE);
            CHECK_IS(cld_nearness(places[cld_home_of_slot(slot, slots, LARGE)], places[home]), 2);
        }
        takes_near_ones_first(places, LARGE, slots, 0);
        takes_near_ones_first(places, LARGE, slots, slots / 3);
        takes_near_ones_first(places, LARGE, slots, slots - 1);
    }
    /* Who finds its slot taken gets one beside it, else of its node. */
    share = cld_work_new(0, LARGE, 1, 1, LARGE, places, LARGE);
    for (unsigned i = 0; i < 16; i++)
        CHECK_IS(join(47) / 16, 2);
    for (unsigned i = 16; i < 96; i++)
        CHECK(join(47) < 96);
    CHECK(join(47) >= 96);
    free(share);
    free(places);
    CHECK(!places_of(cpus, 16, 16)); /* a mask within one place */
    places = places_of(cpus, 90, 12);
    for (unsigned i = 0; i < 12; i++) /* a mask of parts of two */
        CHECK(places[i].node == i / 6 && places[i].cache == (i < 6 ? 90 : 96));
    free(places);
    places = places_of(cpus, 94, 12); /* of which one is small */
    CHECK(places[0].cache == CLD_NO_CACHE && places[1].node == 0 && places[2].cache == 96);
    free(places);
    end_machine();
}

/* Nodes whose CPUs are mixed, without CPUs, with numbers left out; CPUs of none. */
static void odd_nodes(void) {
    uint32_t cpus[] = {0, 1, 2, 5, 8, 9, 15}, same[] = {2, 3}, strange[] = {1, 99};
    static const uint32_t order[] = {0, 1, 8, 9, 2, 5, 15};
    begin_machine();
    put("node/node0/cpulist", "0-1,8-9", 0, 0);
    put("node/node1/cpulist", "", 0, 0);
    put("node/node4/cpulist", "2-7,10,15", 0, 0);
    struct cld_place *places = cld_places(folder, cpus, 7);
    CHECK(places && !memcmp(cpus, order, sizeof order));
    for (int i = 0; i < 7; i++)
        CHECK(places[i].node == (i < 4 ? 0 : 4) && places[i].cache == CLD_NO_CACHE);
    takes_near_ones_first(places, 7, 7, 5);
    free(places);
    CHECK(!cld_places(folder, same, 2));
    CHECK(!cld_places(folder, strange, 2));
    CHECK(!cld_places("/nowhere", cpus, 7));
    end_machine();
}

/* One node: places are its caches, unless there is one, or each has few CPUs. Offline CPUs have no files. */
static void one_node(void) {
    uint32_t cpus[16], count;
    begin_machine();
    put_node(0, 0, 15);
    CHECK(!places_of(cpus, 0, 16)); /* no caches are told of */
    put_cache(3, 0, 15);
    CHECK(!places_of(cpus, 0, 16));
    for (unsigned i = 0; i < 8; i++)
        put_cache(3, 2 * i, 2 * i + 1);
    CHECK(!places_of(cpus, 0, 16));
    for (uint32_t i = 0; i < 16; i++)
        cpus[i] = i % 4;
    CHECK(!cld_places(folder, cpus, 16)); /* more threads than CPUs: caches are as small as they are */
    put_cache(3, 0, 7);
    put_cache(3, 8, 15);
    struct cld_place *places = places_of(cpus, 0, 16);
    for (unsigned i = 0; i < 16; i++)
        CHECK(!places[i].node && places[i].cache == i / 8 * 8);
    takes_near_ones_first(places, 16, 16, 3);
    free(places);
    end_machine();
    begin_machine();
    put("cpu/online", "0-3,8-%u", 11, 0);
    put("node/node0/cpulist", "0-3", 0, 0);
    put("node/node2/cpulist", "8-11", 0, 0);
    put_cache(2, 0, 3); /* without a cache of level 2 */
    put_cache(2, 8, 11);
    uint32_t *online = cld_online_cpus(folder, 16, &count);
    CHECK(online && count == 8 && online[4] == 8);
    places = cld_places(folder, online, count);
    CHECK(places && places[3].cache == 0 && places[4].node == 2 && places[4].cache == 8);
    CHECK_IS(cld_cpu_index(online, count, 9), 5);
    CHECK_IS(cld_cpu_index(online, count, 4), 8);
    free(places);
    free(online);
    CHECK(!cld_online_cpus("/nowhere", 16, &count) && !count);
    end_machine();
}

/* Four nodes, one cache each. */
static void four_nodes(void) {
    uint32_t cpus[32];
    begin_machine();
    for (unsigned i = 0; i < 4; i++) {
        put_node(i, 8 * i, 8 * i + 7);
        put_cache(3, 8 * i, 8 * i + 7);
    }
    struct cld_place *places = places_of(cpus, 0, 32);
    for (unsigned slot = 0; slot < 32; slot += 5)
        takes_near_ones_first(places, 32, 32, slot);
    for (unsigned slot = 0; slot < 6; slot++) /* of a launch that is worth few threads */
        takes_near_ones_first(places, 32, 6, slot);
    free(places);
    end_machine();
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
    large_machine();
    odd_nodes();
    one_node();
    four_nodes();
    return 0;
}
