/* Creation of images (API specification, 5.3.1). */
#define _GNU_SOURCE
#include "api/common.h"

#include <stdlib.h>
#include <string.h>

#include "api/memory.h"
#include "enqueue/enqueue.h"
#include "memory/image.h"
#include "memory/mem.h"
#include "memory/mem_properties.h"
#include "object/call.h"
#include "runtime/callback.h"

/* What a call asks for, and what the checks find out about it. */
struct request {
    struct cld_context *context;
    const cl_mem_properties *properties;
    cl_mem_flags flags;
    const cl_image_format *format;
    const cl_image_desc *given;
    cl_image_desc desc; /* with 1 where the type has no such dimension, and with the pitches of the pixels */
    void *host_ptr;
    cl_int wrong_value; /* for dimensions of 0 and wrong pitches: clCreateImage2D and 3D have another error */
    struct cld_mem *parent; /* the buffer or image that it is made from, or NULL */
    struct cld_pixel_group group;
    struct cld_mem_properties read; /* what properties say */
};

/* "image_type [...] must be either [...]" "num_samples must be 0." */
static cl_int check_type(const struct request *request) {
    const cl_image_desc *desc = &request->desc;
    switch (desc->image_type) {
    case CL_MEM_OBJECT_IMAGE1D:
    case CL_MEM_OBJECT_IMAGE1D_BUFFER:
    case CL_MEM_OBJECT_IMAGE1D_ARRAY:
    case CL_MEM_OBJECT_IMAGE2D:
    case CL_MEM_OBJECT_IMAGE2D_ARRAY:
    case CL_MEM_OBJECT_IMAGE3D:
        break;
    default:
        CLD_REQUIRE(false, CL_INVALID_IMAGE_DESCRIPTOR, "image_type is %#x, no type of images",
                    desc->image_type);
    }
    CLD_REQUIRE(!desc->num_samples, CL_INVALID_IMAGE_DESCRIPTOR, "num_samples is %u, 0", desc->num_samples);
    /* "num_mip_levels must be [...] greater than 1": one level is what every image has, and the
     * specification's own examples ask for 1. As to the most, it gives no error: each level has one pixel at
     * least. */
    CLD_REQUIRE(desc->num_mip_levels <= CLD_IMAGE_LEVELS, CL_INVALID_IMAGE_DESCRIPTOR,
                "num_mip_levels is %u, at most %u", desc->num_mip_levels, CLD_IMAGE_LEVELS);
    if (desc->num_mip_levels > 1) {
        CLD_REQUIRE(!request->context || !request->context->is_elsewhere, CL_INVALID_IMAGE_DESCRIPTOR,
                    "num_mip_levels is %u, and no device of the context has mipmaps", desc->num_mip_levels);
        /* "Mip-mapped images cannot be created for CL_MEM_OBJECT_IMAGE1D_BUFFER images, depth images": but
         * OpenCL C has functions that read and write levels of depth images, the CTS makes such images, and
         * other drivers let it (OpenCL-Docs issue 1298, open). */
        CLD_REQUIRE(desc->image_type != CL_MEM_OBJECT_IMAGE1D_BUFFER, CL_INVALID_IMAGE_DESCRIPTOR,
                    "num_mip_levels is %u, 0 for a 1D image buffer", desc->num_mip_levels);
        /* "CL_MEM_USE_HOST_PTR or CL_MEM_COPY_HOST_PTR cannot be specified if a mipmapped image is created."
         */
        CLD_REQUIRE(!(request->flags & (CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR)), CL_INVALID_VALUE,
                    "flags ask for memory of the host for an image with mip levels");
    }
    return CL_SUCCESS;
}

/* "mem_object can be a buffer memory object if image_type is CL_MEM_OBJECT_IMAGE1D_BUFFER or
 * CL_MEM_OBJECT_IMAGE2D, or any other image_type if the cl_ext_image_from_buffer extension is supported.
 * mem_object can be an image object if image_type is CL_MEM_OBJECT_IMAGE2D. Otherwise it must be NULL." */
