/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * The few kernel types and functions that the scheduler uses, in place of a generated vmlinux.h.
 *
 * Only names and types matter: fields are found in the running kernel's own type information
 * when the programs are loaded, and the members of sched_ext_ops are matched by name.
 */
#ifndef CONSORT_KERNEL_H
#define CONSORT_KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;
typedef _Bool bool;

#define true 1
#define false 0
#define NULL ((void *)0)

enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};
enum { BPF_ANY = 0, BPF_NOEXIST = 1 };
enum { BPF_F_NO_PREALLOC = 1 };
enum { BPF_LOCAL_STORAGE_GET_F_CREATE = 1 };
enum { CLOCK_MONOTONIC = 1 };

/* Values that have been the same since sched_ext entered the kernel. */
enum {
	SCHED_EXT = 7,
	SCX_TASK_QUEUED = 1,
	SCX_OPS_KEEP_BUILTIN_IDLE = 1,
	SCX_OPS_ENQ_LAST = 2,
	SCX_OPS_ENQ_EXITING = 4,
	SCX_OPS_SWITCH_PARTIAL = 8,
	SCX_KICK_IDLE = 1,
	SCX_KICK_PREEMPT = 2,
};
#define SCX_DSQ_LOCAL 0x8000000000000002ULL

enum scx_exit_kind { SCX_EXIT_NONE };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct cpumask {
	unsigned long bits[1];
};

struct sched_ext_entity {
	u32 flags;
	u32 weight;
	u64 slice;
};

struct task_struct {
	s32 pid;
	s32 tgid;
	unsigned int policy;
	int nr_cpus_allowed;
	unsigned short migration_disabled;
	u64 start_boottime;
	const struct cpumask *cpus_ptr;
	struct sched_ext_entity scx;
};

struct scx_exit_info {
	enum scx_exit_kind kind;
	s64 exit_code;
	const char *reason;
	char *msg;
};

#pragma clang attribute pop

struct scx_init_task_args;

struct sched_ext_ops {
	s32 (*select_cpu)(struct task_struct *p, s32 prev_cpu, u64 wake_flags);
	void (*enqueue)(struct task_struct *p, u64 enq_flags);
	void (*dispatch)(s32 cpu, struct task_struct *prev);
	void (*tick)(struct task_struct *p);
	void (*running)(struct task_struct *p);
	void (*stopping)(struct task_struct *p, bool runnable);
	void (*set_cpumask)(struct task_struct *p, const struct cpumask *cpumask);
	void (*update_idle)(s32 cpu, bool idle);
	s32 (*init_task)(struct task_struct *p, struct scx_init_task_args *args);
	s32 (*init)(void);
	void (*exit)(struct scx_exit_info *info);
	u64 flags;
	u32 timeout_ms;
	char name[128];
};

struct bpf_iter_num {
	__u64 opaque[1];
};

struct bpf_timer {
	__u64 opaque[2];
};

#include <bpf/bpf_helpers.h>

extern s32 scx_bpf_create_dsq(u64 dsq_id, s32 node) __ksym;
extern s32 scx_bpf_dsq_nr_queued(u64 dsq_id) __ksym;
extern bool scx_bpf_dsq_move_to_local(u64 dsq_id) __ksym;
extern void scx_bpf_dsq_insert(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags) __ksym;
extern void scx_bpf_dsq_insert_vtime(struct task_struct *p, u64 dsq_id, u64 slice, u64 vtime,
				     u64 enq_flags) __ksym;
extern s32 scx_bpf_select_cpu_dfl(struct task_struct *p, s32 prev_cpu, u64 wake_flags,
				  bool *is_idle) __ksym;
extern s32 scx_bpf_pick_idle_cpu(const struct cpumask *allowed, u64 flags) __ksym;
extern bool scx_bpf_test_and_clear_cpu_idle(s32 cpu) __ksym;
extern void scx_bpf_kick_cpu(s32 cpu, u64 flags) __ksym;
extern s32 scx_bpf_task_cpu(const struct task_struct *p) __ksym;
/* Newer kernels want a call where older ones let the field be written. */
extern bool scx_bpf_task_set_slice(struct task_struct *p, u64 slice) __ksym __weak;

extern bool bpf_cpumask_test_cpu(u32 cpu, const struct cpumask *cpumask) __ksym;
extern u32 bpf_cpumask_first(const struct cpumask *cpumask) __ksym;

#endif
