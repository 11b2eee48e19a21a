/* Buffers and sub-buffers, queries of memory objects (API specification, 5.2.1, 5.5.1 and 5.5.6).
 *
 * In C as a whole, unlike the rest of the control plane: programs make and release buffers by the thousand,
 * also from destructors, and a buffer needs no peer; its rules are comparisons of integers. */
#define _GNU_SOURCE
#include "api/common.h"

#include <stdlib.h>
#include <string.h>

#include "api/memory.h"
#include "check/check.h"
#include "enqueue/enqueue.h"
#include "memory/allocator.h"
#include "memory/image.h"
#include "memory/mem.h"
#include "memory/mem_properties.h"
#include "memory/svm.h"
#include "object/call.h"
#include "object/info.h"
#include "object/mover.h"
#include "runtime/callback.h"

enum { OVERRUN = 256 };

/* What memory that never changes is not. */
#define CLD_WRITABLE (CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_HOST_WRITE_ONLY)

static bool at_most_one(cl_mem_flags flags) {
    return !(flags & (flags - 1));
}

bool cld_memory_flags_are_valid(cl_mem_flags flags) {
    if (flags & ~(CLD_MEM_IMMUTABLE | CLD_KERNEL_ACCESS | CLD_HOST_ACCESS | CLD_HOST_POINTER))
        return false;
    if (flags & CLD_MEM_IMMUTABLE && flags & CLD_WRITABLE)
        return false;
    /* "CL_MEM_ALLOC_HOST_PTR and CL_MEM_USE_HOST_PTR are mutually exclusive." "CL_MEM_COPY_HOST_PTR and
     * CL_MEM_USE_HOST_PTR are mutually exclusive." */
    if (flags & CL_MEM_USE_HOST_PTR && flags & (CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR))
        return false;
    return at_most_one(flags & CLD_KERNEL_ACCESS) && at_most_one(flags & CLD_HOST_ACCESS);
}

bool cld_memory_has_contents(cl_mem_flags flags, bool is_external, const struct cld_mem *parent) {
    return !(flags & CLD_MEM_IMMUTABLE) || flags & (CL_MEM_COPY_HOST_PTR | CL_MEM_USE_HOST_PTR) ||
           is_external || parent;
}

/* Vector code may read to the end of the last 64 bytes: never past a line that the buffer is in. Behind it is
 * some room for kernels that write past the end (piglit's bswap, by 64 bytes): the harm that it does
 * elsewhere would be the host's heap. */
static size_t room_of(size_t size) {
    return ((size + 63) & ~(size_t)63) + OVERRUN + (cld_kcheck_is_on ? 2 * CLD_CHECK_GAP : 0);
}

static void destroy_memory(void *object) {
    struct cld_mem *mem = object;
    if (mem->image && mem->image->known)
        cld_mover()->image_freed(mem);
    if (mem->copies)
        cld_mover()->mem_freed(mem);
    /* "The registered callback functions are called and then the memory object's resources are freed". */
    cld_destructors_run(mem, &mem->destructors);
    cld_maps_free(mem);
    if (cld_kcheck_is_on && !mem->parent)
        cld_kcheck_freed(mem->data);
    if (cld_kcheck_is_on && !mem->parent && !mem->owns_data) /* it is the host's again */
        cld_kcheck_taken(mem->data, mem->size);
    if (mem->is_external)
        cld_mem_unmap(mem);
    if (mem->owns_data)
        cld_allocate_free(mem->data, room_of(mem->size));
    free(mem->properties);
    free(mem->image);
    if (mem->parent)
        cld_object_drop(mem->parent);
    cld_object_drop(mem->context);
}

__attribute__((constructor)) static void register_memory(void) {
    cld_object_on_destroy(CLD_MEM, destroy_memory);
}

struct cld_mem *cld_memory_new(struct cld_context *context, cl_mem_flags flags, size_t size) {
    struct cld_mem *mem = cld_object_new(CLD_MEM);
    if (!mem)
        return NULL;
    mem->context = context;
    cld_object_hold(context);
    mem->type = CL_MEM_OBJECT_BUFFER;
    mem->flags = flags; /* as given: CL_MEM_FLAGS returns "the flags argument value specified" */
    mem->size = size;
    return mem;
}

bool cld_memory_allocate(struct cld_mem *mem) {
    size_t room = room_of(mem->size);
    mem->data = room > mem->size ? cld_allocate(room) : NULL;
    mem->owns_data = mem->data != NULL;
    if (cld_kcheck_is_on && mem->data)
        cld_kcheck_taken(mem->data, room);
    return mem->owns_data;
}

