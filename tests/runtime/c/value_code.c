/* Code for the values of arguments: when it is asked for, that launches with other values never run it, and
 * that it is kept only where it is faster. Whether kernels fetch ahead what they read.
 * Nobody answers requests here: the test puts C functions in their place, and its own clock in place of the
 * driver's (linked with --wrap=cld_now): kernels say how long they take, so that a loaded machine changes
 * nothing. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>

#include "harness.h"
#include "kernel/argument_specialisation.h"
#include "kernel/variant.h"

enum { GROUPS = 4, ITEMS = 64, KNOWN = 7, MS = 1000000, LONG_TIME = MS };

static cl_context context;
static _Atomic int usual_pace = 300000, special_pace = 100000; /* ns a group */
static _Atomic int usual_groups, special_groups, wrong;

static _Thread_local uint64_t said; /* ns that kernels say they took: each thread's own */
static _Atomic bool takes_its_time;

uint64_t __real_cld_now(void);
uint64_t __wrap_cld_now(void);

uint64_t __wrap_cld_now(void) {
    return __real_cld_now() + said;
}

static void spend(int pace) {
    if (!takes_its_time) {
        said += (uint64_t)pace;
        return;
    }
    uint64_t end = cld_now() + (uint64_t)pace;
    while (cld_now() < end)
        ;
}

static void usual(const struct cld_launch *launch, const uint8_t *args, struct cld_thread *thread,
                  uint64_t first, uint64_t last) {
    (void)launch, (void)args, (void)thread;
    for (; first < last; first++) {
        atomic_fetch_add(&usual_groups, 1);
        spend(usual_pace);
    }
}

static void special(const struct cld_launch *launch, const uint8_t *args, struct cld_thread *thread,
                    uint64_t first, uint64_t last) {
    int value;
    (void)launch, (void)thread;
    memcpy(&value, args, sizeof value);
    if (value != KNOWN)
        atomic_fetch_add(&wrong, 1);
    for (; first < last; first++) {
        atomic_fetch_add(&special_groups, 1);
        spend(special_pace);
    }
}

static _Atomic int ahead_pace, plain_pace; /* of what is to fetch ahead, and is not */
static _Atomic int ahead_groups, plain_groups;

static void reads(const struct cld_launch *launch, const uint8_t *args, struct cld_thread *thread,
                  uint64_t first, uint64_t last) {
    (void)args, (void)thread;
    for (; first < last; first++) {
        atomic_fetch_add(launch->ahead_kib ? &ahead_groups : &plain_groups, 1);
        spend(launch->ahead_kib ? ahead_pace : plain_pace);
    }
}

/* How many groups of so many launches fetched ahead. */
static int count_ahead(cl_command_queue queue, cl_kernel kernel, int launches, size_t groups) {
    size_t global = groups * ITEMS, local = ITEMS;
    int value = 1;
    atomic_store(&ahead_groups, 0);
    atomic_store(&plain_groups, 0);
    OK(clSetKernelArg(kernel, 0, sizeof value, &value));
    for (int i = 0; i < launches; i++)
        OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, &local, 0, NULL, NULL));
    OK(clFinish(queue));
    CHECK_IS(ahead_groups + plain_groups, launches * (int)groups);
    return ahead_groups;
}

/* Launches of enough groups tell, few where it is clear, whatever others of the kernel there are between.
 * Pieces say that they take so long that what the system takes from most of them is no share of it. */
static void fetching_ahead(uint64_t flags, int with, int without, int32_t state, int most_launches) {
    enum { MANY = 512 };
    cl_command_queue queue = test_queue(context, 0);
    cl_kernel kernel = test_kernel(context, reads, "i");
    struct cld_kernel_info *info = info_of(kernel);
    info->flags |= flags;
    atomic_store(&ahead_pace, with);
    atomic_store(&plain_pace, without);
    CHECK_IS(count_ahead(queue, kernel, 20, 1), 20);
    CHECK_IS(count_ahead(queue, kernel, 20, GROUPS), 20 * GROUPS); /* too few to compare */
    int launches = 0, share = 0;
    for (; atomic_load(&info->ahead.state) == CLD_PREFETCH_TRIAL && launches < 16; launches++) {
        share += count_ahead(queue, kernel, 1, MANY);
        if (atomic_load(&info->ahead.state) == CLD_PREFETCH_TRIAL)
            CHECK_IS(count_ahead(queue, kernel, 1, 2 * MANY), 2 * MANY); /* of another size */
    }
    CHECK_IS(atomic_load(&info->ahead.state), state);
    CHECK(launches <= most_launches);
    CHECK_IS(share, flags ? launches * MANY / 2 : launches * MANY);
    bool is_ahead = state != CLD_PREFETCH_OFF;
    CHECK_IS(count_ahead(queue, kernel, 10, MANY), is_ahead ? 10 * MANY : 0);
    CHECK_IS(count_ahead(queue, kernel, 10, 2 * MANY), is_ahead ? 20 * MANY : 0);
    CHECK_IS(count_ahead(queue, kernel, 10, 1), is_ahead ? 10 : 0);
    OK(clReleaseKernel(kernel));
    OK(clReleaseCommandQueue(queue));
}

