//! `tcs`: the most critical thread gets the large core, by two counters per logical core.
//!
//! Source: Markovic, "Hardware Thread Scheduling Algorithms for Single-ISA Asymmetric CMPs" (PhD
//! thesis, UPC 2015), TCS, trait-aware criticality scheduling.
//!
//! - *Short-term* criticality: length of the quantum / instructions committed in it. At the end of
//!   a quantum, a small core whose counter is higher than the large core's takes the large core,
//!   the highest first.
//! - *Long-term* criticality: sum of active interval / instructions committed in it, per software
//!   thread. A thread's interval ends, and its sum is updated, when the thread itself stalls or is
//!   switched out, and at the end of the quantum; never because another thread's interval ended. An
//!   interval without instructions adds nothing. The sum decides whenever some thread stalls or
//!   continues or the operating system exchanges threads, and short-term criticality decides at the
//!   end of the quantum. With `immediate=false` the sum decides later, at the end of a quantum in
//!   which that happened.
//! - *Idle large core*: it is handed over at once, by the sum, as in `hrrs` (section 5.1), on which
//!   the source builds.
//!
//! The source contradicts itself twice, and both readings are implemented. The sum's time is "at the
//! end of each hardware quantum" in the text and "whenever a thread stalls or continues" in the
//! caption of figure 7.2. The thread that it sends to the large core is the one with the highest
//! sum by the rule (`long-term=critical`); the worked example sends there a new thread because it
//! has done least so far, so that its sum is the lowest (`long-term=lagging`). Over the 186
//! workloads of the studies A12, A13 and A14 together the end of the quantum is 0.9999 ± 0.0004 and
//! lagging 1.000 ± 0.001 times as fast as the defaults, the caption and the rule, so that neither
//! matters: an idle large core is handed over at once in all of them.
//!
//! `arithmetic=integer` counts as the hardware does, bit by bit (rtl/tcs.sv, rtl/README.md):
//! counters that saturate, short-term criticalities compared without a division, quotients of
//! intervals in fixed point.
//!
//! Observes instructions, or CPU time if none are counted, and which threads wait for others.
//! Threads that wait, spinning or asleep, are not active. In software form a thread that is queued
//! for a CPU stays active. If intervals do not end with activity, as on live machines, a change of
//! the active threads is noticed at the end of the quantum.

use super::logical_core_map::{LogicalCore, LogicalCoreGroup};
use super::round_robin::{RoundRobin, TURNS, TurnOrder, turn_order};
use super::swapper::{FORM, LATENCY, Swap, SwapRule, Swapper, Tick, form, latency};
use crate::ids::ThreadId;
use crate::policy::{ALL_USUAL, OptionInfo, PolicyInfo, PolicyOptions, PolicyResult, PolicyRng};
use crate::signal::{Signal, SignalOffers, Tier};
use crate::topology::Topology;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

#[doc(alias = "trait-aware criticality")]
pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "tcs",
    family: "asymmetry",
    source: "Markovic, PhD thesis, UPC 2015",
    needs: &[Signal::CpuTime],
    uses: ALL_USUAL,
    tier_min: Tier::Proc,
    quantum_ms: 4,
    live: true,
    simulated: true,
    summary: "gives the large core to the thread that goes slowest, or that has done least",
    options: &[
        FORM,
        OptionInfo {
            name: "long-term",
            default: "critical",
            meaning: "critical (the highest long-term sum gets the large core) or lagging (the lowest)",
        },
        OptionInfo {
            name: "immediate",
            default: "true",
            meaning: "decide by the long-term sum at once when a thread stalls or resumes, not at the quantum's end",
        },
        TURNS,
        LATENCY,
        OptionInfo {
            name: "arithmetic",
            default: "real",
            meaning: "real (numbers) or integer (the hardware's counters, bit by bit)",
        },
    ],
    open,
};

fn open(topology: &Topology, _: &SignalOffers, options: &PolicyOptions<'_>) -> PolicyResult {
    let words = [
        ("lagging", LongTermRule::Lagging),
        ("critical", LongTermRule::Critical),
    ];
    let reading = options.one_of("long-term", &words, "critical or lagging")?;
    let immediate = options.flag("immediate")?;
    let kinds = [("real", Arithmetic::Real), ("integer", Arithmetic::Integer)];
    let rule = Tcs {
        order: turn_order(options)?,
        arithmetic: options.one_of("arithmetic", &kinds, "real or integer")?,
        ..Tcs::new(reading, immediate)
    };
    let policy = Swapper::new(rule, form(options)?).with_latency(latency(options)?);
    policy.open(topology, INFO.name)
}

/// The active thread that the long-term sum sends to the large core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LongTermRule {
    /// The one with the lowest sum.
    Lagging,
    /// The one with the highest sum.
    Critical,
}

#[derive(Debug)]
struct Tcs {
    reading: LongTermRule,
    /// True if the long-term sum decides at once, not at the end of the quantum.
    immediate: bool,
    order: TurnOrder,
    arithmetic: Arithmetic,
    long_term: BTreeMap<ThreadId, LongTermCriticality>,
    /// Progress of each logical core since the quantum began.
    done: BTreeMap<usize, f64>,
    /// Short-term criticality by logical core, of the last whole quantum.
    short_term: BTreeMap<usize, CriticalityValue>,
    groups: BTreeMap<usize, TcsGroupState>,
}

