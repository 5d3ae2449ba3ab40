//! Samples: what was measured of each thread over one interval.

mod readings;

use self::readings::Readings;
use crate::bottleneck::Bottleneck;
use crate::class::{Class, MemoryLimit, ThreadTraits, classify, classify_after};
use crate::ids::{ProgramId, PuId, ThreadId};
use crate::leave_reason::{LeaveReason, Throttle};
use crate::mix::Mix;
use crate::pu_set::PuSet;
use crate::signal::{Signal, Tier};
use crate::stack::CycleStack;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A value with its tier and the time over which it was counted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// Count, unscaled, in the unit of its [`Signal`].
    pub raw: f64,
    /// Tier that it comes from.
    pub tier: Tier,
    /// Time for which it was asked for, ns.
    pub enabled_ns: u64,
    /// Time for which it was really counted, ns; less when counters were multiplexed.
    pub running_ns: u64,
}

impl Reading {
    /// A value that was counted all the time.
    pub fn fully_counted(raw: f64, tier: Tier, enabled_ns: u64) -> Self {
        Self {
            raw,
            tier,
            enabled_ns,
            running_ns: enabled_ns,
        }
    }

    /// The value scaled to the whole time: raw x enabled / running
    /// (`perf_event_open(2)`, "PERF_FORMAT_TOTAL_TIME_RUNNING"). A counter that
    /// never ran tells nothing, so there is no value.
    pub fn scaled_value(self) -> Option<f64> {
        if self.running_ns == self.enabled_ns {
            return Some(self.raw);
        }
        let factor = self.enabled_ns as f64 / self.running_ns as f64;
        (self.running_ns > 0).then_some(self.raw * factor)
    }

    /// Says whether the value was counted only part of the time.
    pub fn is_multiplexed(self) -> bool {
        self.running_ns < self.enabled_ns
    }
}

/// One thread's counters over one interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    readings: Readings,
    /// Instruction mix by time.
    pub mix: Option<Mix>,
    /// Cycle stack, with its tier.
    pub stack: Option<(CycleStack, Tier)>,
    /// Limit of the thread, where it mainly waits for memory and that can be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_limit: Option<MemoryLimit>,
    /// Number of decoded samples of instruction addresses in the interval; 0 if none were taken.
    #[serde(default, skip_serializing_if = "is_none_taken")]
    pub samples: u64,
    /// The software thread that was on it at the end, where the sample is that of a logical core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub occupant: Option<ThreadId>,
}

fn is_none_taken(samples: &u64) -> bool {
    *samples == 0
}

impl Sample {
    /// Puts a reading in; one of a richer tier is not replaced by a poorer one.
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

    /// Activity of the thread: cycles where they are counted, else CPU time in ns.
    /// Comparable among threads of one observation.
    pub fn activity(&self) -> f64 {
        self.get(Signal::Cycles)
            .unwrap_or_else(|| self.cpu_time_ns())
    }
}

/// Knowledge of one thread at the end of an interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadObservation {
    /// The thread.
    pub id: ThreadId,
    /// Its name (`comm`).
    pub name: Arc<str>,
    /// PUs that its own affinity and cpuset allow; plans stay inside.
    pub original: Arc<PuSet>,
    /// True for a thread that may be placed. Threads that must be let alone (real-time ones, those
    /// that somebody has placed on purpose) are observed all the same: they take part in contention.
    pub managed: bool,
    /// The PU that it was last seen on.
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
    /// Some thread stalled or went on within it; see [`crate::policy::Wishes::on_activity`].
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
    /// Threads that ended within the interval, with what they did until then; policies have no
    /// use for them, reports do.
    #[serde(default)]
    pub exited: Vec<ThreadObservation>,
    /// Locks and barriers that threads hold or wait for, by id; empty where nothing tells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bottlenecks: Vec<Bottleneck>,
    /// Processes that are part of another program than that of their own pid, with that program:
    /// what a command starts belongs to the command.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub programs: BTreeMap<ProgramId, ProgramId>,
    /// Live threads that are let alone for their affinity only, which somebody chose on purpose:
    /// they are never placed, but take turns with the rest of their program, since pausing does
    /// not touch affinity.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub self_placed: BTreeSet<ThreadId>,
    /// Users that programs belong to, where the machine has users: policies that let programs wait
    /// for each other do so within one user's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub owners: BTreeMap<ProgramId, u32>,
    /// Policies that single programs were given, as text; all others have the machine's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub assigned: BTreeMap<ProgramId, Arc<str>>,
    /// Threads that a limit of their control group held in the interval.
    #[serde(
        default,
        with = "by_thread",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub throttled: BTreeMap<ThreadId, Throttle>,
    /// Idle time of all usable PUs over about the last second, in PUs; `None` if it is not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_pus: Option<f64>,
    /// Threads that are better left to the operating system; the control loop adds them.
    #[serde(
        default,
        with = "by_thread",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub left: BTreeMap<ThreadId, LeaveReason>,
    /// Classes of threads, which the control loop adds from those of the quantum before.
    #[serde(skip)]
    pub classes: BTreeMap<ThreadId, Class>,
}

