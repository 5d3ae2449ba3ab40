//! Mispredictions of model predictors of several schemes and sizes.
//!
//! The predictors are those of the reference engine ([`consort_ops::predictor`]), each with a
//! table of 4096 targets and a stack of 16 return addresses.

use consort_ops::Branch;
use consort_ops::predictor::{Predictor, PredictorBank, PredictorScheme};

/// Sizes of predictors, KiB.
pub const PREDICTOR_KIB: [u64; 5] = [4, 8, 16, 32, 64];
/// Schemes of predictors.
pub const SCHEMES: [PredictorScheme; 2] = [PredictorScheme::Tagged, PredictorScheme::Gshare];

/// Index of the predictors of 32 KiB, whose mispredictions interrupt the model pipelines.
const REFERENCE: usize = 3;
const TARGETS: u32 = 4096;
const RETURNS: u32 = 16;

/// Mispredictions with each of [`PREDICTOR_KIB`], by [`SCHEMES`].
pub type Mispredictions = [[u64; PREDICTOR_KIB.len()]; SCHEMES.len()];

/// Predictors of one scheme and every size, and what they missed.
#[derive(Debug, Clone)]
pub struct SchemePredictors {
    /// By size.
    predictors: PredictorBank,
    counts: bool,
    missed: [u64; PREDICTOR_KIB.len()],
}

fn model_predictor(scheme: PredictorScheme, kib: u64) -> Predictor {
    Predictor::new(scheme, kib as f64, TARGETS, RETURNS)
}

impl SchemePredictors {
    /// Predictors of a scheme that have learnt nothing.
    #[must_use]
    pub fn new(scheme: PredictorScheme) -> Self {
        let predictors = PREDICTOR_KIB.map(|kib| model_predictor(scheme, kib));
        Self {
            predictors: PredictorBank::new(predictors.into()),
            counts: true,
            missed: [0; PREDICTOR_KIB.len()],
        }
    }

    /// Has what follows count, or only train.
    pub const fn set_counting(&mut self, counts: bool) {
        self.counts = counts;
    }

    /// Takes a branch of an instruction of `length` bytes at an address. Returns true where the
    /// predictor of 32 KiB mispredicts it.
    pub fn predict_branch(&mut self, at: u64, length: u8, branch: Branch) -> bool {
        let after = at.wrapping_add(u64::from(length));
        let wrong = self.predictors.predict(at, after, branch);
        if wrong != 0 && self.counts {
            let missed = self.missed.iter_mut().enumerate();
            missed.for_each(|(at, missed)| *missed += u64::from(wrong >> at & 1));
        }
        wrong >> REFERENCE & 1 == 1
    }

    /// Counts of mispredictions, by size.
    #[must_use]
    pub const fn mispredictions(&self) -> [u64; PREDICTOR_KIB.len()] {
        self.missed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_ops::BranchKind;

    /// Mispredictions of branches told by address, turn, outcome and target, by scheme.
    fn missed(of: impl Iterator<Item = (u64, BranchKind, bool, u64)>) -> Mispredictions {
        let all: Vec<_> = of.collect();
        SCHEMES.map(|scheme| {
            let mut branches = SchemePredictors::new(scheme);
            for &(at, turn, taken, target) in &all {
                let branch = Branch {
                    turn,
                    taken,
                    target,
                };
                branches.predict_branch(at, 4, branch);
            }
            branches.mispredictions()
        })
    }

    fn missed_of(outcomes: impl Iterator<Item = bool>) -> Mispredictions {
        missed(outcomes.map(|taken| (0x1000, BranchKind::Conditional, taken, 0x2000)))
    }

    #[test]
    fn a_pattern_is_learnt() {
        let missed = missed_of((0..10_000).map(|i| i % 7 < 3));
        let missed = missed.as_flattened();
        assert!(missed.iter().all(|&missed| missed < 200), "{missed:?}");
    }

    #[test]
    fn chance_is_missed_half_the_time() {
        let next = |state: &u64| {
            let state = state.wrapping_mul(6_364_136_223_846_793_005);
            Some(state.wrapping_add(1))
        };
        let random = std::iter::successors(Some(1_u64), next).map(|state| state >> 63 == 1);
        let missed = missed_of(random.take(20_000));
        let missed = missed.as_flattened();
        assert!(
            missed.iter().all(|missed| (9_000..11_000).contains(missed)),
            "{missed:?}"
        );
    }

    #[test]
    fn targets_of_an_interpreter_are_learnt_with_history_only() {
        let jump = |i: u64| {
            (
                0x1000,
                BranchKind::IndirectJump,
                true,
                0x2000 + 0x100 * (i % 3),
            )
        };
        let [tagged, gshare] = missed((0..4_000).map(jump));
        assert!(tagged.iter().all(|&missed| missed < 100), "{tagged:?}");
        assert!(gshare.iter().all(|&missed| missed > 3_900), "{gshare:?}");
    }

    #[test]
    fn returns_go_where_their_call_was() {
        let there_and_back = |site: u64| {
            let there = (site * 16, BranchKind::Call, true, 0x9000);
            [there, (0x9010, BranchKind::Return, true, site * 16 + 4)]
        };
        let missed = missed((0..100).flat_map(there_and_back));
        assert_eq!(missed, Mispredictions::default());
    }
}
