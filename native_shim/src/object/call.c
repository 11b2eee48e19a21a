/* Why calls fail, in words: the name of the call, what is wrong, and the arguments that are. */
#include "object/call.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error_names.h"
#include "base/log.h"
#include "object/observer.h"
#include "object/semaphore_khr.h"

static _Thread_local struct cld_call *current;
static void (*watch_before)(struct cld_call *call);
static void (*watch_after)(struct cld_call *call, cl_int status);

void cld_call_watch(void (*before)(struct cld_call *call),
                    void (*after)(struct cld_call *call, cl_int status)) {
    watch_before = before;
    watch_after = after;
}

/* The arguments that a code is about, by their names in the specification. */
static const struct {
    cl_int code;
    const char *parameters;
} about[] = {
    {CL_INVALID_PLATFORM, "platform"},
    {CL_INVALID_DEVICE, "device in_device devices device_list num_devices"},
    {CL_INVALID_DEVICE_TYPE, "device_type"},
    {CL_DEVICE_NOT_FOUND, "device_type"},
    {CL_INVALID_CONTEXT, "context"},
    {CL_INVALID_COMMAND_QUEUE, "command_queue queue"},
    {CL_INVALID_QUEUE_PROPERTIES, "properties"},
    {CL_INVALID_MEM_OBJECT,
     "buffer image memobj memory buffer_or_image src_buffer dst_buffer src_image dst_image "
     "pipe mem_objects"},
    {CL_INVALID_SAMPLER, "sampler"},
    {CL_INVALID_PROGRAM, "program"},
    {CL_INVALID_KERNEL, "kernel source_kernel"},
    {CL_INVALID_KERNEL_NAME, "kernel_name"},
    {CL_INVALID_EVENT, "event"},
    {CL_INVALID_EVENT_WAIT_LIST, "num_events_in_wait_list event_wait_list"},
    {CL_INVALID_BUFFER_SIZE, "size"},
    {CL_INVALID_ARG_INDEX, "arg_index arg_indx"},
    {CL_INVALID_ARG_SIZE, "arg_index arg_size"},
    {CL_INVALID_ARG_VALUE, "arg_index arg_value"},
    {CL_INVALID_HOST_PTR, "flags host_ptr"},
    {CL_INVALID_WORK_DIMENSION, "work_dim"},
    {CL_INVALID_SPEC_ID, "spec_id"},
    {CL_INVALID_PROPERTY, "properties sema_props"},
    {CLD_INVALID_MUTABLE_COMMAND, "command"},
    {CLD_INVALID_COMMAND_BUFFER, "command_buffer"},
    {CL_INVALID_SEMAPHORE_KHR, "semaphore sema_object sema_objects"},
};

/* The same of things that the texts of many calls are about. */
static const struct {
    const char *phrase, *parameters;
} things[] = {
    {"region",
     "origin region src_origin dst_origin buffer_origin host_origin offset size src_offset dst_offset"},
    {"regions", "region src_origin dst_origin src_offset dst_offset size"},
    {"row pitch", "row_pitch input_row_pitch buffer_row_pitch host_row_pitch src_row_pitch dst_row_pitch "
                  "image_row_pitch"},
    {"slice pitch", "slice_pitch input_slice_pitch buffer_slice_pitch host_slice_pitch src_slice_pitch "
                    "dst_slice_pitch image_slice_pitch"},
    {"wait list", "num_events_in_wait_list event_wait_list"},
    {"origin", "origin src_origin dst_origin buffer_origin host_origin"},
};

/* What programs find out by such codes is no error: whether there is a device, or information. */
static const cl_int answers[] = {CL_DEVICE_NOT_FOUND, CL_KERNEL_ARG_INFO_NOT_AVAILABLE};

static const char *const kinds[] = {
    "the platform",
    "a device",
    "a context",
    "a command-queue",
    "a memory object",
    "a sampler",
    "a program",
    "a kernel",
    "an event",
    "a command-buffer",
    "a command of a command-buffer",
    "a semaphore",
};

const char *cld_kind_name(enum cld_kind kind) {
    return kinds[kind - CLD_PLATFORM];
}

struct cld_words cld_describe(const void *handle) {
    struct cld_words words = {"NULL"};
    if (!handle)
        return words;
    const char *what = "no object of this driver";
    for (int kind = CLD_DEAD; kind < CLD_KIND_END; kind = kind ? kind + 1 : CLD_PLATFORM)
        if (cld_object_check(handle, (enum cld_kind)kind))
            what = kind ? cld_kind_name((enum cld_kind)kind) : "an object that was released";
    snprintf(words.text, sizeof words.text, "%p (%s)", handle, what);
    return words;
}

/* A text that grows to the end of its room. */
struct text {
    char bytes[768];
    size_t size;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *text, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int more = vsnprintf(text->bytes + text->size, sizeof text->bytes - text->size, format, args);
    va_end(args);
    text->size += more < 0 ? 0 : (size_t)more;
    if (text->size >= sizeof text->bytes)
        text->size = sizeof text->bytes - 1;
}

static bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Where a text has that word, or NULL. */
static const char *find_word(const char *text, const char *word, size_t size) {
    for (const char *at = text; (at = strstr(at, word)); at += size)
        if ((at == text || !(is_name(at[-1]) || at[-1] == '-')) && !is_name(at[size]))
            return at;
    return NULL;
}

/* Whether a text is about an argument of that name: "the kernel" may be any. */
static bool names(const char *text, const char *word, size_t size) {
    const char *at = find_word(text, word, size);
    if (!at)
        return false;
    size_t before = (size_t)(at - text);
    bool has_article = (before >= 4 && !strncmp(at - 4, "the ", 4)) ||
                       (before >= 2 && !strncmp(at - 2, "a ", 2)) ||
                       (before >= 3 && !strncmp(at - 3, "an ", 3));
    return !has_article;
}

/* Whether the text has the argument's value already: "size is 0", "local_work_size[1] is 3". */
static bool has_value(const char *text, const char *word, size_t size) {
    const char *at = find_word(text, word, size);
    if (!at)
        return false;
    at += size;
    return *at == '[' || !strncmp(at, " is ", 4) || !strncmp(at, " = ", 3);
}

static void add_image_desc(struct text *text, const cl_image_desc *desc) {
    add(text, "{type %#x, %zu x %zu x %zu, array size %zu, row pitch %zu, slice pitch %zu, mem_object %s}",
        desc->image_type, desc->image_width, desc->image_height, desc->image_depth, desc->image_array_size,
        desc->image_row_pitch, desc->image_slice_pitch, cld_describe(desc->mem_object).text);
}

/* Properties: names and values in turn. Up to the first 0, though it may be a value: some lists end there. */
static void add_list(struct text *text, const intptr_t *words) {
    for (size_t i = 0; i < 16 && words[i]; i++)
        add(text, "%s%#" PRIxPTR, i ? ", " : "{", (uintptr_t)words[i]);
    add(text, "%s", words[0] ? "}" : "{}");
}

static void add_value(struct text *text, char kind, uintptr_t value, uintptr_t dimensions) {
    const size_t *sizes = (const size_t *)value;
    if (kind == 'h')
        add(text, "%s", cld_describe((const void *)value).text);
    else if ((kind == 'p' || kind == 'd' || kind == 'f' || kind == 'l' || kind == 'z' || kind == 's') &&
             !value)
        add(text, "NULL");
    else if (kind == 'd')
        add_image_desc(text, (const cl_image_desc *)value);
    else if (kind == 'l')
        add_list(text, (const intptr_t *)value);
    else if (kind == 'f')
        add(text, "{order %#x, type %#x}", ((const cl_image_format *)value)->image_channel_order,
            ((const cl_image_format *)value)->image_channel_data_type);
    else if (kind == 's')
        add(text, "\"%.100s\"", (const char *)value);
    else if (kind == 'z')
        for (uintptr_t i = 0; i < dimensions; i++)
            add(text, "%s%zu%s", i ? ", " : "{", sizes[i], i + 1 == dimensions ? "}" : "");
    else if (kind == 'i')
        add(text, "%" PRIdPTR, (intptr_t)value);
    else
        add(text, kind == 'u' ? "%" PRIuPTR : "0x%" PRIxPTR, value);
}

/* One argument of a call: its kind, a letter of gen/calls.py, its name, and its value. */
struct argument {
    const char *name;
    size_t size;
    uintptr_t value;
    char kind;
};

enum { ARGUMENTS = 24 };

/* Reads a form, up to so many arguments; returns how many there are. */
static size_t read_form(const struct cld_call *call, struct argument *arguments) {
    size_t count = 0;
    const char *at = strchr(call->form, ' ');
    for (; at && count < ARGUMENTS; count++) {
        struct argument *argument = &arguments[count];
        argument->kind = at[1];
        argument->name = at + 2;
        at = strchr(argument->name, ' ');
        argument->size = at ? (size_t)(at - argument->name) : strlen(argument->name);
        argument->value = call->values[count];
    }
    return count;
}

/* How many numbers are behind a pointer to sizes: of a launch its dimensions, of a region three. */
static uintptr_t dimensions_of(const struct argument *arguments, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (arguments[i].size == 8 && !memcmp(arguments[i].name, "work_dim", 8))
            return arguments[i].value <= 3 ? arguments[i].value : 0;
    return 3;
}

/* Whether an argument is one that the code, or a thing that the text is about, goes with. */
static bool concerns(cl_int code, const char *why, const char *word, size_t size) {
    for (size_t i = 0; i < sizeof about / sizeof *about; i++)
        if (about[i].code == code && find_word(about[i].parameters, word, size))
            return true;
    for (size_t i = 0; i < sizeof things / sizeof *things; i++)
        if (find_word(why, things[i].phrase, strlen(things[i].phrase)) &&
            find_word(things[i].parameters, word, size))
            return true;
    return false;
}

