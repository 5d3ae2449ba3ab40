//! Formulas that turn counts of events into signals, and the last counts that they use.

use super::quantity::{GROUPED_STACK, MERGED, STACK, merged_parts};
use crate::machine::{PmuEventSpec, Quantity};
use consort_core::{CycleStack, Signal};
use std::borrow::Cow;

/// Cause in a stack for cycles that no event of the chip accounts for.
const OTHER: &str = "other";

/// A signal and how to compute it from events, which are given by index.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum PmuFormula {
    /// FPU usage = 1 − empty cycles/cycles (Bulldozer; Peternier et al., section 5.2).
    FpuNotEmpty(usize),
    /// FPU usage = operations/cycles (POWER7; Peternier et al., section 5.2), at most 1.
    FpOperations(usize),
    /// Share of cycles waiting for data.
    MemoryStall(usize),
    /// Accesses to the L1D.
    L1dAccesses(usize),
    /// A plain count.
    Count(usize, Signal),
    /// Cycle stack: a part per event, and the rest if the events do not cover all causes.
    Stack { parts: Vec<usize>, whole: bool },
}

impl PmuFormula {
    /// All that a chip's events usually feed in addition to cycles and instructions.
    pub(super) fn usual_formulas(events: &[PmuEventSpec]) -> Vec<Self> {
        let of = |quantity| events.iter().position(|event| event.counts == quantity);
        let fp = of(Quantity::FpuEmptyCycles).map(Self::FpuNotEmpty);
        let fp = fp.or_else(|| of(Quantity::FpOperations).map(Self::FpOperations));
        let data = of(Quantity::StackData).map(Self::MemoryStall);
        let l1d = of(Quantity::L1dAccesses).map(Self::L1dAccesses);
        let single = fp.into_iter().chain(data).chain(l1d);
        single
            .chain(wired_formulas(events))
            .chain(stack(events))
            .collect()
    }

    /// All that a chip's events can feed of some signals.
    pub(super) fn for_signals(events: &[PmuEventSpec], signals: &[Signal]) -> Vec<Self> {
        let usual = Self::usual_formulas(events);
        let mut found: Vec<Self> = Vec::new();
        for formula in usual.into_iter().chain(request_formulas(events)) {
            let known = found.iter().any(|f| f.signal() == formula.signal());
            if !known && signals.contains(&formula.signal()) {
                found.push(formula);
            }
        }
        found
    }

    pub(super) fn signal(&self) -> Signal {
        match self {
            Self::FpuNotEmpty(_) | Self::FpOperations(_) => Signal::FpUsage,
            Self::MemoryStall(_) => Signal::MemoryStall,
            Self::L1dAccesses(_) => Signal::L1dAccesses,
            Self::Count(_, signal) => *signal,
            Self::Stack { .. } => Signal::CycleStack,
        }
    }

    pub(super) fn events(&self) -> Vec<usize> {
        match self {
            Self::FpuNotEmpty(e)
            | Self::FpOperations(e)
            | Self::MemoryStall(e)
            | Self::L1dAccesses(e)
            | Self::Count(e, _) => vec![*e],
            Self::Stack { parts, .. } => parts.clone(),
        }
    }

    /// The event and value of a single one; none for a stack, or before its event was counted.
    /// A count is that of `interval_ns` at the rate at which its event last counted.
    pub(super) fn value(&self, memory: &LastCounts, interval_ns: u64) -> Option<(usize, f64)> {
        let ratio = |value: f64| value.clamp(0.0, 1.0);
        match *self {
            Self::FpuNotEmpty(event) => Some((event, ratio(1.0 - memory.per_cycle(event)?))),
            Self::FpOperations(event) | Self::MemoryStall(event) => {
                Some((event, ratio(memory.per_cycle(event)?)))
            }
            Self::L1dAccesses(event) | Self::Count(event, _) => {
                Some((event, memory.per_ns(event)? * interval_ns as f64))
            }
            Self::Stack { .. } => None,
        }
    }

    /// The names of a stack's components, in their order.
    pub(super) fn components(&self, events: &[PmuEventSpec]) -> Vec<Cow<'static, str>> {
        let Self::Stack { parts, whole } = self else {
            return Vec::new();
        };
        let names = parts.iter().map(|&event| name(&events[event].name));
        let other = (!whole).then_some(Cow::Borrowed(OTHER));
        names.chain(other).collect()
    }

    /// The stack; none for a ratio, or before all its events were counted.
    pub(super) fn stack(&self, memory: &LastCounts, events: &[PmuEventSpec]) -> Option<CycleStack> {
        let Self::Stack { parts, whole } = self else {
            return None;
        };
        if parts.iter().any(|&event| memory.get(event).is_none()) {
            return None;
        }
        // Exactly as long as the stack, so that it is allocated once.
        let share = |&event: &usize| memory.per_cycle(event).unwrap_or(0.0);
        let reported: f64 = parts.iter().map(share).sum();
        let rest = (!whole).then_some((Cow::Borrowed(OTHER), 1.0 - reported));
        let named = parts
            .iter()
            .map(|event| (name(&events[*event].name), share(event)));
        let amounts = named.chain(rest);
        Some(CycleStack::from_amounts(amounts))
    }
}

