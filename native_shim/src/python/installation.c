/* Finds the Python of an installed package by where the package is, and where Pythons of that version keep
 * their library: a wheel is not to know whose machine it comes to. What the build of a working tree has
 * recorded (cl_driver.conf) is not looked for. */
#define _GNU_SOURCE
#include "python/installation.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/settings.h"
#include "python/embed.h"

#if defined(__x86_64__)
#define MULTIARCH_FOLDER "lib/x86_64-linux-gnu"
#elif defined(__aarch64__)
#define MULTIARCH_FOLDER "lib/aarch64-linux-gnu"
#endif

/* A path, if there is something that may be used in this way (R_OK, X_OK); else NULL. To be freed. */
__attribute__((format(printf, 2, 3))) static char *usable(int how, const char *format, ...) {
    char *path = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&path, format, arguments);
    va_end(arguments);
    if (length < 0)
        return NULL;
    if (!euidaccess(path, how))
        return path;
    free(path);
    return NULL;
}

/* The folder that holds a file or folder; NULL for what lies in the root. To be freed. */
static char *parent(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash && slash > path ? strndup(path, (size_t)(slash - path)) : NULL;
}

static bool is_version(const char *text) {
    return text[0] == '3' && text[1] == '.' && text[2] >= '0' && text[2] <= '9';
}

/* "3.11" of PREFIX/lib/python3.11/site-packages, and PREFIX; false for folders of other forms. */
static bool by_folder(const char *site, char **version, char **prefix) {
    static const char name[] = "/python";
    char *versioned = parent(site), *library = versioned ? parent(versioned) : NULL;
    const char *last = library ? versioned + strlen(library) : "";
    if (!strncmp(last, name, sizeof name - 1) && is_version(last + sizeof name - 1)) {
        *version = strdup(last + sizeof name - 1);
        *prefix = parent(library);
        if (!*prefix)
            *prefix = strdup("");
    }
    free(library);
    free(versioned);
    return *version && *prefix;
}

/* The version that cffi's extension module in the folder is for (pip install --target). */
static char *by_extension_module(const char *site) {
    static const char name[] = "_cffi_backend.cpython-3";
    char *version = NULL;
    DIR *folder = opendir(site);
    for (struct dirent *entry; folder && !version && (entry = readdir(folder));) {
        const char *minor = entry->d_name + sizeof name - 1;
        if (!strncmp(entry->d_name, name, sizeof name - 1) &&
            asprintf(&version, "3.%.*s", (int)strcspn(minor, "-."), minor) < 0)
            version = NULL;
    }
    if (folder)
        closedir(folder);
    return version;
}

/* Takes the folders of a Python's library below a prefix; false where they are not there. */
static bool take_prefix(struct cld_guest_config *config, const char *prefix) {
    static const char *const folders[] = {"lib", "lib64", MULTIARCH_FOLDER};
    enum { FOLDERS = sizeof folders / sizeof *folders };
    const char *version = config->version;
    for (size_t i = 0; i < FOLDERS && !config->stdlib_count; i++) {
        char *landmark = usable(R_OK, "%s/%s/python%s/encodings/__init__.py", prefix, folders[i], version);
        char *encodings = landmark ? parent(landmark) : NULL;
        char *library = encodings ? parent(encodings) : NULL;
        char *modules = library ? usable(R_OK, "%s/lib-dynload", library) : NULL;
        if (library) {
            config->home = strdup(prefix);
            config->stdlib[config->stdlib_count++] = library;
        }
        if (modules)
            config->stdlib[config->stdlib_count++] = modules;
        free(encodings);
        free(landmark);
    }
    for (size_t i = 0; i < FOLDERS && config->stdlib_count && !config->libpython; i++)
        config->libpython = usable(R_OK, "%s/%s/libpython%s.so.1.0", prefix, folders[i], version);
    return config->stdlib_count && config->home;
}

/* The folder of the Python that a virtual environment was made with: "home = FOLDER" of pyvenv.cfg. */
static char *home_of_environment(const char *prefix) {
    char *path = usable(R_OK, "%s/pyvenv.cfg", prefix), *home = NULL, *line = NULL;
    FILE *file = path ? fopen(path, "re") : NULL;
    size_t size = 0;
    while (file && !home && getline(&line, &size, file) > 0) {
        int start = 0;
        line[strcspn(line, "\r\n")] = 0;
        if (sscanf(line, " home = %n", &start) != EOF && start && line[start] == '/')
            home = strdup(line + start);
    }
    if (file)
        fclose(file);
    free(line);
    free(path);
    return home;
}

/* Takes an interpreter with its library: below the folder above that of the program that it is in the end, or
 * above that which its virtual environment names. */
static bool take_python(struct cld_guest_config *config, char *python) {
    char *real = python ? realpath(python, NULL) : NULL;
    char *folder = real ? parent(real) : NULL, *prefix = folder ? parent(folder) : NULL;
    bool good = prefix && take_prefix(config, prefix);
    if (!good && python) { /* a copy of the program */
        free(prefix);
        free(folder);
        folder = parent(python);
        prefix = folder ? parent(folder) : NULL;
        char *home = prefix ? home_of_environment(prefix) : NULL, *above = home ? parent(home) : NULL;
        good = above && take_prefix(config, above);
        free(above);
        free(home);
    }
    if (good)
        config->python = python;
    else
        free(python);
    free(prefix);
    free(folder);
    free(real);
    return good;
}

/* The Python that this process is, if its program has the name. */
static char *of_process(const char *version) {
    char *program = realpath("/proc/self/exe", NULL), *name = NULL;
    const char *slash = program ? strrchr(program, '/') : NULL;
    bool is = slash && asprintf(&name, "/python%s", version) >= 0 && !strcmp(slash, name);
    free(name);
    if (is)
        return program;
    free(program);
    return NULL;
}

static bool find_in(struct cld_guest_config *config, const char *folders) {
    for (const char *at = folders; *at;) {
        size_t length = strcspn(at, ":");
        if (*at == '/' &&
            take_python(config, usable(X_OK, "%.*s/python%s", (int)length, at, config->version)))
            return true;
        at += length + (at[length] == ':');
    }
    return false;
}

bool cld_find_installation(struct cld_guest_config *config) {
    char *package = parent(config->directory), *site = package ? parent(package) : NULL, *prefix = NULL;
    const char *path = getenv("PATH");
    if (site && !by_folder(site, &config->version, &prefix) && !config->version)
        config->version = by_extension_module(site);
    bool found =
        config->version &&
        ((prefix && take_python(config, usable(X_OK, "%s/bin/python%s", prefix, config->version))) ||
         (cld_is_trusted() && take_python(config, of_process(config->version))) ||
         (cld_is_trusted() && path && find_in(config, path)) || find_in(config, "/usr/local/bin:/usr/bin"));
    if (!found)
        cld_log(1, "no Python %s for the package in %s", config->version ? config->version : "3",
                site ? site : "/");
    free(prefix);
    free(site);
    free(package);
    /* Where an embedding is not for this version, or there is no shared library, a process serves. */
    char *embed = found ? usable(R_OK, CLD_EMBED_FILE, config->directory, config->version) : NULL;
    if (found && (!embed || !config->libpython)) {
        free(config->libpython);
        config->libpython = strdup("");
    }
    free(embed);
    return found && config->libpython;
}
