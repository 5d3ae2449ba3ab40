//! Share of each thread's cycles alone that waits for memory.
//!
//! It is the signal `memory-stall` if that is offered, else the component of the cycle stack that
//! carries data stalls: the first of [`COMPONENTS`] that the machine's stack has. Later ones
//! contain other stalls as well, so they distinguish threads less well.

use crate::ids::ThreadId;
use crate::sample::ThreadObservation;
use crate::signal::{Signal, SignalOffers};
use std::collections::BTreeMap;

/// Names of components that carry data stalls, the purest first: of stacks estimated from samples,
/// of the paper, of simulated POWER8 counters, of top-down counters, of POWER counters.
const COMPONENTS: [&str; 6] = [
    "memory",
    "data cache miss",
    "PM_CMPLU_STALL_DCACHE_MISS",
    "back-end",
    "stall",
    "PM_CMPLU_STALL",
];

/// Weight of the newest measurement in a thread's share; an estimate.
const NEWEST: f64 = 0.5;

/// The shares, and their source.
#[derive(Debug, Default)]
pub(super) struct MemoryShares {
    /// The component of the stack; `None` if the signal is offered.
    component: Option<&'static str>,
    of: BTreeMap<ThreadId, MemoryShare>,
}

#[derive(Clone, Copy, Debug)]
struct MemoryShare {
    value: f64,
    /// True if it was counted in all of a quantum in which the thread was alone.
    is_whole: bool,
}

impl MemoryShares {
    /// Finds the source of shares on a machine.
    ///
    /// # Errors
    /// The machine has none; the text says which ones would do.
    pub(super) fn from_offers(offers: &SignalOffers) -> Result<Self, String> {
        if offers.tier_of(Signal::MemoryStall).is_some() {
            return Ok(Self::default());
        }
        let has = |name: &&&str| offers.stack().iter().any(|known| known == **name);
        let Some(component) = COMPONENTS.iter().find(has) else {
            return Err(format!(
                "cannot identify memory-bound threads for core-asymmetry: this machine offers no \
                 memory-stall, and its cycle stack [{}] has no component of data stalls (one of \
                 {})",
                offers.stack().join(", "),
                COMPONENTS.join(", "),
            ));
        };
        Ok(Self {
            component: Some(component),
            of: BTreeMap::new(),
        })
    }

    /// Records the share of a thread alone. A value that was counted also in another quantum, in
    /// which the thread had co-runners, is used only if there is no better one.
    pub(super) fn update(&mut self, thread: &ThreadObservation) {
        let Some(new) = self.measured_share(thread) else {
            return;
        };
        let old = self.of.get(&thread.id).copied();
        let share = match old {
            Some(old) if old.is_whole && new.is_whole => MemoryShare {
                value: old.value + NEWEST * (new.value - old.value),
                is_whole: true,
            },
            Some(old) if old.is_whole => old,
            _ => new,
        };
        self.of.insert(thread.id, share);
    }

    fn measured_share(&self, thread: &ThreadObservation) -> Option<MemoryShare> {
        let share = match self.component {
            Some(component) => MemoryShare {
                value: thread.sample.stack.as_ref()?.0.share(component)?,
                is_whole: true,
            },
            None => {
                let reading = thread.sample.reading(Signal::MemoryStall)?;
                MemoryShare {
                    value: reading.scaled_value()?,
                    is_whole: !reading.is_multiplexed(),
                }
            }
        };
        share.value.is_finite().then_some(share)
    }

    /// The share of a thread, 0 to 1; 0 if nothing is known.
    pub(super) fn share(&self, thread: ThreadId) -> f64 {
        let share = self.of.get(&thread);
        share.map_or(0.0, |share| share.value.clamp(0.0, 1.0))
    }

    pub(super) fn retain(&mut self, is_known: impl Fn(ThreadId) -> bool) {
        self.of.retain(|&id, _| is_known(id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Reading, Sample};
    use crate::signal::Tier;
    use crate::stack::CycleStack;
    use crate::testing::{INTERVAL_NS, observation, thread_id};
    use crate::topology::Topology;

    fn thread(change: impl Fn(&mut Sample)) -> ThreadObservation {
        let topology = Topology::uniform(1, 2).unwrap();
        let mut thread = observation(&topology, &[(1, 0.0)]).threads.remove(0);
        change(&mut thread.sample);
        thread
    }

    fn stalled(share: f64, running_ns: u64) -> ThreadObservation {
        thread(|sample| {
            let reading = Reading {
                raw: share * running_ns as f64 / INTERVAL_NS as f64,
                tier: Tier::Counters,
                enabled_ns: INTERVAL_NS,
                running_ns,
            };
            sample.set(Signal::MemoryStall, reading);
        })
    }

    #[test]
    fn full_count_of_the_signal_comes_first() {
        let offers: SignalOffers = [(Signal::MemoryStall, Tier::Counters)]
            .into_iter()
            .collect();
        let mut shares = MemoryShares::from_offers(&offers).unwrap();
        let mut after = |thread: &ThreadObservation| {
            shares.update(thread);
            shares.share(thread_id(1))
        };
        assert_eq!(after(&thread(|_| ())), 0.0);
        assert_eq!(after(&stalled(0.25, INTERVAL_NS / 2)), 0.25);
        assert_eq!(after(&stalled(0.5, INTERVAL_NS)), 0.5);
        assert_eq!(after(&stalled(0.25, INTERVAL_NS / 2)), 0.5);
        assert_eq!(after(&stalled(0.75, INTERVAL_NS)), 0.625);
    }

    #[test]
    fn stack_component_replaces_the_signal() {
        let mut offers = SignalOffers::default();
        offers.set_stack(vec!["base".into(), "back-end".into(), "memory".into()]);
        let mut shares = MemoryShares::from_offers(&offers).unwrap();
        let amounts = [("base", 0.5), ("back-end", 0.2), ("memory", 0.3)];
        let stack = CycleStack::from_amounts(amounts);
        shares.update(&thread(|sample| {
            sample.stack = Some((stack.clone(), Tier::Counters));
        }));
        assert_eq!(shares.share(thread_id(1)), 0.3);
        offers.set_stack(vec!["base".into(), "empty".into()]);
        let why = MemoryShares::from_offers(&offers).unwrap_err();
        assert!(why.contains("[base, empty]"), "{why}");
    }
}
