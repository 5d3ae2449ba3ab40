// A program to profile: loop, sized, phases, forever, fork, exec or roles.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STEPS = 400, WORK = 2000, TABLE = 4096 };

static volatile unsigned long sum;
static unsigned long table[TABLE];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;

static void add(unsigned long rounds)
{
    for (unsigned long i = 0; i < rounds; i++)
        sum += i;
}

// Sums a table that all threads share, and adds to it under a lock.
static void *integers(void *unused)
{
    (void)unused;
    for (int step = 0; step < STEPS; step++) {
        unsigned long own = 0;
        for (int i = 0; i < WORK; i++)
            own += table[i * 7 % TABLE] ^ own << 1;
        pthread_mutex_lock(&lock);
        table[step % TABLE] += own;
        pthread_mutex_unlock(&lock);
        if (step % 40 == 0)
            pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static void *floats(void *unused)
{
    double own = 1.5;
    (void)unused;
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < WORK; i++)
            own = own * 0.999 + (double)i * 0.001;
        if (step % 40 == 0)
            pthread_barrier_wait(&barrier);
    }
    sum += (unsigned long)own;
    return NULL;
}

// Adds up by calling, so that it is other code than add().
static void __attribute__((noinline)) step(double *value)
{
    *value = *value * 0.999 + 0.5;
}

static void phases(void)
{
    double value = 1.0;
    add(2000000);
    for (int i = 0; i < 1500000; i++)
        step(&value);
    sum += (unsigned long)value;
}

// A loop of so many instructions; if they are negative, it is killed behind them.
static int sized(long instructions)
{
    enum { ROUND = 6 };
    add((unsigned long)labs(instructions) / ROUND);
    return instructions < 0 ? raise(SIGKILL) : 0;
}

static int roles(void)
{
    pthread_t threads[4];
    pthread_barrier_init(&barrier, NULL, 4);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, i < 2 ? integers : floats, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    return 0;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "loop";
    if (strcmp(mode, "roles") == 0)
        return roles();
    if (strcmp(mode, "sized") == 0 && argc > 2)
        return sized(strtol(argv[2], NULL, 10));
    add(200000);
    if (strcmp(mode, "phases") == 0)
        phases();
    if (strcmp(mode, "forever") == 0) {
        puts("runs");
        fflush(stdout);
        for (;;)
            add(1000);
    }
    if (strcmp(mode, "fork") == 0) {
        if (fork() == 0) {
            add(200000);
            _exit(0);
        }
        wait(NULL);
    }
    if (strcmp(mode, "exec") == 0)
        execl("/bin/sh", "sh", "-c", "exit 5", (char *)NULL);
    return 0;
}
