/* Takes and lets go of a lock with nothing in between: what its holding is measured to be longer
 * than nothing is what telling costs. */
#define _GNU_SOURCE
#include "events.h"

#include <pthread.h>
#include <unistd.h>

int main(void)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    /* Names are bound at the first call. */
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    syscall(EVENT_CALL, REGION_BEGIN);
    for (int i = 0; i < 1000; i++) {
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
    }
    syscall(EVENT_CALL, REGION_END);
    return 0;
}
