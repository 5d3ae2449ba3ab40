/* Runs floating-point code in MAPPINGS pieces for SECONDS, each piece a mapping of its own without a
 * file: programs that make code at run time have that many. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* mov ecx, 100000; addsd xmm1, xmm0; mulsd xmm2, xmm0; dec ecx; jnz; ret */
static const unsigned char code[] = {0xb9, 0xa0, 0x86, 0x01, 0x00, 0xf2, 0x0f, 0x58, 0xc8,
                                     0xf2, 0x0f, 0x59, 0xd0, 0xff, 0xc9, 0x75, 0xf4, 0xc3};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

int main(int count, char **words)
{
    if (count != 3)
        return 2;
    int mappings = atoi(words[1]);
    void (**pieces)(void) = malloc(mappings * sizeof *pieces);
    for (int i = 0; i < mappings; i++) {
        char *piece = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (piece == MAP_FAILED)
            return 1;
        memcpy(piece, code, sizeof code);
        mprotect(piece, 4096, PROT_READ | PROT_EXEC);
        pieces[i] = (void (*)(void))piece;
    }
    double end = now() + atof(words[2]);
    for (long i = 0; now() < end; i++)
        pieces[i * 7919 % mappings]();
    return 0;
}
