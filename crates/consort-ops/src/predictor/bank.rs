//! Predictors side by side.

use super::history::History;
use super::{Prediction, Predictor};
use crate::{Branch, Turn};

/// Predictors that follow one thread: what they look at of its past is kept once.
#[derive(Clone, Debug)]
pub struct Bank {
    predictors: Vec<Predictor>,
    history: History,
}

impl Bank {
    /// Predictors that have learnt nothing, at most 31, whose return stacks are equally deep.
    #[must_use]
    pub fn new(mut predictors: Vec<Predictor>) -> Self {
        let all = predictors.iter().flat_map(|p| p.directions.widths());
        let mut widths: Vec<u32> = all.collect();
        widths.sort_unstable();
        widths.dedup();
        for (number, predictor) in predictors.iter_mut().enumerate() {
            predictor.directions.follow(&widths);
            predictor.targets.displace(number);
        }
        let returns = predictors.first().map_or(0, |p| p.returns);
        Self {
            history: History::new(&widths, returns),
            predictors,
        }
    }

    /// Has each predict a branch at an address, and learn what it does; `after` is what follows it.
    /// Gives which of them were wrong, as bits.
    pub fn predict(&mut self, at: u64, after: u64, branch: Branch) -> u32 {
        let wrong = match branch.turn {
            Turn::Conditional => self.conditional(at, branch),
            Turn::Return if self.history.back() == Some(branch.target) => 0,
            Turn::Return => (1 << self.predictors.len()) - 1,
            _ => self.told(|predictor, history| {
                predictor.foresee(history, &Default::default(), at, branch) == Prediction::Wrong
            }),
        };
        self.history.take(branch, after);
        wrong
    }

    /// Predictors that are wrong about a conditional branch, as bits.
    fn conditional(&mut self, at: u64, branch: Branch) -> u32 {
        let tags = self.history.tags(at, branch.turn);
        self.told(|predictor, history| {
            let directions = &mut predictor.directions;
            let is_right = directions.predict(at, history, &tags, branch.taken) == branch.taken;
            if is_right && branch.taken {
                predictor.direct(at, branch);
            }
            !is_right
        })
    }

    /// Of which predictors something is true, as bits.
    fn told(&mut self, mut is: impl FnMut(&mut Predictor, &History) -> bool) -> u32 {
        let predictors = self.predictors.iter_mut().enumerate();
        predictors.fold(0, |bits, (number, predictor)| {
            bits | u32::from(is(predictor, &self.history)) << number
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Scheme;
    use super::*;
    use proptest::prelude::*;

    const TURNS: [Turn; 6] = [
        Turn::Conditional,
        Turn::Jump,
        Turn::Call,
        Turn::Return,
        Turn::IndirectJump,
        Turn::IndirectCall,
    ];

    fn predictors() -> Vec<Predictor> {
        let schemes = [Scheme::Tagged, Scheme::Gshare, Scheme::Bimodal];
        let of = |scheme| [1.0, 4.0, 48.0].map(|kib| Predictor::new(scheme, kib, 64, 4));
        schemes.into_iter().flat_map(of).collect()
    }

    proptest! {
        #[test]
        fn side_by_side_they_predict_as_each_alone(
            steps in prop::collection::vec((0..64_u64, 0..12_usize, any::<bool>(), 0..8_u64), 1..1500),
        ) {
            let mut alone: Vec<_> = predictors().into_iter().map(|p| (p.history(), p)).collect();
            let mut bank = Bank::new(predictors());
            for (place, turn, taken, target) in steps {
                let turn = TURNS.get(turn).copied().unwrap_or(Turn::Conditional);
                let (at, target) = (0x40_0000 + place * 8, 0x40_0004 + target * 8);
                let branch = Branch { turn, taken: taken || turn != Turn::Conditional, target };
                let each = alone.iter_mut().map(|(history, predictor)| {
                    predictor.predict(history, at, at + 4, branch) == Prediction::Wrong
                });
                let wrong = each.enumerate().fold(0, |bits, (n, wrong)| bits | u32::from(wrong) << n);
                prop_assert_eq!(bank.predict(at, at + 4, branch), wrong);
            }
        }
    }
}