/* A kernel of two integers and a double, of which the integers' values matter. */
static cl_kernel value_kernel(void) {
    cl_kernel kernel = test_kernel(context, usual, "iid");
    struct cld_kernel_info *info = info_of(kernel);
    info->specialisable_count = 2;
    info->specialisable_args[1] = 1;
    info->tile_width = 8;
    info->tile_height = 1;
    cld_specialisation_history_new(info);
    CHECK(info->history);
    return kernel;
}

static void launch_one(cl_command_queue queue, cl_kernel kernel, int a, int b, size_t groups) {
    size_t global = groups * ITEMS, local = ITEMS;
    double number = a;
    OK(clSetKernelArg(kernel, 0, sizeof a, &a));
    OK(clSetKernelArg(kernel, 1, sizeof b, &b));
    OK(clSetKernelArg(kernel, 2, sizeof number, &number));
    OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, &local, 0, NULL, NULL));
    OK(clFinish(queue));
}

static struct cld_variant *codes_of(cl_kernel kernel) {
    return atomic_load(&info_of(kernel)->variants);
}

/* Launches with values that stay until code is asked for. */
static struct cld_variant *ask(cl_command_queue queue, cl_kernel kernel) {
    for (int i = 0; i < 2000 && !codes_of(kernel); i++)
        launch_one(queue, kernel, KNOWN, i, GROUPS);
    struct cld_variant *code = codes_of(kernel);
    CHECK(code);
    CHECK_IS(code->key.values, 1); /* the other one changed all the time */
    CHECK_IS(code->key.words[0], KNOWN);
    CHECK(code->key.shape == CLD_SHAPE_TILES && code->key.tier == CLD_TIER_HOT);
    CHECK(!cld_variant_is_there(code));
    return code;
}

static void install(struct cld_variant *code) {
    code->entry = special;
    atomic_store_explicit(&code->state, CLD_VARIANT_THERE, memory_order_release);
}

static void try_out(cl_command_queue queue, cl_kernel kernel, struct cld_variant *code) {
    for (int i = 0; i < 100 && atomic_load(&code->ab_trial.state) == CLD_TRIAL; i++) {
        launch_one(queue, kernel, KNOWN, 0, GROUPS);
        launch_one(queue, kernel, KNOWN + 1, 0, GROUPS);
        launch_one(queue, kernel, KNOWN, 0, GROUPS + 1); /* of another size: not compared */
    }
}

static void faster_is_kept(void) {
    cl_command_queue queue = test_queue(context, 0);
    cl_kernel kernel = value_kernel();
    struct cld_variant *code = ask(queue, kernel);
    launch_one(queue, kernel, KNOWN, 0, GROUPS);
    CHECK_IS(atomic_load(&special_groups), 0);
    install(code);
    try_out(queue, kernel, code);
    CHECK_IS(atomic_load(&code->ab_trial.state), CLD_ADOPTED);
    atomic_store(&special_groups, 0);
    atomic_store(&usual_groups, 0);
    launch_one(queue, kernel, KNOWN, 5, GROUPS);
    launch_one(queue, kernel, KNOWN, 6, GROUPS + 1);
    CHECK_IS(atomic_load(&special_groups), 2 * GROUPS + 1);
    launch_one(queue, kernel, KNOWN + 256, 5, GROUPS);
    CHECK_IS(atomic_load(&usual_groups), GROUPS);
    CHECK_IS(atomic_load(&wrong), 0);
    OK(clReleaseKernel(kernel));
    OK(clReleaseCommandQueue(queue));
}

static void slower_is_not(void) {
    cl_command_queue queue = test_queue(context, 0);
    cl_kernel kernel = value_kernel();
    struct cld_variant *code = ask(queue, kernel);
    atomic_store(&special_pace, 2000000);
    install(code);
    try_out(queue, kernel, code);
    CHECK_IS(atomic_load(&code->ab_trial.state), CLD_REJECTED);
    atomic_store(&special_groups, 0);
    for (int i = 0; i < 20; i++)
        launch_one(queue, kernel, KNOWN, 0, GROUPS);
    CHECK_IS(atomic_load(&special_groups), 0);
    for (const struct cld_variant *at = codes_of(kernel); at; at = at->next)
        CHECK(at == code || at->key.values != 1); /* nor is it asked for again, but perhaps for both */
    atomic_store(&special_pace, 100000);
    OK(clReleaseKernel(kernel));
    OK(clReleaseCommandQueue(queue));
}

