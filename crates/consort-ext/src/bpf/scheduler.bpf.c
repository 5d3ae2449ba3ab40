/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Enforces a plan that user space writes, and decides nothing itself.
 *
 * Every place (a PU, a core, another set of PUs, anywhere) has a queue per time slot. A PU takes
 * threads from the queues of the places that it is in, by turns, and of the slots that are open.
 * A thread that is found running outside of its place or slot is sent back to its queue at once.
 * Without a plan, or with a stale one, all slots are open and every thread belongs anywhere.
 */
#include "kernel.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "accounts.h"
#include "taking.h"
#include "waking.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define HOUSEKEEPING_NS 50000000

struct ending ending;
u64 reliefs;
/* Threads that nothing could be kept about. */
u64 unrecorded;

struct clock {
	struct bpf_timer timer;
	u64 stale;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct clock);
} clocks SEC(".maps");

static void set_slice(struct task_struct *p, u64 ns)
{
	if (bpf_ksym_exists(scx_bpf_task_set_slice))
		scx_bpf_task_set_slice(p, ns);
	else
		p->scx.slice = ns;
}

SEC("struct_ops/consort_select_cpu")
s32 BPF_PROG(consort_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct thread *thread = thread_of(p);
	bool idle = false;
	s32 pu;

	if (thread && !stale(resolve(p, thread), bpf_ktime_get_ns())) {
		/* Who has a slot goes through its queue, where the slot is looked at. */
		if (thread->slot || thread->kind == ONE_SET)
			return prev_cpu;
		if (thread->kind != ANYWHERE) {
			pu = idle_in_place(p, thread);
			if (pu >= 0)
				scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, 0);
			return pu >= 0 ? pu : prev_cpu;
		}
	}
	pu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &idle);
	if (idle)
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, 0);
	return pu;
}

/* A thread that slept does not catch up more than a slice. */
static u64 vtime_in(struct thread *thread, u32 queue)
{
	struct queue *at = queue_at(queue);
	u64 base = at ? at->vtime : 0;

	if (thread->vtime_queue != queue) {
		thread->vtime_queue = queue;
		thread->vtime = base;
	}
	if ((s64)(thread->vtime - (base - slice_ns)) < 0)
		thread->vtime = base - slice_ns;
	return thread->vtime;
}

static void note_filled(u32 slot, u32 queue, u64 now)
{
	struct queue *at = queue_at(queue);

	if (at && !scx_bpf_dsq_nr_queued(queue_id(slot, queue)))
		at->filled_ns = now;
}

static void enqueue_unknown(struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert_vtime(p, queue_id(0, 0), slice_ns, queues[0].vtime, enq_flags);
	wake_any(p);
}

SEC("struct_ops/consort_enqueue")
void BPF_PROG(consort_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct thread *thread = thread_of(p);
	u64 now = bpf_ktime_get_ns();
	u64 of_version;
	u32 queue, slot;

	if (!thread) {
		enqueue_unknown(p, enq_flags);
		return;
	}
	of_version = resolve(p, thread);
	queue = stale(of_version, now) ? 0 : queue_of(p, thread);
	slot = stale(of_version, now) ? 0 : thread->slot;
	if (is_blocked(queue) || queue >= nr_queues())
		queue = 0;
	if (slot)
		slots_seen = 1;
	note_filled(slot, queue, now);
	scx_bpf_dsq_insert_vtime(p, queue_id(slot, queue), slice_ns, vtime_in(thread, queue),
				 enq_flags);
	if (may_run(slot, of_version, now))
		wake_server(p, thread, of_version, queue);
}

static bool may_stay(struct task_struct *p, u32 pu, u64 now)
{
	struct thread *thread = thread_of(p);
	u64 of_version;

	if (!thread)
		return true;
	of_version = resolve(p, thread);
	account(p, thread, of_version, now);
	be_neighbour(p, thread, of_version, now);
	/* A thread that got another slot while it ran is counted in it only from its next turn. */
	if (thread->running_slot != thread->slot || !may_run(thread->slot, of_version, now))
		return false;
	return in_place(thread, of_version, pu) || stale(of_version, now) ||
	       is_blocked(queue_of(p, thread));
}

