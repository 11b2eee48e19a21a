// Kernels of ../kernels on integers by hand, and a stencil. See kernels.c.
#include "pool.h"
#include <string.h>
#if BYTES == 64
#include <immintrin.h>
#endif

// ---- stencil5: the edge is copied.

struct stencil5 {
    float *to;
    const float *from;
    size_t n;
};

static void stencil5_part(const void *context, size_t first, size_t last) {
    struct stencil5 s = *(const struct stencil5 *)context;
    for (size_t y = first; y < last; y++) {
        const float *from = s.from + y * s.n;
        float *to = s.to + y * s.n;
        if (y == 0 || y == s.n - 1) {
            memcpy(to, from, s.n * sizeof(float));
            continue;
        }
        for (size_t x = 0; x < s.n; x += LANES) {
            const float *at = from + x;
            floats here = load(at);
            floats others = load(at - 1) + load(at + 1) + load(at - s.n) + load(at + s.n);
            store(to + x, fma_of(splat(0.125f), others, 0.5f * here));
        }
        to[0] = from[0], to[s.n - 1] = from[s.n - 1];
    }
}

KERNEL(stencil5) {
    struct stencil5 s = {ARGUMENT(float *, 0), ARGUMENT(float *, 1), ARGUMENT(int, 2)};
    run(stencil5_part, &s, global_size[1], 32);
}

// ---- blur_bytes: sums of 25 bytes fit into 16 bits; bytes of even and odd places in registers of their own,
// and each vector that is read is added to all of several rows that need it.

struct blur {
    uint8_t *to;
    const uint8_t *from;
    int width, height;
};

INLINE int clamp(int x, int most) {
    return x < 0 ? 0 : x > most ? most : x;
}

static void blur_pixel(const struct blur *s, int x, int y) {
    for (int channel = 0; channel < 4; channel++) {
        unsigned sum = 12;
        for (int dy = -2; dy <= 2; dy++)
            for (int dx = -2; dx <= 2; dx++)
                sum += s->from[4 * ((size_t)clamp(y + dy, s->height - 1) * s->width +
                                    clamp(x + dx, s->width - 1)) +
                               channel];
        s->to[4 * ((size_t)y * s->width + x) + channel] = sum / 25;
    }
}

// s / 25 for each s below 43,000.
INLINE shorts divide_by_25(shorts s) {
#if BYTES == 64
    return (shorts)_mm512_mulhi_epu16((__m512i)s, _mm512_set1_epi16(5243)) >> 1;
#else
    typedef uint32_t wide __attribute__((vector_size(2 * BYTES)));
    return __builtin_convertvector(__builtin_convertvector(s, wide) * 5243 >> 16, shorts) >> 1;
#endif
}

enum { BLUR_ROWS = 4 };

INLINE void blur_vectors(const struct blur *s, int x, int y) {
    shorts even[BLUR_ROWS], odd[BLUR_ROWS];
    EACH(r, BLUR_ROWS) even[r] = odd[r] = (shorts){} + 12;
    EACH(row, BLUR_ROWS + 4) {
        const uint8_t *line = s->from + 4 * ((size_t)clamp(y + row - 2, s->height - 1) * s->width + x);
        EACH(k, 5) {
            shorts both = *(const shorts_anywhere *)(line + 4 * k - 8), low = both & 255, high = both >> 8;
            EACH(r, BLUR_ROWS) if (row >= r && row <= r + 4) even[r] += low, odd[r] += high;
        }
    }
    EACH(r, BLUR_ROWS) {
        shorts result = divide_by_25(even[r]) | divide_by_25(odd[r]) << 8;
        *(shorts_anywhere *)(s->to + 4 * ((size_t)(y + r) * s->width + x)) = result;
    }
}

static void blur_part(const void *context, size_t first, size_t last) {
    struct blur s = *(const struct blur *)context;
    int end = s.width - 2;
    for (int y = (int)first * BLUR_ROWS; y < (int)last * BLUR_ROWS; y += BLUR_ROWS) {
        int x = 2;
        for (; x + LANES <= end; x += LANES)
            blur_vectors(&s, x, y);
        blur_vectors(&s, end - LANES, y);
        for (int r = 0; r < BLUR_ROWS; r++) {
            blur_pixel(&s, 0, y + r), blur_pixel(&s, 1, y + r);
            blur_pixel(&s, end, y + r), blur_pixel(&s, end + 1, y + r);
        }
    }
}

KERNEL(blur_bytes) {
    struct blur s = {ARGUMENT(uint8_t *, 0), ARGUMENT(uint8_t *, 1), ARGUMENT(int, 2), ARGUMENT(int, 3)};
    run(blur_part, &s, global_size[1] / BLUR_ROWS, 4);
}

// ---- sha256: all of a message's words and the state are registers.

static const uint32_t CONSTANTS[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

INLINE uints right(uints x, int n) {
    return x >> n | x << (32 - n);
}

INLINE uints digest(uints first, uints second) {
    static const uint32_t START[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    uints w[16] = {first, second}, s[8], result = {};
    w[2] += 0x80000000, w[15] += 64;
    EACH(k, 8) s[k] = (uints){} + START[k];
    EACH(t, 64) {
        uints next = w[(t + 1) & 15], late = w[(t + 14) & 15];
        if (t >= 16)
            w[t & 15] += w[(t + 9) & 15] + (right(next, 7) ^ right(next, 18) ^ next >> 3) +
                         (right(late, 17) ^ right(late, 19) ^ late >> 10);
        // The names of the state's words move on by one each round; the words stay.
        uints a = s[-t & 7], b = s[(1 - t) & 7], c = s[(2 - t) & 7], e = s[(4 - t) & 7];
        uints f = s[(5 - t) & 7], g = s[(6 - t) & 7], *d = &s[(3 - t) & 7], *h = &s[(7 - t) & 7];
        *h += (right(e, 6) ^ right(e, 11) ^ right(e, 25)) + ((e & f) | (~e & g)) + CONSTANTS[t] + w[t & 15];
        *d += *h;
        *h += (right(a, 2) ^ right(a, 13) ^ right(a, 22)) + ((a & b) | (c & (a | b)));
    }
    EACH(k, 8) result ^= s[k] + START[k];
    return result;
}

struct sha256 {
    uint32_t *to;
    const uint32_t *message;
};

static void sha256_part(const void *context, size_t first, size_t last) {
    struct sha256 s = *(const struct sha256 *)context;
    for (size_t i = first; i < last; i += LANES) {
        uints words[2];
        for (int k = 0; k < LANES; k++)
            EACH(j, 2) words[j][k] = s.message[2 * (i + k) + j];
        *(uints_anywhere *)(s.to + i) = digest(words[0], words[1]);
    }
}

KERNEL(sha256) {
    struct sha256 s = {ARGUMENT(uint32_t *, 0), ARGUMENT(uint32_t *, 1)};
    run(sha256_part, &s, global_size[0], 1024);
}
