//! Samples of threads and observations of machines over one interval.

use crate::bottleneck::Bottleneck;
use crate::class::{Class, MemoryLimit, ThreadTraits, classify, classify_after};
use crate::ids::{ProgramId, PuId, ThreadId};
use crate::mix::Mix;
use crate::pu_set::PuSet;
use crate::signal::{Signal, Tier};
use crate::stack::CycleStack;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// A value with its tier and counting time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// Count, unscaled, in the unit of its [`Signal`].
    pub raw: f64,
    /// Tier of the value.
    pub tier: Tier,
    /// Time for which counting was enabled, ns.
    pub enabled_ns: u64,
    /// Time for which it was counted, ns; less than enabled if counters were multiplexed.
    pub running_ns: u64,
}

impl Reading {
    /// Returns a value that was counted all the time.
    pub fn fully_counted(raw: f64, tier: Tier, enabled_ns: u64) -> Self {
        Self {
            raw,
            tier,
            enabled_ns,
            running_ns: enabled_ns,
        }
    }

    /// Value scaled to the whole time: raw x enabled / running (`perf_event_open(2)`,
    /// "PERF_FORMAT_TOTAL_TIME_RUNNING"). `None` if the counter never ran.
    pub fn scaled_value(self) -> Option<f64> {
        if self.running_ns == self.enabled_ns {
            return Some(self.raw);
        }
        let factor = self.enabled_ns as f64 / self.running_ns as f64;
        (self.running_ns > 0).then_some(self.raw * factor)
    }

    /// Returns true if the value was counted only part of the time.
    pub fn is_multiplexed(self) -> bool {
        self.running_ns < self.enabled_ns
    }
}

/// Measurements of one thread over one interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    readings: Readings,
    /// Instruction mix by time.
    pub mix: Option<Mix>,
    /// Cycle stack, with its tier.
    pub stack: Option<(CycleStack, Tier)>,
    /// Property of memory that limits the thread, if it mainly waits for memory and the tier shows
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_limit: Option<MemoryLimit>,
    /// Number of decoded samples of instruction addresses in the interval; 0 if none were taken.
    #[serde(default, skip_serializing_if = "is_none_taken")]
    pub samples: u64,
    /// For a logical core: the software thread that occupied it at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub occupant: Option<ThreadId>,
}

fn is_none_taken(samples: &u64) -> bool {
    *samples == 0
}

impl Sample {
    /// Adds a reading; a richer tier is not replaced by a poorer one.
    pub fn set(&mut self, signal: Signal, reading: Reading) {
        self.readings.set(signal, reading);
    }

    /// The reading of a signal, with its tier and times.
    pub fn reading(&self, signal: Signal) -> Option<Reading> {
        self.readings.get(signal)
    }

    /// The scaled value of a signal.
    pub fn get(&self, signal: Signal) -> Option<f64> {
        self.reading(signal)?.scaled_value()
    }

    /// CPU time, ns; 0 when unknown.
    pub fn cpu_time_ns(&self) -> f64 {
        self.get(Signal::CpuTime).unwrap_or(0.0)
    }

    /// Activity of the thread: cycles if they are counted, else CPU time in ns. Comparable among
    /// threads of one observation.
    pub fn activity(&self) -> f64 {
        self.get(Signal::Cycles)
            .unwrap_or_else(|| self.cpu_time_ns())
    }
}

/// State of one thread at the end of an interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadObservation {
    /// The thread.
    pub id: ThreadId,
    /// Its name (`comm`).
    pub name: Arc<str>,
    /// CPUs that its own affinity and cpuset allow; plans stay within them.
    pub original: Arc<PuSet>,
    /// True for a thread that may be placed. Unmanaged threads, for example real-time threads and
    /// threads with an affinity that was set on purpose, are observed too, because they take part
    /// in contention.
    pub managed: bool,
    /// The CPU that it was last seen on.
    pub last_pu: Option<PuId>,
    /// Its counters over the interval.
    pub sample: Sample,
}

/// Reason why an interval ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IntervalEnd {
    /// The quantum was over.
    #[default]
    Quantum,
    /// A thread stalled or resumed; see [`crate::policy::Wishes::on_activity`].
    Activity,
}

