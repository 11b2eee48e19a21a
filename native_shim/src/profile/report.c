/* Writes the profile: a table for people, or JSON (README.md has the format). Without malloc, for a process
 * may end in a handler of a signal. */
#define _GNU_SOURCE
#include "profile/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/settings.h"
#include "base/thread.h"
#include "kernel/variant.h"
#include "profile/accounts.h"
#include "profile/counters.h"
#include "profile/roofline.h"

static uint64_t start_time;
static bool is_child; /* of a fork */
static _Atomic uint32_t threads;
static _Atomic bool is_written;

void cld_report_begin(bool after_fork) {
    start_time = cld_now();
    is_child = after_fork;
    atomic_store(&is_written, false);
}

void cld_report_device(uint32_t count) {
    if (atomic_load_explicit(&threads, memory_order_relaxed) < count)
        atomic_store_explicit(&threads, count, memory_order_relaxed);
}

/* Text on its way to a file. */
static struct {
    int file;
    size_t size;
    char text[8192];
} out;

static void flush(void) {
    for (size_t at = 0; at < out.size;) {
        ssize_t written = write(out.file, out.text + at, out.size - at);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            break;
        at += (size_t)written;
    }
    out.size = 0;
}

__attribute__((format(printf, 1, 2))) static void put(const char *format, ...) {
    va_list args;
    if (sizeof out.text - out.size < 1024)
        flush();
    va_start(args, format);
    int more = vsnprintf(out.text + out.size, sizeof out.text - out.size, format, args);
    va_end(args);
    size_t room = sizeof out.text - out.size - 1;
    out.size += more < 0 ? 0 : (size_t)more < room ? (size_t)more : room;
}

static void put_string(const char *text) {
    put("\"");
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            put("\\%c", *text);
        else if ((unsigned char)*text < 32)
            put("\\u%04x", *text);
        else
            put("%c", *text);
    }
    put("\"");
}

/* What all of it comes to. */
struct whole {
    struct cld_account **accounts;
    size_t count;
    uint64_t wall, time; /* ns: of the process, of all commands */
    uint64_t build_time, build_count, wait_time, wait_count, idle_time;
    struct cld_roofline roofline;
    bool has_roofline;
    const char *lack; /* of counters */
    char lack_text[256];
};

static void sum_up(struct whole *whole, bool in_signal) {
    whole->accounts = cld_accounts_sorted(&whole->count);
    whole->wall = cld_now() - start_time;
    for (size_t i = 0; i < whole->count; i++)
        whole->time += cld_counted(&whole->accounts[i]->time);
    for (size_t i = 0; i < CLD_CALL_ACCOUNTS; i++) {
        struct cld_call_account *call = &cld_call_accounts[i];
        uint64_t time = cld_counted(&call->time), count = cld_counted(&call->count);
        if (atomic_load(&call->kind) == CLD_CALL_BUILDS) {
            whole->build_time += time;
            whole->build_count += count;
        } else if (atomic_load(&call->kind) == CLD_CALL_WAITS) {
            whole->wait_time += time;
            whole->wait_count += count;
            whole->idle_time += time - cld_counted(&call->busy);
        }
    }
    uint32_t count = atomic_load(&threads);
    whole->has_roofline = whole->count && cld_roofline_get(count, !in_signal, &whole->roofline);
    whole->lack = cld_hardware_lack(whole->lack_text, sizeof whole->lack_text);
}

static const char *code_name(unsigned kind, char *text, size_t size) {
    static const char *const names[] = {"hot", "group", "value", "by item"};
    size_t at = 0;
    if (!kind)
        return "first";
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (kind >> i & 1)
            at += (size_t)snprintf(text + at, size - at, "%s%s", at ? "+" : "", names[i]);
    return text;
}

static uint64_t bytes_of(const struct cld_account *account) {
    uint64_t read = account->is_kernel ? cld_counted(&account->read) : 0;
    return read + cld_counted(&account->written);
}

