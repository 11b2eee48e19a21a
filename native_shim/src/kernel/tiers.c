/* Code for some launches of a kernel: asked for, loaded, chosen. */
#define _GNU_SOURCE
#include "kernel/tiers.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "answers.h"
#include "base/log.h"
#include "base/settings.h"
#include "base/thread.h"
#include "kernel/executable.h"
#include "kernel/kernel.h"
#include "loader/load.h"
#include "memory/mem.h"
#include "memory/svm.h"
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

/* Local sizes of a kernel that get code of their own. */
enum { MOST_SIZES = 8 };

struct request {
    struct cld_program *program;  /* held */
    struct cld_kernel_info *info; /* held */
    struct cld_tier *code;
    uint64_t generation; /* of the program, when the kernel was its own */
};

static struct cld_tier *new_code(enum cld_tier_kind kind, const uint64_t *size) {
    struct cld_tier *made = calloc(1, sizeof *made);
    if (made) {
        made->kind = kind;
        memcpy(made->size, size, sizeof made->size);
    }
    return made;
}

static struct cld_tier *find(struct cld_tier *list, enum cld_tier_kind kind, const uint64_t *size) {
    while (list && (list->kind != kind || memcmp(list->size, size, sizeof list->size)))
        list = list->next;
    return list;
}

/* Whether code is for one local size. */
static bool is_of_size(const struct cld_tier *code) {
    return code->kind == CLD_TIER_GROUP || code->kind == CLD_TIER_LINEAR;
}

/* Adds code to the kernel's. False, and the code is dropped, if another thread has added the like, or if
 * there are enough local sizes. */
static bool add(struct cld_kernel_info *info, struct cld_tier *added) {
    struct cld_tier *first = atomic_load_explicit(&info->codes, memory_order_acquire);
    do {
        unsigned count = 0;
        for (const struct cld_tier *code = first; code; code = code->next)
            count += is_of_size(code);
        if (find(first, added->kind, added->size) || (is_of_size(added) && count >= MOST_SIZES)) {
            cld_tier_drop(added);
            return false;
        }
        added->next = first;
    } while (!atomic_compare_exchange_weak(&info->codes, &first, added));
    return true;
}

bool cld_tier_is_there(const struct cld_tier *code) {
    return code && atomic_load_explicit(&code->entry, memory_order_acquire);
}

static bool take_code(struct cld_tier *code, uint64_t most_local, struct cld_msg *reply) {
    struct cld_answer_tier answer;
    if (!cld_answer_tier_read(reply, &answer)) /* which has nothing to be freed */
        return false;
    code->local_static = answer.local_static;
    code->scratch_fixed = answer.scratch_fixed;
    code->scratch_per_item = answer.scratch_per_item;
    if (!answer.object.size) {
        cld_log(1, "clEnqueueNDRangeKernel: %.*s", (int)answer.symbol.size, (const char *)answer.symbol.data);
        return false;
    }
    bool is_late = code->kind == CLD_TIER_TILED || is_of_size(code) || code->kind == CLD_TIER_MORE ||
                   (code->kind == CLD_TIER_ANY && code->values);
    if (is_late && code->local_static > most_local) { /* a launch that goes over to it has room for so much */
        cld_log(2, "clEnqueueNDRangeKernel: code that needs more local memory");
        return false;
    }
    char error[256] = "";
    char *symbol = strndup(answer.symbol.data, answer.symbol.size);
    code->code = symbol ? cld_code_load(answer.object.data, answer.object.size, error, sizeof error) : NULL;
    cld_kernel_fn entry = NULL;
    if (code->code) {
        void *address = cld_code_symbol(code->code, symbol);
        memcpy(&entry, &address, sizeof entry);
        atomic_store_explicit(&code->entry, entry, memory_order_release);
    } else {
        cld_log(1, "clEnqueueNDRangeKernel: object code is not loaded: %s", error);
    }
    free(symbol);
    return entry;
}

/* A list of the number of an argument, its bytes, the next one's... Of an image: passes/lower/images.py,
 * FORMAT. */
static void put_argument_values(struct cld_msg *question, const struct cld_kernel_info *info,
                                const struct cld_tier *code) {
    cld_put_list(question, 2 * (uint32_t)__builtin_popcount(code->values));
    for (uint32_t i = 0; i < info->specialisable_count; i++) {
        if (!(code->values >> i & 1))
            continue;
        const struct cld_arg_info *arg = &info->args[info->specialisable_args[i]];
        uint64_t word = code->words[i];
        const uint32_t format[3] = {word & 0xFFFF, word >> 16 & 0xFFFF, (uint32_t)(word >> 32)};
        cld_put_int(question, info->specialisable_args[i]);
        if (arg->kind == CLD_ARG_IMAGE)
            cld_put_bytes(question, format, sizeof format);
        else
            cld_put_bytes(question, &word, arg->size);
    }
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
    cld_put_int(&question, request->code->kind);
    cld_put_list(&question, 3);
    for (int i = 0; i < 3; i++)
        cld_put_int(&question, (int64_t)request->code->size[i]);
    cld_put_int(&question, (int64_t)request->info->apart);
    put_argument_values(&question, request->info, request->code);
    cl_int status = cld_door_call(of_peer ? "kernel_variant" : "kernel_variant_of", &question, reply);
    cld_msg_free(&question);
    return status;
}

