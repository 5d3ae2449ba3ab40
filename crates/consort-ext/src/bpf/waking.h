/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Which idle PU is to come for a thread that has begun to wait.
 */
#ifndef CONSORT_WAKING_H
#define CONSORT_WAKING_H

#include "slots.h"

static bool kick_if_idle(struct task_struct *p, u32 pu)
{
	if (!allows(p, pu) || !scx_bpf_test_and_clear_cpu_idle(pu))
		return false;
	scx_bpf_kick_cpu(pu, SCX_KICK_IDLE);
	return true;
}

static void wake_core(struct task_struct *p, u32 core)
{
	u32 way;

	bpf_for(way, 0, MAX_WAYS) {
		u32 pu = way_at(core, way);

		if (pu && kick_if_idle(p, pu - 1))
			return;
	}
}

static void wake_set(struct task_struct *p, u64 of_version, u32 set)
{
	struct head *head = head_of(of_version);
	u32 pu;

	bpf_for(pu, 0, nr_pus) {
		if (in_set(head, pu, set) && kick_if_idle(p, pu))
			return;
	}
}

static void wake_any(struct task_struct *p)
{
	s32 pu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);

	if (pu >= 0)
		scx_bpf_kick_cpu(pu, SCX_KICK_IDLE);
}

/* Wakes an idle PU that serves the queue in which the thread waits. */
static void wake_server(struct task_struct *p, struct thread *thread, u64 of_version, u32 queue)
{
	if (!queue)
		wake_any(p);
	else if (queue <= nr_pus)
		scx_bpf_kick_cpu(queue - 1, SCX_KICK_IDLE);
	else if (thread->kind == ONE_CORE)
		wake_core(p, thread->number);
	else
		wake_set(p, of_version, thread->number);
}

/* An idle PU in the thread's place, or -1. */
static s32 idle_in_place(struct task_struct *p, struct thread *thread)
{
	u32 way;

	if (thread->kind == ONE_PU)
		return scx_bpf_test_and_clear_cpu_idle(thread->number) ? thread->number : -1;
	if (thread->kind != ONE_CORE)
		return -1;
	bpf_for(way, 0, MAX_WAYS) {
		u32 pu = way_at(thread->number, way);

		if (pu && allows(p, pu - 1) && scx_bpf_test_and_clear_cpu_idle(pu - 1))
			return pu - 1;
	}
	return -1;
}

#endif
