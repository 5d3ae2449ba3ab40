//! Branch prediction: directions, targets, returns.
//!
//! One model serves the profiler, which counts a program's mispredictions, and the engine that
//! executes branches. Tables learn the outcome at fetch, as if every history were repaired at once
//! after a misprediction; they belong to a core or a CPU, histories and return stacks to a thread.

mod bank;
mod direction;
mod history;
mod targets;

use crate::{Branch, BranchKind};
pub use bank::PredictorBank;
use direction::DirectionTables;
pub use history::BranchHistory;
use history::Lanes;
use targets::TargetBuffer;

/// Way in which the direction of conditional branches is predicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PredictorScheme {
    /// A table of two-bit counters by address.
    Bimodal,
    /// A table of two-bit counters by address and global history (McFarling, 1993).
    #[default]
    Gshare,
    /// Tagged tables by geometrically longer histories (Seznec and Michaud, JILP 2006). Targets
    /// of indirect branches are remembered by history as well.
    Tagged,
}

/// Odd number that scatters bits by multiplication (Knuth, volume 3, section 6.4).
const SCATTER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Knowledge that fetch has of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BranchPrediction {
    /// Right.
    Right,
    /// Right once the branch is decoded: the target is in the instruction.
    Late,
    /// Right, by a target that fetch computes from the instruction every time.
    Computed,
    /// Wrong until it is executed.
    Wrong,
}

/// Tables that learn.
#[derive(Clone, Debug)]
pub struct Predictor {
    directions: DirectionTables,
    targets: TargetBuffer,
    by_history: bool,
    returns: usize,
    computes: bool,
}

impl Predictor {
    /// A predictor that has learnt nothing: directions in `size_kib` KiB, so many `targets` of
    /// taken branches, and `returns` addresses on each thread's return stack.
    #[must_use]
    pub fn new(scheme: PredictorScheme, size_kib: f64, targets: u32, returns: u32) -> Self {
        Self {
            directions: DirectionTables::new(scheme, size_kib),
            targets: TargetBuffer::new(targets),
            by_history: scheme == PredictorScheme::Tagged,
            returns: returns as usize,
            computes: false,
        }
    }

    /// The same where targets of direct branches are computed at fetch, and none of them kept.
    #[must_use]
    pub const fn with_computed_targets(mut self) -> Self {
        self.computes = true;
        self
    }

    /// The same where another program inserts at a random place after every `branches` conditional
    /// branches, 0 for never: an entry as after a misprediction of its own, or, without tags, one
    /// training of a counter. What is lost to that is a property of the program that is predicted.
    #[must_use]
    pub const fn with_strangers(mut self, branches: u32) -> Self {
        self.directions.share(branches);
        self
    }

    /// The history of a thread that has run no branch yet.
    #[must_use]
    pub fn new_history(&self) -> BranchHistory {
        BranchHistory::new(&self.directions.widths(), self.returns)
    }

    /// Predicts a branch at an address and learns what it does; `after` is what follows it.
    pub fn predict(
        &mut self,
        history: &mut BranchHistory,
        at: u64,
        after: u64,
        branch: Branch,
    ) -> BranchPrediction {
        let tags = history.tags(at, branch.turn);
        let prediction = self.predict_with_tags(history, &tags, at, branch);
        history.record_branch(branch, after);
        prediction
    }

    /// Predicts a branch with these `tags` and learns what it does, which the history does not yet.
    fn predict_with_tags(
        &mut self,
        history: &BranchHistory,
        tags: &Lanes,
        at: u64,
        branch: Branch,
    ) -> BranchPrediction {
        let is_right = match branch.turn {
            BranchKind::Conditional => {
                let taken = self.directions.predict(at, history, tags, branch.taken);
                match (taken == branch.taken, branch.taken) {
                    (true, true) => return self.predict_direct(at, branch),
                    (is_right, _) => is_right,
                }
            }
            BranchKind::Jump | BranchKind::Call => return self.predict_direct(at, branch),
            BranchKind::Return => history.last_return() == Some(branch.target),
            BranchKind::IndirectJump | BranchKind::IndirectCall => {
                self.predict_indirect(history, at, branch)
            }
        };
        match is_right {
            true => BranchPrediction::Right,
            false => BranchPrediction::Wrong,
        }
    }

    /// A target that the instruction says: late where it is not known before.
    fn predict_direct(&mut self, at: u64, branch: Branch) -> BranchPrediction {
        if self.computes {
            return BranchPrediction::Computed;
        }
        match self.targets.learn(at, branch.target) == Some(branch.target) {
            true => BranchPrediction::Right,
            false => BranchPrediction::Late,
        }
    }

    /// Learns the target of a branch that does not say it. True if it was known.
    fn predict_indirect(&mut self, history: &BranchHistory, at: u64, branch: Branch) -> bool {
        let key = self.key(history, at);
        self.targets.learn(key, branch.target) == Some(branch.target)
    }