static cl_int make_code(const struct request *request) {
    struct cld_program *program = request->program;
    const struct cld_executable *executable = request->info->executable;
    struct cld_msg reply;
    cl_int status = ask(request, true, &reply);
    if (status == CL_INVALID_PROGRAM && executable && executable->il)
        status = ask(request, false, &reply);
    cld_lock(program);
    bool current = program->generation == request->generation; /* else it was built anew meanwhile */
    cld_unlock(program);
    if (!status && !current)
        status = CL_INVALID_PROGRAM_EXECUTABLE;
    if (!status && !take_code(request->code, request->info->local_static, &reply))
        status = CL_OUT_OF_RESOURCES;
    if (status)
        atomic_store(&request->code->has_failed, true);
    else if (request->code->values)
        cld_log(2, "kernel %s: there is code for values of arguments", request->info->name);
    cld_msg_free(&reply);
    return status;
}

static struct request new_request(const struct cld_kernel *kernel, struct cld_kernel_info *info,
                                  struct cld_tier *code) {
    struct cld_program *program = kernel->program;
    cld_lock(program);
    struct request request = {program, info, code, program->generation};
    cld_unlock(program);
    return request;
}

static void *make_later(void *argument) {
    struct request request = *(struct request *)argument;
    free(argument);
    wait_for_builds();
    make_code(&request);
    cld_kernel_info_drop(request.info);
    cld_object_drop(request.program);
    return NULL;
}

/* Frees the request in any case. */
static void start(struct request *later) {
    struct request request = *later;
    cld_object_hold(request.program);
    atomic_fetch_add_explicit(&request.info->holds, 1, memory_order_relaxed);
    if (!cld_start_thread(make_later, later)) {
        cld_kernel_info_drop(request.info);
        cld_object_drop(request.program);
        free(later);
    }
}

void cld_tier_ask(const struct cld_kernel *kernel, struct cld_kernel_info *info, struct cld_tier *code,
                  bool now) {
    struct request request = new_request(kernel, info, code);
    if (now) {
        uint64_t before = cld_now();
        make_code(&request);
        code->making_time = cld_now() - before;
        return;
    }
    struct request *later = malloc(sizeof *later);
    if (!later)
        return;
    *later = request;
    start(later);
}

void cld_tier_ask_once(const struct cld_kernel *kernel, struct cld_kernel_info *info, struct cld_tier *code) {
    if (!atomic_exchange(&code->is_asked_for, true))
        cld_tier_ask(kernel, info, code, false);
}

struct cld_tier_wish {
    struct request request;
    const struct cld_tier *meanwhile;
    uint64_t patience;
    _Atomic uint64_t since; /* when somebody looked first, or 0 */
};

struct cld_tier_wish *cld_tier_wish_new(const struct cld_kernel *kernel, struct cld_kernel_info *info,
                                        const struct cld_tier *meanwhile, struct cld_tier *better,
                                        uint64_t patience) {
    struct cld_tier_wish *wish = calloc(1, sizeof *wish);
    if (!wish)
        return NULL;
    wish->meanwhile = meanwhile;
    wish->patience = patience;
    wish->request = new_request(kernel, info, better);
    cld_object_hold(wish->request.program);
    return wish;
}

const struct cld_tier *cld_tier_meanwhile(const struct cld_tier_wish *wish) {
    return wish->meanwhile;
}

void cld_tier_wish_look(struct cld_tier_wish *wish) {
    struct cld_tier *code = wish->request.code;
    if (atomic_load_explicit(&code->is_asked_for, memory_order_relaxed))
        return;
    uint64_t now = cld_now(), since = 0;
    if (atomic_compare_exchange_strong(&wish->since, &since, now) || now - since < wish->patience ||
        atomic_exchange(&code->is_asked_for, true))
        return;
    struct request *later = malloc(sizeof *later);
    if (!later)
        return;
    *later = wish->request;
    start(later);
}

void cld_tier_wish_drop(struct cld_tier_wish *wish) {
    if (!wish)
        return;
    cld_object_drop(wish->request.program);
    free(wish);
}

/* Code that a launch can do without, which may not be there yet. NULL until the kernel has run for a while,
 * when it is asked for. */
