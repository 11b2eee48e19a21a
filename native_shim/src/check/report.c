/* What was found, as text. */
#define _GNU_SOURCE
#include "check/shadow.h"

#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

struct place place_of(const struct cld_kcheck_launch *launch, uint64_t group, uint64_t item) {
    struct place place;
    const struct cld_launch *sizes = &launch->sizes;
    for (int i = 0; i < 3; i++) {
        uint64_t count = sizes->num_groups[i] ? sizes->num_groups[i] : 1;
        place.group[i] = i < 2 ? group % count : group;
        group /= count;
        uint64_t before = place.group[i] * sizes->local_size[i], rest = sizes->global_size[i] - before;
        uint64_t size = rest < sizes->local_size[i] ? rest : sizes->local_size[i];
        size = size ? size : 1;
        place.local_id[i] = i < 2 ? item % size : item;
        item /= size;
        place.global_id[i] = sizes->global_offset[i] + before + place.local_id[i];
    }
    return place;
}

static bool is_same(const struct report *a, const struct report *b) {
    bool is_swapped = a->finding == RACE && a->site == b->other && a->other == b->site;
    return a->finding == b->finding && ((a->site == b->site && a->other == b->other) || is_swapped);
}

/* Threads come in any order: what is told is of the first work-item. */
static bool is_before(const struct place *a, const struct place *b) {
    for (int i = 2; i >= 0; i--)
        if (a->group[i] != b->group[i])
            return a->group[i] < b->group[i];
    for (int i = 2; i >= 0; i--)
        if (a->local_id[i] != b->local_id[i])
            return a->local_id[i] < b->local_id[i];
    return false;
}

void report_add(struct cld_kcheck_thread *thread, const struct report *report) {
    struct cld_kcheck_launch *launch = thread->launch;
    pthread_mutex_lock(&launch->lock);
    uint32_t i = 0;
    while (i < launch->report_count && !is_same(&launch->reports[i], report))
        i++;
    if (i == MOST_REPORTS)
        launch->lost++;
    else if (i < launch->report_count) {
        uint64_t count = launch->reports[i].count + 1;
        if (report->finding != RACE && is_before(&report->place, &launch->reports[i].place))
            launch->reports[i] = *report;
        launch->reports[i].count = count;
    } else {
        launch->reports[i] = *report;
        launch->reports[i].count = 1;
        launch->report_count++;
    }
    pthread_mutex_unlock(&launch->lock);
}

__attribute__((noinline)) void found(struct cld_kcheck_thread *thread, enum finding finding,
                                     const struct cld_kcheck_site *site, const struct range *range,
                                     const uint8_t *address, uint64_t bytes) {
    struct report report = {.finding = finding,
                            .site = site,
                            .place = place_of(thread->launch, thread->group_index, thread->item),
                            .bytes = bytes};
    if (range && range->start) {
        report.has_object = true;
        report.offset = address - range->start;
        report.size = range->size;
        report.is_local = range->is_local;
        report.made_by = range->block ? range->block->made_by : NULL;
        report.number = range->block ? range->block->number : 0;
    }
    report_add(thread, &report);
}

struct text {
    char bytes[4096];
    size_t size;
};

static __attribute__((format(printf, 2, 3))) void put(struct text *text, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int more = vsnprintf(text->bytes + text->size, sizeof text->bytes - text->size, format, args);
    va_end(args);
    text->size += more < 0 ? 0 : (size_t)more;
    if (text->size >= sizeof text->bytes)
        text->size = sizeof text->bytes - 1;
}

static const char *string_of(const struct cld_kcheck_sites *sites, uint32_t offset) {
    return offset ? (const char *)sites + offset : "";
}

/* Line `number` of a file, if that is one that a program's source was kept in; its length, -1 if there is
 * none. */
static int read_line(const char *path, uint32_t number, char *line, size_t room) {
    struct stat about;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0)
        return -1;
    FILE *stream = !fstat(file, &about) && S_ISREG(about.st_mode) ? fdopen(file, "r") : NULL;
    if (!stream) {
        close(file);
        return -1;
    }
    int length = -1;
    for (uint32_t i = 1; i <= number && fgets(line, (int)room, stream); i++) {
        size_t size = strcspn(line, "\n");
        bool is_cut = !line[size];
        length = i == number ? (int)size : -1;
        line[size] = 0;
        for (int c = 0; is_cut && c != EOF && c != '\n';)
            c = fgetc(stream);
    }
    fclose(stream);
    return length;
}

