// Kernels of ../kernels by hand, as somebody writes them who knows the CPU and wants what the kernel
// computes: the same operations for each work-item, with the accuracy that OpenCL C asks of functions.
// Floating-point ones; integers.c has the others.
#include "pool.h"
#if BYTES == 64
#include <immintrin.h>
#endif

// ---- triad: two streams in, one out that passes the caches by.

struct triad {
    float *a;
    const float *b, *c;
    float scale;
};

static void triad_part(const void *context, size_t first, size_t last) {
    struct triad s = *(const struct triad *)context;
    for (size_t i = first; i < last; i += 4 * LANES)
        EACH(k, 4) {
            size_t at = i + k * LANES;
            __builtin_nontemporal_store(load(s.b + at) + s.scale * load(s.c + at), (floats *)(s.a + at));
        }
}

KERNEL(triad) {
    struct triad s = {ARGUMENT(float *, 0), ARGUMENT(float *, 1), ARGUMENT(float *, 2), ARGUMENT(float, 3)};
    run(triad_part, &s, global_size[0], 16384);
}

// ---- mandelbrot: tiles of one vector by four rows, whose pixels leave the loop at about the same time.

struct mandelbrot {
    int *to, width;
    float left, top, step;
    int limit;
};

// Masks of lanes: registers of their own where the CPU has them.
#if BYTES == 64
typedef __mmask16 mask;
#define ALL_LANES 0xFFFF
#define WHERE(mask, a, b) (ints) _mm512_mask_mov_epi32((__m512i)(b), mask, (__m512i)(a))
#define LESS(mask, a, b) _mm512_mask_cmp_ps_mask(mask, (__m512)(a), (__m512)(b), _CMP_LT_OQ)
#define ANY(mask) (mask)
#else
typedef ints mask;
#define ALL_LANES ((ints){} - 1)
#define WHERE(mask, a, b) ((mask & (a)) | (~mask & (b)))
#define LESS(mask, a, b) (mask & (a < b))
#define ANY(mask) __builtin_reduce_or(mask)
#endif

static void mandelbrot_part(const void *context, size_t first, size_t last) {
    enum { ROWS = 4 };
    struct mandelbrot m = *(const struct mandelbrot *)context;
    for (size_t row = first * ROWS; row < last * ROWS; row += ROWS)
        for (int column = 0; column < m.width; column += LANES) {
            floats cx = m.left + __builtin_convertvector(numbers() + column, floats) * m.step;
            floats x[ROWS] = {}, y[ROWS] = {}, cy[ROWS];
            ints n[ROWS] = {};
            mask in[ROWS];
            EACH(k, ROWS) {
                cy[k] = splat(m.top + (float)(row + k) * m.step);
                in[k] = ALL_LANES;
            }
            for (int count = 1; count <= m.limit && ANY(in[0] | in[1] | in[2] | in[3]); count++) {
                EACH(k, ROWS) {
                    floats yy = y[k] * y[k];
                    in[k] = LESS(in[k], fma_of(x[k], x[k], yy), splat(4.0f));
                    n[k] = WHERE(in[k], (ints){} + count, n[k]);
                    y[k] = fma_of(x[k] + x[k], y[k], cy[k]);
                    x[k] = fma_of(x[k], x[k], cx - yy);
                }
            }
            EACH(k, ROWS) * (ints_anywhere *)(m.to + (row + k) * m.width + column) = n[k];
        }
}

KERNEL(mandelbrot) {
    struct mandelbrot m = {ARGUMENT(int *, 0), ARGUMENT(int, 1),   ARGUMENT(float, 2),
                           ARGUMENT(float, 3), ARGUMENT(float, 4), ARGUMENT(int, 5)};
    run(mandelbrot_part, &m, global_size[1] / 4, 1);
}

// ---- matmul_tiled: accumulators of several rows and vectors in registers, the second operand in L2 cache.

enum { TALL = BYTES == 64 ? 8 : 4, WIDE = BYTES == 64 ? 3 : 2, PANEL = WIDE * LANES };

struct product {
    float *c;
    const float *a, *b;
    size_t n;
};

// TALL rows of PANEL columns; `panel` has PANEL floats for each of the n rows of b.
static void product_block(const struct product *p, const float *panel, size_t y, size_t x) {
    floats sum[TALL][WIDE] = {};
    const float *a = p->a + y * p->n;
    for (size_t k = 0; k < p->n; k++, panel += PANEL) {
        floats b[WIDE];
        EACH(v, WIDE) b[v] = load(panel + v * LANES);
        EACH(r, TALL) {
            floats each = splat(a[r * p->n + k]);
            EACH(v, WIDE) sum[r][v] = fma_of(each, b[v], sum[r][v]);
        }
    }
    EACH(r, TALL) EACH(v, WIDE) store(p->c + (y + r) * p->n + x + v * LANES, sum[r][v]);
}

