/* From a built program's answer to code that runs: maps the objects, makes the program-scope variables and
 * the kernel infos of the data plane. */
#define _GNU_SOURCE
#include "launch/executable.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "launch/argument_specialisation.h"
#include "launch/tiers.h"
#include "loader/load.h"
#include "object/lock.h"
#include "python/door.h"
#include "runtime/context_notify.h"

void cld_executable_drop(struct cld_executable *executable) {
    if (!executable || atomic_fetch_sub(&executable->holds, 1) != 1)
        return;
    for (uint32_t i = 0; i < executable->code_count; i++)
        if (executable->code[i])
            cld_code_unload(executable->code[i]);
    free(executable->code);
    free(executable->globals_memory);
    free(executable->options);
    free(executable->il);
    free(executable);
}

void cld_kernel_info_drop(struct cld_kernel_info *info) {
    if (!info || atomic_fetch_sub(&info->holds, 1) != 1)
        return;
    cld_tier_drop(atomic_load(&info->codes));
    cld_specialisation_history_drop(info->history);
    cld_executable_drop(info->executable);
    free(info->name);
    free(info->args);
    free(info);
}

static void drop_variants(struct cld_variant *variants, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < variants[i].info_count; k++)
            cld_kernel_info_drop(variants[i].infos[k]);
        free(variants[i].infos);
        cld_executable_drop(variants[i].executable);
    }
    free(variants);
}

/* A list of objects (bytes). */
static bool load_code(struct cld_executable *executable, struct cld_msg *reply) {
    uint32_t count = cld_get_list(reply);
    if (reply->failed || !(executable->code = calloc(count ? count : 1, sizeof *executable->code)))
        return false;
    for (; executable->code_count < count; executable->code_count++) {
        size_t size;
        const void *object = cld_get_bytes(reply, &size);
        char error[256] = "";
        if (reply->failed)
            return false;
        struct cld_code *code = cld_code_load(object, size, error, sizeof error);
        if (!code) {
            cld_log(1, "clCreateKernel: object code is not loaded: %s", error);
            return false;
        }
        executable->code[executable->code_count] = code;
    }
    return true;
}

/* size, align, image, list of offset and target of each fix-up: the 8 bytes at offset become the address of
 * the variables plus target. */
static bool make_globals(struct cld_executable *executable, struct cld_msg *reply) {
    uint64_t size = (uint64_t)cld_get_int(reply), align = (uint64_t)cld_get_int(reply);
    size_t image_size;
    const void *image = cld_get_bytes(reply, &image_size);
    uint32_t words = cld_get_list(reply);
    if (reply->failed || image_size > size)
        return false;
    if (size) {
        /* calloc touches no page of what is large: a binary may ask for more than the machine has. */
        align = align < 128 ? 128 : align;
        if (align & (align - 1) || align > SIZE_MAX - size)
            return false;
        if (!(executable->globals_memory = calloc(1, size + align)))
            return false;
        uintptr_t start = (uintptr_t)executable->globals_memory;
        executable->globals = executable->globals_memory + (-start & (align - 1));
        memcpy(executable->globals, image, image_size);
        executable->globals_size = size;
    }
    for (uint32_t i = 0; i + 1 < words; i += 2) {
        uint64_t offset = (uint64_t)cld_get_int(reply), target = (uint64_t)cld_get_int(reply);
        if (reply->failed || size < 8 || offset > size - 8 || target > size)
            return false;
        uint64_t address = (uint64_t)(uintptr_t)executable->globals + target;
        memcpy(executable->globals + offset, &address, sizeof address);
    }
    return true;
}

static char *get_string(struct cld_msg *reply) {
    size_t size;
    const void *bytes = cld_get_bytes(reply, &size);
    return reply->failed ? NULL : strndup(bytes, size);
}