static void put_site(struct text *text, const struct cld_kcheck_sites *sites,
                     const struct cld_kcheck_site *site) {
    const char *file = string_of(sites, site->file);
    if (!site->line) {
        put(text, "  (no line known)\n");
        return;
    }
    const char *shown =
        strrchr(file, '/'); /* of the copy that is kept of a source, the folder says nothing */
    shown = shown && !strcmp(shown, "/program.cl") ? shown + 1 : *file ? file : "program.cl";
    put(text, "  at %s:%" PRIu32 ":%" PRIu32 "\n", shown, site->line, site->column);
    char line[256];
    int length = *file ? read_line(file, site->line, line, sizeof line) : -1;
    if (length <= 0)
        return;
    put(text, "    %s\n    ", line);
    for (uint32_t i = 1; i < site->column && i <= (uint32_t)length; i++)
        put(text, "%c", line[i - 1] == '\t' ? '\t' : ' ');
    put(text, "^\n");
}

static void put_place(struct text *text, const struct place *place) {
    put(text,
        "work-item (%" PRIu64 ", %" PRIu64 ", %" PRIu64 "), group (%" PRIu64 ", %" PRIu64 ", %" PRIu64
        "), local id (%" PRIu64 ", %" PRIu64 ", %" PRIu64 ")\n",
        place->global_id[0], place->global_id[1], place->global_id[2], place->group[0], place->group[1],
        place->group[2], place->local_id[0], place->local_id[1], place->local_id[2]);
}

static const char *verb(const struct cld_kcheck_site *site) {
    return site->kind == CLD_CHECK_LOAD ? "read" : site->kind == CLD_CHECK_STORE ? "write" : "atomic";
}

static void put_object(struct text *text, const struct cld_kcheck_launch *launch,
                       const struct report *report) {
    static const char *const spaces[] = {"global", "local", "private", "constant", "generic"};
    const struct cld_kcheck_site *site = report->site;
    const char *name = string_of(launch->sites, site->name);
    uint32_t space = site->flags & CLD_CHECK_SPACE;
    if (!report->has_object)
        return;
    if (report->offset < 0)
        put(text, "  %" PRId64 " bytes before the start of ", -report->offset);
    else
        put(text, "  at byte %" PRId64 " of ", report->offset);
    put(text, "%s memory",
        report->is_local             ? "local"
        : space == CLD_CHECK_GENERIC ? "global"
                                     : spaces[space]);
    if (*name)
        put(text, ", %s '%s'", site->flags & CLD_CHECK_OF_ARGUMENT ? "argument" : "variable", name);
    put(text, ", which has %zu bytes", report->size);
    if (report->made_by)
        put(text, " (allocation %" PRIu32 ", %s)", report->number, report->made_by);
    put(text, "\n");
}

/* An integer of so many bytes, of which more bits may be set. */
static void put_integer(struct text *text, const struct cld_kcheck_site *site, uint64_t bits) {
    uint32_t rest = 64 - 8 * site->size;
    if (site->flags & CLD_CHECK_SIGNED)
        put(text, "%" PRId64, (int64_t)(bits << rest) >> rest);
    else
        put(text, "%" PRIu64, bits << rest >> rest);
}

static void put_operation(struct text *text, const struct report *report) {
    static const char *const names[] = {"char", "short", "int", "long"};
    const struct cld_kcheck_site *site = report->site;
    uint64_t divisor = report->operands[1] << (64 - 8 * site->size);
    double value;
    switch (site->kind) {
    case CLD_CHECK_SHIFT:
        put(text, "shift of %u bits by %" PRIu64 "\n", 8 * site->size, report->operands[1]);
        return;
    case CLD_CHECK_CONVERT:
        memcpy(&value, report->operands, sizeof value);
        value = value != value ? NAN : value; /* which need not print as -nan */
        put(text, "conversion of %.9g to %s%s, which cannot hold it\n", value,
            site->flags & CLD_CHECK_SIGNED ? "" : "u", names[__builtin_ctz(site->size)]);
        return;
    default:
        put(text, divisor ? "division that overflows: " : "division by zero: ");
        put_integer(text, site, report->operands[0]);
        put(text, site->kind == CLD_CHECK_DIVIDE ? " / " : " %% ");
        put_integer(text, site, report->operands[1]);
        put(text, "\n");
    }
}