static const struct cld_tier *wish(const struct cld_kernel *kernel, struct cld_kernel_info *info,
                                   enum cld_tier_kind kind, const uint64_t *size) {
    struct cld_tier *code = find(atomic_load_explicit(&info->codes, memory_order_acquire), kind, size);
    if (!code) {
        bool now = cld_setting_is(CL_DRIVER_GROUP_CODE_SETTING, "now");
        bool off = cld_setting_is(CL_DRIVER_GROUP_CODE_SETTING, "off");
        uint64_t busy = atomic_load_explicit(&info->busy_time, memory_order_relaxed);
        if (off || (!now && busy < CLD_WORTH_IT) || !(code = new_code(kind, size)) || !add(info, code))
            return NULL;
        cld_tier_ask(kernel, info, code, now);
    }
    return code;
}

/* Code that a launch cannot do without. Threads that need it at once make it twice: who waits for another
 * might hold what that one waits for, an interpreter's lock say. */
static cl_int need(const struct cld_kernel *kernel, struct cld_kernel_info *info, enum cld_tier_kind kind,
                   const uint64_t *size, const struct cld_tier **found) {
    *found = find(atomic_load_explicit(&info->codes, memory_order_acquire), kind, size);
    if (*found)
        return CL_SUCCESS;
    struct cld_tier *code = new_code(kind, size);
    if (!code)
        return CL_OUT_OF_HOST_MEMORY;
    struct request request = new_request(kernel, info, code);
    cl_int status = make_code(&request);
    if (status) {
        cld_tier_drop(code);
        return status == CL_OUT_OF_HOST_MEMORY ? status : CL_OUT_OF_RESOURCES;
    }
    add(info, code);
    *found = find(atomic_load_explicit(&info->codes, memory_order_acquire), kind, size);
    return CL_SUCCESS;
}

cl_int cld_tier_need_any(const struct cld_kernel *kernel, struct cld_kernel_info *info,
                         const struct cld_tier **found) {
    const uint64_t any[3] = {0};
    return need(kernel, info, CLD_TIER_ANY, any, found);
}

/* Rows of fewer work-items than this are as fast one by one. */
enum { SHORTEST_ROW = 4 };

static bool has_large_ids(const struct cld_launch *launch) {
    for (int i = 0; i < 3; i++) /* the sums do not overflow: cld_ndrange_check() has looked */
        if (launch->global_offset[i] + launch->global_size[i] > UINT64_C(1) << 30)
            return true;
    return false;
}

/* Whether the entry that takes several work-items at a time may take these, and is worth it. */
static bool suits_wide(const struct cld_kernel_info *info, const struct cld_launch *launch) {
    if (has_large_ids(launch))
        return false;
    if (!(info->flags & CLD_KERNEL_SUB_GROUPS))
        return launch->local_size[0] >= SHORTEST_ROW || (info->flags & CLD_KERNEL_FREE_GROUPS);
    bool one_row = launch->local_size[1] == 1 && launch->local_size[2] == 1;
    return one_row || (launch->local_size[0] % info->width == 0 && launch->global_size[0] % info->width == 0);
}

/* Whether all groups are of one size, for which there may be code. */
static bool has_one_size(const struct cld_launch *launch) {
    for (int i = 0; i < 3; i++)
        if (launch->global_size[i] % launch->local_size[i])
            return false;
    return !has_large_ids(launch);
}

/* Whether the work-items of each group fill vectors, and all groups are of one size. */
static bool is_whole(const struct cld_kernel_info *info, const struct cld_launch *launch) {
    const uint64_t *size = launch->local_size;
    return size[0] % info->width == 0 && size[0] * size[1] * size[2] <= info->most_group_items &&
           has_one_size(launch);
}

/* Whether rows of groups, all of one size, leave lanes idle that the next rows could fill. Where a kernel
 * requires a size, the build has looked. */
static bool has_short_rows(const struct cld_kernel_info *info, const struct cld_launch *launch) {
    const uint64_t *size = launch->local_size;
    bool may_be_idle = size[0] % info->width || info->width == 1 || info->reqd_local_size[0];
    return info->flags & CLD_KERNEL_HAS_LINEAR && may_be_idle && size[1] * size[2] > 1 &&
           has_one_size(launch);
}

static bool has_tiles(const uint64_t *tile, const uint64_t *size) {
    return size[0] % tile[1] == 0 && size[1] % tile[2] == 0;
}

bool cld_tier_has_rest(const uint64_t *tile, const struct cld_launch *launch) {
    const uint64_t *size = launch->local_size, *global = launch->global_size;
    uint64_t edge[2] = {global[0] % size[0], global[1] % size[1]};
    return !has_tiles(tile, size) || !has_tiles(tile, edge);
}

/* Memory that a kernel may reach through an argument. */
struct extent {
    const uint8_t *start;
    size_t size;
};

