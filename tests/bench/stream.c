/* The triad of STREAM with OpenMP: GB/s that all CPUs of the process get, the best of many rounds. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LARGE = 1 << 25 };

int main(void) {
    float *a = aligned_alloc(4096, LARGE * sizeof *a), *b = aligned_alloc(4096, LARGE * sizeof *b),
          *c = aligned_alloc(4096, LARGE * sizeof *c);
    if (!a || !b || !c)
        return 1;
#pragma omp parallel for schedule(static)
    for (int i = 0; i < LARGE; i++)
        a[i] = b[i] = c[i] = 1;
    double best = 0;
    for (int round = 0; round < 30; round++) {
        struct timespec start, end;
        clock_gettime(CLOCK_MONOTONIC, &start);
#pragma omp parallel for schedule(static)
        for (int i = 0; i < LARGE; i++)
            c[i] = a[i] + 3 * b[i];
        clock_gettime(CLOCK_MONOTONIC, &end);
        double ns = (end.tv_sec - start.tv_sec) * 1e9 + (end.tv_nsec - start.tv_nsec);
        double speed = 3.0 * LARGE * sizeof *a / ns;
        best = speed > best ? speed : best;
    }
    printf("triad %.2f GB/s\n", best);
    return c[LARGE / 2] == 4 ? 0 : 1;
}
