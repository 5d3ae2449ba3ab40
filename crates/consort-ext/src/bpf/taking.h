/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Which waiting thread a PU takes next.
 */
#ifndef CONSORT_TAKING_H
#define CONSORT_TAKING_H

#include "slots.h"

#define NR_KINDS 4

/*
 * The sets that a PU is in, and those that it was in under the plan before: nobody else would come
 * for threads that were waiting there when the plan changed. They are sent where they belong once
 * they run. A set's number means the same set in both plans.
 */
static u32 served_sets(u32 pu)
{
	return sets_at(&heads[0], pu) | sets_at(&heads[1], pu);
}

static u32 nr_queues(void)
{
	u32 number = 1 + nr_pus + nr_cores + MAX_SETS;

	return number < MAX_QUEUES ? number : MAX_QUEUES;
}

/* Takes the next thread of a queue to this PU; one of `slot` or, failing that, another open one. */
static bool take(struct pu *at, u32 queue, u32 first, u64 of_version, u64 now)
{
	struct queue *of = queue_at(queue);
	u32 slot;

	if (of) {
		of->served_ns = now;
		if (of->blocked && __sync_lock_test_and_set(&of->blocked, 0))
			__sync_fetch_and_sub(&nr_blocked, 1);
	}
	if (first && scx_bpf_dsq_move_to_local(queue_id(first, queue)))
		return true;
	if (scx_bpf_dsq_move_to_local(queue_id(0, queue))) {
		at->committed_slot = 0;
		return true;
	}
	if (!slots_seen)
		return false;
	bpf_for(slot, 1, nr_slots + 1) {
		if (may_run(slot, of_version, now) &&
		    (slot == at->committed_slot || slot != slot_open()) &&
		    scx_bpf_dsq_move_to_local(queue_id(slot, queue)))
			return true;
	}
	return false;
}

static bool take_of_sets(struct pu *at, u32 pu, u32 first, u64 of_version, u64 now)
{
	u32 sets = served_sets(pu);
	u32 i;

	if (!sets)
		return false;
	bpf_for(i, 0, MAX_SETS) {
		u32 set = (i + at->turn / NR_KINDS) % MAX_SETS;

		if ((sets >> set & 1) &&
		    take(at, 1 + nr_pus + nr_cores + set, first, of_version, now))
			return true;
	}
	return false;
}

static bool take_of_kind(struct pu *at, u32 pu, u32 kind, u32 first, u64 of_version, u64 now)
{
	switch (kind) {
	case ONE_PU:
		return take(at, 1 + pu, first, of_version, now);
	case ONE_CORE:
		return take(at, 1 + nr_pus + core_at(pu), first, of_version, now);
	case ONE_SET:
		return take_of_sets(at, pu, first, of_version, now);
	}
	return take(at, 0, first, of_version, now);
}

/* Takes a thread whose own PUs have not come for it for long. */
static bool relieve(u32 first)
{
	u32 queue;

	bpf_for(queue, 1, nr_queues()) {
		if (!is_blocked(queue))
			continue;
		if (scx_bpf_dsq_move_to_local(queue_id(0, queue)) ||
		    (first && scx_bpf_dsq_move_to_local(queue_id(first, queue))))
			return true;
	}
	return false;
}

/* Commits this PU to the open slot, and returns that slot; 0 if none is. */
static u32 commit(struct pu *at)
{
	u32 slot = slots_seen ? slot_open() : 0;

	__sync_lock_test_and_set(&at->committed_slot, slot);
	if (slot && slot_open() != slot) {
		__sync_lock_test_and_set(&at->committed_slot, 0);
		return 0;
	}
	return slot;
}

static bool waits(u32 slot, u32 queue)
{
	return scx_bpf_dsq_nr_queued(queue_id(slot, queue)) > 0;
}

/* Whether a queue that this PU serves holds a thread, of no slot or of the open one. */
static bool work_waits(u32 pu, u32 slot)
{
	u32 sets = served_sets(pu);
	u32 core = 1 + nr_pus + core_at(pu);
	u32 set;

	if (waits(0, 0) || waits(0, 1 + pu) || waits(0, core))
		return true;
	if (slot && (waits(slot, 0) || waits(slot, 1 + pu) || waits(slot, core)))
		return true;
	if (!sets)
		return false;
	bpf_for(set, 0, MAX_SETS) {
		u32 queue = 1 + nr_pus + nr_cores + set;

		if ((sets >> set & 1) && (waits(0, queue) || (slot && waits(slot, queue))))
			return true;
	}
	return false;
}

#endif
