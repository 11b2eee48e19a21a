/* Runs one kernel of a program with the arguments that a file names, on the platform that the loader finds
 * first: check_host JOB. Of a job without the line "kernel" it prints what arguments each kernel has. Lines
 * of a job, in this order; "-" is no file: program PATH, options TEXT, kernel NAME, global X Y Z, local X Y
 * Z, rounds N, then for each argument buffer FLAGS SIZE FILE | local SIZE | value SIZE FILE | null Prints the
 * least time of all rounds in ns, "time 123". */
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void fail(const char *what, cl_int status) {
    fprintf(stderr, "%s: %d\n", what, status);
    exit(3);
}

static void need(const char *what, cl_int status) {
    if (status)
        fail(what, status);
}

/* A file's bytes with a 0 behind them; size says how many. */
static char *read_file(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    if (!file)
        fail(path, 0);
    char *text = calloc(1, 1 << 26);
    *size = fread(text, 1, (1 << 26) - 1, file);
    fclose(file);
    return text;
}

static void print_arguments(cl_program program) {
    cl_kernel kernels[64];
    cl_uint count = 0;
    need("clCreateKernelsInProgram", clCreateKernelsInProgram(program, 64, kernels, &count));
    for (cl_uint i = 0; i < count; i++) {
        char name[256];
        cl_uint arguments = 0;
        clGetKernelInfo(kernels[i], CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL);
        clGetKernelInfo(kernels[i], CL_KERNEL_NUM_ARGS, sizeof arguments, &arguments, NULL);
        printf("kernel %s\n", name);
        for (cl_uint a = 0; a < arguments; a++) {
            cl_kernel_arg_address_qualifier space = 0;
            char type[256] = "";
            clGetKernelArgInfo(kernels[i], a, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof space, &space, NULL);
            clGetKernelArgInfo(kernels[i], a, CL_KERNEL_ARG_TYPE_NAME, sizeof type, type, NULL);
            printf("argument %x %s\n", space, type);
        }
        clReleaseKernel(kernels[i]);
    }
}

int main(int argc, char **argv) {
    FILE *job = argc > 1 ? fopen(argv[1], "r") : NULL;
    if (!job)
        fail("no job", 0);
    char path[4096], options[4096] = "", name[256] = "", line[4096];
    size_t global[3], local[3], size;
    int rounds = 1;
    if (fscanf(job, "program %4095[^\n]\n", path) != 1)
        fail("no program", 0);
    if (fscanf(job, "options %4095[^\n]\n", options) != 1)
        fail("no options", 0);

    cl_platform_id platform;
    cl_device_id device;
    cl_int status;
    need("clGetPlatformIDs", clGetPlatformIDs(1, &platform, NULL));
    need("clGetDeviceIDs", clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    need("clCreateContext", status);
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &status);
    need("clCreateCommandQueue", status);
    char *source = read_file(path, &size);
    cl_program program = clCreateProgramWithSource(context, 1, (const char **)&source, &size, &status);
    need("clCreateProgramWithSource", status);
    free(source);
    status = clBuildProgram(program, 1, &device, options, NULL, NULL);
    if (status) {
        static char log[65536];
        clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof log, log, NULL);
        fprintf(stderr, "%s\n", log);
        fail("clBuildProgram", status);
    }
    cl_kernel kernel = NULL;
    cl_mem buffers[64];
    unsigned buffer_count = 0;
    if (fscanf(job, "kernel %255s\n", name) != 1) {
        print_arguments(program);
    } else {
        if (fscanf(job, "global %zu %zu %zu\nlocal %zu %zu %zu\nrounds %d\n", &global[0], &global[1],
                   &global[2], &local[0], &local[1], &local[2], &rounds) != 7)
            fail("no sizes", 0);
        kernel = clCreateKernel(program, name, &status);
        need("clCreateKernel", status);
        for (cl_uint index = 0; fgets(line, sizeof line, job); index++) {
            char file[4096];
            unsigned long flags;
            void *data = NULL;
            if (sscanf(line, "buffer %lu %zu %4095s", &flags, &size, file) == 3) {
                size_t there;
                if (strcmp(file, "-"))
                    data = read_file(file, &there);
                cl_mem buffer =
                    clCreateBuffer(context, flags | (data ? CL_MEM_COPY_HOST_PTR : 0), size, data, &status);
                need("clCreateBuffer", status);
                need("clSetKernelArg", clSetKernelArg(kernel, index, sizeof buffer, &buffer));
                buffers[buffer_count++] = buffer;
            } else if (sscanf(line, "local %zu", &size) == 1) {
                need("clSetKernelArg", clSetKernelArg(kernel, index, size, NULL));
            } else if (sscanf(line, "value %zu %4095s", &size, file) == 2) {
                size_t there;
                data = read_file(file, &there);
                need("clSetKernelArg", clSetKernelArg(kernel, index, size, data));
            } else {
                need("clSetKernelArg", clSetKernelArg(kernel, index, sizeof(cl_mem), NULL));
            }
            free(data);
        }
        long long least = -1;
        for (int i = 0; i < rounds; i++) {
            struct timespec begin, end;
            clock_gettime(CLOCK_MONOTONIC, &begin);
            need("clEnqueueNDRangeKernel",
                 clEnqueueNDRangeKernel(queue, kernel, 3, NULL, global, local, 0, NULL, NULL));
            need("clFinish", clFinish(queue));
            clock_gettime(CLOCK_MONOTONIC, &end);
            long long time = (end.tv_sec - begin.tv_sec) * 1000000000LL + end.tv_nsec - begin.tv_nsec;
            least = least < 0 || time < least ? time : least;
        }
        printf("time %lld\n", least);
        for (unsigned i = 0; i < buffer_count; i++)
            clReleaseMemObject(buffers[i]);
        clReleaseKernel(kernel);
    }
    fclose(job);
    clReleaseProgram(program);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
    return 0;
}
