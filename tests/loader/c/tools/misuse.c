/* What the check mode tells of API use: misuse CASE wrong|right. Each case does a thing that the
 * specification leaves undefined, and "right" the same as it should be done, in all the ways that order two
 * commands. */
#include "client.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>

enum { SIZE = 4096, ITEMS = SIZE / sizeof(cl_int) };

static cl_device_id device;
static cl_context context;
static cl_command_queue queue, other;
static cl_kernel writer, reader;
static cl_mem buffer, result;
static size_t items = ITEMS;
static bool wrong, is_freed;

static const char source[] = "kernel void writes(global int *p) { p[get_global_id(0)] = 1; }\n"
                             "kernel void reads(global int *p, global int *to) {\n"
                             "  to[get_global_id(0)] = p[get_global_id(0)]; }\n";

static cl_mem filled_buffer(void) {
    cl_int status, zero = 0;
    cl_mem made = clCreateBuffer(context, CL_MEM_READ_WRITE, SIZE, NULL, &status);
    OK(status);
    OK(clEnqueueFillBuffer(queue, made, &zero, sizeof zero, 0, SIZE, 0, NULL, NULL));
    OK(clFinish(queue));
    return made;
}

static void begin(void) {
    cl_int status;
    const char *text = source;
    device = the_device();
    context = make_context(device);
    queue = make_queue(context, device, 0);
    other = make_queue(context, device, 0);
    cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &status);
    OK(status);
    OK(clBuildProgram(program, 1, &device, "", NULL, NULL));
    writer = clCreateKernel(program, "writes", &status);
    OK(status);
    reader = clCreateKernel(program, "reads", &status);
    OK(status);
    OK(clReleaseProgram(program));
    buffer = filled_buffer();
    result = filled_buffer();
    OK(clSetKernelArg(writer, 0, sizeof buffer, &buffer));
    OK(clSetKernelArg(reader, 0, sizeof buffer, &buffer));
    OK(clSetKernelArg(reader, 1, sizeof result, &result));
}

static void end(void) {
    OK(clFinish(queue));
    OK(clFinish(other));
    OK(clReleaseMemObject(buffer));
    OK(clReleaseMemObject(result));
    OK(clReleaseKernel(writer));
    OK(clReleaseKernel(reader));
    OK(clReleaseCommandQueue(queue));
    OK(clReleaseCommandQueue(other));
    OK(clReleaseContext(context));
}

static void launch(cl_command_queue where, cl_kernel kernel, cl_uint count, const cl_event *list,
                   cl_event *event) {
    OK(clEnqueueNDRangeKernel(where, kernel, 1, NULL, &items, NULL, count, list, event));
}

static void left_over(void) {
    cl_mem made = filled_buffer();
    cl_int status;
    void *memory = clSVMAlloc(context, CL_MEM_READ_WRITE, 100, 0);
    cl_event event = clCreateUserEvent(context, &status);
    OK(status);
    OK(clSetUserEventStatus(event, CL_COMPLETE));
    if (wrong)
        return;
    OK(clReleaseMemObject(made));
    clSVMFree(context, memory);
    OK(clReleaseEvent(event));
}

static void released_too_often(void) {
    cl_mem made = filled_buffer();
    OK(clRetainMemObject(made));
    OK(clReleaseMemObject(made));
    OK(clReleaseMemObject(made));
    if (wrong)
        EXPECT(clReleaseMemObject(made), CL_INVALID_MEM_OBJECT);
}

static void released_event(void) {
    cl_event event, marker;
    OK(clEnqueueMarkerWithWaitList(queue, 0, NULL, &event));
    OK(clFinish(queue));
    if (wrong)
        OK(clReleaseEvent(event));
    EXPECT(clEnqueueMarkerWithWaitList(queue, 1, &event, &marker),
           wrong ? CL_INVALID_EVENT_WAIT_LIST : CL_SUCCESS);
    if (wrong)
        return;
    OK(clReleaseEvent(event));
    OK(clReleaseEvent(marker));
}

static void released_argument(void) {
    cl_mem made = filled_buffer();
    OK(clSetKernelArg(writer, 0, sizeof made, &made));
    if (wrong)
        OK(clReleaseMemObject(made));
    EXPECT(clEnqueueNDRangeKernel(queue, writer, 1, NULL, &items, NULL, 0, NULL, NULL),
           wrong ? CL_INVALID_KERNEL_ARGS : CL_SUCCESS);
    if (!wrong)
        OK(clReleaseMemObject(made));
}

