/* Measures what this machine can do at most, and keeps it in the cache folder. */
#define _GNU_SOURCE
#include "profile/roofline.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own_thread.h"
#include "base/settings.h"
#include "base/thread.h"

/* Rounds, of which the best one counts: short ones, for other programs may want the CPUs, too. */
enum {
    MOST_THREADS = 512,
    ROUNDS = 16,
    QUARTERS = 4,
    KINDS = 3,
    ARITHMETIC_TIME = 3000000,
    STACK = 64 << 10
};
/* Bytes of all threads together, and of each at least: more than caches hold. */
static const size_t MEMORY = (size_t)192 << 20, LEAST_MEMORY = (size_t)16 << 20;

/* Steps of independent chains of fma in vectors: enough chains to fill any pipeline, and few enough for the
 * registers that there are. */
enum { STEPS = 1000 };
#define CHAINS_12(x) x(0) x(1) x(2) x(3) x(4) x(5) x(6) x(7) x(8) x(9) x(10) x(11)

#define BEGIN(i) sum##i = START(i),
#define STEP(i) sum##i = NEXT(sum##i);
#define END(i) first += sum##i;

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#define CHAINS CHAINS_12
#define CHAIN_COUNT 12.0

#define START(i) _mm512_set1_ps(0.01f * i)
#define NEXT(sum) _mm512_fmadd_ps(sum, factor, addend)
__attribute__((noinline, target("avx512f"))) static float with_512(void) {
    __m512 CHAINS(BEGIN) factor = _mm512_set1_ps(0.999f), addend = _mm512_set1_ps(0.001f), first = addend;
    for (int step = 0; step < STEPS; step++) {
        CHAINS(STEP)
    }
    CHAINS(END)
    return first[0];
}
#undef START
#undef NEXT
#define START(i) _mm256_set1_ps(0.01f * i)
#define NEXT(sum) _mm256_fmadd_ps(sum, factor, addend)
__attribute__((noinline, target("avx2,fma"))) static float with_256(void) {
    __m256 CHAINS(BEGIN) factor = _mm256_set1_ps(0.999f), addend = _mm256_set1_ps(0.001f), first = addend;
    for (int step = 0; step < STEPS; step++) {
        CHAINS(STEP)
    }
    CHAINS(END)
    return first[0];
}
#undef START
#undef NEXT
#define START(i) _mm_set1_ps(0.01f * i)
#define NEXT(sum) _mm_add_ps(_mm_mul_ps(sum, factor), addend)
__attribute__((noinline)) static float with_128(void) {
    __m128 CHAINS(BEGIN) factor = _mm_set1_ps(0.999f), addend = _mm_set1_ps(0.001f), first = addend;
    for (int step = 0; step < STEPS; step++) {
        CHAINS(STEP)
    }
    CHAINS(END)
    return first[0];
}

typedef float (*arithmetic)(void);

/* Bits of the widest registers that the CPU has and the system keeps. (The compiler's way to ask needs its
 * run-time library, which wheels are linked without.) */
static int register_bits(void) {
    enum { OF_256 = 0x06, OF_512 = 0xe6 }; /* of XCR0: the registers that the system keeps */
    unsigned a, b, c, d, kept, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
        return 128;
    bool has_fma = c & bit_FMA;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d))
        return 128;
    __asm__ volatile("xgetbv" : "=a"(kept), "=d"(high) : "c"(0));
    if (b & bit_AVX512F && (kept & OF_512) == OF_512)
        return 512;
    return b & bit_AVX2 && has_fma && (kept & OF_256) == OF_256 ? 256 : 128;
}

static arithmetic widest(double *lanes) {
    int bits = register_bits();
    *lanes = bits / 32;
    return bits == 512 ? with_512 : bits == 256 ? with_256 : with_128;
}
#else
#include <arm_neon.h>
#define CHAINS(x) CHAINS_12(x) x(12) x(13) x(14) x(15)
#define CHAIN_COUNT 16.0

#define START(i) vdupq_n_f32(0.01f * i)
#define NEXT(sum) vfmaq_f32(addend, sum, factor)
__attribute__((noinline)) static float with_128(void) {
    float32x4_t CHAINS(BEGIN) factor = vdupq_n_f32(0.999f), addend = vdupq_n_f32(0.001f), first = addend;
    for (int step = 0; step < STEPS; step++) {
        CHAINS(STEP)
    }
    CHAINS(END)
    return first[0];
}

typedef float (*arithmetic)(void);

static arithmetic widest(double *lanes) {
    *lanes = 4;
    return with_128;
}
#endif

