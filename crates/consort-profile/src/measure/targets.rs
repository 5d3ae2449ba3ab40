//! Mispredicted targets of indirect branches, by the size of the table that keeps them by address.

use consort_ops::predictor::{History, Prediction, Predictor, Scheme};
use consort_ops::{Branch, Turn};

/// Sizes of tables of targets.
pub const TARGET_ENTRIES: [u32; 6] = [64, 128, 256, 512, 1024, 4096];
/// Mispredictions with each of [`TARGET_ENTRIES`].
pub type LostTargets = [u64; TARGET_ENTRIES.len()];

/// Tables of targets of each size.
#[derive(Debug, Clone)]
pub struct TargetTables {
    /// Predictors that only their tables of targets tell from each other.
    tables: [(Predictor, History); TARGET_ENTRIES.len()],
    counts: bool,
    lost: LostTargets,
}

impl Default for TargetTables {
    fn default() -> Self {
        Self {
            tables: TARGET_ENTRIES.map(table),
            counts: true,
            lost: LostTargets::default(),
        }
    }
}

fn table(entries: u32) -> (Predictor, History) {
    let predictor = Predictor::new(Scheme::Gshare, 1.0, entries, 1);
    let history = predictor.history();
    (predictor, history)
}

impl TargetTables {
    /// Has what follows count, or only train.
    pub const fn count(&mut self, counts: bool) {
        self.counts = counts;
    }

    /// Takes a branch of an instruction at an address; one that says its target is passed over.
    pub fn take(&mut self, at: u64, branch: Branch) {
        if !matches!(branch.turn, Turn::IndirectJump | Turn::IndirectCall) {
            return;
        }
        for ((predictor, history), lost) in self.tables.iter_mut().zip(&mut self.lost) {
            let prediction = predictor.predict(history, at, at, branch);
            *lost += u64::from(self.counts && prediction == Prediction::Wrong);
        }
    }

    /// Counts of mispredictions.
    #[must_use]
    pub const fn lost(&self) -> LostTargets {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(turn: Turn) -> LostTargets {
        let mut tables = TargetTables::default();
        for i in 0..20_000_u64 {
            let at = 0x1000 + 4 * (i % 200);
            let branch = Branch {
                turn,
                taken: true,
                target: at << 8,
            };
            tables.take(at, branch);
        }
        tables.lost()
    }

    #[test]
    fn a_table_keeps_as_many_targets_as_it_has_entries() {
        let [few, .., most] = lost(Turn::IndirectCall);
        assert!(few > 15_000 && most == 200, "{few} {most}");
    }

    #[test]
    fn branches_that_say_their_targets_need_no_table() {
        assert_eq!(lost(Turn::Jump), LostTargets::default());
    }
}