/* A sub-buffer keeps its buffer. */
static void released_parent(void) {
    cl_int status;
    cl_mem made = filled_buffer(), parent;
    cl_buffer_region half = {0, SIZE / 2};
    cl_mem part = clCreateSubBuffer(made, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &half, &status);
    OK(status);
    OK(clReleaseMemObject(made));
    OK(clGetMemObjectInfo(part, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof parent, &parent, NULL));
    OK(clEnqueueCopyBuffer(queue, parent, buffer, 0, 0, SIZE, 0, NULL, NULL));
    OK(clFinish(queue));
    OK(clReleaseMemObject(part));
    if (wrong)
        EXPECT(clEnqueueCopyBuffer(queue, parent, buffer, 0, 0, SIZE, 0, NULL, NULL), CL_INVALID_MEM_OBJECT);
}

/* Images and samplers alike; a clone has the arguments of its kernel. */
static void released_sampler(void) {
    static const char text[] =
        "kernel void samples(read_only image2d_t from, sampler_t s, global float4 *to) {\n"
        "  to[0] = read_imagef(from, s, (float2)(0.5f)); }\n";
    const char *lines = text;
    cl_int status;
    size_t one = 1;
    cl_image_format format = {CL_RGBA, CL_UNORM_INT8};
    cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 4, .image_height = 4};
    cl_mem image = clCreateImage(context, CL_MEM_READ_ONLY, &format, &desc, NULL, &status);
    OK(status);
    cl_sampler sampler = clCreateSampler(context, CL_TRUE, CL_ADDRESS_CLAMP, CL_FILTER_NEAREST, &status);
    OK(status);
    cl_program program = clCreateProgramWithSource(context, 1, &lines, NULL, &status);
    OK(status);
    OK(clBuildProgram(program, 1, &device, "", NULL, NULL));
    cl_kernel kernel = clCreateKernel(program, "samples", &status);
    OK(status);
    OK(clSetKernelArg(kernel, 0, sizeof image, &image));
    OK(clSetKernelArg(kernel, 1, sizeof sampler, &sampler));
    OK(clSetKernelArg(kernel, 2, sizeof result, &result));
    cl_kernel clone = clCloneKernel(kernel, &status);
    OK(status);
    if (wrong)
        OK(clReleaseSampler(sampler));
    OK(clEnqueueNDRangeKernel(queue, clone, 1, NULL, &one, NULL, 0, NULL, NULL));
    OK(clFinish(queue));
    if (!wrong)
        OK(clReleaseSampler(sampler));
    OK(clReleaseKernel(clone));
    OK(clReleaseKernel(kernel));
    OK(clReleaseProgram(program));
    OK(clReleaseMemObject(image));
}

static void CL_CALLBACK set_flag(cl_event event, cl_int status, void *flag) {
    (void)event, (void)status;
    __atomic_store_n((int *)flag, 1, __ATOMIC_RELEASE);
}