static cl_mem create_buffer(cl_context handle, const cl_mem_properties *properties, cl_mem_flags flags,
                            size_t size, void *host_ptr, cl_int *errcode_ret) {
    struct cld_context *context = cld_object_check(handle, CLD_CONTEXT);
    CLD_REQUIRE_OR_NULL(context, CL_INVALID_CONTEXT, "not a context");
    CLD_REQUIRE_LIVE_OR_NULL(context);
    struct cld_mem_properties read;
    cl_int status = cld_mem_properties_read(context, properties, true, &read);
    CLD_REQUIRE_OR_NULL(!status, status, "properties are not valid");
    CLD_REQUIRE_OR_NULL(cld_memory_flags_are_valid(flags), CL_INVALID_VALUE, "flags are not valid");
    /* "CL_INVALID_VALUE if properties includes a supported external memory handle and flags includes
     * CL_MEM_USE_HOST_PTR, CL_MEM_ALLOC_HOST_PTR, or CL_MEM_COPY_HOST_PTR." */
    CLD_REQUIRE_OR_NULL(!read.is_external || !(flags & CLD_HOST_POINTER), CL_INVALID_VALUE,
                        "flags ask for memory of the host, and properties for that of a handle");
    CLD_REQUIRE_OR_NULL(cld_memory_has_contents(flags, read.is_external, NULL), CL_INVALID_VALUE,
                        "flags make a buffer that never changes, and nothing gives its contents");
    /* "CL_INVALID_BUFFER_SIZE if size is 0, or if size is greater than CL_DEVICE_MAX_MEM_ALLOC_SIZE for all
     * devices in context". All devices of this driver share one memory. */
    CLD_REQUIRE_OR_NULL(size && size <= context->devices[0]->max_alloc_size, CL_INVALID_BUFFER_SIZE,
                        "size is %zu, 1 to %zu (CL_DEVICE_MAX_MEM_ALLOC_SIZE)", size,
                        (size_t)context->devices[0]->max_alloc_size);
    /* "CL_INVALID_HOST_PTR if host_ptr is NULL and CL_MEM_USE_HOST_PTR or CL_MEM_COPY_HOST_PTR are set in
     * flags or if host_ptr is not NULL but CL_MEM_COPY_HOST_PTR or CL_MEM_USE_HOST_PTR are not set". */
    bool wants_pointer = flags & (CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR);
    CLD_REQUIRE_OR_NULL(
        wants_pointer == (host_ptr != NULL), CL_INVALID_HOST_PTR,
        "host_ptr and CL_MEM_USE_HOST_PTR or CL_MEM_COPY_HOST_PTR in flags contradict each other");
    bool is_svm = false;
    if (flags & CL_MEM_USE_HOST_PTR) {
        size_t room = cld_svm_room(context, host_ptr);
        is_svm = room > 0;
        /* "or if CL_MEM_USE_HOST_PTR is set in flags and host_ptr is a pointer returned by clSVMAlloc and
         * size is greater than the size passed to clSVMAlloc." */
        CLD_REQUIRE_OR_NULL(!is_svm || size <= room, CL_INVALID_BUFFER_SIZE,
                            "size is %zu, the SVM allocation has %zu bytes behind host_ptr", size, room);
    }
    struct cld_mem *mem = cld_memory_new(context, flags, size);
    CLD_REQUIRE_OR_NULL(mem, CL_OUT_OF_HOST_MEMORY, "no memory for the handle");
    if (!cld_mem_properties_keep(mem, properties, &read)) {
        status = CL_OUT_OF_HOST_MEMORY;
    } else if (read.is_external) {
        status = cld_mem_import(mem, read.descriptor);
    } else if (flags & CL_MEM_USE_HOST_PTR) {
        mem->data = mem->host_ptr = host_ptr;
        mem->svm = is_svm;
    } else {
        if (!cld_memory_allocate(mem))
            status = CL_MEM_OBJECT_ALLOCATION_FAILURE;
        else if (host_ptr)
            cld_context_copy(context, mem->data, host_ptr, size);
    }
    if (cld_kcheck_is_on && !status)
        cld_kcheck_allocated(mem->data, size, "made by clCreateBuffer", host_ptr || read.is_external);
    if (status == CL_MEM_OBJECT_ALLOCATION_FAILURE)
        cld_context_notify(context, "there is no memory for a buffer of %zu bytes", size);
    if (status)
        cld_object_release(mem, CLD_MEM, CL_INVALID_MEM_OBJECT);
    if (errcode_ret)
        *errcode_ret = status;
    return status ? NULL : (cl_mem)mem;
}

