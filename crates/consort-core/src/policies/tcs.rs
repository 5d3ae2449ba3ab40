//! `tcs`: the most critical thread gets the large core, by two counters per logical core.
//!
//! Source: Markovic, "Hardware Thread Scheduling Algorithms for Single-ISA Asymmetric CMPs" (PhD
//! thesis, UPC 2015), TCS, trait-aware criticality scheduling.
//!
//! - *Short-term* criticality: length of the quantum / instructions committed in it. At the end of
//!   a quantum, a small core whose counter is higher than the large core's takes the large core,
//!   the highest first.
//! - *Long-term* criticality: sum of active interval / instructions committed in it, kept per
//!   software thread. A thread's interval ends, and its sum is updated, when the thread itself
//!   stalls or is switched out, and at the end of the quantum; never because another thread's
//!   ended. An interval without instructions adds nothing. It decides at the end of a quantum in
//!   which some thread stalled or went on or the operating system exchanged threads; with
//!   `immediate` at once when that happens, and the end of the quantum is short-term's.
//!
//! The source says in two ways which thread the long-term sum sends to the large core: the rule
//! says the one with the highest, the worked example sends there a new thread because its sum is
//! the lowest, which has done least so far. Both are implemented, `long-term=critical` and
//! `long-term=lagging`. Over the studies A12, A13 and A14 together critical does better, by 0.3
//! percent and beyond the interval, so it is the default: single-threaded programs hardly tell them
//! apart, and with several threads it is faster in more cases than it is slower.
//!
//! `arithmetic=integer` counts as the hardware does, bit by bit (rtl/tcs.sv, docs/hardware.md):
//! counters that saturate, short-term criticalities compared without a division, quotients of
//! intervals in fixed point.
//!
//! Observes instructions, or CPU time where none are counted, and which threads wait for others;
//! threads that wait, spinning or asleep, are not active. In software form a thread that is queued
//! for a PU stays active. Where intervals do not end with activity, as on live machines, a change
//! of who is active is noticed at the end of the quantum.

mod counters;

use self::counters::{Arithmetic, CriticalityValue, LongTermCriticality};
use super::asymmetric::{
    FORM, LATENCY, LogicalCore, LogicalCoreGroup, RoundRobin, Swap, SwapRule, Swapper, TURNS, Tick,
    TurnOrder, form, latency, turn_order,
};
use crate::ids::ThreadId;
use crate::policy::{ALL_USUAL, OptionInfo, PolicyInfo, PolicyOptions, PolicyResult, PolicyRng};
use crate::signal::{Signal, SignalOffers, Tier};
use crate::topology::Topology;
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
            default: "false",
            meaning: "decide by the long-term sum at once when a thread stalls or goes on",
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

/// Reading of the long-term rule: the active thread that its sum sends to the large core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LongTermRule {
    /// The one with the lowest.
    Lagging,
    /// The one with the highest.
    Critical,
}

#[derive(Debug)]
struct Tcs {
    reading: LongTermRule,
    /// True where the long-term sum decides at once, not at the end of the quantum.
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

/// State of a group that tells when its next exchange is decided.
#[derive(Debug)]
struct TcsGroupState {
    /// Order of turns among equals.
    turns: RoundRobin,
    /// Threads that were active when the last interval ended, each with its logical core.
    active: BTreeSet<(usize, ThreadId)>,
    /// True where that set has changed since the quantum began.
    stirred: bool,
    /// The exchange that waits for the large core to leave the kernel.
    due: Option<DecisionCounter>,
}

/// Counter by which an exchange is to be decided.
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