static void values_that_change(void) {
    cl_command_queue queue = test_queue(context, 0);
    cl_kernel kernel = value_kernel();
    for (int i = 0; i < 600; i++)
        launch_one(queue, kernel, i, -i, GROUPS);
    CHECK(!codes_of(kernel));
    OK(clReleaseKernel(kernel));
    OK(clReleaseCommandQueue(queue));
}

/* Values that stay for long, but not for ever. */
static void values_that_stay_for_a_while(void) {
    cl_command_queue queue = test_queue(context, 0);
    cl_kernel kernel = value_kernel();
    atomic_store(&usual_pace, LONG_TIME);
    unsigned count = 0;
    for (int i = 0; i < 500; i++)
        launch_one(queue, kernel, i / 70, 3, 4 * GROUPS);
    for (const struct cld_variant *code = codes_of(kernel); code; code = code->next)
        count++;
    CHECK(count >= 1 && count <= CLD_MOST_SPECIALISATIONS);
    atomic_store(&usual_pace, 300000);
    OK(clReleaseKernel(kernel));
    OK(clReleaseCommandQueue(queue));
}

static _Atomic int first_groups;
static _Atomic(struct cld_variant *) comes_midway;

/* What a launch of a kernel with images waits for. */
static void first_code(const struct cld_launch *launch, const uint8_t *args, struct cld_thread *thread,
                       uint64_t first, uint64_t last) {
    (void)launch, (void)args, (void)thread;
    struct cld_variant *better = atomic_exchange(&comes_midway, NULL);
    if (better)
        install(better);
    for (; first < last; first++) {
        atomic_fetch_add(&first_groups, 1);
        spend(usual_pace);
    }
}

/* A kernel whose first argument is taken for the format of an image, with its first code for KNOWN. */
static cl_kernel image_kernel(uint64_t making_time) {
    cl_kernel kernel = value_kernel();
    struct cld_kernel_info *info = info_of(kernel);
    info->entry = NULL;
    info->history->of_images = 1;
    const struct cld_variant_key key = {
        .tier = CLD_TIER_FIRST, .shape = CLD_SHAPE_ITEMS, .values = 1, .words = {KNOWN}};
    struct cld_variant *made = cld_variant_add(info, &key);
    CHECK(made);
    made->making_time = making_time;
    made->entry = first_code;
    atomic_store(&made->state, CLD_VARIANT_THERE);
    return kernel;
}

/* A launch asks for better code when it has gone on for long, and goes over to it; a short one does not. */
static void better_code_for_images(void) {
    enum { MANY = 600 };
    cl_command_queue queue = test_queue(context, 0);
    cl_kernel kernel = image_kernel(LONG_TIME);
    launch_one(queue, kernel, KNOWN, 0, 1);
    struct cld_variant *better = codes_of(kernel);
    CHECK(better->key.shape == CLD_SHAPE_ANY && better->key.tier == CLD_TIER_HOT);
    CHECK_IS(atomic_load(&better->state), CLD_VARIANT_NAMED);
    launch_one(queue, kernel, KNOWN, 0, MANY);
    CHECK(atomic_load(&better->state) != CLD_VARIANT_NAMED);
    CHECK_IS(atomic_load(&first_groups), 1 + MANY);
    CHECK_IS(atomic_load(&special_groups), 0);
    atomic_store(&comes_midway, better);
    launch_one(queue, kernel, KNOWN, 0, MANY);
    CHECK(atomic_load(&special_groups) > 0 && atomic_load(&first_groups) > 1 + MANY);
    CHECK_IS(atomic_load(&special_groups) + atomic_load(&first_groups), 1 + 2 * MANY);
    int before = atomic_load(&first_groups);
    launch_one(queue, kernel, KNOWN, 0, MANY);
    CHECK_IS(atomic_load(&first_groups), before);
    CHECK_IS(atomic_load(&wrong), 0);
    OK(clReleaseKernel(kernel));
    OK(clReleaseCommandQueue(queue));
}

/* One work-item at a time is tried where the kernel says so, and where rows are short; a large difference
 * decides soon. width: lanes. */