CL_API_ENTRY cl_mem CL_API_CALL clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size,
                                               void *host_ptr, cl_int *errcode_ret) {
    return create_buffer(context, NULL, flags, size, host_ptr, errcode_ret);
}

CL_API_ENTRY cl_mem CL_API_CALL clCreateBufferWithProperties(cl_context context,
                                                             const cl_mem_properties *properties,
                                                             cl_mem_flags flags, size_t size, void *host_ptr,
                                                             cl_int *errcode_ret) {
    return create_buffer(context, properties, flags, size, host_ptr, errcode_ret);
}

cl_mem_flags cld_memory_inherited_flags(cl_mem_flags flags, cl_mem_flags parent) {
    if (!(flags & CLD_KERNEL_ACCESS))
        flags |= parent & CLD_KERNEL_ACCESS;
    if (!(flags & CLD_HOST_ACCESS))
        flags |= parent & CLD_HOST_ACCESS;
    return flags | (parent & (CLD_MEM_IMMUTABLE | CLD_HOST_POINTER));
}

/* "CL_INVALID_VALUE if buffer was created with [...] and flags specifies [...]": every combination that
 * would widen what the parent allows. */
bool cld_memory_allowed_by_parent(cl_mem_flags flags, cl_mem_flags parent) {
    if (parent & CLD_MEM_IMMUTABLE && flags & CLD_WRITABLE)
        return false;
    if (parent & CL_MEM_WRITE_ONLY && flags & (CL_MEM_READ_WRITE | CL_MEM_READ_ONLY))
        return false;
    if (parent & CL_MEM_READ_ONLY && flags & (CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY))
        return false;
    if (parent & CL_MEM_HOST_WRITE_ONLY && flags & CL_MEM_HOST_READ_ONLY)
        return false;
    if (parent & CL_MEM_HOST_READ_ONLY && flags & CL_MEM_HOST_WRITE_ONLY)
        return false;
    if (parent & CL_MEM_HOST_NO_ACCESS && flags & (CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_WRITE_ONLY))
        return false;
    return true;
}

CL_API_ENTRY cl_mem CL_API_CALL clCreateSubBuffer(cl_mem handle, cl_mem_flags flags,
                                                  cl_buffer_create_type buffer_create_type,
                                                  const void *buffer_create_info, cl_int *errcode_ret) {
    struct cld_mem *parent = cld_object_check(handle, CLD_MEM);
    /* "CL_INVALID_MEM_OBJECT if buffer is not a valid buffer object or is a sub-buffer object." */
    CLD_REQUIRE_OR_NULL(parent && parent->type == CL_MEM_OBJECT_BUFFER && !parent->parent,
                        CL_INVALID_MEM_OBJECT, "not a buffer, or a sub-buffer");
    CLD_REQUIRE_LIVE_OR_NULL(parent->context);
    /* "or if flags specifies CL_MEM_USE_HOST_PTR or CL_MEM_ALLOC_HOST_PTR or CL_MEM_COPY_HOST_PTR." */
    CLD_REQUIRE_OR_NULL(cld_memory_flags_are_valid(flags) && !(flags & CLD_HOST_POINTER), CL_INVALID_VALUE,
                        "flags are not valid");
    CLD_REQUIRE_OR_NULL(cld_memory_allowed_by_parent(flags, parent->flags), CL_INVALID_VALUE,
                        "flags allow more than the buffer's %#lx do", (unsigned long)parent->flags);
    CLD_REQUIRE_OR_NULL(buffer_create_type == CL_BUFFER_CREATE_TYPE_REGION, CL_INVALID_VALUE,
                        "buffer_create_type is %#x, not CL_BUFFER_CREATE_TYPE_REGION", buffer_create_type);
    CLD_REQUIRE_OR_NULL(buffer_create_info, CL_INVALID_VALUE, "buffer_create_info is NULL");
    const cl_buffer_region *region = buffer_create_info;
    /* "CL_INVALID_BUFFER_SIZE if the size field [...] is 0." */
    CLD_REQUIRE_OR_NULL(region->size, CL_INVALID_BUFFER_SIZE,
                        "the size in buffer_create_info is 0, at least 1");
    /* "CL_INVALID_VALUE if the region [...] is out of bounds in buffer." */
    CLD_REQUIRE_OR_NULL(region->origin <= parent->size && region->size <= parent->size - region->origin,
                        CL_INVALID_VALUE,
                        "buffer_create_info has %zu bytes from byte %zu on, the buffer has %zu", region->size,
                        region->origin, parent->size);
    /* "CL_MISALIGNED_SUB_BUFFER_OFFSET if there are no devices in context [...] for which the origin field
     * [...] is aligned to the CL_DEVICE_MEM_BASE_ADDR_ALIGN value." The devices share one value. */
    CLD_REQUIRE_OR_NULL(region->origin % parent->context->devices[0]->base_align == 0,
                        CL_MISALIGNED_SUB_BUFFER_OFFSET,
                        "the origin in buffer_create_info is %zu, no multiple of %u", region->origin,
                        (unsigned)parent->context->devices[0]->base_align);
    struct cld_mem *mem =
        cld_memory_new(parent->context, cld_memory_inherited_flags(flags, parent->flags), region->size);
    CLD_REQUIRE_OR_NULL(mem, CL_OUT_OF_HOST_MEMORY, "no memory for the handle");
    mem->parent = parent;
    cld_object_hold(parent);
    mem->offset = region->origin;
    mem->data = parent->data + region->origin;
    mem->host_ptr = parent->host_ptr ? (uint8_t *)parent->host_ptr + region->origin : NULL;
    mem->svm = parent->svm;
    if (errcode_ret)
        *errcode_ret = CL_SUCCESS;
    return (cl_mem)mem;
}

