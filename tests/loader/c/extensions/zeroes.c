/* What memory has before kernels write to it, in contexts that want zeros (cl_khr_initialize_memory).
 * argv[1]: 3 for local and private memory, 1 or 2 for one of them; 0: a context that does not ask, where
 * local memory has what the group before has left. */
#include "client.h"

#define INITIALIZE 0x2030 /* CL_CONTEXT_MEMORY_INITIALIZE_KHR */

enum { GLOBAL = 8192, GIVEN = 77 };

static const char *source =
    "uint soil(uint *p, uint n, uint at) {\n"
    "    uint more[5];\n" /* of a function that is called again and again */
    "    uint sum = more[at % 5];\n"
    "    for (uint i = 0; i < 5; i++) more[(i + at) % 5] = at + 3;\n"
    "    for (uint i = 0; i < n; i++) { sum |= p[(i + at) % n]; p[(i + at) % n] = more[i % 5]; }\n"
    "    return sum;\n"
    "}\n"
    "kernel void look(global uint *found, local uint *given, uint n, uint never) {\n"
    "    local uint own[300]; local struct { uchar a; ulong b; } pair;\n"
    "    uint lid = get_local_id(0), size = get_local_size(0), seen = 0;\n"
    "    for (uint i = lid; i < 300; i += size) seen |= own[i];\n"
    "    for (uint i = lid; i < n; i += size) seen |= given[i];\n"
    "    seen |= pair.a | (uint)pair.b;\n"
    "    barrier(CLK_LOCAL_MEM_FENCE);\n"
    "    for (uint i = lid; i < 300; i += size) own[i] = 0xdead + i;\n"
    "    for (uint i = lid; i < n; i += size) given[i] = 0xbeef + i;\n"
    "    if (lid == 0) { pair.a = 7; pair.b = 9; }\n"
    "    barrier(CLK_LOCAL_MEM_FENCE);\n"
    "    uint a[40], x, private_seen = 0; float4 f;\n"
    "    if (never) { x = 3; f = 1.0f; }\n"
    "    private_seen |= x | (uint)f.y;\n"
    "    for (uint i = 0; i < 4; i++) { uint inner[6]; private_seen |= inner[(i + lid) % 6];\n"
    "        inner[(i + n) % 6] = a[i] + lid + 1; private_seen |= never ? inner[2] : 0; }\n"
    "    private_seen |= soil(a, 40, lid);\n"
    "    barrier(CLK_LOCAL_MEM_FENCE);\n" /* it lives across regions */
    "    if (never) found[2] = a[never] + own[(lid + 1) % 300];\n"
    "    atomic_or(found, seen); atomic_or(found + 1, private_seen);\n"
    "}\n";

int main(int argc, char **argv) {
    CHECK(argc == 2);
    cl_device_id device = the_device();
    const cl_context_properties properties[] = {INITIALIZE, atoi(argv[1]), 0};
    cl_int status;
    cl_context context = clCreateContext(properties, 1, &device, NULL, NULL, &status);
    OK(status);
    cl_command_queue queue = make_queue(context, device, 0);
    cl_kernel kernel = make_kernel(context, device, source, "look");
    cl_mem found = make_buffer(context, 16);
    cl_uint given = GIVEN, never = 0, seen[3] = {0, 0, 0};
    OK(clEnqueueWriteBuffer(queue, found, CL_TRUE, 0, sizeof seen, seen, 0, NULL, NULL));
    OK(clSetKernelArg(kernel, 0, sizeof found, &found));
    OK(clSetKernelArg(kernel, 1, GIVEN * sizeof(cl_uint), NULL));
    OK(clSetKernelArg(kernel, 2, sizeof given, &given));
    OK(clSetKernelArg(kernel, 3, sizeof never, &never));
    const size_t sizes[] = {64, 1, 8, 128, 256};
    for (int i = 0; i < 40; i++) {
        size_t global = GLOBAL, local = sizes[i % 5];
        OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, &local, 0, NULL, NULL));
        OK(clFinish(queue));
    }
    OK(clEnqueueReadBuffer(queue, found, CL_TRUE, 0, sizeof seen, seen, 0, NULL, NULL));
    int mask = atoi(argv[1]);
    if (mask & 1)
        EXPECT(seen[0], 0);
    else if (!mask)
        CHECK(seen[0]);
    if (mask & 2)
        EXPECT(seen[1], 0);
    return 0;
}