static cl_int check_parent(struct request *request) {
    const cl_image_desc *desc = &request->desc;
    bool on_buffer = desc->image_type == CL_MEM_OBJECT_IMAGE1D_BUFFER;
    if (!desc->mem_object) {
        CLD_REQUIRE(!on_buffer, CL_INVALID_IMAGE_DESCRIPTOR,
                    "mem_object is NULL, a 1D image buffer has a buffer");
        return CL_SUCCESS;
    }
    struct cld_mem *parent = cld_object_check(desc->mem_object, CLD_MEM);
    CLD_REQUIRE(parent && parent->context == request->context, CL_INVALID_IMAGE_DESCRIPTOR,
                "mem_object is %s, not a memory object of the context", cld_describe(desc->mem_object).text);
    bool from_buffer = parent->type == CL_MEM_OBJECT_BUFFER;
    CLD_REQUIRE(
        from_buffer || (desc->image_type == CL_MEM_OBJECT_IMAGE2D && parent->type == CL_MEM_OBJECT_IMAGE2D),
        CL_INVALID_IMAGE_DESCRIPTOR, "mem_object is of type %#x, of which no image of type %#x is made",
        parent->type, desc->image_type);
    CLD_REQUIRE(!from_buffer || desc->num_mip_levels <= 1, CL_INVALID_IMAGE_DESCRIPTOR,
                "a mipmapped image is not made from a buffer");
    /* "CL_INVALID_VALUE if an image is being created from another memory object [...] flags specifies
     * CL_MEM_USE_HOST_PTR or CL_MEM_ALLOC_HOST_PTR or CL_MEM_COPY_HOST_PTR." */
    CLD_REQUIRE(!(request->flags & CLD_HOST_POINTER), CL_INVALID_VALUE,
                "flags ask for memory of the host, and mem_object has it");
    CLD_REQUIRE(cld_memory_allowed_by_parent(request->flags, parent->flags), CL_INVALID_VALUE,
                "flags allow more than mem_object's %#lx do", (unsigned long)parent->flags);
    CLD_REQUIRE(request->flags & CLD_MEM_IMMUTABLE || !(parent->flags & CLD_MEM_IMMUTABLE), CL_INVALID_VALUE,
                "mem_object never changes, and flags do not say so");
    request->parent = parent;
    return CL_SUCCESS;
}

/* The dimensions that the type has, and 1 for the others. "CL_INVALID_IMAGE_SIZE if image dimensions
 * specified in image_desc exceed the maximum image dimensions". */
static cl_int check_dimensions(struct request *request) {
    cl_image_desc *desc = &request->desc;
    cl_mem_object_type type = desc->image_type;
    bool is_3d = type == CL_MEM_OBJECT_IMAGE3D;
    size_t most = is_3d ? CLD_IMAGE3D_MOST : CLD_IMAGE2D_MOST;
    if (!is_3d && type != CL_MEM_OBJECT_IMAGE2D && type != CL_MEM_OBJECT_IMAGE2D_ARRAY)
        desc->image_height = 1;
    if (!is_3d)
        desc->image_depth = 1;
    if (!cld_image_is_array(type))
        desc->image_array_size = 1;
    CLD_REQUIRE(desc->image_width && desc->image_height && desc->image_depth && desc->image_array_size,
                request->wrong_value, "the dimensions are %zu x %zu x %zu, array size %zu: each at least 1",
                desc->image_width, desc->image_height, desc->image_depth, desc->image_array_size);
    CLD_REQUIRE(desc->image_width <= (type == CL_MEM_OBJECT_IMAGE1D_BUFFER ? CLD_IMAGE_BUFFER : most) &&
                    desc->image_height <= most && desc->image_depth <= CLD_IMAGE3D_MOST &&
                    desc->image_array_size <= CLD_IMAGE_LAYERS,
                CL_INVALID_IMAGE_SIZE,
                "the dimensions are %zu x %zu x %zu, array size %zu: at most %zu x %zu x %zu, %zu",
                desc->image_width, desc->image_height, desc->image_depth, desc->image_array_size,
                type == CL_MEM_OBJECT_IMAGE1D_BUFFER ? (size_t)CLD_IMAGE_BUFFER : most, most,
                (size_t)CLD_IMAGE3D_MOST, (size_t)CLD_IMAGE_LAYERS);
    return CL_SUCCESS;
}