    /// Notes the end of an interval of a group.
    fn record_interval(&mut self, group: &LogicalCoreGroup<'_>, tick: Tick, immediate: bool) {
        let on = |seat: &LogicalCore<'_>| -> Vec<_> {
            seat.active.iter().map(|t| (seat.logical, *t)).collect()
        };
        let active = group.logical_cores().flat_map(on).collect();
        let changed = self.active != active;
        self.active = active;
        self.stirred |= changed;
        if immediate && changed {
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

    /// Takes the counter by which to decide now, if any exchange is due and the large core is not
    /// in the kernel.
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
        for seat in group.logical_cores() {
            let done = self.done.entry(seat.logical).or_default();
            *done = self.arithmetic.add_to_counter(*done, seat.progress());
            if tick.is_quantum {
                let done = std::mem::take(done);
                let criticality = self
                    .arithmetic
                    .short_term_criticality(tick.quantum_ns, done);
                self.short_term.insert(seat.logical, criticality);
            }
            for ran in &seat.ran {
                let own = self.long_term.entry(ran.thread);
                let own = own.or_insert_with(|| LongTermCriticality::new(self.arithmetic));
                own.add_interval(tick.interval_ns, ran.progress);
                if tick.is_quantum || !seat.active.contains(&ran.thread) {
                    own.end_interval();
                }
            }
        }
    }

    /// Criticality with which a logical core competes for the large one; none when nobody is active
    /// on it.
    fn urgency(&self, due: DecisionCounter, seat: &LogicalCore<'_>) -> Option<CriticalityValue> {
        let claims = seat.active.iter().map(|t| self.claim(*t));
        let most = claims.max_by(CriticalityValue::compare)?;
        match due {
            DecisionCounter::ShortTerm => self.short_term.get(&seat.logical).copied(),
            DecisionCounter::LongTerm => Some(most),
        }
    }

    /// A thread's claim to the large core by its long-term sum.
    fn claim(&self, thread: ThreadId) -> CriticalityValue {
        let none = self.arithmetic.zero();
        let sum = self
            .long_term
            .get(&thread)
            .map_or(none, LongTermCriticality::sum);
        match self.reading {
            LongTermRule::Critical => sum,
            LongTermRule::Lagging => sum.reverse(),
        }
    }

    /// The exchange of the most urgent small core with the least urgent large one, if it is more
    /// urgent.
    fn most_urgent_swap(&self, due: DecisionCounter, group: &LogicalCoreGroup<'_>) -> Option<Swap> {
        let of = |seat: &LogicalCore<'_>| self.urgency(due, seat);
        let order = |a: &Option<CriticalityValue>, b: &Option<CriticalityValue>| match (a, b) {
            (Some(a), Some(b)) => a.compare(b),
            // An idle core is less urgent than any.
            _ => a.is_some().cmp(&b.is_some()),
        };
        let turns = &self.groups.get(&group.index)?.turns;
        let ready = turns
            .small_cores_by_turn(group)
            .filter(|seat| seat.is_ready());
        // Of equals the one whose turn it is.
        let small = ready.rev().max_by(|a, b| order(&of(a), &of(b)))?;
        let large = group.large.iter().min_by(|a, b| order(&of(a), &of(b)))?;
        let why = match due {
            DecisionCounter::ShortTerm => "its short-term criticality is the highest",
            DecisionCounter::LongTerm => {
                "by its long-term criticality, as somebody has stalled or gone on"
            }
        };
        order(&of(small), &of(large)).is_gt().then(|| Swap {
            small: small.logical,
            large: large.logical,
            why: why.into(),
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
        let order = self.order;
        let occasion = self.groups.entry(group.index);
        let occasion = occasion.or_insert_with(|| TcsGroupState::new(order));
        occasion.turns.update_queues(group);
        occasion.record_interval(group, tick, self.immediate);
        let due = occasion.take_due(group);
        let swap = due.and_then(|due| self.most_urgent_swap(due, group));
        if let Some((swap, occasion)) = swap.as_ref().zip(self.groups.get_mut(&group.index)) {
            occasion.turns.record_swap(swap.small, swap.large);
        }
        swap.into_iter().collect()
    }
}

#[cfg(test)]
mod tests;
