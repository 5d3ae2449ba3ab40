//! Branch predictors: who holds how much of one that several threads use at a time.
//!
//! Storage goes to programs in proportion to what they fill anew. A branch that is predicted
//! right takes nothing from anybody; an entry is taken where a prediction was missing for want of
//! room: what the program mispredicts with half of its storage beyond what it does with the whole
//! predictor. (With half: at the whole of it that is the last octave's.) A program whose mispredictions do not depend on the storage, because it fits or
//! because nothing could predict it, takes nothing however often it branches. Threads that run the
//! same code, at the same addresses, train it for each other. What threads do to each other that
//! use a predictor in turns is the engine's: see `engine/relearn.rs`.

use super::SolverState;
use crate::contention::layout::SharedStructures;
use crate::program::PREDICTOR_KIB;

/// A thread's use of a predictor.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Trainer {
    /// Threads with the same number run the same binary.
    text: u32,
    /// Entries that it fills anew per second, in units that all trainers have in common.
    fills: f64,
    /// Share of its code that threads of its binary share, 0 to 1.
    shared_code: f64,
}

impl SolverState<'_> {
    /// Notes how much of its predictor each thread has.
    pub(super) fn divide_predictors(&mut self, sharing: &SharedStructures<'_>) {
        for (members, kib) in &sharing.predictors {
            if self.rests[members[0]] {
                continue;
            }
            let trainers: Vec<Trainer> =
                members.iter().map(|&i| self.trainer(sharing, i)).collect();
            for (k, &i) in members.iter().enumerate() {
                self.held[i].predictor_kib = kib * part(&trainers, k);
            }
        }
    }

    fn trainer(&self, sharing: &SharedStructures<'_>, i: usize) -> Trainer {
        let setting = &sharing.settings[i];
        // Curves end at their smallest predictor; who has less is held to have that.
        let kib = self.guess[i].predictor_kib.max(2.0 * PREDICTOR_KIB[0]);
        let saved = setting.mispredictions(kib / 2.0) - setting.mispredicted;
        Trainer {
            text: setting.demand.text,
            fills: saved.max(0.0) / self.guess[i].time_s,
            shared_code: setting.demand.shared_code,
        }
    }
}

/// Share of the storage that is of use to thread `k`, 0 to 1.
fn part(trainers: &[Trainer], k: usize) -> f64 {
    let all: f64 = trainers.iter().map(|t| t.fills).sum();
    let own = trainers[k];
    let same = trainers.iter().filter(|t| t.text == own.text);
    let siblings: f64 = same.map(|t| t.fills).sum();
    let useful = own.fills + own.shared_code * (siblings - own.fills);
    if all > 0.0 { useful / all } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn trainers() -> impl Strategy<Value = Vec<Trainer>> {
        let trainer = (0u32..3, 0.0f64..1e9, 0.0f64..=1.0);
        let trainer = trainer.prop_map(|(text, fills, shared_code)| Trainer {
            text,
            fills,
            shared_code,
        });
        prop::collection::vec(trainer, 1..8)
    }

    proptest! {
        #[test]
        fn the_more_strangers_the_less_of_the_predictor(
            trainers in trainers(),
            fills in 0.0f64..1e9,
        ) {
            let stranger = Trainer { text: 9, fills, shared_code: 1.0 };
            let with: Vec<_> = trainers.iter().copied().chain([stranger]).collect();
            for k in 0..trainers.len() {
                prop_assert!(part(&with, k) <= part(&trainers, k) * (1.0 + 1e-12));
            }
        }

        #[test]
        fn siblings_with_all_their_code_in_common_take_nothing_from_each_other(
            fills in prop::collection::vec(1.0f64..1e9, 1..8),
            strangers in 0.0f64..1e9,
        ) {
            let sibling = |&fills: &f64| Trainer { text: 0, fills, shared_code: 1.0 };
            let stranger = Trainer { text: 1, fills: strangers, shared_code: 1.0 };
            let few = [sibling(&fills[0]), stranger];
            let many: Vec<_> = fills.iter().map(sibling).chain([stranger]).collect();
            // They learn together what one learns alone: never less, and all where nobody else is.
            prop_assert!(part(&many, 0) >= part(&few, 0) * (1.0 - 1e-12));
            let alone = &many[..fills.len()];
            prop_assert!((part(alone, 0) - 1.0).abs() < 1e-12);
        }

        #[test]
        fn nobody_has_more_than_the_whole(trainers in trainers()) {
            for k in 0..trainers.len() {
                prop_assert!((0.0..=1.0 + 1e-12).contains(&part(&trainers, k)));
            }
        }
    }
}
