/* What the hints of queues do (cl_khr_priority_hints, cl_khr_throttle_hints). argv[1]: what is looked at.
 * Nothing here depends on how fast anything is: kernels run until they are told to end. */
#define _GNU_SOURCE
#include "client.h"

#include <dirent.h>
#include <sched.h>
#include <unistd.h>

enum { ITEMS = 1 << 22, COUNT = 3, PATIENCE = 100 /* seconds until what must happen has not happened */ };

/* How many of them are executed at once, at most: a thread has one, as groups are of one. Each ends at once
 * where it is told to. */
static const char *source = "kernel __attribute__((reqd_work_group_size(1, 1, 1)))\n"
                            "void spin(volatile global int *stop, volatile global int *now,\n"
                            "                 volatile global int *most) {\n"
                            "    atomic_max(most, atomic_inc(now) + 1);\n"
                            "    for (int i = 0; i < 2000 && !atomic_add(stop, 0); i++);\n"
                            "    atomic_dec(now);\n"
                            "}\n"
                            "kernel void quick(volatile global int *a, volatile global int *b,\n"
                            "                  volatile global int *done) { atomic_inc(done); }\n";

static cl_device_id device;
static cl_context context;

/* The host's own memory, which kernels and the host look at at the same time. */
struct numbers {
    cl_mem buffers[COUNT];
    _Atomic cl_int *values; /* stop, now, most: a cache line each */
};

static struct numbers make_numbers(void) {
    struct numbers made;
    made.values = aligned_alloc(4096, 4096);
    memset((void *)made.values, 0, 4096);
    for (int i = 0; i < COUNT; i++) {
        cl_int status;
        made.buffers[i] =
            clCreateBuffer(context, CL_MEM_USE_HOST_PTR, 64, (void *)(made.values + 16 * i), &status);
        OK(status);
    }
    return made;
}

static cl_int value_of(const struct numbers *numbers, int which) {
    return numbers->values[16 * which];
}

static void stop(struct numbers *numbers) {
    numbers->values[0] = 1;
}

static cl_command_queue new_queue(cl_queue_properties name, cl_queue_properties value) {
    const cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, name, value, 0};
    cl_int status;
    cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, properties, &status);
    OK(status);
    return queue;
}

static cl_kernel kernel_of(const char *name, const struct numbers *numbers) {
    static cl_program program;
    cl_int status;
    if (!program) {
        program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
        OK(status);
        OK(clBuildProgram(program, 1, &device, "", NULL, NULL));
    }
    cl_kernel kernel = clCreateKernel(program, name, &status);
    OK(status);
    for (cl_uint i = 0; i < COUNT; i++)
        OK(clSetKernelArg(kernel, i, sizeof(cl_mem), &numbers->buffers[i]));
    return kernel;
}

static cl_event launch(cl_command_queue queue, cl_kernel kernel, size_t items, cl_event after) {
    cl_event event;
    OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, after != NULL, after ? &after : NULL,
                              &event));
    OK(clFlush(queue));
    return event;
}

static cl_int status_of(cl_event event) {
    cl_int status;
    OK(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL));
    return status;
}

static void nap(void) {
    usleep(1000);
}

#define AWAIT(condition)                                                                                     \
    for (double until = seconds() + PATIENCE; !(condition); nap())                                           \
    CHECK(seconds() < until)

/* Threads of an ordinary command come over to an urgent one; for another ordinary one they do not. */
static void urgent(void) {
    struct numbers spinning = make_numbers(), quick = make_numbers();
    cl_command_queue usual = new_queue(CL_QUEUE_PRIORITY_KHR, CL_QUEUE_PRIORITY_MED_KHR);
    cl_command_queue high = new_queue(CL_QUEUE_PRIORITY_KHR, CL_QUEUE_PRIORITY_HIGH_KHR);
    cl_command_queue other = new_queue(0, 0);
    cl_event long_one = launch(usual, kernel_of("spin", &spinning), ITEMS, NULL);
    AWAIT(value_of(&spinning, 2) == 2); /* both threads of the device are at it */
    cl_event waiting = launch(other, kernel_of("quick", &quick), 1, NULL);
    for (int i = 0; i < 20; i++) {
        cl_event event = launch(high, kernel_of("quick", &quick), 1, NULL);
        AWAIT(status_of(event) == CL_COMPLETE);
        OK(clReleaseEvent(event));
    }
    EXPECT(status_of(long_one), CL_RUNNING);
    /* A long one, too, and with it both threads, but for the one that stays. */
    struct numbers also = make_numbers();
    cl_event second = launch(high, kernel_of("spin", &also), ITEMS, NULL);
    AWAIT(value_of(&also, 2) >= 1);
    stop(&also);
    AWAIT(status_of(second) == CL_COMPLETE);
    EXPECT(status_of(long_one), CL_RUNNING);
    EXPECT(status_of(waiting), CL_SUBMITTED);
    stop(&spinning);
    OK(clFinish(usual));
    OK(clFinish(other));
    EXPECT(status_of(waiting), CL_COMPLETE);
    EXPECT(value_of(&quick, 2), 21);
    EXPECT(value_of(&spinning, 1), 0); /* every work-item that began has ended */
}

