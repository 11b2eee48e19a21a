/* Launches of many shapes: every work-item runs once and has its ids, however groups are made of them. */
#include "client.h"

enum { LARGEST = 1 << 15 };

static const char SOURCE[] =
    "size_t place(void) {\n"
    "  return get_global_linear_id();\n"
    "}\n"
    "kernel void plain(global uint *out, uint rounds) {\n"
    "  uint sum = 0, id = (uint)get_global_id(0) * 7 + (uint)get_global_id(1) * 1009 +\n"
    "                     (uint)get_global_id(2) * 100003;\n"
    "  for (uint i = 0; i < rounds + get_global_id(1) % 3 + get_global_id(0) % 5; i++)\n"
    "    sum += id ^ i;\n"
    "  out[place()] += sum;\n"
    "}\n"
    "kernel void grouped(global uint *out, uint rounds) {\n"
    "  uint id = 0;\n"
    "  for (uint i = 0; i < 3; i++)\n"
    "    id = id * 50 + (uint)(get_local_id(i) + get_local_size(i) * get_group_id(i) * rounds);\n"
    "  out[place()] += id;\n"
    "}\n"
    "kernel void sharing(global uint *out, uint rounds) {\n"
    "  local uint all[256];\n"
    "  size_t me = get_local_linear_id(), count = get_local_size(0) * get_local_size(1) * "
    "get_local_size(2);\n"
    "  uint total = (uint)get_global_id(1);\n"
    "  for (uint i = 0; i < rounds; i++) {\n"
    "    all[me] = (uint)get_global_id(0) + total;\n"
    "    barrier(CLK_LOCAL_MEM_FENCE);\n"
    "    total += all[(me + 1) % count];\n"
    "    barrier(CLK_LOCAL_MEM_FENCE);\n"
    "  }\n"
    "  out[place()] += total;\n"
    "}\n"
    /* Sums of the rows of a group by halves; one work-item then counts the rounds. */
    "kernel void tree(global uint *out, uint rounds) {\n"
    "  local uint all[256];\n"
    "  size_t x = get_local_id(0), size = get_local_size(0);\n"
    "  local uint *row = all + size * (get_local_id(1) + get_local_size(1) * get_local_id(2));\n"
    "  row[x] = (uint)get_global_id(0) + (uint)get_global_id(1) * rounds;\n"
    "  for (size_t left = size; left > 1; left = (left + 1) / 2) {\n"
    "    barrier(CLK_LOCAL_MEM_FENCE);\n"
    "    if (x < left / 2)\n"
    "      row[x] += row[x + (left + 1) / 2];\n"
    "  }\n"
    "  barrier(CLK_LOCAL_MEM_FENCE);\n"
    "  if (x == 0)\n"
    "    row[0] += rounds;\n"
    "  barrier(CLK_LOCAL_MEM_FENCE);\n"
    "  out[place()] += row[0];\n"
    "}\n"
    /* Many steps of each work-item, and what its neighbour in the linear local id began with. */
    "inline void mix(global uint *out, uint rounds, local uint *all) {\n"
    "  uint count = (uint)(get_local_size(0) * get_local_size(1) * get_local_size(2));\n"
    "  uint me = (uint)((get_local_id(2) * get_local_size(1) + get_local_id(1)) * get_local_size(0) +\n"
    "                   get_local_id(0));\n"
    "  uint total = (uint)(get_global_id(0) * 3 + get_global_id(1) * 5 + get_global_id(2) * 7);\n"
    "  all[me] = total + (uint)get_group_id(1);\n"
    "  barrier(CLK_LOCAL_MEM_FENCE);\n"
    "  for (uint i = 0; i < rounds * 8; i++)\n"
    "    total = (total ^ total >> 7 ^ i) * 2654435761u + (total << 3) + (uint)get_local_id(1);\n"
    "  out[place()] += total + all[me + 1 == count ? 0 : me + 1];\n"
    "}\n"
    "kernel void mixing(global uint *out, uint rounds) {\n"
    "  local uint all[256];\n"
    "  mix(out, rounds, all);\n"
    "}\n"
    "kernel __attribute__((reqd_work_group_size(4, 4, 4))) void required(global uint *out, uint rounds) {\n"
    "  local uint all[256];\n"
    "  mix(out, rounds, all);\n"
    "}\n";

