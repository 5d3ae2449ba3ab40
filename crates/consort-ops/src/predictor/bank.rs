//! Predictors side by side.

use super::Predictor;
use super::history::BranchHistory;
use super::targets::{TargetBuffer, TargetBuffers};
use crate::{Branch, BranchKind};

/// Predictors that follow one thread and share its history.
#[derive(Clone, Debug)]
pub struct PredictorBank {
    /// Without targets of their own.
    predictors: Vec<Predictor>,
    targets: TargetBuffers,
    /// The predictors that keep targets of direct branches, as bits.
    keeping: u32,
    history: BranchHistory,
}

impl PredictorBank {
    /// Predictors that have learnt nothing, at most 31, which keep equally many targets and return
    /// addresses.
    #[must_use]
    pub fn new(mut predictors: Vec<Predictor>) -> Self {
        let all = predictors.iter().flat_map(|p| p.directions.widths());
        let mut widths: Vec<u32> = all.collect();
        widths.sort_unstable();
        widths.dedup();
        let mut targets = TargetBuffer::new(0);
        for predictor in &mut predictors {
            predictor.directions.bind_history(&widths);
            targets = std::mem::replace(&mut predictor.targets, TargetBuffer::new(0));
        }
        let returns = predictors.first().map_or(0, |p| p.returns);
        Self {
            history: BranchHistory::new(&widths, returns),
            targets: TargetBuffers::new(predictors.len(), &targets),
            keeping: bits(predictors.iter().map(|predictor| !predictor.computes)),
            predictors,
        }
    }

    /// Lets each predictor predict a branch and learn its outcome; `after` is the address behind
    /// it. Returns the wrong predictors as bits.
    pub fn predict(&mut self, at: u64, after: u64, branch: Branch) -> u32 {
        let wrong = match branch.turn {
            BranchKind::Conditional => self.predict_conditional(at, branch),
            BranchKind::Return if self.history.last_return() == Some(branch.target) => 0,
            BranchKind::Return => (1 << self.predictors.len()) - 1,
            BranchKind::Jump | BranchKind::Call => {
                self.targets.learn(self.keeping, at, branch.target);
                0
            }
            BranchKind::IndirectJump | BranchKind::IndirectCall => {
                self.predict_indirect(at, branch.target)
            }
        };
        self.history.record_branch(branch, after);
        wrong
    }

    /// Predictors that are wrong about a conditional branch, as bits.
    fn predict_conditional(&mut self, at: u64, branch: Branch) -> u32 {
        let (history, taken) = (&self.history, branch.taken);
        let tags = history.tags(at, branch.turn);
        let wrong = bits(
            self.predictors
                .iter_mut()
                .map(|predictor| predictor.directions.predict(at, history, &tags, taken) != taken),
        );
        if taken {
            self.targets.learn(self.keeping & !wrong, at, branch.target);
        }
        wrong
    }

    /// Predictors that are wrong about an indirect branch, as bits.
    fn predict_indirect(&mut self, at: u64, target: u64) -> u32 {
        let (history, targets) = (&self.history, &mut self.targets);
        let predictors = self.predictors.iter().enumerate();
        bits(predictors.map(|(number, predictor)| {
            targets.learn_one(number, predictor.key(history, at), target) != Some(target)
        }))
    }
}

/// Bits, the first the lowest.
fn bits(of: impl Iterator<Item = bool>) -> u32 {
    let numbered = of.enumerate();
    numbered.fold(0, |bits, (number, is)| bits | u32::from(is) << number)
}

#[cfg(test)]
mod tests {
    use super::super::{BranchPrediction, PredictorScheme};
    use super::*;
    use proptest::prelude::*;

    const TURNS: [BranchKind; 6] = [
        BranchKind::Conditional,
        BranchKind::Jump,
        BranchKind::Call,
        BranchKind::Return,
        BranchKind::IndirectJump,
        BranchKind::IndirectCall,
    ];

    fn predictors() -> Vec<Predictor> {
        let schemes = [
            PredictorScheme::Tagged,
            PredictorScheme::Gshare,
            PredictorScheme::Bimodal,
        ];
        let of = |scheme| [1.0, 4.0, 48.0].map(|kib| Predictor::new(scheme, kib, 64, 4));
        let computing = Predictor::new(PredictorScheme::Tagged, 4.0, 64, 4).with_computed_targets();
        schemes
            .into_iter()
            .flat_map(of)
            .chain([computing])
            .collect()
    }

    proptest! {
        #[test]
        fn side_by_side_they_predict_as_each_alone(
            steps in prop::collection::vec((0..64_u64, 0..12_usize, any::<bool>(), 0..8_u64), 1..1500),
        ) {
            let mut alone: Vec<_> = predictors().into_iter().map(|p| (p.new_history(), p)).collect();
            let mut bank = PredictorBank::new(predictors());
            for (place, turn, taken, target) in steps {
                let turn = TURNS.get(turn).copied().unwrap_or(BranchKind::Conditional);
                let (at, target) = (0x40_0000 + place * 8, 0x40_0004 + target * 8);
                let branch = Branch { turn, taken: taken || turn != BranchKind::Conditional, target };
                let each = alone.iter_mut().map(|(history, predictor)| {
                    predictor.predict(history, at, at + 4, branch) == BranchPrediction::Wrong
                });
                let wrong = each.enumerate().fold(0, |bits, (n, wrong)| bits | u32::from(wrong) << n);
                prop_assert_eq!(bank.predict(at, at + 4, branch), wrong);
            }
        }
    }
}
