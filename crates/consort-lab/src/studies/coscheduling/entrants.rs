//! The schedulers that are compared.

use consort_core::coscheduling::{
    Chooser, Fair, Gang, Greedy, Objective, Pdpa, Secondary, Standard, Use,
};
use consort_experiment::slots::{Members, NEAR_LINEAR, Quest};

/// Distance from linear scaling within which a program runs alone under the fair schedulers and
/// `pdpa`, and the α of the secondary condition: the source's 10 percent.
pub(in crate::studies) const ALPHA: f64 = NEAR_LINEAR;
/// Efficiencies between which `pdpa` is content; the policy's own.
const PDPA: (f64, f64) = (0.5, 0.9);

/// A scheduler.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::studies) struct Entrant {
    /// Key of its rows; the policy with its options.
    pub name: &'static str,
    pub how: How,
}

/// Way in which a scheduler finds its round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::studies) enum How {
    Gang,
    Fair(Use, Standard, Secondary),
    Greedy,
    Pdpa,
    /// Search of all rounds.
    Exhaustive(Quest),
}

/// All schedulers, the gang first; those after [`MAIN`] are other readings of the fair ones.
pub(in crate::studies) const ENTRANTS: [Entrant; 14] = [
    of("gang", How::Gang),
    of("fair-mis", fair(Use::Misses, Secondary::Printed)),
    of("fair-com", fair(Use::Bus, Secondary::Printed)),
    of("greedy", How::Greedy),
    of("pdpa", How::Pdpa),
    of(
        "oracle-coschedule",
        search(Objective::EnergyDelay, Members::Gaining),
    ),
    of(
        "oracle-coschedule:members=all",
        search(Objective::EnergyDelay, Members::All),
    ),
    of(
        "oracle-coschedule:members=all,objective=throughput",
        search(Objective::Throughput, Members::All),
    ),
    of(
        "fair-mis:secondary=reversed",
        fair(Use::Misses, Secondary::Reversed),
    ),
    of("fair-mis:secondary=off", fair(Use::Misses, Secondary::Off)),
    of(
        "fair-mis:better-than=slot",
        How::Fair(Use::Misses, Standard::Slot, Secondary::Printed),
    ),
    of(
        "fair-com:secondary=reversed",
        fair(Use::Bus, Secondary::Reversed),
    ),
    of("fair-com:secondary=off", fair(Use::Bus, Secondary::Off)),
    of(
        "fair-com:better-than=slot",
        How::Fair(Use::Bus, Standard::Slot, Secondary::Printed),
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

const fn fair(order: Use, secondary: Secondary) -> How {
    How::Fair(order, Standard::Gang, secondary)
}

const fn search(objective: Objective, members: Members) -> How {
    How::Exhaustive(Quest { objective, members })
}

const fn of(name: &'static str, how: How) -> Entrant {
    Entrant { name, how }
}

impl Entrant {
    /// Name in a legend.
    pub fn short(&self) -> &'static str {
        match self.how {
            How::Exhaustive(quest) => match (quest.members, quest.objective) {
                (Members::Gaining, _) => "oracle",
                (Members::All, Objective::EnergyDelay) => "bound, energy-delay",
                (Members::All, Objective::Throughput) => "bound, throughput",
            },
            _ => self.name,
        }
    }

    /// Its chooser; none where all rounds are tried.
    pub fn chooser(&self) -> Option<Box<dyn Chooser>> {
        Some(match self.how {
            How::Gang => Box::new(Gang::default()),
            How::Fair(order, standard, secondary) => {
                Box::new(Fair::new(order, standard, secondary, ALPHA))
            }
            How::Greedy => Box::new(Greedy::default()),
            How::Pdpa => Box::new(Pdpa::new(PDPA.0, PDPA.1)),
            How::Exhaustive(_) => return None,
        })
    }

    /// Returns true where rounds that prove worse than the gang are given up.
    pub fn is_fair(&self) -> bool {
        matches!(self.how, How::Fair(..))
    }

    /// Returns true where programs that scale nearly linearly are sampled on one core, and left
    /// alone.
    pub fn leaves_linear(&self) -> bool {
        self.is_fair() || self.how == How::Pdpa
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_the_names() {
        assert_eq!(ENTRANTS[GANG].how, How::Gang);
        assert_eq!(FAIR.map(|i| ENTRANTS[i].name), ["fair-mis", "fair-com"]);
        for (readings, first) in READINGS.iter().zip(FAIR) {
            assert_eq!(readings[0], first);
            let name = ENTRANTS[first].name;
            let of_it = |&i: &usize| ENTRANTS[i].name.starts_with(name) && ENTRANTS[i].is_fair();
            assert!(readings.iter().all(of_it));
        }
        assert!(MAIN.into_iter().all(|i| i < 3 || !ENTRANTS[i].is_fair()));
        let quest = |i: usize| match ENTRANTS[i].how {
            How::Exhaustive(quest) => quest.members,
            _ => unreachable!("{i} searches"),
        };
        assert_eq!(
            (quest(ORACLE), quest(BOUND)),
            (Members::Gaining, Members::All)
        );
    }
}
