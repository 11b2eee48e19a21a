/* Counts commands and calls for those who ask for a profile (CL_DRIVER_PROFILE), and writes it when the
 * process ends. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/settings.h"
#include "base/thread.h"
#include "kernel/argument_specialisation.h"
#include "kernel/kernel.h"
#include "kernel/variant.h"
#include "object/command_buffer_khr.h"
#include "object/observer.h"
#include "profile/accounts.h"
#include "profile/counters.h"
#include "profile/report.h"
#include "profile/traffic.h"
#include "runtime/command.h"

/* When any command was executed. */
static struct {
    _Atomic uint32_t lock;
    uint32_t running; /* threads that execute commands */
    uint64_t since;   /* when the first of them began */
    uint64_t before;  /* ns, until then */
} busy;

static void lock_busy(void) {
    while (atomic_exchange_explicit(&busy.lock, 1, memory_order_acquire))
        cld_pause();
}

static void unlock_busy(void) {
    atomic_store_explicit(&busy.lock, 0, memory_order_release);
}

static uint64_t busy_until(uint64_t now) {
    lock_busy();
    uint64_t time = busy.before + (busy.running && now > busy.since ? now - busy.since : 0);
    unlock_busy();
    return time;
}

static void begin_busy(uint64_t now) {
    lock_busy();
    if (!busy.running++)
        busy.since = now;
    unlock_busy();
}

static void end_busy(uint64_t now) {
    lock_busy();
    if (busy.running && !--busy.running && now > busy.since)
        busy.before += now - busy.since;
    unlock_busy();
}

/* The code that a launch has run in the end, as bits of enum cld_code_kind. */
static unsigned code_of(const struct cld_event *command) {
    const struct cld_variant *code = command->kernel.variant;
    if (!cld_variant_is_there(code)) {
        bool has_wish = cld_specialisation_is_of_images(command->kernel.info) && command->kernel.wish;
        code = has_wish ? cld_variant_meanwhile(command->kernel.wish) : NULL;
    }
    if (!code)
        return 0;
    const struct cld_variant_key *key = &code->key;
    bool is_of_group = key->shape == CLD_SHAPE_GROUP || key->shape == CLD_SHAPE_LINEAR;
    return (key->tier == CLD_TIER_HOT ? CLD_CODE_HOT : 0u) | (is_of_group ? CLD_CODE_GROUP : 0u) |
           (key->values ? CLD_CODE_VALUE : 0u) | (key->shape == CLD_SHAPE_ITEMS ? CLD_CODE_BY_ITEM : 0u);
}

static bool is_fill(const struct cld_event *command) {
    return command->type == CL_COMMAND_FILL_BUFFER || command->type == CL_COMMAND_FILL_IMAGE ||
           command->type == CL_COMMAND_SVM_MEMFILL || command->type == CL_COMMAND_MEMFILL_INTEL;
}

/* What stands for commands without a kernel; NULL: those that only wait. */
static const char *name_of(const struct cld_event *command) {
    switch (command->type) {
    case CL_COMMAND_READ_BUFFER:
    case CL_COMMAND_READ_BUFFER_RECT:
        return "read buffer";
    case CL_COMMAND_WRITE_BUFFER:
    case CL_COMMAND_WRITE_BUFFER_RECT:
        return "write buffer";
    case CL_COMMAND_COPY_BUFFER:
    case CL_COMMAND_COPY_BUFFER_RECT:
        return "copy buffer";
    case CL_COMMAND_FILL_BUFFER:
        return "fill buffer";
    case CL_COMMAND_READ_IMAGE:
        return "read image";
    case CL_COMMAND_WRITE_IMAGE:
        return "write image";
    case CL_COMMAND_COPY_IMAGE:
        return "copy image";
    case CL_COMMAND_COPY_IMAGE_TO_BUFFER:
        return "copy image to buffer";
    case CL_COMMAND_COPY_BUFFER_TO_IMAGE:
        return "copy buffer to image";
    case CL_COMMAND_FILL_IMAGE:
        return "fill image";
    case CL_COMMAND_MAP_BUFFER:
    case CL_COMMAND_MAP_IMAGE:
    case CL_COMMAND_SVM_MAP:
        return "map";
    case CL_COMMAND_UNMAP_MEM_OBJECT:
    case CL_COMMAND_SVM_UNMAP:
        return "unmap";
    case CL_COMMAND_NATIVE_KERNEL:
        return "native kernel";
    case CL_COMMAND_SVM_FREE:
        return "free SVM";
    case CL_COMMAND_MARKER:
    case CL_COMMAND_BARRIER:
        return NULL;
    default:
        break;
    }
    return !cld_command_bytes(command) ? NULL : is_fill(command) ? "fill memory" : "copy memory";
}

