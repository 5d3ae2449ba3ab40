//! Which events feed which signal, and how.

use super::memory::Memory;
use super::quantity::STACK;
use crate::machine::{EventSpec, Quantity};
use consort_core::{CycleStack, Signal};
use std::borrow::Cow;

/// The cause that a stack names for cycles of which no event of the chip tells.
const OTHER: &str = "other";

/// A signal and how to compute it from events, which are given by index.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Formula {
    /// FPU usage = 1 − empty cycles/cycles (Bulldozer; Peternier et al., section 3).
    FpuNotEmpty(usize),
    /// FPU usage = operations/cycles (POWER7; Peternier et al., section 3), at most 1.
    FpOperations(usize),
    /// Share of cycles waiting for data.
    MemoryStall(usize),
    /// Cycle stack: a part per event, and what they leave if they do not tell of all causes.
    Stack { parts: Vec<usize>, whole: bool },
}

impl Formula {
    /// All that a chip's events can feed beside cycles and instructions.
    pub(super) fn all(events: &[EventSpec]) -> Vec<Self> {
        let of = |quantity| events.iter().position(|event| event.counts == quantity);
        let fp = of(Quantity::FpuEmptyCycles).map(Self::FpuNotEmpty);
        let fp = fp.or_else(|| of(Quantity::FpOperations).map(Self::FpOperations));
        let data = of(Quantity::StackData).map(Self::MemoryStall);
        fp.into_iter().chain(data).chain(stack(events)).collect()
    }

    pub(super) fn signal(&self) -> Signal {
        match self {
            Self::FpuNotEmpty(_) | Self::FpOperations(_) => Signal::FpUsage,
            Self::MemoryStall(_) => Signal::MemoryStall,
            Self::Stack { .. } => Signal::CycleStack,
        }
    }

    pub(super) fn events(&self) -> Vec<usize> {
        match self {
            Self::FpuNotEmpty(e) | Self::FpOperations(e) | Self::MemoryStall(e) => vec![*e],
            Self::Stack { parts, .. } => parts.clone(),
        }
    }

    /// The event and value of a ratio; none for a stack, or before its event was counted.
    pub(super) fn ratio(&self, memory: &Memory) -> Option<(usize, f64)> {
        let (event, value) = match *self {
            Self::FpuNotEmpty(event) => (event, 1.0 - memory.per_cycle(event)?),
            Self::FpOperations(event) | Self::MemoryStall(event) => {
                (event, memory.per_cycle(event)?)
            }
            Self::Stack { .. } => return None,
        };
        Some((event, value.clamp(0.0, 1.0)))
    }

    /// The stack; none for a ratio, or before all its events were counted.
    pub(super) fn stack(&self, memory: &Memory, events: &[EventSpec]) -> Option<CycleStack> {
        let Self::Stack { parts, whole } = self else {
            return None;
        };
        let part = |&event: &usize| Some((name(&events[event].name), memory.per_cycle(event)?));
        let mut amounts: Vec<_> = parts.iter().map(part).collect::<Option<_>>()?;
        if !whole {
            let told: f64 = amounts.iter().map(|(_, share)| share).sum();
            amounts.push((Cow::Borrowed(OTHER), 1.0 - told));
        }
        Some(CycleStack::from_amounts(amounts))
    }
}

fn name(event: &str) -> Cow<'static, str> {
    Cow::Owned(event.to_owned())
}

fn stack(events: &[EventSpec]) -> Option<Formula> {
    let of = |quantity: &Quantity| events.iter().position(|event| event.counts == *quantity);
    let found: Vec<Option<usize>> = STACK.iter().map(of).collect();
    let whole = found.iter().all(Option::is_some);
    let parts: Vec<usize> = found.into_iter().flatten().collect();
    (!parts.is_empty()).then_some(Formula::Stack { parts, whole })
}
