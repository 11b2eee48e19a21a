/* Reads the environment once, by the generated table. */
#define _GNU_SOURCE
#include "base/settings.h"

#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

static const struct {
    const char *name, *type, *default_text;
    const char *choices; /* separated by '|' */
} rows[] = {
#define CLD_SETTING(name, type, default_text, choices) {#name, type, default_text, choices},
#include "settings_table.h"
#undef CLD_SETTING
};

static const char *texts[CLD_SETTING_COUNT];
static struct cld_quirk quirk = {"", ""};
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Decimal digits with an optional K, M, G or T; false for anything else. */
static bool integer(const char *text, int64_t *value) {
    char *end;
    if (!isdigit((unsigned char)*text))
        return false;
    unsigned long long number = strtoull(text, &end, 10);
    static const char suffixes[] = "KMGT";
    const char *suffix = *end ? strchr(suffixes, toupper((unsigned char)*end)) : NULL;
    unsigned shift = suffix ? 10 * (unsigned)(suffix - suffixes + 1) : 0;
    if (end[suffix ? 1 : 0] || number > (unsigned long long)INT64_MAX >> shift)
        return false;
    *value = (int64_t)(number << shift);
    return true;
}

static bool is_choice(const char *choices, const char *text, size_t size) {
    for (const char *at = choices; *at;) {
        size_t length = strcspn(at, "|");
        if (length == size && !memcmp(at, text, size))
            return true;
        at += length + (at[length] == '|');
    }
    return false;
}

static bool are_choices(const char *choices, const char *text) {
    for (;; text++) {
        size_t size = strcspn(text, ",");
        if (!is_choice(choices, text, size))
            return false;
        text += size;
        if (!*text)
            return true;
    }
}

/* name=choice, with commas between them. */
static bool is_table(const char *choices, const char *text) {
    for (;; text++) {
        size_t name = strcspn(text, "=,");
        if (!name || text[name] != '=')
            return false;
        text += name + 1;
        size_t size = strcspn(text, ",");
        if (!is_choice(choices, text, size))
            return false;
        text += size;
        if (!*text)
            return true;
    }
}

/* No regular expressions: they may take 12 KiB of stack, and the host's thread may have no more than 16. */
static bool valid(int i, const char *text) {
    int64_t value;
    if (!strcmp(rows[i].type, "integer"))
        return integer(text, &value);
    if (!strcmp(rows[i].type, "flag"))
        return !strcmp(text, "0") || !strcmp(text, "1");
    if (!strcmp(rows[i].type, "list"))
        return are_choices(rows[i].choices, text);
    if (!strcmp(rows[i].type, "table"))
        return is_table(rows[i].choices, text);
    return strcmp(rows[i].type, "choice") || is_choice(rows[i].choices, text, strlen(text));
}

bool cld_is_trusted(void) {
    return !getauxval(AT_SECURE); /* the kernel's answer at exec, which nothing changes */
}

/* Copies, because a program's setenv may free or overwrite what getenv returned. */
static void read_environment(void) {
    bool is_given[CLD_SETTING_COUNT];
    for (int i = 0; i < CLD_SETTING_COUNT; i++) {
        const char *text = cld_is_trusted() ? getenv(rows[i].name) : NULL;
        const char *copy = text && *text && valid(i, text) ? strdup(text) : NULL;
        texts[i] = copy ? copy : rows[i].default_text;
        is_given[i] = copy;
    }
    if (!cld_is_trusted() || strcmp(texts[CL_DRIVER_QUIRKS_SETTING], "1"))
        return;
    quirk = cld_find_quirk();
    for (int i = 0; i < CLD_SETTING_COUNT; i++) {
        size_t size = 0;
        const char *text = is_given[i] ? NULL : cld_quirk_text(quirk.settings, rows[i].name, &size);
        const char *copy = text ? strndup(text, size) : NULL;
        texts[i] = copy ? copy : texts[i];
    }
}

const struct cld_quirk *cld_quirk(void) {
    pthread_once(&once, read_environment);
    return &quirk;
}

const char *cld_setting(enum cld_setting setting) {
    pthread_once(&once, read_environment);
    return texts[setting];
}

int64_t cld_setting_int(enum cld_setting setting, int64_t otherwise) {
    int64_t value;
    return integer(cld_setting(setting), &value) ? value : otherwise;
}

bool cld_setting_is(enum cld_setting setting, const char *text) {
    return !strcmp(cld_setting(setting), text);
}
