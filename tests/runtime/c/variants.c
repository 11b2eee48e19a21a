/* Variants of a kernel: keys, the table, and how code is asked for, waited for and fails. No compiler: the
 * test answers requests, and C functions are the code (linked with --wrap). */
#include <pthread.h>

#include "harness.h"
#include "kernel/variant.h"
#include "loader/load.h"
#include "python/door.h"

static cl_context context;

/* What requests are answered: how many are to be under way before any is, an error, bytes of local memory. */
static _Atomic int least_at_once, status_given;
static _Atomic uint64_t local_given;
static _Atomic int requests, loaded, at_once;
static int64_t asked[4]; /* the key in the last request */

static void code(const struct cld_launch *launch, const uint8_t *args, struct cld_thread *thread,
                 uint64_t first, uint64_t last) {
    (void)launch, (void)args, (void)thread, (void)first, (void)last;
}

int32_t __wrap_cld_door_call(const char *op, const struct cld_msg *request, struct cld_msg *reply);
struct cld_code *__wrap_cld_code_load(const void *object, size_t size, char *error, size_t error_size);
void *__wrap_cld_code_symbol(const struct cld_code *loaded_code, const char *name);
void __wrap_cld_code_set_terminated(struct cld_code *loaded_code, const _Atomic uint32_t *word);
void __wrap_cld_code_unload(struct cld_code *loaded_code);

int32_t __wrap_cld_door_call(const char *op, const struct cld_msg *request, struct cld_msg *reply) {
    cld_msg_init(reply);
    if (strcmp(op, "kernel_variant"))
        return CL_SUCCESS;
    atomic_fetch_add(&requests, 1);
    for (atomic_fetch_add(&at_once, 1); atomic_load(&at_once) < atomic_load(&least_at_once);)
        usleep(100);
    if (!atomic_load(&least_at_once)) {
        struct cld_msg read = *request;
        size_t size;
        read.at = 0;
        cld_get_int(&read), cld_get_int(&read), cld_get_bytes(&read, &size);
        CHECK_IS(cld_get_list(&read), 4);
        for (int i = 0; i < 4; i++)
            asked[i] = cld_get_int(&read);
        CHECK(!read.failed);
    }
    if (atomic_load(&status_given))
        return atomic_load(&status_given);
    cld_put_bytes(reply, "object", 6);
    cld_put_string(reply, "code");
    cld_put_int(reply, (int64_t)atomic_load(&local_given));
    cld_put_int(reply, 0);
    cld_put_int(reply, 0);
    return CL_SUCCESS;
}

struct cld_code *__wrap_cld_code_load(const void *object, size_t size, char *error, size_t error_size) {
    (void)object, (void)size, (void)error, (void)error_size;
    atomic_fetch_add(&loaded, 1);
    return malloc(1);
}

void *__wrap_cld_code_symbol(const struct cld_code *loaded_code, const char *name) {
    cld_kernel_fn function = code;
    void *address;
    CHECK(loaded_code && !strcmp(name, "code"));
    memcpy(&address, &function, sizeof address);
    return address;
}

void __wrap_cld_code_set_terminated(struct cld_code *loaded_code, const _Atomic uint32_t *word) {
    CHECK(loaded_code && word == &((const struct cld_context *)context)->terminated);
}

void __wrap_cld_code_unload(struct cld_code *loaded_code) {
    if (loaded_code)
        atomic_fetch_sub(&loaded, 1);
    free(loaded_code);
}

static const struct cld_variant_key tiles = {
    .tier = CLD_TIER_HOT, .shape = CLD_SHAPE_TILES, .assumes_apart = true, .size = {8, 16, 2}};

/* A kernel of two integers that matter. */
static struct cld_kernel *new_kernel(void) {
    cl_kernel kernel = test_kernel(context, code, "ii");
    struct cld_kernel_info *info = info_of(kernel);
    info->specialisable_count = 2;
    info->specialisable_args[1] = 1;
    atomic_store(&requests, 0);
    atomic_store(&at_once, 0);
    return (struct cld_kernel *)kernel;
}