static void two_queues(void) {
    cl_event event = NULL;
    if (wrong) {
        launch(queue, writer, 0, NULL, NULL);
        launch(other, reader, 0, NULL, NULL);
        return;
    }
    /* An event; transitively, through a third queue; the host's wait. */
    launch(queue, writer, 0, NULL, &event);
    launch(other, reader, 1, &event, NULL);
    OK(clReleaseEvent(event));
    OK(clEnqueueMarkerWithWaitList(other, 0, NULL, &event));
    cl_command_queue third = make_queue(context, device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    OK(clEnqueueBarrierWithWaitList(third, 1, &event, NULL));
    OK(clReleaseEvent(event));
    launch(third, writer, 0, NULL, NULL);
    OK(clEnqueueBarrierWithWaitList(third, 0, NULL, NULL));
    launch(third, reader, 0, NULL, &event);
    OK(clFlush(third));
    OK(clWaitForEvents(1, &event));
    OK(clReleaseEvent(event));
    launch(queue, writer, 0, NULL, NULL);
    OK(clFinish(queue));
    launch(other, reader, 0, NULL, &event);
    /* A query. */
    OK(clFlush(other));
    cl_int state;
    do
        OK(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL));
    while (state != CL_COMPLETE);
    OK(clReleaseEvent(event));
    launch(queue, writer, 0, NULL, &event);
    /* A callback. */
    int flag = 0;
    OK(clSetEventCallback(event, CL_COMPLETE, set_flag, &flag));
    OK(clFlush(queue));
    while (!__atomic_load_n(&flag, __ATOMIC_ACQUIRE))
        ;
    OK(clReleaseEvent(event));
    launch(other, reader, 0, NULL, NULL);
    /* A read that blocks. */
    cl_int word;
    OK(clEnqueueReadBuffer(other, result, CL_TRUE, 0, sizeof word, &word, 0, NULL, NULL));
    launch(queue, writer, 0, NULL, NULL);
    OK(clFinish(queue));
    /* What the host lets go when it has seen the other end. */
    cl_int status;
    cl_event gate = clCreateUserEvent(context, &status);
    OK(status);
    launch(queue, writer, 1, &gate, NULL);
    launch(other, reader, 0, NULL, NULL);
    OK(clFinish(other));
    OK(clSetUserEventStatus(gate, CL_COMPLETE));
    OK(clReleaseEvent(gate));
    OK(clFinish(queue));
    OK(clReleaseCommandQueue(third));
}

/* Each queue its half. */
static void two_transfers(void) {
    static char bytes[2][SIZE];
    size_t half = SIZE / 2;
    OK(clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, half, bytes[0], 0, NULL, NULL));
    OK(clEnqueueReadBuffer(other, buffer, CL_FALSE, half - wrong, half, bytes[1], 0, NULL, NULL));
    OK(clFinish(queue));
    OK(clFinish(other));
}

static void one_place(void) {
    static char bytes[2 * SIZE];
    OK(clEnqueueReadBuffer(queue, buffer, CL_FALSE, 0, SIZE, bytes, 0, NULL, NULL));
    OK(clEnqueueReadBuffer(other, result, CL_FALSE, 0, SIZE, bytes + SIZE - wrong, 0, NULL, NULL));
    OK(clFinish(queue));
    OK(clFinish(other));
}

/* Commands without an order in one queue. */
static void out_of_order(void) {
    cl_command_queue loose = make_queue(context, device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    launch(loose, writer, 0, NULL, NULL);
    if (!wrong)
        OK(clEnqueueBarrierWithWaitList(loose, 0, NULL, NULL));
    launch(loose, reader, 0, NULL, NULL);
    OK(clFinish(loose));
    OK(clReleaseCommandQueue(loose));
}

static void mapped(cl_map_flags flags, cl_kernel kernel) {
    cl_int status;
    void *pointer = clEnqueueMapBuffer(queue, buffer, CL_TRUE, flags, 0, 64, 0, NULL, NULL, &status);
    OK(status);
    if (wrong)
        launch(queue, kernel, 0, NULL, NULL);
    OK(clEnqueueUnmapMemObject(queue, buffer, pointer, 0, NULL, NULL));
    launch(queue, kernel, 0, NULL, NULL);
    OK(clFinish(queue));
}

static void mapped_for_writing(void) {
    mapped(CL_MAP_WRITE, reader);
    /* Mapped once more, for reading: which mapping the first unmapping ends nobody knows. */
    cl_int status;
    void *pointer = clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_WRITE, 0, 64, 0, NULL, NULL, &status);
    OK(status);
    pointer = clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ, 0, 64, 0, NULL, NULL, &status);
    OK(status);
    OK(clEnqueueUnmapMemObject(queue, buffer, pointer, 0, NULL, NULL));
    launch(queue, reader, 0, NULL, NULL);
    OK(clEnqueueUnmapMemObject(queue, buffer, pointer, 0, NULL, NULL));
    OK(clFinish(queue));
}

static void mapped_for_reading(void) {
    mapped(CL_MAP_READ, writer);
}

/* The other part is nobody's; to read what is mapped for reading is right. */
static void written_while_mapped(void) {
    static char bytes[64];
    cl_int status;
    void *pointer = clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ, 0, 64, 0, NULL, NULL, &status);
    OK(status);
    OK(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, wrong ? 0 : 64, 64, bytes, 0, NULL, NULL));
    OK(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, 64, bytes, 0, NULL, NULL));
    launch(queue, reader, 0, NULL, NULL);
    OK(clEnqueueUnmapMemObject(queue, buffer, pointer, 0, NULL, NULL));
    OK(clFinish(queue));
}