/* "The image width must be a multiple of 4 for images image_channel_data_type is CL_UNSIGNED_INT_RAW10_EXT",
 * of 2 for CL_UNSIGNED_INT_RAW12_EXT, which smaller levels of mipmaps would not have. */
static cl_int check_groups(const struct request *request) {
    uint32_t pixels = request->group.pixels;
    CLD_REQUIRE(request->desc.image_width % pixels == 0, request->wrong_value,
                "the width is %zu, no multiple of the %u pixels that share bytes", request->desc.image_width,
                pixels);
    CLD_REQUIRE(pixels == 1 || request->desc.num_mip_levels <= 1, CL_INVALID_IMAGE_DESCRIPTOR,
                "a mipmapped image of pixels that share bytes");
    return CL_SUCCESS;
}

/* "CL_INVALID_HOST_PTR if host_ptr is NULL and CL_MEM_USE_HOST_PTR or CL_MEM_COPY_HOST_PTR are set in flags
 * or if host_ptr is not NULL but CL_MEM_COPY_HOST_PTR or CL_MEM_USE_HOST_PTR are not set in flags." */
static cl_int check_host_pointer(const struct request *request) {
    bool wanted = request->flags & (CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR);
    CLD_REQUIRE(wanted == (request->host_ptr != NULL), CL_INVALID_HOST_PTR,
                "host_ptr and CL_MEM_USE_HOST_PTR or CL_MEM_COPY_HOST_PTR in flags contradict each other");
    return CL_SUCCESS;
}

/* Of images that are not made from another memory object. */
static cl_int check_pitches(struct request *request) {
    cl_image_desc *desc = &request->desc;
    size_t row = cld_pixel_bytes(request->group, desc->image_width), layer;
    /* "The image_row_pitch must be zero if host_ptr is NULL, the image is not an image created from an
     * external memory handle", image_slice_pitch likewise. */
    CLD_REQUIRE(request->host_ptr || request->read.is_external ||
                    (!desc->image_row_pitch && !desc->image_slice_pitch),
                request->wrong_value, "the row pitch is %zu and the slice pitch %zu, 0 without host_ptr",
                desc->image_row_pitch, desc->image_slice_pitch);
    if (!desc->image_row_pitch)
        desc->image_row_pitch = row;
    /* "The image row pitch must be >= image_width x the size of an image element in bytes, and must be a
     * multiple of the size of an image element in bytes." */
    CLD_REQUIRE(desc->image_row_pitch >= row && desc->image_row_pitch % cld_pixel_unit(request->group) == 0,
                request->wrong_value, "the row pitch is %zu, at least %zu and a multiple of %zu",
                desc->image_row_pitch, row, (size_t)cld_pixel_unit(request->group));
    layer = desc->image_row_pitch * desc->image_height;
    if (!desc->image_slice_pitch || !cld_image_has_slices(desc->image_type))
        desc->image_slice_pitch = layer;
    /* "The image slice pitch must be >= the image row pitch x image_height for a 2D image array or a 3D
     * image, must be >= the image row pitch for a 1D image array, and must be a multiple of the image row
     * pitch." */
    CLD_REQUIRE(desc->image_slice_pitch >= layer && desc->image_slice_pitch % desc->image_row_pitch == 0,
                request->wrong_value, "the slice pitch is %zu, at least %zu and a multiple of %zu",
                desc->image_slice_pitch, layer, desc->image_row_pitch);
    CLD_REQUIRE(
        !__builtin_mul_overflow(desc->image_slice_pitch, desc->image_depth * desc->image_array_size, &layer),
        request->wrong_value, "the image has %zu slices of %zu bytes: more than can be counted",
        desc->image_depth * desc->image_array_size, desc->image_slice_pitch);
    return CL_SUCCESS;
}

