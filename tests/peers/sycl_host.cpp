// Builds a file of SYCL kernels with SYCL's compiler at run time, runs them, and checks what they do.
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <sycl/sycl.hpp>
#include <vector>

namespace exp1 = sycl::ext::oneapi::experimental;

static int failures;

static void check(const char *name, bool right) {
    std::printf("%s: %s\n", name, right ? "ok" : "WRONG");
    failures += !right;
}

static bool close(double a, double b, double tolerance) {
    return std::fabs(a - b) <= tolerance * std::max(1.0, std::fabs(b));
}

template <int N> struct Captured {
    std::array<int *, N> pointers;
    struct {
        unsigned low : 3, high : 11;
    } bits;
    char letter;
    double factor;
};

// Stands for an argument in local memory.
template <typename T, int N> struct Local {
    sycl::range<N> size;
};

template <typename T> static T argument(sycl::handler &, T value) {
    return value;
}
template <typename T, int N> static auto argument(sycl::handler &h, Local<T, N> local) {
    return sycl::local_accessor<T, N>(local.size, h);
}

int main(int, char **arguments) {
    std::setvbuf(stdout, nullptr, _IONBF, 0);
    std::ifstream file(arguments[1]);
    std::string source((std::istreambuf_iterator<char>(file)), {});
    sycl::queue q{sycl::property::queue::in_order()};
    const int n = 256, group = 64;
    auto run = [&](const char *name, auto range, auto... values) {
        // One kernel at a time: SYCL's library (2026.2) dies of some programs of nine.
        std::string log, text = std::string("#define ONLY_") + name + "\n" + source;
        auto given =
            exp1::create_kernel_bundle_from_source(q.get_context(), exp1::source_language::sycl, text);
        auto built = exp1::build(given, exp1::properties{exp1::save_log{&log}});
        std::fputs(log.c_str(), stderr);
        auto kernel = built.ext_oneapi_get_kernel(name);
        q.submit([&](sycl::handler &h) {
            h.set_args(argument(h, values)...);
            h.parallel_for(range, kernel);
        });
        q.wait_and_throw();
    };
    sycl::nd_range<1> all(n, group);
    auto ints = [&](int count) { return sycl::malloc_shared<int>(count, q); };
    int *in = ints(n), *out = ints(8 * n);
    for (int i = 0; i < n; i++)
        in[i] = (i * 37 + 11) % 101 - 20;
    in[70] = 7;

    run("groups", all, in, out);
    bool right = true;
    for (int i = 0; i < n; i++) {
        int *first = in + i / group * group;
        right &= out[4 * i] == std::accumulate(first, first + group, 0);
        right &= out[4 * i + 1] == std::accumulate(first, in + i, 0);
        right &= out[4 * i + 2] == first[3] + 100000 * (std::find(first, first + group, 7) != first + group);
        right &= out[4 * i + 3] == *std::max_element(first, in + i + 1);
    }
    check("groups", right);

    run("sub_groups", all, in, out);
    right = out[0] >= 4 && out[0] <= group;
    for (int i = 0, size = out[0]; right && i < n; i++) {
        int lane = i % size, *first = in + i - lane, *o = out + 6 * i;
        right &= o[0] == size && o[1] == first[lane ^ 1] && o[2] == (lane + 1 < size ? first[lane + 1] : -1);
        right &= o[3] == first[(lane * 3 + 1) % size] && o[4] == std::accumulate(first, first + lane + 1, 0);
        right &= o[5] == std::count_if(first, first + size, [](int x) { return x & 1; });
    }
    check("sub_groups", right);

    int length = 50;
    run("joint", all, in, out, length);
    right = true;
    for (int g = 0; g < n / group; g++) {
        for (int k = 0; k < length; k++)
            right &=
                out[g * (length + 1) + k] == std::accumulate(in + g * length, in + g * length + k + 1, 0);
        right &= out[g * (length + 1) + length] == *std::min_element(in + g * length, in + (g + 1) * length);
    }
    check("joint", right);

    auto f = sycl::malloc_shared<float>(8 * n, q);
    auto d = sycl::malloc_shared<double>(n, q);
    auto u = sycl::malloc_shared<unsigned long long>(2, q);
    out[0] = 0, f[0] = 0, f[1] = -1, d[0] = 100, u[0] = u[1] = 0;
    run("atomics", all, out, f, d, u);
    check("atomics", out[0] == n * (n - 1) / 2 && f[0] == 1.5f * n && f[1] == n - 1 &&
                         d[0] == 100 - n / 4.0 && u[0] == ~0ull && u[1] == 3ull * n);

    std::copy(in, in + n, out);
    run("local_memory", all, out, Local<int, 1>{64});
    right = true;
    for (int i = 0; i < n; i++)
        right &= out[i] == in[i / group * group + 63 - i % group];
    check("local_memory", right);

    auto table = sycl::malloc_shared<float>(32 * 32, q), turned = sycl::malloc_shared<float>(32 * 32, q);
    std::iota(table, table + 32 * 32, 0.0f);
    run("transpose", sycl::nd_range<2>({32, 32}, {8, 8}), table, turned, 32, Local<float, 2>{{8, 9}});
    right = true;
    for (int i = 0; i < 32 * 32; i++)
        right &= turned[i] == table[i % 32 * 32 + i / 32];
    check("transpose", right);

    auto x = sycl::malloc_shared<float>(n, q);
    for (int i = 0; i < n; i++)
        x[i] = 0.25f + i / 32.0f;
    run("math", all, x, f, d);
    right = true;
    for (int i = 0; i < n; i++) {
        double v = x[i];
        right &= close(f[i], std::pow(v, 1.5) + std::sin(v), 1e-6);
        right &= close(f[n + i], std::exp(-v) + v * v + 1, 1e-5);
        right &= close(f[2 * n + i], std::sqrt(v * v + 1), 1e-6);
        right &= close(f[3 * n + i], 20 * v * v + std::sqrt(5.0) * v, 1e-6);
        right &= close(d[i], std::exp(v) + std::lgamma(v + 1), 1e-13);
        right &= close(f[4 * n + i], 3 * v, 1e-2);
    }
    check("math", right);

    Captured<2> captured{{ints(n), ints(n)}, {5, 1234}, 'k', 2.5};
    for (int i = 0; i < n; i++)
        captured.pointers[0][i] = captured.pointers[1][i] = i * 3;
    run("structures", all, captured, n - 6);
    right = true;
    for (int i = 0; i < n; i++) {
        int y = 3 * i, kind = y % 5, expected = y;
        if (i < n - 6) {
            expected = kind == 0 ? y + 5 : kind == 1 ? y * 1234 : int(y * 2.5);
            if (kind == 2) {
                expected = y;
                for (int k = 0; k < i % 7; k++)
                    expected ^= 'k' << k;
            }
        }
        right &= captured.pointers[i & 1][i] == expected && captured.pointers[~i & 1][i] == y;
    }
    check("structures", right);

    run("say", all, 12);
    std::printf("%d wrong\n", failures);
    return failures;
}
