/* The cluster's devices: connected with once, by the first question for devices. Workers that come later are
 * added by the thread that receives; none is ever taken away. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/settings.h"
#include "cluster/internal.h"
#include "object/object.h"
#include "python/guest.h"
#include "python/spawn.h"

/* Connecting takes several steps, each of which may take as long as a worker may be silent. */
enum { STEPS = 4, SPARE_TIME = 5 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic uint32_t worker_count; /* of the workers that are complete; and so with devices */
static struct cld_worker *workers;
static struct cld_worker whole; /* all of them, where that is a device */
static struct cld_device *devices[CLD_MOST_WORKERS + 1];
static _Atomic uint32_t device_count;
static struct cld_msg hello; /* what answers point into */
static struct cld_device *root_device;

static int64_t timeout(void) {
    int64_t seconds = cld_setting_int(CL_DRIVER_CLUSTER_TIMEOUT_SETTING, 30);
    return seconds < 1 ? 1 : seconds;
}

struct cld_worker *cld_worker_at(uint32_t number) {
    return number < worker_count ? &workers[number] : NULL;
}

uint32_t cld_worker_count(void) {
    return worker_count;
}

struct cld_worker *cld_worker_in(const struct cld_worker_set *set) {
    for (uint32_t i = cld_set_next(set, 0); i < worker_count; i = cld_set_next(set, i + 1))
        if (!workers[i].is_gone)
            return &workers[i];
    return NULL;
}

/* Starts the process that connects. -I: nothing of the host's environment or folders. Its end of a socket, or
 * -1. */
static int start_link(void) {
    static const char code[] =
        "import sys; sys.path[:0] = sys.argv[3:4]; sys.path += sys.argv[4:]; "
        "from cl_driver.cluster.link import main; main(sys.argv[1], float(sys.argv[2]))";
    const struct cld_guest_config *config = cld_guest_config();
    if (!config)
        return -1;
    const char *python = cld_setting(CL_DRIVER_CLUSTER_PYTHON_SETTING);
    char seconds[32];
    snprintf(seconds, sizeof seconds, "%lld", (long long)timeout());
    char *argv[9 + CLD_GUEST_PATHS] = {(char *)(uintptr_t)(*python ? python : config->python),
                                       "-I",
                                       "-X",
                                       "utf8",
                                       "-c",
                                       (char *)(uintptr_t)code,
                                       (char *)(uintptr_t)cld_setting(CL_DRIVER_CLUSTER_SETTING),
                                       seconds};
    for (size_t i = 0; i < config->path_count && i < CLD_GUEST_PATHS; i++)
        argv[8 + i] = config->path[i];
    return cld_spawn(argv, environ, SOCK_STREAM);
}

static void limit(int descriptor, int64_t seconds) {
    const struct timeval time = {.tv_sec = seconds};
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
    setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
}

bool cld_cluster_receive(int descriptor, void *data, size_t size) {
    for (uint8_t *at = data; size;) {
        ssize_t got = recv(descriptor, at, size, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        size -= (size_t)got;
    }
    return true;
}

static bool receive_hello(int descriptor) {
    struct cld_frame_head head;
    if (!cld_cluster_receive(descriptor, &head, sizeof head) || head.worker != CLD_NOBODY || head.count)
        return false;
    cld_msg_init(&hello);
    void *place = cld_msg_grow(&hello, (size_t)head.size);
    return place && cld_cluster_receive(descriptor, place, (size_t)head.size);
}

static uint64_t compute_units(const struct cld_worker *worker) {
    cl_uint units = 0;
    size_t size;
    const void *answer = cld_cluster_answer(worker->device, CL_DEVICE_MAX_COMPUTE_UNITS, &size);
    if (answer && size == sizeof units)
        memcpy(&units, answer, sizeof units);
    return units ? units : 1;
}

static void init_worker(struct cld_worker *worker, uint32_t number) {
    *worker = (struct cld_worker){.number = number};
    worker->newest = &worker->oldest;
    worker->last = &worker->first;
}

/* [[query, value], ...]; they stay where they are in the message. */
static bool read_answers(struct cld_worker *worker, struct cld_msg *msg) {
    worker->answer_count = cld_get_list(msg);
    if (msg->failed || worker->answer_count > msg->size)
        return false;
    worker->answers = calloc((size_t)worker->answer_count + 1, sizeof *worker->answers);
    for (uint32_t i = 0; worker->answers && i < worker->answer_count; i++) {
        struct cld_answer *answer = &worker->answers[i];
        if (cld_get_list(msg) != 2)
            return false;
        answer->query = (cl_device_info)cld_get_int(msg);
        answer->bytes = cld_get_bytes(msg, &answer->size);
    }
    return worker->answers && !msg->failed;
}

/* Its threads are those of this machine's: among thousands of devices each would have threads that hardly
 * ever run. */
static bool make_device(struct cld_worker *worker) {
    const struct cld_device *root = root_device;
    uint32_t *cpus = calloc(root->compute_units, sizeof *cpus);
    struct cld_device *device = cpus ? cld_object_new(CLD_DEVICE) : NULL;
    if (!device) {
        free(cpus);
        return false;
    }
    memcpy(cpus, root->cpus, root->compute_units * sizeof *cpus);
    device->local = root_device;
    device->compute_units = root->compute_units;
    device->cpus = cpus;
    device->worker = worker;
    worker->device = device;
    worker->compute_units = compute_units(worker);
    return true;
}

/* [address, [[query, value], ...]]; without an address it is all of them. */
static bool read_worker(struct cld_worker *worker, uint32_t number) {
    size_t size;
    init_worker(worker, number);
    if (cld_get_list(&hello) != 2)
        return false;
    cld_get_bytes(&hello, &size); /* the address, which is for the log of the other process */
    worker->is_whole = !size;
    worker->is_in_whole = size;
    return read_answers(worker, &hello) && make_device(worker);
}

static void read_workers(void) {
    struct cld_worker *worker = workers;
    while (hello.at < hello.size && device_count <= CLD_MOST_WORKERS && !whole.is_whole) {
        if (!read_worker(worker, worker_count))
            return;
        if (worker->is_whole) {
            whole = *worker;
            whole.device->worker = &whole;
        } else {
            worker = &workers[++worker_count];
        }
        devices[device_count] = whole.is_whole ? whole.device : workers[device_count].device;
        device_count++;
    }
}

static void connect_cluster(void) {
    if (!*cld_setting(CL_DRIVER_CLUSTER_SETTING))
        return;
    int descriptor = start_link();
    if (descriptor < 0) {
        cld_log(1, "cannot start the process that connects with the cluster");
        return;
    }
    limit(descriptor, STEPS * timeout());
    workers = calloc(CLD_MOST_WORKERS + 1, sizeof *workers);
    if (!workers || !cld_share_memory(descriptor) || !receive_hello(descriptor)) {
        cld_log(1, "there is no cluster at %s", cld_setting(CL_DRIVER_CLUSTER_SETTING));
        close(descriptor);
        return;
    }
    read_workers();
    limit(descriptor, timeout() + SPARE_TIME);
    cld_copies_begin();
    if (!worker_count || !cld_cluster_start_threads(descriptor)) {
        cld_log(1, "the cluster at %s has no devices", cld_setting(CL_DRIVER_CLUSTER_SETTING));
        worker_count = device_count = 0;
        close(descriptor);
    }
}

bool cld_worker_come(struct cld_msg *msg) {
    uint32_t number = worker_count;
    size_t size;
    if (number >= CLD_MOST_WORKERS || cld_get_list(msg) != 3)
        return false;
    struct cld_worker *worker = &workers[number];
    init_worker(worker, number);
    cld_get_bytes(msg, &size); /* the address, as above */
    bool is_device = read_answers(worker, msg);
    worker->is_in_whole = cld_get_int(msg) && is_device;
    is_device = is_device && !msg->failed && make_device(worker);
    if (!is_device) {
        free(worker->answers);
        worker->answers = NULL;
        worker->answer_count = 0;
    }
    worker->is_gone = !is_device;
    pthread_mutex_lock(&cld_cluster_lock);
    worker_count++; /* even so: the other process has this number for it */
    if (is_device)
        devices[device_count++] = worker->device;
    pthread_mutex_unlock(&cld_cluster_lock);
    if (is_device)
        cld_msg_init(msg); /* which the answers stay in */
    else
        cld_log(1, "a new worker of the cluster is no device: there is no memory");
    return true;
}

bool cld_cluster_is_available(const struct cld_device *device) {
    struct cld_worker *worker;
    if (!device->worker->is_whole)
        return !device->worker->is_gone;
    for (uint32_t i = 0; (worker = cld_worker_at(i)); i++)
        if (cld_is_in_whole(worker))
            return true;
    return false;
}

uint32_t cld_cluster_devices(struct cld_device *root, struct cld_device *const **found) {
    root_device = root;
    pthread_once(&once, connect_cluster);
    *found = devices;
    return device_count;
}

const void *cld_cluster_answer(const struct cld_device *device, cl_device_info query, size_t *size) {
    const struct cld_worker *worker = device->worker;
    for (uint32_t i = 0; i < worker->answer_count; i++)
        if (worker->answers[i].query == query) {
            *size = worker->answers[i].size;
            return worker->answers[i].bytes;
        }
    return NULL;
}

bool cld_cluster_lacks(struct cld_device *root, const char *extension, size_t size) {
    struct cld_device *const *found;
    if (!cld_cluster_devices(root, &found))
        return false;
    size_t length = 0;
    const char *list = cld_cluster_answer(found[0], CL_DEVICE_EXTENSIONS, &length);
    for (size_t at = 0; list && at + size < length; at++) {
        bool is_word = (!at || list[at - 1] == ' ') && (list[at + size] == ' ' || !list[at + size]);
        if (is_word && !memcmp(list + at, extension, size))
            return false;
    }
    return true;
}
