/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Running time, counted where the plan has a thread and elsewhere, and of pairs on one core.
 */
#ifndef CONSORT_ACCOUNTS_H
#define CONSORT_ACCOUNTS_H

#include "slots.h"

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct pair);
	__type(value, u64);
} pairs SEC(".maps");

static void count_pair(u32 one, u32 other, u64 ns)
{
	struct pair pair = { one < other ? one : other, one < other ? other : one };
	u64 *sum = bpf_map_lookup_elem(&pairs, &pair);

	if (sum)
		__sync_fetch_and_add(sum, ns);
	else
		bpf_map_update_elem(&pairs, &pair, &ns, BPF_ANY);
}

/*
 * Counts what the planned thread here and those beside it ran together until now. Each end is
 * taken back before its neighbours' are read: two that stop at the same instant count too little
 * rather than twice.
 */
static void count_together(u32 pu, struct pu *here, u64 now)
{
	u64 since = __sync_lock_test_and_set(&here->together_since_ns, 0);
	u32 core = core_at(pu);
	u32 way;

	if (!since)
		return;
	bpf_for(way, 0, MAX_WAYS) {
		u32 beside = way_at(core, way);
		struct pu *there = beside && beside - 1 != pu ? pu_at(beside - 1) : NULL;
		u64 from = there ? *(volatile u64 *)&there->together_since_ns : 0;

		if (from && from < since)
			from = since;
		if (from && now > from)
			count_pair(here->together_tid, there->together_tid, now - from);
	}
}

static void count_run(struct thread *thread, struct pu *at, u64 of_version, u32 pu, u64 ns)
{
	if (thread->kind == ANYWHERE) {
		thread->unplanned_ns += ns;
		at->unplanned_ns += ns;
	} else if (in_place(thread, of_version, pu)) {
		thread->in_place_ns += ns;
		at->in_place_ns += ns;
	} else {
		thread->elsewhere_ns += ns;
		at->elsewhere_ns += ns;
	}
}

/* Counts the time that the thread has run since this was last called, and charges it. */
static void account(struct task_struct *p, struct thread *thread, u64 of_version, u64 now)
{
	u32 weight = p->scx.weight ? p->scx.weight : 1;
	struct pu *at = pu_at(thread->pu);
	u64 ns = now - thread->since_ns;

	if (!at || !thread->since_ns || now <= thread->since_ns)
		return;
	thread->since_ns = now;
	thread->vtime += ns * 100 / weight;
	count_run(thread, at, of_version, thread->pu, ns);
	count_together(thread->pu, at, now);
}

/* From now on the thread counts as a neighbour, if it is where the plan has it. */
static void be_neighbour(struct task_struct *p, struct thread *thread, u64 of_version, u64 now)
{
	struct pu *at = pu_at(thread->pu);

	if (!at || thread->kind == ANYWHERE || !in_place(thread, of_version, thread->pu))
		return;
	at->together_tid = p->pid;
	__sync_lock_test_and_set(&at->together_since_ns, now);
}

#endif
