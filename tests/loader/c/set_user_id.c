/* A program that somebody runs with more rights than theirs. Arguments: the folder of OCL_ICD_VENDORS, which
 * loaders may not take from such a program's environment, unless it says so itself; what it does with its
 * user ids first: "nothing", "setreuid" (all of them become the effective one), "inherit" (the programs that
 * it starts get its capabilities). It says its device's name. */
#define _GNU_SOURCE
#include "client.h"

#include <linux/capability.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void inherit_capabilities(void) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    OK(syscall(SYS_capget, &header, data));
    for (int i = 0; i < 2; i++)
        data[i].inheritable = data[i].permitted;
    OK(syscall(SYS_capset, &header, data));
    for (int i = 0; i < 64; i++)
        if (data[i / 32].permitted >> i % 32 & 1)
            OK(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, i, 0, 0));
}

int main(int count, char **arguments) {
    EXPECT(count, 3);
    CHECK(getauxval(AT_SECURE));
    OK(setenv("OCL_ICD_VENDORS", arguments[1], 1));
    if (!strcmp(arguments[2], "setreuid"))
        OK(setreuid(geteuid(), geteuid()));
    else if (!strcmp(arguments[2], "inherit"))
        inherit_capabilities();
    cl_device_id device = the_device();
    char name[256];
    OK(clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof name, name, NULL));
    puts(name);
    cl_context context = make_context(device);
    cl_command_queue queue = make_queue(context, device, 0);
    cl_kernel kernel =
        make_kernel(context, device, "kernel void k(global int *p) { p[get_global_id(0)] += 5; }", "k");
    cl_int status, values[4] = {1, 2, 3, 4};
    cl_mem buffer = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof values, values, &status);
    OK(status);
    OK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
    OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, (size_t[]){4}, NULL, 0, NULL, NULL));
    OK(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof values, values, 0, NULL, NULL));
    CHECK(values[0] == 6 && values[1] == 7 && values[2] == 8 && values[3] == 9);
    return 0;
}
