/* How launches of many shapes are divided into sub-groups, as the kernel sees it and as the queries say.
 * Argument: the size that sub-groups should have, 0 for any. */
#include "client.h"

static const char SOURCE[] =
    "#define REQUIRE(n, condition) if (!(condition)) atomic_or(errors, 1 << n)\n"
    "kernel void layout(global int *errors, global int *items, global uint *most, local uint *shared) {\n"
    "  uint count = get_local_size(0) * get_local_size(1) * get_local_size(2), i = get_local_linear_id();\n"
    "  uint size = get_max_sub_group_size(), first = i / size * size, rest = min(size, count - first);\n"
    "  uint whole = get_enqueued_local_size(0) * get_enqueued_local_size(1) * get_enqueued_local_size(2);\n"
    "  REQUIRE(0, get_sub_group_id() == i / size);\n"
    "  REQUIRE(1, get_sub_group_local_id() == i % size);\n"
    "  REQUIRE(2, get_sub_group_size() == rest);\n"
    "  REQUIRE(3, get_num_sub_groups() == (count + size - 1) / size);\n"
    "  REQUIRE(4, get_enqueued_num_sub_groups() == (whole + size - 1) / size);\n"
    "  uint last = sub_group_reduce_max(i);\n"
    "  REQUIRE(5, last == first + rest - 1);\n"
    "  shared[i] = 3 * i + 1;\n"
    "  sub_group_barrier(CLK_LOCAL_MEM_FENCE);\n"
    "  uint next = first + (i - first + 1) % rest;\n"
    "  REQUIRE(6, shared[next] == 3 * next + 1);\n"
    "  barrier(CLK_LOCAL_MEM_FENCE);\n"
    "  uint other = count - 1 - i, sum = 0;\n"
    "  for (uint k = 0; k < rest; k++) sum += shared[count - 1 - first - k];\n"
    "  REQUIRE(7, sub_group_reduce_add(shared[other]) == sum);\n"
    "  REQUIRE(8, last == first + rest - 1);\n"
    "  uint scan = 0;\n"
    "  if (get_local_id(0) & 1) {\n"
    "    for (uint k = first; k < i; k++) scan += k % get_local_size(0) & 1;\n"
    "    REQUIRE(9, popcount(sub_group_ballot(1).x & get_sub_group_lt_mask().x) == scan || size > 32);\n"
    "  }\n"
    "  atomic_inc(items);\n"
    "  *most = size;\n"
    "}\n";

struct shape {
    cl_uint dimensions;
    size_t global[3], local[3], offset[3];
};

/* One row; partial sub-groups; rows of whole sub-groups and others; groups at the edges that are smaller. */
static const struct shape SHAPES[] = {
    {1, {100}, {100}, {0}},
    {1, {100}, {32}, {0}},
    {1, {64}, {16}, {5}},
    {1, {7}, {1}, {0}},
    {1, {48}, {24}, {(size_t)1 << 30}},
    {2, {10, 6}, {5, 3}, {0}},
    {2, {64, 4}, {32, 2}, {3, 4}},
    {2, {40, 4}, {32, 2}, {0}},
    {2, {64, 5}, {64, 2}, {0}},
    {3, {4, 4, 4}, {4, 4, 2}, {0}},
    {3, {3, 9, 5}, {3, 4, 5}, {0, 1, (size_t)1 << 31}},
};

static size_t query(cl_kernel kernel, cl_device_id device, cl_kernel_sub_group_info name, size_t input_size,
                    const void *input) {
    size_t result = 0;
    OK(clGetKernelSubGroupInfo(kernel, device, name, input_size, input, sizeof result, &result, NULL));
    return result;
}

int main(int argc, char **argv) {
    cl_int status;
    cl_device_id device = the_device();
    cl_context context = make_context(device);
    cl_command_queue queue = make_queue(context, device, 0);
    cl_kernel kernel = make_kernel_with(context, device, SOURCE, "-cl-std=CL3.0", "layout");
    cl_mem results = make_buffer(context, 256 * 3);
    cl_mem parts[3];
    for (cl_uint i = 0; i < 3; i++) {
        cl_buffer_region region = {256 * i, 4};
        parts[i] = clCreateSubBuffer(results, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &status);
        OK(status);
        OK(clSetKernelArg(kernel, i, sizeof parts[i], &parts[i]));
    }
    OK(clSetKernelArg(kernel, 3, 4096 * sizeof(cl_uint), NULL));
    size_t wanted = argc > 1 ? (size_t)atol(argv[1]) : 0;
    for (size_t s = 0; s < sizeof SHAPES / sizeof *SHAPES; s++) {
        const struct shape *shape = &SHAPES[s];
        cl_uint zero = 0;
        OK(clEnqueueFillBuffer(queue, results, &zero, sizeof zero, 0, 256 * 3, 0, NULL, NULL));
        OK(clEnqueueNDRangeKernel(queue, kernel, shape->dimensions, shape->offset, shape->global,
                                  shape->local, 0, NULL, NULL));
        cl_int errors, items;
        cl_uint size;
        OK(clEnqueueReadBuffer(queue, parts[0], CL_TRUE, 0, 4, &errors, 0, NULL, NULL));
        OK(clEnqueueReadBuffer(queue, parts[1], CL_TRUE, 0, 4, &items, 0, NULL, NULL));
        OK(clEnqueueReadBuffer(queue, parts[2], CL_TRUE, 0, 4, &size, 0, NULL, NULL));
        if (errors)
            fprintf(stderr, "shape %zu, sub-groups of %u: errors %#x\n", s, size, errors);
        EXPECT(errors, 0);
        size_t total = 1, group = 1, bytes = shape->dimensions * sizeof(size_t);
        for (cl_uint i = 0; i < shape->dimensions; i++) {
            total *= shape->global[i];
            group *= shape->local[i];
        }
        EXPECT(items, total);
        EXPECT(size, query(kernel, device, CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE, bytes, shape->local));
        EXPECT((group + size - 1) / size,
               query(kernel, device, CL_KERNEL_SUB_GROUP_COUNT_FOR_NDRANGE, bytes, shape->local));
        if (wanted)
            EXPECT(size, wanted);
    }
    return 0;
}
