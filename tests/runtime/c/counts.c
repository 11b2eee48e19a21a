/* Buffers that kernels only add to: threads have copies where that is worth it and nothing else leads to the
 * same memory, and the sums are right either way. The kernel is a C function, as compiled ones are. */
#include <stdatomic.h>

#include "harness.h"

enum { ITEMS = 1 << 16, ELEMENTS = 256 };

static cl_context context;
static _Atomic bool scatters;
static _Atomic uint64_t with_copy, with_table, without;

/* As compiled code does it, with as many evictions as the test wants. */
static void add_by_table(struct cld_combining_table *table, uint8_t *address, int is_long, uint64_t value) {
    int at = (int)((uintptr_t)address / (is_long ? 8 : 4) % CLD_COMBINING_ENTRIES);
    uint32_t word;
    if (table->entries[at].address && table->entries[at].address != address) {
        table->evictions++;
        if (is_long)
            atomic_fetch_add((_Atomic uint64_t *)table->entries[at].address, table->entries[at].sum);
        memcpy(&word, &table->entries[at].sum, sizeof word);
        if (!is_long)
            atomic_fetch_add((_Atomic uint32_t *)table->entries[at].address, word);
        table->entries[at].sum = 0;
    }
    table->entries[at].address = address;
    memcpy(&word, &table->entries[at].sum, sizeof word);
    word += (uint32_t)value;
    if (is_long)
        table->entries[at].sum += value;
    else
        memcpy(&table->entries[at].sum, &word, sizeof word);
}

/* Each group of one work-item adds its number to an element of words of 4 or 8 bytes. */
static void add(const struct cld_launch *launch, const uint8_t *args, struct cld_thread *thread,
                uint64_t first, uint64_t last) {
    void *target;
    int is_long;
    memcpy(&target, args, sizeof target);
    memcpy(&is_long, args + 8, sizeof is_long);
    bool copy = thread->counted == 1, table = thread->combined == 1;
    CHECK(!copy || !table);
    uint64_t items = launch->local_size[0];
    for (uint64_t i = first * items; i < last * items; i++) {
        uint64_t at = i * 7 % ELEMENTS;
        if (table)
            add_by_table((struct cld_combining_table *)(void *)thread->counts,
                         (uint8_t *)target + at * (is_long ? 8 : 4), is_long, i);
        else if (is_long && copy)
            ((uint64_t *)(void *)thread->counts)[at] += i;
        else if (is_long)
            atomic_fetch_add((_Atomic uint64_t *)target + at, i);
        else if (copy)
            ((uint32_t *)(void *)thread->counts)[at] += (uint32_t)i;
        else
            atomic_fetch_add((_Atomic uint32_t *)target + at, (uint32_t)i);
    }
    if (table && scatters) /* as if no address came twice */
        ((struct cld_combining_table *)(void *)thread->counts)->evictions += (last - first) * items;
    atomic_fetch_add(copy ? &with_copy : table ? &with_table : &without, (last - first) * items);
}

static cl_kernel counting_kernel(int is_long) {
    cl_kernel kernel = test_kernel(context, add, "gig");
    info_of(kernel)->counted = 1;
    info_of(kernel)->counted_size = is_long ? 8 : 4;
    cl_mem none = NULL;
    OK(clSetKernelArg(kernel, 1, sizeof is_long, &is_long));
    OK(clSetKernelArg(kernel, 2, sizeof none, &none));
    return kernel;
}

static void set(cl_kernel kernel, cl_uint index, cl_mem buffer) {
    OK(clSetKernelArg(kernel, index, sizeof buffer, &buffer));
}

static void enqueue(cl_command_queue queue, cl_kernel kernel, size_t items) {
    size_t local = items % 16 ? 1 : 16;
    OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, &local, 0, NULL, NULL));
}

static uint64_t expected(size_t items, uint64_t at) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < items; i++)
        sum += i * 7 % ELEMENTS == at ? i : 0;
    return sum;
}

static void check(cl_command_queue queue, cl_mem buffer, int is_long, size_t items, uint64_t launches) {
    uint64_t data[ELEMENTS] = {0};
    OK(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, (size_t)ELEMENTS * (is_long ? 8 : 4), data, 0, NULL,
                           NULL));
    for (int i = 0; i < ELEMENTS; i += 17) {
        uint32_t word;
        memcpy(&word, (uint8_t *)data + 4 * i, sizeof word);
        uint64_t sum = launches * expected(items, (uint64_t)i);
        CHECK_IS(is_long ? data[i] : word, is_long ? sum : (uint32_t)sum);
    }
}

static void clear(cl_command_queue queue, cl_mem buffer, size_t size) {
    uint16_t zero = 0;
    OK(clEnqueueFillBuffer(queue, buffer, &zero, sizeof zero, 0, size, 0, NULL, NULL));
    OK(clFinish(queue));
    atomic_store(&with_copy, 0);
    atomic_store(&with_table, 0);
    atomic_store(&without, 0);
}

enum way { ATOMICS, COPIES, TABLES };

