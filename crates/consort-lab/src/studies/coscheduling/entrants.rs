//! The schedulers that are compared.

use consort_core::coscheduling::{
    Chooser, ContendedResource, EnergyDelayBaseline, FairChooser, GangChooser, GreedyChooser,
    PdpaChooser, RoundObjective, SecondaryCondition,
};
use consort_experiment::slots::{NEAR_LINEAR, SearchGoal, SlotMembers};

/// Distance from linear scaling within which a program runs alone under the fair schedulers and
/// `pdpa`, and the α of the secondary condition: the source's 10 percent.
pub(in crate::studies) const ALPHA: f64 = NEAR_LINEAR;
/// Efficiencies between which `pdpa` is content; the policy's own.
const PDPA: (f64, f64) = (0.5, 0.9);

/// A scheduler.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::studies) struct RoundScheduler {
    /// Key of its rows; the policy with its options.
    pub name: &'static str,
    pub how: RoundMethod,
}

/// Way in which a scheduler finds its round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::studies) enum RoundMethod {
    Gang,
    Fair(ContendedResource, EnergyDelayBaseline, SecondaryCondition),
    Greedy,
    Pdpa,
    /// Search of all rounds.
    Exhaustive(SearchGoal),
}

/// All schedulers, the gang first; those after [`MAIN`] are other readings of the fair ones.
pub(in crate::studies) const ENTRANTS: [RoundScheduler; 14] = [
    round_scheduler("gang", RoundMethod::Gang),
    round_scheduler(
        "fair-mis",
        fair(ContendedResource::Misses, SecondaryCondition::Printed),
    ),
    round_scheduler(
        "fair-com",
        fair(ContendedResource::Bus, SecondaryCondition::Printed),
    ),
    round_scheduler("greedy", RoundMethod::Greedy),
    round_scheduler("pdpa", RoundMethod::Pdpa),
    round_scheduler(
        "oracle-coschedule",
        search(RoundObjective::EnergyDelay, SlotMembers::Gaining),
    ),
    round_scheduler(
        "oracle-coschedule:members=all",
        search(RoundObjective::EnergyDelay, SlotMembers::All),
    ),
    round_scheduler(
        "oracle-coschedule:members=all,objective=throughput",
        search(RoundObjective::Throughput, SlotMembers::All),
    ),
    round_scheduler(
        "fair-mis:secondary=reversed",
        fair(ContendedResource::Misses, SecondaryCondition::Reversed),
    ),
    round_scheduler(
        "fair-mis:secondary=off",
        fair(ContendedResource::Misses, SecondaryCondition::Off),
    ),
    round_scheduler(
        "fair-mis:better-than=slot",
        RoundMethod::Fair(
            ContendedResource::Misses,
            EnergyDelayBaseline::Slot,
            SecondaryCondition::Printed,
        ),
    ),
    round_scheduler(
        "fair-com:secondary=reversed",
        fair(ContendedResource::Bus, SecondaryCondition::Reversed),
    ),
    round_scheduler(
        "fair-com:secondary=off",
        fair(ContendedResource::Bus, SecondaryCondition::Off),
    ),
    round_scheduler(
        "fair-com:better-than=slot",
        RoundMethod::Fair(
            ContendedResource::Bus,
            EnergyDelayBaseline::Slot,
            SecondaryCondition::Printed,
        ),
    ),
];

/// The baseline.
pub(in crate::studies) const GANG: usize = 0;
/// Schedulers that figures show.
pub(in crate::studies) const MAIN: std::ops::Range<usize> = 1..8;
/// Schedulers that the source compares.
pub(in crate::studies) const SOURCES: std::ops::Range<usize> = 1..6;
/// The fair schedulers as the source has them.
pub(in crate::studies) const FAIR: [usize; 2] = [1, 2];
/// The source's oracle.
pub(in crate::studies) const ORACLE: usize = 5;
/// The best round by energy-delay of all rounds.
pub(in crate::studies) const BOUND: usize = 6;
/// Every reading of the fair schedulers, in the order of [`READING_NAMES`].
pub(in crate::studies) const READINGS: [[usize; 4]; 2] = [[1, 8, 9, 10], [2, 11, 12, 13]];
/// Names of the readings: of the secondary condition, and of the standard that a newcomer's slot
/// must beat.
pub(in crate::studies) const READING_NAMES: [&str; 4] = ["printed", "reversed", "off", "slot"];

const fn fair(order: ContendedResource, secondary: SecondaryCondition) -> RoundMethod {
    RoundMethod::Fair(order, EnergyDelayBaseline::Gang, secondary)
}

const fn search(objective: RoundObjective, members: SlotMembers) -> RoundMethod {
    RoundMethod::Exhaustive(SearchGoal { objective, members })
}

const fn round_scheduler(name: &'static str, how: RoundMethod) -> RoundScheduler {
    RoundScheduler { name, how }
}

impl RoundScheduler {
    /// Name in a legend.
    pub fn short(&self) -> &'static str {
        match self.how {
            RoundMethod::Exhaustive(quest) => match (quest.members, quest.objective) {
                (SlotMembers::Gaining, _) => "oracle",
                (SlotMembers::All, RoundObjective::EnergyDelay) => "bound, energy-delay",
                (SlotMembers::All, RoundObjective::Throughput) => "bound, throughput",
            },
            _ => self.name,
        }
    }

    /// Its chooser; none where all rounds are tried.
    pub fn chooser(&self) -> Option<Box<dyn Chooser>> {
        Some(match self.how {
            RoundMethod::Gang => Box::new(GangChooser::default()),
            RoundMethod::Fair(order, standard, secondary) => {
                Box::new(FairChooser::new(order, standard, secondary, ALPHA))
            }
            RoundMethod::Greedy => Box::new(GreedyChooser::default()),
            RoundMethod::Pdpa => Box::new(PdpaChooser::new(PDPA.0, PDPA.1)),
            RoundMethod::Exhaustive(_) => return None,
        })
    }

    /// Returns true where rounds that prove worse than the gang are given up.
    pub fn is_fair(&self) -> bool {
        matches!(self.how, RoundMethod::Fair(..))
    }

    /// Returns true where programs that scale nearly linearly are sampled on one core, and left
    /// alone.
    pub fn leaves_linear(&self) -> bool {
        self.is_fair() || self.how == RoundMethod::Pdpa
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_the_names() {
        assert_eq!(ENTRANTS[GANG].how, RoundMethod::Gang);
        assert_eq!(FAIR.map(|i| ENTRANTS[i].name), ["fair-mis", "fair-com"]);
        for (readings, first) in READINGS.iter().zip(FAIR) {
            assert_eq!(readings[0], first);
            let name = ENTRANTS[first].name;
            let of_it = |&i: &usize| ENTRANTS[i].name.starts_with(name) && ENTRANTS[i].is_fair();
            assert!(readings.iter().all(of_it));
        }
        assert!(MAIN.into_iter().all(|i| i < 3 || !ENTRANTS[i].is_fair()));
        let quest = |i: usize| match ENTRANTS[i].how {
            RoundMethod::Exhaustive(quest) => quest.members,
            _ => unreachable!("{i} searches"),
        };
        assert_eq!(
            (quest(ORACLE), quest(BOUND)),
            (SlotMembers::Gaining, SlotMembers::All)
        );
    }
}