/* "A list of device addresses for the buffer, one for each device in the context": all are the host's. */
static cl_int device_addresses(const struct cld_mem *mem, size_t param_value_size, void *param_value,
                               size_t *param_value_size_ret) {
    CLD_REQUIRE(mem->has_address, CL_INVALID_OPERATION,
                "the buffer was made without CL_MEM_DEVICE_PRIVATE_ADDRESS_EXT");
    uint32_t count = mem->context->device_count;
    cl_mem_device_address_ext *addresses = malloc(count * sizeof *addresses);
    CLD_REQUIRE(addresses, CL_OUT_OF_HOST_MEMORY, "no memory");
    for (uint32_t i = 0; i < count; i++)
        addresses[i] = (uintptr_t)mem->data;
    cl_int status =
        cld_info(addresses, count * sizeof *addresses, param_value_size, param_value, param_value_size_ret);
    free(addresses);
    return status;
}

CL_API_ENTRY cl_int CL_API_CALL clGetMemObjectInfo(cl_mem handle, cl_mem_info param_name,
                                                   size_t param_value_size, void *param_value,
                                                   size_t *param_value_size_ret) {
    struct cld_mem *mem = cld_object_check(handle, CLD_MEM);
    CLD_REQUIRE(mem, CL_INVALID_MEM_OBJECT, "not a memory object");
    cl_uint number;
    const void *answer;
    size_t size;
#define ANSWER(member) (answer = &(member), size = sizeof(member))
    switch (param_name) {
    case CL_MEM_TYPE:
        ANSWER(mem->type);
        break;
    case CL_MEM_FLAGS:
        ANSWER(mem->flags);
        break;
    case CL_MEM_SIZE:
        ANSWER(mem->size);
        break;
    case CL_MEM_HOST_PTR:
        ANSWER(mem->host_ptr);
        break;
    case CL_MEM_MAP_COUNT:
        number = atomic_load(&mem->map_count);
        ANSWER(number);
        break;
    case CL_MEM_REFERENCE_COUNT:
        number = cld_object_refs(mem);
        ANSWER(number);
        break;
    case CL_MEM_CONTEXT:
        ANSWER(mem->context);
        break;
    case CL_MEM_ASSOCIATED_MEMOBJECT:
        ANSWER(mem->parent);
        break;
    case CL_MEM_OFFSET:
        ANSWER(mem->offset);
        break;
    case CL_MEM_USES_SVM_POINTER:
        number = mem->svm;
        ANSWER(number);
        break;
    case CL_MEM_PROPERTIES:
        answer = mem->properties;
        size = mem->property_count * sizeof *mem->properties;
        break;
    case CL_MEM_DEVICE_ADDRESS_EXT:
        return device_addresses(mem, param_value_size, param_value, param_value_size_ret);
    default:
        return cld_lack(__func__, CL_INVALID_VALUE, "param_name is not a memory object query");
    }
#undef ANSWER
    return cld_info(answer, size, param_value_size, param_value, param_value_size_ret);
}

CL_API_ENTRY cl_int CL_API_CALL clSetMemObjectDestructorCallback(
    cl_mem handle, void(CL_CALLBACK *pfn_notify)(cl_mem, void *), void *user_data) {
    struct cld_mem *mem = cld_object_check(handle, CLD_MEM);
    CLD_REQUIRE(mem, CL_INVALID_MEM_OBJECT, "not a memory object");
    CLD_REQUIRE(pfn_notify, CL_INVALID_VALUE, "pfn_notify is NULL");
    return cld_destructor_add(mem, &mem->destructors, (void (*)(void *, void *))(void *)pfn_notify,
                              user_data);
}
