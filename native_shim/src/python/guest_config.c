/* Reads cl_driver.conf, which lies beside libcl_driver.so: "key=value" lines; see native_shim/gen/embed.py.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/settings.h"
#include "python/guest.h"
#include "python/installation.h"
#include "shared.h"

static struct cld_guest_config config;
static bool loaded;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* A path, relative ones from the library's folder. */
static char *path_of(const char *text) {
    char *path = NULL;
    if (*text == '/')
        return strdup(text);
    return asprintf(&path, "%s/%s", config.directory, text) < 0 ? NULL : path;
}

static bool set(const char *key, const char *value) {
    char **text = !strcmp(key, "version")  ? &config.version
                  : !strcmp(key, "python") ? &config.python
                  : !strcmp(key, "home")   ? &config.home
                                           : NULL;
    if (text)
        return (*text = strdup(value)) != NULL;
    if (!strcmp(key, "library_path"))
        return asprintf(&config.library_path, "LD_LIBRARY_PATH=%s", value) >= 0;
    if (!strcmp(key, "libpython"))
        return (config.libpython = *value ? path_of(value) : strdup("")) != NULL;
    if (!strcmp(key, "stdlib") && config.stdlib_count < CLD_GUEST_PATHS)
        return (config.stdlib[config.stdlib_count++] = path_of(value)) != NULL;
    if (!strcmp(key, "path") && config.path_count < CLD_GUEST_PATHS)
        return (config.path[config.path_count++] = path_of(value)) != NULL;
    return true;
}

static bool parse(FILE *file) {
    static char line[8192]; /* under once; threads of hosts may have small stacks */
    bool good = true;
    while (good && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        char *value = strchr(line, '=');
        if (!value)
            continue;
        *value++ = 0;
        good = set(line, value);
    }
    if (good && !config.python)
        return cld_find_installation(&config);
    return good && config.version && config.home && config.libpython;
}

static void load(void) {
    Dl_info here;
    char *file_name = NULL;
    if (!dladdr((void *)(uintptr_t)load, &here) || !(config.directory = realpath(here.dli_fname, NULL)))
        return;
    *strrchr(config.directory, '/') = 0;
    if (asprintf(&file_name, "%s/cl_driver.conf", config.directory) < 0)
        return;
    FILE *file = fopen(file_name, "re");
    if (file) {
        loaded = parse(file);
        fclose(file);
    }
    if (!loaded)
        cld_log(1, "cannot use %s", file_name);
    free(file_name);
}

const struct cld_guest_config *cld_guest_config(void) {
    pthread_once(&once, load);
    return loaded ? &config : NULL;
}

char **cld_helper_environment(char *const *environment) {
    static const char *const dropped[] = {"LD_LIBRARY_PATH=", "LD_PRELOAD=", "LD_AUDIT="};
    static const char *const fixed[] = {CLD_FIXED_ENVIRONMENT, NULL};
    size_t count = 0, at = 0;
    if (!cld_is_trusted())
        environment = (char *const *)fixed;
    while (environment[count])
        count++;
    char **kept = calloc(count + 2, sizeof *kept);
    for (size_t i = 0; kept && i < count && environment[i]; i++) {
        bool keep = true;
        for (size_t d = 0; d < sizeof dropped / sizeof *dropped; d++)
            keep &= strncmp(environment[i], dropped[d], strlen(dropped[d])) != 0;
        if (keep)
            kept[at++] = environment[i];
    }
    const struct cld_guest_config *recorded = cld_guest_config();
    if (kept && recorded && recorded->library_path)
        kept[at] = recorded->library_path;
    return kept;
}
