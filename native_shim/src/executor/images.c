/* Images and samplers. An image is made on a buffer, which has its contents, with the pitches that the host
 * has; this machine's driver looks whether it fits. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "executor/internal.h"

void cld_remote_image_free(struct cld_remote_image *image) {
    if (image->handle)
        clReleaseMemObject(image->handle);
    free(image);
}

void cld_remote_samplers_free(struct cld_remote_sampler *sampler) {
    while (sampler) {
        struct cld_remote_sampler *next = sampler->next;
        clReleaseSampler(sampler->handle);
        free(sampler);
        sampler = next;
    }
}

/* [width, height, depth, array size], of which the API wants 0 where there is one. */
static void get_extent(struct cld_msg *msg, cl_image_desc *desc) {
    if (cld_get_list(msg) != 4)
        msg->failed = true;
    desc->image_width = (size_t)cld_get_int(msg);
    desc->image_height = (size_t)cld_get_int(msg);
    desc->image_depth = (size_t)cld_get_int(msg);
    desc->image_array_size = (size_t)cld_get_int(msg);
}

bool cld_execute_image(struct cld_executor *executor, struct cld_msg *msg) {
    cl_mem buffer = NULL;
    uint64_t number = (uint64_t)cld_get_int(msg);
    struct cld_bytes contents;
    cl_int status = cld_part_of(executor, msg, &contents, &buffer);
    cl_mem_flags flags = (cl_mem_flags)cld_get_int(msg);
    cl_image_format format = {.image_channel_order = (cl_channel_order)cld_get_int(msg)};
    format.image_channel_data_type = (cl_channel_type)cld_get_int(msg);
    cl_image_desc desc = {.image_type = (cl_mem_object_type)cld_get_int(msg)};
    get_extent(msg, &desc);
    desc.image_row_pitch = (size_t)cld_get_int(msg);
    desc.image_slice_pitch = (size_t)cld_get_int(msg);
    desc.mem_object = buffer;
    struct cld_remote_image *image = msg->failed ? NULL : calloc(1, sizeof *image);
    if (!image)
        return false;
    if (!status) /* without a buffer it would have storage of its own */
        image->handle = clCreateImage(executor->context, flags, &format, &desc, NULL, &status);
    if (status)
        cld_log(1, "cluster: an image of %zu x %zu pixels cannot be made (%d)", desc.image_width,
                desc.image_height, status);
    image->contents = contents;
    image->status = status; /* of the commands that want it */
    if (cld_numbers_add(&executor->images, &image->numbered, number))
        return true;
    cld_remote_image_free(image);
    return false;
}

/* There are as many as there are different ones. */
static cl_int sampler_of(struct cld_executor *executor, const cl_sampler_properties *values,
                         cl_sampler *handle) {
    struct cld_remote_sampler *sampler = executor->samplers;
    while (sampler && memcmp(sampler->values, values, sizeof sampler->values) != 0)
        sampler = sampler->next;
    if (!sampler) {
        const cl_sampler_properties properties[] = {CL_SAMPLER_NORMALIZED_COORDS,
                                                    values[0],
                                                    CL_SAMPLER_ADDRESSING_MODE,
                                                    values[1],
                                                    CL_SAMPLER_FILTER_MODE,
                                                    values[2],
                                                    CL_SAMPLER_MIP_FILTER_MODE,
                                                    values[3],
                                                    0};
        cl_int status;
        sampler = calloc(1, sizeof *sampler);
        if (!sampler)
            return CL_OUT_OF_HOST_MEMORY;
        sampler->handle = clCreateSamplerWithProperties(executor->context, properties, &status);
        if (!sampler->handle) {
            free(sampler);
            return status;
        }
        memcpy(sampler->values, values, sizeof sampler->values);
        sampler->next = executor->samplers;
        executor->samplers = sampler;
    }
    *handle = sampler->handle;
    return CL_SUCCESS;
}

cl_int cld_set_image(struct cld_executor *executor, struct cld_msg *msg, struct cld_waits *waits,
                     cl_kernel kernel, cl_uint i) {
    cld_get_list(msg);
    const struct cld_remote_image *image = cld_numbers_find(&executor->images, (uint64_t)cld_get_int(msg));
    if (msg->failed || !image)
        return CL_MEM_OBJECT_ALLOCATION_FAILURE;
    cl_int status = image->status ? image->status : cld_await_bytes(executor, &image->contents, waits);
    if (status || !kernel)
        return status;
    return clSetKernelArg(kernel, i, sizeof image->handle, &image->handle);
}

cl_int cld_set_sampler(struct cld_executor *executor, struct cld_msg *msg, cl_kernel kernel, cl_uint i) {
    cl_sampler_properties values[CLD_SAMPLER_VALUES];
    cl_sampler handle = NULL;
    cld_get_list(msg);
    for (int at = 0; at < CLD_SAMPLER_VALUES; at++)
        values[at] = (cl_sampler_properties)cld_get_int(msg);
    if (msg->failed)
        return CL_INVALID_VALUE;
    cl_int status = sampler_of(executor, values, &handle);
    return status || !kernel ? status : clSetKernelArg(kernel, i, sizeof handle, &handle);
}