    /// Key under which the target of an indirect branch is kept.
    fn key(&self, history: &BranchHistory, at: u64) -> u64 {
        const OUTCOMES: u64 = 0xffff;
        let path = if self.by_history {
            history.outcomes() & OUTCOMES
        } else {
            0
        };
        at ^ path.wrapping_mul(SCATTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn predictor(scheme: PredictorScheme) -> Predictor {
        Predictor::new(scheme, 8.0, 4096, 16)
    }

    /// Mispredictions per thousand of the last half of a conditional branch's outcomes.
    fn wrong(scheme: PredictorScheme, outcomes: &[bool]) -> usize {
        let mut predictor = predictor(scheme);
        let mut memory = predictor.new_history();
        let mut count = 0;
        for (i, &taken) in outcomes.iter().enumerate() {
            let branch = Branch {
                turn: BranchKind::Conditional,
                taken,
                target: 0x4000,
            };
            let prediction = predictor.predict(&mut memory, 0x1000, 0x1004, branch);
            count += usize::from(i >= outcomes.len() / 2 && prediction == BranchPrediction::Wrong);
        }
        count * 2000 / outcomes.len()
    }

    const SCHEMES: [PredictorScheme; 3] = [
        PredictorScheme::Bimodal,
        PredictorScheme::Gshare,
        PredictorScheme::Tagged,
    ];

    #[test]
    fn a_loop_of_eight_costs_one_in_eight_without_history_and_nothing_with_it() {
        let outcomes: Vec<bool> = (0..8000).map(|i| i % 8 != 7).collect();
        assert_eq!(SCHEMES.map(|scheme| wrong(scheme, &outcomes)), [125, 0, 0]);
    }

    #[test]
    fn long_histories_are_for_tagged_tables() {
        let outcomes: Vec<bool> = (0..60_000).map(|i| i % 60 == 59).collect();
        let [bimodal, gshare, tage] = SCHEMES.map(|scheme| wrong(scheme, &outcomes));
        assert!(bimodal >= 16 && gshare >= 16, "{bimodal} {gshare}");
        assert!(tage <= 2, "{tage}");
    }

    /// Irregular outcomes, each behind a loop's branch that is always taken, again and again: as in
    /// the loop of `adpcm_dec` of TACLeBench, whose history has period 2 in every other place.
    fn missed_signs(mut predictor: Predictor, signs: u64) -> u64 {
        let mut memory = predictor.new_history();
        let mut missed = 0;
        for round in 0..40 {
            let mut random = 1_u64;
            for _ in 0..signs {
                random = random.wrapping_mul(SCATTER).wrapping_add(SCATTER);
                for (at, taken) in [(0x1000, random >> 63 == 1), (0x1040, true)] {
                    let turn = BranchKind::Conditional;
                    let branch = Branch {
                        turn,
                        taken,
                        target: 0x900,
                    };
                    let prediction = predictor.predict(&mut memory, at, at + 4, branch);
                    missed += u64::from(round >= 20 && prediction == BranchPrediction::Wrong);
                }
            }
        }
        missed * 1000 / (20 * signs)
    }

    #[test]
    fn larger_tagged_predictor_remembers_more() {
        let of = |kib| missed_signs(Predictor::new(PredictorScheme::Tagged, kib, 64, 4), 850);
        let missed = [4.0, 8.0, 16.0, 32.0, 64.0].map(of);
        assert!(missed.is_sorted_by(|a, b| a >= b), "{missed:?}");
        assert!(missed[0] > 4 * missed[4] && missed[4] < 30, "{missed:?}");
    }

    #[test]
    fn useful_tagged_entries_survive_strangers() {
        let predictor = || Predictor::new(PredictorScheme::Tagged, 8.0, 64, 4);
        let alone = missed_signs(predictor(), 500);
        assert!(missed_signs(predictor().with_strangers(8), 500) <= alone + 5);
    }

    /// Mispredictions of so many branches that each go one way, in turn, next to a stranger.
    fn missed_biases(branches: u64) -> usize {
        let mut predictor = Predictor::new(PredictorScheme::Gshare, 8.0, 64, 4).with_strangers(1);
        let mut memory = predictor.new_history();
        let mut missed = 0;
        for i in 0..100_000 {
            let at = 0x1000 + 4 * (i % branches);
            let taken = (at >> 2).wrapping_mul(SCATTER) >> 63 == 1;
            let turn = BranchKind::Conditional;
            let branch = Branch {
                turn,
                taken,
                target: 0x900,
            };
            let prediction = predictor.predict(&mut memory, at, at + 4, branch);
            missed += usize::from(i >= 50_000 && prediction == BranchPrediction::Wrong);
        }
        missed
    }

    #[test]
    fn strangers_cost_who_trains_many_counters() {
        let [few, many] = [20, 5000].map(missed_biases);
        assert!(few < 5 && many > 20, "{few} {many}");
    }

    #[test]
    fn returns_go_where_calls_came_from_as_deep_as_the_stack() {
        let mut predictor = predictor(PredictorScheme::Gshare);
        let mut memory = predictor.new_history();
        let turn = |turn, target| Branch {
            turn,
            taken: true,
            target,
        };
        for depth in 0..20u64 {
            predictor.predict(
                &mut memory,
                depth * 64,
                depth * 64 + 4,
                turn(BranchKind::Call, 0),
            );
        }
        let back = |depth: u64| turn(BranchKind::Return, depth * 64 + 4);
        let predictions = (0..20)
            .rev()
            .map(|d| predictor.predict(&mut memory, 7, 8, back(d)));
        let right = predictions
            .filter(|p| *p == BranchPrediction::Right)
            .count();
        assert_eq!(right, 16);
    }

    #[test]
    fn targets_are_late_at_first() {
        let mut predictor = predictor(PredictorScheme::Gshare);
        let mut memory = predictor.new_history();
        let mut jump = |turn, target| {
            let taken = true;
            let branch = Branch {
                turn,
                taken,
                target,
            };
            predictor.predict(&mut memory, 64, 68, branch)
        };
        assert_eq!(jump(BranchKind::Jump, 8), BranchPrediction::Late);
        assert_eq!(jump(BranchKind::Jump, 8), BranchPrediction::Right);
        assert_eq!(jump(BranchKind::IndirectJump, 16), BranchPrediction::Wrong);
        assert_eq!(jump(BranchKind::IndirectJump, 16), BranchPrediction::Right);
    }
}