SEC("struct_ops/consort_dispatch")
void BPF_PROG(consort_dispatch, s32 cpu, struct task_struct *prev)
{
	struct pu *at = pu_at(cpu);
	u64 now = bpf_ktime_get_ns();
	u64 of_version = version_now();
	u32 slot, first, i;

	if (!at)
		return;
	slot = commit(at);
	/* Every other round those without a slot come first. */
	first = at->turn / NR_KINDS & 1 ? 0 : slot;
	at->turn++;
	bpf_for(i, 0, NR_KINDS) {
		if (take_of_kind(at, cpu, (at->turn + i) % NR_KINDS, first, of_version, now))
			return;
	}
	if (nr_blocked && relieve(slot))
		return;
	if (prev && (prev->scx.flags & SCX_TASK_QUEUED) && may_stay(prev, cpu, now)) {
		set_slice(prev, slice_ns);
		return;
	}
	__sync_lock_test_and_set(&at->committed_slot, 0);
}

/* A thread that may not migrate now cannot be anywhere else; BPF itself holds the current one. */
static bool is_stuck(struct task_struct *p)
{
	return p->migration_disabled > 1 ||
	       (p->migration_disabled && p != bpf_get_current_task_btf());
}

static void count_in_slot(struct thread *thread, struct pu *at)
{
	u32 slot = thread->slot;
	u32 *running = AT(running_in_slot, slot);
	u32 other;

	thread->running_slot = slot;
	at->running_slot = slot;
	if (!slot || !running)
		return;
	__sync_fetch_and_add(running, 1);
	bpf_for(other, 1, nr_slots + 1) {
		u32 *others = AT(running_in_slot, other);

		if (others && other != slot && *(volatile u32 *)others)
			__sync_fetch_and_add(&overlaps, 1);
	}
}

SEC("struct_ops/consort_running")
void BPF_PROG(consort_running, struct task_struct *p)
{
	struct thread *thread = thread_of(p);
	u32 pu = scx_bpf_task_cpu(p);
	struct pu *at = pu_at(pu);
	u64 now = bpf_ktime_get_ns();
	struct queue *queue;

	if (!thread || !at)
		return;
	resolve(p, thread);
	queue = queue_at(thread->vtime_queue);
	thread->since_ns = now;
	thread->pu = pu;
	thread->turns++;
	at->turns++;
	forced_idle_ends(at, now);
	if (queue && (s64)(queue->vtime - thread->vtime) < 0)
		queue->vtime = thread->vtime;
	count_in_slot(thread, at);
	__sync_lock_test_and_set(&at->committed_slot, 0);
	if (!may_stay(p, pu, now) && !is_stuck(p)) {
		at->turned_away++;
		scx_bpf_kick_cpu(pu, SCX_KICK_PREEMPT);
	}
}

SEC("struct_ops/consort_tick")
void BPF_PROG(consort_tick, struct task_struct *p)
{
	if (!may_stay(p, scx_bpf_task_cpu(p), bpf_ktime_get_ns()))
		set_slice(p, 0);
}

SEC("struct_ops/consort_stopping")
void BPF_PROG(consort_stopping, struct task_struct *p, bool runnable)
{
	struct thread *thread = thread_of(p);
	struct pu *at;
	u32 *running;

	if (!thread)
		return;
	account(p, thread, resolve(p, thread), bpf_ktime_get_ns());
	thread->since_ns = 0;
	at = pu_at(thread->pu);
	running = AT(running_in_slot, thread->running_slot);
	if (at) {
		at->running_slot = 0;
		at->together_since_ns = 0;
	}
	if (thread->running_slot && running)
		__sync_fetch_and_sub(running, 1);
	thread->running_slot = 0;
	/* With a rest of its slice it would wait on this PU, out of the queues' sight. */
	if (runnable)
		set_slice(p, 0);
}

SEC("struct_ops/consort_set_cpumask")
void BPF_PROG(consort_set_cpumask, struct task_struct *p, const struct cpumask *mask)
{
	struct thread *thread = thread_of(p);

	if (thread)
		thread->version = UNRESOLVED;
}

SEC("struct_ops/consort_update_idle")
void BPF_PROG(consort_update_idle, s32 cpu, bool idle)
{
	struct pu *at = pu_at(cpu);
	u64 now;

	if (!at)
		return;
	at->idle = idle;
	/* Who was enqueued after this PU had looked, but before it was known to idle, woke nobody. */
	if (idle && work_waits(cpu, slot_open()))
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
	if (!slots_seen)
		return;
	now = bpf_ktime_get_ns();
	forced_idle_ends(at, now);
	if (idle)
		forced_idle_begins(cpu, at, now);
}

