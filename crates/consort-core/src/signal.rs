//! Signals that a machine can offer, and the tiers from which they come.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// Origin of a value, poorest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tier {
    /// `/proc` alone.
    Proc,
    /// perf software events and tracepoint counters.
    Software,
    /// Instruction addresses sampled by a software clock, decoded.
    Sampling,
    /// Hardware counters.
    Counters,
}

impl Tier {
    /// All tiers, poorest first.
    pub const ALL: [Self; 4] = [Self::Proc, Self::Software, Self::Sampling, Self::Counters];

    /// The tier's name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Proc => "proc",
            Self::Software => "software",
            Self::Sampling => "sampling",
            Self::Counters => "counters",
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Quantity that a machine can measure of a thread over an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Signal {
    /// Time on a CPU, ns.
    CpuTime,
    /// Time runnable but not on a CPU, ns.
    WaitTime,
    /// Part of the CPU time that was spent on CPUs of the plan, ns; absent if the plan left the
    /// thread unrestricted.
    PlannedTime,
    /// Core cycles.
    Cycles,
    /// Instructions retired.
    Instructions,
    /// Use of the floating-point units, 0 to 1; comparable within one machine only.
    #[doc(alias = "FPU usage")]
    FpUsage,
    /// Share of CPU time stalled behind loads, 0 to 1.
    MemoryStall,
    /// Bytes of distinct code executed.
    CodeFootprint,
    /// Number of times that the thread was put on a CPU.
    Runs,
    /// Context switches.
    ContextSwitches,
    /// Moves from one CPU to another.
    Migrations,
    /// Page faults.
    PageFaults,
    /// Returns from futex calls to user mode, both from waiting and from waking.
    #[doc(alias = "transition bit")]
    FutexReturns,
    /// Returns from other blocking system calls to user mode, mostly input and output.
    BlockingReturns,
    /// Returns from the kernel to user mode for any reason: system calls, time slices, ticks. A
    /// core's privilege level shows them.
    #[doc(alias = "transition bit")]
    UserReturns,
    /// 1 if the thread was on a CPU or waited for one at the end of the interval, else 0.
    Runnable,
    /// 1 if the thread waited for its siblings at the end of the interval, spinning or asleep, else
    /// 0. The source is an instrumented library or futex events.
    Waiting,
    /// 1 if the thread was in kernel mode at the end of the interval, else 0.
    KernelMode,
    /// Holders of locks, and threads that wait for locks and barriers, from an instrumented
    /// library. They are not in samples but in [`crate::Observation::bottlenecks`].
    Bottlenecks,
    /// Instruction mix by time; see [`crate::Mix`].
    Mix,
    /// Cycle stack; see [`crate::CycleStack`].
    CycleStack,
    /// Accesses to the L1 data cache.
    L1dAccesses,
    /// Accesses to the LLC.
    LlcAccesses,
    /// Misses of the LLC that were waited for.
    LlcMisses,
    /// Cycles that the thread stalled for misses of the LLC.
    LlcMissCycles,
    /// Distances in instructions from values to their first uses, summed over all instructions.
    UseDistances,
    /// Cycles that the thread's instructions would take in order, with width, dependences and units
    /// of the core on which it ran, all branches predicted and all data in the L1.
    InOrderCycles,
    /// Cycles in which its data moved over the bus to memory.
    BusBusyCycles,
    /// Cycles in which its requests were queued for the bus or for memory.
    BusQueueCycles,
    /// The thread's share of the machine's energy, J: its own use, and of the rest the same share
    /// that it had of the time of all threads on CPUs. The sum over threads is the machine's
    /// energy.
    Energy,
}

impl Signal {
    /// The signal's name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::CpuTime => "cpu-time",
            Self::WaitTime => "wait-time",
            Self::PlannedTime => "planned-time",
            Self::Cycles => "cycles",
            Self::Instructions => "instructions",
            Self::FpUsage => "fp-usage",
            Self::MemoryStall => "memory-stall",
            Self::CodeFootprint => "code-footprint",
            Self::Runs => "runs",
            Self::ContextSwitches => "context-switches",
            Self::Migrations => "migrations",
            Self::PageFaults => "page-faults",
            Self::FutexReturns => "futex-returns",
            Self::BlockingReturns => "blocking-returns",
            Self::UserReturns => "user-returns",
            Self::Runnable => "runnable",
            Self::Waiting => "waiting",
            Self::KernelMode => "kernel-mode",
            Self::Bottlenecks => "bottlenecks",
            Self::Mix => "mix",
            Self::CycleStack => "cycle-stack",
            Self::L1dAccesses => "l1d-accesses",
            Self::LlcAccesses => "llc-accesses",
            Self::LlcMisses => "llc-misses",
            Self::LlcMissCycles => "llc-miss-cycles",
            Self::UseDistances => "use-distances",
            Self::InOrderCycles => "in-order-cycles",
            Self::BusBusyCycles => "bus-busy-cycles",
            Self::BusQueueCycles => "bus-queue-cycles",
            Self::Energy => "energy",
        }
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The signals that a machine offers, each with its tier, and the facts about the machine that
/// decide whether a model fits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SignalOffers {
    signals: BTreeMap<Signal, Tier>,
    #[serde(skip)]
    machine: String,
    #[serde(skip)]
    stack: Vec<Cow<'static, str>>,
}

impl SignalOffers {
    /// Sets the machine's name: that of its description, or the processor's own.
    pub fn set_machine(&mut self, name: &str) {
        name.clone_into(&mut self.machine);
    }

    /// The machine's name; empty if unknown.
    pub fn machine(&self) -> &str {
        &self.machine
    }

    /// Sets the components of the machine's cycle stacks, in their order.
    pub fn set_stack(&mut self, components: Vec<Cow<'static, str>>) {
        self.stack = components;
    }

    /// The components of its cycle stacks; empty if it has none or they are not known yet.
    pub fn stack(&self) -> &[Cow<'static, str>] {
        &self.stack
    }

    /// Adds a signal; the richer tier wins if it is offered twice.
    pub fn add(&mut self, signal: Signal, tier: Tier) {
        let best = self.signals.entry(signal).or_insert(tier);
        *best = tier.max(*best);
    }

    /// The tier of a signal, if it is offered.
    pub fn tier_of(&self, signal: Signal) -> Option<Tier> {
        self.signals.get(&signal).copied()
    }

    /// Signals of `needs` that are not offered.
    pub fn missing_signals(&self, needs: &[Signal]) -> Vec<Signal> {
        let lacks = |signal: &&Signal| !self.signals.contains_key(signal);
        needs.iter().filter(lacks).copied().collect()
    }

    /// Every signal with its tier.
    pub fn iter(&self) -> impl Iterator<Item = (Signal, Tier)> + '_ {
        self.signals.iter().map(|(&signal, &tier)| (signal, tier))
    }
}

impl FromIterator<(Signal, Tier)> for SignalOffers {
    fn from_iter<I: IntoIterator<Item = (Signal, Tier)>>(pairs: I) -> Self {
        let mut offers = Self::default();
        pairs.into_iter().for_each(|(s, t)| offers.add(s, t));
        offers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_richer_tier_wins() {
        let offers = SignalOffers::from_iter([
            (Signal::FpUsage, Tier::Counters),
            (Signal::FpUsage, Tier::Sampling),
            (Signal::CpuTime, Tier::Proc),
        ]);
        assert_eq!(offers.tier_of(Signal::FpUsage), Some(Tier::Counters));
        assert_eq!(
            offers.missing_signals(&[Signal::CpuTime, Signal::Cycles]),
            [Signal::Cycles]
        );
    }
}
