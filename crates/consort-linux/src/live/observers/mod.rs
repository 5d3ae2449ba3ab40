//! The observers of a run: all that is read of its threads, by counters, samples, `/proc`, energy
//! meters and a recording. Nothing here changes a thread.

mod counting;
mod host_meters;
mod limits;
mod observed_state;
mod recorded;
mod sampling_tier;

pub(super) use host_meters::TIER as ENERGY_TIER;
pub(super) use observed_state::ObservedState;
pub use recorded::{RecordedMeasures, RecordedMeasuresError};
pub(super) use sampling_tier::{KnownThreads, SamplingSetup, SamplingTier, accept_sampler};

use super::Host;
use super::program_trees::ProgramTrees;
use crate::discovery::{ProcError, ProcReader, ProcSample, ProcessTimes, RunState};
use crate::sampling::{Sampler, ThreadProfile};
use consort_core::{ProgramId, Reading, Sample, Signal, SignalOffers, ThreadId, Tier};
use counting::ThreadCounters;
use host_meters::{HostEnergyMeter, IdleTime};
use limits::GroupLimits;
use nix::sys::resource::{Resource, getrlimit};
use sampling_tier::IntervalProfiles;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Number of descriptors kept free for looking things up, for the journal and for the guardian.
const SPARE: usize = 48;
/// Number of descriptors that sampling takes per CPU: a steady event and one of the start.
const SAMPLING_PER_PU: usize = 2;
/// Most descriptors for reading `/proc`; more save nothing.
const MOST_FOR_PROC: usize = 4_096;

/// Numbers of descriptors for the parts of a run that keep many open.
///
/// If one part took the last descriptor, all others would be blind: a thread that cannot be looked up
/// seems to have exited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::live) struct Descriptors {
    /// Number for files of `/proc` that are kept open.
    pub(in crate::live) proc: usize,
    /// Number for threads that are held while they are nudged.
    pub(in crate::live) held: usize,
    /// Number for events that count.
    pub(in crate::live) counting: usize,
}

impl Descriptors {
    /// Divides the present limit of this process, on a host with this number of CPUs.
    pub(in crate::live) fn for_this_process(pus: usize) -> Self {
        let limit = getrlimit(Resource::RLIMIT_NOFILE).map_or(u64::MAX, |(soft, _)| soft);
        Self::share(usize::try_from(limit).unwrap_or(usize::MAX), pus)
    }

    fn share(limit: usize, pus: usize) -> Self {
        let taken = SPARE + SAMPLING_PER_PU * pus;
        let free = limit.saturating_sub(taken);
        let proc = (free / 4).min(MOST_FOR_PROC);
        let held = proc / 4;
        Self {
            proc: proc - held,
            held,
            counting: free - proc,
        }
    }
}

/// Everything that a run reads of its threads with, and the signals that it offers for that.
pub(super) struct ThreadObservers {
    pub(super) offers: SignalOffers,
    pub(super) sampling: Option<SamplingTier>,
    pub(super) counting: ThreadCounters,
    /// Energy meters; `None` if there are none that can be read.
    pub(super) energy: Option<HostEnergyMeter>,
    pub(super) reader: ProcReader,
    pub(super) limits: GroupLimits,
    /// Idle time of the CPUs; `None` until the policy uses it.
    pub(super) idle: Option<IdleTime>,
    /// True if the policy decides by the threads that can run at the end of a quantum.
    states: bool,
    /// Measures that this host cannot count, from a recording.
    recorded: Option<RecordedMeasures>,
    /// CPU time of the threads that were looked at since the last interval ended, ns.
    managed_ns: u64,
    /// CPU time that counting events cost the threads at their switches so far, ns.
    counts_ns: u64,
    /// CPU time of the processes that were read so far, and of all that they waited for.
    pub(super) times: ProcessTimes,
    /// Time of the next reading of processes' times.
    next_times: Instant,
}

/// Shortest time between two readings of the times of processes.
const TIMES_PAUSE: Duration = Duration::from_secs(1);
/// Ratio of the time between two such readings to the time that one takes, so that they cost at most
/// a thousandth of one CPU.
const PAUSE_PER_TIMES: u32 = 1000;

/// An interval that ends with an observation.
pub(super) struct ObservedInterval {
    pub(super) end: Instant,
    pub(super) length_ns: u64,
    profiles: IntervalProfiles,
}

impl ThreadObservers {
    /// Opens the observers that the host offers, with the sampling tier if it was set up.
    pub(super) fn open(host: &Host, sampling: Option<SamplingTier>, shared: Descriptors) -> Self {
        Self {
            offers: offers(host, sampling.is_some()),
            counting: ThreadCounters::new(host, shared.counting),
            sampling,
            energy: HostEnergyMeter::open(&host.root),
            reader: ProcReader::new(&host.root, shared.proc),
            limits: GroupLimits::new(&host.root),
            idle: None,
            states: false,
            recorded: None,
            managed_ns: 0,
            counts_ns: 0,
            times: ProcessTimes::new(&host.root),
            next_times: Instant::now(),
        }
    }

