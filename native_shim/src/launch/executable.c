/* From a built program's answer to code that runs: maps the objects, makes the program-scope variables and
 * the kernel infos of the data plane. */
#define _GNU_SOURCE
#include "launch/executable.h"

#include <stdlib.h>
#include <string.h>

#include "answers.h"
#include "base/log.h"
#include "launch/argument_specialisation.h"
#include "loader/load.h"
#include "object/lock.h"
#include "python/door.h"
#include "runtime/context_notify.h"

static void drop_variants(struct cld_variant *variants, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < variants[i].info_count; k++)
            cld_kernel_info_drop(variants[i].infos[k]);
        free(variants[i].infos);
        cld_executable_drop(variants[i].executable);
    }
    free(variants);
}

static bool load_code(struct cld_executable *executable, const struct cld_answer_executable *answer) {
    if (!(executable->code = calloc(answer->objects_count + 1, sizeof *executable->code)))
        return false;
    for (uint32_t i = 0; i < answer->objects_count; i++) {
        char error[256] = "";
        const struct cld_bytes *object = &answer->objects[i];
        struct cld_code *code = cld_code_load(object->data, object->size, error, sizeof error);
        if (!code) {
            cld_log(1, "clCreateKernel: object code is not loaded: %s", error);
            return false;
        }
        executable->code[executable->code_count++] = code;
    }
    return true;
}

static bool make_globals(struct cld_executable *executable, const struct cld_answer_executable *answer) {
    const struct cld_bytes *image = &answer->globals_image;
    uint64_t size = answer->globals_size, align = answer->globals_align;
    if (image->size > size)
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
        memcpy(executable->globals, image->data, image->size);
        executable->globals_size = size;
    }
    for (uint32_t i = 0; i + 1 < answer->fixups_count; i += 2) {
        uint64_t offset = answer->fixups[i], target = answer->fixups[i + 1];
        if (size < 8 || offset > size - 8 || target > size)
            return false;
        uint64_t address = (uint64_t)(uintptr_t)executable->globals + target;
        memcpy(executable->globals + offset, &address, sizeof address);
    }
    return true;
}

static bool take_args(struct cld_kernel_info *info, const struct cld_answer_kernel *answer) {
    if (!(info->args = calloc(answer->arguments_count + 1, sizeof *info->args)))
        return false;
    info->arg_count = answer->arguments_count;
    for (uint32_t i = 0; i < info->arg_count; i++) {
        const struct cld_answer_argument *given = &answer->arguments[i];
        info->args[i] = (struct cld_arg_info){
            .kind = given->kind,
            .constant = given->constant,
            .access = given->access,
            .depth = given->depth,
            .size = given->size,
            .align = given->align,
            .offset = given->offset,
            .image_type = given->image_type,
        };
    }
    return true;
}

