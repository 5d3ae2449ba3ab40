//! Mispredictions of model predictors of several schemes and sizes.
//!
//! The predictors are those of the reference engine ([`consort_ops::predictor`]), each with a
//! table of 4096 targets and a stack of 16 return addresses: once alone, and once next to a stranger
//! that inserts entries at random places, which shows what the program loses to others.

use consort_ops::predictor::{
    BranchHistory, BranchPrediction, Predictor, PredictorBank, PredictorScheme,
};
use consort_ops::{Branch, BranchKind};

use super::PartialTally;

/// Sizes of predictors, KiB.
pub const PREDICTOR_KIB: [u64; 5] = [4, 8, 16, 32, 64];
/// Schemes of predictors.
pub const SCHEMES: [PredictorScheme; 2] = [PredictorScheme::Tagged, PredictorScheme::Gshare];

/// Index of the predictors of 32 KiB, whose mispredictions interrupt the model pipelines.
const REFERENCE: usize = 3;
const TARGETS: u32 = 4096;
const RETURNS: u32 = 16;

/// Branches for each insertion of a stranger where predictors are shared, by [`SCHEMES`]: as many
/// as a program that mispredicts often inserts, or trains anew, for as many branches of its own.
const STRANGERS: [u32; SCHEMES.len()] = [16, 4];
/// Conditional branches of a stretch in which the counters that are trained anew are counted.
const STRETCH: u32 = 4096;
/// Bits of the number of a counter, of 32,768: a predictor of 8 KiB, as the smaller ones of machines
/// without tags.
const COUNTER_BITS: u32 = 15;

/// Counts of the predictors of one scheme.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SchemeCounts {
    /// Mispredictions with each of [`PREDICTOR_KIB`].
    pub alone: [u64; PREDICTOR_KIB.len()],
    /// The same where a stranger inserts after every sixteenth branch, without tags after every
    /// fourth.
    pub shared: [u64; PREDICTOR_KIB.len()],
    /// Counters of a predictor without tags that are trained anew: in each stretch of 4096
    /// conditional branches, every counter once.
    pub renewed: u64,
}

impl PartialTally for SchemeCounts {
    fn merge(&mut self, other: &Self, with: fn(u64, u64) -> u64) {
        self.alone.merge(&other.alone, with);
        self.shared.merge(&other.shared, with);
        self.renewed.merge(&other.renewed, with);
    }
}

/// Counts by [`SCHEMES`].
pub type Mispredictions = [SchemeCounts; SCHEMES.len()];

/// Predictors of one scheme and every size, and their mispredictions.
#[derive(Debug, Clone)]
pub struct SchemePredictors {
    /// The ones of a thread alone, then the shared ones.
    predictors: PredictorBank,
    renewals: Option<Renewals>,
    counting: bool,
    counts: SchemeCounts,
}

/// Counters of a predictor without tags by when they were trained last.
#[derive(Debug, Clone)]
struct Renewals {
    /// Outcomes of the last conditional branches.
    outcomes: u64,
    branches: u32,
    /// Stretch in which each counter was trained last, modulo 2¹⁶.
    stretches: Vec<u16>,
}

impl Renewals {
    fn new() -> Self {
        Self {
            outcomes: 0,
            branches: STRETCH,
            stretches: vec![0; 1 << COUNTER_BITS],
        }
    }

    /// Trains the counter of a conditional branch. Returns true if it is the first time in its
    /// stretch.
    fn renew(&mut self, at: u64, taken: bool) -> bool {
        let mask = (1 << COUNTER_BITS) - 1;
        let stretch = (self.branches / STRETCH) as u16;
        let counter = ((at >> 1) ^ self.outcomes) & mask;
        let last = std::mem::replace(&mut self.stretches[counter as usize], stretch);
        self.outcomes = self.outcomes << 1 | u64::from(taken);
        self.branches = self.branches.wrapping_add(1);
        last != stretch
    }
}

impl SchemePredictors {
    /// Untrained predictors of a scheme.
    #[must_use]
    pub fn new(scheme: PredictorScheme) -> Self {
        let tagged = scheme == PredictorScheme::Tagged;
        let alone = PREDICTOR_KIB.map(|kib| Predictor::new(scheme, kib as f64, TARGETS, RETURNS));
        let shared = alone
            .clone()
            .map(|predictor| predictor.with_strangers(STRANGERS[usize::from(!tagged)]));
        Self {
            predictors: PredictorBank::new(alone.into_iter().chain(shared).collect()),
            renewals: (!tagged).then(Renewals::new),
            counting: true,
            counts: SchemeCounts::default(),
        }
    }

    /// Lets the following branches count, or only train the predictors.
    pub const fn set_counting(&mut self, counts: bool) {
        self.counting = counts;
    }

    /// Predicts a branch of an instruction of `length` bytes at an address. Returns true if the
    /// predictor of 32 KiB mispredicts it.
    pub fn predict_branch(&mut self, at: u64, length: u8, branch: Branch) -> bool {
        let after = at.wrapping_add(u64::from(length));
        let wrong = self.predictors.predict(at, after, branch);
        if wrong != 0 && self.counting {
            let all = self.counts.alone.iter_mut().chain(&mut self.counts.shared);
            let numbered = all.enumerate();
            numbered.for_each(|(at, missed)| *missed += u64::from(wrong >> at & 1));
        }
        let renewals = self.renewals.as_mut();
        if let Some(renewals) = renewals.filter(|_| branch.turn == BranchKind::Conditional) {
            let is_new = renewals.renew(at, branch.taken);
            self.counts.renewed += u64::from(is_new && self.counting);
        }
        wrong >> REFERENCE & 1 == 1
    }

