/* Queries of images and of their formats (API specification, 5.3.2 and 5.3.9). */
#include "api/common.h"

#include "base/log.h"
#include "memory/image.h"
#include "memory/mem.h"
#include "object/info.h"

CL_API_ENTRY cl_int CL_API_CALL clGetSupportedImageFormats(cl_context context, cl_mem_flags flags,
                                                           cl_mem_object_type image_type, cl_uint num_entries,
                                                           cl_image_format *image_formats,
                                                           cl_uint *num_image_formats) {
    CLD_REQUIRE(cld_object_check(context, CLD_CONTEXT), CL_INVALID_CONTEXT, "not a context");
    /* "CL_INVALID_VALUE if flags or image_type are not valid, or if num_entries is 0 and image_formats is not
     * NULL." What flags ask for makes no difference: kernels read and write all formats. */
    cl_mem_flags known = CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR |
                         CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR | CL_MEM_HOST_WRITE_ONLY |
                         CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS | CL_MEM_KERNEL_READ_AND_WRITE |
                         CLD_MEM_IMMUTABLE;
    CLD_REQUIRE(!(flags & ~known), CL_INVALID_VALUE, "flags are not valid");
    CLD_REQUIRE(image_type >= CL_MEM_OBJECT_IMAGE2D && image_type <= CL_MEM_OBJECT_IMAGE1D_BUFFER,
                CL_INVALID_VALUE, "image_type is not valid");
    CLD_REQUIRE(num_entries || !image_formats, CL_INVALID_VALUE, "image_formats without num_entries");
    cl_uint count = cld_image_formats(image_type, image_formats, image_formats ? num_entries : 0);
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
        number = image->desc.element_size;
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
        CLD_REQUIRE(false, CL_INVALID_VALUE, "param_name is not an image query");
    }
    return cld_info(answer, size, param_value_size, param_value, param_value_size_ret);
}
