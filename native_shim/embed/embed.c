/* The part of _cl_driver_embed.so that cffi does not write: starting Python, joining it, forking under it.
 * This file is included in the module's source (native_shim/gen/embed.py). It is not linked to libpython: the
 * symbols are those of the Python that is in the process, or that guest.c opened. */
#include <Python.h>

#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "embed.h"

#define VISIBLE __attribute__((visibility("default")))

static struct cld_embed_config host; /* its functions only: the strings are the caller's */

static int cld_embed_answer(void *reply, const void *bytes, size_t size) {
    return host.answer(reply, bytes, size) ? 0 : -1;
}

static int cld_embed_spawn(char **argv, char **envp, int socket_type) {
    return host.spawn(argv, envp, socket_type);
}

static bool append_paths(PyWideStringList *list, size_t count, char *const *paths) {
    for (size_t i = 0; i < count; i++) {
        wchar_t *path = Py_DecodeLocale(paths[i], NULL);
        PyStatus status = path ? PyWideStringList_Append(list, path) : PyStatus_NoMemory();
        PyMem_RawFree(path);
        if (PyStatus_Exception(status))
            return false;
    }
    return true;
}

static PyStatus set_string(PyConfig *config, wchar_t **field, const char *text) {
    return PyConfig_SetBytesString(config, field, text);
}

/* A Python that takes nothing from its surroundings: no environment, no site, no locale, no signal handlers,
 * no touch of the C standard streams. Leaves the GIL free. */
static int initialise(const struct cld_embed_config *embed) {
    PyPreConfig before;
    PyPreConfig_InitIsolatedConfig(&before);
    before.utf8_mode = 1; /* paths and options are bytes of the host's; LC_CTYPE is not ours to set */
    PyStatus status = Py_PreInitialize(&before);
    PyConfig config;
    PyConfig_InitIsolatedConfig(&config);
    config.site_import = 0;
    config.install_signal_handlers = 0;
    config.pathconfig_warnings = 0;
    config.parse_argv = 0;
    config.faulthandler = 0;
    config.module_search_paths_set = 1;
    if (!PyStatus_Exception(status))
        status = set_string(&config, &config.program_name, embed->python);
    if (!PyStatus_Exception(status))
        status = set_string(&config, &config.executable, embed->python);
    if (!PyStatus_Exception(status))
        status = set_string(&config, &config.home, embed->home);
    if (!PyStatus_Exception(status) &&
        !(append_paths(&config.module_search_paths, embed->stdlib_count, embed->stdlib) &&
          append_paths(&config.module_search_paths, embed->path_count, embed->path)))
        status = PyStatus_NoMemory();
    if (!PyStatus_Exception(status))
        status = Py_InitializeFromConfig(&config);
    PyConfig_Clear(&config);
    if (PyStatus_Exception(status)) {
        embed->log(status.err_msg ? status.err_msg : "Python cannot be initialised");
        return -1;
    }
    /* The first import of _signal takes SIGINT whatever the configuration says. Later ones find it imported.
     */
    struct sigaction interrupt;
    sigaction(SIGINT, NULL, &interrupt);
    PyObject *module = PyImport_ImportModule("_signal");
    sigaction(SIGINT, &interrupt, NULL);
    Py_XDECREF(module);
    PyErr_Clear();
    PyEval_SaveThread();
    return 0;
}

/* Logs and clears the exception of the Python call that just failed. */
static void log_exception(const struct cld_embed_config *embed) {
    PyObject *kind, *value, *trace;
    PyErr_Fetch(&kind, &value, &trace);
    PyObject *text = value ? PyObject_Str(value) : NULL;
    const char *utf8 = text ? PyUnicode_AsUTF8(text) : NULL;
    embed->log(utf8 ? utf8 : "the control plane cannot be imported");
    PyErr_Clear();
    Py_XDECREF(text);
    Py_XDECREF(kind);
    Py_XDECREF(value);
    Py_XDECREF(trace);
}

/* Imports everything that cffi's initialisation is going to, which could only print of failures. A Python
 * that is the host's sees our folders only meanwhile, and last, so that its own modules are found first. */