static void put_image(struct text *text, const struct cld_kcheck_launch *launch,
                      const struct report *report) {
    const struct cld_kcheck_site *site = report->site;
    uint32_t dims = site->bytes & 255, layers = site->bytes & CLD_CHECK_LAYERS ? 1 : 0;
    const char *name = string_of(launch->sites, site->name);
    put(text, "%s ", verb(site));
    if (report->finding == WRONG_SAMPLER || report->finding == WRONG_PIXEL) {
        put(text, "%s %s", report->finding == WRONG_SAMPLER ? "with" : "of", report->why);
    } else if (report->finding == NO_LEVEL) {
        put(text, "of level %" PRId32 " of an image of %" PRId32, (int32_t)report->sampler, report->sizes[0]);
    } else {
        put(text, "at (");
        for (uint32_t i = 0; i < dims + layers; i++)
            put(text, "%s%.9g", i ? ", " : "", report->coordinates[i]);
        put(text, report->finding == NO_PLACE ? "), which is no place in an image of "
                                              : "), outside of an image of ");
        for (uint32_t i = 0; i < dims; i++)
            put(text, "%s%" PRId32, i ? " x " : "", report->sizes[i]);
        put(text, " pixels");
        if (layers)
            put(text, " and %" PRId32 " layers", report->sizes[dims]);
        if (site->bytes & CLD_CHECK_SAMPLED && report->finding == OUTSIDE_IMAGE)
            put(text, ", with CLK_ADDRESS_NONE%s%s",
                report->sampler & CLD_SAMPLER_LINEAR ? ", linear filtering" : "",
                report->sampler & CLD_SAMPLER_NORMALIZED ? ", normalized coordinates" : "");
    }
    if (*name)
        put(text, ", argument '%s'", name);
    put(text, "\n");
}

static void print(const struct cld_kcheck_launch *launch, const struct report *report) {
    struct text text = {.size = 0};
    const struct cld_kcheck_site *site = report->site;
    put(&text, "cl_driver check: kernel '%s': ", launch->kernel);
    switch (report->finding) {
    case OUT_OF_BOUNDS:
        put(&text, "%s of %" PRIu64 " bytes out of bounds\n", verb(site), report->bytes);
        break;
    case USE_AFTER_FREE:
        put(&text, "%s of %" PRIu64 " bytes of memory that was freed\n", verb(site), report->bytes);
        break;
    case NULL_POINTER:
        put(&text, "%s of %" PRIu64 " bytes by way of a null pointer\n", verb(site), report->bytes);
        break;
    case UNWRITTEN:
        put(&text, "read of %" PRIu64 " bytes that nobody has written\n", report->bytes);
        break;
    case MISALIGNED:
        put(&text, "%s of %" PRIu64 " bytes at an address that is no multiple of %u\n", verb(site),
            report->bytes, site->alignment);
        break;
    case NO_ACCESS:
        put(&text, "%s of %" PRIu64 " bytes of a buffer that is %s-only\n", verb(site), report->bytes,
            site->kind == CLD_CHECK_LOAD ? "write" : "read");
        break;
    case UNAWAITED:
        put(&text, "copy of a group that nobody waits for (wait_group_events)\n");
        break;
    case INDEX:
        put(&text, "index %" PRId64 " out of bounds of an array of %zu\n", report->offset, report->size);
        break;
    case CONSTANT:
        put(&text, "%s of %" PRIu64 " bytes of constant memory%s%s%s, which a kernel may not change\n",
            verb(site), report->bytes, site->name && !report->has_object ? ", variable '" : "",
            report->has_object ? "" : string_of(launch->sites, site->name),
            site->name && !report->has_object ? "'" : "");
        break;
    case NO_ATOMICS:
        put(&text, "atomic of %u bytes on %s memory%s%s%s\n", site->size,
            (site->flags & CLD_CHECK_SPACE) == CLD_CHECK_CONSTANT ? "constant" : "private",
            site->name ? ", variable '" : "", string_of(launch->sites, site->name), site->name ? "'" : "");
        break;
    case OUTSIDE_IMAGE:
    case NO_PLACE:
    case NO_LEVEL:
    case WRONG_SAMPLER:
    case WRONG_PIXEL:
        put_image(&text, launch, report);
        break;
    case NO_EVENT:
        put(&text, "wait for an event that no copy of the group has (wait_group_events)\n");
        break;
    case NO_RESULT:
        put_operation(&text, report);
        break;
    case RACE:
        put(&text, "data race: %s of %" PRIu64 " bytes\n", verb(site), report->bytes);
        break;
    default:
        if (site->kind == CLD_CHECK_WAIT)
            put(&text,
                "wait_group_events that not all work-items of the group come to, or for other events\n");
        else if (site->kind != CLD_CHECK_BARRIER)
            put(&text, "copy of a group that not all work-items come to, or not all alike\n");
        else
            put(&text, "barrier that not all work-items of the group come to\n");
    }
    put_site(&text, launch->sites, site);
    put(&text, "  by ");
    put_place(&text, &report->place);
    put_object(&text, launch, report);
    if (report->finding == RACE) {
        bool is_atomic = report->other && report->other->kind == CLD_CHECK_ATOMIC;
        put(&text, "  with %s\n", is_atomic ? "an atomic" : report->is_write_before ? "a write" : "a read");
        if (report->other)
            put_site(&text, launch->sites, report->other);
        put(&text, "  by ");
        if (report->is_other_unknown)
            put(&text, "other work-items\n");
        else
            put_place(&text, &report->other_place);
    } else if (report->finding == DIVERGENCE && report->other) {
        put(&text, "  others of the group have come to another barrier\n");
        put_site(&text, launch->sites, report->other);
    } else if (report->finding == DIVERGENCE && report->missing) {
        put(&text, "  %" PRIu64 " work-items of the group have returned, or go another way\n",
            report->missing);
    }
    if (report->count > 1)
        put(&text, "  %" PRIu64 " times in this launch\n", report->count);
    cld_log_text(text.bytes, text.size);
}

