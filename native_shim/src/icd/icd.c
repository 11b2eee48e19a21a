/* What ICD loaders ask of a driver (cl_khr_icd). No Python here: loaders probe, close and reopen drivers, and
 * ask for devices up to three times at start. */
#include "object/object.h" /* which says of which version OpenCL's headers are to be */

#include <CL/cl_icd.h>
#include <string.h>

#include "api/platform.h"
#include "base/settings.h"
#include "icd/dispatch.h"
#include "object/call.h"
#include "object/observer.h"

#define EXPORT __attribute__((visibility("default")))

static bool is_watched;

/* Calls cost nothing more where nobody asks why they fail or what they do wrong, and nobody observes them.
 * Observers have been registered: their constructors come first. */
__attribute__((constructor)) static void register_table(void) {
    is_watched = !cld_setting_is(CL_DRIVER_LOG_SETTING, "off") ||
                 cld_setting_is(CL_DRIVER_CHECK_SETTING, "1") || cld_observers[0];
    for (unsigned i = 0; is_watched && i < cld_dispatch_slots; i++)
        cld_dispatch[i] = cld_logged(cld_dispatch[i]);
    cld_object_set_dispatch(cld_dispatch);
}

/* Of headers older than cl_khr_icd 2.0. */
#define ICD2_TAG ((void *)(uintptr_t)0x4F50454E434C3331)
EXPORT void *CL_API_CALL clIcdGetFunctionAddressForPlatformKHR(cl_platform_id platform, const char *name);
EXPORT cl_int CL_API_CALL clIcdSetPlatformDispatchDataKHR(cl_platform_id platform, void *data);

EXPORT CL_API_ENTRY cl_int CL_API_CALL clIcdGetPlatformIDsKHR(cl_uint num_entries, cl_platform_id *platforms,
                                                              cl_uint *num_platforms) {
    CLD_REQUIRE(platforms || num_platforms, CL_INVALID_VALUE, "platforms and num_platforms are NULL");
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

static void *find(const char *name) {
    void *function = name ? cld_function(name) : NULL;
    return is_watched ? cld_logged(function) : function;
}

EXPORT CL_API_ENTRY void *CL_API_CALL clGetExtensionFunctionAddress(const char *name) {
    return find(name);
}

CL_API_ENTRY void *CL_API_CALL clGetExtensionFunctionAddressForPlatform(cl_platform_id platform,
                                                                        const char *name) {
    /* "NULL if [...] platform is not a valid platform": here NULL does not stand for ours. */
    return platform && cld_platform_check(platform) ? find(name) : NULL;
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
