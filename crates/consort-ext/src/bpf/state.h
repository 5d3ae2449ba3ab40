/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * What user space and the scheduler share. User space writes the first part, reads the second.
 */
#ifndef CONSORT_STATE_H
#define CONSORT_STATE_H

#define MAX_PUS 1024
#define MAX_WAYS 8
#define MAX_SLOTS 8
/* Twice as many as a plan may have: those of the plan before keep their numbers. */
#define MAX_SETS 32
/* One for anywhere, one per PU, per core and per other set. */
#define MAX_QUEUES (1 + 2 * MAX_PUS + MAX_SETS)

/* What a place's number counts. */
enum kind { ANYWHERE = 0, ONE_PU = 1, ONE_CORE = 2, ONE_SET = 3 };

/* A thread's line in a plan. It is followed only under the version that it names. */
struct line {
	u64 version;
	u64 start_ticks;
	u32 kind;
	u32 number;
	u32 slot;
	u32 unused;
};

/* The slot of those of a program's threads that have no line. */
struct program_line {
	u64 version;
	u32 slot;
	u32 unused;
};

/* A queue's bookkeeping; the threads themselves wait in the kernel's, one per slot. */
struct queue {
	/* When a PU last looked at it, and when it was last filled from empty. */
	u64 served_ns;
	u64 filled_ns;
	/* The running time, by weight, at which it stands. */
	u64 vtime;
	/* Its PUs have not come for work for long: its threads may run anywhere. */
	u32 blocked;
	u32 unused;
};

/* What a plan says about no thread in particular. */
struct head {
	u64 stale_ns;
	u64 slot_ns[MAX_SLOTS + 1];
	u32 slots;
	u32 unused;
	/* Per PU: the sets that it is in, a bit each. */
	u32 sets_of[MAX_PUS];
};

/* What is kept of a governed thread; the first three are the plan's word, kept while it holds. */
struct thread {
	u64 version;
	u32 kind;
	u32 number;
	u32 slot;
	/* The slot that it is counted in while it runs, and the PU. */
	u32 running_slot;
	u32 pu;
	u32 vtime_queue;
	u64 vtime;
	/* Since when its running time is not yet counted, 0 while it does not run. */
	u64 since_ns;
	u64 in_place_ns;
	u64 elsewhere_ns;
	u64 unplanned_ns;
	u64 turns;
};

/* What a PU has done and does. */
struct pu {
	u64 in_place_ns;
	u64 elsewhere_ns;
	u64 unplanned_ns;
	u64 turns;
	u64 turned_away;
	u64 forced_idle_ns;
	/* Since when it idles while threads of other slots wait, 0 otherwise. */
	u64 forced_since_ns;
	/* The planned thread that runs in its place here, and since when; 0 otherwise. */
	u64 together_since_ns;
	u32 together_tid;
	/* The slots of what runs here and of what was chosen to run next. */
	u32 running_slot;
	u32 committed_slot;
	u32 turn;
	u32 idle;
	u32 unused;
};

/* Two threads, the lower number first. */
struct pair {
	u32 low;
	u32 high;
};

/* Why the kernel let the scheduler go. */
struct ending {
	s32 kind;
	u32 unused;
	s64 code;
	char reason[128];
	char message[1024];
};

#endif
