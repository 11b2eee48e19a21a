/* From a built program's answer to code that runs: maps the objects, makes the program-scope variables and
 * the kernel infos of the data plane. */
#define _GNU_SOURCE
#include "kernel/executable.h"

#include <stdlib.h>
#include <string.h>

#include "answers.h"
#include "base/log.h"
#include "kernel/argument_specialisation.h"
#include "kernel/program_symbols.h"
#include "kernel/variant.h"
#include "loader/load.h"
#include "object/lock.h"
#include "python/door.h"
#include "runtime/callback.h"

static void drop_builds(struct cld_program_build *builds, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        uint32_t kernels = builds[i].executable ? builds[i].executable->name_count : 0;
        for (uint32_t k = 0; builds[i].infos && k < kernels; k++)
            cld_kernel_info_drop(builds[i].infos[k]);
        free(builds[i].infos);
        cld_executable_drop(builds[i].executable);
    }
    free(builds);
}

/* The object's code; NULL, and logged, if it cannot be loaded. */
static struct cld_code *load_object(const struct cld_context *context, const struct cld_bytes *object) {
    char error[256] = "";
    struct cld_code *code = cld_code_load(object->data, object->size, error, sizeof error);
    if (!code)
        cld_refuse("clCreateKernel", CL_SUCCESS, "object code cannot be loaded: %s", error);
    else
        cld_code_set_terminated(code, &context->terminated);
    return code;
}

/* Adds code to the executable's, which has room. */
static void add_code(struct cld_executable *executable, struct cld_code *code) {
    uint32_t count = atomic_load_explicit(&executable->code_count, memory_order_relaxed);
    executable->code[count] = code;
    /* Whoever looks where a fault came from has no lock. */
    atomic_store_explicit(&executable->code_count, count + 1, memory_order_release);
}

/* Room for what is there, and for kernels that come later: one object each. */
static bool load_code(const struct cld_context *context, struct cld_executable *executable,
                      const struct cld_answer_executable *answer) {
    executable->code_room = answer->objects_count + answer->names_count;
    if (!(executable->code = calloc((size_t)executable->code_room + 1, sizeof *executable->code)))
        return false;
    for (uint32_t i = 0; i < answer->objects_count; i++) {
        struct cld_code *code = load_object(context, &answer->objects[i]);
        if (!code)
            return false;
        add_code(executable, code);
    }
    return true;
}

