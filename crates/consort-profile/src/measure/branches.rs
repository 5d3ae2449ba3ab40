//! Mispredictions of model predictors of several schemes and sizes.
//!
//! The predictors are those of the reference engine ([`consort_ops::predictor`]), each with a
//! table of 4096 targets and a stack of 16 return addresses.

use consort_ops::predictor::{Bank, Predictor, Scheme};
use consort_ops::{Branch, Op, Turn};

/// Sizes of predictors, KiB.
pub const PREDICTOR_KIB: [u64; 5] = [4, 8, 16, 32, 64];
/// Schemes of predictors.
pub const SCHEMES: [Scheme; 2] = [Scheme::Tagged, Scheme::Gshare];

/// Index of the predictors of 32 KiB, whose mispredictions interrupt the model pipelines.
const REFERENCE: usize = 3;
const TARGETS: u32 = 4096;
const RETURNS: u32 = 16;

/// Sizes of tables of targets by address.
pub const TARGET_ENTRIES: [u32; 6] = [64, 128, 256, 512, 1024, 4096];

/// Mispredictions with each of [`PREDICTOR_KIB`], by [`SCHEMES`].
pub type Mispredictions = [[u64; PREDICTOR_KIB.len()]; SCHEMES.len()];
/// Mispredictions of indirect branches with each of [`TARGET_ENTRIES`].
pub type LostTargets = [u64; TARGET_ENTRIES.len()];

/// Predictors of every scheme and size, and what they missed.
#[derive(Debug, Clone)]
pub struct Branches {
    /// By scheme, then by size.
    predictors: Bank,
    /// By size of their table; indirect branches alone are theirs.
    targets: Bank,
    counts: bool,
    missed: Mispredictions,
    lost_targets: LostTargets,
}

impl Default for Branches {
    fn default() -> Self {
        let of = |scheme| PREDICTOR_KIB.map(|kib| model(scheme, kib));
        Self {
            predictors: Bank::new(SCHEMES.into_iter().flat_map(of).collect()),
            targets: Bank::new(TARGET_ENTRIES.map(table).into()),
            counts: true,
            missed: Mispredictions::default(),
            lost_targets: LostTargets::default(),
        }
    }
}

fn model(scheme: Scheme, kib: u64) -> Predictor {
    Predictor::new(scheme, kib as f64, TARGETS, RETURNS)
}

/// A predictor that only its table of targets tells from others.
fn table(entries: u32) -> Predictor {
    Predictor::new(Scheme::Gshare, 1.0, entries, RETURNS)
}

/// Adds one to the counts of all whose bits are set.
fn add(counts: &mut [u64], bits: u32) {
    let each = counts.iter_mut().enumerate();
    each.for_each(|(at, count)| *count += u64::from(bits >> at & 1));
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

    fn branch(&mut self, at: u64, length: u64, branch: Branch) -> [bool; SCHEMES.len()] {
        let wrong = self.predictors.predict(at, at.wrapping_add(length), branch);
        let is_indirect = matches!(branch.turn, Turn::IndirectJump | Turn::IndirectCall);
        let lost = if is_indirect {
            self.targets.predict(at, at.wrapping_add(length), branch)
        } else {
            0
        };
        if self.counts {
            add(self.missed.as_flattened_mut(), wrong);
            add(&mut self.lost_targets, lost);
        }
        std::array::from_fn(|scheme| wrong >> (scheme * PREDICTOR_KIB.len() + REFERENCE) & 1 == 1)
    }

    /// Counts of mispredictions.
    #[must_use]
    pub const fn missed(&self) -> Mispredictions {
        self.missed
    }

    /// Counts of mispredicted targets of indirect branches.
    #[must_use]
    pub const fn lost_targets(&self) -> LostTargets {
        self.lost_targets
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_ops::Kind;

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
    fn a_table_keeps_as_many_targets_as_it_has_entries() {
        let mut branches = Branches::default();
        for i in 0..20_000_u64 {
            let at = 0x1000 + 4 * (i % 200);
            branches.op(&branch(at, Turn::IndirectCall, true, at << 8));
        }
        let [few, .., most] = branches.lost_targets();
        assert!(few > 15_000 && most == 200, "{few} {most}");
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