static bool get_args(struct cld_kernel_info *info, struct cld_msg *reply) {
    info->arg_count = cld_get_list(reply);
    if (reply->failed || !(info->args = calloc(info->arg_count ? info->arg_count : 1, sizeof *info->args)))
        return false;
    for (uint32_t i = 0; i < info->arg_count; i++) {
        struct cld_arg_info *arg = &info->args[i];
        cld_get_list(reply);
        arg->kind = (uint8_t)cld_get_int(reply);
        arg->constant = (uint8_t)cld_get_int(reply);
        arg->size = (uint32_t)cld_get_int(reply);
        arg->align = (uint32_t)cld_get_int(reply);
        arg->offset = (uint32_t)cld_get_int(reply);
        arg->access = (uint8_t)cld_get_int(reply);
        arg->image_type = (cl_mem_object_type)cld_get_int(reply);
        arg->depth = (uint8_t)cld_get_int(reply);
    }
    return !reply->failed;
}

/* Numbers of arguments. */
static bool get_value_args(struct cld_kernel_info *info, struct cld_msg *reply) {
    uint32_t count = cld_get_list(reply);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t arg = (uint64_t)cld_get_int(reply);
        if (reply->failed || i >= CLD_MOST_VALUES || arg >= info->arg_count)
            return false;
        uint32_t kind = info->args[arg].kind;
        if ((kind != CLD_ARG_VALUE && kind != CLD_ARG_IMAGE && kind != CLD_ARG_SAMPLER) ||
            info->args[arg].size > sizeof(uint64_t))
            return false;
        info->value_args[info->value_count++] = (uint32_t)arg;
    }
    return !reply->failed;
}

/* The function of a symbol in one of the objects; false if it is not there. -1: the kernel has no entry. */
static bool find_entry(const struct cld_executable *executable, int64_t object, const char *symbol,
                       cld_kernel_fn *entry) {
    if (object == -1)
        return true;
    if (object < 0 || object >= executable->code_count)
        return false;
    /* ISO C has no cast from a data to a function pointer; POSIX has. */
    void *address = cld_code_symbol(executable->code[object], symbol);
    memcpy(entry, &address, sizeof *entry);
    if (!address)
        cld_log(1, "clCreateKernel: the object code has no symbol %s", symbol);
    return address;
}

/* One kernel: see program_executable in cl_driver/api/program_info.py. */
static struct cld_kernel_info *get_info(struct cld_executable *executable, struct cld_msg *reply) {
    struct cld_kernel_info *info = calloc(1, sizeof *info);
    if (!info)
        return NULL;
    atomic_store(&info->holds, 1);
    info->executable = executable;
    atomic_fetch_add(&executable->holds, 1);
    cld_get_list(reply);
    info->name = get_string(reply);
    int64_t object = cld_get_int(reply);
    char *symbol = get_string(reply);
    info->block_size = (uint32_t)cld_get_int(reply);
    info->local_static = (uint64_t)cld_get_int(reply);
    info->scratch_fixed = (uint64_t)cld_get_int(reply);
    info->scratch_per_item = (uint64_t)cld_get_int(reply);
    uint32_t dimensions = cld_get_list(reply);
    for (uint32_t i = 0; i < dimensions; i++) {
        uint64_t size = (uint64_t)cld_get_int(reply);
        if (i < 3)
            info->reqd_local_size[i] = size;
    }
    info->max_group_size = (uint64_t)cld_get_int(reply);
    info->width = (uint32_t)cld_get_int(reply);
    info->uses_printf = (uint32_t)cld_get_int(reply);
    info->flags = (uint64_t)cld_get_int(reply);
    info->tile_width = (uint32_t)cld_get_int(reply);
    info->tile_height = (uint32_t)cld_get_int(reply);
    info->sub_group_size = (uint64_t)cld_get_int(reply);
    info->reqd_sub_group_size = (uint64_t)cld_get_int(reply);
    info->reqd_sub_groups = (uint64_t)cld_get_int(reply);
    info->most_group_items = (uint64_t)cld_get_int(reply);
    info->counted = (uint32_t)cld_get_int(reply);
    info->counted_size = (uint32_t)cld_get_int(reply);
    bool is_whole = get_args(info, reply) && get_value_args(info, reply) && info->name && symbol &&
                    find_entry(executable, object, symbol, &info->entry);
    free(symbol);
    if (!is_whole) {
        cld_kernel_info_drop(info);
        return NULL;
    }
    cld_specialisation_history_new(info);
    return info;
}

/* A copy of bytes, malloced; NULL is none. */
static bool get_copy(void **copy, size_t *size, struct cld_msg *reply) {
    *size = 0;
    if (cld_get_none(reply))
        return true;
    const void *bytes = cld_get_bytes(reply, size);
    if (reply->failed || !(*copy = malloc(*size ? *size : 1)))
        return false;
    memcpy(*copy, bytes, *size);
    return true;
}