/* Of images in a buffer: the pitches, and how many bytes of it they take. */
static cl_int check_buffer_pitches(struct request *request, size_t *size) {
    cl_image_desc *desc = &request->desc;
    size_t row = cld_pixel_bytes(request->group, desc->image_width), layer;
    size_t alignment = CLD_IMAGE_PITCH_ALIGN * cld_pixel_unit(request->group);
    if (!desc->image_row_pitch || desc->image_type == CL_MEM_OBJECT_IMAGE1D_BUFFER)
        desc->image_row_pitch = row;
    CLD_REQUIRE(!desc->image_slice_pitch || cld_image_has_slices(desc->image_type),
                CL_INVALID_IMAGE_DESCRIPTOR, "the slice pitch is %zu, 0 for an image without slices",
                desc->image_slice_pitch);
    /* "For an image created from a buffer, the image_row_pitch must also be a multiple of the
     * CL_IMAGE_REQUIREMENTS_ROW_PITCH_ALIGNMENT_EXT value". */
    CLD_REQUIRE(desc->image_row_pitch >= row && desc->image_row_pitch % alignment == 0,
                CL_INVALID_IMAGE_FORMAT_DESCRIPTOR,
                "the row pitch is %zu, at least %zu and a multiple of %zu", desc->image_row_pitch, row,
                alignment);
    layer = desc->image_row_pitch * desc->image_height;
    if (!desc->image_slice_pitch)
        desc->image_slice_pitch = layer;
    CLD_REQUIRE(desc->image_slice_pitch >= layer && desc->image_slice_pitch % desc->image_row_pitch == 0,
                CL_INVALID_IMAGE_FORMAT_DESCRIPTOR,
                "the slice pitch is %zu, at least %zu and a multiple of %zu", desc->image_slice_pitch, layer,
                desc->image_row_pitch);
    CLD_REQUIRE(
        !__builtin_mul_overflow(desc->image_slice_pitch, desc->image_depth * desc->image_array_size, size),
        CL_INVALID_IMAGE_SIZE, "the image has %zu slices of %zu bytes: more than can be counted",
        desc->image_depth * desc->image_array_size, desc->image_slice_pitch);
    return CL_SUCCESS;
}

static cl_int check_buffer(struct request *request) {
    const struct cld_mem *buffer = request->parent;
    size_t size;
    CLD_TRY(check_buffer_pitches(request, &size));
    /* "If the buffer object specified by mem_object was created with CL_MEM_USE_HOST_PTR, the host_ptr [...]
     * must be aligned to the CL_IMAGE_REQUIREMENTS_BASE_ADDRESS_ALIGNMENT_EXT value". */
    const size_t unit = CLD_IMAGE_ADDRESS_ALIGN * cld_pixel_unit(request->group);
    CLD_REQUIRE((uintptr_t)buffer->data % unit == 0, CL_INVALID_IMAGE_FORMAT_DESCRIPTOR,
                "the buffer's memory is at %p, no multiple of %zu", (void *)buffer->data, unit);
    /* "CL_INVALID_IMAGE_SIZE if [...] the buffer passed in mem_object is too small to be used as a data store
     * for the image". */
    CLD_REQUIRE(size <= buffer->size, CL_INVALID_IMAGE_SIZE, "the image has %zu bytes, the buffer %zu", size,
                buffer->size);
    return CL_SUCCESS;
}

/* "CL_INVALID_IMAGE_FORMAT_DESCRIPTOR if a 2D image is created from a 2D image object and the rules described
 * above are not followed." */
static cl_int check_view(struct request *request) {
    cl_image_desc *desc = &request->desc;
    const struct cld_image *of = request->parent->image;
    CLD_REQUIRE(desc->image_width == (size_t)of->desc.width &&
                    desc->image_height == (size_t)of->desc.height &&
                    (!desc->image_row_pitch || desc->image_row_pitch == of->row_pitch) &&
                    !desc->image_slice_pitch && desc->num_mip_levels == of->num_mip_levels,
                CL_INVALID_IMAGE_FORMAT_DESCRIPTOR,
                "the dimensions, pitches or levels of image_desc are not those of mem_object (%zu x %zu)",
                (size_t)of->desc.width, (size_t)of->desc.height);
    CLD_REQUIRE(request->format->image_channel_data_type == of->format.image_channel_data_type,
                CL_INVALID_IMAGE_FORMAT_DESCRIPTOR, "the channel data type is %#x, that of mem_object %#x",
                request->format->image_channel_data_type, of->format.image_channel_data_type);
    CLD_REQUIRE(cld_channel_orders_are_compatible(request->format->image_channel_order,
                                                  of->format.image_channel_order),
                CL_INVALID_IMAGE_FORMAT_DESCRIPTOR,
                "the channel order is %#x, not compatible with %#x, that of mem_object",
                request->format->image_channel_order, of->format.image_channel_order);
    desc->image_row_pitch = of->desc.row_pitch;
    desc->image_slice_pitch = of->desc.slice_pitch;
    return CL_SUCCESS;
}