struct shape {
    size_t offset[3], global[3], local[3]; /* local[0] == 0: the driver's choice */
};

static const struct shape SHAPES[] = {
    {{0, 0, 0}, {1, 1, 1}, {1, 1, 1}},     {{0, 0, 0}, {7, 1, 1}, {7, 1, 1}},
    {{5, 0, 0}, {1000, 1, 1}, {1, 1, 1}},  {{0, 0, 0}, {1000, 1, 1}, {64, 1, 1}},
    {{3, 9, 0}, {100, 37, 1}, {1, 1, 1}},  {{0, 0, 0}, {100, 37, 1}, {10, 5, 1}},
    {{0, 0, 0}, {64, 32, 1}, {16, 16, 1}}, {{0, 0, 0}, {3, 500, 1}, {3, 5, 1}},
    {{1, 2, 3}, {33, 17, 9}, {8, 3, 2}},   {{0, 0, 0}, {16, 4, 16}, {16, 4, 4}},
    {{0, 0, 0}, {17, 1, 40}, {17, 1, 1}},  {{0, 0, 0}, {30000, 1, 1}, {0, 0, 0}},
    {{0, 0, 2}, {129, 65, 3}, {0, 0, 0}},  {{0, 0, 0}, {2, 3000, 1}, {0, 0, 0}},
    {{0, 0, 0}, {48, 48, 1}, {48, 4, 1}},  {{0, 7, 0}, {250, 31, 1}, {250, 1, 1}},
    {{5, 3, 1}, {32, 16, 8}, {4, 4, 4}},   {{64, 3, 1}, {32, 16, 8}, {4, 4, 4}},
    {{0, 0, 9}, {24, 15, 6}, {6, 5, 3}},   {{1, 0, 0}, {4, 400, 3}, {2, 40, 1}},
    {{0, 0, 0}, {1, 90, 40}, {1, 9, 8}},
};

static cl_uint item_plain(const size_t *id, cl_uint rounds) {
    cl_uint sum = 0, number = (cl_uint)(id[0] * 7 + id[1] * 1009 + id[2] * 100003);
    for (cl_uint i = 0; i < rounds + id[1] % 3 + id[0] % 5; i++)
        sum += number ^ i;
    return sum;
}

/* The work-items of the group that a place is in: first, and sizes. */
static void group_of(const struct shape *s, const size_t *place, size_t *first, size_t *size) {
    for (int i = 0; i < 3; i++) {
        first[i] = place[i] / s->local[i] * s->local[i];
        size[i] = s->global[i] - first[i] < s->local[i] ? s->global[i] - first[i] : s->local[i];
    }
}

static cl_uint item_grouped(const struct shape *s, const size_t *place, cl_uint rounds) {
    size_t first[3], size[3];
    group_of(s, place, first, size);
    cl_uint id = 0;
    for (int i = 0; i < 3; i++)
        id = id * 50 + (cl_uint)(place[i] - first[i] + size[i] * (first[i] / s->local[i]) * rounds);
    return id;
}

static cl_uint item_sharing(const struct shape *s, const size_t *place, cl_uint rounds) {
    static cl_uint total[256], next[256];
    size_t first[3], size[3];
    group_of(s, place, first, size);
    size_t count = size[0] * size[1] * size[2];
    for (size_t k = 0; k < count; k++)
        total[k] = (cl_uint)(s->offset[1] + first[1] + k / size[0] % size[1]);
    for (cl_uint i = 0; i < rounds; i++) {
        for (size_t k = 0; k < count; k++) {
            size_t other = (k + 1) % count;
            next[k] = total[k] + (cl_uint)(s->offset[0] + first[0] + other % size[0]) + total[other];
        }
        memcpy(total, next, count * sizeof *total);
    }
    size_t me[3];
    for (int i = 0; i < 3; i++)
        me[i] = place[i] - first[i];
    return total[(me[2] * size[1] + me[1]) * size[0] + me[0]];
}

