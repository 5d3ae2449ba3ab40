/* Loops that go through memory in order; LOOP says which. */
#include "loops.h"

#define SUM 1      /* of 64-bit integers */
#define DOT 2      /* of doubles */
#define COPY 3
#define FILL 4
#define TRIAD 5    /* a = b + s c */
#define STRIDED 6  /* one word of every line */
#define BYTES 7    /* a byte at a time, with a test */
#define STENCIL 8  /* of doubles, three points */
#define MEMCPY 9   /* the C library's */
#define XOR 10     /* in place */
#define MINIMUM 11 /* of 32-bit integers */
#define MEMSET 12  /* the C library's, of all at once */

struct work { u64 n, at; double *a, *b, *c; };

static struct work *prepare(size_t bytes) {
    struct work *w = memory(sizeof *w);
    int arrays = LOOP == TRIAD ? 3 : LOOP == COPY || LOOP == DOT || LOOP == STENCIL || LOOP == MEMCPY ? 2 : 1;
    w->n = bytes / 8 / arrays / 512 * 512;
    w->at = 0;
    w->a = memory(w->n * 8);
    w->b = memory(arrays > 1 ? w->n * 8 : 8);
    w->c = memory(arrays > 2 ? w->n * 8 : 8);
    for (u64 i = 0; i < w->n; i++) w->a[i] = 1.0;
    return w;
}

/* Not known to the compiler, which would write a loop of known length out in full. */
static volatile int chunk_words = 512;

static u64 step(struct work *w) {
#if LOOP == MEMSET
    memset(w->a, 1, w->n * 8);
    __asm__ volatile("" : : "g"(w->a) : "memory");
    return w->n / chunk_words;
#endif
    u64 sum = 0;
    double real = 0;
    const int count = chunk_words;
    for (int chunk = 0; chunk < 16; chunk++) {
        double *restrict a = w->a + w->at, *restrict b = w->b + (LOOP == SUM ? 0 : w->at);
        double *restrict c = w->c + w->at;
        u64 *words = (u64 *)a;
#if LOOP == SUM
        for (int i = 0; i < count; i++) sum += words[i];
#elif LOOP == DOT
        for (int i = 0; i < count; i++) real += a[i] * b[i];
#elif LOOP == COPY
        for (int i = 0; i < count; i++) a[i] = b[i];
#elif LOOP == FILL
        for (int i = 0; i < count; i++) a[i] = 3.0;
#elif LOOP == TRIAD
        for (int i = 0; i < count; i++) a[i] = b[i] + 3.0 * c[i];
#elif LOOP == STRIDED
        for (int i = 0; i < count; i += 8) sum += words[i];
#elif LOOP == BYTES
        unsigned char *bytes = (unsigned char *)a;
        for (int i = 0; i < count * 8; i++) sum += bytes[i] == 7 ? 3 : bytes[i];
#elif LOOP == STENCIL
        for (int i = 1; i < count - 1; i++) a[i] = 0.3 * (b[i - 1] + b[i] + b[i + 1]);
#elif LOOP == MEMCPY
        memcpy(a, b, count * 8);
#elif LOOP == XOR
        for (int i = 0; i < count; i++) words[i] ^= 0x55;
#elif LOOP == MINIMUM
        uint32_t *halves = (uint32_t *)a, least = ~0u;
        for (int i = 0; i < count * 2; i++) least = halves[i] < least ? halves[i] : least;
        sum += least;
#endif
        w->at = w->at + count >= w->n ? 0 : w->at + count;
        __asm__ volatile("" : : "g"(a), "g"(b), "g"(c) : "memory");
    }
    sink = sum + (u64)real;
    return 16;
}
