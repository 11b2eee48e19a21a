/* Variants are made: asked for, waited for, loaded. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "answers.h"
#include "base/log.h"
#include "base/settings.h"
#include "base/thread.h"
#include "kernel/executable.h"
#include "kernel/variant.h"
#include "loader/load.h"
#include "object/lock.h"
#include "python/door.h"
#include "python/requests.h"

/* Builds that are going on, and when the last one ended. */
static _Atomic uint32_t builds;
static _Atomic uint64_t last_build;

/* Nanoseconds after a build in which a program may begin the next, and as many to look again. */
enum { PAUSE = 40000000, LOOK = 5000000, MOST_LOOKS = 2000 };

void cld_builds_begin(void) {
    atomic_fetch_add(&builds, 1);
}

void cld_builds_end(void) {
    atomic_store(&last_build, cld_now());
    atomic_fetch_sub(&builds, 1);
}

/* Waits until no program is being built, nor has been for a moment: what the program does not wait for must
 * not take the cores from builds. Gives up after ten seconds. */
static void wait_for_builds(void) {
    struct timespec look = {0, LOOK};
    for (int i = 0; i < MOST_LOOKS; i++) {
        if (!atomic_load(&builds) && cld_now() > atomic_load(&last_build) + PAUSE)
            break;
        nanosleep(&look, NULL);
    }
}

struct request {
    struct cld_program *program;  /* held */
    struct cld_kernel_info *info; /* held */
    struct cld_variant *variant;
    uint64_t generation; /* of the program, when the kernel was its own */
};

/* A list of the number of an argument, its bytes, the next one's... Of an image: passes/lower/images.py,
 * FORMAT. */
static void put_argument_values(struct cld_msg *question, const struct cld_kernel_info *info,
                                const struct cld_variant_key *key) {
    cld_put_list(question, 2 * (uint32_t)__builtin_popcount(key->values));
    for (uint32_t i = 0; i < info->specialisable_count; i++) {
        if (!(key->values >> i & 1))
            continue;
        const struct cld_arg_info *arg = &info->args[info->specialisable_args[i]];
        uint64_t word = key->words[i];
        const uint32_t format[3] = {word & 0xFFFF, word >> 16 & 0xFFFF, (uint32_t)(word >> 32)};
        cld_put_int(question, info->specialisable_args[i]);
        if (arg->kind == CLD_ARG_IMAGE)
            cld_put_bytes(question, format, sizeof format);
        else
            cld_put_bytes(question, &word, arg->size);
    }
}

/* cl_driver/compiler/variants.py, kind_of(). */
static void put_key(struct cld_msg *question, const struct cld_kernel_info *info,
                    const struct cld_variant_key *key) {
    cld_put_list(question, 4);
    cld_put_int(question, key->tier);
    cld_put_int(question, key->shape);
    cld_put_int(question, key->assumes_apart);
    cld_put_int(question, cld_variant_has_formats(info, key->values));
    cld_put_list(question, 3);
    for (int i = 0; i < 3; i++)
        cld_put_int(question, key->size[i]);
    cld_put_int(question, key->assumes_apart ? (int64_t)info->apart : 0);
    put_argument_values(question, info, key);
}

/* Asks for code of the program's peer, or, where that is lost, of what the executable was made of. */
static cl_int ask(const struct request *request, bool of_peer, struct cld_msg *reply) {
    const struct cld_executable *executable = request->info->executable;
    struct cld_msg question;
    cld_msg_init(&question);
    if (of_peer) {
        cld_put_int(&question, (int64_t)request->program->obj.key);
        cld_put_int(&question, executable ? executable->number : 0);
    } else {
        cld_put_bytes(&question, executable->options, executable->options_size);
        cld_put_bytes(&question, executable->il, executable->il_size);
    }
    cld_put_string(&question, request->info->name);
    put_key(&question, request->info, &request->variant->key);
    cl_int status = cld_door_call(of_peer ? "kernel_variant" : "kernel_variant_of", &question, reply);
    cld_msg_free(&question);
    return status;
}