static void raise_to(_Atomic uint64_t *most, uint64_t value) {
    uint64_t found = cld_counted(most);
    while (found < value && !atomic_compare_exchange_weak(most, &found, value))
        ;
}

static void lower_to(_Atomic uint64_t *least, uint64_t value) {
    uint64_t found = cld_counted(least);
    while (found > value && !atomic_compare_exchange_weak(least, &found, value))
        ;
}

static void count_spent(struct cld_spent *spent, uint64_t time) {
    cld_count(&spent->count, 1);
    cld_count(&spent->time, time);
}

static void count_launch(struct cld_account *account, const struct cld_event *command, uint64_t time) {
    const uint64_t *size = command->kernel.launch.global_size;
    cld_count(&account->items, command->total ? size[0] * size[1] * size[2] : 0);
    count_spent(&account->codes[code_of(command)], time);
    struct cld_traffic traffic = cld_traffic_of(command);
    if (traffic.knows_bytes) {
        cld_count(&account->read, traffic.read);
        cld_count(&account->written, traffic.written);
        count_spent(&account->with_bytes, time);
    }
    if (traffic.knows_operations) {
        cld_count(&account->operations, traffic.operations);
        count_spent(&account->with_operations, time);
    }
}

static void count_transfer(struct cld_account *account, const struct cld_event *command, uint64_t time) {
    uint64_t bytes = cld_command_bytes(command);
    if (!bytes)
        return;
    cld_count(&account->written, bytes);
    cld_count(&account->read, is_fill(command) ? 0 : bytes);
    count_spent(&account->with_bytes, time);
}

static struct cld_account *account_of(const struct cld_event *command) {
    if (cld_command_is_launch(command))
        return command->kernel.info ? cld_account_of(command->kernel.info->name, true) : NULL;
    const char *name = name_of(command);
    return name ? cld_account_of(name, false) : NULL;
}

static bool is_whole(const struct cld_event *command) {
    return command->type == CLD_COMMAND_COMMAND_BUFFER; /* whose nodes are counted */
}

/* What a thread is in the middle of: kernels that call the host back may nest. */
enum { NESTED = 8 };

static _Thread_local struct {
    unsigned depth;
    bool in_order; /* all nodes of a command-buffer */
    struct {
        uint64_t start;
        struct cld_hardware hardware;
    } parts[NESTED];
} executing;

static void begin_part(void) {
    uint64_t now = cld_now();
    if (executing.depth < NESTED) {
        executing.parts[executing.depth].start = now;
        cld_hardware_read(&executing.parts[executing.depth].hardware);
    }
    executing.depth++;
    begin_busy(now);
}

static void end_part(const struct cld_event *command) {
    uint64_t now = cld_now();
    end_busy(now);
    if (!executing.depth || --executing.depth >= NESTED)
        return;
    uint64_t start = executing.parts[executing.depth].start;
    struct cld_account *account = is_whole(command) ? NULL : account_of(command);
    if (!account)
        return;
    cld_count(&account->thread_time, now > start ? now - start : 0);
    struct cld_hardware before = executing.parts[executing.depth].hardware, after;
    if (!before.is_valid)
        return;
    cld_hardware_read(&after);
    for (int i = 0; after.is_valid && i < CLD_HARDWARE_COUNTERS; i++)
        cld_count(&account->hardware[i], after.values[i] - before.values[i]);
}

