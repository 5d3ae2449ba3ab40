// Threads of which everything is known: roles, share, barriers, mutex, turns or lives.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TEAM = 3, LINE = 64, MOST_LINES = 1 << 16 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static volatile char common[MOST_LINES * LINE] __attribute__((aligned(4096)));
static volatile char own[TEAM][MOST_LINES * LINE] __attribute__((aligned(4096)));
static long first, second, third;
static int begun, expected;

// Two instructions a round.
static void work(long instructions)
{
    long rounds = instructions / 2;
    __asm__ volatile("1: dec %0\n jnz 1b" : "+r"(rounds) : : "cc");
}

// Waits until all threads that are to run at once have begun, so that none ends before on a busy host.
static void await_others(void)
{
    struct timespec pause = {0, 1000000};
    __atomic_add_fetch(&begun, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&begun, __ATOMIC_SEQ_CST) < expected)
        nanosleep(&pause, NULL);
}

static void *integers(void *unused)
{
    await_others();
    work(first);
    return unused;
}

static void *floats(void *unused)
{
    long rounds = second / 4;
    await_others();
    __asm__ volatile(".balign 64\n1: addsd %%xmm1, %%xmm0\n mulsd %%xmm1, %%xmm2\n dec %0\n jnz 1b"
                     : "+r"(rounds)
                     :
                     : "cc", "xmm0", "xmm2");
    return unused;
}

// Touches, all at a time, lines of its own and lines in common again and again.
static void *share(void *number)
{
    volatile char *mine = own[(long)number];
    pthread_barrier_wait(&barrier);
    for (int round = 0; round < 40; round++) {
        for (long i = 0; i < first; i++)
            mine[i * LINE]++;
        for (long i = 0; i < second; i++)
            (void)common[i * LINE];
    }
    return NULL;
}

static void *barriers(void *number)
{
    for (long i = 0; i < first; i++) {
        work(second + third * ((long)number - 1));
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static void take(void)
{
    for (long i = 0; i < first; i++) {
        pthread_mutex_lock(&lock);
        work(second);
        pthread_mutex_unlock(&lock);
        work(third);
    }
}

static void *mutex(void *unused)
{
    take();
    return unused;
}

// Nobody takes the mutex while another one may.
static void *turns(void *number)
{
    for (long turn = 0; turn < TEAM; turn++) {
        if (turn == (long)number)
            take();
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static void *parent(void *unused)
{
    pthread_t child;
    pthread_create(&child, NULL, integers, NULL);
    await_others();
    work(first);
    pthread_join(child, NULL);
    return unused;
}

// Runs threads, so many of which, and of those that they start, await each other.
static void run(int count, void *(**bodies)(void *), int together)
{
    pthread_t threads[8];
    begun = 0;
    expected = together;
    for (long i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, bodies[i], (void *)i);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

// A thread that ends before others begin, and one that another thread begins.
static void lives(void)
{
    void *(*alone[])(void *) = {integers};
    void *(*both[])(void *) = {parent, integers};
    run(1, alone, 1);
    work(first);
    run(2, both, 3);
}

static void team(void *(*body)(void *))
{
    void *(*bodies[])(void *) = {body, body, body};
    pthread_barrier_init(&barrier, NULL, TEAM);
    run(TEAM, bodies, 0);
}

int main(int argc, char **argv)
{
    void *(*unlike[])(void *) = {integers, floats, integers, floats};
    if (argc != 5)
        return 2;
    first = atol(argv[2]), second = atol(argv[3]), third = atol(argv[4]);
    if (strcmp(argv[1], "roles") == 0)
        run(4, unlike, 4);
    else if (strcmp(argv[1], "share") == 0)
        team(share);
    else if (strcmp(argv[1], "barriers") == 0)
        team(barriers);
    else if (strcmp(argv[1], "mutex") == 0)
        team(mutex);
    else if (strcmp(argv[1], "turns") == 0)
        team(turns);
    else if (strcmp(argv[1], "lives") == 0)
        lives();
    else if (strcmp(argv[1], "work") == 0)
        work(first);
    return 0;
}