/* The code of an answer; false, and nothing of `made` is to be freed, if there is none. */
static bool load(const struct request *request, struct cld_msg *reply, struct cld_variant *made) {
    struct cld_answer_variant answer;
    if (!cld_answer_variant_read(reply, &answer)) /* which has nothing to be freed */
        return false;
    if (!answer.object.size) {
        cld_refuse("clEnqueueNDRangeKernel", CL_SUCCESS, "%.*s", (int)answer.symbol.size,
                   (const char *)answer.symbol.data);
        return false;
    }
    made->local_static = answer.local_static;
    made->scratch_fixed = answer.scratch_fixed;
    made->scratch_per_item = answer.scratch_per_item;
    /* A launch that goes over to it has room for so much. */
    if (request->variant->key.tier == CLD_TIER_HOT && answer.local_static > request->info->local_static) {
        cld_log(2, "clEnqueueNDRangeKernel: code that needs more local memory");
        return false;
    }
    char error[256] = "";
    char *symbol = strndup(answer.symbol.data, answer.symbol.size);
    made->code = symbol ? cld_code_load(answer.object.data, answer.object.size, error, sizeof error) : NULL;
    if (made->code) {
        void *address = cld_code_symbol(made->code, symbol);
        memcpy(&made->entry, &address, sizeof made->entry);
        cld_code_set_terminated(made->code, &request->program->context->terminated);
        if (!address) {
            cld_code_unload(made->code);
            made->code = NULL;
        }
    } else {
        cld_refuse("clEnqueueNDRangeKernel", CL_SUCCESS, "object code cannot be loaded: %s", error);
    }
    free(symbol);
    return made->code;
}

/* What was made becomes the variant's, unless another thread was faster; or it fails. Which is written with
 * the program's lock held. `made` is left what is to be freed of it. */
static cl_int publish(const struct request *request, cl_int status, struct cld_variant *made) {
    struct cld_variant *variant = request->variant;
    cld_lock(request->program);
    if (!status && request->program->generation != request->generation) /* it was built anew meanwhile */
        status = CL_INVALID_PROGRAM_EXECUTABLE;
    if (cld_variant_state(variant) == CLD_VARIANT_THERE) {
        status = CL_SUCCESS;
    } else if (status) {
        atomic_store(&variant->state, CLD_VARIANT_FAILED);
    } else {
        variant->entry = made->entry;
        variant->local_static = made->local_static;
        variant->scratch_fixed = made->scratch_fixed;
        variant->scratch_per_item = made->scratch_per_item;
        variant->making_time = made->making_time;
        variant->code = made->code;
        made->code = NULL;
        atomic_store_explicit(&variant->state, CLD_VARIANT_THERE, memory_order_release);
    }
    cld_unlock(request->program);
    return status;
}

_Atomic uint64_t cld_variants_waited, cld_variants_in_background;

static cl_int make(const struct request *request, bool is_waited_for) {
    const struct cld_executable *executable = request->info->executable;
    struct cld_variant made = {0};
    struct cld_msg reply;
    uint64_t before = cld_now();
    cl_int status = ask(request, true, &reply);
    if (status == CL_INVALID_PROGRAM && executable && executable->il)
        status = ask(request, false, &reply);
    if (!status && !load(request, &reply, &made))
        status = CL_OUT_OF_RESOURCES;
    cld_msg_free(&reply);
    made.making_time = cld_now() - before;
    atomic_fetch_add(is_waited_for ? &cld_variants_waited : &cld_variants_in_background, made.making_time);
    status = publish(request, status, &made);
    if (made.code)
        cld_code_unload(made.code);
    if (!status && request->variant->key.values)
        cld_log(2, "kernel %s: there is code for values of arguments", request->info->name);
    return status;
}

static struct request new_request(const struct cld_kernel *kernel, struct cld_kernel_info *info,
                                  struct cld_variant *variant) {
    struct cld_program *program = kernel->program;
    cld_lock(program);
    struct request request = {program, info, variant, program->generation};
    cld_unlock(program);
    return request;
}

static void drop_request(struct request *request) {
    cld_kernel_info_drop(request->info);
    cld_object_drop(request->program);
    free(request);
}

static void *make_later(void *argument) {
    struct request *request = argument;
    wait_for_builds();
    make(request, false);
    drop_request(request);
    return NULL;
}

