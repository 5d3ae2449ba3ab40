/* What the recorder sends. src/recorder/wire.rs and lane.rs read it; both name the fields alike. */
#ifndef CONSORT_WIRE_H
#define CONSORT_WIRE_H

#include <stdint.h>

enum kind { DESCRIBED = 1, EXECUTED = 2, FINISHED = 3, HAPPENED = 4, PROGRESSED = 5 };
enum stage { SKIP = 0, WARM = 1, WINDOW = 2 };
/* How the recording ended. */
enum end { PROGRAM_ENDED = 0, LIMIT_REACHED = 1, PROGRAM_REPLACED = 2 };
/* What a thread did that others feel. */
enum deed { BEGAN = 0, ENDED = 1, CALLED = 2, RETURNED = 3 };

#define WORD_BLOCK (UINT64_C(8) << 60)
#define WORD_STAGE (UINT64_C(9) << 60)
#define WORD_SYSCALL (UINT64_C(10) << 60)
#define WORD_ARGUMENT (UINT64_C(11) << 60)
#define WORD_LIVING (UINT64_C(12) << 60)
#define LOW_60 ((UINT64_C(1) << 60) - 1)
#define ADDRESS ((UINT64_C(1) << 50) - 1)

struct header {
    uint32_t kind;
    uint32_t thread;
    uint64_t bytes;
};

struct event {
    uint32_t thread;
    uint32_t deed;
    uint64_t call;
    /* The call's, or what it returned. */
    uint64_t arguments[3];
    /* Instructions by this thread so far, and by the first one. */
    uint64_t executed;
    uint64_t executed_by_first;
};

#endif
