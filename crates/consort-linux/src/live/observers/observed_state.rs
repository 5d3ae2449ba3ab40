//! The last reading of one thread, and the rules by which its counters suffice without `/proc`.
//!
//! Counters of a thread are read with one system call, which costs a third of the time that its files
//! in `/proc` take (0.7 against 1.9 us), but they make each of its switches slower. So threads are
//! counted only if a policy decides by the threads that can run at the moment. Then
//!
//! - `/proc` is read every [`TIMES_EVERY`]. For a thread that keeps sleeping it is read only every
//!   [`STATES_EVERY`]: such a thread does not change, and a host may have thousands of them;
//! - if states decide, `/proc` is also read when the thread has left its CPU, or has begun a sleep
//!   if
//!   sleeps are counted, because only its state then shows whether it can run.
//!
//! Without counters, `/proc` is read in every quantum and shows as much. Of its two files, `schedstat`
//! alone is read, for a third of the cost of both, as long as its times show the state: a thread that
//! ran can run, and one that slept and did not run still sleeps. `stat` is read whenever a thread did
//! not run although it was awake, and every [`STATES_EVERY`].
//!
//! Pitfall: in quanta below [`TIMES_EVERY`] no waiting time is reported, and the CPU is the one
//! that was read last.

use crate::counters::SleepCounter;
use crate::discovery::{ProcSample, RunState};
use crate::live::clock;
use consort_core::{PuId, Reading, Sample, Signal, Tier};
use std::time::{Duration, Instant};

/// Longest time between two readings of a running thread in `/proc`. In longer quanta it is read every
/// time.
pub(super) const TIMES_EVERY: Duration = Duration::from_millis(50);
/// The same for its state and CPU if states do not decide, and for everything about a thread that
/// has slept all the time. A thread that was woken and waits for a CPU seems asleep until it runs,
/// or for this long. In quanta of a second everything is read in each.
const STATES_EVERY: Duration = Duration::from_millis(950);

/// State of a thread at the last reading; at first, one that has consumed nothing.
#[derive(Clone, Debug, Default)]
pub(in crate::live) struct ObservedState {
    /// Last reading of `/proc`.
    last: Option<ProcSample>,
    /// Time of that reading.
    read: Option<Instant>,
    /// Time of the last reading that included its state and CPU.
    reported: Option<Instant>,
    /// Sleeps of the thread since it was first seen.
    sleeps: Option<SleepCounter>,
}

impl ObservedState {
    /// Number of times that the thread was put on a CPU until the last reading of `/proc`.
    pub(super) fn runs(&self) -> Option<u64> {
        self.last?.runs
    }

    /// CPU that the thread was on at the last reading of `/proc`.
    pub(in crate::live) fn last_pu(&self) -> Option<PuId> {
        self.last.map(|last| last.last_pu)
    }

    /// CPU that the thread was on at the end of an interval of this length, ns, as `/proc` showed
    /// it then or, in short intervals, shortly before. An older CPU may be that of an earlier
    /// place.
    pub(in crate::live) fn pu_at(&self, end: Instant, length_ns: u64) -> Option<PuId> {
        let limit = Duration::from_nanos(length_ns).max(TIMES_EVERY);
        self.recent_position(end, limit).map(|(_, pu)| pu)
    }

    /// State and CPU at the last reading of `/proc`, if that is younger than `limit`.
    pub(in crate::live) fn recent_position(
        &self,
        now: Instant,
        limit: Duration,
    ) -> Option<(RunState, PuId)> {
        self.reported.filter(|reported| now - *reported < limit)?;
        self.last.map(|reported| (reported.state, reported.last_pu))
    }

