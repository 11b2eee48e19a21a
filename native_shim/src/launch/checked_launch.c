/* Launches in the check mode: what is told to check/, and when. */
#include "launch/checked_launch.h"

#include <string.h>

#include "check/check.h"
#include "graph/command_buffer.h"
#include "loader/load.h"
#include "memory/mem.h"

struct cld_operation cld_checked_operation;
static const struct cld_operation *plain_launches;
static bool (*thread_has_room)(struct cld_event *command, struct cld_self *self);

static void begin_checked(struct cld_event *command) {
    plain_launches->begin(command);
    cld_kcheck_launch_begin(cld_kcheck_launch_of(command), &command->kernel.launch);
}

/* A thread may execute a kernel in the middle of another one. */
static cl_int run_checked(struct cld_event *command, struct cld_self *self, uint64_t first, uint64_t last) {
    struct cld_kcheck_launch *launch = cld_kcheck_launch_of(command);
    void *outer = self->kernel.check;
    cl_int status = CL_OUT_OF_RESOURCES;
    bool has_room = launch && thread_has_room(command, self); /* of which there is to be a shadow */
    self->kernel.check = has_room ? cld_kcheck_enter(launch, &self->kernel, self->scratch_capacity) : NULL;
    if (self->kernel.check) {
        status = plain_launches->run(command, self, first, last);
        cld_kcheck_leave(self->kernel.check);
    }
    self->kernel.check = outer;
    return status;
}

static void rest_checked(struct cld_event *command, cl_int status) {
    cld_kcheck_launch_end(cld_kcheck_launch_of(command));
    plain_launches->rest(command, status);
}

static void end_checked(struct cld_event *command, cl_int status) {
    cld_kcheck_launch_end(cld_kcheck_launch_of(command));
    cld_kcheck_launch_free(command);
    plain_launches->end(command, status);
}

static bool own_checked(struct cld_event *node) {
    cld_kcheck_launch_copy(node, node->node.recorded->model);
    return plain_launches->own(node);
}

void cld_checked_launches(const struct cld_operation *plain,
                          bool (*has_room)(struct cld_event *command, struct cld_self *self)) {
    plain_launches = plain;
    thread_has_room = has_room;
    cld_checked_operation = *plain;
    cld_checked_operation.begin = begin_checked;
    cld_checked_operation.run = run_checked;
    cld_checked_operation.rest = rest_checked;
    cld_checked_operation.end = end_checked;
    cld_checked_operation.own = own_checked;
}

__attribute__((constructor)) static void provide(void) {
    static const struct {
        const char *name;
        void *function;
    } functions[] = {
#define PROVIDE(function) {#function, (void *)(uintptr_t)function}
        PROVIDE(cld_kcheck_group),     PROVIDE(cld_kcheck_region),    PROVIDE(cld_kcheck_barrier),
        PROVIDE(cld_kcheck_fence),     PROVIDE(cld_kcheck_access),    PROVIDE(cld_kcheck_range),
        PROVIDE(cld_kcheck_outside),   PROVIDE(cld_kcheck_unwritten), PROVIDE(cld_kcheck_index),
        PROVIDE(cld_kcheck_copy),      PROVIDE(cld_kcheck_wait),      PROVIDE(cld_kcheck_unknown),
        PROVIDE(cld_kcheck_operation), PROVIDE(cld_kcheck_fault),     PROVIDE(cld_kcheck_image),
        PROVIDE(cld_kcheck_event),
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        cld_code_provide(functions[i].name, functions[i].function);
}

void cld_checked_launch_arguments(struct cld_event *command, const struct cld_kernel *kernel) {
    const struct cld_kernel_info *info = command->kernel.info;
    struct cld_kcheck_launch *check = cld_kcheck_launch_new(command, info->name, info->arg_count);
    for (uint32_t i = 0; check && i < info->arg_count; i++) {
        const struct cld_arg_info *arg = &info->args[i];
        struct cld_mem *mem =
            arg->kind == CLD_ARG_GLOBAL || arg->kind == CLD_ARG_IMAGE ? kernel->mems[i] : NULL;
        void *pointer;
        if (mem && arg->kind == CLD_ARG_GLOBAL) {
            cld_kcheck_launch_global(check, i, mem->data, mem->size, mem->flags & CL_MEM_WRITE_ONLY,
                                     mem->flags & (CL_MEM_READ_ONLY | CLD_MEM_IMMUTABLE), arg->constant);
        } else if (mem && mem->parent) { /* an image of a buffer, whose writes are not looked at */
            cld_kcheck_written(mem->data, mem->parent->size - (size_t)(mem->data - mem->parent->data));
        } else if (arg->kind == CLD_ARG_GLOBAL) {
            memcpy(&pointer, command->kernel.args + arg->offset, sizeof pointer);
            cld_kcheck_launch_pointer(check, i, pointer);
        }
    }
}
