/* Decides once how this process reaches Python: embeds one, joins the one that is there, or asks a runtime
 * process (cl_driver/door/README.md has the table). */
#define _GNU_SOURCE
#include "python/guest.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/settings.h"
#include "base/thread.h"
#include "python/embed.h"
#include "python/spawn.h"

enum way { UNDECIDED, EMBEDDED, JOINED, PROCESS, FAILED };
static _Atomic int way;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool joinable; /* the process's own Python is of our version */
static _Atomic bool joining;  /* its start in there has begun */
static bool fork_has_lock;    /* from before_fork to after_fork */
static enum way way_at_fork;

/* What _cl_driver_embed-VERSION.so offers, once it is loaded. */
static struct {
    cld_embed_start_fn *start;
    cld_embed_serve_fn *serve;
    cld_embed_usable_fn *usable;
    cld_embed_fork_fn *fork;
    cld_embed_in_main_fn *in_main;
    cld_embed_release_fn *release;
    cld_embed_take_fn *take;
} python;

static bool append(void *reply, const void *bytes, size_t size) {
    void *place = cld_msg_grow(reply, size);
    if (place && size)
        memcpy(place, bytes, size);
    return place != NULL;
}

static void log_text(const char *text) {
    cld_log(1, "%s", text);
}

/* Loads _cl_driver_embed-VERSION.so, into a process that has the symbols of Python. No Python code runs. */
static bool load_embed(const struct cld_guest_config *config) {
    static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
    static bool loaded;
    static const char *const names[] = {
        "cld_embed_start",   "cld_embed_serve",   "cld_embed_usable", "cld_embed_fork",
        "cld_embed_in_main", "cld_embed_release", "cld_embed_take",
    };
    void *found[sizeof names / sizeof *names];
    char *path = NULL;
    pthread_mutex_lock(&loading);
    if (!loaded && asprintf(&path, CLD_EMBED_FILE, config->directory, config->version) >= 0) {
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        loaded = library != NULL;
        for (size_t i = 0; loaded && i < sizeof names / sizeof *names; i++)
            loaded = (found[i] = dlsym(library, names[i])) != NULL;
        if (loaded)
            memcpy(&python, found, sizeof python); /* ISO C has no cast from data to functions; POSIX has */
        else if (library || !access(path, F_OK))
            cld_log(1, "%s", dlerror());
        else /* a package has it for some Pythons; a process serves the others */
            cld_log(cld_setting_is(CL_DRIVER_RUNTIME_SETTING, "embedded") ? 1 : 2,
                    "no embedding for Python %s is installed", config->version);
        free(path);
    }
    pthread_mutex_unlock(&loading);
    return loaded;
}

struct starting {
    const struct cld_guest_config *config;
    bool join;
    bool good;
};

static void start_embed(void *argument) {
    struct starting *starting = argument;
    const struct cld_guest_config *config = starting->config;
    struct cld_embed_config embed = {
        .join = starting->join,
        .trusted = cld_is_trusted(),
        .quirk = cld_quirk()->settings,
        .python = config->python,
        .home = config->home,
        .stdlib_count = config->stdlib_count,
        .stdlib = config->stdlib,
        .path_count = config->path_count,
        .path = config->path,
        .answer = append,
        .spawn = cld_spawn,
        .has_own_descriptors = cld_has_own_descriptors,
        .may_change_root = cld_may_change_root,
        .log = log_text,
    };
    starting->good = python.start(&embed) == 0;
}

enum presence { NO_PYTHON, OUR_VERSION, OTHER_PYTHON };

/* Which Python this process is, or has been given. Nothing but its version is asked before that is known. */
static enum presence find_python(const struct cld_guest_config *config) {
    const char *(*get_version)(void) = (const char *(*)(void))(uintptr_t)dlsym(RTLD_DEFAULT, "Py_GetVersion");
    int (*initialised)(void) = (int (*)(void))(uintptr_t)dlsym(RTLD_DEFAULT, "Py_IsInitialized");
    if (!get_version)
        return NO_PYTHON;
    const char *version = get_version();
    size_t length = strlen(config->version);
    bool same =
        !strncmp(version, config->version, length) && (version[length] < '0' || version[length] > '9');
    /* Its objects are laid out in another way, and sys.modules may change in the middle of our start. */
    same = same && !strstr(version, "free-threading");
    return same && initialised && initialised() ? OUR_VERSION : OTHER_PYTHON;
}

/* Runs function(argument) for a Python that is the host's. Its main thread is where signal handlers of that
 * Python run: one that raises (Ctrl-C) would do so in our code and be lost, so another thread works for it.
 * The control plane lives in the main interpreter, which threads of others do not reach. And whoever waits
 * for another thread must let it have the GIL. */
static bool in_hosts_python(void (*function)(void *argument), void *argument) {
    void *state = python.release();
    bool other = getpid() == cld_thread_id() || !python.in_main();
    bool done = other ? cld_on_own_thread(function, argument) : cld_with_stack(function, argument);
    python.take(state);
    return done;
}

static int names_libpython(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size, (void)data;
    const char *slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
    return slash && !strncmp(slash, "/libpython", 10);
}

/* Whether the standard library is where it was: a Python that misses it prints its troubles to stderr. */
static bool has_stdlib(const struct cld_guest_config *config) {
    for (size_t i = 0; i < config->stdlib_count; i++) {
        char *path = NULL;
        bool there =
            asprintf(&path, "%s/encodings/__init__.py", config->stdlib[i]) >= 0 && !euidaccess(path, R_OK);
        free(path);
        if (there)
            return true;
    }
    cld_log(1, "the embedded Python's standard library cannot be read");
    return false;
}

/* Starts a Python in a process that has none. Extension modules find libpython's symbols only if it is
 * global, which ICD loaders' RTLD_LOCAL prevents for whatever we are linked to: so it is opened here. */
