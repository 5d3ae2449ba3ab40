//! A sample's readings by signal.

use super::Reading;
use crate::signal::Signal;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Readings in the order of their signals. A sample is made for every thread in every quantum,
/// and has a dozen readings: in one piece of memory they are found, copied and dropped sooner than
/// in a tree. Written and read as a map.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "BTreeMap<Signal, Reading>", into = "BTreeMap<Signal, Reading>")]
pub(super) struct Readings(Vec<(Signal, Reading)>);

/// Readings that a sample usually has at most, so that memory is asked for once.
const USUAL: usize = 16;

impl Readings {
    fn find(&self, signal: Signal) -> Result<usize, usize> {
        self.0.binary_search_by_key(&signal, |(known, _)| *known)
    }

    /// The reading of a signal.
    pub(super) fn get(&self, signal: Signal) -> Option<Reading> {
        let at = self.find(signal).ok()?;
        self.0.get(at).map(|(_, reading)| *reading)
    }

    /// Puts a reading in; one of a richer tier is not replaced by a poorer one.
    pub(super) fn set(&mut self, signal: Signal, reading: Reading) {
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
