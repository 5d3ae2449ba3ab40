//! Mispredicted targets of indirect branches, by the size of the table that keeps them by address.

use consort_ops::predictor::{BranchHistory, BranchPrediction, Predictor, PredictorScheme};
use consort_ops::{Branch, BranchKind};

/// Sizes of tables of targets.
pub const TARGET_ENTRIES: [u32; 6] = [64, 128, 256, 512, 1024, 4096];
/// Mispredictions with each of [`TARGET_ENTRIES`].
pub type LostTargets = [u64; TARGET_ENTRIES.len()];

/// Tables of targets of each size.
#[derive(Debug, Clone)]
pub struct TargetTables {
    /// Predictors that only their tables of targets tell from each other.
    tables: [(Predictor, BranchHistory); TARGET_ENTRIES.len()],
    counts: bool,
    lost: LostTargets,
}

impl Default for TargetTables {
    fn default() -> Self {
        Self {
            tables: TARGET_ENTRIES.map(target_table),
            counts: true,
            lost: LostTargets::default(),
        }
    }
}

fn target_table(entries: u32) -> (Predictor, BranchHistory) {
    let predictor = Predictor::new(PredictorScheme::Gshare, 1.0, entries, 1);
    let history = predictor.new_history();
    (predictor, history)
}

impl TargetTables {
    /// Has what follows count, or only train.
    pub const fn set_counting(&mut self, counts: bool) {
        self.counts = counts;
    }

    /// Takes a branch of an instruction at an address; one that says its target is passed over.
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
    use super::*;

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
    fn a_table_keeps_as_many_targets_as_it_has_entries() {
        let [few, .., most] = lost(BranchKind::IndirectCall);
        assert!(few > 15_000 && most == 200, "{few} {most}");
    }

    #[test]
    fn branches_that_say_their_targets_need_no_table() {
        assert_eq!(lost(BranchKind::Jump), LostTargets::default());
    }
}