#[derive(Debug)]
struct TcsGroupState {
    /// Order of turns among equals.
    turns: RoundRobin,
    /// Threads that were active when the last interval ended, each with its logical core.
    active: BTreeSet<(usize, ThreadId)>,
    /// True if that set has changed since the quantum began.
    stirred: bool,
    /// The counter that decides the exchange which waits for the large core to leave the kernel.
    due: Option<DecisionCounter>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DecisionCounter {
    ShortTerm,
    LongTerm,
}

impl TcsGroupState {
    fn new(order: TurnOrder) -> Self {
        Self {
            turns: RoundRobin::new(order),
            active: BTreeSet::new(),
            stirred: false,
            due: None,
        }
    }

    fn record_interval(&mut self, group: &LogicalCoreGroup<'_>, tick: Tick, immediate: bool) {
        let mut active = BTreeSet::new();
        for core in group.logical_cores() {
            active.extend(core.active.iter().map(|t| (core.logical, *t)));
        }
        let changed = self.active != active;
        self.active = active;
        self.stirred |= changed;
        let is_idle = group.large.iter().any(|core| core.active.is_empty());
        if changed && (immediate || is_idle) {
            self.due = Some(DecisionCounter::LongTerm);
        } else if tick.is_quantum {
            let long = self.stirred && !immediate;
            self.due = Some(if long {
                DecisionCounter::LongTerm
            } else {
                DecisionCounter::ShortTerm
            });
        }
        self.stirred &= !tick.is_quantum;
    }

    /// Takes the counter that decides now, if an exchange is due and the large core is not in the
    /// kernel.
    fn take_due(&mut self, group: &LogicalCoreGroup<'_>) -> Option<DecisionCounter> {
        let waits = group.large.iter().any(LogicalCore::is_in_kernel);
        if waits { None } else { self.due.take() }
    }
}

impl Tcs {
    fn new(reading: LongTermRule, immediate: bool) -> Self {
        Self {
            reading,
            immediate,
            order: TurnOrder::default(),
            arithmetic: Arithmetic::default(),
            long_term: BTreeMap::new(),
            done: BTreeMap::new(),
            short_term: BTreeMap::new(),
            groups: BTreeMap::new(),
        }
    }

    /// Adds the interval to the counters of the threads that were active in it.
    fn count_interval(&mut self, group: &LogicalCoreGroup<'_>, tick: Tick) {
        for core in group.logical_cores() {
            let done = self.done.entry(core.logical).or_default();
            *done = self.arithmetic.add_to_counter(*done, core.progress());
            if tick.is_quantum {
                let done = std::mem::take(done);
                let arithmetic = self.arithmetic;
                let criticality = arithmetic.short_term_criticality(tick.quantum_ns, done);
                self.short_term.insert(core.logical, criticality);
            }
            for ran in &core.ran {
                let own = self.long_term.entry(ran.thread);
                let own = own.or_insert_with(|| LongTermCriticality::new(self.arithmetic));
                own.add_interval(tick.interval_ns, ran.progress);
                if tick.is_quantum || !core.active.contains(&ran.thread) {
                    own.end_interval();
                }
            }
        }
    }

    /// Criticality with which a logical core competes for the large one; `None` if no thread is
    /// active on it.
    fn urgency(&self, due: DecisionCounter, core: &LogicalCore<'_>) -> Option<CriticalityValue> {
        let claims = core.active.iter().map(|t| self.claim(*t));
        let most = claims.max_by(CriticalityValue::compare)?;
        match due {
            DecisionCounter::ShortTerm => self.short_term.get(&core.logical).copied(),
            DecisionCounter::LongTerm => Some(most),
        }
    }

    /// A thread's claim to the large core by its long-term sum.
    fn claim(&self, thread: ThreadId) -> CriticalityValue {
        let none = self.arithmetic.zero();
        let own = self.long_term.get(&thread);
        let sum = own.map_or(none, LongTermCriticality::sum);
        match self.reading {
            LongTermRule::Critical => sum,
            LongTermRule::Lagging => sum.reverse(),
        }
    }

    /// The exchange of the most urgent small core with the least urgent large one, if it is more
    /// urgent.
    fn most_urgent_swap(&self, due: DecisionCounter, group: &LogicalCoreGroup<'_>) -> Option<Swap> {
        let order = |a: &&LogicalCore<'_>, b: &&LogicalCore<'_>| {
            match (self.urgency(due, a), self.urgency(due, b)) {
                (Some(a), Some(b)) => a.compare(&b),
                // An idle core is less urgent than any other.
                (a, b) => a.is_some().cmp(&b.is_some()),
            }
        };
        let turns = &self.groups.get(&group.index)?.turns;
        let ready = turns.small_cores_by_turn(group);
        let ready = ready.filter(|core| core.is_ready());
        // Of equals the one whose turn it is: reversed, because `max_by` takes the last.
        let small = ready.rev().max_by(order)?;
        let large = group.large.iter().min_by(order)?;
        order(&small, &large).is_gt().then_some(Swap {
            small: small.logical,
            large: large.logical,
            why: match due {
                DecisionCounter::ShortTerm => "its short-term criticality is the highest",
                DecisionCounter::LongTerm => {
                    "by its long-term criticality, because a thread has stalled or resumed"
                }
            },
        })
    }
}

impl SwapRule for Tcs {
    fn forget(&mut self, is_gone: &dyn Fn(ThreadId) -> bool) {
        self.long_term.retain(|&id, _| !is_gone(id));
    }