static int import_control_plane(const struct cld_embed_config *embed) {
    PyGILState_STATE gil = PyGILState_Ensure();
    /* The host may be in the middle of an exception. */
    PyObject *kind, *value, *trace;
    PyErr_Fetch(&kind, &value, &trace);
    PyObject *path = PySys_GetObject("path"), *before = NULL;
    bool good = path && PyList_Check(path);
    if (good && embed->join) {
        before = PyList_GetSlice(path, 0, PyList_GET_SIZE(path));
        good = before != NULL;
        for (size_t i = 0; good && i < embed->path_count; i++) {
            PyObject *folder = PyUnicode_DecodeFSDefault(embed->path[i]);
            good = folder && !PyList_Append(path, folder);
            Py_XDECREF(folder);
        }
    }
    const char *const modules[] = {"_cffi_backend", "cl_driver.door.embedded"};
    for (size_t i = 0; good && i < sizeof modules / sizeof *modules; i++) {
        PyObject *module = PyImport_ImportModule(modules[i]);
        good = module != NULL;
        Py_XDECREF(module);
    }
    if (!good)
        log_exception(embed);
    if (before && (PyList_SetSlice(path, 0, PyList_GET_SIZE(path), before) || PyErr_Occurred()))
        PyErr_Clear();
    Py_XDECREF(before);
    PyErr_Restore(kind, value, trace);
    PyGILState_Release(gil);
    return good ? 0 : -1;
}

VISIBLE int cld_embed_start(const struct cld_embed_config *embed) {
    host = *embed;
    if (!embed->join && initialise(embed))
        return -1;
    return import_control_plane(embed);
}

VISIBLE int cld_embed_usable(void) {
#if PY_VERSION_HEX >= 0x030d0000
    return Py_IsInitialized() && !Py_IsFinalizing();
#else
    return Py_IsInitialized() && !_Py_IsFinalizing();
#endif
}

/* Whether this thread has the GIL. PyGILState_Check would say so of every thread once there are
 * sub-interpreters, whose thread states PyGILState_GetThisThreadState does not know. */
static bool holds_gil(void) {
#if PY_VERSION_HEX >= 0x030d0000
    PyThreadState *state = PyThreadState_GetUnchecked();
#else
    PyThreadState *state = _PyThreadState_UncheckedGet();
#endif
    return state && state->thread_id == PyThread_get_thread_ident();
}

VISIBLE void *cld_embed_release(void) {
    return Py_IsInitialized() && holds_gil() ? PyEval_SaveThread() : NULL;
}

VISIBLE void cld_embed_take(void *state) {
    if (state)
        PyEval_RestoreThread(state);
}

/* Whether another thread is in the middle of an import. */
static bool others_import(void) {
    PyObject *door = PyDict_GetItemString(PyImport_GetModuleDict(), "cl_driver.door.embedded");
    PyObject *answer = door ? PyObject_CallMethod(door, "imports_elsewhere", NULL) : NULL;
    bool is = answer && PyObject_IsTrue(answer) == 1;
    PyErr_Clear();
    Py_XDECREF(answer);
    return is;
}

/* Between PyOS_BeforeFork and the fork. */
static void wait_for_imports(void) {
    enum { LONGEST_IMPORT_S = 10 };
    struct timespec now, start;
    clock_gettime(CLOCK_MONOTONIC, &start);
    while (others_import()) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec - start.tv_sec > LONGEST_IMPORT_S) {
            host.log("fork: another thread is still importing a module; the child may wait for it in vain");
            return;
        }
        PyOS_AfterFork_Parent();
        PyThreadState *state = PyEval_SaveThread();
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        PyEval_RestoreThread(state);
        PyOS_BeforeFork();
    }
}

/* fork must not happen while another thread is inside Python: it takes the GIL, as os.fork would. Nor while
 * one imports a module, which lets the GIL go: the module's lock would stay locked in the child. */
VISIBLE void cld_embed_fork(int step) {
    static PyGILState_STATE gil;
    switch (step) {
    case 0:
        gil = PyGILState_Ensure();
        PyOS_BeforeFork();
        wait_for_imports();
        break;
    case 1:
        PyOS_AfterFork_Parent();
        PyGILState_Release(gil);
        break;
    default:
        PyOS_AfterFork_Child();
        /* This thread's state is the only one left, and has to stay: CPython reuses its first one when there
         * is none, and takes that to be a mistake. */
        if (gil == PyGILState_UNLOCKED)
            PyEval_SaveThread();
        else
            PyGILState_Release(gil);
    }
}