static void changed_too_early(void) {
    char bytes[SIZE] = {0};
    OK(clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, SIZE, bytes, 0, NULL, NULL));
    if (!wrong)
        OK(clFinish(queue));
    memset(bytes, 1, sizeof bytes);
    OK(clFinish(queue));
    /* A command may change it. */
    OK(clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, SIZE, bytes, 0, NULL, NULL));
    OK(clEnqueueReadBuffer(queue, result, CL_FALSE, 0, SIZE, bytes, 0, NULL, NULL));
    OK(clFinish(queue));
}

/* Of memory that the host shares with a buffer. */
static void changed_without_mapping(void) {
    static cl_int shared[ITEMS];
    cl_int status, five = 5;
    cl_mem made = clCreateBuffer(context, CL_MEM_USE_HOST_PTR, SIZE, shared, &status);
    OK(status);
    OK(clSetKernelArg(reader, 0, sizeof made, &made));
    launch(queue, reader, 0, NULL, NULL);
    OK(clFinish(queue));
    if (wrong)
        shared[7] = 1;
    launch(queue, reader, 0, NULL, NULL);
    OK(clFinish(queue));
    cl_int *pointer = clEnqueueMapBuffer(queue, made, CL_TRUE, CL_MAP_WRITE, 0, SIZE, 0, NULL, NULL, &status);
    OK(status);
    pointer[8] = 1;
    OK(clEnqueueUnmapMemObject(queue, made, pointer, 0, NULL, NULL));
    launch(queue, reader, 0, NULL, NULL);
    OK(clEnqueueFillBuffer(queue, made, &five, sizeof five, 0, SIZE, 0, NULL, NULL));
    OK(clFinish(queue));
    launch(queue, reader, 0, NULL, NULL);
    OK(clFinish(queue));
    /* The other way to tell of changes. */
    shared[9] = 1;
    OK(clEnqueueWriteBuffer(queue, made, CL_TRUE, 9 * sizeof(cl_int), sizeof(cl_int), &shared[9], 0, NULL,
                            NULL));
    launch(queue, reader, 0, NULL, NULL);
    OK(clFinish(queue));
    OK(clReleaseMemObject(made));
    shared[10] = 1;
    OK(clSetKernelArg(reader, 0, sizeof buffer, &buffer));
}

static void CL_CALLBACK change(cl_event event, cl_int status, void *bytes) {
    (void)event, (void)status;
    *(volatile char *)bytes = 5;
}

static void given_back_too_early(void) {
    char *bytes = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(bytes != MAP_FAILED);
    OK(clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, SIZE, bytes, 0, NULL, NULL));
    if (!wrong)
        OK(clFinish(queue));
    OK(munmap(bytes, SIZE));
    OK(clFinish(queue));
    /* Callbacks may change it. */
    static char own[SIZE];
    cl_event event;
    OK(clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, SIZE, own, 0, NULL, &event));
    OK(clSetEventCallback(event, CL_COMPLETE, change, own));
    OK(clFlush(queue));
    while (!*(volatile char *)own)
        ;
    OK(clReleaseEvent(event));
    OK(clFinish(queue));
}

/* Callbacks that the call refuses tell the host nothing. */
static void refused_callback(void) {
    char bytes[SIZE] = {0};
    cl_event event;
    OK(clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, SIZE, bytes, 0, NULL, &event));
    EXPECT(clSetEventCallback(event, CL_QUEUED, change, bytes), CL_INVALID_VALUE);
    EXPECT(clSetEventCallback(event, -1, change, bytes), CL_INVALID_VALUE);
    EXPECT(clSetEventCallback(event, CL_COMPLETE, NULL, bytes), CL_INVALID_VALUE);
    if (!wrong)
        OK(clSetEventCallback(event, CL_COMPLETE, change, bytes));
    OK(clFlush(queue));
    if (wrong)
        bytes[0] = 5;
    while (!*(volatile char *)bytes)
        ;
    OK(clReleaseEvent(event));
    OK(clFinish(queue));
}

static void CL_CALLBACK free_it(cl_event event, cl_int status, void *memory) {
    (void)event, (void)status;
    clSVMFree(context, memory);
    __atomic_store_n(&is_freed, true, __ATOMIC_RELEASE);
}

