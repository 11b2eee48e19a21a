/* Counters of the hardware. */
#define _GNU_SOURCE
#include "profile/counters.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/settings.h"
#include "base/thread.h"

const char *const cld_hardware_names[CLD_HARDWARE_COUNTERS] = {"cycles", "instructions", "cache_misses",
                                                               "branch_misses"};

static const uint64_t events[CLD_HARDWARE_COUNTERS] = {PERF_COUNT_HW_CPU_CYCLES, PERF_COUNT_HW_INSTRUCTIONS,
                                                       PERF_COUNT_HW_CACHE_MISSES,
                                                       PERF_COUNT_HW_BRANCH_MISSES};

static bool is_wanted;
static _Atomic int error; /* of the first thread that got none */

/* Of a thread: a group with the first one as its leader. NOT_OPEN is 0, as thread-locals begin. */
enum { NOT_OPEN, OPEN, REFUSED };
static _Thread_local struct {
    int state;
    int leader, others[CLD_HARDWARE_COUNTERS - 1];
} counters;

static int open_one(int number, int leader) {
    struct perf_event_attr attributes = {
        .type = PERF_TYPE_HARDWARE,
        .size = sizeof attributes,
        .config = events[number],
        .read_format = PERF_FORMAT_GROUP,
        .exclude_kernel = 1,
        .exclude_hv = 1,
    };
    return (int)syscall(SYS_perf_event_open, &attributes, 0, -1, leader, PERF_FLAG_FD_CLOEXEC);
}

static void close_all(int opened) {
    for (int i = opened - 2; i >= 0; i--)
        close(counters.others[i]);
    if (opened)
        close(counters.leader);
}

static void open_all(void) {
    int saved = errno;
    counters.state = OPEN;
    for (int i = 0; i < CLD_HARDWARE_COUNTERS; i++) {
        int descriptor = open_one(i, i ? counters.leader : -1);
        if (descriptor < 0) {
            int none = 0;
            atomic_compare_exchange_strong(&error, &none, errno);
            close_all(i);
            counters.state = REFUSED;
            break;
        }
        *(i ? &counters.others[i - 1] : &counters.leader) = descriptor;
    }
    errno = saved;
}

void cld_hardware_read(struct cld_hardware *hardware) {
    hardware->is_valid = false;
    if (!is_wanted)
        return;
    if (counters.state == NOT_OPEN)
        open_all();
    if (counters.state != OPEN)
        return;
    int saved = errno;
    struct {
        uint64_t count, values[CLD_HARDWARE_COUNTERS];
    } group;
    hardware->is_valid = read(counters.leader, &group, sizeof group) == (ssize_t)sizeof group;
    if (hardware->is_valid)
        memcpy(hardware->values, group.values, sizeof group.values);
    errno = saved;
}

static void thread_ends(struct cld_self *self) {
    (void)self;
    if (counters.state == OPEN)
        close_all(CLD_HARDWARE_COUNTERS);
    counters.state = NOT_OPEN;
}

void cld_hardware_begin(void) {
    is_wanted = cld_setting_is(CL_DRIVER_PROFILE_HARDWARE_SETTING, "1");
    if (is_wanted)
        cld_on_thread_end(thread_ends);
}

const char *cld_hardware_lack(char *text, size_t size) {
    int number = atomic_load(&error);
    if (!is_wanted || !number)
        return NULL;
    const char *why = number == EACCES || number == EPERM
                          ? "the system forbids it: sysctl kernel.perf_event_paranoid, or a container's rules"
                      : number == ENOENT || number == EOPNOTSUPP || number == ENODEV
                          ? "this machine, virtual perhaps, does not have them"
                      : number == ENOSYS ? "the system has no perf_event_open"
                                         : "perf_event_open failed";
    snprintf(text, size, "no hardware counters: %s (error %d)", why, number);
    return text;
}

void cld_hardware_forget(void) {
    thread_ends(NULL);
}