static void one_at_a_time(uint64_t flags, uint32_t width, int pace, int32_t state, int most_launches) {
    cl_command_queue queue = test_queue(context, 0);
    cl_kernel kernel = test_kernel(context, usual, "iid");
    info_of(kernel)->flags |= flags;
    info_of(kernel)->width = width;
    for (int i = 0; i < 40; i++)
        launch_one(queue, kernel, KNOWN, i, GROUPS);
    struct cld_variant *items = codes_of(kernel);
    if (!most_launches) {
        CHECK(!items);
    } else {
        CHECK(items && items->key.shape == CLD_SHAPE_ITEMS && !items->key.values);
        CHECK(items->key.tier == CLD_TIER_HOT && items->key.assumes_apart); /* as what it is compared with */
        atomic_store(&special_groups, 0);
        atomic_store(&special_pace, pace);
        install(items);
        int launches = 0;
        for (; atomic_load(&items->ab_trial.state) == CLD_TRIAL && launches < 100; launches++)
            launch_one(queue, kernel, KNOWN, 0, GROUPS);
        CHECK_IS(atomic_load(&items->ab_trial.state), state);
        CHECK(launches <= most_launches);
        CHECK(atomic_load(&special_groups) >= GROUPS && special_groups <= (launches / 2 + 1) * GROUPS);
        atomic_store(&special_groups, 0);
        launch_one(queue, kernel, KNOWN, 5, GROUPS + 1);
        CHECK_IS(atomic_load(&special_groups), state == CLD_ADOPTED ? GROUPS + 1 : 0);
    }
    atomic_store(&special_pace, 100000);
    OK(clReleaseKernel(kernel));
    OK(clReleaseCommandQueue(queue));
}

struct user {
    pthread_t thread;
    cl_kernel kernel; /* of its own: arguments are set */
    int value;
};

static void *use(void *argument) {
    const struct user *user = argument;
    cl_command_queue queue = test_queue(context, 0);
    for (int i = 0; i < 150; i++)
        launch_one(queue, user->kernel, user->value, i, GROUPS);
    OK(clReleaseCommandQueue(queue));
    return NULL;
}

/* Threads with kernels of one function, while code is asked for, comes and is tried. */
static void threads(void) {
    cl_kernel kernel = value_kernel();
    struct user users[4];
    cl_int status;
    atomic_store(&takes_its_time, true);
    for (int i = 0; i < 4; i++) {
        users[i] = (struct user){.kernel = clCloneKernel(kernel, &status), .value = KNOWN + (i == 3)};
        OK(status);
        CHECK(!pthread_create(&users[i].thread, NULL, use, &users[i]));
    }
    for (int i = 0; i < 5000 && !codes_of(kernel); i++)
        usleep(1000);
    for (struct cld_variant *code = codes_of(kernel); code; code = code->next)
        if (code->key.values == 1 && code->key.words[0] == KNOWN)
            install(code);
    for (int i = 0; i < 4; i++) {
        pthread_join(users[i].thread, NULL);
        OK(clReleaseKernel(users[i].kernel));
    }
    CHECK_IS(atomic_load(&wrong), 0);
    OK(clReleaseKernel(kernel));
}

int main(void) {
    context = test_context();
    faster_is_kept();
    slower_is_not();
    values_that_change();
    values_that_stay_for_a_while();
    one_at_a_time(CLD_KERNEL_TRIES_ITEMS, 8, 100000, CLD_ADOPTED, 8);
    one_at_a_time(CLD_KERNEL_TRIES_ITEMS, 8, 240000, CLD_ADOPTED, 40);
    one_at_a_time(CLD_KERNEL_TRIES_ITEMS, 8, 290000, CLD_REJECTED, 40);
    one_at_a_time(CLD_KERNEL_TRIES_ITEMS, 8, 2000000, CLD_REJECTED, 8);
    one_at_a_time(CLD_KERNEL_HAS_LINEAR, 2 * ITEMS, 100000, CLD_ADOPTED, 8);
    one_at_a_time(CLD_KERNEL_HAS_LINEAR, ITEMS, 100000, CLD_TRIAL, 0);
    one_at_a_time(0, 4 * ITEMS, 100000, CLD_TRIAL, 0);
    atomic_store(&special_groups, 0);
    better_code_for_images();
    fetching_ahead(CLD_KERNEL_READS_AHEAD, 60 * MS, 30 * MS, CLD_PREFETCH_OFF, 3);
    fetching_ahead(CLD_KERNEL_READS_AHEAD, 60 * MS, 70 * MS, CLD_PREFETCH_ON, 3);
    fetching_ahead(CLD_KERNEL_READS_AHEAD, 60 * MS, 56 * MS, CLD_PREFETCH_OFF, 6);
    fetching_ahead(CLD_KERNEL_READS_AHEAD, 60 * MS, 594 * MS / 10, CLD_PREFETCH_ON, 6);
    fetching_ahead(0, 60 * MS, 30 * MS, CLD_PREFETCH_TRIAL, 16);
    threads();
    OK(clReleaseContext(context));
    return 0;
}