/// Quantities that are offered only if they have a counter of their own, so that nothing else has
/// to take turns with them.
const WIRED: [(Quantity, Signal); 4] = [
    (Quantity::LlcMisses, Signal::LlcMisses),
    (Quantity::LlcMissCycles, Signal::LlcMissCycles),
    (Quantity::UseDistances, Signal::UseDistances),
    (Quantity::InOrderCycles, Signal::InOrderCycles),
];

/// The events of [`WIRED`] that have counters of their own.
fn wired_formulas(events: &[PmuEventSpec]) -> impl Iterator<Item = PmuFormula> + '_ {
    WIRED.into_iter().filter_map(|(quantity, signal)| {
        let mut fixed = events.iter().enumerate().filter(|(_, event)| event.fixed);
        let found = fixed.find(|(_, event)| event.counts == quantity)?;
        Some(PmuFormula::Count(found.0, signal))
    })
}

/// Quantities that are offered only on request, so that nothing else has to take turns with them. A
/// quantity and the one by which it is divided stand next to each other and so count together.
const ON_REQUEST: [(Quantity, Signal); 4] = [
    (Quantity::LlcAccesses, Signal::LlcAccesses),
    (Quantity::LlcMisses, Signal::LlcMisses),
    (Quantity::BusBusyCycles, Signal::BusBusyCycles),
    (Quantity::BusQueueCycles, Signal::BusQueueCycles),
];

/// The events of [`ON_REQUEST`].
fn request_formulas(events: &[PmuEventSpec]) -> impl Iterator<Item = PmuFormula> + '_ {
    ON_REQUEST.into_iter().filter_map(|(quantity, signal)| {
        let event = events.iter().position(|event| event.counts == quantity)?;
        Some(PmuFormula::Count(event, signal))
    })
}

fn name(event: &str) -> Cow<'static, str> {
    Cow::Owned(event.to_owned())
}

/// The events of the stack: events for several parts if the chip has them, else one per part. Which
/// parts there are depends on whether the chip counts completed groups.
fn stack(events: &[PmuEventSpec]) -> Option<PmuFormula> {
    let of = |quantity: Quantity| events.iter().position(|event| event.counts == quantity);
    let merged: Vec<Quantity> = MERGED.into_iter().filter(|&q| of(q).is_some()).collect();
    let covered = |part: &Quantity| merged.iter().any(|&q| merged_parts(q).contains(part));
    let all = match of(Quantity::StackGroups) {
        Some(_) => &GROUPED_STACK[..],
        None => &STACK[..],
    };
    let single = all.iter().copied().filter(|part| !covered(part));
    let single: Vec<Quantity> = single.collect();
    let whole = single.iter().all(|&q| of(q).is_some());
    let parts: Vec<usize> = single.into_iter().chain(merged).filter_map(of).collect();
    (!parts.is_empty()).then_some(PmuFormula::Stack { parts, whole })
}

/// A count and the quantum that it is from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct EventCount {
    /// The count as read.
    pub(super) amount: f64,
    /// Cycles as read in the same quantum, above 0.
    pub(super) cycles: f64,
    /// Time on a CPU in the quantum, s.
    pub(super) on_pu_s: f64,
    /// Start of the quantum, ns since the thread was first sampled.
    pub(super) begin_ns: u64,
    /// End of the quantum, ns since the thread was first sampled.
    pub(super) end_ns: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct LastCounts(Vec<Option<EventCount>>);

impl LastCounts {
    pub(super) fn new(events: usize) -> Self {
        Self(vec![None; events])
    }

    pub(super) fn set(&mut self, event: usize, seen: EventCount) {
        self.0[event] = Some(seen);
    }

    pub(super) fn get(&self, event: usize) -> Option<EventCount> {
        self.0[event]
    }

    /// The event's last count by the length of its quantum.
    pub(super) fn per_ns(&self, event: usize) -> Option<f64> {
        let seen = self.get(event)?;
        Some(seen.amount / (seen.end_ns - seen.begin_ns).max(1) as f64)
    }

    /// The event's last count by the cycles of the same quantum.
    pub(super) fn per_cycle(&self, event: usize) -> Option<f64> {
        self.get(event).map(|seen| seen.amount / seen.cycles)
    }
}