static void joined(struct cld_event *command, const struct cld_self *self) {
    (void)self;
    executing.in_order = is_whole(command);
    begin_part();
}

static void left(struct cld_event *command, const struct cld_self *self, const struct cld_part *part) {
    (void)self, (void)part;
    executing.in_order = false;
    end_part(command);
}

static void started(struct cld_event *command) {
    cld_report_device(command->queue->device->compute_units);
    if (command->is_node && executing.in_order)
        begin_part();
}

static void ended(struct cld_event *command, int32_t status) {
    if (command->is_node && executing.in_order)
        end_part(command);
    struct cld_account *account = is_whole(command) ? NULL : account_of(command);
    if (!account)
        return;
    uint64_t start = command->times[CLD_TIME_START], end = command->times[CLD_TIME_END];
    if (status < 0) {
        cld_count(&account->failed, 1);
        return;
    }
    uint64_t time = end > start ? end - start : 0;
    cld_count(&account->count, 1);
    cld_count(&account->time, time);
    raise_to(&account->most, time);
    lower_to(&account->least, time);
    if (cld_command_is_launch(command))
        count_launch(account, command, time);
    else
        count_transfer(account, command, time);
}

/* The call that a thread is in, if it waits or builds; what it calls back is a part of it. */
static _Thread_local struct {
    const struct cld_call *call;
    uint64_t start, busy;
} waiting;

static void call_begins(const struct cld_call *call) {
    if (waiting.call)
        return;
    const struct cld_call_account *account = cld_call_account_of(call->form);
    if (!account || (account->blocking >= 0 && !(uint32_t)call->values[account->blocking]))
        return;
    waiting.call = call;
    waiting.start = cld_now();
    waiting.busy = busy_until(waiting.start);
}

static void call_ends(const struct cld_call *call, int32_t status) {
    (void)status;
    if (waiting.call != call)
        return;
    waiting.call = NULL;
    uint64_t now = cld_now();
    struct cld_call_account *account = cld_call_account_of(call->form);
    cld_count(&account->count, 1);
    cld_count(&account->time, now - waiting.start);
    uint64_t worked = busy_until(now) - waiting.busy;
    cld_count(&account->busy, worked < now - waiting.start ? worked : now - waiting.start);
}

static const struct cld_observer observer = {
    .started = started,
    .ended = ended,
    .joined = joined,
    .left = left,
    .call_begins = call_begins,
    .call_ends = call_ends,
};

static void forked(void) {
    cld_accounts_forget();
    atomic_store(&busy.lock, 0);
    busy.running = 0;
    busy.before = 0;
    executing.depth = 0;
    executing.in_order = false;
    waiting.call = NULL;
    cld_hardware_forget();
    cld_report_begin(true);
}

/* Signals that end the process, unless the host has a handler of its own or ignores them. */
static const int deadly[] = {SIGHUP, SIGINT, SIGTERM, SIGABRT};

static void write_and_die(int number) {
    cld_report_write(true);
    signal(number, SIG_DFL);
    raise(number); /* delivered when this returns */
}

static void catch_signals(void) {
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++) {
        struct sigaction old, new = {.sa_handler = write_and_die, .sa_flags = SA_RESTART};
        sigemptyset(&new.sa_mask);
        if (!sigaction(deadly[i], NULL, &old) && !(old.sa_flags & SA_SIGINFO) && old.sa_handler == SIG_DFL)
            sigaction(deadly[i], &new, NULL);
    }
}

static bool is_wanted;

CLD_OBSERVER_CONSTRUCTOR static void begin(void) {
    is_wanted = *cld_setting(CL_DRIVER_PROFILE_SETTING) != 0;
    if (!is_wanted)
        return;
    cld_report_begin(false);
    cld_hardware_begin();
    cld_observe(&observer);
    pthread_atfork(NULL, NULL, forked);
    catch_signals();
}

__attribute__((destructor)) static void end(void) {
    if (is_wanted)
        cld_report_write(false);
}