static bool take_specialisable(struct cld_kernel_info *info, const struct cld_answer_kernel *answer) {
    _Static_assert(sizeof answer->specialisable_arguments == sizeof info->specialisable_args,
                   "as many as there may be");
    for (uint32_t i = 0; i < answer->specialisable_arguments_count; i++) {
        uint32_t arg = answer->specialisable_arguments[i];
        if (arg >= info->arg_count)
            return false;
        uint32_t kind = info->args[arg].kind;
        if ((kind != CLD_ARG_VALUE && kind != CLD_ARG_IMAGE && kind != CLD_ARG_SAMPLER) ||
            info->args[arg].size > sizeof(uint64_t))
            return false;
        info->specialisable_args[info->specialisable_count++] = arg;
    }
    return true;
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

static struct cld_kernel_info *take_kernel(struct cld_executable *executable,
                                           const struct cld_answer_kernel *answer) {
    struct cld_kernel_info *info = calloc(1, sizeof *info);
    if (!info)
        return NULL;
    atomic_store(&info->holds, 1);
    info->executable = executable;
    atomic_fetch_add(&executable->holds, 1);
    info->name = strndup(answer->name.data, answer->name.size);
    info->block_size = answer->block_size;
    info->local_static = answer->local_static;
    info->scratch_fixed = answer->scratch_fixed;
    info->scratch_per_item = answer->scratch_per_item;
    for (uint32_t i = 0; i < answer->required_local_size_count; i++)
        info->reqd_local_size[i] = answer->required_local_size[i];
    info->max_group_size = answer->max_group_size;
    info->width = answer->width;
    info->uses_printf = answer->uses_printf;
    info->flags = answer->flags;
    info->tile_width = answer->tile_width;
    info->tile_height = answer->tile_height;
    info->sub_group_size = answer->sub_group_size;
    info->reqd_sub_group_size = answer->required_sub_group_size;
    info->reqd_sub_groups = answer->required_sub_groups;
    info->most_group_items = answer->most_group_items;
    info->counted = answer->counted;
    info->counted_size = answer->counted_size;
    char *symbol = strndup(answer->symbol.data, answer->symbol.size);
    bool is_whole = take_args(info, answer) && take_specialisable(info, answer) && info->name && symbol &&
                    find_entry(executable, answer->object, symbol, &info->entry);
    free(symbol);
    if (!is_whole) {
        cld_kernel_info_drop(info);
        return NULL;
    }
    cld_specialisation_history_new(info);
    return info;
}

/* A copy of bytes, malloced; NULL is none. */
static bool copy_bytes(void **copy, size_t *size, const struct cld_bytes *bytes) {
    *size = bytes->size;
    if (!bytes->data)
        return true;
    if (!(*copy = malloc(bytes->size + 1)))
        return false;
    memcpy(*copy, bytes->data, bytes->size);
    return true;
}

/* What was made before a failure is in the variant. */
static bool take_variant(struct cld_variant *variant, uint32_t number,
                         const struct cld_answer_executable *answer) {
    struct cld_executable *executable = calloc(1, sizeof *executable);
    if (!executable)
        return false;
    atomic_store(&executable->holds, 1);
    variant->executable = executable;
    executable->number = number;
    if (!load_code(executable, answer) || !make_globals(executable, answer))
        return false;
    if (!(variant->infos = calloc(answer->kernels_count + 1, sizeof *variant->infos)))
        return false;
    for (uint32_t i = 0; i < answer->kernels_count; i++) {
        struct cld_kernel_info *info = take_kernel(executable, &answer->kernels[i]);
        if (!info)
            return false;
        variant->infos[variant->info_count++] = info;
    }
    return copy_bytes(&executable->options, &executable->options_size, &answer->options) &&
           copy_bytes(&executable->il, &executable->il_size, &answer->il);
}

/* Variants, and which of them each device has. NULL when the answer is malformed or memory is out. */
static struct cld_variant *take_variants(const struct cld_answer_executables *answer, uint32_t device_count,
                                         uint32_t *count, int32_t **variant_of) {
    uint32_t wanted = answer->executables_count;
    struct cld_variant *variants = calloc(wanted + 1, sizeof *variants);
    int32_t *of = calloc(device_count + 1, sizeof *of);
    *count = 0;
    bool whole = variants && of && wanted && answer->of_devices_count == device_count;
    for (; whole && *count < wanted; ++*count)
        whole = take_variant(&variants[*count], *count, &answer->executables[*count]);
    if (whole) {
        for (uint32_t i = 0; i < device_count; i++)
            of[i] = answer->of_devices[i] < wanted ? (int32_t)answer->of_devices[i] : -1;
        *variant_of = of;
        return variants;
    }
    if (variants)
        drop_variants(variants, *count);
    free(of);
    return NULL;
}

static struct cld_variant *get_variants(struct cld_msg *reply, uint32_t device_count, uint32_t *count,
                                        int32_t **variant_of) {
    struct cld_answer_executables answer;
    struct cld_variant *variants = NULL;
    if (cld_answer_executables_read(reply, &answer))
        variants = take_variants(&answer, device_count, count, variant_of);
    cld_answer_executables_free(&answer);
    return variants;
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
