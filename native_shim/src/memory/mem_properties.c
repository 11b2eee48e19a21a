/* Properties of buffers and images; imports of memory. */
#define _GNU_SOURCE
#include "memory/mem_properties.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "object/call.h"

/* *at: the list's first word, then what follows its end. */
static cl_int read_devices(const struct cld_context *context, const cl_mem_properties **at) {
    CLD_REQUIRE(**at, CL_INVALID_PROPERTY, "an empty list of devices");
    for (; **at; ++*at) {
        const struct cld_device *device = cld_object_check((const void *)(uintptr_t)**at, CLD_DEVICE);
        CLD_REQUIRE(device && cld_context_has_device(context, device), CL_INVALID_DEVICE,
                    "properties has %s, not a device of the context",
                    cld_describe((const void *)(uintptr_t)**at).text);
    }
    ++*at;
    return CL_SUCCESS;
}

cl_int cld_mem_properties_read(const struct cld_context *context, const cl_mem_properties *properties,
                               bool is_buffer, struct cld_mem_properties *read) {
    *read = (struct cld_mem_properties){0};
    if (!properties)
        return CL_SUCCESS;
    bool is_told = false;
    const cl_mem_properties *at = properties;
    while (*at) {
        cl_mem_properties name = *at++;
        if (name == CLD_MEM_DEVICE_HANDLE_LIST) {
            CLD_REQUIRE(!read->first_device, CL_INVALID_PROPERTY, "two lists of devices");
            read->first_device = (size_t)(at - properties);
            CLD_TRY(read_devices(context, &at));
        } else if (name == CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_FD_KHR) {
            CLD_REQUIRE(!read->is_external, CL_INVALID_PROPERTY, "two handles");
            read->is_external = true;
            read->descriptor = (int)*at++;
        } else {
            /* The buffer's address may be asked for (cl_ext_buffer_device_address). Every buffer has one that
             * stays. */
            CLD_REQUIRE(is_buffer && name == CL_MEM_DEVICE_PRIVATE_ADDRESS_EXT, CL_INVALID_PROPERTY,
                        "properties has %#lx, which is none of this object", (unsigned long)name);
            CLD_REQUIRE(!is_told, CL_INVALID_PROPERTY, "CL_MEM_DEVICE_PRIVATE_ADDRESS_EXT is there twice");
            CLD_REQUIRE(*at == CL_TRUE || *at == CL_FALSE, CL_INVALID_PROPERTY,
                        "CL_MEM_DEVICE_PRIVATE_ADDRESS_EXT is neither CL_TRUE nor CL_FALSE");
            is_told = true;
            read->has_address = *at++;
        }
    }
    read->words = (size_t)(at - properties) + 1;
    CLD_REQUIRE(read->is_external || !read->first_device, CL_INVALID_PROPERTY,
                "a list of devices without a handle");
    return CL_SUCCESS;
}

bool cld_mem_properties_keep(struct cld_mem *mem, const cl_mem_properties *properties,
                             const struct cld_mem_properties *read) {
    mem->has_address = read->has_address;
    mem->first_device = read->first_device;
    if (!read->words)
        return true;
    mem->properties = malloc(read->words * sizeof *mem->properties);
    if (!mem->properties)
        return false;
    memcpy(mem->properties, properties, read->words * sizeof *mem->properties);
    mem->property_count = read->words;
    return true;
}

cl_int cld_mem_import(struct cld_mem *mem, int descriptor) {
    struct stat about;
    int flags = fcntl(descriptor, F_GETFL);
    CLD_REQUIRE(flags >= 0 && !fstat(descriptor, &about), CL_INVALID_PROPERTY,
                "%d in properties is no descriptor that is open", descriptor);
    CLD_REQUIRE((flags & O_ACCMODE) == O_RDWR && S_ISREG(about.st_mode), CL_INVALID_PROPERTY,
                "descriptor %d in properties is not one of memory that may be written to", descriptor);
    CLD_REQUIRE((uint64_t)about.st_size >= mem->size, CL_INVALID_PROPERTY,
                "the descriptor has %zu bytes, the object %zu", (size_t)about.st_size, mem->size);
    void *data = mmap(NULL, mem->size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    CLD_REQUIRE(data != MAP_FAILED, CL_MEM_OBJECT_ALLOCATION_FAILURE, "the memory cannot be mapped");
    close(descriptor);
    mem->data = data;
    mem->is_external = true;
    return CL_SUCCESS;
}

void cld_mem_unmap(struct cld_mem *mem) {
    munmap(mem->data, mem->size);
}

bool cld_mem_is_for(const struct cld_mem *mem, const struct cld_device *device) {
    if (!mem->first_device)
        return cld_context_has_device(mem->context, device);
    for (const cl_mem_properties *at = mem->properties + mem->first_device; *at; at++)
        if (*at == (uintptr_t)device)
            return true;
    return false;
}
