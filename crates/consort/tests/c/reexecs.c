/* Becomes itself again from a thread other than the first, N times. */
#include "spin.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char **arguments;
static int left;

static void *again(void *unused)
{
    char count[16];
    snprintf(count, sizeof count, "%d", left - 1);
    execl(arguments[0], arguments[0], count, (char *)0);
    _exit(9);
    return unused;
}

int main(int count, char **words)
{
    pthread_t thread;
    left = count > 1 ? atoi(words[1]) : 5;
    arguments = words;
    spin(80);
    if (left == 0) {
        puts("the last of them");
        return 3;
    }
    pthread_create(&thread, 0, again, 0);
    for (;;)
        pause();
}