static void freed_too_early(void) {
    void *memory = clSVMAlloc(context, CL_MEM_READ_WRITE, SIZE, 0);
    CHECK(memory);
    OK(clSetKernelArgSVMPointer(writer, 0, memory));
    launch(queue, writer, 0, NULL, NULL);
    if (!wrong) {
        OK(clEnqueueSVMFree(queue, 1, &memory, NULL, NULL, 0, NULL, NULL));
        OK(clFinish(queue));
        memory = clSVMAlloc(context, CL_MEM_READ_WRITE, SIZE, 0);
        CHECK(memory);
        OK(clSetKernelArgSVMPointer(writer, 0, memory));
        launch(queue, writer, 0, NULL, NULL);
        OK(clFinish(queue));
        void *other_memory = clSVMAlloc(context, CL_MEM_READ_WRITE, SIZE, 0);
        CHECK(other_memory);
        cl_event event;
        OK(clSetKernelArgSVMPointer(writer, 0, other_memory));
        launch(queue, writer, 0, NULL, &event);
        OK(clSetEventCallback(event, CL_COMPLETE, free_it, other_memory));
        OK(clFlush(queue));
        while (!__atomic_load_n(&is_freed, __ATOMIC_ACQUIRE))
            ;
        OK(clReleaseEvent(event));
    }
    clSVMFree(context, memory);
    OK(clFinish(queue));
    OK(clSetKernelArg(writer, 0, sizeof buffer, &buffer));
}

static void used_after_free(void) {
    char *memory = clSVMAlloc(context, CL_MEM_READ_WRITE, SIZE, 0), bytes[64] = {0};
    CHECK(memory);
    if (wrong)
        clSVMFree(context, memory);
    OK(clEnqueueSVMMemcpy(queue, CL_TRUE, memory + 8, bytes, sizeof bytes, 0, NULL, NULL));
    if (!wrong)
        clSVMFree(context, memory);
}

static cl_int *new_svm(cl_svm_mem_flags flags) {
    cl_int *memory = clSVMAlloc(context, CL_MEM_READ_WRITE | flags, SIZE, 0), zero = 0;
    CHECK(memory);
    OK(clEnqueueSVMMemFill(queue, memory, &zero, sizeof zero, SIZE, 0, NULL, NULL));
    OK(clFinish(queue));
    return memory;
}

static void write_svm(cl_int *memory, int at) {
    OK(clSetKernelArgSVMPointer(writer, 0, memory));
    launch(queue, writer, 0, NULL, NULL);
    OK(clFinish(queue));
    memory[at] = 7;
    OK(clSetKernelArgSVMPointer(writer, 0, memory));
    launch(queue, writer, 0, NULL, NULL);
    OK(clFinish(queue));
}

/* Fine-grained memory the host may change at any time, and memory that a kernel may change by a pointer in a
 * buffer is not the host's doing. */
static void svm_changed_without_mapping(void) {
    if (wrong) {
        cl_int *coarse = new_svm(0);
        write_svm(coarse, 5);
        clSVMFree(context, coarse);
    } else {
        cl_int *fine = new_svm(CL_MEM_SVM_FINE_GRAIN_BUFFER), *memory = new_svm(0);
        write_svm(fine, 5);
        for (int i = 0; i < 2; i++) {
            OK(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_WRITE, memory + 8, 64, 0, NULL, NULL));
            memory[9] = i;
            OK(clEnqueueSVMUnmap(queue, memory + 8, 0, NULL, NULL));
            OK(clSetKernelArgSVMPointer(writer, 0, memory));
            launch(queue, writer, 0, NULL, NULL);
            OK(clFinish(queue));
        }
        cl_int five = 5;
        OK(clEnqueueSVMMemcpy(queue, CL_TRUE, memory, &five, sizeof five, 0, NULL, NULL));
        launch(queue, writer, 0, NULL, NULL);
        OK(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof five, memory + 3, 0, NULL, NULL));
        launch(queue, writer, 0, NULL, NULL);
        OK(clFinish(queue));
        /* By way of a buffer. */
        cl_int status;
        cl_mem made = clCreateBuffer(context, CL_MEM_USE_HOST_PTR, SIZE, memory, &status);
        OK(status);
        cl_int *pointer =
            clEnqueueMapBuffer(queue, made, CL_TRUE, CL_MAP_WRITE, 0, SIZE, 0, NULL, NULL, &status);
        OK(status);
        pointer[1] = 9;
        OK(clEnqueueUnmapMemObject(queue, made, pointer, 0, NULL, NULL));
        launch(queue, writer, 0, NULL, NULL);
        OK(clFinish(queue));
        OK(clReleaseMemObject(made));
        clSVMFree(context, fine);
        clSVMFree(context, memory);
    }
    OK(clSetKernelArg(writer, 0, sizeof buffer, &buffer));
}

