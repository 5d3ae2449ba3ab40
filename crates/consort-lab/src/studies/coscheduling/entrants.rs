//! The schedulers that are compared.

use consort_core::coscheduling::{Chooser, Fair, Gang, Greedy, Objective, Pdpa, Secondary, Use};

/// How near to linear scaling a program runs alone under the fair schedulers, and the α of their
/// secondary condition: the source's 10 percent.
pub(in crate::studies) const ALPHA: f64 = 0.1;
/// Efficiencies between which `pdpa` is content; the policy's own.
const PDPA: (f64, f64) = (0.5, 0.9);

/// A scheduler.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::studies) struct Entrant {
    /// Key of its rows; the policy with its options.
    pub name: &'static str,
    pub how: How,
}

/// How it finds its round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::studies) enum How {
    Gang,
    Fair(Use, Secondary),
    Greedy,
    Pdpa,
    /// By trying all.
    Exhaustive(Objective),
}

/// All, the gang first; those after [`MAIN`] differ from the fair ones in the secondary condition.
pub(in crate::studies) const ENTRANTS: [Entrant; 11] = [
    of("gang", How::Gang),
    of("fair-mis", How::Fair(Use::Misses, Secondary::Printed)),
    of("fair-com", How::Fair(Use::Bus, Secondary::Printed)),
    of("greedy", How::Greedy),
    of("pdpa", How::Pdpa),
    of("oracle-coschedule", How::Exhaustive(Objective::EnergyDelay)),
    of(
        "oracle-coschedule:objective=throughput",
        How::Exhaustive(Objective::Throughput),
    ),
    of(
        "fair-mis:secondary=reversed",
        How::Fair(Use::Misses, Secondary::Reversed),
    ),
    of(
        "fair-mis:secondary=off",
        How::Fair(Use::Misses, Secondary::Off),
    ),
    of(
        "fair-com:secondary=reversed",
        How::Fair(Use::Bus, Secondary::Reversed),
    ),
    of(
        "fair-com:secondary=off",
        How::Fair(Use::Bus, Secondary::Off),
    ),
];

/// The baseline.
pub(in crate::studies) const GANG: usize = 0;
/// Those that figures show.
pub(in crate::studies) const MAIN: std::ops::Range<usize> = 1..7;
/// The fair schedulers as the condition is printed.
pub(in crate::studies) const FAIR: [usize; 2] = [1, 2];
/// Every reading of the secondary condition: printed, reversed, off.
pub(in crate::studies) const READINGS: [usize; 6] = [1, 7, 8, 2, 9, 10];

const fn of(name: &'static str, how: How) -> Entrant {
    Entrant { name, how }
}

impl Entrant {
    /// Name in a legend.
    pub fn short(&self) -> &'static str {
        match self.how {
            How::Exhaustive(Objective::EnergyDelay) => "oracle, energy-delay",
            How::Exhaustive(Objective::Throughput) => "oracle, throughput",
            _ => self.name,
        }
    }

    /// Its chooser; none where all are tried.
    pub fn chooser(&self) -> Option<Box<dyn Chooser>> {
        Some(match self.how {
            How::Gang => Box::new(Gang::default()),
            How::Fair(order, secondary) => Box::new(Fair::new(order, secondary, ALPHA)),
            How::Greedy => Box::new(Greedy::default()),
            How::Pdpa => Box::new(Pdpa::new(PDPA.0, PDPA.1)),
            How::Exhaustive(_) => return None,
        })
    }

    /// Whether programs that scale nearly linearly are left alone, and rounds that prove worse
    /// than the gang are given up.
    pub fn is_fair(&self) -> bool {
        matches!(self.how, How::Fair(..))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_the_names() {
        assert_eq!(ENTRANTS[GANG].how, How::Gang);
        assert_eq!(FAIR.map(|i| ENTRANTS[i].name), ["fair-mis", "fair-com"]);
        assert!(READINGS.iter().all(|&i| ENTRANTS[i].is_fair()));
        assert!(
            READINGS[..3]
                .iter()
                .all(|&i| ENTRANTS[i].name.starts_with("fair-mis"))
        );
        assert!(MAIN.into_iter().all(|i| i < 3 || !ENTRANTS[i].is_fair()));
    }
}