/* Some launches, and what threads had. */
static void run(cl_command_queue queue, cl_kernel kernel, cl_mem buffer, int is_long, size_t items,
                enum way way) {
    size_t size;
    OK(clGetMemObjectInfo(buffer, CL_MEM_SIZE, sizeof size, &size, NULL));
    clear(queue, buffer, size);
    set(kernel, 0, buffer);
    for (int i = 0; i < 5; i++)
        enqueue(queue, kernel, items);
    OK(clFinish(queue));
    CHECK_IS(atomic_load(&with_copy), way == COPIES ? 5 * items : 0);
    CHECK_IS(atomic_load(&with_table), way == TABLES ? 5 * items : 0);
    CHECK_IS(atomic_load(&without), way == ATOMICS ? 5 * items : 0);
    check(queue, buffer, is_long, items, 5);
}

static void sums(int is_long) {
    cl_command_queue queue = test_queue(context, 0);
    cl_kernel kernel = counting_kernel(is_long);
    size_t size = (size_t)ELEMENTS * (is_long ? 8 : 4);
    cl_mem buffer = test_buffer(context, size), large = test_buffer(context, (1 << 20) + 8),
           odd = test_buffer(context, size + 2), other = test_buffer(context, 64);
    run(queue, kernel, buffer, is_long, ITEMS, COPIES);
    run(queue, kernel, buffer, is_long, ITEMS - 3, COPIES);
    run(queue, kernel, buffer, is_long, ELEMENTS, ATOMICS); /* not worth it */
    run(queue, kernel, large, is_long, ITEMS, TABLES);
    run(queue, kernel, large, is_long, ELEMENTS / 2, ATOMICS); /* not worth it */
    run(queue, kernel, odd, is_long, ITEMS, ATOMICS);
    set(kernel, 2, other);
    run(queue, kernel, buffer, is_long, ITEMS, COPIES);
    set(kernel, 2, buffer); /* which the kernel might read */
    run(queue, kernel, buffer, is_long, ITEMS, ATOMICS);
    OK(clSetKernelArgSVMPointer(kernel, 2, &context)); /* which may point anywhere */
    run(queue, kernel, buffer, is_long, ITEMS, ATOMICS);
    cl_int status;
    cl_mem whole = test_buffer(context, 4096 + size);
    cl_buffer_region low = {0, 128}, high = {4096, size};
    cl_mem first = clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &low, &status);
    OK(status);
    cl_mem second = clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &high, &status);
    OK(status);
    set(kernel, 2, first);
    run(queue, kernel, second, is_long, ITEMS, ATOMICS);
    set(kernel, 2, other);
    run(queue, kernel, second, is_long, ITEMS, COPIES);
    cl_mem all[] = {buffer, large, odd, other, first, second, whole};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        OK(clReleaseMemObject(all[i]));
    OK(clReleaseKernel(kernel));
    OK(clReleaseCommandQueue(queue));
}

/* Where no address comes again, some launches do without tables; then they are tried again. */
static void no_reuse(void) {
    cl_command_queue queue = test_queue(context, 0);
    cl_kernel kernel = counting_kernel(0);
    cl_mem large = test_buffer(context, (1 << 20) + 8);
    clear(queue, large, (1 << 20) + 8);
    set(kernel, 0, large);
    atomic_store(&scatters, true);
    const int launches = 100;
    for (int i = 0; i < launches; i++) {
        enqueue(queue, kernel, ITEMS);
        OK(clFinish(queue));
    }
    atomic_store(&scatters, false);
    CHECK_IS(atomic_load(&with_table), 2 * ITEMS);
    CHECK_IS(atomic_load(&without), (uint64_t)(launches - 2) * ITEMS);
    check(queue, large, 0, ITEMS, (uint64_t)launches);
    OK(clReleaseMemObject(large));
    OK(clReleaseKernel(kernel));
    OK(clReleaseCommandQueue(queue));
}

/* Several commands at once that add to the same elements, one of them without copies. */
static void together(void) {
    cl_command_queue queue = test_queue(context, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    cl_kernel kernel = counting_kernel(0), plain = counting_kernel(0);
    info_of(plain)->counted = 0;
    cl_mem buffer = test_buffer(context, (size_t)ELEMENTS * 4);
    clear(queue, buffer, (size_t)ELEMENTS * 4);
    set(kernel, 0, buffer);
    set(plain, 0, buffer);
    for (int i = 0; i < 40; i++)
        enqueue(queue, i % 4 ? kernel : plain, ITEMS);
    OK(clFinish(queue));
    CHECK_IS(atomic_load(&with_copy), 30 * ITEMS);
    check(queue, buffer, 0, ITEMS, 40);
    OK(clReleaseMemObject(buffer));
    OK(clReleaseKernel(kernel));
    OK(clReleaseKernel(plain));
    OK(clReleaseCommandQueue(queue));
}

int main(void) {
    context = test_context();
    sums(0);
    sums(1);
    no_reuse();
    together();
    OK(clReleaseContext(context));
}