    /// State of the thread, true for runnable, if counters alone show it, so that `/proc` need not be
    /// read. If sleeps are not counted, each switch may have been one. If no `states` are wanted, a
    /// thread that ran counts as runnable.
    pub(super) fn infer_runnable(
        &self,
        now: Instant,
        begun: Option<u64>,
        states: bool,
        sample: &Sample,
    ) -> Option<bool> {
        let counted = sample.reading(Signal::CpuTime)?.tier >= Tier::Software;
        let switches = || sample.get(Signal::ContextSwitches).map(|n| n as u64);
        let most_begun = begun.or_else(switches)?;
        let ran = sample.cpu_time_ns() > 0.0;
        let inferred = self.sleeps?.infer_state(most_begun, ran);
        let assumed = (ran && !states).then_some(true);
        let runnable = inferred.or(assumed).filter(|_| counted)?;
        let limit = if runnable { TIMES_EVERY } else { STATES_EVERY };
        let is_recent = now.duration_since(self.read?) < limit;
        is_recent.then_some(runnable)
    }

    /// A reading of the thread's times, if they show its state as well: a thread that ran can run, and
    /// one that slept and did not run still sleeps.
    pub(super) fn infer_from_times(
        &self,
        now: Instant,
        read: impl FnOnce(ProcSample) -> Option<ProcSample>,
    ) -> Option<ProcSample> {
        let last = self.last?;
        let slept = last.state != RunState::Runnable;
        let is_recent = now.duration_since(self.reported?) < STATES_EVERY;
        let times = is_recent.then(|| read(last)).flatten()?;
        let ran = times.runs > last.runs || times.cpu_ns > last.cpu_ns;
        match (ran, slept) {
            (true, _) => Some(ProcSample {
                state: RunState::Runnable,
                ..times
            }),
            (false, true) => Some(times),
            (false, false) => None,
        }
    }

    /// Adds that a thread that slept all the time waited for no CPU, if the kernel reports waiting.
    pub(super) fn add_no_wait(&self, interval_ns: u64, sample: &mut Sample) {
        let is_reported = self.last.is_some_and(|last| last.wait_ns.is_some());
        if is_reported && interval_ns >= clock::nanos(TIMES_EVERY) {
            sample.set(
                Signal::WaitTime,
                Reading::fully_counted(0.0, Tier::Proc, interval_ns),
            );
        }
    }

    /// Starts from this reading: what the thread has consumed until `now` is not counted.
    pub(super) fn set_baseline(&mut self, now: Instant, reported: ProcSample) {
        self.last = Some(reported);
        self.read = Some(now);
        self.reported = Some(now);
    }

    /// Adds a reading of `/proc`, of state and CPU too or of times alone.
    pub(super) fn add_proc(
        &mut self,
        now: Instant,
        (reported, is_whole): (ProcSample, bool),
        interval_ns: u64,
        sample: &mut Sample,
    ) {
        let since = self.read.map(|read| now.duration_since(read));
        let span_ns = since.map_or(interval_ns, clock::nanos);
        add_times(
            self.last.as_ref(),
            &reported,
            (interval_ns, span_ns),
            sample,
        );
        self.last = Some(reported);
        self.read = Some(now);
        if is_whole {
            self.reported = Some(now);
        }
    }

    /// Forgets the thread's sleeps, because a pause looks like one. It counts as awake when it
    /// continues; one that slept before the pause sleeps again at once.
    pub(super) fn restart_sleeps(&mut self) {
        if let Some(sleeps) = &mut self.sleeps {
            *sleeps = SleepCounter::from_state(RunState::Runnable);
        }
    }

    /// Counts the thread's sleeps from now on, when it is in this state.
    pub(super) fn restart_sleeps_in(&mut self, state: RunState) {
        self.sleeps = Some(SleepCounter::from_state(state));
    }

    /// Adds the number of returns from blocking calls, once it is known whether the thread can run.
    pub(super) fn add_returns(&mut self, begun: Option<u64>, runnable: bool, sample: &mut Sample) {
        let Some(sleeps) = self.sleeps.as_mut() else {
            return;
        };
        let ended = sleeps.add_interval(begun.unwrap_or(0), runnable);
        if begun.is_none() {
            return;
        }
        let futex = sample.get(Signal::FutexReturns).unwrap_or(0.0);
        if let Some(cpu) = sample.reading(Signal::CpuTime) {
            let others = Reading {
                raw: (ended as f64 - futex).max(0.0),
                tier: Tier::Software,
                ..cpu
            };
            sample.set(Signal::BlockingReturns, others);
        }
    }
}

