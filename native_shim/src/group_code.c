/* Code for the local sizes that programs launch with: asked for, loaded, chosen. */
#define _GNU_SOURCE
#include "group_code.h"

#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "code.h"
#include "lock.h"
#include "log.h"
#include "settings.h"

/* Local sizes of a kernel that get code of their own; nanoseconds that the kernel must have run for before
 * one does: about what its compilation takes. */
enum { MOST_SIZES = 8, WORTH_IT = 20000000 };

struct request {
    struct cld_program *program;  /* held */
    struct cld_kernel_info *info; /* held */
    struct cld_group_code *group; /* the info's */
    uint64_t generation;          /* of the program, when the kernel was its own */
};

/* The answer: object (empty where there is none), symbol, local_static, scratch_fixed, scratch_per_item. */
static void take_code(struct cld_kernel_info *info, struct cld_group_code *group, struct cld_msg *reply) {
    size_t size, length;
    const void *object = cld_get_bytes(reply, &size);
    const char *bytes = cld_get_bytes(reply, &length);
    uint64_t local_static = (uint64_t)cld_get_int(reply);
    group->scratch_fixed = (uint64_t)cld_get_int(reply);
    group->scratch_per_item = (uint64_t)cld_get_int(reply);
    if (reply->failed || !size || local_static > info->local_static)
        return;
    char error[256] = "";
    char *symbol = strndup(bytes, length);
    group->code = symbol ? cld_code_load(object, size, error, sizeof error) : NULL;
    if (group->code) {
        void *address = cld_code_symbol(group->code, symbol);
        cld_kernel_fn entry;
        memcpy(&entry, &address, sizeof entry);
        atomic_store_explicit(&group->entry, entry, memory_order_release);
    } else {
        cld_log(1, "clEnqueueNDRangeKernel: object code for groups is not loaded: %s", error);
    }
    free(symbol);
}

static void *make_code(void *argument) {
    struct request request = *(struct request *)argument;
    free(argument);
    struct cld_program *program = request.program;
    struct cld_msg question, reply;
    cld_msg_init(&question);
    cld_put_int(&question, (int64_t)program->obj.key);
    cld_put_string(&question, request.info->name);
    cld_put_list(&question, 3);
    for (int i = 0; i < 3; i++)
        cld_put_int(&question, (int64_t)request.group->size[i]);
    cl_int status = cld_door_call("kernel_for_groups", &question, &reply);
    cld_lock(program);
    bool current = program->generation == request.generation; /* else it was built anew meanwhile */
    cld_unlock(program);
    if (!status && current)
        take_code(request.info, request.group, &reply);
    cld_msg_free(&question);
    cld_msg_free(&reply);
    cld_kernel_info_drop(request.info);
    cld_object_drop(program);
    return NULL;
}

static void ask_for_code(const struct cld_kernel *kernel, struct cld_kernel_info *info,
                         struct cld_group_code *group) {
    struct request *request = malloc(sizeof *request);
    if (!request)
        return;
    struct cld_program *program = kernel->program;
    cld_lock(program);
    *request = (struct request){program, info, group, program->generation};
    cld_unlock(program);
    cld_object_hold(program);
    atomic_fetch_add_explicit(&info->holds, 1, memory_order_relaxed);
    if (cld_setting_is(CL_DRIVER_GROUP_CODE_SETTING, "now")) {
        make_code(request);
    } else if (!cld_start_thread(make_code, request)) {
        cld_kernel_info_drop(info);
        cld_object_drop(program);
        free(request);
    }
}

/* Adds a local size to the kernel's, unless another thread has; NULL if it has, or there are enough. */
static struct cld_group_code *add_size(struct cld_kernel_info *info, const uint64_t *size) {
    struct cld_group_code *added = calloc(1, sizeof *added);
    if (!added)
        return NULL;
    memcpy(added->size, size, sizeof added->size);
    struct cld_group_code *first = atomic_load_explicit(&info->groups, memory_order_acquire);
    do {
        unsigned count = 0;
        bool known = false;
        for (const struct cld_group_code *group = first; group && !known; group = group->next, count++)
            known = !memcmp(group->size, size, sizeof group->size);
        if (known || count >= MOST_SIZES) {
            free(added);
            return NULL;
        }
        added->next = first;
    } while (!atomic_compare_exchange_weak(&info->groups, &first, added));
    return added;
}

/* Whether the work-items of each group fill vectors, and all groups are of that size. */
static bool is_whole(const struct cld_kernel_info *info, const struct cld_launch *launch) {
    const uint64_t *size = launch->local_size;
    for (int i = 0; i < 3; i++)
        if (launch->global_size[i] % size[i] || launch->global_offset[i] + launch->global_size[i] > 1u << 30)
            return false;
    return size[0] % info->width == 0 && size[0] * size[1] * size[2] <= info->most_group_items;
}

const struct cld_group_code *cld_group_code_for(const struct cld_kernel *kernel, struct cld_kernel_info *info,
                                                const struct cld_launch *launch) {
    if (!info->most_group_items || !is_whole(info, launch))
        return NULL;
    struct cld_group_code *group = atomic_load_explicit(&info->groups, memory_order_acquire);
    while (group && memcmp(group->size, launch->local_size, sizeof group->size))
        group = group->next;
    if (!group) {
        bool now = cld_setting_is(CL_DRIVER_GROUP_CODE_SETTING, "now");
        bool off = cld_setting_is(CL_DRIVER_GROUP_CODE_SETTING, "off");
        uint64_t busy = atomic_load_explicit(&info->busy_time, memory_order_relaxed);
        if (off || (!now && busy < WORTH_IT) || !(group = add_size(info, launch->local_size)))
            return NULL;
        ask_for_code(kernel, info, group);
    }
    return atomic_load_explicit(&group->entry, memory_order_acquire) ? group : NULL;
}

void cld_group_code_drop(struct cld_group_code *list) {
    while (list) {
        struct cld_group_code *next = list->next;
        if (list->code)
            cld_code_unload(list->code);
        free(list);
        list = next;
    }
}