/* The arguments that the text names without their values; where there are none, those that the code is about.
 */
static size_t choose(cl_int code, const char *why, struct argument *arguments, size_t count) {
    struct argument named[ARGUMENTS], others[ARGUMENTS];
    size_t named_count = 0, other_count = 0;
    bool is_valued = false;
    for (size_t i = 0; i < count; i++) {
        char word[64];
        snprintf(word, sizeof word, "%.*s", (int)arguments[i].size, arguments[i].name);
        if (has_value(why, word, arguments[i].size))
            is_valued = true;
        else if (names(why, word, arguments[i].size))
            named[named_count++] = arguments[i];
        else if (concerns(code, why, word, arguments[i].size))
            others[other_count++] = arguments[i];
    }
    size_t chosen = named_count ? named_count : is_valued ? 0 : other_count;
    memcpy(arguments, named_count ? named : others, chosen * sizeof *arguments);
    return chosen;
}

/* How much of a text is before names at its end that are there only for their values: "... 8 bytes: size". */
static size_t without_names(const char *why, const struct argument *arguments, size_t count) {
    const char *at = strrchr(why, ':');
    for (size_t i = 0; at && i < count; i++)
        if (at[1] == ' ' && !strncmp(at + 2, arguments[i].name, arguments[i].size) &&
            at[2 + strspn(at + 2, "abcdefghijklmnopqrstuvwxyz_, ")] == 0)
            return (size_t)(at - why);
    return strlen(why);
}

static void add_reason(struct text *text, const struct cld_call *call, cl_int code, const char *why) {
    struct argument arguments[ARGUMENTS];
    size_t count = call ? read_form(call, arguments) : 0;
    uintptr_t dimensions = dimensions_of(arguments, count);
    count = choose(code, why, arguments, count);
    if (count == 1 && !strncmp(why, "not ", 4)) {
        add(text, "%.*s is ", (int)arguments[0].size, arguments[0].name);
        add_value(text, arguments[0].kind, arguments[0].value, dimensions);
        add(text, ", %s", why);
        return;
    }
    add(text, "%.*s", (int)without_names(why, arguments, count), why);
    for (size_t i = 0; i < count; i++) {
        add(text, "%s%.*s = ", i ? ", " : ": ", (int)arguments[i].size, arguments[i].name);
        add_value(text, arguments[i].kind, arguments[i].value, dimensions);
    }
}

static void tell(int level, const char *function, cl_int code, const char *format, va_list args) {
    struct cld_call *call = current;
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
        if (answers[i] == code)
            level = 2;
    bool is_told = call && call->is_told;
    if (call)
        call->is_told = true;
    if (level > cld_log_level || is_told)
        return;
    struct text why = {.size = 0}, line = {.size = 0};
    vsnprintf(why.bytes, sizeof why.bytes, format, args);
    for (char *at = why.bytes; (at = strchr(at, '\n'));) /* of a compiler */
        *at = ' ';
    bool is_api = function && !strncmp(function, "cl", 2) && function[2] >= 'A' && function[2] <= 'Z';
    if (call)
        add(&line, "%.*s: ", (int)strcspn(call->form, " "), call->form);
    else if (is_api)
        add(&line, "%s: ", function);
    add_reason(&line, call, code, why.bytes);
    if (code) /* some calls have none to return */
        cld_log(level, "%s (%s)", line.bytes, cld_error_name(code));
    else
        cld_log(level, "%s", line.bytes);
}

cl_int cld_refuse(const char *function, cl_int code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    tell(1, function, code, format, args);
    va_end(args);
    return code;
}

cl_int cld_lack(const char *function, cl_int code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    tell(2, function, code, format, args);
    va_end(args);
    return code;
}

void cld_call_begin(struct cld_call *call, const char *form, const uintptr_t *values, const void *caller) {
    *call = (struct cld_call){.form = form, .values = values, .outer = current, .caller = caller};
    if (watch_before)
        watch_before(call);
    current = call;
    CLD_TELL(call_begins, call);
}

cl_int cld_call_end(struct cld_call *call, cl_int status) {
    if (status < 0 && !call->is_told)
        cld_refuse(NULL, status, "%s",
                   status == CL_OUT_OF_HOST_MEMORY              ? "the host has no memory"
                   : status == CL_OUT_OF_RESOURCES              ? "there is not enough of what it takes"
                   : status == CL_MEM_OBJECT_ALLOCATION_FAILURE ? "there is no memory for the object: size"
                   : status == CL_DEVICE_NOT_FOUND              ? "there is no such device: device_type"
                                                                : "it failed");
    CLD_TELL(call_ends, call, status);
    current = call->outer;
    if (watch_after)
        watch_after(call, status);
    return status;
}