    /// The richest tier that is in use.
    pub(super) fn tier(&self) -> Tier {
        let tiers = self.offers.iter().map(|(_, tier)| tier);
        tiers.max().unwrap_or(Tier::Proc)
    }

    /// Takes measures from a recording from now on; returns a sentence about that for the user.
    pub(super) fn use_recording(&mut self, recorded: RecordedMeasures) -> String {
        let reported = recorded.offer(&mut self.offers);
        self.recorded = Some(recorded);
        reported
    }

    /// Checks that a program is in the recording, if there is one.
    pub(super) fn check_recorded(&self, program: &str) -> Result<(), String> {
        let recorded = self.recorded.as_ref();
        let checked = recorded.map_or(Ok(()), |recorded| recorded.check(program));
        checked.map_err(|error| error.to_string())
    }

    /// Notes whether the policy decides by the threads that can run at the end of a quantum.
    pub(super) fn set_state_reading(&mut self, on: bool) {
        self.states = self.counting.count_switches(on);
    }

    /// Reads a thread that ran before it was managed, so that its earlier consumption is not counted.
    pub(super) fn set_baseline(&mut self, id: ThreadId, seen: &mut ObservedState) {
        if let Ok(reported) = self.reader.sample(id) {
            seen.set_baseline(Instant::now(), reported);
        }
    }

    /// Returns true if the kernel records which threads begin and end.
    pub(super) fn has_records(&self) -> bool {
        self.sampling
            .as_ref()
            .is_some_and(|sampling| sampling.sampler.is_open())
    }

    /// The sampler; `None` without the sampling tier.
    pub(super) fn sampler_mut(&mut self) -> Option<&mut Sampler> {
        Some(&mut self.sampling.as_mut()?.sampler)
    }

    pub(super) fn forget(&mut self, id: ThreadId) {
        self.reader.forget(id);
        self.counting.forget(id);
    }

    /// Ends an interval that is observed now.
    pub(super) fn end_interval(
        &mut self,
        end: Instant,
        length_ns: u64,
        known: KnownThreads<'_>,
    ) -> ObservedInterval {
        let managed_ns = std::mem::take(&mut self.managed_ns);
        let profiles = match &mut self.sampling {
            Some(sampling) => sampling.end_interval(length_ns, managed_ns, known),
            None => IntervalProfiles::default(),
        };
        ObservedInterval {
            end,
            length_ns,
            profiles,
        }
    }

    /// Reads the times of these processes if that is due, or at once.
    pub(super) fn read_times(&mut self, pids: impl FnOnce() -> BTreeSet<u32>, at_once: bool) {
        let now = Instant::now();
        if !at_once && now < self.next_times {
            return;
        }
        self.times.read(&pids());
        self.next_times = now + TIMES_PAUSE.max(now.elapsed() * PAUSE_PER_TIMES);
    }

    /// Adds what can be read of a thread to its sample; returns false if the thread is gone.
    pub(super) fn read_thread(
        &mut self,
        id: ThreadId,
        seen: &mut ObservedState,
        was_paused: bool,
        interval: &ObservedInterval,
        sample: &mut Sample,
    ) -> bool {
        let begun = self.counting.fill(id, sample);
        let runs = seen.runs();
        let runnable = match self.read_runnable(id, seen, begun, interval, sample) {
            Ok(runnable) => runnable,
            Err(ProcError::Gone) => return false,
            // A failed reading does not mean that the thread has ended. It is read again in the next
            // quantum.
            Err(_) => return true,
        };
        if was_paused {
            // Its sleeps were pauses, not calls.
            seen.restart_sleeps();
        } else {
            seen.add_returns(begun, runnable, sample);
        }
        let runnable = f64::from(u8::from(runnable));
        let runnable = Reading::fully_counted(runnable, Tier::Proc, interval.length_ns);
        sample.set(Signal::Runnable, runnable);
        self.managed_ns += sample.cpu_time_ns() as u64;
        if let (Some(before), Some(now)) = (runs, seen.runs()) {
            let switches = now.saturating_sub(before);
            if let Some(sampling) = &mut self.sampling {
                sampling.note_switches(switches);
            }
            self.counts_ns += switches * self.counting.switch_cost_ns();
        }
        if let Some(profile) = self.profile(id, interval) {
            profile.fill(sample, interval.length_ns);
        }
        true
    }

    /// CPU time that events cost the threads when they were switched and cloned so far, s;
    /// estimated.
    pub(super) fn events_s(&self) -> f64 {
        let sampling_ns = self.sampling.as_ref().map_or(0, SamplingTier::events_ns);
        (self.counts_ns + sampling_ns) as f64 / 1e9
    }

