//! A CPU as the operating system sees it: its current thread, its queue, and fairness among them.
//!
//! Threads of a CPU are ordered by virtual run time, the time that they have had on CPUs (all have
//! one weight): the one with the least is next. A thread that comes to a CPU keeps its distance to
//! the least of the CPU where it was, but is at most half the scheduling latency behind the least
//! here, so that sleeping earns no more than that, and not behind at all if it is new. One that
//! wakes takes the CPU at once if the thread on it is ahead by more than the wake-up granularity
//! (Linux before 6.6, kernel/sched/fair.c: `place_entity`, `check_preempt_wakeup`,
//! `update_min_vruntime`, `migrate_task_rq_fair`). There the latency is 6 ms and the granularity 1 ms, both times 1 + log2
//! of the number of CPUs, so that two threads on a CPU have slices of half the latency, and the
//! granularity is a third of a slice: both follow from the machine's slice. Today's Linux keeps the
//! lag of sleepers and compares deadlines; a thread that has slept preempts there as well.
//!
//! A slice ends with a timer interrupt of its CPU, and those of different CPUs are not at the same
//! instants, so that slices of different CPUs are not in step.

use super::calendar::{NEVER, PS_PER_MS, to_signed};
use super::relearn::OverwrittenTraining;
use super::thread::{SimulatedThread, TIMER_PS};
use std::collections::VecDeque;

/// Time that moving a thread is taken to cost, ps (`sysctl_sched_migration_cost`, 0.5 ms).
pub(crate) const MIGRATION_COST_PS: u64 = PS_PER_MS / 2;

/// A CPU's state; threads by index.
#[derive(Clone, Debug)]
pub(crate) struct PuState {
    pub(crate) current: Option<usize>,
    pub(crate) queue: VecDeque<usize>,
    /// Thread that was on it last.
    pub(crate) last: Option<usize>,
    /// Instant at which `current` came, ps.
    pub(crate) since: u64,
    /// Start of the time slice in which `current` came, ps.
    pub(crate) slice_since: u64,
    /// Start of the slice that the next thread continues, ps; `None` if it begins a new one.
    pub(crate) carried: Option<u64>,
    /// Branches that `current` had completed when it came.
    pub(crate) branches: f64,
    /// Training of its branch predictor that is gone.
    pub(crate) overwritten: OverwrittenTraining,
    /// Least virtual run time of its threads so far, ps; see [`super::pu`].
    pub(crate) least_ps: i64,
    /// Instant at which the last thread left it, ps.
    pub(crate) idle_since: u64,
    /// Running mean of the times for which it was idle, ps; a time counts as twice
    /// [`MIGRATION_COST_PS`] at most (`avg_idle`, kernel/sched.c).
    pub(crate) mean_idle_ps: u64,
    /// True if `current` must make way for a thread that has woken.
    pub(crate) preempted: bool,
    /// Instant at which `current` must make way, ps; [`NEVER`] while no thread waits.
    pub(crate) slice_end: u64,
    /// Instant of its timer interrupts in their period, ps.
    tick_offset: u64,
}

impl PuState {
    pub(crate) fn new(tick_offset: u64) -> Self {
        Self {
            current: None,
            queue: VecDeque::new(),
            last: None,
            since: 0,
            slice_since: 0,
            carried: None,
            branches: 0.0,
            overwritten: OverwrittenTraining::default(),
            least_ps: 0,
            idle_since: 0,
            mean_idle_ps: 2 * MIGRATION_COST_PS,
            preempted: false,
            slice_end: NEVER,
            tick_offset,
        }
    }

    /// Runnable threads.
    pub(crate) fn load(&self) -> usize {
        self.queue.len() + usize::from(self.current.is_some())
    }

    /// Begins a thread that has completed so many branches; [`PuState::arm`] is up to the caller.
    pub(crate) fn begin(&mut self, t: usize, branches: f64, now: u64) {
        self.current = Some(t);
        self.since = now;
        let idle_ps = (now - self.idle_since).min(2 * MIGRATION_COST_PS);
        // A switch from one thread to another is no idle time.
        if idle_ps > 0 {
            self.mean_idle_ps = (7 * self.mean_idle_ps + idle_ps) / 8;
        }
        self.slice_since = self.carried.take().unwrap_or(now);
        self.preempted = false;
        self.branches = branches;
    }

    /// Sets when the current thread must make way: an instant in the past, so at once, if it is
    /// preempted, else the first timer interrupt at which it has been there for a slice
    /// (`entity_tick`, `check_preempt_tick`).
    pub(crate) fn arm(&mut self, slice_ps: u64, now: u64) {
        let shared = self.current.is_some() && !self.queue.is_empty();
        // The thread that woke has left again.
        self.preempted &= shared;
        self.slice_end = match (shared, self.preempted) {
            (true, true) => self.since,
            (true, false) => self.tick_from(now.max(self.slice_since + slice_ps)),
            (false, _) => NEVER,
        };
    }

    /// The first timer interrupt at an instant or after it.
    fn tick_from(&self, at: u64) -> u64 {
        let since = at.saturating_sub(self.tick_offset);
        self.tick_offset + since.div_ceil(TIMER_PS) * TIMER_PS
    }
}

