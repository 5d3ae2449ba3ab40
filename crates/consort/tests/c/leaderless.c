/* Its first thread ends at once; the process lives on in another one. */
#include "spin.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void *work(void *unused)
{
    spin(500);
    puts("without a leader");
    exit(4);
    return unused;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, work, 0);
    pthread_exit(0);
}