static cl_mem_flags flags_of(const struct request *request) {
    return request->parent ? cld_memory_inherited_flags(request->flags, request->parent->flags)
                           : request->flags;
}

static cl_int check(struct request *request) {
    CLD_REQUIRE(request->context, CL_INVALID_CONTEXT, "not a context");
    CLD_REQUIRE_LIVE(request->context);
    CLD_TRY(cld_mem_properties_read(request->context, request->properties, false, &request->read));
    CLD_REQUIRE(cld_memory_flags_are_valid(request->flags), CL_INVALID_VALUE, "flags are not valid");
    CLD_REQUIRE(!request->read.is_external || !(request->flags & CLD_HOST_POINTER), CL_INVALID_VALUE,
                "flags ask for memory of the host, and properties for that of a handle");
    CLD_REQUIRE(request->format && cld_image_format_is_valid(request->format),
                CL_INVALID_IMAGE_FORMAT_DESCRIPTOR, "image_format is NULL or not valid");
    CLD_REQUIRE(request->given, CL_INVALID_IMAGE_DESCRIPTOR, "image_desc is NULL");
    request->desc = *request->given;
    /* "CL_INVALID_IMAGE_SIZE if image dimensions [...] exceed the maximum". The device queries name no
     * maximum of the row pitch, and the largest row is 256 KiB. */
    CLD_REQUIRE(request->desc.image_row_pitch <= CLD_IMAGE_ROW_PITCH, CL_INVALID_IMAGE_SIZE,
                "the row pitch is %zu, at most %zu", request->desc.image_row_pitch,
                (size_t)CLD_IMAGE_ROW_PITCH);
    CLD_TRY(check_type(request));
    CLD_TRY(check_parent(request));
    CLD_REQUIRE(cld_memory_has_contents(request->flags, request->read.is_external, request->parent),
                CL_INVALID_VALUE, "flags make an image that never changes, and nothing gives its contents");
    CLD_TRY(check_dimensions(request));
    CLD_TRY(check_host_pointer(request));
    CLD_REQUIRE(!request->parent || !request->read.is_external, CL_INVALID_PROPERTY,
                "memory of another object and of a handle");
    CLD_REQUIRE(cld_image_format_is_supported(request->format, request->desc.image_type, flags_of(request)),
                CL_IMAGE_FORMAT_NOT_SUPPORTED,
                "images of type %#x with these flags have no format of channel order %#x and type %#x",
                request->desc.image_type, request->format->image_channel_order,
                request->format->image_channel_data_type);
    request->group = cld_pixel_group(request->format);
    CLD_TRY(check_groups(request));
    if (!request->parent)
        return check_pitches(request);
    return request->parent->image ? check_view(request) : check_buffer(request);
}

static cl_int check_described(struct request *request) {
    CLD_REQUIRE(request->desc.image_row_pitch <= CLD_IMAGE_ROW_PITCH, CL_INVALID_IMAGE_DESCRIPTOR,
                "the row pitch is %zu, at most %zu", request->desc.image_row_pitch,
                (size_t)CLD_IMAGE_ROW_PITCH);
    CLD_TRY(check_type(request));
    return check_dimensions(request);
}

cl_int cld_image_check_described(const cl_image_desc *desc) {
    struct request request = {.desc = *desc, .wrong_value = CL_INVALID_IMAGE_DESCRIPTOR};
    return check_described(&request) ? CL_INVALID_IMAGE_DESCRIPTOR : CL_SUCCESS;
}

cl_int cld_image_size_in_buffer(const cl_image_format *format, const cl_image_desc *desc, size_t *size) {
    struct request request = {
        .desc = *desc, .wrong_value = CL_INVALID_IMAGE_DESCRIPTOR, .group = cld_pixel_group(format)};
    CLD_REQUIRE(desc->num_mip_levels <= 1, CL_INVALID_IMAGE_DESCRIPTOR,
                "a mipmapped image is not made from a buffer");
    return check_described(&request) || check_groups(&request) || check_buffer_pitches(&request, size)
               ? CL_INVALID_IMAGE_DESCRIPTOR
               : CL_SUCCESS;
}

