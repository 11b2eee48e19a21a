/* Code that comes while launches that would gain from it wait or run: they go over to it, each group is
 * executed once, and launches that it does not suit alone never run it. No compiler: C functions are the
 * code. */
#include "harness.h"
#include "kernel/variant.h"

enum { GROUPS = 3000, ITEMS = 64, LANES = 8 };

static cl_context context;
static cl_command_queue queue;
static _Atomic int usual_groups, late_groups, any_groups;
static _Atomic int executed[GROUPS + 1];
static _Atomic(struct cld_variant *) comes_midway;

static void note(_Atomic int *count, uint64_t first, uint64_t last) {
    for (; first < last; first++) {
        atomic_fetch_add(count, 1);
        atomic_fetch_add(&executed[first], 1);
    }
}

static void late(const struct cld_launch *launch, const uint8_t *args, struct cld_thread *thread,
                 uint64_t first, uint64_t last) {
    (void)launch, (void)args;
    thread->scratch[4096] = 1; /* what only this code asks for */
    note(&late_groups, first, last);
}

static void any(const struct cld_launch *launch, const uint8_t *args, struct cld_thread *thread,
                uint64_t first, uint64_t last) {
    (void)launch, (void)args, (void)thread;
    note(&any_groups, first, last);
}

static void install(struct cld_variant *code, cld_kernel_fn entry) {
    code->scratch_fixed = 8192;
    code->entry = entry;
    atomic_store_explicit(&code->state, CLD_VARIANT_THERE, memory_order_release);
}

static void usual(const struct cld_launch *launch, const uint8_t *args, struct cld_thread *thread,
                  uint64_t first, uint64_t last) {
    (void)launch, (void)args, (void)thread;
    struct cld_variant *code = atomic_exchange(&comes_midway, NULL);
    if (code)
        install(code, late);
    note(&usual_groups, first, last);
    usleep((useconds_t)(last - first));
}

/* A kernel for groups of which there is tiled code that was asked for. */
static cl_kernel make_kernel(struct cld_variant **tiled) {
    cl_kernel kernel = test_kernel(context, usual, "");
    struct cld_kernel_info *info = info_of(kernel);
    info->flags = CLD_KERNEL_WIDE | CLD_KERNEL_TILED | CLD_KERNEL_REST;
    info->width = info->tile_width = LANES;
    info->tile_height = 1;
    const struct cld_variant_key tiles = {
        .tier = CLD_TIER_HOT, .shape = CLD_SHAPE_TILES, .assumes_apart = true, .size = {LANES, LANES, 1}};
    const struct cld_variant_key all = {
        .tier = CLD_TIER_FIRST, .shape = CLD_SHAPE_ANY, .assumes_apart = true};
    *tiled = cld_variant_add(info, &tiles);
    struct cld_variant *rest = cld_variant_add(info, &all);
    CHECK(*tiled && rest);
    atomic_store(&(*tiled)->state, CLD_VARIANT_ASKED);
    install(rest, any);
    return kernel;
}

static void enqueue(cl_kernel kernel, size_t items, cl_event first) {
    size_t local = ITEMS;
    OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, &local, first != NULL, first ? &first : NULL,
                              NULL));
}

static void finish(cl_kernel kernel, int groups) {
    OK(clFinish(queue));
    for (int i = 0; i <= GROUPS; i++)
        CHECK_IS(atomic_exchange(&executed[i], 0), i < groups);
    OK(clReleaseKernel(kernel));
}

static void expect(int usual_count, int late_count, int any_count) {
    CHECK_IS(atomic_exchange(&usual_groups, 0), usual_count);
    CHECK_IS(atomic_exchange(&late_groups, 0), late_count);
    CHECK_IS(atomic_exchange(&any_groups, 0), any_count);
}

/* A launch of so many items that waits, and what it runs when the code comes, or fails, before it starts. */
static void waits(size_t items, bool comes) {
    struct cld_variant *tiled;
    cl_kernel kernel = make_kernel(&tiled);
    cl_int status;
    cl_event gate = clCreateUserEvent(context, &status);
    OK(status);
    enqueue(kernel, items, gate);
    if (comes)
        install(tiled, late);
    else
        atomic_store(&tiled->state, CLD_VARIANT_FAILED);
    OK(clSetUserEventStatus(gate, CL_COMPLETE));
    finish(kernel, (int)((items + ITEMS - 1) / ITEMS));
    OK(clReleaseEvent(gate));
}

static void comes_while_it_runs(void) {
    struct cld_variant *tiled;
    cl_kernel kernel = make_kernel(&tiled);
    atomic_store(&comes_midway, tiled);
    enqueue(kernel, GROUPS * ITEMS, NULL);
    finish(kernel, GROUPS);
    int before = atomic_exchange(&usual_groups, 0), after = atomic_exchange(&late_groups, 0);
    CHECK_IS(before + after, GROUPS);
    CHECK(before && after);
}

int main(void) {
    context = test_context();
    queue = test_queue(context, 0);
    waits(4 * ITEMS, true);
    expect(0, 4, 0);
    waits(4 * ITEMS, false);
    expect(4, 0, 0);
    waits(4 * ITEMS + 3, true); /* was bound to code for groups that are no whole tiles, and stays with it */
    expect(0, 0, 5);
    for (int i = 0; i < 20; i++)
        comes_while_it_runs();
    OK(clReleaseCommandQueue(queue));
    OK(clReleaseContext(context));
    return 0;
}
