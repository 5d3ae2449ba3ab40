#include <time.h>

/* CPU time of this thread in nanoseconds. */
static long long used(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* Integer work that no compiler removes, for so many milliseconds of CPU time. */
static void spin(long long milliseconds)
{
    volatile unsigned long sum = 0;
    long long end = used() + milliseconds * 1000000;
    while (used() < end)
        for (unsigned long i = 0; i < 100000; i++)
            sum += i;
}
