/* Reads the environment once, by the generated table. */
#define _GNU_SOURCE
#include "settings.h"

#include <ctype.h>
#include <pthread.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *type, *default_text;
    const char *choices; /* separated by '|' */
    const char *pattern; /* a regular expression, or empty */
} rows[] = {
#define CLD_SETTING(name, type, default_text, choices, pattern) {#name, type, default_text, choices, pattern},
#include "settings_table.h"
#undef CLD_SETTING
};

static const char *texts[CLD_SETTING_COUNT];
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

static bool is_choice(const char *choices, const char *text) {
    size_t size = strlen(text);
    for (const char *at = choices; *at;) {
        size_t length = strcspn(at, "|");
        if (length == size && !memcmp(at, text, size))
            return true;
        at += length + (at[length] == '|');
    }
    return false;
}

static bool matches(const char *pattern, const char *text) {
    regex_t compiled;
    if (regcomp(&compiled, pattern, REG_EXTENDED | REG_NOSUB))
        return false;
    bool found = !regexec(&compiled, text, 0, NULL, 0);
    regfree(&compiled);
    return found;
}

static bool valid(int i, const char *text) {
    int64_t value;
    if (*rows[i].pattern && !matches(rows[i].pattern, text))
        return false;
    if (!strcmp(rows[i].type, "integer"))
        return integer(text, &value);
    if (!strcmp(rows[i].type, "flag"))
        return !strcmp(text, "0") || !strcmp(text, "1");
    return strcmp(rows[i].type, "choice") || is_choice(rows[i].choices, text);
}

/* Copies, because a program's setenv may free or overwrite what getenv returned. */
static void read_environment(void) {
    for (int i = 0; i < CLD_SETTING_COUNT; i++) {
        const char *text = secure_getenv(rows[i].name); /* not for set-user-ID programs */
        const char *copy = text && *text && valid(i, text) ? strdup(text) : NULL;
        texts[i] = copy ? copy : rows[i].default_text;
    }
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
