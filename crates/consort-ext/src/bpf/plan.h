/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * The plan in force, and what it says about a thread.
 *
 * There are two tables of lines. User space fills the one that is not in force and then makes it
 * so by one store to `version`, whose lowest bit selects the table. A line that names another
 * version belongs to a plan that is being written, or to one that is gone, and is not followed.
 */
#ifndef CONSORT_PLAN_H
#define CONSORT_PLAN_H

#include "state.h"

/* Set before loading. */
const volatile u32 nr_pus = 1;
const volatile u32 nr_cores = 1;
const volatile u32 nr_slots = 0;
const volatile u64 slice_ns = 1000000;
const volatile u64 relief_ns = 100000000;
const volatile u64 drain_limit_ns = 1000000000;
const volatile u32 core_of[MAX_PUS];
/* The PUs of each core, each number one too high; 0 where there are no more. */
const volatile u32 pus_of[MAX_PUS][MAX_WAYS];

/* Written by user space. */
u64 version;
u64 beat_ns;
struct head heads[2];

struct queue queues[MAX_QUEUES];
u32 nr_blocked;

struct lines {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u32);
	__type(value, struct line);
} even_lines SEC(".maps"), odd_lines SEC(".maps");

struct programs {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u32);
	__type(value, struct program_line);
} even_programs SEC(".maps"), odd_programs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} threads SEC(".maps");

/* No plan has this version. */
#define UNRESOLVED (~0ULL)
/* /proc counts start times in hundredths of a second. */
#define NS_PER_TICK 10000000

/*
 * An array's element, or NULL beyond its end. The two barriers keep the compiler from computing
 * the address with another register than the one that was compared, which the verifier refuses.
 */
#define AT(array, index)                                                                          \
	({                                                                                        \
		u64 at_ = (u32)(index);                                                           \
		typeof(&(array)[0]) element_ = NULL;                                              \
		barrier_var(at_);                                                                 \
		if (at_ < sizeof(array) / sizeof((array)[0])) {                                   \
			barrier_var(at_);                                                         \
			element_ = &(array)[at_];                                                 \
		}                                                                                 \
		element_;                                                                         \
	})

static __always_inline struct queue *queue_at(u32 queue)
{
	return AT(queues, queue);
}

/* The core of a PU; one that does not exist has none. */
static __always_inline u32 core_at(u32 pu)
{
	const volatile u32 *core = AT(core_of, pu);

	return core ? *core : MAX_PUS;
}

/* One more than the PU that is this way of the core, 0 where there is none. */
static __always_inline u32 way_at(u32 core, u32 way)
{
	const volatile u32(*ways)[MAX_WAYS] = AT(pus_of, core);
	const volatile u32 *pu = ways ? AT(*ways, way) : NULL;

	return pu ? *pu : 0;
}

/* The sets that a PU is in. */
static __always_inline u32 sets_at(struct head *head, u32 pu)
{
	u32 *sets = AT(head->sets_of, pu);

	return sets ? *sets : 0;
}

static __always_inline bool in_set(struct head *head, u32 pu, u32 set)
{
	return sets_at(head, pu) >> (set & 31) & 1;
}

static __always_inline struct thread *thread_of(struct task_struct *p)
{
	return bpf_task_storage_get(&threads, p, NULL, 0);
}

static __always_inline u64 version_now(void)
{
	return *(volatile u64 *)&version;
}

static __always_inline struct head *head_of(u64 of_version)
{
	return &heads[of_version & 1];
}

/* Without a plan, or when user space has not been heard of for as long as the plan says. */
static __always_inline bool stale(u64 of_version, u64 now)
{
	u64 beat = *(volatile u64 *)&beat_ns;

	return !of_version || now > beat + head_of(of_version)->stale_ns;
}

static bool allows(struct task_struct *p, u32 pu)
{
	return bpf_cpumask_test_cpu(pu, p->cpus_ptr);
}

static bool core_allows(struct task_struct *p, u32 core)
{
	u32 way;

	bpf_for(way, 0, MAX_WAYS) {
		u32 pu = way_at(core, way);

		if (pu && allows(p, pu - 1))
			return true;
	}
	return false;
}

static bool set_allows(struct task_struct *p, struct head *head, u32 set)
{
	u32 pu;

	bpf_for(pu, 0, nr_pus) {
		if (in_set(head, pu, set) && allows(p, pu))
			return true;
	}
	return false;
}

/* A place with none of the thread's own PUs is no place. */
static bool possible(struct task_struct *p, struct head *head, u32 kind, u32 number)
{
	switch (kind) {
	case ONE_PU:
		return number < nr_pus && allows(p, number);
	case ONE_CORE:
		return number < nr_cores && core_allows(p, number);
	case ONE_SET:
		return set_allows(p, head, number);
	}
	return false;
}

static bool find_line(struct task_struct *p, u64 of_version, struct line *found)
{
	u32 tid = p->pid;
	struct line *line = of_version & 1 ? bpf_map_lookup_elem(&odd_lines, &tid)
					   : bpf_map_lookup_elem(&even_lines, &tid);

	if (!line)
		return false;
	*found = *line;
	return found->version == of_version &&
	       found->start_ticks == p->start_boottime / NS_PER_TICK;
}

static u32 programs_slot(struct task_struct *p, u64 of_version)
{
	u32 pid = p->tgid;
	struct program_line *line = of_version & 1 ? bpf_map_lookup_elem(&odd_programs, &pid)
						   : bpf_map_lookup_elem(&even_programs, &pid);

	return line && line->version == of_version ? line->slot : 0;
}

static void follow(struct task_struct *p, struct thread *thread, u64 of_version)
{
	struct head *head = head_of(of_version);
	struct line line = {};

	if (!of_version || !find_line(p, of_version, &line)) {
		line.kind = ANYWHERE;
		line.slot = of_version ? programs_slot(p, of_version) : 0;
	}
	if (!possible(p, head, line.kind, line.number))
		line.kind = ANYWHERE;
	thread->kind = line.kind;
	thread->number = line.number;
	thread->slot = line.slot <= nr_slots ? line.slot : 0;
}

/* Makes the thread's place and slot those of the plan in force, and returns its version. */
static u64 resolve(struct task_struct *p, struct thread *thread)
{
	u64 current = version_now();
	u32 attempt;

	/* A plan that came in between may have overwritten what was read. */
	bpf_for(attempt, 0, 3) {
		if (thread->version == current)
			break;
		follow(p, thread, current);
		thread->version = current;
		current = version_now();
	}
	return current;
}

static u32 queue_of(struct task_struct *p, struct thread *thread)
{
	switch (thread->kind) {
	case ONE_PU:
		return 1 + thread->number;
	case ONE_CORE:
		return 1 + nr_pus + thread->number;
	case ONE_SET:
		return 1 + nr_pus + nr_cores + thread->number;
	}
	if (p->nr_cpus_allowed == 1)
		return 1 + bpf_cpumask_first(p->cpus_ptr);
	return 0;
}

static bool is_blocked(u32 queue)
{
	struct queue *at = nr_blocked ? queue_at(queue) : NULL;

	return at && at->blocked;
}

/* Whether the plan has the thread on this PU; anywhere is everywhere. */
static bool in_place(struct thread *thread, u64 of_version, u32 pu)
{
	switch (thread->kind) {
	case ONE_PU:
		return thread->number == pu;
	case ONE_CORE:
		return core_at(pu) == thread->number;
	case ONE_SET:
		return in_set(head_of(of_version), pu, thread->number);
	}
	return true;
}

#endif
