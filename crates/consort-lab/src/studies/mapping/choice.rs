//! Choice of a mapping by different predictions, and its gain over `os`: M14 and M15.
//!
//! A pair's gain is the geometric mean over its programs of their speeds over `os`. A mapping is
//! chosen on the other seeds than the one that it is judged on, where there are others, so that
//! nothing is gained by choosing what was lucky.

use super::plan::{MAPPINGS, ProgramNamePair};
use super::sweep::PairRuns;
use consort_core::mapping::analysis::Usage;
use consort_experiment::RepeatedProgram;
use consort_experiment::mapping::OS;
use libm::{exp, log};

/// Predicted cost of a program under a mapping, in any unit, by which mappings are chosen.
type PredictedCost = fn(&Usage) -> Option<f64>;

/// Chooser of mappings by a cost.
#[derive(Clone, Copy)]
pub(in crate::studies) struct MappingChooser {
    /// Title for people.
    pub title: &'static str,
    cost: PredictedCost,
}

/// Chooser by the lowest time: the best static mapping.
pub(in crate::studies) const BEST: MappingChooser = MappingChooser {
    title: "Best static mapping",
    cost: |usage| Some(usage.time_s),
};

/// Chooser by the lowest L2MP: the L2, its prefetchers and the memory path, and nothing else.
pub(in crate::studies) const MEMORY: MappingChooser = MappingChooser {
    title: "Memory resources alone (lowest L2MP)",
    cost: |usage| usage.memory?.l2mp_cycles(),
};

/// Chooser by the lowest executed cycles: every resource inside the cores and beyond, but not their
/// utilisation.
pub(in crate::studies) const CYCLES: MappingChooser = MappingChooser {
    title: "All resources but utilisation (fewest cycles)",
    cost: |usage| usage.cycles,
};

/// Chooser by the lowest cycles by utilisation: every resource.
pub(in crate::studies) const ALL: MappingChooser = MappingChooser {
    title: "All resources (cycles by utilisation)",
    cost: |usage| Some(usage.cycles? / usage.utilisation.filter(|u| *u > 0.0)?),
};

/// Logarithm of the speed of a pair in one run over that in another, geometric mean of its
/// programs.
pub(in crate::studies) fn log_speed(run: &[RepeatedProgram], over: &[RepeatedProgram]) -> f64 {
    let both = run.iter().zip(over);
    let logs = both.map(|(run, over)| log(over.time_s / run.time_s));
    logs.sum::<f64>() / run.len() as f64
}

impl PairRuns {
    /// Gains of a pair under a mapping, seed by seed, as factors.
    pub fn gains(&self, pair: ProgramNamePair, mapping: &str) -> Vec<f64> {
        let runs = self.both(pair, mapping).iter().zip(self.both(pair, OS));
        runs.map(|(run, over)| exp(log_speed(run, over))).collect()
    }

    /// Mapping that a chooser takes for each seed.
    pub fn chosen(&self, pair: ProgramNamePair, by: MappingChooser) -> Vec<&'static str> {
        let costs = self.costs(pair, by.cost);
        let of = |seed: usize| {
            let counts = |other: usize| self.seeds == 1 || other != seed;
            let cost = |mapping: usize| -> f64 {
                let by_seed = costs[mapping].iter().enumerate();
                by_seed
                    .filter(|(n, _)| counts(*n))
                    .map(|(_, cost)| cost)
                    .sum()
            };
            let lowest = (0..MAPPINGS.len()).min_by(|a, b| cost(*a).total_cmp(&cost(*b)));
            lowest.map_or(OS, |mapping| MAPPINGS[mapping])
        };
        (0..self.seeds).map(of).collect()
    }

    /// Gains of the mappings that a chooser takes, seed by seed.
    pub fn chosen_gains(&self, pair: ProgramNamePair, by: MappingChooser) -> Vec<f64> {
        let chosen = self.chosen(pair, by).into_iter().enumerate();
        chosen
            .map(|(seed, mapping)| self.gains(pair, mapping)[seed])
            .collect()
    }

    /// The mapping that a chooser takes on most seeds, and their number.
    pub fn mostly(&self, pair: ProgramNamePair, by: MappingChooser) -> (&'static str, usize) {
        let chosen = self.chosen(pair, by);
        let count = |m: &str| chosen.iter().filter(|c| **c == m).count();
        let most = MAPPINGS.iter().rev().max_by_key(|m| count(m));
        most.map_or((OS, 0), |m| (*m, count(m)))
    }

    /// Sum over programs of the logarithms of the costs, by mapping and seed. A program without a
    /// cost under a mapping has none under any: one without misses has no L2MP.
    fn costs(&self, pair: ProgramNamePair, cost: PredictedCost) -> [Vec<f64>; MAPPINGS.len()] {
        let of = |mapping: &str, seed: usize, place: usize| {
            cost(&self.usage(&self.both(pair, mapping)[seed][place])).filter(|c| *c > 0.0)
        };
        let mut sums = MAPPINGS.map(|_| vec![0.0; self.seeds]);
        for seed in 0..self.seeds {
            for place in 0..pair.len() {
                let known: Option<Vec<f64>> = MAPPINGS
                    .iter()
                    .map(|mapping| of(mapping, seed, place))
                    .collect();
                for (sum, cost) in sums.iter_mut().zip(known.unwrap_or_default()) {
                    sum[seed] += log(cost);
                }
            }
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// iso is best on the first seed, int on the others.
    fn runs() -> PairRuns {
        let os = [[2.0, 2.0]; 3];
        let iso = [[1.0, 1.0], [2.0, 1.9], [2.0, 1.9]];
        let int = [[2.0, 2.0], [1.0, 1.0], [1.0, 1.0]];
        PairRuns::of_times(&[os, iso, int, [[4.0, 4.0]; 3]].concat())
    }

    #[test]
    fn a_mapping_is_judged_on_another_seed_than_it_is_chosen_on() {
        let (runs, pair) = (runs(), ["canneal", "vips"]);
        assert_eq!(runs.chosen(pair, BEST), ["int", "iso", "iso"]);
        let gains = runs.chosen_gains(pair, BEST);
        assert_eq!(gains[0], 1.0);
        assert!(
            (gains[1] - exp(log(2.0 / 1.9) / 2.0)).abs() < 1e-12,
            "{gains:?}"
        );
        assert_eq!(runs.mostly(pair, BEST), ("iso", 2));
    }

    #[test]
    fn with_one_seed_the_choice_is_that_of_the_seed() {
        let runs = PairRuns::of_times(&[[2.0, 2.0], [1.0, 3.0], [3.0, 1.2], [1.5, 1.5]]);
        let pair = ["canneal", "vips"];
        assert_eq!(runs.chosen(pair, BEST), ["spr"]);
        for by in [MEMORY, CYCLES] {
            assert_eq!(runs.chosen(pair, by), ["spr"], "{}", by.title);
        }
        assert!((runs.gains(pair, "iso")[0] - exp(log(4.0 / 3.0) / 2.0)).abs() < 1e-12);
        assert_eq!(runs.gains(pair, "os"), [1.0]);
    }
}