/* Of commands that are ready at the same time, urgent ones are begun first. */
static void order(void) {
    enum { EACH = 8 };
    struct numbers quick = make_numbers();
    cl_int status;
    cl_event start = clCreateUserEvent(context, &status), events[3][EACH];
    OK(status);
    const cl_queue_properties priorities[] = {0, CL_QUEUE_PRIORITY_MED_KHR, CL_QUEUE_PRIORITY_HIGH_KHR};
    cl_kernel kernel = kernel_of("quick", &quick);
    for (int kind = 0; kind < 3; kind++)
        for (int i = 0; i < EACH; i++)
            events[kind][i] = launch(
                new_queue(priorities[kind] ? CL_QUEUE_PRIORITY_KHR : 0, priorities[kind]), kernel, 1, start);
    OK(clSetUserEventStatus(start, CL_COMPLETE));
    cl_ulong starts[3][EACH];
    for (int kind = 0; kind < 3; kind++)
        for (int i = 0; i < EACH; i++) {
            AWAIT(status_of(events[kind][i]) == CL_COMPLETE);
            OK(clGetEventProfilingInfo(events[kind][i], CL_PROFILING_COMMAND_START, sizeof(cl_ulong),
                                       &starts[kind][i], NULL));
        }
    for (int i = 0; i < EACH; i++)
        for (int k = 0; k < EACH; k++)
            CHECK(starts[2][i] < starts[0][k] && starts[2][i] < starts[1][k]);
}

/* Clock ticks of CPU time of the process's threads that are as nice as that, but for the main one; count: how
 * many there are. */
static unsigned long cpu_time(int nice, int *count) {
    DIR *folder = opendir("/proc/self/task");
    CHECK(folder);
    unsigned long sum = 0;
    *count = 0;
    for (const struct dirent *entry; (entry = readdir(folder));) {
        char path[300], text[1024];
        if (entry->d_name[0] == '.' || atoi(entry->d_name) == getpid())
            continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/stat", entry->d_name);
        FILE *file = fopen(path, "r");
        if (!file || !fgets(text, sizeof text, file))
            continue; /* it has ended */
        fclose(file);
        unsigned long user, system;
        int found;
        const char *name_end = strrchr(text, ')');
        CHECK(name_end);
        EXPECT(sscanf(name_end + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %*d %*d %*d %d",
                      &user, &system, &found),
               3);
        if (found == nice) {
            sum += user + system;
            ++*count;
        }
    }
    closedir(folder);
    return sum;
}

/* Two kernels on one CPU: the one of low priority gets little of it. */
static void low(void) {
    int count;
    cpu_set_t cpus;
    OK(sched_getaffinity(0, sizeof cpus, &cpus));
    for (int i = 0, found = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &cpus) && found++)
            CPU_CLR(i, &cpus);
    OK(sched_setaffinity(0, sizeof cpus, &cpus));
    device = the_device();
    context = make_context(device);
    struct numbers first = make_numbers(), second = make_numbers();
    cl_command_queue usual = new_queue(CL_QUEUE_PRIORITY_KHR, CL_QUEUE_PRIORITY_MED_KHR);
    cl_command_queue background = new_queue(CL_QUEUE_PRIORITY_KHR, CL_QUEUE_PRIORITY_LOW_KHR);
    cl_kernel kernel = kernel_of("spin", &first);
    cl_event one = launch(usual, kernel, ITEMS, NULL);
    AWAIT(status_of(one) == CL_RUNNING);
    cpu_time(19, &count);
    EXPECT(count, 0); /* no thread is made for a priority that no command has */
    cl_event two = launch(background, kernel_of("spin", &second), ITEMS, NULL);
    AWAIT((cpu_time(19, &count), count == 1));
    AWAIT(value_of(&second, 2) == 1);
    unsigned long usual_before = cpu_time(0, &count), low_before = cpu_time(19, &count);
    unsigned long more = (unsigned long)sysconf(_SC_CLK_TCK), usual_time, low_time;
    AWAIT((usual_time = cpu_time(0, &count) - usual_before) >= more);
    low_time = cpu_time(19, &count) - low_before;
    fprintf(stderr, "%lu ticks, %lu of low priority\n", usual_time, low_time);
    CHECK(5 * low_time < usual_time);
    stop(&first);
    OK(clFinish(usual));
    EXPECT(status_of(two), CL_RUNNING);
    stop(&second);
    OK(clFinish(background));
    /* What a thread of low priority makes ready is for threads of the usual one. */
    struct numbers quick = make_numbers();
    cl_event before = launch(background, kernel_of("quick", &quick), 1, NULL);
    cl_event after = launch(usual, kernel_of("quick", &quick), 1, before);
    AWAIT(status_of(after) == CL_COMPLETE);
    cpu_time(19, &count);
    EXPECT(count, 1);
    EXPECT(value_of(&quick, 2), 2);
}