    /// CPU time that the events which are open now add to a switch, ns.
    pub(super) fn switch_cost_ns(&self) -> u64 {
        let sampling_ns = self
            .sampling
            .as_ref()
            .map_or(0, SamplingTier::switch_cost_ns);
        self.counting.switch_cost_ns() + sampling_ns
    }

    /// Profile of a thread at the end of an interval, by samples of the interval or earlier ones.
    fn profile(&self, id: ThreadId, interval: &ObservedInterval) -> Option<ThreadProfile> {
        let earlier = || self.sampling.as_ref()?.earlier_profile(id);
        interval.profiles.get(id).copied().or_else(earlier)
    }

    /// State of a thread, true for runnable, by its counters or else by `/proc`. In the second case the
    /// other values of `/proc` are added to the sample.
    fn read_runnable(
        &mut self,
        id: ThreadId,
        seen: &mut ObservedState,
        begun: Option<u64>,
        interval: &ObservedInterval,
        sample: &mut Sample,
    ) -> Result<bool, ProcError> {
        let known = seen.infer_runnable(interval.end, begun, self.states, sample);
        if let Some(runnable) = known {
            if !runnable {
                seen.add_no_wait(interval.length_ns, sample);
            }
            return Ok(runnable);
        }
        let reported = self.read(id, seen, interval.end)?;
        seen.add_proc(interval.end, reported, interval.length_ns, sample);
        let (reported, _) = reported;
        if begun.is_none() {
            // Sleeps are counted from the next quantum on at the earliest.
            seen.restart_sleeps_in(reported.state);
        }
        Ok(reported.state == RunState::Runnable)
    }

    /// Reads a thread in `/proc`: only its times, with false, if they show its state, else everything,
    /// with true.
    fn read(
        &mut self,
        id: ThreadId,
        seen: &ObservedState,
        now: Instant,
    ) -> Result<(ProcSample, bool), ProcError> {
        let reader = &mut self.reader;
        if !self.states
            && let Some(times) = seen.infer_from_times(now, |last| reader.times(id, last))
        {
            return Ok((times, false));
        }
        reader.sample(id).map(|reported| (reported, true))
    }

    /// Counts of a thread that has exited: its counters keep what they counted last.
    pub(super) fn last_counts(&mut self, id: ThreadId, seen: Option<&mut ObservedState>) -> Sample {
        let mut sample = Sample::default();
        let begun = self.counting.fill(id, &mut sample);
        if let Some(seen) = seen {
            seen.add_returns(begun, true, &mut sample);
        }
        sample
    }

    /// Adds the last samples of a thread that has exited. `/proc` no longer shows its CPU time, but each
    /// sample stands for a part of it.
    pub(super) fn add_last_samples(
        &mut self,
        id: ThreadId,
        interval: &ObservedInterval,
        sample: &mut Sample,
    ) {
        if let Some(profile) = self.profile(id, interval) {
            let cpu_ns = profile.counts.sampled_ns as f64;
            let reading = Reading::fully_counted(cpu_ns, Tier::Sampling, interval.length_ns);
            sample.set(Signal::CpuTime, reading);
            profile.fill(sample, interval.length_ns);
        }
        self.managed_ns += sample.cpu_time_ns() as u64;
    }

    /// Adds recorded measures of the thread's program, if there is a recording.
    pub(super) fn add_recorded(
        &self,
        trees: &ProgramTrees,
        program: ProgramId,
        interval: &ObservedInterval,
        sample: &mut Sample,
    ) {
        if let Some(recorded) = &self.recorded {
            recorded.fill(trees.name(program.0), sample, interval.length_ns);
        }
    }
}

/// Signals that the host offers, without those of the sampling tier if it could not be set up for
/// this command.
fn offers(host: &Host, sampling: bool) -> SignalOffers {
    let offered = host.offers();
    if sampling {
        return offered;
    }
    let kept = offered.iter().filter(|(_, tier)| *tier != Tier::Sampling);
    let mut kept: SignalOffers = kept.collect();
    kept.set_machine(offered.machine());
    if kept.tier_of(Signal::CycleStack).is_some() {
        kept.set_stack(offered.stack().to_vec());
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_usual_limits_leave_room_for_many_threads() {
        let expect = |proc, held, counting| Descriptors {
            proc,
            held,
            counting,
        };
        assert_eq!(Descriptors::share(13, 2), expect(0, 0, 0));
        assert_eq!(Descriptors::share(1_024, 2), expect(183, 60, 729));
        assert_eq!(Descriptors::share(20_000, 2), expect(3_072, 1_024, 15_852));
    }

    proptest! {
        #[test]
        fn some_are_always_kept_free(limit: u32, pus in 1usize..5_000) {
            let limit = limit as usize;
            let shared = Descriptors::share(limit, pus);
            prop_assert!(shared.proc + shared.held + shared.counting <= limit.saturating_sub(SPARE));
        }
    }
}
