/* What tell.c tells meter.c, and by which system call. */
#ifndef SPLASH_EVENTS_H
#define SPLASH_EVENTS_H

/* No system call of Linux has this number. */
#define EVENT_CALL 0x5350

/* REGION_BEGIN and REGION_END are told by the program itself: measure.py has Splash-3's macros of
 * its region of interest make the call. */
enum event {
    REGION_BEGIN = 1,
    REGION_END = 2,
    LOCKED = 3,
    UNLOCKING = 4,
    BARRIER_IN = 5,
    BARRIER_OUT = 6,
    COND_WAIT = 7,
    COND_WOKEN = 8,
    SEM_WAIT = 9,
    SEM_POST = 10,
};

#endif