/* Threads that a thread of low priority calls for are no thread of low priority: here the first of the usual
 * pool, and one for a callback. */
static cl_int thread_priority(void) {
    char text[1024];
    FILE *file = fopen("/proc/thread-self/stat", "r");
    CHECK(file && fgets(text, sizeof text, file));
    fclose(file);
    int found;
    EXPECT(sscanf(strrchr(text, ')') + 2,
                  "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %d", &found),
           1);
    return found;
}

static _Atomic int in_command = -1, in_usual = -1, in_callback = -1;

static void CL_CALLBACK look_in_command(void *where) {
    _Atomic int *target;
    memcpy(&target, where, sizeof target);
    *target = thread_priority();
}

static void CL_CALLBACK look_in_callback(cl_event event, cl_int status, void *user_data) {
    (void)event, (void)status, (void)user_data;
    in_callback = thread_priority();
}

static cl_event look(cl_command_queue queue, _Atomic int *where, cl_event after) {
    cl_event event;
    OK(clEnqueueNativeKernel(queue, look_in_command, &where, sizeof where, 0, NULL, NULL, after != NULL,
                             after ? &after : NULL, &event));
    OK(clFlush(queue));
    return event;
}

static void made_by_low(void) {
    cl_command_queue usual = new_queue(0, 0);
    cl_command_queue background = new_queue(CL_QUEUE_PRIORITY_KHR, CL_QUEUE_PRIORITY_LOW_KHR);
    cl_int status;
    cl_event start = clCreateUserEvent(context, &status);
    OK(status);
    cl_event first = look(background, &in_command, start);
    cl_event second = look(usual, &in_usual, first);
    OK(clSetEventCallback(first, CL_COMPLETE, look_in_callback, NULL));
    OK(clSetUserEventStatus(start, CL_COMPLETE));
    AWAIT(status_of(second) == CL_COMPLETE && in_callback >= 0);
    EXPECT(in_command, 19);
    EXPECT(in_usual, 0);
    EXPECT(in_callback, 0);
}

/* A quarter of the threads, of which the device has eight. */
static void throttle(void) {
    struct numbers all = make_numbers(), few = make_numbers();
    cl_command_queue full = new_queue(CL_QUEUE_THROTTLE_KHR, CL_QUEUE_THROTTLE_HIGH_KHR);
    cl_command_queue throttled = new_queue(CL_QUEUE_THROTTLE_KHR, CL_QUEUE_THROTTLE_LOW_KHR);
    cl_event one = launch(full, kernel_of("spin", &all), ITEMS, NULL);
    AWAIT(value_of(&all, 2) > 2);
    stop(&all);
    AWAIT(status_of(one) == CL_COMPLETE);
    cl_event two = launch(throttled, kernel_of("spin", &few), ITEMS, NULL);
    AWAIT(value_of(&few, 2) == 2);
    for (int i = 0; i < 300; i++) {
        nap();
        EXPECT(value_of(&few, 2), 2);
    }
    stop(&few);
    OK(clWaitForEvents(1, &two)); /* the host's thread takes part as one of them */
    EXPECT(value_of(&few, 2), 2);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    if (!strcmp(argv[1], "low")) {
        low();
        return 0;
    }
    device = the_device();
    context = make_context(device);
    if (!strcmp(argv[1], "urgent"))
        urgent();
    else if (!strcmp(argv[1], "order"))
        order();
    else if (!strcmp(argv[1], "made by low"))
        made_by_low();
    else
        throttle();
    return 0;
}