/* The levels one after the other; the first has the pitches of desc. Returns the size of all. */
static size_t lay_out(struct cld_image *image, const cl_image_desc *desc) {
    size_t end = 0;
    for (cl_uint i = 0; i < image->desc.levels; i++) {
        struct cld_image_level *level = &image->levels[i];
        size_t width = desc->image_width >> i, height = desc->image_height >> i,
               depth = desc->image_depth >> i;
        width = width ? width : 1, height = height ? height : 1, depth = depth ? depth : 1;
        *level = (struct cld_image_level){
            .offset = (end + 63) & ~(size_t)63,
            .width = (int32_t)width,
            .height = (int32_t)height,
            .depth = (int32_t)depth,
            .row_pitch = i ? cld_pixel_bytes(image->group, width) : desc->image_row_pitch,
        };
        level->slice_pitch = i ? level->row_pitch * height : desc->image_slice_pitch;
        end = level->offset + level->slice_pitch * depth * desc->image_array_size;
    }
    return end;
}

static struct cld_image *describe(const struct request *request) {
    const cl_image_desc *desc = &request->desc;
    void *memory;
    if (posix_memalign(&memory, 64, sizeof(struct cld_image)))
        return NULL;
    struct cld_image *image = memset(memory, 0, sizeof(struct cld_image));
    image->format = *request->format;
    image->group = request->group;
    image->row_pitch = desc->image_row_pitch;
    image->slice_pitch = cld_image_has_slices(desc->image_type) ? desc->image_slice_pitch : 0;
    image->num_mip_levels = desc->num_mip_levels;
    image->desc = (struct cld_image_desc){
        .array_size = (int32_t)desc->image_array_size,
        .channel_order = request->format->image_channel_order,
        .channel_data_type = request->format->image_channel_data_type,
        .element_size = cld_pixel_unit(request->group),
        .levels = desc->num_mip_levels ? desc->num_mip_levels : 1,
        .level = image->levels,
    };
    return image;
}

static void copy_rows(const struct cld_mem *mem, const struct request *request) {
    const struct cld_image_desc *to = &mem->image->desc;
    const cl_image_desc *from = &request->desc;
    for (size_t z = 0; z < from->image_depth * from->image_array_size; z++)
        for (size_t y = 0; y < from->image_height; y++)
            memcpy(mem->data + z * to->slice_pitch + y * to->row_pitch,
                   (const uint8_t *)request->host_ptr + z * from->image_slice_pitch +
                       y * from->image_row_pitch,
                   cld_pixel_bytes(request->group, from->image_width));
}

/* Storage of its own has no gaps, whatever the pitches of what is copied into it. */
static cl_int find_storage(struct cld_mem *mem, const struct request *request) {
    struct cld_image *image = mem->image;
    cl_image_desc desc = request->desc;
    struct cld_mem *parent = request->parent;
    if (!parent && !request->read.is_external && !(request->flags & CL_MEM_USE_HOST_PTR)) {
        desc.image_row_pitch = cld_pixel_bytes(request->group, desc.image_width);
        desc.image_slice_pitch = desc.image_row_pitch * desc.image_height;
    }
    mem->size = lay_out(image, &desc);
    if (parent) {
        mem->parent = parent;
        cld_object_hold(parent);
        mem->data = parent->data;
    } else if (request->read.is_external) {
        CLD_TRY(cld_mem_import(mem, request->read.descriptor));
    } else if (request->flags & CL_MEM_USE_HOST_PTR) {
        mem->data = mem->host_ptr = request->host_ptr;
    } else if (mem->size > request->context->devices[0]->max_alloc_size || !cld_memory_allocate(mem)) {
        cld_context_notify(request->context, "there is no memory for an image of %zu bytes", mem->size);
        return CL_MEM_OBJECT_ALLOCATION_FAILURE;
    }
    image->desc.data = mem->data;
    image->desc.row_pitch = image->levels[0].row_pitch;
    image->desc.slice_pitch = image->levels[0].slice_pitch;
    image->desc.width = image->levels[0].width;
    image->desc.height = image->levels[0].height;
    image->desc.depth = image->levels[0].depth;
    if (request->flags & CL_MEM_COPY_HOST_PTR)
        copy_rows(mem, request);
    return CL_SUCCESS;
}

