/* Two threads that hand a turn to each other ROUNDS times by futex, and count every futex call that
 * they make. Each begins when its affinity has been narrowed to one PU, or after a minute: whoever
 * does that is watching by then. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static _Atomic unsigned turn;
static atomic_ulong calls;
static unsigned long rounds;

static void futex(int operation, unsigned value, unsigned long *made)
{
    syscall(SYS_futex, &turn, operation | FUTEX_PRIVATE_FLAG, value, 0, 0, 0);
    *made += 1;
}

/* Who sleeps is not placed, so this is busy. */
static void wait_until_placed(void)
{
    time_t begin = time(0);
    cpu_set_t mask;
    while (time(0) - begin < 60) {
        if (!sched_getaffinity(0, sizeof mask, &mask) && CPU_COUNT(&mask) == 1)
            return;
    }
}

static void *hand_over(void *mine)
{
    unsigned me = *(unsigned *)mine;
    unsigned long made = 0;
    wait_until_placed();
    for (unsigned long i = 0; i < rounds; i++) {
        while (atomic_load(&turn) != me)
            futex(FUTEX_WAIT, 1 - me, &made);
        atomic_store(&turn, 1 - me);
        futex(FUTEX_WAKE, 1, &made);
    }
    atomic_fetch_add(&calls, made);
    return 0;
}

int main(int count, char **words)
{
    unsigned names[2] = {0, 1};
    pthread_t threads[2];
    rounds = count > 1 ? strtoul(words[1], 0, 10) : 10000;
    for (int i = 0; i < 2; i++)
        if (pthread_create(threads + i, 0, hand_over, names + i))
            return 9;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
    printf("%lu futex calls\n", calls);
    return 0;
}