static void drop(struct cld_kernel *kernel) {
    OK(clReleaseKernel((cl_kernel)kernel));
    for (int i = 0; i < 5000 && atomic_load(&loaded); i++) /* a thread may hold it for a moment */
        usleep(1000);
    CHECK_IS(atomic_load(&loaded), 0);
}

static void await(const struct cld_variant *variant, int32_t state) {
    for (int i = 0; i < 10000 && cld_variant_state(variant) != state; i++)
        usleep(1000);
    CHECK_IS(cld_variant_state(variant), state);
}

/* Each part of a key tells codes apart; words of values that are not known do not. */
static void keys(void) {
    struct cld_variant_key other = tiles;
    CHECK(cld_variant_key_is(&tiles, &other));
    other.words[3] = 1;
    CHECK(cld_variant_key_is(&tiles, &other));
    other = tiles, other.tier = CLD_TIER_FIRST;
    CHECK(!cld_variant_key_is(&tiles, &other));
    other = tiles, other.shape = CLD_SHAPE_REST;
    CHECK(!cld_variant_key_is(&tiles, &other));
    other = tiles, other.assumes_apart = false;
    CHECK(!cld_variant_key_is(&tiles, &other));
    other = tiles, other.size[2] = 1;
    CHECK(!cld_variant_key_is(&tiles, &other));
    other = tiles, other.values = 2, other.words[1] = 7;
    CHECK(!cld_variant_key_is(&tiles, &other) && !cld_variant_key_is(&other, &tiles));
    struct cld_variant_key launch = other;
    launch.values = 3, launch.words[0] = 5;
    CHECK(cld_variant_key_suits(&tiles, &launch) && cld_variant_key_suits(&other, &launch));
    CHECK(!cld_variant_key_suits(&launch, &other)); /* the code knows more than the launch */
    launch.words[1] = 8;
    CHECK(cld_variant_key_suits(&tiles, &launch) && !cld_variant_key_suits(&other, &launch));
}

/* The same key is the same variant; of sizes, and of values, there are only so many. */
static void table(void) {
    struct cld_kernel *kernel = new_kernel();
    struct cld_kernel_info *info = kernel->info;
    CHECK(!cld_variant_find(info, &tiles));
    struct cld_variant *first = cld_variant_add(info, &tiles);
    CHECK(first && cld_variant_add(info, &tiles) == first && cld_variant_find(info, &tiles) == first);
    int sizes = 0, values = 0;
    struct cld_variant_key key = {.tier = CLD_TIER_HOT, .shape = CLD_SHAPE_GROUP, .assumes_apart = true};
    for (; key.size[0] < 20; key.size[0]++) {
        key.shape = key.size[0] & 1 ? CLD_SHAPE_GROUP : CLD_SHAPE_LINEAR;
        sizes += cld_variant_add(info, &key) != NULL;
    }
    CHECK_IS(sizes, 8);
    for (key = tiles, key.values = 1; key.words[0] < 20; key.words[0]++)
        values += cld_variant_add(info, &key) != NULL;
    CHECK_IS(values, CLD_MOST_SPECIALISATIONS);
    CHECK(cld_variant_find(info, &tiles) == first);
    const struct cld_variant_key narrow = {.tier = CLD_TIER_FIRST, .shape = CLD_SHAPE_ITEMS};
    CHECK(cld_variant_add(info, &narrow)); /* what launches need there is always room for */
    drop(kernel);
}

/* What a launch can do without is asked for once, when the kernel has run for a while. */
static void wanted(void) {
    struct cld_kernel *kernel = new_kernel();
    struct cld_kernel_info *info = kernel->info;
    CHECK(!cld_variant_want(kernel, info, &tiles, false));
    atomic_store(&info->busy_time, CLD_WORTH_IT);
    struct cld_variant *variant = cld_variant_want(kernel, info, &tiles, false);
    CHECK(variant && cld_variant_want(kernel, info, &tiles, false) == variant);
    await(variant, CLD_VARIANT_THERE);
    CHECK(variant->entry == code);
    CHECK_IS(atomic_load(&requests), 1);
    CHECK(asked[0] == CLD_TIER_HOT && asked[1] == CLD_SHAPE_TILES && asked[2] == 1 && asked[3] == 0);
    struct cld_variant_key other = tiles;
    other.size[1] = 8;
    variant = cld_variant_want(kernel, info, &other, true);
    CHECK(cld_variant_is_there(variant));
    drop(kernel);
}

