/* System calls by what they do to threads. */
#ifndef CONSORT_CALLS_H
#define CONSORT_CALLS_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

static bool makes_thread(int64_t call, uint64_t flags)
{
    return call == SYS_clone && (flags & CLONE_THREAD) != 0;
}

/* Whether a thread may be off its processor in a call until something happens. */
static bool may_block(int64_t call)
{
    static const int blocking[] = {
        SYS_futex,        SYS_nanosleep,   SYS_clock_nanosleep, SYS_poll,     SYS_ppoll,
        SYS_select,       SYS_pselect6,    SYS_epoll_wait,      SYS_wait4,    SYS_epoll_pwait,
        SYS_waitid,       SYS_pause,       SYS_rt_sigtimedwait, SYS_accept,   SYS_rt_sigsuspend,
        SYS_accept4,      SYS_recvfrom,    SYS_recvmsg,         SYS_read,     SYS_readv,
        SYS_mq_timedreceive, SYS_msgrcv,   SYS_semop,           SYS_semtimedop,
    };
    for (size_t i = 0; i < sizeof blocking / sizeof blocking[0]; i++)
        if (blocking[i] == call)
            return true;
    return false;
}

#endif
