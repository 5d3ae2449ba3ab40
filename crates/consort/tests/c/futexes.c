/* Two threads that hand a turn to each other ROUNDS times by futex, and count every futex call that
 * they make. Each begins when its affinity has been narrowed to one PU, or after a minute: whoever
 * does that is watching by then. With any word after ROUNDS both begin at once. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Atomic unsigned turn;
static atomic_ulong calls;
static unsigned long rounds;
static int at_once;

static void futex(int operation, unsigned value, unsigned long *made)
{
    syscall(SYS_futex, &turn, operation | FUTEX_PRIVATE_FLAG, value, 0, 0, 0);
    *made += 1;
}

static void wait_until_placed(void)
{
    cpu_set_t mask;
    for (int i = 0; i < 60000; i++) {
        if (!sched_getaffinity(0, sizeof mask, &mask) && CPU_COUNT(&mask) == 1)
            return;
        usleep(1000);
    }
}

static void *hand_over(void *mine)
{
    unsigned me = *(unsigned *)mine;
    unsigned long made = 0;
    if (!at_once)
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
    at_once = count > 2;
    for (int i = 0; i < 2; i++)
        if (pthread_create(threads + i, 0, hand_over, names + i))
            return 9;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
    printf("%lu futex calls\n", calls);
    return 0;
}
