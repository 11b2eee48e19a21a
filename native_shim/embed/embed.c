/* The part of _cl_driver_embed-VERSION.so that cffi does not write: starting Python, joining it, forking
 * under it. It is not linked to libpython: the symbols are those of the Python that is in the process, or
 * that python/guest.c opened.
 *
 * The bindings (native_shim/gen/embed.py) are an ordinary extension module of cffi's, which is made here,
 * with the GIL. cffi's own embedding has a lock within PyCapsule_Type, for processes that start Python from
 * several libraries: a Python that has looked up an attribute of a capsule would wait for it for ever. */
#include <Python.h>

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "embed_start.h"
#include "python/embed.h"
#include "python/embed_bindings.h"

#define VISIBLE __attribute__((visibility("default")))

PyMODINIT_FUNC PyInit__cl_driver_embed(void);

static struct cld_embed_config host; /* its functions only: the strings are the caller's */
static PyObject *embedded;           /* cl_driver/door/embedded.py, once it is registered; never freed */
static _Atomic bool ended;           /* the Python that `embedded` belongs to */

int cld_embed_answer(void *reply, const void *bytes, size_t size) {
    return host.answer(reply, bytes, size) ? 0 : -1;
}

int cld_embed_spawn(char **argv, char **envp, int socket_type) {
    return host.spawn(argv, envp, socket_type);
}

int cld_embed_has_own_descriptors(void) {
    return host.has_own_descriptors();
}

int cld_embed_may_change_root(void) {
    return host.may_change_root();
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

static PyObject *folders(const struct cld_embed_config *embed) {
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < embed->path_count; i++) {
        PyObject *folder = PyUnicode_DecodeFSDefault(embed->path[i]);
        if (!folder || PyList_Append(list, folder))
            Py_CLEAR(list);
        Py_XDECREF(folder);
    }
    return list;
}

/* embed/start.py's names, or NULL. */
static PyObject *run_start(void) {
    PyObject *names = PyDict_New();
    PyObject *code = Py_CompileString(start_text, "<cl_driver>", Py_file_input);
    bool good = names && code && !PyDict_SetItemString(names, "__builtins__", PyEval_GetBuiltins());
    PyObject *nothing = good ? PyEval_EvalCode(code, names, names) : NULL;
    if (!nothing)
        Py_CLEAR(names);
    Py_XDECREF(nothing);
    Py_XDECREF(code);
    return names;
}

static PyObject *call(PyObject *names, const char *function, PyObject *argument) {
    return PyObject_CallFunctionObjArgs(PyDict_GetItemString(names, function), argument, NULL);
}

static PyObject *new_backend(PyObject *spec) {
    PyObject *imp = PyImport_ImportModule("_imp");
    PyObject *module = imp ? PyObject_CallMethod(imp, "create_dynamic", "O", spec) : NULL;
    PyObject *nothing = module ? PyObject_CallMethod(imp, "exec_dynamic", "O", module) : NULL;
    if (!nothing)
        Py_CLEAR(module);
    Py_XDECREF(nothing);
    Py_XDECREF(imp);
    return module;
}

static void forget_module(const char *name) {
    PyObject *modules = PyImport_GetModuleDict();
    if (PyDict_GetItemString(modules, name))
        PyDict_DelItemString(modules, name);
}

/* The module with `ffi` and `lib`. Its first function takes _cffi_backend from sys.modules, so ours is there
 * meanwhile: no bytecode runs before the host's, or none, is there again. */
