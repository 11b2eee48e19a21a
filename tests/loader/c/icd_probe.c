/* What a loader asks at start, asked through the loader: it must not start Python, nor a thread, nor print;
 * the loader may be closed and opened again. Usage: icd_probe LIBOPENCL */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>

#include "client.h"

static int thread_count(void) {
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks);
    for (struct dirent *entry; (entry = readdir(tasks));)
        count += entry->d_name[0] != '.';
    closedir(tasks);
    return count;
}

static int is_mapped(const char *name) {
    char line[4096];
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    CHECK(maps);
    while (fgets(line, sizeof line, maps))
        found |= strstr(line, name) != NULL;
    fclose(maps);
    return found;
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    for (int i = 0; i < 3; i++) {
        void *loader = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        CHECK(loader);
        __typeof__(clGetPlatformIDs) *get_platforms =
            (__typeof__(clGetPlatformIDs) *)dlsym(loader, "clGetPlatformIDs");
        __typeof__(clGetDeviceIDs) *get_devices =
            (__typeof__(clGetDeviceIDs) *)dlsym(loader, "clGetDeviceIDs");
        CHECK(get_platforms && get_devices);
        cl_platform_id platforms[8];
        cl_uint count = 0;
        OK(get_platforms(8, platforms, &count));
        CHECK(count >= 1);
        for (cl_uint p = 0; p < count; p++) {
            cl_device_id device;
            OK(get_devices(platforms[p], CL_DEVICE_TYPE_ALL, 1, &device, NULL));
            OK(get_devices(platforms[p], CL_DEVICE_TYPE_CPU, 1, &device, NULL));
            EXPECT(get_devices(platforms[p], CL_DEVICE_TYPE_GPU, 1, &device, &count), CL_DEVICE_NOT_FOUND);
        }
        CHECK(is_mapped("libcl_driver.so"));
        CHECK(!is_mapped("libpython"));
        EXPECT(thread_count(), 1);
        dlclose(loader);
    }
    return 0;
}