static void make_in_background(const struct request *request) {
    struct request *later = malloc(sizeof *later);
    if (later) {
        *later = *request;
        cld_object_hold(later->program);
        atomic_fetch_add_explicit(&later->info->holds, 1, memory_order_relaxed);
        if (cld_start_thread(make_later, later))
            return;
        drop_request(later);
    }
    int32_t state = CLD_VARIANT_ASKED; /* unless a launch has made it meanwhile */
    atomic_compare_exchange_strong(&request->variant->state, &state, CLD_VARIANT_FAILED);
}

/* Whether it is this thread that has it made. */
static bool take_on(struct cld_variant *variant) {
    int32_t state = atomic_load_explicit(&variant->state, memory_order_relaxed);
    return state == CLD_VARIANT_NAMED &&
           atomic_compare_exchange_strong(&variant->state, &state, CLD_VARIANT_ASKED);
}

void cld_variant_ask(const struct cld_kernel *kernel, struct cld_kernel_info *info,
                     struct cld_variant *variant, bool now) {
    if (!take_on(variant))
        return;
    struct request request = new_request(kernel, info, variant);
    if (now)
        make(&request, true);
    else
        make_in_background(&request);
}

struct cld_variant *cld_variant_want(const struct cld_kernel *kernel, struct cld_kernel_info *info,
                                     const struct cld_variant_key *key, bool now) {
    struct cld_variant *variant = cld_variant_find(info, key);
    if (variant && cld_variant_state(variant) != CLD_VARIANT_NAMED)
        return variant;
    now = now || cld_setting_is(CL_DRIVER_GROUP_CODE_SETTING, "now");
    uint64_t busy = atomic_load_explicit(&info->busy_time, memory_order_relaxed);
    if (!now && (busy < CLD_WORTH_IT || cld_setting_is(CL_DRIVER_GROUP_CODE_SETTING, "off")))
        return variant;
    if (variant || (variant = cld_variant_add(info, key)))
        cld_variant_ask(kernel, info, variant, now);
    return variant;
}

/* Threads that need it at once make it twice: who waits for another might hold what that one waits for, an
 * interpreter's lock say. */
cl_int cld_variant_need(const struct cld_kernel *kernel, struct cld_kernel_info *info,
                        const struct cld_variant_key *key, const struct cld_variant **found) {
    struct cld_variant *variant = cld_variant_find(info, key);
    *found = NULL;
    if (!variant && !(variant = cld_variant_add(info, key))) /* of such keys there is always room for one */
        return CL_OUT_OF_HOST_MEMORY;
    if (!cld_variant_is_there(variant)) {
        struct request request = new_request(kernel, info, variant);
        cl_int status = make(&request, true);
        if (status)
            return status == CL_OUT_OF_HOST_MEMORY ? status : CL_OUT_OF_RESOURCES;
    }
    *found = variant;
    return CL_SUCCESS;
}

struct cld_variant_wish {
    struct request request; /* the program is held */
    const struct cld_variant *meanwhile;
    uint64_t patience;
    _Atomic uint64_t since; /* when somebody looked first, or 0 */
};

struct cld_variant_wish *cld_variant_wish_new(const struct cld_kernel *kernel, struct cld_kernel_info *info,
                                              const struct cld_variant *meanwhile, struct cld_variant *better,
                                              uint64_t patience) {
    struct cld_variant_wish *wish = calloc(1, sizeof *wish);
    if (!wish)
        return NULL;
    wish->meanwhile = meanwhile;
    wish->patience = patience;
    wish->request = new_request(kernel, info, better);
    cld_object_hold(wish->request.program);
    return wish;
}

const struct cld_variant *cld_variant_meanwhile(const struct cld_variant_wish *wish) {
    return wish->meanwhile;
}

void cld_variant_wish_look(struct cld_variant_wish *wish) {
    struct cld_variant *better = wish->request.variant;
    if (atomic_load_explicit(&better->state, memory_order_relaxed) != CLD_VARIANT_NAMED)
        return;
    uint64_t now = cld_now(), since = 0;
    if (atomic_compare_exchange_strong(&wish->since, &since, now) || now - since < wish->patience)
        return;
    if (take_on(better))
        make_in_background(&wish->request);
}

void cld_variant_wish_drop(struct cld_variant_wish *wish) {
    if (!wish)
        return;
    cld_object_drop(wish->request.program);
    free(wish);
}
