/* Launches that take much longer than those before them, of which each was too short for anybody who slept:
 * they are shared all the same. C functions are the code. */
#include "../harness.h"
#include "base/thread.h"

enum { GROUPS = 64, LAUNCHES = 40, SHORT_NS = 130, LONG_US = 2000, ASLEEP_US = 500 };

static _Atomic bool is_long;
static _Atomic int executed, helped; /* groups, and those of them that the host's thread did not execute */
static pthread_t host;

static void code(const struct cld_launch *launch, const uint8_t *args, struct cld_thread *thread,
                 uint64_t first, uint64_t last) {
    (void)launch, (void)args, (void)thread;
    for (; first < last; first++) {
        uint64_t start = cld_now();
        if (is_long)
            usleep(LONG_US);
        else
            while (cld_now() - start < SHORT_NS)
                ;
        executed++;
        helped += !pthread_equal(pthread_self(), host);
    }
}

static void launch(cl_command_queue queue, cl_kernel kernel) {
    const size_t groups = GROUPS, one = 1;
    OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &groups, &one, 0, NULL, NULL));
    OK(clFinish(queue));
}

int main(void) {
    host = pthread_self();
    cl_context context = test_context();
    cl_command_queue queue = test_queue(context, 0);
    cl_kernel kernel = test_kernel(context, code, "");
    for (int turn = 0; turn < 3; turn++) {
        is_long = false;
        for (int i = 0; i < LAUNCHES; i++) {
            usleep(ASLEEP_US);
            launch(queue, kernel);
        }
        CHECK_IS(executed, LAUNCHES * GROUPS);
        is_long = true;
        executed = helped = 0;
        usleep(ASLEEP_US);
        launch(queue, kernel);
        CHECK_IS(executed, GROUPS);
        CHECK(helped >= GROUPS / 8 && helped <= GROUPS - GROUPS / 8);
        executed = helped = 0;
    }
    OK(clReleaseKernel(kernel));
    OK(clReleaseCommandQueue(queue));
    OK(clReleaseContext(context));
    return 0;
}