static void product_part(const void *context, size_t first, size_t last) {
    const struct product *p = context;
    static _Thread_local float panel[4096 * PANEL] __attribute__((aligned(BYTES)));
    for (size_t x = first * PANEL; x < last * PANEL; x += PANEL) {
        for (size_t k = 0; k < p->n; k++)
            EACH(v, WIDE) store(panel + k * PANEL + v * LANES, load(p->b + k * p->n + x + v * LANES));
        for (size_t y = 0; y < p->n; y += TALL)
            product_block(p, panel, y, x);
    }
}

KERNEL(matmul_tiled) {
    struct product p = {ARGUMENT(float *, 0), ARGUMENT(float *, 1), ARGUMENT(float *, 2), ARGUMENT(int, 3)};
    run(product_part, &p, global_size[0] / PANEL, 1);
}

// 1 / sqrt(x) for an x that is neither 0 nor infinite, within 1.5 ulp.
INLINE floats reciprocal_root(floats x) {
#if BYTES == 64
    floats estimate = (floats)_mm512_rsqrt14_ps((__m512)x);
    return fma_of(fma_of(-(x * estimate), estimate, splat(1.0f)), estimate * 0.5f, estimate);
#else
    return 1.0f / __builtin_elementwise_sqrt(x);
#endif
}

// ---- nbody: several vectors of bodies meet each other body at a time.

struct nbody {
    float *acceleration;
    const float *body;
    int count;
    float softening;
};

static void nbody_part(const void *context, size_t first, size_t last) {
    enum { VECTORS = 4 };
    struct nbody s = *(const struct nbody *)context;
    for (size_t i = first; i < last; i += VECTORS * LANES) {
        floats here[VECTORS][3], sum[VECTORS][3] = {};
        EACH(v, VECTORS)
        for (int k = 0; k < LANES; k++)
            EACH(axis, 3) here[v][axis][k] = s.body[4 * (i + v * LANES + k) + axis];
        for (int j = 0; j < s.count; j++) {
            const float *other = s.body + 4 * (size_t)j;
            EACH(v, VECTORS) {
                floats d[3], square = splat(s.softening);
                EACH(axis, 3) d[axis] = other[axis] - here[v][axis];
                EACH(axis, 3) square = fma_of(d[axis], d[axis], square);
                floats r = reciprocal_root(square), weight = other[3] * r * (r * r);
                EACH(axis, 3) sum[v][axis] = fma_of(d[axis], weight, sum[v][axis]);
            }
        }
        EACH(v, VECTORS)
        for (int k = 0; k < LANES; k++) {
            EACH(axis, 3) s.acceleration[4 * (i + v * LANES + k) + axis] = sum[v][axis][k];
            s.acceleration[4 * (i + v * LANES + k) + 3] = 0;
        }
    }
}

KERNEL(nbody) {
    struct nbody s = {ARGUMENT(float *, 0), ARGUMENT(float *, 1), ARGUMENT(int, 2), ARGUMENT(float, 3)};
    run(nbody_part, &s, global_size[0], 4 * LANES);
}

// ---- reduce_tree: the upper levels of the tree are additions of whole vectors.

enum { GROUP = 256 };

struct sums {
    float *to;
    const float *from;
};

static void reduce_tree_part(const void *context, size_t first, size_t last) {
    struct sums s = *(const struct sums *)context;
    for (size_t group = first; group < last; group++) {
        floats sum[GROUP / LANES];
        EACH(k, GROUP / LANES) sum[k] = load(s.from + group * GROUP + k * LANES);
        UNROLL for (int half = GROUP / LANES / 2; half; half /= 2) EACH(k, half) sum[k] += sum[k + half];
#if BYTES == 64
        s.to[group] = _mm512_reduce_add_ps((__m512)sum[0]);
#else
        float total = 0;
        EACH(k, LANES) total += sum[0][k];
        s.to[group] = total;
#endif
    }
}

KERNEL(reduce_tree) {
    struct sums s = {ARGUMENT(float *, 0), ARGUMENT(float *, 1)};
    run(reduce_tree_part, &s, global_size[0] / GROUP, 64);
}
