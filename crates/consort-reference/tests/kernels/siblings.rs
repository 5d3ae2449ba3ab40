//! Effects of threads of one core on each other: the forms that are known to hold.

use crate::machine::{about, alone, buffers, plain, run, with, within};
use crate::ops;
use consort_ops::{Op, OpKind};
use consort_reference::{OpSource, RunLength, SlotCause, ThreadOutcome};
use consort_sim::machine::detail::BufferSharing;
use consort_sim::machine::{CoreSpec, MachineSpec, RobSharing, presets};

const LENGTH: RunLength = RunLength {
    warm_up: 10_000,
    measured: 20_000,
};

fn pair(spec: &MachineSpec, a: &dyn OpSource, b: &dyn OpSource) -> [f64; 2] {
    let outcome = run(spec, &[a, b], LENGTH);
    [outcome.threads[0].ipc(), outcome.threads[1].ipc()]
}

/// Halves every buffer.
fn split(core: &mut CoreSpec) {
    core.rob_sharing = RobSharing::Partitioned;
    let buffers = buffers(core);
    buffers
        .issue
        .iter_mut()
        .for_each(|queue| queue.sharing = BufferSharing::Partitioned);
    for queue in [&mut buffers.load_queue, &mut buffers.store_queue] {
        queue
            .iter_mut()
            .for_each(|queue| queue.sharing = BufferSharing::Partitioned);
    }
}

#[test]
fn two_threads_that_fill_dispatch_get_half_each() {
    let int = ops::independent(OpKind::Integer);
    let [a, b] = pair(&plain(), &int, &int);
    about(a, 2.0);
    about(b, 2.0);
    let outcome = run(&plain(), &[&int, &int], LENGTH);
    let lost = outcome.threads[0].stack.cycles(SlotCause::CoRunner);
    about(lost / outcome.threads[0].cycles as f64, 0.5);
}

#[test]
fn what_one_thread_leaves_the_other_takes() {
    let int = ops::independent(OpKind::Integer);
    let [slow, fast] = pair(&plain(), &ops::chain(OpKind::Multiply), &int);
    within(slow, 1.0 / 3.0, 0.1);
    // Operations that wait fill a shared issue queue; with halves, all slots are used.
    assert!(fast < 1.0, "{fast}");
    let [slow, fast] = pair(&with(split), &ops::chain(OpKind::Multiply), &int);
    about(slow, 1.0 / 3.0);
    about(fast, 4.0 - 1.0 / 3.0);
}

#[test]
fn a_chaser_clogs_a_shared_window_and_leaves_a_split_one_alone() {
    let (chase, fp) = (ops::chase(4096), ops::independent(OpKind::FpAdd));
    let before = alone(&plain(), &fp).ipc();
    let [_, shared] = pair(&plain(), &chase, &fp);
    assert!(before / shared > 1.3, "shared: {:.2}", before / shared);
    let [_, halves] = pair(&with(split), &chase, &fp);
    about(before / halves, 1.0);
}

#[test]
fn two_chasers_do_not_hurt_each_other_through_the_core() {
    let chase = ops::chase(64);
    let before = alone(&plain(), &chase).ipc();
    for ipc in pair(&plain(), &chase, &chase) {
        about(before / ipc, 1.0);
    }
}

#[test]
fn private_buffers_and_ports_leave_dispatch_alone_to_share() {
    let private = with(|core| {
        core.rob_sharing = RobSharing::Private;
        core.buffers = None;
    });
    let fp = ops::independent(OpKind::FpAdd);
    let [chase, beside] = pair(&private, &ops::chase(4096), &fp);
    about(beside, 2.0);
    about(chase, 1.0 / 170.0);
}

/// Instructions per cycle of threads on one core of POWER7, of which `m` multiply and others add
/// in floating point; halves bind from so many threads.
fn power7(halves_from: u32, kinds: &str) -> Vec<f64> {
    let mut spec = presets::find("power7").expect("it is a preset");
    let core = spec.core_types.values_mut().next();
    core.expect("it has cores").halves_from_ways = Some(halves_from);
    let kernel = |kind| match kind {
        'm' => ops::independent(OpKind::Multiply),
        _ => ops::independent(OpKind::FpAdd),
    };
    let kernels: Vec<_> = kinds.chars().map(kernel).collect();
    let programs: Vec<&dyn OpSource> = kernels.iter().map(|ops| ops as &dyn OpSource).collect();
    let outcome = run(&spec, &programs, LENGTH);
    outcome.threads.iter().map(ThreadOutcome::ipc).collect()
}