static bool take_names(struct cld_executable *executable, const struct cld_answer_executable *answer) {
    if (!(executable->names = calloc((size_t)answer->names_count + 1, sizeof *executable->names)))
        return false;
    for (; executable->name_count < answer->names_count; executable->name_count++) {
        const struct cld_bytes *name = &answer->names[executable->name_count];
        if (!(executable->names[executable->name_count] = strndup(name->data, name->size)))
            return false;
    }
    if (answer->blocks > answer->names_count)
        return false;
    executable->block_count = answer->blocks;
    executable->blocks = calloc((size_t)executable->block_count + 1, sizeof(struct cld_kernel_info *));
    return executable->blocks;
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
            .written = given->written,
            .only_read = given->only_read,
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

static bool take_blocks(struct cld_kernel_info *info, const struct cld_answer_kernel *answer) {
    if (!(info->blocks = calloc(answer->blocks_count + 1, sizeof *info->blocks)))
        return false;
    for (; info->block_count < answer->blocks_count; info->block_count++) {
        if (answer->blocks[info->block_count] >= info->executable->block_count)
            return false;
        info->blocks[info->block_count] = answer->blocks[info->block_count];
    }
    return true;
}

/* A copy of the numbers, if there are any. */
static bool take_numbers(int64_t **numbers, uint32_t *count, const int64_t *given, uint32_t given_count) {
    if (!given_count)
        return true;
    if (!(*numbers = malloc(given_count * sizeof **numbers)))
        return false;
    memcpy(*numbers, given, given_count * sizeof **numbers);
    *count = given_count;
    return true;
}

/* What kernels enqueue has one argument for what it has captured, of local memory the others, and an entry
 * for all launches. */
static bool is_block(const struct cld_kernel_info *info) {
    const uint64_t others = CLD_KERNEL_NARROW | CLD_KERNEL_REST | CLD_KERNEL_TILED | CLD_KERNEL_EXCHANGED;
    if (!info->entry || info->flags & others || !info->arg_count || info->args[0].kind != CLD_ARG_GLOBAL ||
        info->history || info->counted)
        return false;
    for (uint32_t i = 1; i < info->arg_count; i++)
        if (info->args[i].kind != CLD_ARG_LOCAL)
            return false;
    return true;
}

/* Puts a kernel where it belongs in a build. False, and drops it, if it does not belong there. */
static bool settle(struct cld_program_build *build, uint32_t place, struct cld_kernel_info *info) {
    struct cld_executable *executable = build->executable;
    uint32_t first = executable->name_count - executable->block_count;
    if (!info || (place >= first) != ((info->flags & CLD_KERNEL_BLOCK) != 0)) {
        cld_kernel_info_drop(info);
        return false;
    }
    build->infos[place] = info;
    if (place >= first) {
        executable->blocks[place - first] = info;
        atomic_fetch_add(&info->holds, 1);
    }
    return true;
}

/* The function of a symbol in a kernel's code; false if it is not there. NULL: the kernel has no entry. */
static bool find_entry(struct cld_code *code, const char *symbol, cld_kernel_fn *entry) {
    if (!code)
        return true;
    /* ISO C has no cast from a data to a function pointer; POSIX has. */
    void *address = cld_code_symbol(code, symbol);
    memcpy(entry, &address, sizeof *entry);
    if (!address)
        cld_refuse("clCreateKernel", CL_SUCCESS, "the object code has no symbol %s", symbol);
    return address;
}

/* code: that has its entry, or NULL. */
static struct cld_kernel_info *take_kernel(struct cld_executable *executable, struct cld_code *code,
                                           const struct cld_answer_kernel *answer) {
    struct cld_kernel_info *info = calloc(1, sizeof *info);
    if (!info)
        return NULL;
    atomic_store(&info->holds, 1);
    info->executable = executable;
    info->flags = answer->flags;
    if (!(info->flags & CLD_KERNEL_BLOCK))
        atomic_fetch_add(&executable->holds, 1);
    info->name = strndup(answer->name.data, answer->name.size);
    info->block_size = answer->block_size;
    info->local_static = answer->local_static;
    info->scratch_fixed = answer->scratch_fixed;
    info->scratch_per_item = answer->scratch_per_item;
    for (uint32_t i = 0; i < answer->required_local_size_count; i++)
        info->reqd_local_size[i] = answer->required_local_size[i];
    for (uint32_t i = 0; i < answer->max_local_size_count; i++)
        info->max_local_size[i] = answer->max_local_size[i];
    info->max_group_size = answer->max_group_size;
    info->width = answer->width;
    info->uses_printf = answer->uses_printf;
    info->tile_width = answer->tile_width;
    info->tile_height = answer->tile_height;
    info->repeated_dimensions = answer->repeated_dimensions;
    info->sub_group_size = answer->sub_group_size;
    info->reqd_sub_group_size = answer->required_sub_group_size;
    info->reqd_sub_groups = answer->required_sub_groups;
    info->most_group_items = answer->most_group_items;
    info->counted = answer->counted;
    info->counted_size = answer->counted_size;
    info->apart = answer->apart;
    char *symbol = strndup(answer->symbol.data, answer->symbol.size);
    bool is_whole =
        take_args(info, answer) && take_specialisable(info, answer) && take_blocks(info, answer) &&
        take_numbers(&info->account, &info->account_count, answer->account, answer->account_count) &&
        take_numbers(&info->extents, &info->extent_count, answer->extents, answer->extents_count) &&
        info->name && symbol && find_entry(code, symbol, &info->entry) &&
        (!(info->flags & CLD_KERNEL_BLOCK) || is_block(info));
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

static bool is_named(const char *name, const struct cld_bytes *other) {
    return strlen(name) == other->size && !memcmp(name, other->data, other->size);
}

/* What was made before a failure is in the build. */
static bool take_build(const struct cld_context *context, struct cld_program_build *build, uint32_t number,
                       const struct cld_answer_executable *answer) {
    struct cld_executable *executable = calloc(1, sizeof *executable);
    if (!executable)
        return false;
    atomic_store(&executable->holds, 1);
    build->executable = executable;
    executable->number = number;
    if (!take_names(executable, answer) || !load_code(context, executable, answer) ||
        !make_globals(executable, answer) || !cld_program_symbols_take(executable, answer))
        return false;
    if (!(build->infos = calloc((size_t)answer->names_count + 1, sizeof *build->infos)))
        return false;
    uint32_t at = 0; /* kernels are in the order of the names */
    for (uint32_t i = 0; i < answer->kernels_count; i++, at++) {
        const struct cld_answer_kernel *kernel = &answer->kernels[i];
        while (at < executable->name_count && !is_named(executable->names[at], &kernel->name))
            at++;
        if (at == executable->name_count || kernel->object < -1 || kernel->object >= answer->objects_count)
            return false;
        struct cld_code *code = kernel->object < 0 ? NULL : executable->code[kernel->object];
        if (!settle(build, at, take_kernel(executable, code, kernel)))
            return false;
    }
    return copy_bytes(&executable->options, &executable->options_size, &answer->options) &&
           copy_bytes(&executable->il, &executable->il_size, &answer->il);
}

/* Variants, and which of them each device has. NULL when the answer is malformed or memory is out. */
static struct cld_program_build *take_builds(const struct cld_program *program,
                                             const struct cld_answer_executables *answer, uint32_t *count,
                                             int32_t **build_of) {
    uint32_t wanted = answer->executables_count;
    struct cld_program_build *builds = calloc(wanted + 1, sizeof *builds);
    int32_t *of = calloc(program->device_count + 1, sizeof *of);
    *count = 0;
    bool whole = builds && of && wanted && answer->of_devices_count == program->device_count;
    for (; whole && *count < wanted; ++*count)
        whole = take_build(program->context, &builds[*count], *count, &answer->executables[*count]);
    if (whole) {
        for (uint32_t i = 0; i < program->device_count; i++)
            of[i] = answer->of_devices[i] < wanted ? (int32_t)answer->of_devices[i] : -1;
        *build_of = of;
        return builds;
    }
    if (builds)
        drop_builds(builds, *count);
    free(of);
    return NULL;
}

static struct cld_program_build *get_builds(const struct cld_program *program, struct cld_msg *reply,
                                            uint32_t *count, int32_t **build_of) {
    struct cld_answer_executables answer;
    struct cld_program_build *builds = NULL;
    if (cld_answer_executables_read(reply, &answer))
        builds = take_builds(program, &answer, count, build_of);
    cld_answer_executables_free(&answer);
    return builds;
}

cl_int cld_program_load(struct cld_program *program) {
    cld_lock(program);
    bool loaded = program->builds != NULL;
    uint64_t generation = program->generation;
    cld_unlock(program);
    if (loaded)
        return CL_SUCCESS;
    struct cld_msg request, reply;
    cld_msg_init(&request);
    cld_put_int(&request, (int64_t)program->obj.key);
    cld_put_int(&request, program->context->is_spread || cld_door_may_change());
    cl_int status = cld_door_call("program_executable", &request, &reply);
    struct cld_program_build *builds = NULL;
    int32_t *build_of = NULL;
    uint32_t count = 0;
    if (!status && !(builds = get_builds(program, &reply, &count, &build_of)))
        status = CL_OUT_OF_RESOURCES;
    cld_msg_free(&request);
    cld_msg_free(&reply);
    if (status == CL_OUT_OF_RESOURCES)
        cld_context_notify(program->context, "the code of a program cannot be loaded");
    if (status)
        return status;
    cld_lock(program);
    bool current = generation == program->generation, first = !program->builds;
    if (current && first) {
        program->builds = builds;
        program->build_count = count;
        program->build_of = build_of;
    }
    cld_unlock(program);
    if (!current || !first) { /* another thread was faster, or began another build */
        drop_builds(builds, count);
        free(build_of);
    }
    return current ? CL_SUCCESS : CL_INVALID_PROGRAM_EXECUTABLE;
}

void cld_program_unload(struct cld_program *program) {
    cld_lock(program);
    struct cld_program_build *builds = program->builds;
    uint32_t count = program->build_count;
    int32_t *build_of = program->build_of;
    program->builds = NULL;
    program->build_count = 0;
    program->build_of = NULL;
    program->generation++;
    cld_unlock(program);
    if (builds)
        drop_builds(builds, count);
    free(build_of);
}

/* Kernels of an executable that are not compiled. */
struct wanted {
    struct cld_executable *executable; /* held */
    uint64_t generation;               /* of the program when it was its own */
    uint32_t count;
    uint32_t *places; /* among its names */
};

int64_t cld_program_build_find(const struct cld_program_build *build, const char *name) {
    uint32_t count = build->executable->name_count - build->executable->block_count;
    for (uint32_t i = 0; i < count; i++)
        if (!strcmp(build->executable->names[i], name))
            return i;
    return -1;
}

static bool add_missing(const struct cld_program_build *build, uint32_t place, struct wanted *wanted) {
    if (build->infos[place])
        return true;
    size_t most = build->executable->name_count;
    if (!wanted->places && !(wanted->places = malloc(most * sizeof *wanted->places)))
        return false;
    wanted->places[wanted->count++] = place;
    return true;
}

/* What is missing of the kernel of that name, or of all for NULL, in one of the program's executables: the
 * first where something is. False if there is none. CL_OUT_OF_HOST_MEMORY without memory for the answer. */
static cl_int find_missing(struct cld_program *program, const char *name, struct wanted *wanted) {
    *wanted = (struct wanted){.generation = program->generation};
    for (uint32_t v = 0; v < program->build_count && !wanted->count; v++) {
        const struct cld_program_build *build = &program->builds[v];
        uint32_t first = 0, end = build->executable->name_count;
        if (name) {
            int64_t place = cld_program_build_find(build, name);
            if (place < 0)
                continue;
            first = (uint32_t)place;
            end = first + 1;
        }
        for (uint32_t i = first; i < end; i++)
            if (!add_missing(build, i, wanted))
                return CL_OUT_OF_HOST_MEMORY;
        /* A kernel that is there says which blocks it enqueues. */
        const struct cld_kernel_info *found = name ? build->infos[first] : NULL;
        uint32_t blocks = build->executable->name_count - build->executable->block_count;
        for (uint32_t i = 0; found && i < found->block_count; i++)
            if (!add_missing(build, blocks + found->blocks[i], wanted))
                return CL_OUT_OF_HOST_MEMORY;
        if (wanted->count) {
            wanted->executable = build->executable;
            atomic_fetch_add(&wanted->executable->holds, 1);
        }
    }
    return CL_SUCCESS;
}

/* Asks for them of the program's peer, or, where that is lost, of what the executable was made of. */
static cl_int ask(const struct cld_program *program, const struct wanted *wanted, bool of_peer,
                  struct cld_msg *reply) {
    const struct cld_executable *executable = wanted->executable;
    struct cld_msg question;
    cld_msg_init(&question);
    if (of_peer) {
        cld_put_int(&question, (int64_t)program->obj.key);
        cld_put_int(&question, executable->number);
    } else {
        cld_put_bytes(&question, executable->options, executable->options_size);
        cld_put_bytes(&question, executable->il, executable->il_size);
    }
    cld_put_list(&question, wanted->count);
    for (uint32_t i = 0; i < wanted->count; i++)
        cld_put_string(&question, executable->names[wanted->places[i]]);
    cl_int status = cld_door_call(of_peer ? "program_kernels" : "kernels_of", &question, reply);
    cld_msg_free(&question);
    return status;
}

/* Puts a kernel into the build, unless another thread has. Drops the code if it is not taken. The program
 * is locked. */
static bool put(struct cld_program_build *build, uint32_t place, struct cld_code *code,
                const struct cld_answer_kernel *answer) {
    struct cld_executable *executable = build->executable;
    bool has_room = atomic_load(&executable->code_count) < executable->code_room;
    bool is_wanted = !build->infos[place] && has_room;
    if (is_wanted && settle(build, place, take_kernel(executable, code, answer))) {
        if (code)
            add_code(executable, code);
    } else if (code) {
        cld_code_unload(code);
    }
    return build->infos[place];
}

/* Loads what was made, without the program's lock, and puts it where it belongs. */
static cl_int take(struct cld_program *program, const struct wanted *wanted,
                   const struct cld_answer_kernels *answer) {
    if (answer->kernels_count != wanted->count)
        return CL_OUT_OF_RESOURCES;
    struct cld_code **codes = calloc((size_t)wanted->count + 1, sizeof *codes);
    if (!codes)
        return CL_OUT_OF_HOST_MEMORY;
    bool is_whole = true;
    for (uint32_t i = 0; i < wanted->count && is_whole; i++) {
        int64_t object = answer->kernels[i].object;
        if (object >= 0)
            is_whole = object < answer->objects_count &&
                       (codes[i] = load_object(program->context, &answer->objects[object]));
    }
    cld_lock(program);
    bool is_current = program->generation == wanted->generation;
    struct cld_program_build *build = program->builds;
    while (is_current && build->executable != wanted->executable)
        build++;
    for (uint32_t i = 0; i < wanted->count; i++) {
        if (is_current && is_whole)
            is_whole = put(build, wanted->places[i], codes[i], &answer->kernels[i]);
        else if (codes[i])
            cld_code_unload(codes[i]);
    }
    cld_unlock(program);
    free(codes);
    return !is_whole ? CL_OUT_OF_RESOURCES : is_current ? CL_SUCCESS : CL_INVALID_PROGRAM_EXECUTABLE;
}

static cl_int make(struct cld_program *program, const struct wanted *wanted) {
    struct cld_msg reply;
    cld_builds_begin(); /* what nobody waits for is to let it pass, as it does builds */
    cl_int status = ask(program, wanted, true, &reply);
    if (status == CL_INVALID_PROGRAM && wanted->executable->il) {
        cld_msg_free(&reply);
        status = ask(program, wanted, false, &reply);
    }
    cld_builds_end();
    struct cld_answer_kernels answer;
    if (!status) {
        status =
            cld_answer_kernels_read(&reply, &answer) ? take(program, wanted, &answer) : CL_OUT_OF_HOST_MEMORY;
        cld_answer_kernels_free(&answer);
    }
    cld_msg_free(&reply);
    return status;
}

cl_int cld_program_load_kernels(struct cld_program *program, const char *name) {
    cl_int status = cld_program_load(program);
    while (!status) {
        struct wanted wanted;
        cld_lock(program);
        status = find_missing(program, name, &wanted);
        cld_unlock(program);
        if (status || !wanted.count)
            return status;
        status = make(program, &wanted);
        cld_executable_drop(wanted.executable);
        free(wanted.places);
    }
    return status;
}