static cl_int create(struct request *request, struct cld_mem **made) {
    CLD_TRY(check(request));
    struct cld_mem *mem = cld_memory_new(request->context, flags_of(request), 0);
    CLD_REQUIRE(mem, CL_OUT_OF_HOST_MEMORY, "no memory for the handle");
    mem->type = request->desc.image_type;
    mem->image = describe(request);
    cl_int status = mem->image && cld_mem_properties_keep(mem, request->properties, &request->read)
                        ? find_storage(mem, request)
                        : CL_OUT_OF_HOST_MEMORY;
    if (status)
        cld_object_release(mem, CLD_MEM, CL_INVALID_MEM_OBJECT);
    CLD_REQUIRE(!status, status, "no memory");
    *made = mem;
    return CL_SUCCESS;
}

static cl_mem create_image(cl_context context, struct request request, cl_int *errcode_ret) {
    struct cld_mem *made = NULL;
    request.context = cld_object_check(context, CLD_CONTEXT);
    cl_int status = create(&request, &made);
    if (errcode_ret)
        *errcode_ret = status;
    return (cl_mem)made;
}

CL_API_ENTRY cl_mem CL_API_CALL clCreateImageWithProperties(cl_context context,
                                                            const cl_mem_properties *properties,
                                                            cl_mem_flags flags,
                                                            const cl_image_format *image_format,
                                                            const cl_image_desc *image_desc, void *host_ptr,
                                                            cl_int *errcode_ret) {
    struct request request = {.properties = properties,
                              .flags = flags,
                              .format = image_format,
                              .given = image_desc,
                              .host_ptr = host_ptr,
                              .wrong_value = CL_INVALID_IMAGE_DESCRIPTOR};
    return create_image(context, request, errcode_ret);
}

CL_API_ENTRY cl_mem CL_API_CALL clCreateImage(cl_context context, cl_mem_flags flags,
                                              const cl_image_format *image_format,
                                              const cl_image_desc *image_desc, void *host_ptr,
                                              cl_int *errcode_ret) {
    return clCreateImageWithProperties(context, NULL, flags, image_format, image_desc, host_ptr, errcode_ret);
}

/* "CL_INVALID_IMAGE_SIZE if image_width or image_height are 0 or if they exceed the maximum values [...] or
 * if values specified by image_row_pitch do not follow rules". */
CL_API_ENTRY cl_mem CL_API_CALL clCreateImage2D(cl_context context, cl_mem_flags flags,
                                                const cl_image_format *image_format, size_t image_width,
                                                size_t image_height, size_t image_row_pitch, void *host_ptr,
                                                cl_int *errcode_ret) {
    cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE2D,
                          .image_width = image_width,
                          .image_height = image_height,
                          .image_row_pitch = image_row_pitch};
    struct request request = {.flags = flags,
                              .format = image_format,
                              .given = &desc,
                              .host_ptr = host_ptr,
                              .wrong_value = CL_INVALID_IMAGE_SIZE};
    return create_image(context, request, errcode_ret);
}

CL_API_ENTRY cl_mem CL_API_CALL clCreateImage3D(cl_context context, cl_mem_flags flags,
                                                const cl_image_format *image_format, size_t image_width,
                                                size_t image_height, size_t image_depth,
                                                size_t image_row_pitch, size_t image_slice_pitch,
                                                void *host_ptr, cl_int *errcode_ret) {
    /* "For clCreateImage3D, this must be a value > 1": one slice is as wrong as none. */
    cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE3D,
                          .image_width = image_width,
                          .image_height = image_height,
                          .image_depth = image_depth > 1 ? image_depth : 0,
                          .image_row_pitch = image_row_pitch,
                          .image_slice_pitch = image_slice_pitch};
    struct request request = {.flags = flags,
                              .format = image_format,
                              .given = &desc,
                              .host_ptr = host_ptr,
                              .wrong_value = CL_INVALID_IMAGE_SIZE};
    return create_image(context, request, errcode_ret);
}