/// Samples of a machine over one interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// End of the interval, ns since the start of the run.
    pub time_ns: u64,
    /// Length of the interval, ns.
    pub interval_ns: u64,
    /// Reason why it ended.
    #[serde(default)]
    pub ended: IntervalEnd,
    /// Live threads of the managed programs, by id.
    pub threads: Vec<ThreadObservation>,
    /// Threads that ended within the interval, with what they did until then; for reports.
    #[serde(default)]
    pub exited: Vec<ThreadObservation>,
    /// Locks and barriers that threads hold or wait for, by id; empty if the machine does not
    /// measure them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bottlenecks: Vec<Bottleneck>,
    /// Processes that belong to another program than their own pid, with that program: processes
    /// that a command starts belong to the command.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub programs: BTreeMap<ProgramId, ProgramId>,
    /// Live threads that are unmanaged only because of an affinity that was set on purpose. They
    /// are never placed, but take turns with the rest of their program, since pausing does not
    /// touch affinity.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub self_placed: BTreeSet<ThreadId>,
    /// Owners of programs, on machines with users. Policies that let programs wait for each other
    /// do so only among programs of one user.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub owners: BTreeMap<ProgramId, u32>,
    /// Policies assigned to single programs, as text; all others have the machine's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub assigned: BTreeMap<ProgramId, Arc<str>>,
    /// Threads that a limit of their control group throttled in the interval.
    #[serde(
        default,
        with = "by_thread",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub throttled: BTreeMap<ThreadId, Throttle>,
    /// Idle time of all usable CPUs over about the last second, in CPUs; `None` if it is not
    /// measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_pus: Option<f64>,
    /// Threads that are better left to the operating system. The control loop adds them.
    #[serde(
        default,
        with = "by_thread",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub left: BTreeMap<ThreadId, LeaveReason>,
    /// Classes of threads. The control loop adds them, from the classes of the quantum before.
    #[serde(skip)]
    pub classes: BTreeMap<ThreadId, Class>,
}

/// Maps by thread as lists of pairs, because keys of JSON objects must be strings.
mod by_thread {
    use super::{BTreeMap, ThreadId};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<V: Serialize, S: Serializer>(
        map: &BTreeMap<ThreadId, V>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(map)
    }

    pub(super) fn deserialize<'de, V: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<ThreadId, V>, D::Error> {
        let pairs = Vec::<(ThreadId, V)>::deserialize(deserializer)?;
        Ok(pairs.into_iter().collect())
    }
}

/// Largest `active` of [`Observation::reason_to_leave`] at which threads that run briefly are
/// placed too.
const PLACES_BRIEF_UP_TO: f64 = 0.01;

impl Observation {
    /// Finds a thread; `threads` is sorted by id.
    pub fn thread(&self, id: ThreadId) -> Option<&ThreadObservation> {
        let at = self.threads.binary_search_by_key(&id, |t| t.id).ok()?;
        self.threads.get(at)
    }

    /// The program that a thread belongs to.
    pub fn program_of(&self, thread: ThreadId) -> ProgramId {
        let own = thread.program();
        self.programs.get(&own).copied().unwrap_or(own)
    }

    /// The threads that may be placed.
    pub fn managed_threads(&self) -> impl Iterator<Item = &ThreadObservation> {
        self.threads.iter().filter(|thread| thread.managed)
    }

    /// Share of the CPU time of threads with a place that they spent there, 0 to 1; `None` if no
    /// thread had a place, or the time is not measured.
    pub fn adherence(&self) -> Option<f64> {
        let planned = |t: &ThreadObservation| {
            let planned_ns = t.sample.get(Signal::PlannedTime)?;
            Some((planned_ns, t.sample.cpu_time_ns()))
        };
        let pairs = self.threads.iter().filter_map(planned);
        let (planned_ns, cpu_ns) = pairs.fold((0.0, 0.0), |sum, t| (sum.0 + t.0, sum.1 + t.1));
        (cpu_ns > 0.0).then(|| planned_ns / cpu_ns)
    }

