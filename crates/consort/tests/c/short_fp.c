/* Floating-point arithmetic for the 50 ms after which a short program has ended. */
#include <stdio.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

int main(void)
{
    double x = 1.1, y = 1.2, z = 0.5;
    while (now() < 0.05)
        for (int i = 0; i < 200000; i++) {
            x = x * 1.0000001 + 0.1;
            y = y * 0.999999 + x;
            z = z * 0.5 + y;
        }
    return x + y + z < 0;
}
