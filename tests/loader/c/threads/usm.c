/* Threads that allocate, use, ask for and free unified shared memory of one context, SVM and buffers with
 * addresses beside it. argv[1]: how often each thread does. */
#include "client.h"

#include <pthread.h>
#include <stdatomic.h>

#ifndef CL_MEM_DEVICE_ADDRESS_EXT /* headers before 2025 */
#define CL_MEM_DEVICE_PRIVATE_ADDRESS_EXT 0x5000
#define CL_MEM_DEVICE_ADDRESS_EXT 0x5001
#endif

enum { THREADS = 4, ITEMS = 1000 };

static cl_device_id device;
static cl_context context;
static cl_program program;
static int rounds;
/* The latest allocation of each thread: others ask for it while it may be freed. */
static _Atomic(void *) latest[THREADS];

#define FUNCTION(name) static name##_fn name##_
FUNCTION(clHostMemAllocINTEL);
FUNCTION(clDeviceMemAllocINTEL);
FUNCTION(clSharedMemAllocINTEL);
FUNCTION(clMemFreeINTEL);
FUNCTION(clMemBlockingFreeINTEL);
FUNCTION(clGetMemAllocInfoINTEL);
FUNCTION(clSetKernelArgMemPointerINTEL);
FUNCTION(clEnqueueMemFillINTEL);
FUNCTION(clEnqueueMemcpyINTEL);
FUNCTION(clEnqueueMigrateMemINTEL);
FUNCTION(clEnqueueMemAdviseINTEL);
static cl_int(CL_API_CALL *clSetKernelArgDevicePointerEXT_)(cl_kernel, cl_uint, cl_ulong);

static const char source[] =
    "kernel void add(global int *data, int value) { data[get_global_id(0)] += value; }\n"
    "kernel void through(global int *global *place) { (*place)[get_global_id(0)] += 100; }\n";

static cl_kernel kernel_of(const char *name) {
    cl_int status;
    cl_kernel kernel = clCreateKernel(program, name, &status);
    OK(status);
    return kernel;
}

static void launch(cl_command_queue queue, cl_kernel kernel) {
    size_t items = ITEMS;
    OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
}

static int *allocate(int kind) {
    size_t size = ITEMS * sizeof(int);
    cl_int status;
    int *data = kind == 0   ? clHostMemAllocINTEL_(context, NULL, size, 0, &status)
                : kind == 1 ? clDeviceMemAllocINTEL_(context, device, NULL, size, 64, &status)
                            : clSharedMemAllocINTEL_(context, device, NULL, size, 0, &status);
    OK(status);
    return data;
}

static void ask(const void *data, cl_unified_shared_memory_type_intel expected) {
    cl_unified_shared_memory_type_intel type;
    void *base;
    const char *inside = (const char *)data + 17;
    OK(clGetMemAllocInfoINTEL_(context, inside, CL_MEM_ALLOC_TYPE_INTEL, sizeof type, &type, NULL));
    EXPECT(type, expected);
    OK(clGetMemAllocInfoINTEL_(context, inside, CL_MEM_ALLOC_BASE_PTR_INTEL, sizeof base, &base, NULL));
    CHECK(base == data);
}

/* One allocation's life: filled, added to by its pointer and through another allocation, copied, freed. */
static void use(cl_command_queue queue, int thread, int round) {
    static const cl_unified_shared_memory_type_intel types[] = {
        CL_MEM_TYPE_HOST_INTEL, CL_MEM_TYPE_DEVICE_INTEL, CL_MEM_TYPE_SHARED_INTEL};
    int kind = (thread + round) % 3, start = thread * 1000 + round, value = round % 7;
    size_t size = ITEMS * sizeof(int);
    cl_int status;
    int *data = allocate(kind), *copy = allocate(0);
    int **place = clSharedMemAllocINTEL_(context, NULL, NULL, sizeof *place, 0, &status);
    OK(status);
    atomic_store(&latest[thread], data);
    ask(data, types[kind]);
    cl_unified_shared_memory_type_intel any;
    void *others = atomic_load(&latest[(thread + 1) % THREADS]);
    OK(clGetMemAllocInfoINTEL_(context, others, CL_MEM_ALLOC_TYPE_INTEL, sizeof any, &any, NULL));

    cl_kernel add = kernel_of("add"), through = kernel_of("through");
    OK(clEnqueueMemFillINTEL_(queue, data, &start, sizeof start, size, 0, NULL, NULL));
    OK(clEnqueueMigrateMemINTEL_(queue, data, size, 0, 0, NULL, NULL));
    OK(clSetKernelArgMemPointerINTEL_(add, 0, data));
    OK(clSetKernelArg(add, 1, sizeof value, &value));
    launch(queue, add);
    *place = data;
    cl_bool is_indirect = CL_TRUE;
    OK(clSetKernelExecInfo(through, CL_KERNEL_EXEC_INFO_INDIRECT_DEVICE_ACCESS_INTEL, sizeof is_indirect,
                           &is_indirect));
    OK(clSetKernelExecInfo(through, CL_KERNEL_EXEC_INFO_USM_PTRS_INTEL, sizeof data, &data));
    OK(clSetKernelArgMemPointerINTEL_(through, 0, place));
    launch(queue, through);
    OK(clEnqueueMemAdviseINTEL_(queue, data, size, 0, 0, NULL, NULL));
    OK(clEnqueueMemcpyINTEL_(queue, CL_TRUE, copy, data, size, 0, NULL, NULL));
    for (int i = 0; i < ITEMS; i++)
        EXPECT(copy[i], start + value + 100);

    launch(queue, add); /* still runs, perhaps, when its memory is to be freed */
    OK(clReleaseKernel(add));
    OK(clReleaseKernel(through));
    OK(clMemBlockingFreeINTEL_(context, data));
    OK(clMemFreeINTEL_(context, copy));
    OK(clMemFreeINTEL_(context, place));
}