static double per_second(uint64_t amount, uint64_t time) {
    return time ? (double)amount * 1e9 / (double)time : 0;
}

static double share_of(uint64_t part, uint64_t whole) {
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* Of what the machine could do in that time: of memory, or of arithmetic where that is the more. Bytes that a
 * copy moves are read and written. */
static double of_roofline(const struct whole *whole, const struct cld_account *account) {
    if (!whole->has_roofline)
        return 0;
    uint64_t bytes = cld_counted(&account->read) + cld_counted(&account->written);
    double memory = per_second(bytes, cld_counted(&account->with_bytes.time)) / whole->roofline.bytes;
    double arithmetic =
        per_second(cld_counted(&account->operations), cld_counted(&account->with_operations.time)) /
        whole->roofline.operations;
    return 100 * (memory > arithmetic ? memory : arithmetic);
}

static void put_codes_json(const struct cld_account *account) {
    const char *comma = "";
    put(", \"codes\": {");
    for (unsigned kind = 0; kind < CLD_CODE_KINDS; kind++) {
        char text[64];
        uint64_t count = cld_counted(&account->codes[kind].count);
        if (!count)
            continue;
        put("%s\"%s\": {\"launches\": %llu, \"time_ns\": %llu}", comma, code_name(kind, text, sizeof text),
            (unsigned long long)count, (unsigned long long)cld_counted(&account->codes[kind].time));
        comma = ", ";
    }
    put("}");
}

static void put_number(const char *name, uint64_t value) {
    put(", \"%s\": %llu", name, (unsigned long long)value);
}

static void put_account_json(const struct whole *whole, const struct cld_account *account) {
    uint64_t count = cld_counted(&account->count), time = cld_counted(&account->time);
    put("{\"name\": ");
    put_string(account->name);
    put_number(account->is_kernel ? "launches" : "commands", count);
    put_number("failed", cld_counted(&account->failed));
    put_number("time_ns", time);
    put_number("least_ns", count ? cld_counted(&account->least) : 0);
    put_number("most_ns", cld_counted(&account->most));
    put_number("thread_ns", cld_counted(&account->thread_time));
    put(", \"share\": %.4f", share_of(time, whole->time));
    if (account->is_kernel)
        put_number("work_items", cld_counted(&account->items));
    if (cld_counted(&account->with_bytes.count)) {
        if (!account->is_kernel)
            put_number("bytes", cld_counted(&account->written));
        put_number("bytes_read", cld_counted(&account->read));
        put_number("bytes_written", cld_counted(&account->written));
        put_number("bytes_known", cld_counted(&account->with_bytes.count));
        put_number("bytes_time_ns", cld_counted(&account->with_bytes.time));
    }
    if (cld_counted(&account->with_operations.count)) {
        put_number("operations", cld_counted(&account->operations));
        put_number("operations_known", cld_counted(&account->with_operations.count));
        put_number("operations_time_ns", cld_counted(&account->with_operations.time));
    }
    if (account->is_kernel)
        put_codes_json(account);
    if (cld_counted(&account->hardware[0])) {
        put(", \"hardware\": {");
        for (int i = 0; i < CLD_HARDWARE_COUNTERS; i++)
            put("%s\"%s\": %llu", i ? ", " : "", cld_hardware_names[i],
                (unsigned long long)cld_counted(&account->hardware[i]));
        put("}");
    }
    put("}");
}

static void put_accounts_json(const struct whole *whole, bool are_kernels) {
    const char *comma = "\n    ";
    put("  \"%s\": [", are_kernels ? "kernels" : "transfers");
    for (size_t i = 0; i < whole->count; i++)
        if (whole->accounts[i]->is_kernel == are_kernels) {
            put("%s", comma);
            put_account_json(whole, whole->accounts[i]);
            comma = ",\n    ";
        }
    put("],\n");
}

static void put_calls_json(const char *name, int kind) {
    const char *comma = "";
    put("  \"%s\": {\"calls\": {", name);
    for (size_t i = 0; i < CLD_CALL_ACCOUNTS; i++) {
        struct cld_call_account *call = &cld_call_accounts[i];
        const char *form = atomic_load(&call->form);
        if (!form || atomic_load(&call->kind) != kind || !cld_counted(&call->count))
            continue;
        put("%s\n    \"%.*s\": {\"count\": %llu", comma, (int)strcspn(form, " "), form,
            (unsigned long long)cld_counted(&call->count));
        put_number("time_ns", cld_counted(&call->time));
        if (kind == CLD_CALL_WAITS)
            put_number("busy_ns", cld_counted(&call->busy));
        put("}");
        comma = ",";
    }
    put("}");
}

static const char *program_name(void) {
    return program_invocation_short_name ? program_invocation_short_name : "?";
}

static void put_json(const struct whole *whole) {
    put("{\n  \"format\": \"cl_driver profile 1\",\n  \"program\": ");
    put_string(program_name());
    put_number("process", (uint64_t)getpid());
    put_number("wall_ns", whole->wall);
    put_number("command_ns", whole->time);
    put_number("threads", atomic_load(&threads));
    put(",\n");
    if (whole->has_roofline)
        put("  \"roofline\": {\"threads\": %u, \"operations_per_second\": %.0f, \"bytes_per_second\": "
            "%.0f},\n",
            whole->roofline.threads, whole->roofline.operations, whole->roofline.bytes);
    if (whole->lack) {
        put("  \"no_hardware\": ");
        put_string(whole->lack);
        put(",\n");
    }
    put_accounts_json(whole, true);
    put_accounts_json(whole, false);
    put_calls_json("building", CLD_CALL_BUILDS);
    put_number("at_launches_ns", cld_counted(&cld_variants_waited));
    put_number("background_ns", cld_counted(&cld_variants_in_background));
    put("},\n");
    put_calls_json("waiting", CLD_CALL_WAITS);
    put("}\n}\n");
}

/* A cell of the table: a number in some four digits, with its unit's prefix. */
static void put_amount(double value, int width) {
    static const char prefixes[] = " kMGTP";
    int i = 0;
    for (; value >= 9999.5 && prefixes[i + 1]; i++)
        value /= 1000;
    if (prefixes[i] == ' ')
        put(" %*.0f", width, value);
    else
        put(" %*.*f%c", width - 1, value < 99.95 ? 1 : 0, value, prefixes[i]);
}

static void put_or_dash(bool is_known, double value, int width, int digits) {
    if (is_known)
        put(" %*.*f", width, digits, value);
    else
        put(" %*s", width, "-");
}

static void put_row(const struct whole *whole, const struct cld_account *account, int width) {
    uint64_t count = cld_counted(&account->count), time = cld_counted(&account->time);
    uint64_t bytes_time = cld_counted(&account->with_bytes.time);
    uint64_t operations_time = cld_counted(&account->with_operations.time);
    int size = (int)strlen(account->name);
    put("%-*.*s", width, width, account->name);
    if (size > width)
        out.text[out.size - 1] = '+';
    put(" %9llu %11.3f %10.2f %10.2f %6.2f", (unsigned long long)count, (double)time / 1e6,
        count ? (double)time / 1e3 / (double)count : 0,
        count ? (double)cld_counted(&account->least) / 1e3 : 0, share_of(time, whole->time));
    if (account->is_kernel)
        put_amount(per_second(cld_counted(&account->items), time), 8);
    else
        put(" %8s", "");
    put_or_dash(bytes_time, per_second(bytes_of(account), bytes_time) / 1e9, 8, 2);
    put_or_dash(operations_time, per_second(cld_counted(&account->operations), operations_time) / 1e9, 8, 2);
    put_or_dash(whole->has_roofline && (bytes_time || operations_time), of_roofline(whole, account), 6, 1);
    const char *comma = "  ";
    for (unsigned kind = 0; kind < CLD_CODE_KINDS; kind++) {
        char text[64];
        uint64_t launches = cld_counted(&account->codes[kind].count);
        if (!launches)
            continue;
        put("%s%s", comma, code_name(kind, text, sizeof text));
        if (launches < count)
            put(" %llu", (unsigned long long)launches);
        comma = ", ";
    }
    if (cld_counted(&account->failed))
        put("  %llu failed", (unsigned long long)cld_counted(&account->failed));
    put("\n");
    if (cld_counted(&account->hardware[0])) {
        put("%*s", width + 11, "");
        for (int i = 0; i < CLD_HARDWARE_COUNTERS; i++) {
            put_amount((double)cld_counted(&account->hardware[i]), 8);
            put(" %s%s", cld_hardware_names[i], i + 1 < CLD_HARDWARE_COUNTERS ? "," : "\n");
        }
    }
}

enum { LEAST_NAME = 22, MOST_NAME = 48 };

static void put_table(const struct whole *whole) {
    int width = LEAST_NAME;
    for (size_t i = 0; i < whole->count; i++) {
        int size = (int)strnlen(whole->accounts[i]->name, MOST_NAME);
        width = size > width ? size : width;
    }
    put("cl_driver: profile of %s (process %d): %.3f s, of which commands took %.3f s\n", program_name(),
        (int)getpid(), (double)whole->wall / 1e9, (double)whole->time / 1e9);
    put("%-*s %9s %11s %10s %10s %6s %8s %8s %8s %6s  %s\n", width, "kernel or transfer", "count", "total ms",
        "mean us", "least us", "%", "items/s", "GB/s", "GFLOP/s", "roof%", "code");
    for (size_t i = 0; i < whole->count; i++)
        put_row(whole, whole->accounts[i], width);
    put("building: %.3f s in %llu calls, %.3f s more at launches, %.3f s in the background\n",
        (double)whole->build_time / 1e9, (unsigned long long)whole->build_count,
        (double)cld_counted(&cld_variants_waited) / 1e9,
        (double)cld_counted(&cld_variants_in_background) / 1e9);
    put("waiting: %.3f s in %llu calls, of which %.3f s while no command was executed\n",
        (double)whole->wait_time / 1e9, (unsigned long long)whole->wait_count,
        (double)whole->idle_time / 1e9);
    if (whole->has_roofline)
        put("this machine: %.1f GFLOP/s (float) and %.2f GB/s, as measured with %u threads\n",
            whole->roofline.operations / 1e9, whole->roofline.bytes / 1e9, whole->roofline.threads);
    if (whole->lack)
        put("%s\n", whole->lack);
}

/* The file's name, in which %p stands for the process. Without it, what was forked has its number behind. */
static bool find_path(char *path, size_t size) {
    const char *text = cld_setting(CL_DRIVER_PROFILE_SETTING);
    size_t at = 0;
    bool has_process = false;
    for (; *text && at + 16 < size; text++) {
        if (text[0] == '%' && text[1] == 'p') {
            at += (size_t)snprintf(path + at, size - at, "%d", (int)getpid());
            has_process = true;
            text++;
        } else {
            path[at++] = *text;
        }
    }
    path[at] = 0;
    if (is_child && !has_process)
        snprintf(path + at, size - at, ".%d", (int)getpid());
    return !*text;
}

static bool has_something(const struct whole *whole) {
    return whole->count || whole->build_count || whole->wait_count;
}

void cld_report_write(bool in_signal) {
    static struct whole whole;
    static char path[4096];
    if (atomic_exchange(&is_written, true))
        return;
    whole = (struct whole){.count = 0};
    sum_up(&whole, in_signal);
    if (!has_something(&whole)) /* a process that only looked which devices there are */
        return;
    if (cld_setting_is(CL_DRIVER_PROFILE_SETTING, "-")) {
        out.file = STDERR_FILENO;
        put_table(&whole);
        flush();
        return;
    }
    out.file = find_path(path, sizeof path)
                   ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666)
                   : -1;
    if (out.file < 0)
        return;
    put_json(&whole);
    flush();
    close(out.file);
}
