/* The platform and its root device (API specification, 4.1 and 4.2). No Python here: icd/icd.c says why. */
#define _GNU_SOURCE
#include "api/platform.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/settings.h"
#include "cluster/cluster.h"
#include "memory/svm_types.h"
#include "object/call.h"
#include "object/info.h"
#include "platform_table.h"
#include "schedule/numa.h"

static struct cld_platform *platform;
static struct cld_device *root_device;
static pthread_once_t platform_once = PTHREAD_ONCE_INIT;
static pthread_once_t device_once = PTHREAD_ONCE_INIT;

static void make_platform(void) {
    platform = cld_object_new(CLD_PLATFORM);
}

struct cld_platform *cld_platform(void) {
    pthread_once(&platform_once, make_platform);
    return platform;
}

struct cld_platform *cld_platform_check(cl_platform_id handle) {
    return handle ? cld_object_check(handle, CLD_PLATFORM) : cld_platform();
}

cl_device_type cld_device_type(void) {
    if (cld_setting_is(CL_DRIVER_DEVICE_TYPE_SETTING, "gpu"))
        return CL_DEVICE_TYPE_GPU;
    if (cld_setting_is(CL_DRIVER_DEVICE_TYPE_SETTING, "accelerator"))
        return CL_DEVICE_TYPE_ACCELERATOR;
    return CL_DEVICE_TYPE_CPU;
}

/* CPUs' worth of time that one cgroup may use, or 0 where it sets no limit. cgroup v2's cpu.max holds
 * "quota period" or "max period". */
static uint32_t cgroup_limit(const char *folder) {
    static char path[4096]; /* under device_once; threads of hosts may have small stacks */
    if (snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", folder) >= (int)sizeof path)
        return 0;
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    unsigned long long quota, period;
    uint32_t limit = 0;
    if (fscanf(file, "%llu %llu", &quota, &period) == 2 && period)
        limit = (uint32_t)((quota + period - 1) / period);
    fclose(file);
    return limit;
}

/* The tightest limit of this process's cgroup and those around it. */
static uint32_t cpu_limit(void) {
    static char line[4096];
    uint32_t limit = 0;
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (!file)
        return 0;
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, "0::", 3))
            continue;
        line[strcspn(line, "\n")] = 0;
        for (char *folder = line + 3;;) {
            uint32_t here = cgroup_limit(folder);
            if (here && (!limit || here < limit))
                limit = here;
            char *slash = strrchr(folder, '/');
            if (!slash)
                break;
            *slash = 0;
        }
    }
    fclose(file);
    return limit;
}

/* The CPUs that this process may run on; at least one. Returns their number, 0 when out of memory. */
static uint32_t usable_cpus(uint32_t **cpus) {
    cpu_set_t *set = NULL;
    size_t size = 0;
    int most;
    for (most = CPU_SETSIZE; most <= 1 << 20; most *= 2) { /* the kernel's set may be larger than glibc's */
        set = CPU_ALLOC(most);
        size = CPU_ALLOC_SIZE(most);
        if (!set || !sched_getaffinity(0, size, set))
            break;
        CPU_FREE(set);
        set = NULL;
    }
    uint32_t count = set ? (uint32_t)CPU_COUNT_S(size, set) : 0;
    *cpus = calloc(count ? count : 1, sizeof **cpus);
    uint32_t at = 0;
    for (int cpu = 0; *cpus && cpu < most && at < count; cpu++)
        if (CPU_ISSET_S((size_t)cpu, size, set))
            (*cpus)[at++] = (uint32_t)cpu;
    if (set)
        CPU_FREE(set);
    return *cpus ? (count ? count : 1) : 0;
}

