// Kernels for SYCL's compiler at run time; sycl_host.cpp has the models.
#include <array>
#include <cmath>
#include <complex>
#include <sycl/sycl.hpp>

namespace ext = sycl::ext::oneapi;
namespace exp1 = sycl::ext::oneapi::experimental;
using sycl::memory_order;
using sycl::memory_scope;

#define KERNEL(n) extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((exp1::nd_range_kernel<n>)) void

template <int N = 1> static auto item() {
    return ext::this_work_item::get_nd_item<N>();
}

#ifdef ONLY_groups
KERNEL(1) groups(const int *in, int *out) {
    auto it = item();
    auto g = it.get_group();
    size_t i = it.get_global_linear_id();
    int x = in[i];
    out[4 * i] = sycl::reduce_over_group(g, x, sycl::plus<>());
    out[4 * i + 1] = sycl::exclusive_scan_over_group(g, x, sycl::plus<>());
    out[4 * i + 2] = sycl::group_broadcast(g, x, 3) + 100000 * sycl::any_of_group(g, x == 7);
    out[4 * i + 3] = sycl::inclusive_scan_over_group(g, x, sycl::maximum<>());
}
#endif

#ifdef ONLY_sub_groups
KERNEL(1) sub_groups(const int *in, int *out) {
    auto it = item();
    auto sg = it.get_sub_group();
    size_t i = it.get_global_linear_id(), lane = sg.get_local_linear_id(), size = sg.get_max_local_range()[0];
    int x = in[i];
    out[6 * i] = size;
    out[6 * i + 1] = sycl::permute_group_by_xor(sg, x, 1);
    int right = sycl::shift_group_left(sg, x, 1);
    out[6 * i + 2] = lane + 1 < size ? right : -1;
    out[6 * i + 3] = sycl::select_from_group(sg, x, (lane * 3 + 1) % size);
    out[6 * i + 4] = sycl::inclusive_scan_over_group(sg, x, sycl::plus<>());
    auto mask = ext::group_ballot(sg, x & 1);
    out[6 * i + 5] = mask.count();
}
#endif

#ifdef ONLY_joint
KERNEL(1) joint(const int *in, int *out, int n) {
    auto g = item().get_group();
    const int *begin = in + g.get_group_linear_id() * n;
    int *to = out + g.get_group_linear_id() * (n + 1);
    sycl::joint_inclusive_scan(g, begin, begin + n, to, sycl::plus<int>());
    int least = sycl::joint_reduce(g, begin, begin + n, sycl::minimum<int>());
    if (g.leader())
        to[n] = least;
}
#endif

#ifdef ONLY_atomics
KERNEL(1) atomics(int *i, float *f, double *d, unsigned long long *u) {
    int k = item().get_global_linear_id();
    sycl::atomic_ref<int, memory_order::relaxed, memory_scope::device>(i[0]).fetch_add(k);
    sycl::atomic_ref<float, memory_order::acq_rel, memory_scope::device>(f[0]).fetch_add(1.5f);
    sycl::atomic_ref<float, memory_order::relaxed, memory_scope::device>(f[1]).fetch_max(k);
    sycl::atomic_ref<double, memory_order::relaxed, memory_scope::system>(d[0]).fetch_sub(0.25);
    sycl::atomic_ref<unsigned long long, memory_order::seq_cst, memory_scope::device>(u[0]).fetch_or(
        1ull << (k & 63));
    sycl::atomic_ref<unsigned long long, memory_order::relaxed, memory_scope::device> word(u[1]);
    unsigned long long old = word.load();
    while (!word.compare_exchange_weak(old, old + 3)) {
    }
}
#endif

#ifdef ONLY_local_memory
KERNEL(1) local_memory(int *data, sycl::local_accessor<int, 1> tile) {
    auto it = item();
    int i = it.get_local_linear_id();
    tile[i] = data[it.get_global_linear_id()];
    sycl::group_barrier(it.get_group());
    data[it.get_global_linear_id()] = tile[63 - i];
}
#endif

#ifdef ONLY_transpose
KERNEL(2) transpose(const float *in, float *out, int n, sycl::local_accessor<float, 2> block) {
    auto it = item<2>();
    auto g = it.get_group();
    block[it.get_local_id(0)][it.get_local_id(1)] = in[it.get_global_id(0) * n + it.get_global_id(1)];
    sycl::group_barrier(g);
    int row = g.get_group_id(1) * 8 + it.get_local_id(0), column = g.get_group_id(0) * 8 + it.get_local_id(1);
    out[row * n + column] = block[it.get_local_id(1)][it.get_local_id(0)];
}
#endif

#ifdef ONLY_math
KERNEL(1) math(const float *in, float *out, double *wide) {
    size_t i = item().get_global_linear_id(), n = item().get_global_range(0);
    float x = in[i];
    out[i] = sycl::pow(x, 1.5f) + std::sin(x);
    out[n + i] = sycl::native::exp(-x) + sycl::fma(x, x, 1.0f);
    out[2 * n + i] = std::abs(std::complex<float>(x, 1.0f) * std::complex<float>(0.0f, 1.0f));
    sycl::float4 v(x, 2 * x, 3 * x, 4 * x);
    out[3 * n + i] = sycl::dot(v, sycl::float4(v.swizzle<3, 2, 1, 0>())) + sycl::length(sycl::float2(v.lo()));
    wide[i] = std::exp((double)x) + std::lgamma((double)x + 1.0);
    sycl::half h = x;
    ext::bfloat16 b = x;
    out[4 * n + i] = (float)(h * sycl::half(2.0f)) + (float)b;
}
#endif

#ifdef ONLY_structures
template <int N> struct Captured {
    std::array<int *, N> pointers;
    struct {
        unsigned low : 3, high : 11;
    } bits;
    char letter;
    double factor;
};

KERNEL(1) structures(Captured<2> captured, int n) {
    int i = item().get_global_linear_id();
    if (i >= n)
        return;
    int x = captured.pointers[i & 1][i];
    switch (x % 5) {
    case 0:
        x += captured.bits.low;
        break;
    case 1:
        x *= captured.bits.high;
        break;
    case 2:
        for (int k = 0; k < i % 7; k++)
            x ^= captured.letter << k;
        break;
    default:
        x = int(x * captured.factor);
    }
    captured.pointers[i & 1][i] = x;
}
#endif

#ifdef ONLY_say
KERNEL(1) say(int n) {
    if (item().get_global_linear_id() == 2)
        exp1::printf("kernel %d %s %.2f\n", n, "says", 1.25);
}
#endif