/* What the threads of a measurement share. */
struct measurement {
    uint32_t threads;
    size_t memory; /* of each */
    _Atomic uint32_t state;
    pthread_barrier_t barrier;
    uint64_t starts[MOST_THREADS], ends[MOST_THREADS];
    double amounts[MOST_THREADS];
    double best[KINDS]; /* of arithmetic, of reading, of copying: a second */
};

enum { WAIT, GO, GIVE_UP }; /* the states */

struct measurer {
    struct measurement *of;
    uint32_t number;
    uint8_t *memory; /* NULL: there was none */
    pthread_t thread;
};

static double calculate(double lanes, arithmetic function, volatile float *sink) {
    double amount = 0;
    for (uint64_t start = cld_now(); cld_now() - start < ARITHMETIC_TIME;)
        for (int i = 0; i < 10; i++) {
            *sink = function();
            amount += 2 * CHAIN_COUNT * STEPS * lanes;
        }
    return amount;
}

/* A load of each line's first word makes the whole line come. */
static double read_all(const uint8_t *memory, size_t size, volatile float *sink) {
    enum { WORDS = 8 };
    typedef uint64_t words __attribute__((vector_size(8 * WORDS)));
    words sum = {0}, more;
    for (size_t at = 0; at + 4 * sizeof more <= size; at += 4 * sizeof more)
        for (size_t i = 0; i < 4; i++) {
            memcpy(&more, memory + at + i * sizeof more, sizeof more);
            sum |= more;
        }
    *sink = (float)sum[0];
    return (double)size;
}

static double copy_half(uint8_t *memory, size_t size) {
    memcpy(memory, memory + size / 2, size / 2);
    return (double)size;
}

/* One round: all threads begin together, and it lasts from the first to the last. */
static void take_round(struct measurer *self, int round, int kind, double lanes, arithmetic function) {
    struct measurement *of = self->of;
    size_t size = of->memory / QUARTERS; /* the others have driven it out of the caches */
    uint8_t *memory = self->memory + (size_t)(round % QUARTERS) * size;
    volatile float sink;
    pthread_barrier_wait(&of->barrier);
    of->starts[self->number] = cld_now();
    of->amounts[self->number] = kind == 0   ? calculate(lanes, function, &sink)
                                : kind == 1 ? read_all(memory, size, &sink)
                                            : copy_half(memory, size);
    of->ends[self->number] = cld_now();
    pthread_barrier_wait(&of->barrier);
    if (self->number)
        return;
    uint64_t start = of->starts[0], end = of->ends[0];
    double amount = 0;
    for (uint32_t i = 0; i < of->threads; i++) {
        start = of->starts[i] < start ? of->starts[i] : start;
        end = of->ends[i] > end ? of->ends[i] : end;
        amount += of->amounts[i];
    }
    double speed = amount * 1e9 / (double)(end > start ? end - start : 1);
    of->best[kind] = speed > of->best[kind] ? speed : of->best[kind];
}

static void *measure_one(void *argument) {
    struct measurer *self = argument;
    double lanes;
    arithmetic function = widest(&lanes);
    memset(self->memory, 1, self->of->memory); /* its pages are where this thread runs */
    for (int kind = 0; kind < KINDS; kind++)
        for (int round = 0; round < ROUNDS; round++)
            take_round(self, round, kind, lanes, function);
    return NULL;
}