/* One [objects, size, align, image, fix-ups, kernels, options, IL]. What was made before a failure is in the
 * variant. */
static bool get_variant(struct cld_variant *variant, uint32_t number, struct cld_msg *reply) {
    cld_get_list(reply);
    struct cld_executable *executable = calloc(1, sizeof *executable);
    if (!executable)
        return false;
    atomic_store(&executable->holds, 1);
    variant->executable = executable;
    executable->number = number;
    if (!load_code(executable, reply) || !make_globals(executable, reply))
        return false;
    uint32_t kernels = cld_get_list(reply);
    if (reply->failed || !(variant->infos = calloc(kernels ? kernels : 1, sizeof *variant->infos)))
        return false;
    while (variant->info_count < kernels) {
        struct cld_kernel_info *info = get_info(executable, reply);
        if (!info)
            return false;
        variant->infos[variant->info_count++] = info;
    }
    return get_copy(&executable->options, &executable->options_size, reply) &&
           get_copy(&executable->il, &executable->il_size, reply);
}

/* The answer of program_executable: variants, and which of them each device has. NULL when it is malformed or
 * memory is out. */
static struct cld_variant *get_variants(struct cld_msg *reply, uint32_t device_count, uint32_t *count,
                                        int32_t **variant_of) {
    uint32_t wanted = cld_get_list(reply);
    struct cld_variant *variants = reply->failed ? NULL : calloc(wanted ? wanted : 1, sizeof *variants);
    int32_t *of = calloc(device_count ? device_count : 1, sizeof *of);
    *count = 0;
    bool whole = variants && of;
    for (; whole && *count < wanted; ++*count)
        whole = get_variant(&variants[*count], *count, reply);
    if (whole) {
        uint32_t devices = cld_get_list(reply);
        for (uint32_t i = 0; i < devices; i++) {
            int64_t variant = cld_get_int(reply);
            if (i < device_count)
                of[i] = variant < *count ? (int32_t)variant : -1;
        }
        whole = !reply->failed && devices == device_count && *count;
    }
    if (whole) {
        *variant_of = of;
        return variants;
    }
    if (variants)
        drop_variants(variants, *count);
    free(of);
    return NULL;
}

cl_int cld_program_load(struct cld_program *program) {
    cld_lock(program);
    bool loaded = program->variants != NULL;
    uint64_t generation = program->generation;
    cld_unlock(program);
    if (loaded)
        return CL_SUCCESS;
    struct cld_msg request, reply;
    cld_msg_init(&request);
    cld_put_int(&request, (int64_t)program->obj.key);
    cld_put_int(&request, cld_door_may_change());
    cl_int status = cld_door_call("program_executable", &request, &reply);
    struct cld_variant *variants = NULL;
    int32_t *variant_of = NULL;
    uint32_t count = 0;
    if (!status && !(variants = get_variants(&reply, program->device_count, &count, &variant_of)))
        status = CL_OUT_OF_RESOURCES;
    cld_msg_free(&request);
    cld_msg_free(&reply);
    if (status == CL_OUT_OF_RESOURCES)
        cld_context_notify(program->context, "the code of a program cannot be loaded");
    if (status)
        return status;
    cld_lock(program);
    bool current = generation == program->generation, first = !program->variants;
    if (current && first) {
        program->variants = variants;
        program->variant_count = count;
        program->variant_of = variant_of;
    }
    cld_unlock(program);
    if (!current || !first) { /* another thread was faster, or began another build */
        drop_variants(variants, count);
        free(variant_of);
    }
    return current ? CL_SUCCESS : CL_INVALID_PROGRAM_EXECUTABLE;
}

void cld_program_unload(struct cld_program *program) {
    cld_lock(program);
    struct cld_variant *variants = program->variants;
    uint32_t count = program->variant_count;
    int32_t *variant_of = program->variant_of;
    program->variants = NULL;
    program->variant_count = 0;
    program->variant_of = NULL;
    program->generation++;
    cld_unlock(program);
    if (variants)
        drop_variants(variants, count);
    free(variant_of);
}