    /// Counts since the start.
    #[must_use]
    pub const fn counts(&self) -> SchemeCounts {
        self.counts
    }
}

/// Sizes of tables of targets.
pub const TARGET_ENTRIES: [u32; 6] = [64, 128, 256, 512, 1024, 4096];
/// Mispredictions with each of [`TARGET_ENTRIES`].
pub type LostTargets = [u64; TARGET_ENTRIES.len()];

/// Tables of targets of each size.
#[derive(Debug, Clone)]
pub struct TargetTables {
    /// Predictors that differ only in their tables of targets.
    tables: [(Predictor, BranchHistory); TARGET_ENTRIES.len()],
    counts: bool,
    lost: LostTargets,
}

impl Default for TargetTables {
    fn default() -> Self {
        Self {
            tables: TARGET_ENTRIES.map(|entries| {
                let predictor = Predictor::new(PredictorScheme::Gshare, 1.0, entries, 1);
                let history = predictor.new_history();
                (predictor, history)
            }),
            counts: true,
            lost: LostTargets::default(),
        }
    }
}

impl TargetTables {
    /// Lets the following branches count, or only train the tables.
    pub const fn set_counting(&mut self, counts: bool) {
        self.counts = counts;
    }

    /// Predicts a branch of an instruction at an address; a direct branch is ignored.
    pub fn predict_target(&mut self, at: u64, branch: Branch) {
        if !matches!(
            branch.turn,
            BranchKind::IndirectJump | BranchKind::IndirectCall
        ) {
            return;
        }
        for ((predictor, history), lost) in self.tables.iter_mut().zip(&mut self.lost) {
            let prediction = predictor.predict(history, at, at, branch);
            *lost += u64::from(self.counts && prediction == BranchPrediction::Wrong);
        }
    }

    /// Counts of mispredictions.
    #[must_use]
    pub const fn lost_targets(&self) -> LostTargets {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use consort_ops::BranchKind;

    use super::*;

    /// Mispredictions of branches given by address, turn, outcome and target, by scheme.
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
            branches.counts()
        })
    }

    /// Mispredictions with every scheme and size, alone.
    fn all_alone(of: Mispredictions) -> Vec<u64> {
        of.iter().flat_map(|scheme| scheme.alone).collect()
    }

    fn missed_of(outcomes: impl Iterator<Item = bool>) -> Mispredictions {
        missed(outcomes.map(|taken| (0x1000, BranchKind::Conditional, taken, 0x2000)))
    }

    #[test]
    fn pattern_is_learnt() {
        let missed = all_alone(missed_of((0..10_000).map(|i| i % 7 < 3)));
        assert!(missed.iter().all(|&missed| missed < 200), "{missed:?}");
    }

    #[test]
    fn chance_is_missed_half_the_time() {
        let next = |state: &u64| {
            let state = state.wrapping_mul(6_364_136_223_846_793_005);
            Some(state.wrapping_add(1))
        };
        let random = std::iter::successors(Some(1_u64), next).map(|state| state >> 63 == 1);
        let missed = all_alone(missed_of(random.take(20_000)));
        assert!(
            missed.iter().all(|missed| (9_000..11_000).contains(missed)),
            "{missed:?}"
        );
    }

    #[test]
    fn interpreter_targets_are_learnt_with_history_only() {
        let jump = |i: u64| {
            (
                0x1000,
                BranchKind::IndirectJump,
                true,
                0x2000 + 0x100 * (i % 3),
            )
        };
        let [tagged, gshare] = missed((0..4_000).map(jump)).map(|scheme| scheme.alone);
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

    #[test]
    fn counters_are_renewed_once_per_stretch() {
        // Three outcomes again and again: as many histories as places in the pattern.
        let branch = |i| (0x1000, BranchKind::Conditional, i % 3 == 0, 0x2000);
        let [tagged, gshare] = missed((0..3 * 4096).map(branch));
        assert_eq!(tagged.renewed, 0);
        // At first fewer outcomes are known.
        assert!((9..30).contains(&gshare.renewed), "{}", gshare.renewed);
    }

    #[test]
    fn pattern_that_needs_few_entries_loses_none_to_strangers() {
        let missed = missed_of((0..20_000).map(|i| i % 7 < 3));
        for scheme in missed {
            assert!(
                scheme.shared.iter().all(|&missed| missed < 300),
                "{scheme:?}"
            );
        }
    }

    fn lost(turn: BranchKind) -> LostTargets {
        let mut tables = TargetTables::default();
        for i in 0..20_000_u64 {
            let at = 0x1000 + 4 * (i % 200);
            let branch = Branch {
                turn,
                taken: true,
                target: at << 8,
            };
            tables.predict_target(at, branch);
        }
        tables.lost_targets()
    }

    #[test]
    fn table_keeps_one_target_per_entry() {
        let [few, .., most] = lost(BranchKind::IndirectCall);
        assert!(few > 15_000 && most == 200, "{few} {most}");
    }

    #[test]
    fn branches_that_say_their_targets_need_no_table() {
        assert_eq!(lost(BranchKind::Jump), LostTargets::default());
    }
}