static enum way embed(const struct cld_guest_config *config) {
    if (!*config->libpython || dl_iterate_phdr(names_libpython, NULL) || !has_stdlib(config))
        return FAILED;
    void *libpython = dlopen(config->libpython, RTLD_NOW | RTLD_GLOBAL);
    if (!libpython) {
        cld_log(1, "%s", dlerror());
        return FAILED;
    }
    struct starting starting = {config, false, false};
    return load_embed(config) && cld_with_stack(start_embed, &starting) && starting.good ? EMBEDDED : FAILED;
}

/* Joins the process's own Python, which is of our version and initialised. */
static enum way join(const struct cld_guest_config *config) {
    struct starting starting = {config, true, false};
    joining = true;
    bool good = load_embed(config) && in_hosts_python(start_embed, &starting) && starting.good;
    joining = good;
    return good ? JOINED : FAILED;
}

/* A host that is a Python gets a runtime process, even where it could be joined: one of its threads may wait,
 * with the GIL, for a lock of another that calls us and would have to wait for the GIL. SYCL's runtime has
 * such threads. It is joined only where no process can be started. */
static enum way decide(const struct cld_guest_config *config, enum presence presence) {
    bool is_free = cld_setting_is(CL_DRIVER_RUNTIME_SETTING, "auto");
    if (cld_setting_is(CL_DRIVER_RUNTIME_SETTING, "process"))
        return PROCESS;
    if (presence == OUR_VERSION && is_free)
        return PROCESS;
    enum way found = presence == NO_PYTHON ? embed(config) : presence == OUR_VERSION ? join(config) : FAILED;
    if (found == FAILED && presence != NO_PYTHON)
        cld_log(1, "the process's own Python cannot be joined");
    return found == FAILED && is_free ? PROCESS : found;
}

/* Whether the host's Python now serves, as no runtime process ever has. */
static bool joined_instead(const struct cld_guest_config *config) {
    if (cld_highest_key || !cld_setting_is(CL_DRIVER_RUNTIME_SETTING, "auto") ||
        find_python(config) != OUR_VERSION || !load_embed(config))
        return false;
    void *state = python.release();
    pthread_mutex_lock(&lock);
    if (way == PROCESS && join(config) == JOINED) {
        way = JOINED;
        cld_log(2, "Python is the host's");
    }
    pthread_mutex_unlock(&lock);
    python.take(state);
    return way == JOINED;
}

static void before_fork(void) {
    /* A Python host forks with the GIL held, and whoever has the lock may be waiting for it. Else the fork
     * waits until another thread has started Python. */
    fork_has_lock = joinable ? !pthread_mutex_trylock(&lock) : !pthread_mutex_lock(&lock);
    way_at_fork = way;
    if (way_at_fork == EMBEDDED)
        python.fork(0);
    else if (way_at_fork == PROCESS)
        cld_runtime_before_fork();
}

static void after_fork_in_parent(void) {
    if (way_at_fork == EMBEDDED)
        python.fork(1);
    else if (way_at_fork == PROCESS)
        cld_runtime_after_fork(false);
    if (fork_has_lock)
        pthread_mutex_unlock(&lock);
}

static void after_fork_in_child(void) {
    if (way_at_fork == EMBEDDED)
        python.fork(2);
    else if (way_at_fork != JOINED && !fork_has_lock && joining)
        way = FAILED; /* another thread was joining: half of that is here, and nobody to finish it */
    else if (way_at_fork == PROCESS)
        cld_runtime_after_fork(true);
    pthread_mutex_init(&lock, NULL);
}

/* Before any thread can be starting Python. */
__attribute__((constructor)) static void watch_forks(void) {
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

static enum way decided(const struct cld_guest_config *config) {
    if (way != UNDECIDED || !config)
        return config ? way : FAILED;
    /* Not under the GIL: whoever has the lock may be waiting for it. */
    enum presence presence = find_python(config);
    bool has_release = presence == OUR_VERSION && load_embed(config);
    void *state = has_release ? python.release() : NULL;
    pthread_mutex_lock(&lock);
    if (way == UNDECIDED) {
        joinable = presence == OUR_VERSION;
        way = decide(config, presence);
        cld_log(2, "Python is %s",
                (const char *[]){"undecided", "embedded", "the host's", "a process", "not to be had"}[way]);
    }
    pthread_mutex_unlock(&lock);
    if (has_release)
        python.take(state);
    return way;
}

struct serving {
    const struct cld_msg *request;
    struct cld_msg *answer;
    bool good;
};

static void serve(void *argument) {
    struct serving *serving = argument;
    serving->good = !python.serve(serving->request->data, serving->request->size, serving->answer) &&
                    serving->answer->size && !serving->answer->failed;
}

bool cld_door_may_change(void) {
    return way == PROCESS;
}

bool cld_guest_exchange(const struct cld_msg *request, struct cld_msg *answer) {
    const struct cld_guest_config *config = cld_guest_config();
    struct serving serving = {request, answer, false};
    switch (decided(config)) {
    case PROCESS:
        if (cld_runtime_exchange(config, request, answer))
            return true;
        if (!joined_instead(config))
            return false;
        cld_msg_free(answer);
        return in_hosts_python(serve, &serving) && serving.good;
    case JOINED:
        if (!python.usable()) {
            cld_log(1, "the host's Python has ended");
            return false;
        }
        return in_hosts_python(serve, &serving) && serving.good;
    case EMBEDDED:
        if (!python.usable()) {
            cld_log(1, "somebody has ended the embedded Python");
            return false;
        }
        return cld_with_descriptors(serve, &serving) && serving.good;
    default:
        cld_log(1, "there is no Python");
        return false;
    }
}
