/* Arguments of kernels that were released before the launch: "Users may not rely on a kernel object to retain
 * objects specified as argument values to the kernel" (API specification, clSetKernelArg). */
#include <stdlib.h>
#include <string.h>

#include "kernel/kernel.h"
#include "validation/validation.h"

static void set_sampler(struct known *kernel, uint32_t index, uintptr_t handle) {
    struct sampler_argument *sampler = kernel->samplers;
    while (sampler && sampler->index != index)
        sampler = sampler->next;
    if (sampler) {
        sampler->handle = handle;
    } else if ((sampler = malloc(sizeof *sampler))) {
        *sampler = (struct sampler_argument){kernel->samplers, index, handle};
        kernel->samplers = sampler;
    }
}

void arguments_after_call(const struct cld_call *call) {
    if (call_is(call, "clCloneKernel")) {
        const struct known *source = object_find(call_word(call, "source_kernel"));
        struct known *clone = object_find(call->result);
        for (const struct sampler_argument *s = source ? source->samplers : NULL; s && clone; s = s->next)
            set_sampler(clone, s->index, s->handle);
        return;
    }
    uintptr_t index = call_word(call, "arg_index"), handle, at = call_word(call, "arg_value");
    const struct cld_kernel *kernel = cld_object_check((const void *)call_word(call, "kernel"), CLD_KERNEL);
    struct known *known = kernel ? object_find((uintptr_t)kernel) : NULL;
    if (!known || index >= kernel->info->arg_count || kernel->info->args[index].kind != CLD_ARG_SAMPLER ||
        !at)
        return;
    memcpy(&handle, (const void *)at, sizeof handle);
    set_sampler(known, (uint32_t)index, handle);
}

static void check(const struct cld_kernel *kernel, uint32_t argument, uintptr_t handle, enum cld_kind kind,
                  const struct place *place) {
    const struct known *known = handle ? object_find(handle) : NULL;
    if (!known || !known->released.number)
        return;
    const struct cld_object *live = cld_object_check((const void *)handle, kind);
    if (live && cld_object_refs(live))
        return;
    struct message message;
    if (!message_begin(&message, "released argument", place, known->number))
        return;
    message_add(&message, "argument %u of kernel '%s' is ", argument, kernel->info->name);
    object_describe(&message, known);
    message_add(&message, ", which was released before the launch: kernels keep no arguments");
    message_add_place(&message, "", place);
    message_add_place(&message, "released by", &known->released);
    message_add_place(&message, "made by", &known->made);
    message_end(&message);
}

void arguments_before_launch(const struct cld_call *call, const struct place *place) {
    const struct cld_kernel *kernel = cld_object_check((const void *)call_word(call, "kernel"), CLD_KERNEL);
    const struct known *known = kernel ? object_find((uintptr_t)kernel) : NULL;
    for (uint32_t i = 0; kernel && i < kernel->info->arg_count; i++)
        check(kernel, i, (uintptr_t)kernel->mems[i], CLD_MEM, place);
    for (const struct sampler_argument *s = known ? known->samplers : NULL; s; s = s->next)
        check(kernel, s->index, s->handle, CLD_SAMPLER, place);
}