/* False if it is not known: what is no buffer and lies in no SVM allocation. */
static bool find_extent(const struct cld_kernel *kernel, const struct cld_kernel_info *info, uint32_t number,
                        struct extent *extent) {
    const struct cld_mem *mem = kernel->mems[number];
    *extent = (struct extent){mem ? mem->data : NULL, mem ? mem->size : 0};
    if (mem)
        return true;
    const void *pointer;
    memcpy(&pointer, kernel->block + info->args[number].offset, sizeof pointer);
    return !pointer || cld_svm_allocation(kernel->program->context, pointer, &extent->start, &extent->size);
}

static bool meet(struct extent a, struct extent b) {
    return a.size && b.size && a.start < b.start + b.size && b.start < a.start + a.size;
}

/* Whether a launch does not do what its kernel's code assumes: see cld_kernel_info.apart. */
static bool has_overlap(const struct cld_kernel *kernel, const struct cld_kernel_info *info) {
    for (uint64_t rest = info->apart; rest; rest &= rest - 1) {
        uint32_t number = (uint32_t)__builtin_ctzll(rest);
        struct extent own, other;
        if (number >= info->arg_count || !find_extent(kernel, info, number, &own))
            return true;
        for (uint32_t i = 0; i < info->arg_count; i++)
            if (i != number && info->args[i].kind == CLD_ARG_GLOBAL &&
                (!find_extent(kernel, info, i, &other) || meet(own, other)))
                return true;
    }
    return false;
}

static bool is_open(const struct cld_tier *wished) {
    return !wished || atomic_load(&wished->has_failed);
}

/* The best code for a launch that can do without. */
static const struct cld_tier *wish_any(const struct cld_kernel *kernel, struct cld_kernel_info *info,
                                       const struct cld_launch *launch, const uint64_t *tile) {
    const uint64_t any[3] = {0}, *size = launch->local_size;
    const struct cld_tier *wished = NULL;
    bool has_more = info->flags & CLD_KERNEL_HAS_MORE && !has_large_ids(launch);
    bool more_first = has_more && info->flags & CLD_KERNEL_FREE_GROUPS; /* it takes tiles, too */
    if (more_first)
        wished = wish(kernel, info, CLD_TIER_MORE, any);
    if (has_short_rows(info, launch))
        wished = wish(kernel, info, CLD_TIER_LINEAR, size);
    if (is_open(wished) && info->most_group_items && is_whole(info, launch))
        wished = wish(kernel, info, CLD_TIER_GROUP, size);
    if (is_open(wished) && info->flags & CLD_KERNEL_TILED && has_tiles(tile, size))
        wished = wish(kernel, info, CLD_TIER_TILED, tile);
    if (is_open(wished) && has_more && !more_first)
        wished = wish(kernel, info, CLD_TIER_MORE, any);
    return is_open(wished) ? NULL : wished;
}

cl_int cld_tier_choose(const struct cld_kernel *kernel, struct cld_kernel_info *info,
                       const struct cld_launch *launch, const struct cld_tier **chosen) {
    const uint64_t any[3] = {0}, tile[3] = {info->width, info->tile_width, info->tile_height};
    const uint64_t vector[3] = {info->width, info->width, 1};
    const uint64_t *entry_tile = info->flags & CLD_KERNEL_TILED ? vector : tile;
    *chosen = NULL;
    bool is_narrow = info->flags & CLD_KERNEL_NARROW && !suits_wide(info, launch);
    if (is_narrow && !has_short_rows(info, launch))
        return need(kernel, info, CLD_TIER_NARROW, any, chosen);
    if (info->apart && has_overlap(kernel, info))
        return need(kernel, info, is_narrow ? CLD_TIER_NARROW : CLD_TIER_OVERLAP, any, chosen);
    bool is_first = info->flags & CLD_KERNEL_TILES_FIRST && has_tiles(tile, launch->local_size) &&
                    !cld_setting_is(CL_DRIVER_GROUP_CODE_SETTING, "off");
    if (is_first && need(kernel, info, CLD_TIER_TILED, tile, chosen) == CL_SUCCESS)
        return CL_SUCCESS;
    const struct cld_tier *wished = wish_any(kernel, info, launch, tile);
    if (is_narrow && !(cld_tier_is_there(wished) && wished->kind == CLD_TIER_LINEAR))
        return need(kernel, info, CLD_TIER_NARROW, any, chosen);
    bool needs_rest = info->flags & CLD_KERNEL_REST && cld_tier_has_rest(entry_tile, launch);
    if (cld_tier_is_there(wished) || (wished && !needs_rest))
        *chosen = wished;
    else if (needs_rest)
        return info->flags & CLD_KERNEL_FREE_GROUPS ? need(kernel, info, CLD_TIER_REST, entry_tile, chosen)
                                                    : need(kernel, info, CLD_TIER_ANY, any, chosen);
    return CL_SUCCESS;
}