    /// Reason to leave a thread to the operating system, for a policy that places threads that want
    /// at least a share `active` of a CPU; `None` if it may place the thread. Policies with an
    /// `active` of 0.01 or less want threads that hardly run, so they place brief and throttled
    /// threads too.
    pub fn reason_to_leave(
        &self,
        thread: &ThreadObservation,
        active: f64,
    ) -> Option<Cow<'static, str>> {
        let left = self
            .left
            .get(&thread.id)
            .filter(|_| active > PLACES_BRIEF_UP_TO);
        match left {
            // Checked first, because the kernel accounts for throttled time only afterwards: until
            // then the thread looks hardly active.
            Some(held @ LeaveReason::Throttled(_)) => Some(held.to_string().into()),
            _ if self.wanted_share(thread) < active => Some("mostly idle".into()),
            left => left.map(|left| left.to_string().into()),
        }
    }

    /// Share of its runnable time that a thread waited for a CPU, 0 to 1; `None` if it is not
    /// measured, or if a limit of its control group throttled the thread.
    pub fn waiting_share(&self, thread: &ThreadObservation) -> Option<f64> {
        if self.throttled.contains_key(&thread.id) {
            return None;
        }
        let wait_ns = thread.sample.get(Signal::WaitTime)?;
        let wanted_ns = thread.sample.cpu_time_ns() + wait_ns;
        (wanted_ns > 0.0).then(|| wait_ns / wanted_ns)
    }

    /// Main activity of a thread over the interval. A thread that waits for a CPU, or that is
    /// throttled, is not blocked.
    pub fn class_of(&self, thread: &ThreadObservation) -> Class {
        let known = self.classes.get(&thread.id).copied();
        known.unwrap_or_else(|| classify(self.traits_of(thread)))
    }

    fn traits_of(&self, thread: &ThreadObservation) -> ThreadTraits {
        let throttle = self.throttled.get(&thread.id);
        let held_share = throttle.map_or(0.0, |throttle| throttle.share);
        ThreadTraits {
            wanted_share: self.wanted_share(thread).max(held_share),
            mix: thread.sample.mix,
            memory_stall: thread.sample.get(Signal::MemoryStall),
        }
    }

    /// Adds the classes of all threads; threads near a bound keep their class of `before`.
    pub(crate) fn add_classes(&mut self, before: &BTreeMap<ThreadId, Class>) {
        let threads = self.threads.iter();
        let classes = threads.map(|thread| {
            let traits = self.traits_of(thread);
            let known = before.get(&thread.id).copied();
            let class =
                known.map_or_else(|| classify(traits), |before| classify_after(traits, before));
            (thread.id, class)
        });
        self.classes = classes.collect();
    }

    /// A thread's share of one CPU over the interval: 1 if it never left it.
    pub fn cpu_share(&self, thread: &ThreadObservation) -> f64 {
        if self.interval_ns == 0 {
            return 0.0;
        }
        thread.sample.cpu_time_ns() / self.interval_ns as f64
    }

    /// Share of the interval in which a thread ran or waited for a CPU: the share that it would use
    /// if there were room. Without a measurement of waiting, its share of a CPU.
    pub fn wanted_share(&self, thread: &ThreadObservation) -> f64 {
        if self.interval_ns == 0 {
            return 0.0;
        }
        let wait_ns = thread.sample.get(Signal::WaitTime).unwrap_or(0.0);
        (thread.sample.cpu_time_ns() + wait_ns) / self.interval_ns as f64
    }
}

/// Limit of CPU time that stopped the threads of a control group during an interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Throttle {
    /// Path of the group that sets the limit.
    pub group: Arc<str>,
    /// The limit, CPUs.
    pub cpus: f64,
    /// Share of the group's accounting periods in which it used up its time, 0 to 1.
    pub share: f64,
}

impl fmt::Display for Throttle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, cpus, share } = self;
        let (percent, cpus) = (100.0 * share, (100.0 * cpus).round() / 100.0);
        write!(
            f,
            "throttled by the limit of {group} ({cpus} CPU), {percent:.0} percent of the time"
        )
    }
}

/// Reason for leaving a thread to the operating system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeaveReason {
    /// The thread sleeps often; mean run between two sleeps, ms.
    Brief(f64),
    /// A limit of CPU time throttles the thread.
    Throttled(Throttle),
}

impl fmt::Display for LeaveReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Brief(ms) if *ms < 0.1 => write!(f, "runs {:.0} us between sleeps", 1e3 * ms),
            Self::Brief(ms) => write!(f, "runs {ms:.1} ms between sleeps"),
            Self::Throttled(throttle) => throttle.fmt(f),
        }
    }
}

/// Readings sorted by signal. A sample is made for every thread in every quantum and has about a
/// dozen readings: in one piece of memory they are found, copied and dropped faster than in a tree.
/// Serialised as a map.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "BTreeMap<Signal, Reading>", into = "BTreeMap<Signal, Reading>")]
struct Readings(Vec<(Signal, Reading)>);

/// Readings that a sample usually has at most, so that memory is allocated once.
const USUAL: usize = 16;

impl Readings {
    fn find(&self, signal: Signal) -> Result<usize, usize> {
        self.0.binary_search_by_key(&signal, |(known, _)| *known)
    }

    fn get(&self, signal: Signal) -> Option<Reading> {
        let at = self.find(signal).ok()?;
        self.0.get(at).map(|(_, reading)| *reading)
    }

    /// Adds a reading; a richer tier is not replaced by a poorer one.
    fn set(&mut self, signal: Signal, reading: Reading) {
        match self.find(signal) {
            Ok(at) if self.0[at].1.tier > reading.tier => {}
            Ok(at) => self.0[at].1 = reading,
            Err(at) => {
                if self.0.is_empty() {
                    self.0.reserve(USUAL);
                }
                self.0.insert(at, (signal, reading));
            }
        }
    }
}