static void make_root_device(void) {
    enum { MOST_CPUS = 4096 };
    uint32_t *cpus = NULL, usable = 0;
    const char *topology = cld_setting(CL_DRIVER_TOPOLOGY_SETTING);
    if (*topology)
        cpus = cld_online_cpus(topology, MOST_CPUS, &usable);
    if (!cpus && !(usable = usable_cpus(&cpus)))
        return;
    uint32_t limit = cpu_limit();
    int64_t wanted = cld_setting_int(CL_DRIVER_THREADS_SETTING, limit && limit < usable ? limit : usable);
    uint32_t units = wanted < 1 ? 1 : wanted > 4096 ? 4096 : (uint32_t)wanted;
    if (units > usable) { /* asked for more threads than CPUs: they share them */
        uint32_t *more = realloc(cpus, units * sizeof *cpus);
        if (!more) {
            free(cpus);
            return;
        }
        cpus = more;
        for (uint32_t i = usable; i < units; i++)
            cpus[i] = cpus[i % usable];
    }
    struct cld_device *device = cld_object_new(CLD_DEVICE);
    if (!device) {
        free(cpus);
        return;
    }
    device->obj.key = CLD_ROOT_DEVICE_KEY;
    device->compute_units = units;
    device->cpus = cpus;
    root_device = device;
}

struct cld_device *cld_root_device(void) {
    pthread_once(&device_once, make_root_device);
    return root_device;
}

static const char *or_override(enum cld_setting setting, const char *otherwise) {
    const char *text = cld_setting(setting);
    return *text ? text : otherwise;
}

/* Of the platform are extensions that all its devices have, and that of loaders. */
static bool is_common(const char *extension, size_t size) {
    static const char loaders[] = "cl_khr_icd";
    return (size == sizeof loaders - 1 && !memcmp(extension, loaders, size)) ||
           !cld_cluster_lacks(cld_root_device(), extension, size);
}

static cl_int give_extensions(size_t room, void *value, size_t *size) {
    char text[] = CLD_PLATFORM_EXTENSIONS;
    size_t kept = 0;
    for (char *at = text; *at;) {
        size_t length = strcspn(at, " ");
        char *next = at + length + (at[length] == ' ');
        if (is_common(at, length)) {
            if (kept)
                text[kept++] = ' ';
            memmove(text + kept, at, length); /* never behind `at` */
            kept += length;
        }
        at = next;
    }
    text[kept] = 0;
    return cld_info_string(text, room, value, size);
}

static cl_int give_versions(size_t room, void *value, size_t *size) {
    cl_name_version list[] = {CLD_PLATFORM_EXTENSIONS_WITH_VERSION};
    size_t kept = 0;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (is_common(list[i].name, strlen(list[i].name)))
            list[kept++] = list[i];
    return cld_info(list, kept * sizeof *list, room, value, size);
}

