/* Knows programs by the names of their files. */
#define _GNU_SOURCE
#include "base/quirks.h"

#include <link.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

static const struct {
    struct cld_quirk quirk;
    const char *programs, *libraries; /* patterns, separated by '|' */
} rows[] = {
#define CLD_QUIRK(name, programs, libraries, settings) {{name, settings}, programs, libraries},
#include "quirks_table.h"
#undef CLD_QUIRK
};

enum { ROWS = sizeof rows / sizeof *rows };

static const char *file_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* A pattern has at most one '*', which stands for anything. */
static bool matches(const char *pattern, size_t size, const char *name) {
    const char *star = memchr(pattern, '*', size);
    size_t length = strlen(name), before = star ? (size_t)(star - pattern) : size;
    size_t after = star ? size - before - 1 : 0;
    if (length < before + after || (!star && length != size))
        return false;
    return !memcmp(pattern, name, before) && !memcmp(pattern + size - after, name + length - after, after);
}

static bool matches_any(const char *patterns, const char *name) {
    while (*patterns) {
        size_t size = strcspn(patterns, "|");
        if (matches(patterns, size, name))
            return true;
        patterns += size + (patterns[size] == '|');
    }
    return false;
}

static int look_at_library(struct dl_phdr_info *info, size_t size, void *found) {
    (void)size;
    const char *name = info->dlpi_name ? file_name(info->dlpi_name) : "";
    for (int i = 0; i < ROWS && *name; i++) {
        if (matches_any(rows[i].libraries, name)) {
            *(const struct cld_quirk **)found = &rows[i].quirk;
            return 1;
        }
    }
    return 0;
}

struct cld_quirk cld_find_quirk(void) {
    static const struct cld_quirk none = {"", ""};
    char path[4096];
    ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
    path[size > 0 ? size : 0] = 0;
    for (int i = 0; i < ROWS; i++) {
        if (matches_any(rows[i].programs, file_name(path)))
            return rows[i].quirk;
    }
    const struct cld_quirk *found = &none;
    dl_iterate_phdr(look_at_library, &found);
    return *found;
}

const char *cld_quirk_text(const char *settings, const char *name, size_t *size) {
    size_t length = strlen(name);
    for (const char *line = settings; *line; line += strcspn(line, "\n") + 1) {
        if (!strncmp(line, name, length) && line[length] == '=') {
            *size = strcspn(line + length + 1, "\n");
            return line + length + 1;
        }
    }
    return NULL;
}