static PyObject *make_bindings(PyObject *backend) {
    static const char name[] = "_cffi_backend";
    bool is_theirs = PyModule_Check(backend);
    PyObject *modules = PyImport_GetModuleDict();
    PyObject *theirs = PyDict_GetItemString(modules, name);
    Py_XINCREF(theirs);
    PyObject *ours = is_theirs ? Py_NewRef(backend) : new_backend(backend);
    bool good = ours && !PyDict_SetItemString(modules, name, ours);
    PyObject *bindings = good ? PyInit__cl_driver_embed() : NULL;
    PyObject *kind, *value, *trace;
    PyErr_Fetch(&kind, &value, &trace);
    if (theirs)
        PyDict_SetItemString(modules, name, theirs);
    else
        forget_module(name);
    forget_module("_cl_driver_embed");
    forget_module("_cl_driver_embed.lib");
    PyErr_Restore(kind, value, trace);
    Py_XDECREF(ours);
    Py_XDECREF(theirs);
    return bindings;
}

/* Whether embed/start.py finds nothing in the host's sys.path that our imports would get instead. */
static bool nothing_hides(PyObject *names) {
    PyObject *path = call(names, "hides_stdlib", NULL);
    bool nothing = path && !PyObject_IsTrue(path);
    if (path && !nothing)
        PyErr_Format(PyExc_ImportError, "%U has the name of a module of the standard library", path);
    Py_XDECREF(path);
    return nothing;
}

static PyObject *import_control_plane(const struct cld_embed_config *embed) {
    PyObject *names = run_start(), *paths = folders(embed), *door = NULL;
    bool good = names && paths && (!embed->join || nothing_hides(names));
    PyObject *backend = good ? call(names, "backend", paths) : NULL;
    PyObject *bindings = backend ? make_bindings(backend) : NULL;
    PyObject *ffi = bindings ? PyObject_GetAttrString(bindings, "ffi") : NULL;
    PyObject *lib = ffi ? PyObject_GetAttrString(bindings, "lib") : NULL;
    PyObject *quirk = lib ? PyUnicode_FromString(embed->quirk) : NULL;
    PyObject *python = quirk ? PyUnicode_DecodeFSDefault(embed->python) : NULL;
    good = python && !PyDict_SetItemString(names, "trusted", embed->trusted ? Py_True : Py_False) &&
           !PyDict_SetItemString(names, "python", python) && !PyDict_SetItemString(names, "quirk", quirk);
    if (good && (door = call(names, "control_plane", paths))) {
        PyObject *nothing = PyObject_CallMethod(door, "register", "OO", ffi, lib);
        if (!nothing)
            Py_CLEAR(door);
        Py_XDECREF(nothing);
    }
    Py_XDECREF(python);
    Py_XDECREF(quirk);
    Py_XDECREF(lib);
    Py_XDECREF(ffi);
    Py_XDECREF(bindings);
    Py_XDECREF(backend);
    Py_XDECREF(paths);
    Py_XDECREF(names);
    return door;
}

static void mark_ended(void) {
    ended = true;
}

VISIBLE int cld_embed_start(const struct cld_embed_config *embed) {
    host = *embed;
    if (!embed->join && initialise(embed))
        return -1;
    PyGILState_STATE gil = PyGILState_Ensure();
    /* The host may be in the middle of an exception. */
    PyObject *kind, *value, *trace;
    PyErr_Fetch(&kind, &value, &trace);
    embedded = import_control_plane(embed);
    if (!embedded)
        log_exception(embed);
    else
        Py_AtExit(mark_ended);
    PyErr_Restore(kind, value, trace);
    PyGILState_Release(gil);
    return embedded ? 0 : -1;
}

VISIBLE int cld_embed_serve(const uint8_t *request, size_t size, void *reply) {
    return embedded ? cld_embed_call(request, size, reply) : -1;
}

VISIBLE int cld_embed_usable(void) {
    if (ended) /* there may be another Python by now, which knows nothing of us */
        return 0;
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

/* Where PyGILState_Ensure leads to: in a thread of a sub-interpreter's that may be there. */
VISIBLE int cld_embed_in_main(void) {
    PyThreadState *state = PyGILState_GetThisThreadState();
    return !state || PyThreadState_GetInterpreter(state) == PyInterpreterState_Main();
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
    PyObject *answer = embedded ? PyObject_CallMethod(embedded, "imports_elsewhere", NULL) : NULL;
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