static cl_uint item_tree(const struct shape *s, const size_t *place, cl_uint rounds) {
    size_t first[3], size[3];
    group_of(s, place, first, size);
    cl_uint sum = rounds;
    for (size_t x = 0; x < size[0]; x++)
        sum += (cl_uint)(s->offset[0] + first[0] + x) + (cl_uint)(s->offset[1] + place[1]) * rounds;
    return sum;
}

static cl_uint item_mixing(const struct shape *s, const size_t *place, cl_uint rounds) {
    size_t first[3], size[3], next[3];
    group_of(s, place, first, size);
    cl_uint total = (cl_uint)((place[0] + s->offset[0]) * 3 + (place[1] + s->offset[1]) * 5 +
                              (place[2] + s->offset[2]) * 7);
    for (cl_uint i = 0; i < rounds * 8; i++)
        total = (total ^ total >> 7 ^ i) * 2654435761u + (total << 3) + (cl_uint)(place[1] - first[1]);
    int carry = 1; /* on to the next work-item, or the first */
    for (int i = 0; i < 3; i++) {
        next[i] = place[i] - first[i] + carry;
        carry = next[i] == size[i];
        next[i] = first[i] + (carry ? 0 : next[i]) + s->offset[i];
    }
    return total + (cl_uint)(next[0] * 3 + next[1] * 5 + next[2] * 7 + first[1] / s->local[1]);
}

int main(void) {
    cl_device_id device = the_device();
    cl_context context = make_context(device);
    cl_command_queue queue = make_queue(context, device, 0);
    static const char *const names[] = {"plain", "grouped", "sharing", "tree", "mixing", "required"};
    cl_mem out = make_buffer(context, LARGEST * sizeof(cl_uint));
    static cl_uint got[LARGEST];
    for (int k = 0; k < 6; k++) {
        cl_kernel kernel = make_kernel_with(context, device, SOURCE, "-cl-std=CL3.0", names[k]);
        cl_uint rounds = 3;
        OK(clSetKernelArg(kernel, 0, sizeof out, &out));
        OK(clSetKernelArg(kernel, 1, sizeof rounds, &rounds));
        for (size_t n = 0; n < sizeof SHAPES / sizeof *SHAPES; n++) {
            const struct shape *s = &SHAPES[n];
            if (!s->local[0] && k)
                continue; /* whoever asks for its group must say which */
            if (k == 5 && (s->local[0] != 4 || s->local[1] != 4 || s->local[2] != 4))
                continue;
            cl_uint zero = 0;
            OK(clEnqueueFillBuffer(queue, out, &zero, sizeof zero, 0, sizeof got, 0, NULL, NULL));
            OK(clEnqueueNDRangeKernel(queue, kernel, 3, s->offset, s->global, s->local[0] ? s->local : NULL,
                                      0, NULL, NULL));
            OK(clEnqueueReadBuffer(queue, out, CL_TRUE, 0, sizeof got, got, 0, NULL, NULL));
            size_t at = 0, place[3];
            for (place[2] = 0; place[2] < s->global[2]; place[2]++)
                for (place[1] = 0; place[1] < s->global[1]; place[1]++)
                    for (place[0] = 0; place[0] < s->global[0]; place[0]++, at++) {
                        size_t id[3] = {place[0] + s->offset[0], place[1] + s->offset[1],
                                        place[2] + s->offset[2]};
                        EXPECT(got[at], k == 0   ? item_plain(id, rounds)
                                        : k == 1 ? item_grouped(s, place, rounds)
                                        : k == 2 ? item_sharing(s, place, rounds)
                                        : k == 3 ? item_tree(s, place, rounds)
                                                 : item_mixing(s, place, rounds));
                    }
            for (; at < LARGEST; at++)
                EXPECT(got[at], 0u);
        }
        OK(clReleaseKernel(kernel));
    }
    return 0;
}
