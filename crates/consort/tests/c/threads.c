/* N threads that are all alive at once, and work. */
#include "spin.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_barrier_t all_here;

static void *work(void *unused)
{
    pthread_barrier_wait(&all_here);
    spin(1);
    usleep(500000);
    return unused;
}

int main(int count, char **words)
{
    int wanted = count > 1 ? atoi(words[1]) : 10;
    pthread_t *threads = calloc((size_t)wanted, sizeof *threads);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    pthread_barrier_init(&all_here, 0, (unsigned)wanted);
    for (int i = 0; i < wanted; i++)
        if (pthread_create(threads + i, &small, work, 0))
            return 9;
    for (int i = 0; i < wanted; i++)
        pthread_join(threads[i], 0);
    printf("%d threads\n", wanted);
    return 0;
}
