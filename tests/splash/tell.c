/* Tells the meter of each synchronisation of a program under QEMU: loaded into the program with
 * LD_PRELOAD, it stands before the functions of the C library and makes a system call that does
 * not exist, with the event's number and the object's address, which meter.c hears.
 *
 * A lock is told once it is held and before it is let go, so that the instructions in between are
 * those of the program and the few of the telling, which measure.py measures and takes off. */
#define _GNU_SOURCE
#include "events.h"

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

static void tell(enum event event, const void *object)
{
    syscall(EVENT_CALL, event, object);
}

static int (*real_lock)(pthread_mutex_t *);
static int (*real_unlock)(pthread_mutex_t *);
static int (*real_barrier)(pthread_barrier_t *);
static int (*real_cond)(pthread_cond_t *, pthread_mutex_t *);
static int (*real_sem_wait)(sem_t *);
static int (*real_sem_post)(sem_t *);

/* Finds what the program would have called without us, before anything is held. */
__attribute__((constructor)) static void find(void)
{
    real_lock = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_lock");
    real_unlock = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_unlock");
    real_barrier = (int (*)(pthread_barrier_t *))dlsym(RTLD_NEXT, "pthread_barrier_wait");
    /* There is an older one, which is not for programs of today. */
    real_cond = (int (*)(pthread_cond_t *, pthread_mutex_t *))dlvsym(
        RTLD_NEXT, "pthread_cond_wait", "GLIBC_2.3.2");
    real_sem_wait = (int (*)(sem_t *))dlsym(RTLD_NEXT, "sem_wait");
    real_sem_post = (int (*)(sem_t *))dlsym(RTLD_NEXT, "sem_post");
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    int result = real_lock(mutex);
    tell(LOCKED, mutex);
    return result;
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    tell(UNLOCKING, mutex);
    return real_unlock(mutex);
}

int pthread_barrier_wait(pthread_barrier_t *barrier)
{
    tell(BARRIER_IN, barrier);
    int result = real_barrier(barrier);
    tell(BARRIER_OUT, barrier);
    return result;
}

int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    tell(COND_WAIT, mutex);
    int result = real_cond(condition, mutex);
    tell(COND_WOKEN, mutex);
    return result;
}

int sem_wait(sem_t *semaphore)
{
    tell(SEM_WAIT, semaphore);
    return real_sem_wait(semaphore);
}

int sem_post(sem_t *semaphore)
{
    tell(SEM_POST, semaphore);
    return real_sem_post(semaphore);
}