/* Found by its name, too. */
__attribute__((visibility("default"))) CL_API_ENTRY cl_int CL_API_CALL
clGetPlatformInfo(cl_platform_id platform, cl_platform_info param_name, size_t param_value_size,
                  void *param_value, size_t *param_value_size_ret) {
    CLD_REQUIRE(cld_platform_check(platform), CL_INVALID_PLATFORM, "not this driver's platform");
    static const cl_version version = CLD_PLATFORM_NUMERIC_VERSION;
    static const cl_ulong timer_resolution = 1; /* ns: clGetHostTimer reads CLOCK_MONOTONIC_RAW */
    static const cl_platform_command_buffer_capabilities_khr command_buffers =
        CLD_COMMAND_BUFFER_PLATFORM_UNIVERSAL_SYNC | CLD_COMMAND_BUFFER_PLATFORM_REMAP_QUEUES |
        CLD_COMMAND_BUFFER_PLATFORM_AUTOMATIC_REMAP;
    static const cl_semaphore_type_khr semaphores = CL_SEMAPHORE_TYPE_BINARY_KHR;
    static const cl_external_semaphore_handle_type_khr shared_semaphores = CL_SEMAPHORE_HANDLE_OPAQUE_FD_KHR;
    static const cl_external_memory_handle_type_khr memory = CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_FD_KHR;
    const char *string = NULL;
    switch (param_name) {
    case CL_PLATFORM_PROFILE:
        string = CLD_PLATFORM_PROFILE;
        break;
    case CL_PLATFORM_VERSION:
        string = CLD_PLATFORM_VERSION;
        break;
    case CL_PLATFORM_NAME:
        string = or_override(CL_DRIVER_PLATFORM_NAME_SETTING, CLD_PLATFORM_NAME);
        break;
    case CL_PLATFORM_VENDOR:
        string = or_override(CL_DRIVER_PLATFORM_VENDOR_SETTING, CLD_PLATFORM_VENDOR);
        break;
    case CL_PLATFORM_EXTENSIONS:
        return give_extensions(param_value_size, param_value, param_value_size_ret);
    case CL_PLATFORM_ICD_SUFFIX_KHR:
        string = CLD_PLATFORM_SUFFIX;
        break;
    case CL_PLATFORM_NUMERIC_VERSION:
        return cld_info(&version, sizeof version, param_value_size, param_value, param_value_size_ret);
    case CL_PLATFORM_HOST_TIMER_RESOLUTION:
        return cld_info(&timer_resolution, sizeof timer_resolution, param_value_size, param_value,
                        param_value_size_ret);
    case CLD_PLATFORM_COMMAND_BUFFER_CAPABILITIES:
        return cld_info(&command_buffers, sizeof command_buffers, param_value_size, param_value,
                        param_value_size_ret);
    case CL_PLATFORM_SEMAPHORE_TYPES_KHR:
        return cld_info(&semaphores, sizeof semaphores, param_value_size, param_value, param_value_size_ret);
    case CL_PLATFORM_SEMAPHORE_IMPORT_HANDLE_TYPES_KHR:
    case CL_PLATFORM_SEMAPHORE_EXPORT_HANDLE_TYPES_KHR:
        return cld_info(&shared_semaphores, sizeof shared_semaphores, param_value_size, param_value,
                        param_value_size_ret);
    case CL_PLATFORM_EXTERNAL_MEMORY_IMPORT_HANDLE_TYPES_KHR:
        return cld_info(&memory, sizeof memory, param_value_size, param_value, param_value_size_ret);
    case CLD_PLATFORM_SVM_TYPE_CAPABILITIES:
        return cld_info(cld_svm_types, sizeof cld_svm_types, param_value_size, param_value,
                        param_value_size_ret);
    case CL_PLATFORM_EXTENSIONS_WITH_VERSION:
        return give_versions(param_value_size, param_value, param_value_size_ret);
    }
    if (!string)
        return cld_lack(__func__, CL_INVALID_VALUE, "param_name is no query of platforms");
    return cld_info_string(string, param_value_size, param_value, param_value_size_ret);
}

CL_API_ENTRY cl_int CL_API_CALL clGetDeviceIDs(cl_platform_id platform, cl_device_type device_type,
                                               cl_uint num_entries, cl_device_id *devices,
                                               cl_uint *num_devices) {
    const cl_device_type known = CL_DEVICE_TYPE_DEFAULT | CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_GPU |
                                 CL_DEVICE_TYPE_ACCELERATOR | CL_DEVICE_TYPE_CUSTOM;
    CLD_REQUIRE(cld_platform_check(platform), CL_INVALID_PLATFORM, "not this driver's platform");
    CLD_REQUIRE(device_type == CL_DEVICE_TYPE_ALL || (device_type && !(device_type & ~known)),
                CL_INVALID_DEVICE_TYPE, "device_type is %#lx, no type of device", (unsigned long)device_type);
    CLD_REQUIRE(devices || num_devices, CL_INVALID_VALUE, "devices and num_devices are NULL");
    CLD_REQUIRE(!devices || num_entries, CL_INVALID_VALUE, "num_entries is 0 and devices is not NULL");
    if (num_devices)
        *num_devices = 0;
    if (!(device_type & (cld_device_type() | CL_DEVICE_TYPE_DEFAULT)))
        return CL_DEVICE_NOT_FOUND;
    struct cld_device *device = cld_root_device();
    CLD_REQUIRE(device, CL_OUT_OF_HOST_MEMORY, "no memory for handles");
    struct cld_device *const *elsewhere;
    /* CL_DEVICE_TYPE_DEFAULT is one device, that of this machine. */
    cl_uint more = device_type & ~CL_DEVICE_TYPE_DEFAULT ? cld_cluster_devices(device, &elsewhere) : 0;
    if (devices)
        devices[0] = (cl_device_id)device;
    for (cl_uint i = 0; devices && i < more && i + 1 < num_entries; i++)
        devices[i + 1] = (cl_device_id)elsewhere[i];
    if (num_devices)
        *num_devices = 1 + more;
    return CL_SUCCESS;
}
