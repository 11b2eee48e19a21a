/* Images and pipes (API specification, 5.3 and 5.4): absent, as CL_DEVICE_IMAGE_SUPPORT and
 * CL_DEVICE_PIPE_SUPPORT say. What is left of the entry points is the order of their errors. */
#include "api.h"

#include "log.h"

static void *no_images(cl_context context, cl_int *errcode_ret) {
    CLD_REQUIRE_OR_NULL(cld_object_check(context, CLD_CONTEXT), CL_INVALID_CONTEXT, "not a context");
    /* "CL_INVALID_OPERATION if there are no devices in context that support images". */
    CLD_REQUIRE_OR_NULL(false, CL_INVALID_OPERATION, "no device of the context supports images");
    return NULL;
}

CL_API_ENTRY cl_mem CL_API_CALL clCreateImage(cl_context context, cl_mem_flags flags,
                                              const cl_image_format *image_format,
                                              const cl_image_desc *image_desc, void *host_ptr,
                                              cl_int *errcode_ret) {
    (void)flags, (void)image_format, (void)image_desc, (void)host_ptr;
    return no_images(context, errcode_ret);
}

CL_API_ENTRY cl_mem CL_API_CALL clCreateImageWithProperties(cl_context context,
                                                            const cl_mem_properties *properties,
                                                            cl_mem_flags flags,
                                                            const cl_image_format *image_format,
                                                            const cl_image_desc *image_desc, void *host_ptr,
                                                            cl_int *errcode_ret) {
    (void)properties, (void)flags, (void)image_format, (void)image_desc, (void)host_ptr;
    return no_images(context, errcode_ret);
}

CL_API_ENTRY cl_mem CL_API_CALL clCreateImage2D(cl_context context, cl_mem_flags flags,
                                                const cl_image_format *image_format, size_t image_width,
                                                size_t image_height, size_t image_row_pitch, void *host_ptr,
                                                cl_int *errcode_ret) {
    (void)flags, (void)image_format, (void)image_width, (void)image_height, (void)image_row_pitch,
        (void)host_ptr;
    return no_images(context, errcode_ret);
}

CL_API_ENTRY cl_mem CL_API_CALL clCreateImage3D(cl_context context, cl_mem_flags flags,
                                                const cl_image_format *image_format, size_t image_width,
                                                size_t image_height, size_t image_depth,
                                                size_t image_row_pitch, size_t image_slice_pitch,
                                                void *host_ptr, cl_int *errcode_ret) {
    (void)flags, (void)image_format, (void)image_width, (void)image_height, (void)image_depth;
    (void)image_row_pitch, (void)image_slice_pitch, (void)host_ptr;
    return no_images(context, errcode_ret);
}

CL_API_ENTRY cl_int CL_API_CALL clGetSupportedImageFormats(cl_context context, cl_mem_flags flags,
                                                           cl_mem_object_type image_type, cl_uint num_entries,
                                                           cl_image_format *image_formats,
                                                           cl_uint *num_image_formats) {
    CLD_REQUIRE(cld_object_check(context, CLD_CONTEXT), CL_INVALID_CONTEXT, "not a context");
    /* "CL_INVALID_VALUE if flags or image_type are not valid, or if num_entries is 0 and image_formats is not
     * NULL." */
    cl_mem_flags known = CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR |
                         CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR | CL_MEM_HOST_WRITE_ONLY |
                         CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS | CL_MEM_KERNEL_READ_AND_WRITE;
    CLD_REQUIRE(!(flags & ~known), CL_INVALID_VALUE, "flags are not valid");
    CLD_REQUIRE(image_type >= CL_MEM_OBJECT_IMAGE2D && image_type <= CL_MEM_OBJECT_IMAGE1D_BUFFER,
                CL_INVALID_VALUE, "image_type is not valid");
    CLD_REQUIRE(num_entries || !image_formats, CL_INVALID_VALUE, "image_formats without num_entries");
    if (num_image_formats)
        *num_image_formats = 0;
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clGetImageInfo(cl_mem image, cl_image_info param_name,
                                               size_t param_value_size, void *param_value,
                                               size_t *param_value_size_ret) {
    (void)image, (void)param_name, (void)param_value_size, (void)param_value, (void)param_value_size_ret;
    /* "CL_INVALID_MEM_OBJECT if image is a not a valid image object." */
    CLD_REQUIRE(false, CL_INVALID_MEM_OBJECT, "there are no image objects");
}

CL_API_ENTRY cl_mem CL_API_CALL clCreatePipe(cl_context context, cl_mem_flags flags, cl_uint pipe_packet_size,
                                             cl_uint pipe_max_packets, const cl_pipe_properties *properties,
                                             cl_int *errcode_ret) {
    (void)flags, (void)pipe_packet_size, (void)pipe_max_packets, (void)properties;
    CLD_REQUIRE_OR_NULL(cld_object_check(context, CLD_CONTEXT), CL_INVALID_CONTEXT, "not a context");
    /* "CL_INVALID_OPERATION if no devices in context support pipes." */
    CLD_REQUIRE_OR_NULL(false, CL_INVALID_OPERATION, "no device of the context supports pipes");
    return NULL;
}

CL_API_ENTRY cl_int CL_API_CALL clGetPipeInfo(cl_mem pipe, cl_pipe_info param_name, size_t param_value_size,
                                              void *param_value, size_t *param_value_size_ret) {
    (void)pipe, (void)param_name, (void)param_value_size, (void)param_value, (void)param_value_size_ret;
    /* "CL_INVALID_MEM_OBJECT if pipe is a not a valid pipe object." */
    CLD_REQUIRE(false, CL_INVALID_MEM_OBJECT, "there are no pipe objects");
}