SEC("struct_ops.s/consort_init_task")
s32 BPF_PROG(consort_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct thread *thread;

	if (p->policy != SCHED_EXT)
		return 0;
	thread = bpf_task_storage_get(&threads, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (thread)
		thread->version = UNRESOLVED;
	else
		__sync_fetch_and_add(&unrecorded, 1);
	return 0;
}

/* Threads that waited for long while their PUs did not come for any become anybody's. */
static void look_for_blocked(u64 now)
{
	u32 slot = slot_open();
	u32 queue;

	bpf_for(queue, 1, nr_queues()) {
		struct queue *at = queue_at(queue);
		u64 since;

		if (!at || at->blocked)
			continue;
		since = at->served_ns > at->filled_ns ? at->served_ns : at->filled_ns;
		if (now < since + relief_ns)
			continue;
		if (scx_bpf_dsq_nr_queued(queue_id(0, queue)) <= 0 &&
		    (!slot || scx_bpf_dsq_nr_queued(queue_id(slot, queue)) <= 0))
			continue;
		at->blocked = 1;
		reliefs++;
		__sync_fetch_and_add(&nr_blocked, 1);
	}
}

static int on_time(void *map, u32 *key, struct clock *clock)
{
	u64 now = bpf_ktime_get_ns();
	u64 next = turn_slots(now, HOUSEKEEPING_NS);
	bool is_stale = stale(version_now(), now);

	look_for_blocked(now);
	/* What waited for its slot or its PU may now run on any that idles. */
	if (nr_blocked || is_stale != clock->stale)
		kick_all(SCX_KICK_IDLE);
	clock->stale = is_stale;
	bpf_timer_start(&clock->timer, next, 0);
	return 0;
}

static s32 start_clock(void)
{
	u32 key = 0;
	struct clock *clock = bpf_map_lookup_elem(&clocks, &key);
	s32 error;

	if (!clock)
		return -2;
	error = bpf_timer_init(&clock->timer, &clocks, CLOCK_MONOTONIC);
	if (error)
		return error;
	bpf_timer_set_callback(&clock->timer, on_time);
	return bpf_timer_start(&clock->timer, HOUSEKEEPING_NS, 0);
}

SEC("struct_ops.s/consort_init")
s32 BPF_PROG(consort_init)
{
	u32 slot, queue;
	s32 error;

	/* Also makes clang describe the type whole, as libbpf wants it of functions' arguments. */
	if (!bpf_core_type_exists(struct cpumask))
		return -22;
	bpf_for(slot, 0, nr_slots + 1) {
		bpf_for(queue, 0, nr_queues()) {
			error = scx_bpf_create_dsq(queue_id(slot, queue), -1);
			if (error)
				return error;
		}
	}
	return start_clock();
}

SEC("struct_ops/consort_exit")
void BPF_PROG(consort_exit, struct scx_exit_info *info)
{
	bpf_probe_read_kernel_str(ending.reason, sizeof(ending.reason), info->reason);
	bpf_probe_read_kernel_str(ending.message, sizeof(ending.message), info->msg);
	ending.code = info->exit_code;
	/* Last: user space reads the rest once this is not 0. */
	__sync_lock_test_and_set(&ending.kind, info->kind);
}

SEC(".struct_ops.link")
struct sched_ext_ops consort = {
	.select_cpu = (void *)consort_select_cpu,
	.enqueue = (void *)consort_enqueue,
	.dispatch = (void *)consort_dispatch,
	.tick = (void *)consort_tick,
	.running = (void *)consort_running,
	.stopping = (void *)consort_stopping,
	.set_cpumask = (void *)consort_set_cpumask,
	.update_idle = (void *)consort_update_idle,
	.init_task = (void *)consort_init_task,
	.init = (void *)consort_init,
	.exit = (void *)consort_exit,
	.flags = SCX_OPS_KEEP_BUILTIN_IDLE | SCX_OPS_ENQ_LAST | SCX_OPS_ENQ_EXITING |
		 SCX_OPS_SWITCH_PARTIAL,
	.name = "consort",
};