#[test]
fn halves_bind_from_as_many_threads_as_the_file_says() {
    // Two pipes multiply, one in each half; any thread's floating point takes either of two.
    about(power7(3, "m")[0], 2.0);
    about(power7(3, "mf")[0], 2.0);
    about(power7(2, "mf")[0], 1.0);
    // A group of four per cycle, of four threads in turn: one instruction each, where pipes allow.
    let both = |halves_from, kinds: &str| {
        let found = power7(halves_from, kinds).into_iter().zip(kinds.chars());
        let multiplied = found.filter(|(_, kind)| *kind == 'm');
        multiplied.map(|(ipc, _)| ipc).sum::<f64>()
    };
    about(both(3, "mmff"), 2.0);
    about(both(3, "mfmf"), 1.0);
    about(both(5, "mfmf"), 2.0);
}

/// Slowdowns of independent loads that hit the L1 and of such that miss every cache, together on
/// one core of POWER8 that holds threads back as its file says, or not at all.
fn next_to_misses(is_balanced: bool) -> [f64; 2] {
    let mut spec = presets::find("power8").expect("it is a preset");
    let core = spec.core_types.values_mut().next().expect("it has cores");
    if !is_balanced {
        let buffers = buffers(core);
        (buffers.balance_percent, buffers.balance_misses) = (None, None);
    }
    let (hits, misses) = (ops::scatter(16), ops::scatter(32 << 10));
    let together = pair(&spec, &hits, &misses);
    let programs: [&dyn OpSource; 2] = [&hits, &misses];
    [0, 1].map(|i| run(&spec, &[programs[i]], LENGTH).threads[0].ipc() / together[i])
}

#[test]
fn power8_holds_back_threads_that_miss() {
    let (balanced, free) = (next_to_misses(true), next_to_misses(false));
    assert!(free[0] > 1.1 * balanced[0], "{free:?} {balanced:?}");
    assert!(balanced[1] > free[1], "{free:?} {balanced:?}");
}

#[test]
fn whole_groups_leave_cycles_to_others() {
    let beside = |whole: bool| {
        let spec = with(|core| {
            split(core);
            let front = core.front_end.get_or_insert_default();
            (front.dispatch_threads, front.whole_groups) = (Some(1), whole);
        });
        let chain = ops::chain(OpKind::Multiply);
        let [slow, fast] = pair(&spec, &chain, &ops::independent(OpKind::Integer));
        about(slow, 1.0 / 3.0);
        fast
    };
    // By hand: a chain of multiplications frees an entry every third cycle. It takes each of these
    // cycles, or with a group of four each twelfth.
    about(beside(false), 4.0 * 2.0 / 3.0);
    about(beside(true), 4.0 * 11.0 / 12.0);
}

/// A division, and additions that wait for nothing, so that the divider sets one per cycle.
fn divider(interval: usize) -> Vec<Op> {
    let kind = |i| match i % interval {
        0 => OpKind::Divide,
        _ => OpKind::Integer,
    };
    let op = |i: usize| ops::independent(kind(i))[i % 32];
    (0..8 * interval).map(op).collect()
}

#[test]
fn chain_disturbs_more_than_equally_slow_divider() {
    let spec = presets::find("xeon-silver-4110").expect("it is a preset");
    let adds = ops::independent(OpKind::Integer);
    let ipc = |program: &dyn OpSource| run(&spec, &[program], LENGTH).threads[0].ipc();
    let (chain, divider) = (ops::chain(OpKind::Integer), divider(6));
    about(ipc(&chain), 1.0);
    about(ipc(&divider), 1.0);
    let next_to = |other: &dyn OpSource| ipc(&adds) / pair(&spec, &adds, other)[0];
    let (chain, divider) = (next_to(&chain), next_to(&divider));
    assert!(chain > 1.05 * divider, "{chain} {divider}");
}