impl From<BTreeMap<Signal, Reading>> for Readings {
    fn from(map: BTreeMap<Signal, Reading>) -> Self {
        Self(map.into_iter().collect())
    }
}

impl From<Readings> for BTreeMap<Signal, Reading> {
    fn from(readings: Readings) -> Self {
        readings.0.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signal::Tier;
    use proptest::prelude::*;

    #[test]
    fn multiplexed_values_are_scaled_and_marked() {
        let reading = Reading {
            raw: 100.0,
            tier: Tier::Counters,
            enabled_ns: 1_000,
            running_ns: 250,
        };
        assert_eq!(reading.scaled_value(), Some(400.0));
        assert!(reading.is_multiplexed());
    }

    #[test]
    fn counter_that_never_ran_has_no_value() {
        let reading = Reading {
            raw: 0.0,
            tier: Tier::Counters,
            enabled_ns: 1_000,
            running_ns: 0,
        };
        assert_eq!(reading.scaled_value(), None);
    }

    #[test]
    fn thread_that_waits_for_a_pu_is_not_blocked() {
        let topology = crate::Topology::uniform(2, 1).unwrap();
        let mut seen = crate::testing::observation_with_activity(&topology, &[(1, 0.0, 0.03)]);
        assert_eq!(seen.class_of(&seen.threads[0]), Class::Blocked);
        let thread = &mut seen.threads[0];
        let waited =
            Reading::fully_counted(0.9 * seen.interval_ns as f64, Tier::Proc, seen.interval_ns);
        thread.sample.set(Signal::WaitTime, waited);
        assert_eq!(seen.class_of(&seen.threads[0]), Class::Unknown);
        let held = Throttle {
            group: "/a".into(),
            cpus: 0.1,
            share: 0.9,
        };
        let mut throttled = crate::testing::observation_with_activity(&topology, &[(1, 0.0, 0.01)]);
        throttled.throttled = [(throttled.threads[0].id, held.clone())].into();
        let thread = &throttled.threads[0];
        assert_eq!(throttled.class_of(thread), Class::Unknown);
        throttled.left = [(thread.id, LeaveReason::Throttled(held))].into();
        let why = throttled.reason_to_leave(thread, 0.25).unwrap();
        assert!(why.starts_with("throttled by the limit of /a"), "{why}");
        seen.threads[0].sample.mix = Some(Mix {
            int: 1.0,
            ..Mix::default()
        });
        assert_eq!(seen.class_of(&seen.threads[0]), Class::Int);
    }

    #[test]
    fn process_belongs_to_itself_by_default() {
        let seen = Observation {
            programs: BTreeMap::from([(ProgramId(8), ProgramId(7))]),
            ..Observation::default()
        };
        let program = |pid| {
            seen.program_of(ThreadId {
                pid,
                tid: pid,
                start_ticks: 0,
            })
        };
        assert_eq!([7, 8, 9].map(program), [7, 7, 9].map(ProgramId));
    }

    #[test]
    fn poorer_tier_does_not_replace_a_richer() {
        let mut sample = Sample::default();
        sample.set(
            Signal::CpuTime,
            Reading::fully_counted(5.0, Tier::Software, 10),
        );
        sample.set(Signal::CpuTime, Reading::fully_counted(7.0, Tier::Proc, 10));
        assert_eq!(sample.cpu_time_ns(), 5.0);
    }

    const SIGNALS: [Signal; 4] = [
        Signal::Energy,
        Signal::CpuTime,
        Signal::LlcMisses,
        Signal::Cycles,
    ];
    const TIERS: [Tier; 3] = [Tier::Proc, Tier::Software, Tier::Counters];

    proptest! {
        #[test]
        fn the_last_reading_of_the_richest_tier_stays(
            sets in prop::collection::vec((0..SIGNALS.len(), 0..TIERS.len(), 0u32..100), 0..20),
        ) {
            let mut readings = Readings::default();
            let mut expected: BTreeMap<Signal, Reading> = BTreeMap::new();
            for (signal, tier, raw) in sets {
                let (signal, tier) = (SIGNALS[signal], TIERS[tier]);
                let reading = Reading::fully_counted(f64::from(raw), tier, 10);
                readings.set(signal, reading);
                if expected.get(&signal).is_none_or(|old| old.tier <= tier) {
                    expected.insert(signal, reading);
                }
            }
            for signal in SIGNALS {
                prop_assert_eq!(readings.get(signal), expected.get(&signal).copied());
            }
            prop_assert_eq!(&BTreeMap::from(readings.clone()), &expected);
            prop_assert_eq!(Readings::from(expected), readings);
        }
    }
}