/* What cannot be made is asked for no more, but by launches that need it. */
static void fails(void) {
    struct cld_kernel *kernel = new_kernel();
    struct cld_kernel_info *info = kernel->info;
    const struct cld_variant *found;
    atomic_store(&info->busy_time, CLD_WORTH_IT);
    atomic_store(&status_given, CL_OUT_OF_RESOURCES);
    struct cld_variant *variant = cld_variant_want(kernel, info, &tiles, false);
    await(variant, CLD_VARIANT_FAILED);
    CHECK(cld_variant_want(kernel, info, &tiles, false) == variant);
    CHECK_IS(atomic_load(&requests), 1);
    CHECK_IS(cld_variant_need(kernel, info, &tiles, &found), CL_OUT_OF_RESOURCES);
    CHECK(!found);
    CHECK_IS(atomic_load(&requests), 2);
    atomic_store(&status_given, CL_OUT_OF_HOST_MEMORY);
    CHECK_IS(cld_variant_need(kernel, info, &tiles, &found), CL_OUT_OF_HOST_MEMORY);
    atomic_store(&status_given, CL_SUCCESS);
    OK(cld_variant_need(kernel, info, &tiles, &found));
    CHECK(found == variant && cld_variant_is_there(variant));
    OK(cld_variant_need(kernel, info, &tiles, &found));
    CHECK_IS(atomic_load(&requests), 4);
    drop(kernel);
}

/* A launch that goes over to hot code has room for what the kernel's info says, and no more. */
static void too_much_local_memory(void) {
    struct cld_kernel *kernel = new_kernel();
    const struct cld_variant_key first = {
        .tier = CLD_TIER_FIRST, .shape = CLD_SHAPE_ANY, .assumes_apart = true};
    const struct cld_variant *found;
    atomic_store(&local_given, 16);
    CHECK_IS(cld_variant_need(kernel, kernel->info, &tiles, &found), CL_OUT_OF_RESOURCES);
    OK(cld_variant_need(kernel, kernel->info, &first, &found));
    CHECK_IS(found->local_static, 16);
    atomic_store(&local_given, 0);
    drop(kernel);
}

static void *need_it(void *argument) {
    struct cld_kernel *kernel = argument;
    const struct cld_variant *found;
    OK(cld_variant_need(kernel, kernel->info, &tiles, &found));
    CHECK(cld_variant_is_there(found) && found->entry == code);
    return (void *)(uintptr_t)found;
}

/* Threads that need the same code at once, perhaps while it is made in the background: nobody waits for
 * another, and all get the same. */
static void threads(bool is_asked_for) {
    enum { THREADS = 2 };
    struct cld_kernel *kernel = new_kernel();
    pthread_t made[THREADS];
    void *found[THREADS];
    atomic_store(&least_at_once, THREADS + is_asked_for);
    atomic_store(&kernel->info->busy_time, is_asked_for ? CLD_WORTH_IT : 0);
    cld_variant_want(kernel, kernel->info, &tiles, false);
    for (int i = 0; i < THREADS; i++)
        CHECK(!pthread_create(&made[i], NULL, need_it, kernel));
    for (int i = 0; i < THREADS; i++)
        pthread_join(made[i], &found[i]);
    CHECK(found[0] == found[1] && found[0] == cld_variant_find(kernel->info, &tiles));
    CHECK_IS(atomic_load(&requests), THREADS + is_asked_for);
    atomic_store(&least_at_once, 0);
    drop(kernel);
}

int main(void) {
    context = test_context();
    keys();
    table();
    wanted();
    fails();
    too_much_local_memory();
    for (int i = 0; i < 50; i++)
        threads(i & 1);
    OK(clReleaseContext(context));
    return 0;
}