/// Adds a thread's consumption between two readings of `/proc`. If the last reading was before the
/// beginning of the interval, the interval gets its share of the CPU time, and no waiting time.
fn add_times(
    before: Option<&ProcSample>,
    now: &ProcSample,
    (interval_ns, span_ns): (u64, u64),
    sample: &mut Sample,
) {
    let reading = |raw: f64| Reading::fully_counted(raw, Tier::Proc, interval_ns);
    let cpu_ns = now.cpu_ns.saturating_sub(before.map_or(0, |b| b.cpu_ns)) as f64;
    let is_whole = span_ns <= interval_ns;
    let share = if is_whole {
        1.0
    } else {
        interval_ns as f64 / span_ns as f64
    };
    sample.set(Signal::CpuTime, reading(cpu_ns * share));
    if let Some(wait) = now.wait_ns.filter(|_| is_whole) {
        let wait_before = before.and_then(|b| b.wait_ns).unwrap_or(0);
        let waited = wait.saturating_sub(wait_before);
        sample.set(Signal::WaitTime, reading(waited as f64));
    }
    if let Some(runs) = now.runs {
        let runs_before = before.and_then(|b| b.runs).unwrap_or(0);
        let runs = runs.saturating_sub(runs_before) as f64;
        sample.set(Signal::Runs, reading(runs * share));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread that was last read `ago` before `now`, in this state.
    fn thread(now: Instant, ago: Duration, state: RunState) -> ObservedState {
        ObservedState {
            read: now.checked_sub(ago),
            sleeps: Some(SleepCounter::from_state(state)),
            ..ObservedState::default()
        }
    }

    fn counted(cpu_ns: f64) -> Sample {
        let mut sample = Sample::default();
        let reading = Reading::fully_counted(cpu_ns, Tier::Software, 100_000_000);
        sample.set(Signal::CpuTime, reading);
        sample
    }

    #[test]
    fn sleeping_threads_are_read_less_often() {
        let now = Instant::now() + Duration::from_secs(10);
        let look = |state, ms, cpu_ns| {
            let thread = thread(now, Duration::from_millis(ms), state);
            thread.infer_runnable(now, Some(0), true, &counted(cpu_ns))
        };
        assert_eq!(look(RunState::Sleeping, 900, 0.0), Some(false));
        assert_eq!(look(RunState::Sleeping, 1100, 0.0), None);
        assert_eq!(look(RunState::Runnable, 40, 1e6), Some(true));
        assert_eq!(look(RunState::Runnable, 60, 1e6), None);
    }

    #[test]
    fn awake_thread_that_did_not_run_is_read() {
        let now = Instant::now() + Duration::from_secs(10);
        let thread = thread(now, Duration::from_millis(1), RunState::Runnable);
        assert_eq!(
            thread.infer_runnable(now, Some(0), false, &counted(0.0)),
            None
        );
    }

    #[test]
    fn begun_sleep_is_read_if_states_decide() {
        let now = Instant::now() + Duration::from_secs(10);
        let thread = thread(now, Duration::from_millis(1), RunState::Sleeping);
        let look = |states| thread.infer_runnable(now, Some(1), states, &counted(1e6));
        assert_eq!(look(true), None);
        assert_eq!(look(false), Some(true));
    }

    #[test]
    fn each_switch_is_read_if_sleeps_are_uncounted() {
        let now = Instant::now() + Duration::from_secs(10);
        let thread = thread(now, Duration::from_millis(1), RunState::Runnable);
        let look = |switches: f64| {
            let mut sample = counted(1e6);
            let switches = Reading::fully_counted(switches, Tier::Software, 100_000_000);
            sample.set(Signal::ContextSwitches, switches);
            thread.infer_runnable(now, None, true, &sample)
        };
        assert_eq!(look(0.0), Some(true));
        assert_eq!(look(1.0), None);
        assert_eq!(thread.infer_runnable(now, None, true, &counted(1e6)), None);
    }

    fn reported(state: RunState, cpu_ms: u64, wait_ms: u64) -> ProcSample {
        ProcSample {
            cpu_ns: cpu_ms * 1_000_000,
            cpu_in_ticks: false,
            wait_ns: Some(wait_ms * 1_000_000),
            runs: Some(1),
            state,
            last_pu: PuId(0),
        }
    }

    #[test]
    fn attached_thread_counts_from_baseline() {
        let mut thread = ObservedState::default();
        let begin = Instant::now();
        thread.set_baseline(begin, reported(RunState::Runnable, 5_000, 3_000));
        let later = ProcSample {
            runs: Some(5),
            ..reported(RunState::Runnable, 5_100, 3_020)
        };
        let end = begin + Duration::from_millis(200);
        let mut sample = Sample::default();
        thread.add_proc(end, (later, true), 200_000_000, &mut sample);
        assert_eq!(sample.cpu_time_ns(), 1e8);
        assert_eq!(sample.get(Signal::WaitTime), Some(2e7));
        assert_eq!(sample.get(Signal::Runs), Some(4.0));
    }

    #[test]
    fn times_alone_show_running_and_sleeping() {
        let begin = Instant::now();
        let state = |before, cpu_ms: u64, after_ms| {
            let mut thread = ObservedState::default();
            let first = (reported(before, 10, 0), true);
            thread.add_proc(begin, first, 100_000_000, &mut Sample::default());
            let later = begin + Duration::from_millis(after_ms);
            let now = |last| {
                Some(ProcSample {
                    cpu_ns: cpu_ms * 1_000_000,
                    ..last
                })
            };
            thread
                .infer_from_times(later, now)
                .map(|reported| reported.state)
        };
        let (awake, asleep) = (RunState::Runnable, RunState::Sleeping);
        assert_eq!(state(awake, 20, 900), Some(awake));
        assert_eq!(state(awake, 20, 1000), None);
        assert_eq!(state(asleep, 20, 400), Some(awake));
        assert_eq!(state(asleep, 10, 900), Some(asleep));
        // Woken by now, and waiting for a CPU, perhaps.
        assert_eq!(state(asleep, 10, 1100), None);
        // Waiting for a CPU, asleep by now or gone.
        assert_eq!(state(awake, 10, 100), None);
    }

    #[test]
    fn pu_of_earlier_interval_is_not_used() {
        let end = Instant::now();
        let at = |ago_ms, length_ms: u64| {
            let mut thread = ObservedState::default();
            let read = end - Duration::from_millis(ago_ms);
            let first = (reported(RunState::Runnable, 10, 0), true);
            thread.add_proc(read, first, 100_000_000, &mut Sample::default());
            thread.pu_at(end, length_ms * 1_000_000)
        };
        assert_eq!(at(0, 100), Some(PuId(0)));
        assert_eq!(at(300, 100), None);
        assert_eq!(at(30, 4), Some(PuId(0)));
        assert_eq!(at(60, 4), None);
    }

    #[test]
    fn sleeping_thread_waits_for_nothing() {
        let waited = |quantum_ms: u64, reported| {
            let mut thread = ObservedState::default();
            let quantum_ns = quantum_ms * 1_000_000;
            thread.add_proc(Instant::now(), reported, quantum_ns, &mut Sample::default());
            let mut sample = Sample::default();
            thread.add_no_wait(quantum_ns, &mut sample);
            sample.get(Signal::WaitTime)
        };
        let slept = reported(RunState::Sleeping, 10, 30);
        assert_eq!(waited(100, (slept, true)), Some(0.0));
        let without = ProcSample {
            wait_ns: None,
            ..slept
        };
        assert_eq!(waited(100, (without, true)), None);
        // In short quanta no waiting is reported.
        assert_eq!(waited(4, (slept, true)), None);
    }

    #[test]
    fn without_counters_everything_is_read() {
        let now = Instant::now() + Duration::from_secs(10);
        let thread = thread(now, Duration::from_millis(1), RunState::Sleeping);
        assert_eq!(
            thread.infer_runnable(now, Some(0), true, &Sample::default()),
            None
        );
    }
}
