/* Samplers (API specification, 5.7). */
#include "api/common.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "abi/image_abi.h"
#include "memory/mem.h"
#include "object/call.h"
#include "object/info.h"

/* What the properties of a sampler say; each but the first three is of cl_khr_mipmap_image. */
struct values {
    cl_bool normalized;
    cl_addressing_mode addressing;
    cl_filter_mode filter, mip_filter;
    cl_float lod_min, lod_max;
};

static const struct values defaults = {
    CL_TRUE, CL_ADDRESS_CLAMP, CL_FILTER_NEAREST, CL_FILTER_NEAREST, 0, FLT_MAX,
};

/* Out-of-range values of the enumerations, and a combination of which OpenCL C says that it is not defined:
 * the repeating modes need normalized coordinates. */
static bool are_valid(const struct values *values) {
    bool repeats =
        values->addressing == CL_ADDRESS_REPEAT || values->addressing == CL_ADDRESS_MIRRORED_REPEAT;
    return values->normalized <= CL_TRUE && values->addressing >= CL_ADDRESS_NONE &&
           values->addressing <= CL_ADDRESS_MIRRORED_REPEAT && values->filter >= CL_FILTER_NEAREST &&
           values->filter <= CL_FILTER_LINEAR && values->mip_filter >= CL_FILTER_NEAREST &&
           values->mip_filter <= CL_FILTER_LINEAR && values->lod_min <= values->lod_max &&
           (values->normalized || !repeats);
}

/* Bits of the names of properties, from the first one. */
#define BIT_OF(name) (1u << ((name) - CL_SAMPLER_NORMALIZED_COORDS))
#define MIPMAP_PROPERTIES                                                                                    \
    (BIT_OF(CL_SAMPLER_MIP_FILTER_MODE) | BIT_OF(CL_SAMPLER_LOD_MIN) | BIT_OF(CL_SAMPLER_LOD_MAX))

/* False for a name that is not supported, or given twice, or a value that its type does not have. seen: bits
 * of those given. */
static bool read_properties(const cl_sampler_properties *properties, struct values *values, unsigned *seen) {
    for (; properties && properties[0]; properties += 2) {
        cl_uint word = (cl_uint)properties[1];
        switch (properties[0]) {
        case CL_SAMPLER_NORMALIZED_COORDS:
            values->normalized = word;
            break;
        case CL_SAMPLER_ADDRESSING_MODE:
            values->addressing = word;
            break;
        case CL_SAMPLER_FILTER_MODE:
            values->filter = word;
            break;
        case CL_SAMPLER_MIP_FILTER_MODE:
            values->mip_filter = word;
            break;
        case CL_SAMPLER_LOD_MIN: /* the bits of a cl_float */
            memcpy(&values->lod_min, &word, sizeof word);
            break;
        case CL_SAMPLER_LOD_MAX:
            memcpy(&values->lod_max, &word, sizeof word);
            break;
        default:
            return false;
        }
        unsigned bit = BIT_OF(properties[0]);
        bool too_large = properties[1] > UINT32_MAX && properties[0] < CL_SAMPLER_LOD_MIN;
        if (*seen & bit || too_large)
            return false;
        *seen |= bit;
    }
    return are_valid(values);
}

/* A level of detail in 1/2048. */
static uint64_t lod_word(cl_float lod) {
    return lod <= 0 ? 0 : lod < 32 ? (uint64_t)(lod * 2048) : UINT16_MAX;
}

static uint64_t word_of(const struct values *values) {
    uint64_t word = (uint64_t)(values->addressing - CL_ADDRESS_NONE) << CLD_SAMPLER_ADDRESS_SHIFT;
    word |= values->normalized ? CLD_SAMPLER_NORMALIZED : 0;
    word |= values->filter == CL_FILTER_LINEAR ? CLD_SAMPLER_LINEAR : CLD_SAMPLER_NEAREST;
    word |= values->mip_filter == CL_FILTER_LINEAR ? CLD_SAMPLER_MIP_LINEAR : 0;
    return word | lod_word(values->lod_min) << CLD_SAMPLER_LOD_MIN_SHIFT |
           lod_word(values->lod_max) << CLD_SAMPLER_LOD_MAX_SHIFT;
}

static void destroy_sampler(void *object) {
    struct cld_sampler *sampler = object;
    free(sampler->properties);
    cld_object_drop(sampler->context);
}

__attribute__((constructor)) static void register_samplers(void) {
    cld_object_on_destroy(CLD_SAMPLER, destroy_sampler);
}