static void svm_mapped(void) {
    cl_int *memory = new_svm(0);
    OK(clSetKernelArgSVMPointer(writer, 0, memory + 4));
    items = 8;
    OK(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_WRITE, memory, wrong ? SIZE : 16, 0, NULL, NULL));
    launch(queue, writer, 0, NULL, NULL);
    OK(clEnqueueSVMUnmap(queue, memory, 0, NULL, NULL));
    launch(queue, writer, 0, NULL, NULL);
    OK(clFinish(queue));
    items = ITEMS;
    clSVMFree(context, memory);
    OK(clSetKernelArg(writer, 0, sizeof buffer, &buffer));
}

static void svm_not_mapped(void) {
    cl_int *memory = new_svm(0);
    OK(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_WRITE, memory, SIZE, 0, NULL, NULL));
    OK(clEnqueueSVMUnmap(queue, memory + wrong, 0, NULL, NULL));
    OK(clFinish(queue));
    clSVMFree(context, memory);
}

static void user_event(void) {
    cl_int status;
    cl_event gate = clCreateUserEvent(context, &status);
    OK(status);
    cl_command_queue blocked = make_queue(context, device, 0);
    OK(clEnqueueBarrierWithWaitList(blocked, 1, &gate, NULL));
    OK(clRetainEvent(gate));
    OK(clReleaseEvent(gate));
    if (wrong) {
        OK(clReleaseEvent(gate));
        fflush(NULL);
        _Exit(0); /* it waits for ever */
    }
    OK(clSetUserEventStatus(gate, CL_COMPLETE));
    OK(clReleaseEvent(gate));
    OK(clFinish(blocked));
    OK(clReleaseCommandQueue(blocked));
}

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

static void *set_arguments(void *nothing) {
    (void)nothing;
    for (int i = 0; i < 100000; i++) {
        if (!wrong)
            pthread_mutex_lock(&one_at_a_time);
        OK(clSetKernelArg(writer, 0, sizeof buffer, &buffer));
        if (!wrong)
            pthread_mutex_unlock(&one_at_a_time);
    }
    return NULL;
}

static void two_threads(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        OK(pthread_create(&threads[i], NULL, set_arguments, NULL));
    for (int i = 0; i < 2; i++)
        OK(pthread_join(threads[i], NULL));
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"left_over", left_over},
    {"released_too_often", released_too_often},
    {"released_event", released_event},
    {"released_argument", released_argument},
    {"released_parent", released_parent},
    {"released_sampler", released_sampler},
    {"svm_changed_without_mapping", svm_changed_without_mapping},
    {"svm_mapped", svm_mapped},
    {"svm_not_mapped", svm_not_mapped},
    {"two_queues", two_queues},
    {"two_transfers", two_transfers},
    {"one_place", one_place},
    {"out_of_order", out_of_order},
    {"mapped_for_writing", mapped_for_writing},
    {"mapped_for_reading", mapped_for_reading},
    {"written_while_mapped", written_while_mapped},
    {"changed_too_early", changed_too_early},
    {"changed_without_mapping", changed_without_mapping},
    {"given_back_too_early", given_back_too_early},
    {"refused_callback", refused_callback},
    {"freed_too_early", freed_too_early},
    {"used_after_free", used_after_free},
    {"user_event", user_event},
    {"two_threads", two_threads},
};

int main(int argc, char **argv) {
    CHECK(argc == 3);
    wrong = !strcmp(argv[2], "wrong");
    begin();
    size_t i = 0;
    for (; i < sizeof cases / sizeof *cases && strcmp(cases[i].name, argv[1]) != 0; i++)
        ;
    CHECK(i < sizeof cases / sizeof *cases);
    cases[i].run();
    end();
    return 0;
}
