//! Characteristics of a program: the numbers that the rules price.

use super::active_programs::ActiveProgram;
use crate::signal::Signal;
use crate::stats::mean;
use strum::VariantArray;

/// Nanoseconds per second.
const NS_PER_S: f64 = 1e9;
/// Weight of the last quantum relative to all before it.
const WEIGHT: f64 = 0.5;
/// Clock if cycles are not counted, Hz. Prices are compared only with others of the same machine,
/// so any value does.
const NOMINAL_HZ: f64 = 2e9;
/// Assumed cost of a miss of the LLC if it is not measured, ns: the described machines have 45 to
/// 115.
const NOMINAL_MISS_NS: f64 = 80.0;
/// Most of the cycles, as a share, that count as queued: requests that are queued all the time
/// leave no estimate of the demand on an idle path.
const MOST_QUEUED: f64 = 0.9;
/// Stack components of mispredicted branches, by what their names contain.
const BRANCH_NAMES: [&str; 3] = ["branch", "br_mpred", "bad-speculation"];
/// Stack components of waiting for data.
const DATA_NAMES: [&str; 4] = ["memory", "data", "dcache", "back-end-memory"];

/// Kind of number that is known of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, VariantArray)]
pub(super) enum Characteristic {
    /// Core cycles per s of CPU time.
    Clock,
    /// Accesses to the LLC per s of CPU time.
    LlcAccesses,
    /// Misses of the LLC per s of CPU time.
    LlcMisses,
    /// Cycles that a miss of the LLC is waited for.
    MissCycles,
    /// Share of time waiting for data.
    Waits,
    /// Share of a memory path that one running thread would use if it were not queued.
    Path,
    /// Share of cycles lost to mispredicted branches.
    BranchCycles,
    /// Share of accesses to the L1D that need nothing from the LLC.
    NearHits,
    /// Returns from futex waits per s of CPU time.
    Syncs,
    /// Returns from other blocking calls per s of CPU time.
    Inputs,
    /// Context switches per s of CPU time.
    Switches,
    /// Distance of the last sibling behind the others, as a share of the mean CPU time, while no
    /// thread is placed.
    Lag,
    /// Growth of misses when siblings are in different LLC domains, relative to the misses; learnt.
    Sharing,
    /// Growth of the lines on the memory path then beyond that of misses; learnt.
    Excess,
}

impl Characteristic {
    /// All kinds, in the order of their numbers.
    pub(super) const ALL: [Self; Self::VARIANTS.len()] =
        *Self::VARIANTS.first_chunk().expect("all");

    /// Name in reports, with the unit.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Clock => "cycles per s",
            Self::LlcAccesses => "LLC accesses per s",
            Self::LlcMisses => "LLC misses per s",
            Self::MissCycles => "cycles per LLC miss",
            Self::Waits => "share of time waiting for data",
            Self::Path => "share of the memory path",
            Self::BranchCycles => "share of cycles lost to branches",
            Self::NearHits => "share of accesses that hit near",
            Self::Syncs => "futex returns per s",
            Self::Inputs => "blocking returns per s",
            Self::Switches => "context switches per s",
            Self::Lag => "lag of the last sibling",
            Self::Sharing => "data sharing (learnt)",
            Self::Excess => "excess of prefetching (learnt)",
        }
    }
}

/// Known characteristics of a program; those without a signal are absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ProgramCharacteristics {
    known: [Option<f64>; Characteristic::ALL.len()],
}

impl ProgramCharacteristics {
    pub(super) fn get(&self, what: Characteristic) -> Option<f64> {
        self.known[what as usize]
    }

    pub(super) fn set(&mut self, what: Characteristic, value: Option<f64>) {
        self.known[what as usize] = value.filter(|v| v.is_finite() && *v >= 0.0);
    }

    pub(super) fn or_zero(&self, what: Characteristic) -> f64 {
        self.get(what).unwrap_or(0.0)
    }

    /// Cycles per s of CPU time.
    pub(super) fn hz(&self) -> f64 {
        self.get(Characteristic::Clock).unwrap_or(NOMINAL_HZ)
    }

    /// Cycles that a miss of the LLC costs.
    pub(super) fn miss_cycles(&self) -> f64 {
        let nominal = NOMINAL_MISS_NS * self.hz() / NS_PER_S;
        self.get(Characteristic::MissCycles).unwrap_or(nominal)
    }