    fn choose_swaps(
        &mut self,
        group: &LogicalCoreGroup<'_>,
        tick: Tick,
        _: &mut PolicyRng,
    ) -> Vec<Swap> {
        self.count_interval(group, tick);
        let state = self.groups.entry(group.index);
        let state = state.or_insert_with(|| TcsGroupState::new(self.order));
        state.turns.update_queues(group);
        state.record_interval(group, tick, self.immediate);
        let due = state.take_due(group);
        let swap = due.and_then(|due| self.most_urgent_swap(due, group));
        if let Some((swap, state)) = swap.zip(self.groups.get_mut(&group.index)) {
            state.turns.record_swap(swap.small, swap.large);
        }
        swap.into_iter().collect()
    }
}

/// Highest count of instructions and of timer ticks (ns) in hardware: 32 bits.
const MOST: f64 = u32::MAX as f64;
/// Bits behind the point of the hardware's long-term sums.
const FRACTION_BITS: u32 = 16;

/// Arithmetic of the counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Arithmetic {
    #[default]
    Real,
    /// The hardware's integers, which saturate: 32 bits for instructions and ns, 64 bits with 16 of
    /// them behind the point for sums.
    Integer,
}

/// A criticality. Only values of one arithmetic are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
enum CriticalityValue {
    /// ns per instruction.
    Real(f64),
    /// The hardware's number for it: larger is more critical.
    Whole(u64),
}

impl CriticalityValue {
    fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Real(a), Self::Real(b)) => a.total_cmp(b),
            (Self::Whole(a), Self::Whole(b)) => a.cmp(b),
            (Self::Real(_), Self::Whole(_)) => Ordering::Less,
            (Self::Whole(_), Self::Real(_)) => Ordering::Greater,
        }
    }

    /// Reverses the order, so that the highest is the least critical.
    fn reverse(self) -> Self {
        match self {
            Self::Real(weight) => Self::Real(-weight),
            Self::Whole(weight) => Self::Whole(u64::MAX - weight),
        }
    }
}

impl Arithmetic {
    fn zero(self) -> CriticalityValue {
        match self {
            Self::Real => CriticalityValue::Real(0.0),
            Self::Integer => CriticalityValue::Whole(0),
        }
    }

    /// A counter in either arithmetic is exact in the 53 bits of a float.
    fn add_to_counter(self, counter: f64, more: f64) -> f64 {
        match self {
            Self::Real => counter + more,
            Self::Integer => (counter + libm::round(more)).min(MOST),
        }
    }

    /// Quantum over instructions. All quanta are equally long, so the hardware compares the
    /// instructions: the fewer, the more critical.
    fn short_term_criticality(self, quantum_ns: u64, done: f64) -> CriticalityValue {
        match self {
            Self::Real => CriticalityValue::Real(quantum_ns as f64 / done),
            Self::Integer => CriticalityValue::Whole(u64::MAX - done as u64),
        }
    }
}

/// Long-term criticality of a software thread.
#[derive(Clone, Copy, Debug)]
struct LongTermCriticality {
    arithmetic: Arithmetic,
    /// Sum, over the intervals that have ended, of interval / instructions, ns per instruction.
    sum: CriticalityValue,
    /// Length of the active interval so far, ns.
    active_ns: f64,
    /// Instructions committed in it.
    done: f64,
}

impl LongTermCriticality {
    fn new(arithmetic: Arithmetic) -> Self {
        Self {
            arithmetic,
            sum: arithmetic.zero(),
            active_ns: 0.0,
            done: 0.0,
        }
    }

    fn sum(&self) -> CriticalityValue {
        self.sum
    }

    fn add_interval(&mut self, interval_ns: u64, done: f64) {
        let arithmetic = self.arithmetic;
        self.active_ns = arithmetic.add_to_counter(self.active_ns, interval_ns as f64);
        self.done = arithmetic.add_to_counter(self.done, done);
    }

    /// Ends the active interval; one without instructions adds nothing.
    fn end_interval(&mut self) {
        if self.done > 0.0 {
            self.sum = match self.sum {
                CriticalityValue::Real(sum) => {
                    CriticalityValue::Real(sum + self.active_ns / self.done)
                }
                CriticalityValue::Whole(sum) => {
                    let quotient = ((self.active_ns as u64) << FRACTION_BITS) / self.done as u64;
                    CriticalityValue::Whole(sum.saturating_add(quotient))
                }
            };
        }
        (self.active_ns, self.done) = (0.0, 0.0);
    }
}

#[cfg(test)]
mod tests;
