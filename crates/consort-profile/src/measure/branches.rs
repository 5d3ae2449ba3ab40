//! Mispredictions of model predictors of several schemes and sizes.
//!
//! The predictors are those of the reference engine ([`consort_ops::predictor`]), each with a
//! table of 4096 targets and a stack of 16 return addresses.

use consort_ops::predictor::{Bank, Predictor, Scheme};
use consort_ops::{Branch, Op};

/// Sizes of predictors, KiB.
pub const PREDICTOR_KIB: [u64; 5] = [4, 8, 16, 32, 64];
/// Schemes of predictors.
pub const SCHEMES: [Scheme; 2] = [Scheme::Tagged, Scheme::Gshare];

/// Index of the predictors of 32 KiB, whose mispredictions interrupt the model pipelines.
const REFERENCE: usize = 3;
const TARGETS: u32 = 4096;
const RETURNS: u32 = 16;

/// Mispredictions with each of [`PREDICTOR_KIB`], by [`SCHEMES`].
pub type Mispredictions = [[u64; PREDICTOR_KIB.len()]; SCHEMES.len()];

/// Predictors of every scheme and size, and what they missed.
#[derive(Debug, Clone)]
pub struct Branches {
    /// By scheme, then by size.
    predictors: Bank,
    counts: bool,
    missed: Mispredictions,
}

impl Default for Branches {
    fn default() -> Self {
        let of = |scheme| PREDICTOR_KIB.map(|kib| model(scheme, kib));
        Self {
            predictors: Bank::new(SCHEMES.into_iter().flat_map(of).collect()),
            counts: true,
            missed: Mispredictions::default(),
        }
    }
}

fn model(scheme: Scheme, kib: u64) -> Predictor {
    Predictor::new(scheme, kib as f64, TARGETS, RETURNS)
}

impl Branches {
    /// Has what follows count, or only train.
    pub const fn count(&mut self, counts: bool) {
        self.counts = counts;
    }

    /// Takes an operation; whether predictors of 32 KiB mispredict it, by scheme.
    #[inline]
    pub fn op(&mut self, op: &Op) -> [bool; SCHEMES.len()] {
        match op.branch {
            Some(branch) => self.branch(op.address, u64::from(op.length), branch),
            None => [false; SCHEMES.len()],
        }
    }

    /// Takes a branch of an instruction of `length` bytes; whether predictors of 32 KiB mispredict
    /// it, by scheme.
    pub fn branch(&mut self, at: u64, length: u64, branch: Branch) -> [bool; SCHEMES.len()] {
        let wrong = self.predictors.predict(at, at.wrapping_add(length), branch);
        if wrong != 0 && self.counts {
            let missed = self.missed.as_flattened_mut().iter_mut();
            missed
                .enumerate()
                .for_each(|(at, missed)| *missed += u64::from(wrong >> at & 1));
        }
        std::array::from_fn(|scheme| wrong >> (scheme * PREDICTOR_KIB.len() + REFERENCE) & 1 == 1)
    }

    /// Counts of mispredictions.
    #[must_use]
    pub const fn missed(&self) -> Mispredictions {
        self.missed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_ops::{Kind, Turn};

    fn branch(address: u64, turn: Turn, taken: bool, target: u64) -> Op {
        let mut op = Op::new(Kind::Branch, address);
        op.branch = Some(Branch {
            turn,
            taken,
            target,
        });
        op
    }

    fn missed_of(outcomes: impl Iterator<Item = bool>) -> Mispredictions {
        let mut branches = Branches::default();
        for taken in outcomes {
            branches.op(&branch(0x1000, Turn::Conditional, taken, 0x2000));
        }
        branches.missed()
    }

    #[test]
    fn a_pattern_is_learnt() {
        let missed = missed_of((0..10_000).map(|i| i % 7 < 3));
        let missed = missed.as_flattened();
        assert!(missed.iter().all(|&missed| missed < 200), "{missed:?}");
    }

    #[test]
    fn chance_is_missed_half_the_time() {
        let mut state = 1_u64;
        let random = std::iter::repeat_with(|| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            state >> 63 == 1
        });
        let missed = missed_of(random.take(20_000));
        let missed = missed.as_flattened();
        assert!(
            missed.iter().all(|missed| (9_000..11_000).contains(missed)),
            "{missed:?}"
        );
    }

    #[test]
    fn targets_of_an_interpreter_are_learnt_with_history_only() {
        let mut branches = Branches::default();
        for i in 0..4_000_u64 {
            let target = 0x2000 + 0x100 * (i % 3);
            branches.op(&branch(0x1000, Turn::IndirectJump, true, target));
        }
        let [tagged, gshare] = branches.missed();
        assert!(tagged.iter().all(|&missed| missed < 100), "{tagged:?}");
        assert!(gshare.iter().all(|&missed| missed > 3_900), "{gshare:?}");
    }

    #[test]
    fn returns_go_where_their_call_was() {
        let mut branches = Branches::default();
        for site in 0..100 {
            branches.op(&branch(site * 16, Turn::Call, true, 0x9000));
            branches.op(&branch(0x9010, Turn::Return, true, site * 16 + 4));
        }
        assert_eq!(branches.missed(), Mispredictions::default());
    }
}