/// Wake-up granularity, slices.
const GRANULARITY: i64 = 3;

impl PuState {
    /// Adds the time of the thread that leaves it to the thread's virtual run time.
    pub(crate) fn charge(&mut self, threads: &mut [SimulatedThread], now: u64) {
        self.note_least(threads, now);
        if let Some(t) = self.current {
            threads[t].queue.vruntime_ps = self.vruntime_at(&threads[t], now);
        }
    }

    /// Lets a woken thread preempt the current one if it is far enough behind in virtual run time.
    pub(crate) fn preempt(
        &mut self,
        threads: &[SimulatedThread],
        t: usize,
        (now, slice_ps): (u64, u64),
    ) {
        let behind = threads[t].queue.vruntime_ps + to_signed(slice_ps) / GRANULARITY;
        let ahead = |on: usize| self.vruntime_at(&threads[on], now) > behind;
        if self.current.is_some_and(ahead) {
            self.preempted = true;
            self.arm(slice_ps, now);
        }
    }

    /// Takes the next thread out of the queue.
    pub(crate) fn take_next(&mut self, threads: &[SimulatedThread]) -> Option<usize> {
        let least = |at: &usize| threads[self.queue[*at]].queue.vruntime_ps;
        let at = (0..self.queue.len()).min_by_key(least)?;
        self.queue.remove(at)
    }

    /// Raises the least virtual run time to that of its threads; it never falls. A thread that
    /// comes must not be in the queue yet: the least would be its own, however long it has slept.
    pub(crate) fn note_least(&mut self, threads: &[SimulatedThread], now: u64) {
        let on = self.current.map(|t| self.vruntime_at(&threads[t], now));
        let queued = self.queue.iter().map(|&t| threads[t].queue.vruntime_ps);
        if let Some(least) = queued.chain(on).min() {
            self.least_ps = self.least_ps.max(least);
        }
    }

