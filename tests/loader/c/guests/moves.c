/* A host that changes its root folder or its user, and then builds programs.
 *
 * Arguments: "cold" or "warm" (it has built a program before); the new root folder, "" for none; the new user
 * and group, 0 for none; then pairs: options of a build, and a header that the program includes, which has a
 * number VALUE. For each pair it prints what a kernel made of that, or the build's log. "wait" in a header's
 * place: it prints "ready", and waits for a line. */
#define _GNU_SOURCE
#include "guest.h"

#include <grp.h>
#include <unistd.h>

static void include(const char *options, const char *header) {
    char source[512], *text = source;
    cl_int status, value = 0;
    snprintf(source, sizeof source,
             "#include <%s>\nkernel void add(global int *a, int n) { if (get_global_id(0) == 0) a[0] = VALUE "
             "+ n; }\n",
             header);
    cl_program program = clCreateProgramWithSource(context, 1, (const char **)&text, NULL, &status);
    OK(status);
    if (clBuildProgram(program, 1, &device, options, NULL, NULL)) {
        static char log[65536];
        OK(clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log, NULL));
        puts(*log ? strtok(log, "\n") : "no log");
        return;
    }
    cl_kernel made = clCreateKernel(program, "add", &status);
    OK(status);
    OK(clSetKernelArg(made, 0, sizeof buffer, &buffer));
    OK(clSetKernelArg(made, 1, sizeof value, &value));
    OK(clEnqueueNDRangeKernel(queue, made, 1, NULL, (size_t[]){1}, NULL, 0, NULL, NULL));
    OK(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof value, &value, 0, NULL, NULL));
    printf("%d\n", value);
    OK(clReleaseKernel(made));
    OK(clReleaseProgram(program));
}

/* clCompileProgram, with a header that the program brings along. */
static void link_with_header(const char *text) {
    const char *source = "#include \"mine.h\"\nkernel void k(global int *a) { *a = VALUE; }",
               *name = "mine.h";
    cl_int status;
    cl_program header = clCreateProgramWithSource(context, 1, &text, NULL, &status);
    OK(status);
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
    OK(status);
    OK(clCompileProgram(program, 1, &device, "", 1, &header, &name, NULL, NULL));
    clLinkProgram(context, 1, &device, "", 1, &program, NULL, NULL, &status);
    OK(status);
    puts("linked");
}

int main(int count, char **arguments) {
    CHECK(count >= 4);
    device = the_device();
    context = make_context(device);
    queue = make_queue(context, device, 0);
    buffer = make_buffer(context, COUNT * sizeof(int));
    if (!strcmp(arguments[1], "warm"))
        use(1);
    if (*arguments[2])
        CHECK(!chroot(arguments[2]) && !chdir("/work"));
    unsigned user = (unsigned)atoi(arguments[3]);
    if (user)
        CHECK(!setgroups(0, NULL) && !setgid(user) && !setuid(user));
    for (int i = 4; i + 1 < count; i += 2) {
        if (!strcmp(arguments[i], "link"))
            link_with_header(arguments[i + 1]);
        else if (!strcmp(arguments[i + 1], "wait"))
            puts("ready"), fflush(stdout), getchar();
        else
            include(arguments[i], arguments[i + 1]);
    }
    return 0;
}
