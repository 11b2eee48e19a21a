/* The platform's entry points through a loader: answers, argument errors, handles that are none. */
#include "client.h"

static void platform_info(cl_platform_id platform) {
    static const cl_platform_info strings[] = {
        CL_PLATFORM_PROFILE, CL_PLATFORM_VERSION,    CL_PLATFORM_NAME,
        CL_PLATFORM_VENDOR,  CL_PLATFORM_EXTENSIONS, CL_PLATFORM_ICD_SUFFIX_KHR,
    };
    char text[8192], small[1];
    size_t size, again;
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
        OK(clGetPlatformInfo(platform, strings[i], 0, NULL, &size));
        CHECK(size > 1 && size <= sizeof text);
        memset(text, 'x', sizeof text);
        OK(clGetPlatformInfo(platform, strings[i], size, text, &again));
        CHECK(again == size && strlen(text) == size - 1);
        EXPECT(clGetPlatformInfo(platform, strings[i], 1, small, NULL), CL_INVALID_VALUE);
        OK(clGetPlatformInfo(platform, strings[i], sizeof text, text, NULL));
    }
    OK(clGetPlatformInfo(platform, CL_PLATFORM_EXTENSIONS, sizeof text, text, NULL));
    CHECK(strstr(text, "cl_khr_icd"));
    CHECK(!strstr(text, "cl_khr_icd_unloadable"));
    OK(clGetPlatformInfo(platform, CL_PLATFORM_VERSION, sizeof text, text, NULL));
    CHECK(!strncmp(text, "OpenCL 3.1 ", 11));

    cl_version version;
    OK(clGetPlatformInfo(platform, CL_PLATFORM_NUMERIC_VERSION, sizeof version, &version, &size));
    CHECK(size == sizeof version && version == CL_MAKE_VERSION(3, 1, 0));
    cl_ulong resolution;
    OK(clGetPlatformInfo(platform, CL_PLATFORM_HOST_TIMER_RESOLUTION, sizeof resolution, &resolution, &size));
    CHECK(size == sizeof resolution && resolution > 0);
    cl_name_version extensions[256];
    OK(clGetPlatformInfo(platform, CL_PLATFORM_EXTENSIONS_WITH_VERSION, sizeof extensions, extensions,
                         &size));
    CHECK(size && size % sizeof *extensions == 0);
    OK(clGetPlatformInfo(platform, CL_PLATFORM_EXTENSIONS, sizeof text, text, NULL));
    size_t names = 0;
    for (char *name = strtok(text, " "); name; name = strtok(NULL, " "), names++)
        CHECK(names < size / sizeof *extensions && !strcmp(name, extensions[names].name));
    CHECK(names == size / sizeof *extensions);
    EXPECT(clGetPlatformInfo(platform, 0x1234, sizeof text, text, NULL), CL_INVALID_VALUE);
}

static void device_ids(cl_platform_id platform) {
    cl_device_id device, other;
    cl_uint count = 99;
    OK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, NULL, &count));
    EXPECT(count, 1);
    OK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_DEFAULT, 1, &device, NULL));
    OK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_GPU, 1, &other, &count));
    CHECK(device == other);
    EXPECT(clGetDeviceIDs(platform, CL_DEVICE_TYPE_GPU, 1, &other, &count), CL_DEVICE_NOT_FOUND);
    EXPECT(clGetDeviceIDs(platform, CL_DEVICE_TYPE_CUSTOM, 1, &other, &count), CL_DEVICE_NOT_FOUND);
    EXPECT(clGetDeviceIDs(platform, 0, 1, &other, &count), CL_INVALID_DEVICE_TYPE);
    EXPECT(clGetDeviceIDs(platform, 1 << 12, 1, &other, &count), CL_INVALID_DEVICE_TYPE);
    EXPECT(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, &other, &count), CL_INVALID_VALUE);
    EXPECT(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, NULL, NULL), CL_INVALID_VALUE);
    cl_device_type type;
    OK(clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof type, &type, NULL));
    CHECK(type & CL_DEVICE_TYPE_CPU);
}

int main(void) {
    cl_platform_id platform = the_platform();
    platform_info(platform);
    device_ids(platform);
    CHECK(clGetExtensionFunctionAddressForPlatform(platform, "clGetKernelSubGroupInfoKHR"));
    CHECK(clGetExtensionFunctionAddressForPlatform(platform, "clCreateProgramWithILKHR"));
    CHECK(clGetExtensionFunctionAddressForPlatform(platform, "clGetKernelSuggestedLocalWorkSize") ==
          clGetExtensionFunctionAddressForPlatform(platform, "clGetKernelSuggestedLocalWorkSizeKHR"));
    CHECK(!clGetExtensionFunctionAddressForPlatform(platform, "clNoSuchFunctionKHR"));
    CHECK(!clGetExtensionFunctionAddressForPlatform(platform, "clCreateFromGLBufferKHR"));

    /* A handle of another kind, and one whose object is gone: the error code, not a crash. */
    cl_device_id device = the_device();
    EXPECT(clGetPlatformInfo((cl_platform_id)device, CL_PLATFORM_NAME, 0, NULL, NULL), CL_INVALID_PLATFORM);
    EXPECT(clGetDeviceInfo((cl_device_id)platform, CL_DEVICE_NAME, 0, NULL, NULL), CL_INVALID_DEVICE);
    cl_context context = make_context(device);
    OK(clReleaseContext(context));
    EXPECT(clRetainContext(context), CL_INVALID_CONTEXT);
    cl_uint count;
    EXPECT(clGetContextInfo(context, CL_CONTEXT_NUM_DEVICES, sizeof count, &count, NULL), CL_INVALID_CONTEXT);
    return 0;
}