/* FNV-1a. */
static uint64_t digest(const void *bytes, size_t size) {
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ ((const uint8_t *)bytes)[i]) * 1099511628211u;
    return hash;
}

/* What a kernel does at each of its launches is told once. Its table of sites, with the name of the source's
 * copy, stands for it: kernels of several programs may have one name. */
static bool is_new(const struct cld_kcheck_launch *launch, const struct report *report) {
    enum { MOST_TOLD = 1024 };
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct told {
        uint64_t kernel;
        uint32_t finding, line, column, other;
    } told[MOST_TOLD];
    static uint32_t count;
    const struct cld_kcheck_sites *sites = launch->sites;
    const char *file = string_of(sites, report->site->file);
    struct told mine = {.kernel = digest(sites, sizeof *sites + sites->count * sizeof *sites->sites) ^
                                  digest(file, strlen(file)) ^ digest(launch->kernel, strlen(launch->kernel)),
                        .finding = report->finding,
                        .line = report->site->line,
                        .column = report->site->column,
                        .other = report->other ? report->other->line : 0};
    pthread_mutex_lock(&lock);
    uint32_t i = 0;
    while (i < count && memcmp(&told[i], &mine, sizeof mine) != 0)
        i++;
    bool is_unknown = i == count;
    if (is_unknown && count < MOST_TOLD)
        told[count++] = mine;
    pthread_mutex_unlock(&lock);
    return is_unknown;
}

/* Once for each kernel's name. */
void report_unchecked(const struct cld_kcheck_launch *launch) {
    enum { MOST_NAMES = 256 };
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static uint64_t names[MOST_NAMES];
    static uint32_t count;
    uint64_t name = digest(launch->kernel, strlen(launch->kernel));
    pthread_mutex_lock(&lock);
    uint32_t i = 0;
    while (i < count && names[i] != name)
        i++;
    bool is_new_name = i == count && count < MOST_NAMES;
    if (is_new_name)
        names[count++] = name;
    pthread_mutex_unlock(&lock);
    struct text text = {.size = 0};
    put(&text, "cl_driver check: kernel '%s' is not checked: it needs sub-groups of several work-items\n",
        launch->kernel);
    if (is_new_name)
        cld_log_text(text.bytes, text.size);
}

void report_print_all(struct cld_kcheck_launch *launch) {
    for (uint32_t i = 0; i < launch->report_count; i++)
        if (is_new(launch, &launch->reports[i]))
            print(launch, &launch->reports[i]);
    if (launch->lost) {
        struct text text = {.size = 0};
        put(&text,
            "cl_driver check: kernel '%s': %" PRIu64 " more, at other places, for which there is no room\n",
            launch->kernel, launch->lost);
        cld_log_text(text.bytes, text.size);
    }
    launch->report_count = 0;
    launch->lost = 0;
}
