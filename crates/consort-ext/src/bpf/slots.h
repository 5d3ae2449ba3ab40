/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Time slots: at most one is open, and between two of them none is.
 *
 * A slot is closed by preempting its threads; the next opens when the last of them has stopped,
 * so that threads of two slots never run at the same time. A PU that has chosen a thread
 * says so before it looks at the slot again, and is waited for like one that runs it.
 */
#ifndef CONSORT_SLOTS_H
#define CONSORT_SLOTS_H

#include "plan.h"

struct pu pus[MAX_PUS];
/* The slot whose threads may run; 0 while none may. */
u32 open_slot;
/* The slot that is being closed, 0 if none is. */
u32 closing_slot;
/* Whether any thread had a slot so far; until then nobody looks at the queues of slots. */
u32 slots_seen;
u32 running_in_slot[MAX_SLOTS + 1];
u64 slot_since_ns;
u64 slots_opened;
/* How often two slots ran at the same time, and how often one would not be left in time. */
u64 overlaps;
u64 overruns;

#define POLL_NS 100000

static __always_inline u32 slot_open(void)
{
	return *(volatile u32 *)&open_slot;
}

/* Whether threads of the slot may run now; a slot that the plan does not have holds nobody. */
static bool may_run(u32 slot, u64 of_version, u64 now)
{
	return !slot || slot == slot_open() || stale(of_version, now) ||
	       slot > head_of(of_version)->slots;
}

static struct pu *pu_at(u32 pu)
{
	return AT(pus, pu);
}

static u64 queue_id(u32 slot, u32 queue)
{
	return (u64)slot << 32 | queue;
}

static bool waits_closed(u32 queue, u64 of_version, u64 now)
{
	u32 slot;

	bpf_for(slot, 1, nr_slots + 1) {
		if (!may_run(slot, of_version, now) && scx_bpf_dsq_nr_queued(queue_id(slot, queue)) > 0)
			return true;
	}
	return false;
}

/* Whether a thread that may run on this PU waits for its slot. */
static bool held_back(u32 pu, u64 of_version, u64 now)
{
	return waits_closed(1 + pu, of_version, now) ||
	       waits_closed(1 + nr_pus + core_at(pu), of_version, now) ||
	       waits_closed(0, of_version, now);
}

static void forced_idle_ends(struct pu *at, u64 now)
{
	u64 since = __sync_lock_test_and_set(&at->forced_since_ns, 0);

	if (since && now > since)
		__sync_fetch_and_add(&at->forced_idle_ns, now - since);
}

static void forced_idle_begins(u32 pu, struct pu *at, u64 now)
{
	u64 of_version = version_now();

	if (slots_seen && !stale(of_version, now) && held_back(pu, of_version, now))
		__sync_lock_test_and_set(&at->forced_since_ns, now);
}

static bool left(u32 slot)
{
	u32 *running = AT(running_in_slot, slot);
	u32 pu;

	if (!running || *(volatile u32 *)running)
		return false;
	bpf_for(pu, 0, nr_pus) {
		struct pu *at = pu_at(pu);

		if (at && *(volatile u32 *)&at->committed_slot == slot)
			return false;
	}
	return true;
}

static void kick_all(u64 flags)
{
	u32 pu;

	bpf_for(pu, 0, nr_pus)
		scx_bpf_kick_cpu(pu, flags);
}

static void kick_slot(u32 slot)
{
	u32 pu;

	bpf_for(pu, 0, nr_pus) {
		struct pu *at = pu_at(pu);

		if (at && (at->running_slot == slot || at->committed_slot == slot))
			scx_bpf_kick_cpu(pu, SCX_KICK_PREEMPT);
	}
}

/* Idle stretches are judged anew at each change of slots. */
static void account_idle(u64 now)
{
	u32 pu;

	bpf_for(pu, 0, nr_pus) {
		struct pu *at = pu_at(pu);

		if (!at)
			continue;
		forced_idle_ends(at, now);
		if (*(volatile u32 *)&at->idle)
			forced_idle_begins(pu, at, now);
	}
}

static void close_slot(u64 now)
{
	closing_slot = open_slot;
	__sync_lock_test_and_set(&open_slot, 0);
	slot_since_ns = now;
	account_idle(now);
	kick_slot(closing_slot);
}

static void open_next(struct head *head, u64 now)
{
	u32 slots = head->slots;
	u32 next = slots ? closing_slot % slots + 1 : 0;

	closing_slot = 0;
	__sync_lock_test_and_set(&open_slot, next);
	slot_since_ns = now;
	slots_opened++;
	account_idle(now);
	kick_all(SCX_KICK_PREEMPT);
}

static void no_slots(u64 now)
{
	slot_since_ns = now;
	if (!open_slot && !closing_slot)
		return;
	closing_slot = 0;
	__sync_lock_test_and_set(&open_slot, 0);
	kick_all(SCX_KICK_PREEMPT);
}

/* Whether no thread of any slot runs; those that do are preempted. */
static bool all_left(void)
{
	bool all = true;
	u32 slot;

	bpf_for(slot, 1, nr_slots + 1) {
		if (left(slot))
			continue;
		kick_slot(slot);
		all = false;
	}
	return all;
}

/* Waits until no slot's threads run, also before the first slot; returns when to look again. */
static u64 drain(struct head *head, u64 now)
{
	if (!all_left()) {
		if (now - slot_since_ns < drain_limit_ns)
			return POLL_NS;
		overruns++;
	}
	open_next(head, now);
	return POLL_NS;
}

/* Turns the slots on; returns in how many ns to look again, at most `rest_ns`. */
static u64 turn_slots(u64 now, u64 rest_ns)
{
	u64 of_version = version_now();
	struct head *head = head_of(of_version);
	u32 slot = slot_open();
	u64 *length = AT(head->slot_ns, slot);
	u64 end;

	if (stale(of_version, now) || !head->slots) {
		no_slots(now);
		return rest_ns;
	}
	if (!slot || !length)
		return drain(head, now);
	end = slot_since_ns + *length;
	if (now >= end || slot > head->slots) {
		close_slot(now);
		return POLL_NS;
	}
	return end - now < rest_ns ? end - now : rest_ns;
}

#endif