static cl_sampler create_sampler(struct cld_context *context, const struct values *values,
                                 const cl_sampler_properties *properties, cl_int *errcode_ret) {
    struct cld_sampler *sampler = cld_object_new(CLD_SAMPLER);
    CLD_REQUIRE_OR_NULL(sampler, CL_OUT_OF_HOST_MEMORY, "no memory for the handle");
    sampler->context = context;
    cld_object_hold(context);
    sampler->normalized = values->normalized;
    sampler->addressing = values->addressing;
    sampler->filter = values->filter;
    sampler->mip_filter = values->mip_filter;
    sampler->lod_min = values->lod_min;
    sampler->lod_max = values->lod_max;
    sampler->word = word_of(values);
    bool copied = cld_copy_properties((const intptr_t *)properties, &sampler->property_count,
                                      (intptr_t **)&sampler->properties);
    if (!copied)
        cld_object_release(sampler, CLD_SAMPLER, CL_INVALID_SAMPLER);
    CLD_REQUIRE_OR_NULL(copied, CL_OUT_OF_HOST_MEMORY, "no memory for the properties");
    if (errcode_ret)
        *errcode_ret = CL_SUCCESS;
    return (cl_sampler)sampler;
}

CL_API_ENTRY cl_sampler CL_API_CALL clCreateSamplerWithProperties(cl_context handle,
                                                                  const cl_sampler_properties *properties,
                                                                  cl_int *errcode_ret) {
    struct cld_context *context = cld_object_check(handle, CLD_CONTEXT);
    struct values values = defaults;
    CLD_REQUIRE_OR_NULL(context, CL_INVALID_CONTEXT, "not a context");
    CLD_REQUIRE_LIVE_OR_NULL(context);
    /* "CL_INVALID_VALUE if the property name in sampler_properties is not a supported property name, if the
     * value specified for a supported property name is not valid, or if the same property name is specified
     * more than once." */
    unsigned seen = 0;
    CLD_REQUIRE_OR_NULL(read_properties(properties, &values, &seen), CL_INVALID_VALUE,
                        "properties are not valid ones of a sampler");
    CLD_REQUIRE_OR_NULL(!context->is_elsewhere || !(seen & MIPMAP_PROPERTIES), CL_INVALID_VALUE,
                        "properties are of mipmaps, which no device of the context has");
    return create_sampler(context, &values, properties, errcode_ret);
}

CL_API_ENTRY cl_sampler CL_API_CALL clCreateSampler(cl_context handle, cl_bool normalized_coords,
                                                    cl_addressing_mode addressing_mode,
                                                    cl_filter_mode filter_mode, cl_int *errcode_ret) {
    struct cld_context *context = cld_object_check(handle, CLD_CONTEXT);
    struct values values = defaults;
    values.normalized = normalized_coords;
    values.addressing = addressing_mode;
    values.filter = filter_mode;
    CLD_REQUIRE_OR_NULL(context, CL_INVALID_CONTEXT, "not a context");
    CLD_REQUIRE_LIVE_OR_NULL(context);
    /* "CL_INVALID_VALUE if addressing_mode, filter_mode, normalized_coords or a combination of these
     * arguments are not valid." */
    CLD_REQUIRE_OR_NULL(
        are_valid(&values), CL_INVALID_VALUE,
        "normalized_coords, addressing_mode or filter_mode is not valid, or they do not go together");
    return create_sampler(context, &values, NULL, errcode_ret);
}

CL_API_ENTRY cl_int CL_API_CALL clGetSamplerInfo(cl_sampler handle, cl_sampler_info param_name,
                                                 size_t param_value_size, void *param_value,
                                                 size_t *param_value_size_ret) {
    const struct cld_sampler *sampler = cld_object_check(handle, CLD_SAMPLER);
    CLD_REQUIRE(sampler, CL_INVALID_SAMPLER, "not a sampler");
    cl_uint references;
    const void *answer;
    size_t size;
#define ANSWER(member) (answer = &(member), size = sizeof(member))
    switch (param_name) {
    case CL_SAMPLER_REFERENCE_COUNT:
        references = cld_object_refs(sampler);
        ANSWER(references);
        break;
    case CL_SAMPLER_CONTEXT:
        ANSWER(sampler->context);
        break;
    case CL_SAMPLER_NORMALIZED_COORDS:
        ANSWER(sampler->normalized);
        break;
    case CL_SAMPLER_ADDRESSING_MODE:
        ANSWER(sampler->addressing);
        break;
    case CL_SAMPLER_FILTER_MODE:
        ANSWER(sampler->filter);
        break;
    case CL_SAMPLER_MIP_FILTER_MODE:
        ANSWER(sampler->mip_filter);
        break;
    case CL_SAMPLER_LOD_MIN:
        ANSWER(sampler->lod_min);
        break;
    case CL_SAMPLER_LOD_MAX:
        ANSWER(sampler->lod_max);
        break;
    case CL_SAMPLER_PROPERTIES:
        answer = sampler->properties;
        size = sampler->property_count * sizeof *sampler->properties;
        break;
    default:
        return cld_lack(__func__, CL_INVALID_VALUE, "param_name is not a sampler query");
    }
#undef ANSWER
    return cld_info(answer, size, param_value_size, param_value, param_value_size_ret);
}
