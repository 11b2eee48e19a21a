/* Queries of images, of their formats, and of what they require (API specification, 5.3.2, 5.3.9 and 5.3.10).
 */
#include "api/common.h"

#include <CL/cl_ext.h>

#include "api/memory.h"
#include "memory/image.h"
#include "memory/mem.h"
#include "memory/mem_properties.h"
#include "object/call.h"
#include "object/info.h"

CL_API_ENTRY cl_int CL_API_CALL clGetSupportedImageFormats(cl_context handle, cl_mem_flags flags,
                                                           cl_mem_object_type image_type, cl_uint num_entries,
                                                           cl_image_format *image_formats,
                                                           cl_uint *num_image_formats) {
    const struct cld_context *context = cld_object_check(handle, CLD_CONTEXT);
    CLD_REQUIRE(context, CL_INVALID_CONTEXT, "not a context");
    /* "CL_INVALID_VALUE if flags or image_type are not valid, or if num_entries is 0 and image_formats is not
     * NULL." */
    cl_mem_flags known = CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR |
                         CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR | CL_MEM_HOST_WRITE_ONLY |
                         CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS | CL_MEM_KERNEL_READ_AND_WRITE |
                         CLD_MEM_IMMUTABLE;
    CLD_REQUIRE(!(flags & ~known), CL_INVALID_VALUE, "flags are not valid");
    CLD_REQUIRE(image_type >= CL_MEM_OBJECT_IMAGE2D && image_type <= CL_MEM_OBJECT_IMAGE1D_BUFFER,
                CL_INVALID_VALUE, "image_type is not valid");
    CLD_REQUIRE(num_entries || !image_formats, CL_INVALID_VALUE,
                "num_entries is 0 and image_formats is not NULL");
    /* Every device has all of them: workers of a cluster are of the same version. */
    cl_uint count = cld_image_formats(image_type, flags, image_formats, image_formats ? num_entries : 0);
    if (num_image_formats)
        *num_image_formats = count;
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clGetImageInfo(cl_mem handle, cl_image_info param_name,
                                               size_t param_value_size, void *param_value,
                                               size_t *param_value_size_ret) {
    struct cld_mem *mem = cld_object_check(handle, CLD_MEM);
    CLD_REQUIRE(mem && mem->image, CL_INVALID_MEM_OBJECT, "not an image");
    const struct cld_image *image = mem->image;
    int dimensions = cld_image_dimensions(mem->type) - cld_image_is_array(mem->type);
    size_t number;
    cl_uint samples = 0;
    const void *answer = &number;
    size_t size = sizeof number;
    switch (param_name) {
    case CL_IMAGE_FORMAT:
        answer = &image->format;
        size = sizeof image->format;
        break;
    case CL_IMAGE_ELEMENT_SIZE:
        number = cld_image_element_size(&image->format);
        break;
    case CL_IMAGE_ROW_PITCH:
        number = image->row_pitch;
        break;
    case CL_IMAGE_SLICE_PITCH:
        number = image->slice_pitch;
        break;
    case CL_IMAGE_WIDTH:
        number = (size_t)image->desc.width;
        break;
    case CL_IMAGE_HEIGHT:
        number = dimensions > 1 ? (size_t)image->desc.height : 0;
        break;
    case CL_IMAGE_DEPTH:
        number = dimensions > 2 ? (size_t)image->desc.depth : 0;
        break;
    case CL_IMAGE_ARRAY_SIZE:
        number = cld_image_is_array(mem->type) ? (size_t)image->desc.array_size : 0;
        break;
    case CL_IMAGE_BUFFER: {
        struct cld_mem *buffer = mem->parent;
        while (buffer && buffer->image)
            buffer = buffer->parent;
        return cld_info(&buffer, sizeof buffer, param_value_size, param_value, param_value_size_ret);
    }
    case CL_IMAGE_NUM_MIP_LEVELS:
        answer = &image->num_mip_levels;
        size = sizeof image->num_mip_levels;
        break;
    case CL_IMAGE_NUM_SAMPLES:
        answer = &samples;
        size = sizeof samples;
        break;
    default:
        return cld_lack(__func__, CL_INVALID_VALUE, "param_name is not an image query");
    }
    return cld_info(answer, size, param_value_size, param_value, param_value_size_ret);
}

/* What is asked for may be left open: NULL or 0. */
struct wanted {
    const cl_image_format *format;
    cl_image_desc desc;
    struct cld_pixel_group group; /* the largest pixel, if the format is open */
    size_t room;                  /* of the buffer that it is to be made from, if there is one */
};

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

static size_t one_at_least(size_t number) {
    return number ? number : 1;
}

/* How many rows, slices or layers of so many bytes a pitch or buffer has room for, where there is one. */
static size_t fitting(size_t most, size_t room, size_t bytes) {
    return room ? least(most, room / bytes) : most;
}

/* The same of pixels. */
static size_t fitting_pixels(size_t most, size_t room, struct cld_pixel_group group) {
    return room ? least(most, room / group.bytes * group.pixels) : most;
}

static size_t row_of(const struct wanted *wanted) {
    const cl_image_desc *desc = &wanted->desc;
    return one_at_least(desc->image_row_pitch ? desc->image_row_pitch
                                              : cld_pixel_bytes(wanted->group, desc->image_width));
}

static size_t slice_of(const struct wanted *wanted) {
    const cl_image_desc *desc = &wanted->desc;
    bool has_rows = desc->image_type != CL_MEM_OBJECT_IMAGE1D_ARRAY;
    return one_at_least(desc->image_slice_pitch
                            ? desc->image_slice_pitch
                            : row_of(wanted) * one_at_least(has_rows * desc->image_height));
}

/* The most that any image of the type has; of any type, if that is open. */
static size_t most_of(const struct wanted *wanted, cl_image_requirements_info_ext name) {
    cl_mem_object_type type = wanted->desc.image_type;
    bool may_be_3d = !type || type == CL_MEM_OBJECT_IMAGE3D;
    size_t most = may_be_3d ? CLD_IMAGE3D_MOST : CLD_IMAGE2D_MOST;
    const cl_image_desc *desc = &wanted->desc;
    switch (name) {
    case CL_IMAGE_REQUIREMENTS_MAX_WIDTH_EXT:
        if (type == CL_MEM_OBJECT_IMAGE1D_BUFFER)
            return fitting_pixels(CLD_IMAGE_BUFFER, wanted->room, wanted->group);
        most = fitting_pixels(most, desc->image_row_pitch, wanted->group);
        return fitting_pixels(most, wanted->room, wanted->group);
    case CL_IMAGE_REQUIREMENTS_MAX_HEIGHT_EXT:
        most = fitting(most, desc->image_slice_pitch, row_of(wanted));
        return fitting(most, wanted->room, row_of(wanted));
    case CL_IMAGE_REQUIREMENTS_MAX_DEPTH_EXT:
        return fitting(CLD_IMAGE3D_MOST, wanted->room, slice_of(wanted));
    default:
        return fitting(CLD_IMAGE_LAYERS, wanted->room, slice_of(wanted));
    }
}

/* Whether images of the type have the dimension that is asked about. */
static bool has_dimension(cl_mem_object_type type, cl_image_requirements_info_ext name) {
    switch (name) {
    case CL_IMAGE_REQUIREMENTS_MAX_HEIGHT_EXT:
        return !type || type == CL_MEM_OBJECT_IMAGE2D || type == CL_MEM_OBJECT_IMAGE2D_ARRAY ||
               type == CL_MEM_OBJECT_IMAGE3D;
    case CL_IMAGE_REQUIREMENTS_MAX_DEPTH_EXT:
        return !type || type == CL_MEM_OBJECT_IMAGE3D;
    case CL_IMAGE_REQUIREMENTS_MAX_ARRAY_SIZE_EXT:
        return !type || cld_image_is_array(type);
    }
    return true;
}

/* What is not asked about as a maximum may not be left open in a description. */
static bool is_of_maximum(cl_image_requirements_info_ext name) {
    switch (name) {
    case CL_IMAGE_REQUIREMENTS_MAX_WIDTH_EXT:
    case CL_IMAGE_REQUIREMENTS_MAX_HEIGHT_EXT:
    case CL_IMAGE_REQUIREMENTS_MAX_DEPTH_EXT:
    case CL_IMAGE_REQUIREMENTS_MAX_ARRAY_SIZE_EXT:
        return true;
    }
    return false;
}

static cl_int read_wishes(const struct cld_context *context, cl_mem_flags flags,
                          const cl_image_format *format, const cl_image_desc *desc, struct wanted *wanted) {
    if (desc) {
        wanted->desc = *desc;
        cl_mem_object_type type = desc->image_type;
        CLD_REQUIRE(!type || (type >= CL_MEM_OBJECT_IMAGE2D && type <= CL_MEM_OBJECT_IMAGE1D_BUFFER),
                    CL_INVALID_IMAGE_DESCRIPTOR, "image_type is not valid");
        CLD_REQUIRE(!desc->num_samples && desc->num_mip_levels <= CLD_IMAGE_LEVELS,
                    CL_INVALID_IMAGE_DESCRIPTOR,
                    "num_samples is %u and num_mip_levels is %u, at most 0 and %u", desc->num_samples,
                    desc->num_mip_levels, CLD_IMAGE_LEVELS);
    }
    if (desc && desc->mem_object) {
        const struct cld_mem *mem = cld_object_check(desc->mem_object, CLD_MEM);
        CLD_REQUIRE(mem && mem->context == context && mem->type != CL_MEM_OBJECT_PIPE,
                    CL_INVALID_IMAGE_DESCRIPTOR, "mem_object is no buffer or image of the context");
        wanted->room = mem->size;
    }
    wanted->format = format;
    wanted->group = (struct cld_pixel_group){1, CLD_LARGEST_PIXEL};
    if (!format)
        return CL_SUCCESS;
    cl_mem_object_type type = wanted->desc.image_type ? wanted->desc.image_type : CL_MEM_OBJECT_IMAGE2D;
    CLD_REQUIRE(cld_image_format_is_valid(format) && cld_image_format_is_supported(format, type, flags),
                CL_INVALID_IMAGE_FORMAT_DESCRIPTOR, "no device has images of that image_format");
    wanted->group = cld_pixel_group(format);
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL
clGetImageRequirementsInfoEXT(cl_context handle, const cl_mem_properties *properties, cl_mem_flags flags,
                              const cl_image_format *image_format, const cl_image_desc *image_desc,
                              cl_image_requirements_info_ext param_name, size_t param_value_size,
                              void *param_value, size_t *param_value_size_ret) {
    const struct cld_context *context = cld_object_check(handle, CLD_CONTEXT);
    CLD_REQUIRE(context, CL_INVALID_CONTEXT, "not a context");
    struct cld_mem_properties read;
    CLD_TRY(cld_mem_properties_read(context, properties, false, &read));
    /* Besides those of clCreateImage, kernels may be said to both read and write it. */
    CLD_REQUIRE(cld_memory_flags_are_valid(flags & ~(cl_mem_flags)CL_MEM_KERNEL_READ_AND_WRITE),
                CL_INVALID_VALUE, "flags are not valid");
    struct wanted wanted = {0};
    CLD_TRY(read_wishes(context, flags, image_format, image_desc, &wanted));
    if (is_of_maximum(param_name)) {
        CLD_REQUIRE(has_dimension(wanted.desc.image_type, param_name), CL_INVALID_IMAGE_DESCRIPTOR,
                    "images of type %#x have no such dimension: param_name", wanted.desc.image_type);
        cl_uint most = (cl_uint)most_of(&wanted, param_name);
        return cld_info(&most, sizeof most, param_value_size, param_value, param_value_size_ret);
    }
    if (image_desc)
        CLD_TRY(cld_image_check_described(image_desc));
    size_t number;
    switch (param_name) {
    case CL_IMAGE_REQUIREMENTS_BASE_ADDRESS_ALIGNMENT_EXT:
        number = CLD_IMAGE_ADDRESS_ALIGN * cld_pixel_unit(wanted.group);
        break;
    case CL_IMAGE_REQUIREMENTS_ROW_PITCH_ALIGNMENT_EXT:
    case CL_IMAGE_REQUIREMENTS_SLICE_PITCH_ALIGNMENT_EXT:
        number = CLD_IMAGE_PITCH_ALIGN * cld_pixel_unit(wanted.group);
        break;
    case CL_IMAGE_REQUIREMENTS_SIZE_EXT:
        CLD_REQUIRE(image_format && image_desc, CL_INVALID_VALUE,
                    "image_format or image_desc is NULL, on which the size depends");
        CLD_TRY(cld_image_size_in_buffer(image_format, image_desc, &number));
        break;
    default:
        return cld_lack(__func__, CL_INVALID_VALUE, "param_name is not a query of requirements");
    }
    return cld_info(&number, sizeof number, param_value_size, param_value, param_value_size_ret);
}
