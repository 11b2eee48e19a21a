/* Samplers (API specification, 5.7). */
#include "api.h"

#include "log.h"

/* "CL_INVALID_OPERATION if images are not supported by any device associated with context". The values are
 * judged first, as drivers with images do, so that wrong ones are called wrong. */
static cl_sampler no_images(cl_context handle, cl_int *errcode_ret) {
    CLD_REQUIRE_OR_NULL(cld_object_check(handle, CLD_CONTEXT), CL_INVALID_CONTEXT, "not a context");
    CLD_REQUIRE_OR_NULL(false, CL_INVALID_OPERATION, "no device of the context supports images");
    return NULL;
}

static bool valid_addressing(cl_addressing_mode mode) {
    return mode >= CL_ADDRESS_NONE && mode <= CL_ADDRESS_MIRRORED_REPEAT;
}

static bool valid_filter(cl_filter_mode mode) {
    return mode == CL_FILTER_NEAREST || mode == CL_FILTER_LINEAR;
}

/* "CL_INVALID_VALUE if the property name in sampler_properties is not a supported property name, if the value
 * specified for a supported property name is not valid, or if the same property name is specified more than
 * once." */
static bool valid_properties(const cl_sampler_properties *properties) {
    unsigned seen = 0;
    for (; properties && properties[0]; properties += 2) {
        unsigned bit;
        bool valid;
        switch (properties[0]) {
        case CL_SAMPLER_NORMALIZED_COORDS:
            bit = 1;
            valid = properties[1] == CL_TRUE || properties[1] == CL_FALSE;
            break;
        case CL_SAMPLER_ADDRESSING_MODE:
            bit = 2;
            valid = valid_addressing((cl_addressing_mode)properties[1]);
            break;
        case CL_SAMPLER_FILTER_MODE:
            bit = 4;
            valid = valid_filter((cl_filter_mode)properties[1]);
            break;
        default:
            return false;
        }
        if (!valid || seen & bit)
            return false;
        seen |= bit;
    }
    return true;
}

CL_API_ENTRY cl_sampler CL_API_CALL clCreateSamplerWithProperties(cl_context context,
                                                                  const cl_sampler_properties *properties,
                                                                  cl_int *errcode_ret) {
    CLD_REQUIRE_OR_NULL(cld_object_check(context, CLD_CONTEXT), CL_INVALID_CONTEXT, "not a context");
    CLD_REQUIRE_OR_NULL(valid_properties(properties), CL_INVALID_VALUE, "sampler_properties are not valid");
    return no_images(context, errcode_ret);
}

CL_API_ENTRY cl_sampler CL_API_CALL clCreateSampler(cl_context context, cl_bool normalized_coords,
                                                    cl_addressing_mode addressing_mode,
                                                    cl_filter_mode filter_mode, cl_int *errcode_ret) {
    CLD_REQUIRE_OR_NULL(cld_object_check(context, CLD_CONTEXT), CL_INVALID_CONTEXT, "not a context");
    CLD_REQUIRE_OR_NULL(normalized_coords <= CL_TRUE && valid_addressing(addressing_mode) &&
                            valid_filter(filter_mode),
                        CL_INVALID_VALUE, "not values of a sampler");
    return no_images(context, errcode_ret);
}

CL_API_ENTRY cl_int CL_API_CALL clGetSamplerInfo(cl_sampler sampler, cl_sampler_info param_name,
                                                 size_t param_value_size, void *param_value,
                                                 size_t *param_value_size_ret) {
    (void)sampler, (void)param_name, (void)param_value_size, (void)param_value, (void)param_value_size_ret;
    CLD_REQUIRE(false, CL_INVALID_SAMPLER, "there are no sampler objects");
}
