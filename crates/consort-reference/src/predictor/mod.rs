//! Branch prediction: directions, targets, returns.
//!
//! Tables learn the outcome at fetch, as if every history were repaired at once after a
//! misprediction; they belong to a core or a PU, histories and return stacks to a thread.

mod direction;
mod targets;

use consort_ops::{Branch, Turn};
use consort_sim::machine::PredictorSpec;
use consort_sim::machine::detail::PredictorKind;
use direction::Directions;
use targets::Targets;

/// What fetch knows of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prediction {
    /// Right.
    Right,
    /// Right once the branch is decoded: the target is in the instruction.
    Late,
    /// Wrong until it is executed.
    Wrong,
}

/// Tables that learn.
#[derive(Debug)]
pub(crate) struct Predictor {
    directions: Directions,
    targets: Targets,
    by_history: bool,
    returns: usize,
}

/// What a thread remembers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    history: u128,
    returns: Vec<u64>,
}

impl Predictor {
    /// A predictor that has learnt nothing.
    pub(crate) fn new(spec: &PredictorSpec) -> Self {
        let kind = spec.kind.unwrap_or_default();
        Self {
            directions: Directions::new(kind, spec.size_kib),
            targets: Targets::new(spec.targets.unwrap_or(4096)),
            by_history: kind == PredictorKind::Tage,
            returns: spec.return_stack.unwrap_or(16) as usize,
        }
    }

    /// Predicts a branch at an address and learns what it does; `after` is what follows it.
    pub(crate) fn predict(
        &mut self,
        memory: &mut Memory,
        at: u64,
        after: u64,
        branch: Branch,
    ) -> Prediction {
        let prediction = match branch.turn {
            Turn::Conditional => self.conditional(memory, at, branch),
            Turn::Jump | Turn::Call => self.direct(at, branch),
            Turn::Return => returned(memory, branch),
            Turn::IndirectJump | Turn::IndirectCall => self.indirect(memory, at, branch),
        };
        if matches!(branch.turn, Turn::Call | Turn::IndirectCall) {
            memory.call(after, self.returns);
        }
        prediction
    }

    fn conditional(&mut self, memory: &mut Memory, at: u64, branch: Branch) -> Prediction {
        let taken = self.directions.predict(at, memory.history, branch.taken);
        memory.history = memory.history << 1 | u128::from(branch.taken);
        match (taken == branch.taken, branch.taken) {
            (false, _) => Prediction::Wrong,
            (true, false) => Prediction::Right,
            (true, true) => self.direct(at, branch),
        }
    }

    /// A target that the instruction says: late where it is not known before.
    fn direct(&mut self, at: u64, branch: Branch) -> Prediction {
        match self.targets.learn(at, branch.target) {
            Some(target) if target == branch.target => Prediction::Right,
            _ => Prediction::Late,
        }
    }

    fn indirect(&mut self, memory: &mut Memory, at: u64, branch: Branch) -> Prediction {
        let history = if self.by_history {
            memory.history as u64 & 0xffff
        } else {
            0
        };
        let key = at ^ history.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let known = self.targets.learn(key, branch.target);
        memory.history = memory.history << 2 | u128::from(branch.target >> 2 & 3);
        match known == Some(branch.target) {
            true => Prediction::Right,
            false => Prediction::Wrong,
        }
    }
}

fn returned(memory: &mut Memory, branch: Branch) -> Prediction {
    match memory.returns.pop() == Some(branch.target) {
        true => Prediction::Right,
        false => Prediction::Wrong,
    }
}

impl Memory {
    fn call(&mut self, after: u64, most: usize) {
        if self.returns.len() >= most {
            self.returns.remove(0);
        }
        self.returns.push(after);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(kind: PredictorKind) -> PredictorSpec {
        PredictorSpec {
            size_kib: 8.0,
            per: consort_sim::machine::Scope::Core,
            kind: Some(kind),
            targets: None,
            return_stack: None,
        }
    }

    /// Mispredictions per thousand of the last half of a conditional branch's outcomes.
    fn wrong(kind: PredictorKind, outcomes: &[bool]) -> usize {
        let mut predictor = Predictor::new(&spec(kind));
        let mut memory = Memory::default();
        let mut count = 0;
        for (i, &taken) in outcomes.iter().enumerate() {
            let branch = Branch {
                turn: Turn::Conditional,
                taken,
                target: 0x4000,
            };
            let prediction = predictor.predict(&mut memory, 0x1000, 0x1004, branch);
            count += usize::from(i >= outcomes.len() / 2 && prediction == Prediction::Wrong);
        }
        count * 2000 / outcomes.len()
    }

    const KINDS: [PredictorKind; 3] = [
        PredictorKind::Bimodal,
        PredictorKind::Gshare,
        PredictorKind::Tage,
    ];

    #[test]
    fn a_loop_of_eight_costs_one_in_eight_without_history_and_nothing_with_it() {
        let outcomes: Vec<bool> = (0..8000).map(|i| i % 8 != 7).collect();
        assert_eq!(KINDS.map(|kind| wrong(kind, &outcomes)), [125, 0, 0]);
    }

    #[test]
    fn long_histories_are_for_tagged_tables() {
        let outcomes: Vec<bool> = (0..60_000).map(|i| i % 60 == 59).collect();
        let [bimodal, gshare, tage] = KINDS.map(|kind| wrong(kind, &outcomes));
        assert!(bimodal >= 16 && gshare >= 16, "{bimodal} {gshare}");
        assert!(tage <= 2, "{tage}");
    }

    #[test]
    fn returns_go_where_calls_came_from_as_deep_as_the_stack() {
        let mut predictor = Predictor::new(&spec(PredictorKind::Gshare));
        let mut memory = Memory::default();
        let turn = |turn, target| Branch {
            turn,
            taken: true,
            target,
        };
        for depth in 0..20u64 {
            predictor.predict(&mut memory, depth * 64, depth * 64 + 4, turn(Turn::Call, 0));
        }
        let back = |depth: u64| turn(Turn::Return, depth * 64 + 4);
        let predictions = (0..20)
            .rev()
            .map(|d| predictor.predict(&mut memory, 7, 8, back(d)));
        let right = predictions.filter(|p| *p == Prediction::Right).count();
        assert_eq!(right, 16);
    }

    #[test]
    fn targets_are_late_at_first() {
        let mut predictor = Predictor::new(&spec(PredictorKind::Gshare));
        let mut memory = Memory::default();
        let mut jump = |turn, target| {
            let taken = true;
            let branch = Branch {
                turn,
                taken,
                target,
            };
            predictor.predict(&mut memory, 64, 68, branch)
        };
        assert_eq!(jump(Turn::Jump, 8), Prediction::Late);
        assert_eq!(jump(Turn::Jump, 8), Prediction::Right);
        assert_eq!(jump(Turn::IndirectJump, 16), Prediction::Wrong);
        assert_eq!(jump(Turn::IndirectJump, 16), Prediction::Right);
    }
}
