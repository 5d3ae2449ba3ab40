//! Pairs that are memory- or synchronisation-intensive, by measurements of programs alone.

use super::plan::{PROGRAMS, ProgramNamePair};
use super::sweep::PairRuns;

/// Bandwidth alone from which on a program is memory-intensive, MB/s. The nine programs leave a gap
/// between 140 and 1300 in the source's Table III.
pub(in crate::studies) const BANDWIDTH_MB_S: f64 = 500.0;

/// Times per second, over all threads, that a program's threads are switched in alone, from which
/// on it is synchronisation-intensive: once per thread and millisecond.
pub(in crate::studies) const SWITCHES_PER_S: f64 = 4000.0;

/// Reason for which a program is in the subset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::studies) struct IntensityKinds {
    pub memory: bool,
    pub synchronisation: bool,
}

impl IntensityKinds {
    /// Judges by these rates.
    pub fn from_rates(bandwidth_mb_s: f64, switches_per_s: f64) -> Self {
        Self {
            memory: bandwidth_mb_s >= BANDWIDTH_MB_S,
            synchronisation: switches_per_s >= SWITCHES_PER_S,
        }
    }

    /// Returns true where the program is intensive in either.
    pub fn any(self) -> bool {
        self.memory || self.synchronisation
    }

    /// Kinds in words.
    pub fn name(self) -> &'static str {
        match (self.memory, self.synchronisation) {
            (true, true) => "memory and synchronisation",
            (true, false) => "memory",
            (false, true) => "synchronisation",
            (false, false) => "neither",
        }
    }
}

impl PairRuns {
    /// Kinds in which a program is intensive.
    pub fn intensive(&self, program: &str) -> IntensityKinds {
        let alone = self.alone(program).map(|alone| alone.characteristics);
        let rate = |rate: Option<f64>| rate.unwrap_or(0.0);
        IntensityKinds::from_rates(
            rate(alone.and_then(|c| c.bandwidth_mb_s)),
            rate(alone.and_then(|c| c.switches_per_s)),
        )
    }

    /// The pairs of which both programs are intensive.
    pub fn intensive_pairs(&self) -> Vec<ProgramNamePair> {
        let both =
            |pair: &&ProgramNamePair| pair.iter().all(|program| self.intensive(program).any());
        self.pairs.iter().filter(both).copied().collect()
    }

    /// The programs, each with the kinds in which it is intensive.
    pub fn intensities(&self) -> String {
        let of = |program: &&str| format!("{program} {}", self.intensive(program).name());
        PROGRAMS.iter().map(of).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_intensive_from_the_stated_rates_on() {
        assert_eq!(IntensityKinds::from_rates(499.0, 3999.0).name(), "neither");
        assert!(
            IntensityKinds::from_rates(500.0, 0.0).memory
                && !IntensityKinds::from_rates(500.0, 0.0).synchronisation
        );
        assert!(IntensityKinds::from_rates(0.0, 4000.0).any());
    }
}
