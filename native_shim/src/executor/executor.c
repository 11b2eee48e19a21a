/* An executor's life: its thread, what is put, what is taken. */
#define _GNU_SOURCE
#include "executor/executor.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "api/platform.h"
#include "base/log.h"
#include "base/own_thread.h"
#include "executor/internal.h"
#include "loader/printf.h"

enum { STACK = 256 << 10 };

/* So that what kernels print is told before their launches have ended. */
static void print(void *data, const char *text, size_t size) {
    cld_answer_text(data, CLD_PRINTED_MESSAGE, 0, CL_SUCCESS, text, size);
}

static cl_int make_objects(struct cld_executor *executor) {
    cl_int status = CL_OUT_OF_HOST_MEMORY;
    executor->device = (cl_device_id)cld_root_device();
    if (executor->device)
        executor->context = clCreateContext(NULL, 1, &executor->device, NULL, NULL, &status);
    if (status)
        return status;
    struct cld_context *context = (struct cld_context *)executor->context;
    context->print = print;
    context->print_data = executor;
    const cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0};
    executor->queue =
        clCreateCommandQueueWithProperties(executor->context, executor->device, properties, &status);
    return status;
}

static void free_objects(struct cld_executor *executor) {
    struct cld_remote_buffer *buffer;
    struct cld_remote_image *image;
    struct cld_remote_program *program;
    struct cld_remote_launch *launch;
    while ((image = cld_numbers_any(&executor->images)))
        cld_remote_image_free(image);
    cld_remote_samplers_free(executor->samplers);
    while ((buffer = cld_numbers_any(&executor->buffers)))
        cld_buffer_free(executor, buffer);
    while ((program = cld_numbers_any(&executor->programs)))
        cld_remote_program_free(program);
    while ((launch = cld_numbers_any(&executor->launches)))
        free(launch);
    cld_arrivals_end(executor);
    cld_numbers_free(&executor->arrivals);
    cld_numbers_free(&executor->buffers);
    cld_numbers_free(&executor->images);
    cld_numbers_free(&executor->programs);
    cld_numbers_free(&executor->launches);
    if (executor->queue)
        clReleaseCommandQueue(executor->queue);
    if (executor->context)
        clReleaseContext(executor->context);
}

static void free_executor(struct cld_executor *executor) {
    free_objects(executor);
    cld_answers_free(executor);
    if (executor->descriptor >= 0)
        close(executor->descriptor);
    free(executor);
}

static void execute_batch(struct cld_executor *executor, struct cld_batch *batch) {
    struct cld_msg msg = {.data = batch->batch.at, .size = batch->batch.size};
    while (!executor->has_failed && msg.at < msg.size)
        if (!cld_execute(executor, batch, &msg)) {
            cld_log(1, "cluster: a batch makes no sense at byte %zu", msg.at);
            executor->has_failed = true;
        }
}

static struct cld_batch *next_batch(struct cld_executor *executor) {
    pthread_mutex_lock(&executor->lock);
    while (!executor->first && !executor->is_closing)
        pthread_cond_wait(&executor->has_batches, &executor->lock);
    struct cld_batch *batch = executor->first;
    if (batch && !(executor->first = batch->next))
        executor->last = &executor->first;
    pthread_mutex_unlock(&executor->lock);
    return batch;
}

static void *execute_all(void *argument) {
    struct cld_executor *executor = argument;
    struct cld_batch *batch;
    while ((batch = next_batch(executor))) {
        execute_batch(executor, batch);
        cld_batch_leave(executor, batch);
        clFlush(executor->queue);
    }
    cld_arrivals_end(executor); /* what is enqueued waits for them */
    return NULL;
}

static struct cld_executor *open_executor(int32_t *status) {
    struct cld_executor *executor = calloc(1, sizeof *executor);
    *status = CL_OUT_OF_HOST_MEMORY;
    if (!executor)
        return NULL;
    pthread_mutex_init(&executor->lock, NULL);
    pthread_cond_init(&executor->has_batches, NULL);
    pthread_cond_init(&executor->is_idle, NULL);
    pthread_cond_init(&executor->has_room, NULL);
    executor->last = &executor->first;
    executor->descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (executor->descriptor >= 0 && !(*status = make_objects(executor)) &&
        cld_own_thread(&executor->thread, NULL, STACK, CLD_DRIVER_THREAD, execute_all, executor))
        *status = CL_OUT_OF_RESOURCES;
    if (!*status)
        return executor;
    free_executor(executor);
    return NULL;
}

static int32_t descriptor_of(struct cld_executor *executor) {
    return executor->descriptor;
}

static int32_t put(struct cld_executor *executor, uint64_t token, const struct cld_range *data,
                   const struct cld_range *payloads, uint64_t count, int32_t is_peer) {
    struct cld_batch *batch = calloc(1, sizeof *batch + count * sizeof *payloads);
    if (!batch)
        return 0;
    batch->token = token;
    batch->users = 1;
    batch->is_peer = is_peer;
    batch->batch = *data;
    batch->payload_count = count;
    if (count)
        memcpy(batch->payloads, payloads, count * sizeof *payloads);
    pthread_mutex_lock(&executor->lock);
    *executor->last = batch;
    executor->last = &batch->next;
    pthread_cond_signal(&executor->has_batches);
    pthread_mutex_unlock(&executor->lock);
    return 1;
}

static int32_t failed(struct cld_executor *executor) {
    return executor->has_failed;
}

static void close_executor(struct cld_executor *executor) {
    pthread_mutex_lock(&executor->lock);
    executor->is_closing = true;
    pthread_cond_signal(&executor->has_batches);
    pthread_cond_signal(&executor->has_room);
    pthread_mutex_unlock(&executor->lock);
    pthread_join(executor->thread, NULL);
    clFinish(executor->queue);
    pthread_mutex_lock(&executor->lock);
    while (executor->running)
        pthread_cond_wait(&executor->is_idle, &executor->lock);
    pthread_mutex_unlock(&executor->lock);
    free_executor(executor);
}

__attribute__((visibility("default"))) const struct cld_executor_table *cld_executor_functions(void) {
    static const struct cld_executor_table table = {open_executor, descriptor_of, put, cld_answers_take, free,
                                                    failed,        close_executor};
    return &table;
}
