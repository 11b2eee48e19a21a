/* What ICD loaders ask of a driver (cl_khr_icd), and the platform's own entry points. No Python here: loaders
 * probe, close and reopen drivers, and ask for devices up to three times at start. */
#include <CL/cl_icd.h>
#include <string.h>

#include "dispatch.h"
#include "info.h"
#include "log.h"
#include "platform.h"
#include "platform_table.h"
#include "settings.h"

#define EXPORT __attribute__((visibility("default")))

/* Of headers older than cl_khr_icd 2.0. */
#define ICD2_TAG ((void *)(uintptr_t)0x4F50454E434C3331)
EXPORT void *CL_API_CALL clIcdGetFunctionAddressForPlatformKHR(cl_platform_id platform, const char *name);
EXPORT cl_int CL_API_CALL clIcdSetPlatformDispatchDataKHR(cl_platform_id platform, void *data);

EXPORT CL_API_ENTRY cl_int CL_API_CALL clIcdGetPlatformIDsKHR(cl_uint num_entries, cl_platform_id *platforms,
                                                              cl_uint *num_platforms) {
    CLD_REQUIRE(platforms || num_platforms, CL_INVALID_VALUE, "nothing is asked for");
    CLD_REQUIRE(!platforms || num_entries, CL_INVALID_VALUE, "num_entries is 0 and platforms is not NULL");
    struct cld_platform *platform = cld_platform();
    CLD_REQUIRE(platform && cld_root_device(), CL_OUT_OF_HOST_MEMORY, "no memory for handles");
    if (cld_setting_is(CL_DRIVER_ICD2_SETTING, "1")) {
        cld_dispatch[cld_dispatch_slot_clGetPlatformIDs] = ICD2_TAG;
        cld_dispatch[cld_dispatch_slot_clUnloadCompiler] = ICD2_TAG;
    }
    if (platforms)
        platforms[0] = (cl_platform_id)platform;
    if (num_platforms)
        *num_platforms = 1;
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clGetPlatformIDs(cl_uint num_entries, cl_platform_id *platforms,
                                                 cl_uint *num_platforms) {
    return clIcdGetPlatformIDsKHR(num_entries, platforms, num_platforms);
}

EXPORT CL_API_ENTRY void *CL_API_CALL clGetExtensionFunctionAddress(const char *name) {
    return name ? cld_function(name) : NULL;
}

CL_API_ENTRY void *CL_API_CALL clGetExtensionFunctionAddressForPlatform(cl_platform_id platform,
                                                                        const char *name) {
    /* "NULL if [...] platform is not a valid platform": here NULL does not stand for ours. */
    return platform && cld_platform_check(platform) && name ? cld_function(name) : NULL;
}

EXPORT void *CL_API_CALL clIcdGetFunctionAddressForPlatformKHR(cl_platform_id platform, const char *name) {
    return clGetExtensionFunctionAddressForPlatform(platform, name);
}

/* "The ICD loader's data must be found in every object of the platform from now on." */
EXPORT cl_int CL_API_CALL clIcdSetPlatformDispatchDataKHR(cl_platform_id platform, void *data) {
    CLD_REQUIRE(cld_platform_check(platform), CL_INVALID_PLATFORM, "not this driver's platform");
    cld_object_set_dispatch_data(data);
    return CL_SUCCESS;
}

static const char *or_override(enum cld_setting setting, const char *otherwise) {
    const char *text = cld_setting(setting);
    return *text ? text : otherwise;
}

EXPORT CL_API_ENTRY cl_int CL_API_CALL clGetPlatformInfo(cl_platform_id platform, cl_platform_info param_name,
                                                         size_t param_value_size, void *param_value,
                                                         size_t *param_value_size_ret) {
    CLD_REQUIRE(cld_platform_check(platform), CL_INVALID_PLATFORM, "not this driver's platform");
    static const cl_name_version extensions[] = {CLD_PLATFORM_EXTENSIONS_WITH_VERSION};
    static const cl_version version = CLD_PLATFORM_NUMERIC_VERSION;
    static const cl_ulong timer_resolution = 1; /* ns: clGetHostTimer reads CLOCK_MONOTONIC_RAW */
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
        string = CLD_PLATFORM_EXTENSIONS;
        break;
    case CL_PLATFORM_ICD_SUFFIX_KHR:
        string = CLD_PLATFORM_SUFFIX;
        break;
    case CL_PLATFORM_NUMERIC_VERSION:
        return cld_info(&version, sizeof version, param_value_size, param_value, param_value_size_ret);
    case CL_PLATFORM_HOST_TIMER_RESOLUTION:
        return cld_info(&timer_resolution, sizeof timer_resolution, param_value_size, param_value,
                        param_value_size_ret);
    case CL_PLATFORM_EXTENSIONS_WITH_VERSION:
        return cld_info(extensions, sizeof extensions, param_value_size, param_value, param_value_size_ret);
    }
    CLD_REQUIRE(string, CL_INVALID_VALUE, "no such query of a platform");
    return cld_info_string(string, param_value_size, param_value, param_value_size_ret);
}

CL_API_ENTRY cl_int CL_API_CALL clGetDeviceIDs(cl_platform_id platform, cl_device_type device_type,
                                               cl_uint num_entries, cl_device_id *devices,
                                               cl_uint *num_devices) {
    const cl_device_type known = CL_DEVICE_TYPE_DEFAULT | CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_GPU |
                                 CL_DEVICE_TYPE_ACCELERATOR | CL_DEVICE_TYPE_CUSTOM;
    CLD_REQUIRE(cld_platform_check(platform), CL_INVALID_PLATFORM, "not this driver's platform");
    CLD_REQUIRE(device_type == CL_DEVICE_TYPE_ALL || (device_type && !(device_type & ~known)),
                CL_INVALID_DEVICE_TYPE, "no such type of device");
    CLD_REQUIRE(devices || num_devices, CL_INVALID_VALUE, "nothing is asked for");
    CLD_REQUIRE(!devices || num_entries, CL_INVALID_VALUE, "num_entries is 0 and devices is not NULL");
    if (num_devices)
        *num_devices = 0;
    if (!(device_type & (cld_device_type() | CL_DEVICE_TYPE_DEFAULT)))
        return CL_DEVICE_NOT_FOUND;
    struct cld_device *device = cld_root_device();
    CLD_REQUIRE(device, CL_OUT_OF_HOST_MEMORY, "no memory for handles");
    if (devices)
        devices[0] = (cl_device_id)device;
    if (num_devices)
        *num_devices = 1;
    return CL_SUCCESS;
}