    fn vruntime_at(&self, on: &SimulatedThread, now: u64) -> i64 {
        on.queue.vruntime_ps + to_signed(now.saturating_sub(self.since))
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::calendar::{PS_PER_MS, seconds};
    use crate::engine::testing::{engine, instances, program, program_with};
    use crate::engine::{Engine, RunMode};
    use consort_core::PuId;
    use proptest::prelude::*;

    /// A thread that sleeps for input and output, and one that never does, on one CPU.
    fn beside(per_ginstr: f64, blocked_us: f64, ms: u64) -> Engine {
        let io = format!("[io]\nper_ginstr = {per_ginstr:?}\nblocked_us = {blocked_us:?}");
        let mut work = instances(&program_with(&io), 1, 1, 1000.0);
        work.extend(instances(&program(), 1, 1, 1000.0));
        let mut engine = engine("linux", RunMode::Once, &work, 1);
        for t in 0..2 {
            engine.restrict(t, [PuId(0)].into_iter().collect());
        }
        engine.enforce_masks();
        engine.run_until(ms * PS_PER_MS);
        engine
    }

    #[test]
    fn long_sleeper_does_not_wait_for_slices() {
        let engine = beside(1000.0, 20_000.0, 2000);
        let sleeper = engine.threads[0].counters.total();
        assert!(sleeper.io_returns > 50);
        let wait_s = sleeper.wait_s / sleeper.io_returns as f64;
        assert!(wait_s < 1e-5, "{wait_s}");
    }

    #[test]
    fn short_sleeper_waits_like_busy_thread() {
        let engine = beside(1000.0, 5.0, 2000);
        let (sleeper, other) = (
            engine.threads[0].counters.total(),
            engine.threads[1].counters.total(),
        );
        assert!(sleeper.wait_s > 0.4 * seconds(engine.now_ps()));
        // The busy thread keeps the CPU from a third of a slice ahead to a third beyond a slice,
        // which the sleeper does not get back: turns of 1 and of 2/3 slices, and until the next
        // tick, half a slice later on average.
        let ratio = other.on_pu_s / sleeper.on_pu_s;
        assert!((1.0..2.25).contains(&ratio), "{ratio}");
    }

    /// Lets time pass in steps of 0.1 ms until an instant, ms. Returns the longest time that each
    /// thread waited without a turn, ms.
    fn longest_waits(engine: &mut Engine, until_ms: u64) -> Vec<f64> {
        let mut waits = vec![(0.0, 0.0, 0.0f64); engine.threads.len()];
        while engine.now_ps() < until_ms * PS_PER_MS && !engine.is_done() {
            engine.run_until(engine.now_ps() + PS_PER_MS / 10);
            for (thread, (ran_s, since_s, longest)) in engine.threads.iter().zip(&mut waits) {
                let total = thread.counters.total();
                if total.on_pu_s > *ran_s || !thread.is_runnable() {
                    (*ran_s, *since_s) = (total.on_pu_s, total.wait_s);
                }
                *longest = longest.max((total.wait_s - *since_s) * 1e3);
            }
        }
        waits.into_iter().map(|(_, _, longest)| longest).collect()
    }

    #[test]
    fn slices_of_different_pus_are_not_in_step() {
        // Two threads on CPU 0 and on CPU 4, of eight, whose ticks are 1 ms apart.
        let mut engine = engine(
            "pinned",
            RunMode::Once,
            &instances(&program(), 4, 1, 9.0),
            1,
        );
        (0..4).for_each(|t| engine.restrict(t, PuId(if t < 2 { 0 } else { 4 }).into()));
        engine.enforce_masks();
        let mut turns = [Vec::new(), Vec::new()];
        let mut on = [None; 2];
        for quarter in 1..=4 * 40u64 {
            engine.run_until(quarter * PS_PER_MS / 4);
            engine.fill_free_pus();
            for (pu, turns) in [0, 4].into_iter().zip(&mut turns) {
                let now = engine.kernel.current_thread(pu);
                let before = std::mem::replace(&mut on[pu / 4], now);
                if before.is_some() && before != now {
                    turns.push(quarter);
                }
            }
        }
        // A slice is as long as a tick, 16 quarters of a ms.
        let [first, second] = turns;
        assert!(first.len() > 5 && second.len() > 5, "{first:?} {second:?}");
        assert!(first.iter().all(|at| at % 16 == 0), "{first:?}");
        assert!(second.iter().all(|at| at % 16 == 4), "{second:?}");
    }

    #[test]
    fn newcomer_shares_from_the_start() {
        let mut work = instances(&program(), 2, 1, 1000.0);
        work[1].start_ms = 500.0;
        let mut engine = engine("pinned", RunMode::Once, &work, 1);
        (0..2).for_each(|t| engine.restrict(t, PuId(0).into()));
        engine.run_until(500 * PS_PER_MS);
        let slice_ms = engine.chip.spec().os.slice_ms;
        let waits = longest_waits(&mut engine, 540);
        assert!(waits.iter().all(|&ms| ms <= slice_ms + 0.1), "{waits:?}");
    }

    #[test]
    fn threads_that_slept_through_a_serial_section_share_with_a_co_runner() {
        let spec = program_with("[threads]\ndefault = 4\nmax = 4\nserial_share = 0.5");
        let mut work = instances(&spec, 1, 4, 0.8);
        work.extend(instances(&program(), 1, 1, 1000.0));
        let mut engine = engine("pinned", RunMode::Once, &work, 1);
        for t in 0..5 {
            engine.restrict(t, PuId(if t == 0 { 2 } else { 0 }).into());
        }
        let waits = longest_waits(&mut engine, 2000);
        assert!(engine.threads[1].counters.total().blocked_s > 0.05);
        // Three sleepers wake at once, each a slice behind, and then all four take turns.
        let bound_ms = 6.0 * engine.chip.spec().os.slice_ms + 0.1;
        assert!(waits.iter().all(|&ms| ms <= bound_ms), "{waits:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn sleeper_takes_nothing_from_busy_thread(
            per_ginstr in 1.0f64..20_000.0, blocked_us in 1.0f64..50_000.0,
        ) {
            let engine = beside(per_ginstr, blocked_us, 1000);
            let other = engine.threads[1].counters.total();
            let passed = seconds(engine.now_ps());
            // But for what sleeping may earn, a slice.
            let slice_s = engine.chip.spec().os.slice_ms * 1e-3;
            prop_assert!(other.on_pu_s > 0.5 * passed - 2.0 * slice_s, "{} of {passed}", other.on_pu_s);
        }

        /// Two slices are the scheduling latency.
        #[test]
        fn no_thread_waits_longer_than_latency_times_runnable_threads(
            per_ginstr in 1.0f64..2000.0,
            blocked_us in 1.0f64..100_000.0,
            sleepers in 1usize..4,
            starts_ms in prop::collection::vec(0.0f64..300.0, 1..4),
            moves in prop::collection::vec((0usize..7, 0u32..2), 0..20),
        ) {
            let io = format!("[io]\nper_ginstr = {per_ginstr:?}\nblocked_us = {blocked_us:?}");
            let mut work = instances(&program_with(&io), sleepers, 1, 1000.0);
            work.extend(instances(&program(), starts_ms.len(), 1, 1000.0));
            for (one, start_ms) in work[sleepers..].iter_mut().zip(&starts_ms) {
                one.start_ms = *start_ms;
            }
            let mut engine = engine("pinned", RunMode::Once, &work, 1);
            let n = work.len();
            (0..n).for_each(|t| engine.restrict(t, PuId(0).into()));
            let bound_ms = 2.0 * engine.chip.spec().os.slice_ms * n as f64 + 0.1;
            for (number, (t, pu)) in moves.into_iter().enumerate() {
                let waits = longest_waits(&mut engine, 40 * (number as u64 + 1));
                prop_assert!(waits.iter().all(|&ms| ms <= bound_ms), "{waits:?}");
                engine.restrict(t % n, PuId(2 * pu).into());
                engine.enforce_masks();
            }
            let waits = longest_waits(&mut engine, 1000);
            prop_assert!(waits.iter().all(|&ms| ms <= bound_ms), "{waits:?}");
        }
    }
}