    /// Takes the mean with the characteristics of the last quantum. Numbers without a value
    /// in the last quantum stay.
    pub(super) fn update(&mut self, last: &Self) {
        for (old, new) in self.known.iter_mut().zip(last.known) {
            *old = match (*old, new) {
                (Some(old), Some(new)) => Some(old + WEIGHT * (new - old)),
                (old, new) => new.or(old),
            };
        }
    }

    /// Characteristics of a program in one quantum; `free` is true if no thread was placed in it.
    pub(super) fn from_program(group: &ActiveProgram<'_>, free: bool) -> Self {
        let cpu_s = group.sum(Signal::CpuTime).unwrap_or(0.0) / NS_PER_S;
        let mut known = Self::default();
        if cpu_s <= 0.0 {
            return known;
        }
        let per_s = |signal| group.sum(signal).map(|value| value / cpu_s);
        let ratio_of = |part, whole| ratio(group.sum(part), group.sum(whole));
        let waits = stalled_share(group, &DATA_NAMES).or_else(|| group.mean(Signal::MemoryStall));
        // If miss cycles are not counted, the cycles stalled behind loads stand for them.
        let miss_cycles = ratio_of(Signal::LlcMissCycles, Signal::LlcMisses).or_else(|| {
            let stalled = waits? * group.sum(Signal::Cycles)?;
            ratio(Some(stalled), group.sum(Signal::LlcMisses))
        });
        let far = ratio_of(Signal::LlcAccesses, Signal::L1dAccesses);
        let branch_cycles = stalled_share(group, &BRANCH_NAMES);
        known.set(Characteristic::Clock, per_s(Signal::Cycles));
        known.set(Characteristic::LlcAccesses, per_s(Signal::LlcAccesses));
        known.set(Characteristic::LlcMisses, per_s(Signal::LlcMisses));
        known.set(Characteristic::MissCycles, miss_cycles);
        known.set(Characteristic::Waits, waits);
        known.set(Characteristic::Path, memory_path_share(group));
        known.set(Characteristic::BranchCycles, branch_cycles);
        known.set(Characteristic::NearHits, far.map(|far| 1.0 - far.min(1.0)));
        known.set(Characteristic::Syncs, per_s(Signal::FutexReturns));
        known.set(Characteristic::Inputs, per_s(Signal::BlockingReturns));
        known.set(Characteristic::Switches, per_s(Signal::ContextSwitches));
        known.set(Characteristic::Lag, lag(group).filter(|_| free));
        known
    }
}

fn ratio(part: Option<f64>, whole: Option<f64>) -> Option<f64> {
    let (part, whole) = part.zip(whole)?;
    (whole > 0.0).then(|| part / whole)
}

/// Cycles in which the bus was busy over the cycles that were not spent queued for it.
fn memory_path_share(group: &ActiveProgram<'_>) -> Option<f64> {
    let cycles = group.sum(Signal::Cycles);
    let busy = ratio(group.sum(Signal::BusBusyCycles), cycles)?;
    let queued = ratio(group.sum(Signal::BusQueueCycles), cycles).unwrap_or(0.0);
    Some(busy / (1.0 - queued.clamp(0.0, MOST_QUEUED)))
}

/// Share of cycles in the components whose names contain one of these, mean over the threads with
/// such a component.
fn stalled_share(group: &ActiveProgram<'_>, names: &[&str]) -> Option<f64> {
    let mut shares = Vec::new();
    for thread in &group.members {
        let Some((stack, _)) = &thread.sample.stack else {
            continue;
        };
        let components = stack.components().iter().filter(|component| {
            let name = component.name.to_ascii_lowercase();
            names.iter().any(|part| name.contains(part))
        });
        let found: Vec<f64> = components.map(|c| c.share).collect();
        if !found.is_empty() {
            shares.push(found.iter().sum());
        }
    }
    mean(&shares)
}

fn lag(group: &ActiveProgram<'_>) -> Option<f64> {
    let members = group.members.iter();
    let times: Vec<f64> = members.map(|t| t.sample.cpu_time_ns()).collect();
    let least = times.iter().copied().fold(f64::INFINITY, f64::min);
    let mean = mean(&times)?;
    (times.len() > 1 && mean > 0.0).then(|| (mean - least) / mean)
}
