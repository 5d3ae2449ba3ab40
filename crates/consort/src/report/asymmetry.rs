//! Large and small cores, as a report tells them.

use consort_core::{PuSet, Signal, SignalOffers, Topology};
use serde::Serialize;
use std::fmt::Write;

/// Large and small cores, and what the policies for them had to go by.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct AsymmetryReport {
    /// PUs of the cores with the highest capacity.
    pub(crate) large: PuSet,
    /// All others.
    pub(crate) small: PuSet,
    /// True where the user has named the large ones, so that they need not be any faster.
    pub(crate) emulated: bool,
    /// Measure of threads' progress: `instructions`, or `cpu-time` where none are counted.
    pub(crate) progress: &'static str,
}

impl AsymmetryReport {
    /// Returns the asymmetry of a machine; none where all cores have the same capacity.
    pub(crate) fn from_topology(
        topology: &Topology,
        offers: &SignalOffers,
        emulated: bool,
    ) -> Option<Self> {
        let capacity = |i: usize| topology.core_types().get(i).map_or(0, |t| t.capacity);
        let cores = topology.cores().iter();
        let most = cores.map(|c| capacity(c.core_type)).max()?;
        let of = |is_large: bool| -> PuSet {
            let cores = topology.cores().iter();
            let kind = cores.filter(|c| (capacity(c.core_type) == most) == is_large);
            kind.flat_map(|c| c.pus.iter().copied()).collect()
        };
        let counted = offers.tier_of(Signal::Instructions).is_some();
        let (large, small) = (of(true), of(false));
        (!small.is_empty()).then_some(Self {
            large,
            small,
            emulated,
            progress: if counted { "instructions" } else { "cpu-time" },
        })
    }

    /// One sentence for people.
    pub(super) fn sentence(&self) -> String {
        let (large, small) = (&self.large, &self.small);
        let mut text = format!("large cores: PUs {large}, small ones: {small}");
        if self.emulated {
            text.push_str(" (emulated: they need not differ in speed)");
        }
        let _ = match self.progress {
            "instructions" => write!(text, "; progress is counted in instructions"),
            _ => write!(
                text,
                "; no instructions are counted here, so progress is CPU time"
            ),
        };
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_core::Tier;

    #[test]
    fn symmetric_machines_have_none() {
        let topology = Topology::uniform(2, 1).unwrap();
        assert_eq!(
            AsymmetryReport::from_topology(&topology, &SignalOffers::default(), false),
            None
        );
    }

    #[test]
    fn the_report_says_emulated_and_what_progress_is() {
        let topology = Topology::uniform(4, 1).unwrap();
        let topology = topology.with_large_cores(&"1".parse().unwrap()).unwrap();
        let reported = |offers: &SignalOffers, emulated| {
            AsymmetryReport::from_topology(&topology, offers, emulated)
                .unwrap()
                .sentence()
        };
        assert_eq!(
            reported(&SignalOffers::default(), true),
            "large cores: PUs 1, small ones: 0,2-3 (emulated: they need not differ in speed); \
             no instructions are counted here, so progress is CPU time"
        );
        let counted = [(Signal::Instructions, Tier::Counters)]
            .into_iter()
            .collect();
        assert_eq!(
            reported(&counted, false),
            "large cores: PUs 1, small ones: 0,2-3; progress is counted in instructions"
        );
    }
}
