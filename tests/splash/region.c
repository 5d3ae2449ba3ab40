/* Measures the region of interest of a program that runs natively: loaded with LD_PRELOAD, it
 * stands before `syscall`, which the program's markers of the region call, and at the region's end
 * appends one line to the file that $REGION_OUT names:
 *   WALL_S USER_S KERNEL_S CALLS FUTEX_CALLS SWITCHES_WANTED SWITCHES_FORCED FAULTS
 * Calls are counted by the tracepoints raw_syscalls:sys_enter and syscalls:sys_enter_futex of all
 * threads that the region starts; the rest is getrusage's. Nothing is done in between. */
#define _GNU_SOURCE
#include "events.h"

#include <dlfcn.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TRACEPOINTS "/sys/kernel/tracing/events/"

static int calls = -1, futexes = -1;
static struct rusage before;
static double began;

static long (*real)(long, ...);

static int count(const char *tracepoint)
{
    char path[256];
    snprintf(path, sizeof path, TRACEPOINTS "%s/id", tracepoint);
    FILE *file = fopen(path, "r");
    unsigned long id = 0;
    if (!file || fscanf(file, "%lu", &id) != 1) {
        fprintf(stderr, "%s cannot be read: mount tracefs and be root\n", path);
        exit(1);
    }
    fclose(file);
    struct perf_event_attr attr = {.type = PERF_TYPE_TRACEPOINT, .size = sizeof attr, .config = id};
    attr.inherit = 1;
    return (int)real(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double seconds(struct timeval from, struct timeval to)
{
    return (double)(to.tv_sec - from.tv_sec) + 1e-6 * (double)(to.tv_usec - from.tv_usec);
}

static uint64_t value(int event)
{
    uint64_t n = 0;
    return read(event, &n, sizeof n) == sizeof n ? n : 0;
}

static void begin(void)
{
    calls = count("raw_syscalls/sys_enter");
    futexes = count("syscalls/sys_enter_futex");
    getrusage(RUSAGE_SELF, &before);
    began = now();
}

static void end(void)
{
    double wall = now() - began;
    uint64_t all = value(calls), futex = value(futexes);
    struct rusage after;
    getrusage(RUSAGE_SELF, &after);
    FILE *file = fopen(getenv("REGION_OUT"), "a");
    if (!file)
        exit(1);
    fprintf(file, "%.6f %.6f %.6f %lu %lu %ld %ld %ld\n", wall,
            seconds(before.ru_utime, after.ru_utime), seconds(before.ru_stime, after.ru_stime),
            (unsigned long)all, (unsigned long)futex, after.ru_nvcsw - before.ru_nvcsw,
            after.ru_nivcsw - before.ru_nivcsw, after.ru_minflt - before.ru_minflt);
    fclose(file);
}

long syscall(long number, ...)
{
    va_list list;
    va_start(list, number);
    long a[6];
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    if (!real)
        real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    if (number != EVENT_CALL)
        return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (a[0] == REGION_BEGIN)
        begin();
    else
        end();
    return 0;
}
