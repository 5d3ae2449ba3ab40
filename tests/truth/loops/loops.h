/* What every loop of this folder shares: `PROGRAM rate KIB_SMALL KIB_LARGE` alternates between a
 * small and a large working set in slices of some milliseconds of CPU time and prints the median
 * ratio of their rates; `PROGRAM run KIB SECONDS` works on one working set only.
 *
 * A loop defines `struct work`, `prepare` and `step`, which does about as much whatever the size. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef uint64_t u64;

static volatile u64 sink;

static double cpu_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static u64 scramble(u64 *state) {
    u64 x = *state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return *state = x;
}

static void *memory(size_t bytes) {
    void *at = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    if (!at) exit(3);
    memset(at, 1, bytes);
    return at;
}

struct work;
static struct work *prepare(size_t bytes);
/* Does some work and returns how much, in units of its own. */
static u64 step(struct work *work);

static double slice(struct work *work, double seconds) {
    double start = cpu_seconds(), now = start;
    u64 done = 0;
    while (now - start < seconds) {
        done += step(work);
        now = cpu_seconds();
    }
    return (double)done / (now - start);
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

#define SLICES 9
#define SLICE_S 0.02

static void ratio(size_t small_bytes, size_t large_bytes) {
    struct work *small = prepare(small_bytes), *large = prepare(large_bytes);
    double ratios[SLICES];
    slice(small, SLICE_S);
    slice(large, SLICE_S);
    for (int i = 0; i < SLICES; i++) {
        double before = slice(small, SLICE_S), between = slice(large, 2 * SLICE_S);
        double after = slice(small, SLICE_S);
        ratios[i] = between / ((before + after) / 2);
    }
    qsort(ratios, SLICES, sizeof *ratios, by_value);
    printf("%.4f\n", ratios[SLICES / 2]);
}

int main(int argc, char **argv) {
    if (argc == 4 && !strcmp(argv[1], "rate")) {
        ratio((size_t)atol(argv[2]) << 10, (size_t)atol(argv[3]) << 10);
        return 0;
    }
    if (argc == 4 && !strcmp(argv[1], "run")) {
        struct work *work = prepare((size_t)atol(argv[2]) << 10);
        slice(work, atof(argv[3]));
        return 0;
    }
    fprintf(stderr, "usage: %s rate KIB_SMALL KIB_LARGE | run KIB SECONDS\n", argv[0]);
    return 2;
}