static void *map_memory(size_t size) {
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static void *begin_one(void *argument) {
    struct measurer *self = argument;
    while (atomic_load(&self->of->state) == WAIT)
        cld_futex_wait(&self->of->state, WAIT);
    return atomic_load(&self->of->state) == GO ? measure_one(self) : NULL;
}

static bool measure_with(struct measurement *of, struct measurer *measurers) {
    uint32_t made = 1; /* this thread is the first */
    pthread_barrier_init(&of->barrier, NULL, of->threads);
    while (made < of->threads && !cld_own_thread(&measurers[made].thread, NULL, STACK, CLD_DRIVER_THREAD,
                                                 begin_one, &measurers[made]))
        made++;
    bool are_all = made == of->threads;
    atomic_store(&of->state, are_all ? GO : GIVE_UP);
    cld_futex_wake(&of->state, INT_MAX);
    begin_one(&measurers[0]);
    for (uint32_t i = 1; i < made; i++)
        pthread_join(measurers[i].thread, NULL);
    pthread_barrier_destroy(&of->barrier);
    return are_all;
}

static bool measure(uint32_t threads, struct cld_roofline *roofline) {
    struct measurement *of = calloc(1, sizeof *of);
    struct measurer *measurers = calloc(threads, sizeof *measurers);
    bool is_ready = of && measurers;
    for (uint32_t i = 0; is_ready && i < threads; i++) {
        of->threads = threads;
        of->memory = MEMORY / threads < LEAST_MEMORY ? LEAST_MEMORY : MEMORY / threads & ~(size_t)4095;
        measurers[i] = (struct measurer){.of = of, .number = i, .memory = map_memory(of->memory)};
        is_ready = measurers[i].memory;
    }
    bool is_done = is_ready && measure_with(of, measurers);
    if (is_done) {
        roofline->threads = threads;
        roofline->operations = of->best[0];
        roofline->bytes = of->best[1] > of->best[2] ? of->best[1] : of->best[2];
    }
    for (uint32_t i = 0; measurers && i < threads; i++)
        if (measurers[i].memory)
            munmap(measurers[i].memory, of->memory);
    free(measurers);
    free(of);
    return is_done;
}

/* Of the CPU and the number of threads: homes may be shared by machines. FNV-1a of what the system says of
 * the first CPU. */
static uint64_t hash_of_machine(void) {
    char text[4096];
    int file = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
    ssize_t size = file < 0 ? 0 : read(file, text, sizeof text - 1);
    if (file >= 0)
        close(file);
    text[size < 0 ? 0 : size] = 0;
    uint64_t hash = 14695981039346656037u;
    for (const char *line = text; *line; line += strcspn(line, "\n") + (strchr(line, '\n') != NULL)) {
        static const char *const names[] = {"model name",      "cpu family", "model\t",
                                            "CPU implementer", "CPU part",   "CPU variant"};
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            for (size_t k = 0; !strncmp(line, names[i], strlen(names[i])) && line[k] && line[k] != '\n'; k++)
                hash = (hash ^ (uint8_t)line[k]) * 1099511628211u;
        if (!strncmp(line, "\n", 1))
            break;
    }
    return hash;
}

/* Where it is kept: in the folder of the user's own that the compile cache has (cl_driver/jit/cache.py), if
 * that is there. False: nowhere. */
static bool find_place(uint32_t threads, char *path, size_t size) {
    const char *folder = cld_setting(CL_DRIVER_CACHE_DIR_SETTING), *below = "";
    if (!cld_is_trusted() || !cld_setting_int(CL_DRIVER_CACHE_SIZE_SETTING, 1))
        return false;
    if (!*folder) {
        const char *base = getenv("XDG_CACHE_HOME");
        below = base && *base == '/' ? "/cl_driver" : "/.cache/cl_driver";
        folder = base && *base == '/' ? base : getenv("HOME");
        if (!folder || *folder != '/')
            return false;
    }
    int length = snprintf(path, size, "%s%s/v2-%u/roofline-%016llx-%u", folder, below, (unsigned)geteuid(),
                          (unsigned long long)hash_of_machine(), threads);
    return length > 0 && (size_t)length < size;
}

static bool read_kept(const char *path, struct cld_roofline *roofline) {
    char text[128];
    struct stat about;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0)
        return false;
    bool is_ours = !fstat(file, &about) && about.st_uid == geteuid() && S_ISREG(about.st_mode);
    ssize_t size = is_ours ? read(file, text, sizeof text - 1) : -1;
    close(file);
    if (size <= 0)
        return false;
    text[size] = 0;
    char *end;
    roofline->operations = (double)strtoull(text, &end, 10);
    roofline->bytes = (double)strtoull(end, &end, 10);
    return *end == '\n' && roofline->operations > 0 && roofline->bytes > 0;
}

/* Who reads it meanwhile has the old one or the new one. */
static void keep(const char *path, const struct cld_roofline *roofline) {
    char text[128], temporary[4200];
    int size = snprintf(text, sizeof text, "%.0f %.0f\n", roofline->operations, roofline->bytes);
    snprintf(temporary, sizeof temporary, "%s.tmp-%d", path, (int)getpid());
    int file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0)
        return;
    bool is_whole = write(file, text, (size_t)size) == size;
    close(file);
    if (!is_whole || rename(temporary, path))
        unlink(temporary);
}

bool cld_roofline_get(uint32_t threads, bool may_measure, struct cld_roofline *roofline) {
    char path[4096];
    if (!threads || threads > MOST_THREADS)
        return false;
    roofline->threads = threads;
    bool has_place = find_place(threads, path, sizeof path);
    if (has_place && read_kept(path, roofline))
        return true;
    if (!may_measure || !measure(threads, roofline))
        return false;
    if (has_place)
        keep(path, roofline);
    return true;
}