/// Maps by thread as lists of pairs, since the keys of a JSON object are texts.
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

/// Least share of a PU asked for, up to which policies also place threads that run briefly.
const PLACES_BRIEF_UP_TO: f64 = 0.01;

impl Observation {
    /// A thread's observation. `threads` is sorted by id.
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

    /// Share of the CPU time of threads with a place that they spent there, 0 to 1; none where no
    /// thread had a place, or nothing tells.
    pub fn adherence(&self) -> Option<f64> {
        let planned = |t: &ThreadObservation| {
            let planned_ns = t.sample.get(Signal::PlannedTime)?;
            Some((planned_ns, t.sample.cpu_time_ns()))
        };
        let pairs = self.threads.iter().filter_map(planned);
        let (planned_ns, cpu_ns) = pairs.fold((0.0, 0.0), |sum, t| (sum.0 + t.0, sum.1 + t.1));
        (cpu_ns > 0.0).then(|| planned_ns / cpu_ns)
    }

    /// Reason for which a policy that places threads from a share `active` of a PU on leaves one to
    /// the operating system; `None` if it may place the thread. An `active` of 0.01 or less asks for
    /// threads that hardly run, so that those which run briefly or are throttled are placed too.
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
            // The kernel accounts for the time that the limit holds a thread only afterwards.
            Some(held @ LeaveReason::Throttled(_)) => Some(held.to_string().into()),
            _ if self.wanted_share(thread) < active => Some("hardly active".into()),
            left => left.map(|left| left.to_string().into()),
        }
    }

    /// Share of the time that a thread could run for in which it waited for a PU, 0 to 1; `None` if
    /// that is not measured, or if a limit of its control group held it.
    pub fn waiting_share(&self, thread: &ThreadObservation) -> Option<f64> {
        if self.throttled.contains_key(&thread.id) {
            return None;
        }
        let wait_ns = thread.sample.get(Signal::WaitTime)?;
        let wanted_ns = thread.sample.cpu_time_ns() + wait_ns;
        (wanted_ns > 0.0).then(|| wait_ns / wanted_ns)
    }

    /// Main activity of a thread over the interval. A thread that waits for a PU, or that a limit of
    /// its control group holds, is not blocked.
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

    /// Adds the classes of all threads; those near a bound stay as they were `before`.
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

    /// A thread's share of one PU over the interval: 1 when it never left it.
    pub fn cpu_share(&self, thread: &ThreadObservation) -> f64 {
        if self.interval_ns == 0 {
            return 0.0;
        }
        thread.sample.cpu_time_ns() / self.interval_ns as f64
    }

    /// Share of the interval in which a thread ran or waited for a PU: what it would run for if
    /// there were room, whoever else is on the machine. Where waiting is not told, its share of
    /// a PU.
    pub fn wanted_share(&self, thread: &ThreadObservation) -> f64 {
        if self.interval_ns == 0 {
            return 0.0;
        }
        let wait_ns = thread.sample.get(Signal::WaitTime).unwrap_or(0.0);
        (thread.sample.cpu_time_ns() + wait_ns) / self.interval_ns as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_counter_that_never_ran_has_no_value() {
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
    fn a_process_belongs_to_itself_unless_it_is_part_of_another_program() {
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
    fn a_poorer_tier_does_not_replace_a_richer_one() {
        let mut sample = Sample::default();
        sample.set(
            Signal::CpuTime,
            Reading::fully_counted(5.0, Tier::Software, 10),
        );
        sample.set(Signal::CpuTime, Reading::fully_counted(7.0, Tier::Proc, 10));
        assert_eq!(sample.cpu_time_ns(), 5.0);
    }
}
