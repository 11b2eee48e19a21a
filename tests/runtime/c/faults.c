/* What the driver says of an instruction that a processor refuses, and of a division that it traps: compiled
 * kernels have neither, so the kernels are C functions. argv[1] says which; the process ends of it. */
#include <sys/resource.h>

#include "harness.h"

enum { GROUPS = 64 };

static void illegal(const struct cld_launch *launch, const uint8_t *args, struct cld_thread *thread,
                    uint64_t first, uint64_t last) {
    (void)launch, (void)args, (void)thread, (void)first, (void)last;
#if defined(__x86_64__)
    __asm__ volatile("ud2");
#elif defined(__aarch64__)
    __asm__ volatile("udf #0");
#endif
}

/* aarch64 traps no division: it has no such test. */
static void divide(const struct cld_launch *launch, const uint8_t *args, struct cld_thread *thread,
                   uint64_t first, uint64_t last) {
    (void)launch, (void)args, (void)thread, (void)first, (void)last;
#if defined(__x86_64__)
    int quotient = 1, remainder = 0, zero = 0;
    __asm__ volatile("idivl %2" : "+a"(quotient), "+d"(remainder) : "r"(zero));
#endif
}

int main(int count, char **arguments) {
    const struct rlimit none = {0, 0};
    size_t groups = GROUPS, one = 1;
    setrlimit(RLIMIT_CORE, &none);
    CHECK(count == 3);
    bool divides = !strcmp(arguments[1], "divide");
    cl_context context = test_context();
    cl_command_queue queue = test_queue(context, 0);
    cl_kernel kernel = test_kernel(context, divides ? divide : illegal, "");
    free(info_of(kernel)->name);
    info_of(kernel)->name = strdup(arguments[2]);
    OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &groups, &one, 0, NULL, NULL));
    OK(clFinish(queue));
    return 1;
}
