/* Images on workers: a worker makes each of its own on its copy of the memory object that has the contents,
 * with this machine's pitches, so that the bytes mean the same on both. What has the contents is moved as
 * every buffer is (copies.c): of an image made from a buffer that buffer, of others the image itself. */
#include <stdlib.h>

#include "cluster/internal.h"
#include "memory/image.h"
#include "object/call.h"

/* The buffer that an image was made from, or the image that has storage of its own. */
static struct cld_mem *storage_of(struct cld_mem *mem) {
    while (mem->image && mem->parent)
        mem = mem->parent;
    return mem;
}

cl_int cld_image_argument(struct cld_msg *list, struct cld_mem *mem, uint32_t i) {
    struct cld_image *image = mem->image;
    /* "CL_INVALID_IMAGE_SIZE if an image object is specified as an argument value and the image dimensions
     * [...] are not supported by device": such devices have no mipmaps. */
    CLD_REQUIRE(image->desc.levels == 1, CL_INVALID_IMAGE_SIZE,
                "argument %u is an image with mip levels, and the device is another machine's", i);
    pthread_mutex_lock(&cld_cluster_lock);
    bool is_known =
        cld_copies_of(mem) && (image->known || (image->known = cld_known_new(CLD_FORGET_IMAGE_MESSAGE)));
    pthread_mutex_unlock(&cld_cluster_lock);
    CLD_REQUIRE(is_known, CL_OUT_OF_HOST_MEMORY, "no memory");
    cld_put_list(list, 1);
    cld_put_int(list, (int64_t)image->known->number);
    return CL_SUCCESS;
}

void cld_sampler_argument(struct cld_msg *list, uint64_t word) {
    cl_addressing_mode addressing = CL_ADDRESS_NONE + (word >> CLD_SAMPLER_ADDRESS_SHIFT & 7);
    cld_put_list(list, 4);
    cld_put_int(list, (word & CLD_SAMPLER_NORMALIZED) != 0);
    cld_put_int(list, addressing);
    cld_put_int(list, word & CLD_SAMPLER_LINEAR ? CL_FILTER_LINEAR : CL_FILTER_NEAREST);
    cld_put_int(list, word & CLD_SAMPLER_MIP_LINEAR ? CL_FILTER_LINEAR : CL_FILTER_NEAREST);
}

static void put_memory(struct cld_msg *msg, const struct cld_mem *storage, uint64_t number) {
    cld_put_list(msg, 3);
    cld_put_int(msg, (int64_t)number);
    cld_put_int(msg, storage->parent ? (int64_t)storage->offset : 0);
    cld_put_int(msg, (int64_t)storage->size);
}

static bool send_image(struct cld_mem *mem, struct cld_worker *worker) {
    const cl_mem_flags kernel_access =
        CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY | CL_MEM_KERNEL_READ_AND_WRITE;
    struct cld_image *image = mem->image;
    const struct cld_image_desc *desc = &image->desc;
    const struct cld_copies *copies = cld_copies_of(mem);
    struct cld_item *item = copies ? cld_item_new() : NULL;
    if (!item)
        return false;
    struct cld_msg *msg = &item->message;
    cld_put_list(msg, 10);
    cld_put_int(msg, CLD_IMAGE_MESSAGE);
    cld_put_int(msg, (int64_t)image->known->number);
    put_memory(msg, storage_of(mem), copies->known->number);
    cld_put_int(msg, (int64_t)(mem->flags & kernel_access));
    cld_put_int(msg, image->format.image_channel_order);
    cld_put_int(msg, image->format.image_channel_data_type);
    cld_put_int(msg, mem->type);
    cld_put_list(msg, 4);
    cld_put_int(msg, desc->width);
    cld_put_int(msg, desc->height);
    cld_put_int(msg, desc->depth);
    cld_put_int(msg, desc->array_size);
    cld_put_int(msg, (int64_t)desc->row_pitch);
    cld_put_int(msg, cld_image_has_slices(mem->type) ? (int64_t)desc->slice_pitch : 0);
    if (!cld_send(worker, item))
        return false;
    cld_set_add(&image->known->workers, worker->number);
    return true;
}

bool cld_images_send(struct cld_event *command, struct cld_worker *worker) {
    for (uint32_t i = 0; i < command->mem_count; i++) {
        struct cld_mem *mem = command->more_mems ? command->more_mems[i] : command->mems[i];
        bool is_mem = atomic_load_explicit(&mem->obj.tag, memory_order_relaxed) == CLD_MEM;
        bool is_new = is_mem && mem->image && !cld_set_has(&mem->image->known->workers, worker->number);
        if (is_new && !send_image(mem, worker))
            return false;
    }
    return true;
}

void cld_image_freed(struct cld_mem *mem) {
    if (!cld_cluster_is_here())
        return;
    pthread_mutex_lock(&cld_cluster_lock);
    cld_forget(mem->image->known);
    pthread_mutex_unlock(&cld_cluster_lock);
}