/* The same memory's other interfaces. */
static void use_others(cl_command_queue queue, int thread, int round) {
    cl_int status;
    size_t size = ITEMS * sizeof(int);
    cl_mem_properties properties[] = {CL_MEM_DEVICE_PRIVATE_ADDRESS_EXT, CL_TRUE, 0};
    cl_mem buffer = clCreateBufferWithProperties(context, properties, CL_MEM_READ_WRITE, size, NULL, &status);
    OK(status);
    cl_ulong address;
    OK(clGetMemObjectInfo(buffer, CL_MEM_DEVICE_ADDRESS_EXT, sizeof address, &address, NULL));
    int *shared = clSVMAlloc(context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER, size, 0);
    CHECK(shared);
    cl_unified_shared_memory_type_intel type;
    OK(clGetMemAllocInfoINTEL_(context, shared, CL_MEM_ALLOC_TYPE_INTEL, sizeof type, &type, NULL));
    EXPECT(type, CL_MEM_TYPE_UNKNOWN_INTEL);

    int start = thread + round, value = 3;
    OK(clEnqueueFillBuffer(queue, buffer, &start, sizeof start, 0, size, 0, NULL, NULL));
    cl_kernel add = kernel_of("add");
    OK(clSetKernelArgDevicePointerEXT_(add, 0, address));
    OK(clSetKernelArg(add, 1, sizeof value, &value));
    launch(queue, add);
    OK(clEnqueueSVMMemcpy(queue, CL_TRUE, shared, (void *)(uintptr_t)address, size, 0, NULL, NULL));
    EXPECT(shared[ITEMS - 1], start + value);
    OK(clReleaseKernel(add));
    clSVMFree(context, shared);
    OK(clReleaseMemObject(buffer));
}

static void *run(void *argument) {
    int thread = (int)(intptr_t)argument;
    cl_command_queue queue = make_queue(context, device, 0);
    for (int round = 0; round < rounds; round++) {
        use(queue, thread, round);
        use_others(queue, thread, round);
    }
    OK(clReleaseCommandQueue(queue));
    return NULL;
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    rounds = atoi(argv[1]);
    device = the_device();
    GET_EXTENSION(clHostMemAllocINTEL);
    GET_EXTENSION(clDeviceMemAllocINTEL);
    GET_EXTENSION(clSharedMemAllocINTEL);
    GET_EXTENSION(clMemFreeINTEL);
    GET_EXTENSION(clMemBlockingFreeINTEL);
    GET_EXTENSION(clGetMemAllocInfoINTEL);
    GET_EXTENSION(clSetKernelArgMemPointerINTEL);
    GET_EXTENSION(clEnqueueMemFillINTEL);
    GET_EXTENSION(clEnqueueMemcpyINTEL);
    GET_EXTENSION(clEnqueueMigrateMemINTEL);
    GET_EXTENSION(clEnqueueMemAdviseINTEL);
    GET_EXTENSION(clSetKernelArgDevicePointerEXT);
    context = make_context(device);
    const char *text = source;
    cl_int status;
    program = clCreateProgramWithSource(context, 1, &text, NULL, &status);
    OK(status);
    OK(clBuildProgram(program, 1, &device, "-cl-std=CL3.0", NULL, NULL));
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK(!pthread_create(&threads[i], NULL, run, (void *)(intptr_t)i));
    for (int i = 0; i < THREADS; i++)
        CHECK(!pthread_join(threads[i], NULL));
    allocate(2); /* what nobody frees goes with the context */
    OK(clReleaseProgram(program));
    OK(clReleaseContext(context));
    return 0;
}
