//! State of the iteration for each thread, and the length of its steps on each core.
//!
//! After a few iterations one error dominates: each changes it by the same factor, a negative one
//! if threads of a core get out of each other's way by turns. With the factor known, the rest of
//! that error is gone in one step (Aitken's extrapolation, of the threads of a core together), and
//! the next error comes to light. Errors of changing sign come back whenever steps are long again,
//! so that they make the steps of their core shorter for good. Where a rate turns sharply at the value
//! that it settles at, extrapolation from one side overshoots to the other again and again, so that
//! it ends after many iterations.

/// Activity of one thread, as estimated by the iteration.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Guess {
    /// Time per instruction, s.
    pub(super) time_s: f64,
    /// Share of time in which it can dispatch.
    pub(super) active: f64,
    /// Share of time in which it waits for memory.
    pub(super) waits: f64,
    /// Share of time in which it dispatches instructions of a wrong path.
    pub(super) wrong_path: f64,
    /// Share of time in which it fetches and has nothing to dispatch yet: from a mispredicted
    /// branch's fetch to its dispatch, and from its result until what follows is dispatched.
    pub(super) refills: f64,
    /// Waiting for locks, s per instruction.
    pub(super) lock_s: f64,
    /// Entries that strangers insert into its branch predictor per branch of its own.
    pub(super) strangers: f64,
    /// Share of its prefetches that find room in a miss queue, 0 to 1.
    pub(super) prefetching: f64,
    /// Instructions in its window while it does not wait for memory, those of a wrong path included.
    pub(super) in_flight: f64,
    /// Share of them that are there because the back end is slower than the front end, 0 to 1.
    pub(super) backed_up: f64,
    /// Instructions in its window without which it is slower.
    pub(super) window_need: f64,
    /// Cycles from dispatch until an operation's operands are ready, on average.
    pub(super) ready_age: f64,
}

impl Guess {
    /// Changes to the next guess: of the time, relative, and of shares of it.
    pub(super) fn change(&self, next: &Self) -> GuessChange {
        [
            (next.time_s - self.time_s) / next.time_s,
            next.active - self.active,
            next.waits - self.waits,
            next.backed_up - self.backed_up,
        ]
    }

    /// Goes a share of the way to the next guess, or farther.
    pub(super) fn approach(&mut self, next: &Self, share: f64) {
        let mix = |old: f64, new: f64| old + share * (new - old);
        let part = |old: f64, new: f64| mix(old, new).clamp(0.0, 1.0);
        *self = Self {
            time_s: mix(self.time_s, next.time_s),
            active: part(self.active, next.active),
            waits: part(self.waits, next.waits),
            wrong_path: part(self.wrong_path, next.wrong_path),
            refills: part(self.refills, next.refills),
            lock_s: mix(self.lock_s, next.lock_s).max(0.0),
            strangers: mix(self.strangers, next.strangers).max(0.0),
            prefetching: part(self.prefetching, next.prefetching),
            in_flight: mix(self.in_flight, next.in_flight).max(0.0),
            window_need: mix(self.window_need, next.window_need).max(0.0),
            ready_age: mix(self.ready_age, next.ready_age).max(0.0),
            backed_up: part(self.backed_up, next.backed_up),
        };
    }
}

/// Change of a guess: of the time per instruction, relative, of the share of time in which the
/// thread is active, of that in which it waits, and of the share of its window that is backed up.
pub(super) type GuessChange = [f64; 4];

/// Largest change from which the remaining error is extrapolated.
const SMALL: f64 = 0.05;
/// Least square of the cosine between two changes that count as one error.
const SAME: f64 = 0.95;
/// Longest step, in plain ones.
const LONGEST: f64 = 4.0;
/// Least length of a core's plain step, in those of the whole iteration.
const SHORTEST: f64 = 0.1;

#[derive(Clone, Debug)]
pub(super) struct CorePace {
    /// Length of a plain step of this core, in those of the whole iteration.
    plain: f64,
    /// Last changes of the core's threads.
    last: Vec<GuessChange>,
    /// Share of them that was made in a plain step; 0 after any other.
    made: f64,
    pub(super) largest: f64,
    /// False once no step is longer than a plain one.
    pub(super) extrapolates: bool,
}

/// Two changes one after the other, as vectors over the threads of a core.
#[derive(Clone, Copy, Debug, Default)]
struct ChangePair {
    /// Square of the later one.
    later: f64,
    /// Square of the earlier one.
    earlier: f64,
    /// Scalar product of both.
    both: f64,
}

impl ChangePair {
    /// The factor between the two, if they are of one error.
    fn factor(self) -> Option<f64> {
        let is_one = self.both * self.both > SAME * self.later * self.earlier;
        is_one.then(|| self.both / self.earlier)
    }
}

impl Default for CorePace {
    fn default() -> Self {
        Self {
            plain: 1.0,
            last: Vec::new(),
            made: 0.0,
            largest: f64::INFINITY,
            extrapolates: true,
        }
    }
}

impl CorePace {
    /// Returns the share of the changes of the core's threads that is to be made, given that of a
    /// plain step of the whole iteration.
    pub(super) fn next_share(
        &mut self,
        plain: f64,
        changes: impl Iterator<Item = GuessChange>,
    ) -> f64 {
        let step = plain * self.plain;
        let pair = self.note_changes(changes);
        let comparable = self.made == step;
        self.made = 0.0;
        match pair.factor().filter(|_| comparable) {
            Some(factor) if factor < 0.0 => {
                self.plain = (self.plain / (1.0 - factor)).max(SHORTEST);
                plain * self.plain
            }
            Some(factor) if self.largest < SMALL => {
                let longest = match self.extrapolates {
                    true => plain * if self.plain < 1.0 { 1.0 } else { LONGEST },
                    false => step,
                };
                (step / (1.0 - factor).max(f64::MIN_POSITIVE)).min(longest)
            }
            _ => {
                self.made = step;
                step
            }
        }
    }

    /// Notes the changes, and compares them with those before.
    fn note_changes(&mut self, changes: impl Iterator<Item = GuessChange>) -> ChangePair {
        let mut pair = ChangePair::default();
        self.largest = 0.0;
        for (at, change) in changes.enumerate() {
            if at == self.last.len() {
                self.last.push(GuessChange::default());
            }
            let last = core::mem::replace(&mut self.last[at], change);
            for (now, last) in change.into_iter().zip(last) {
                self.largest = self.largest.max(now.abs());
                pair.later += now * now;
                pair.earlier += last * last;
                pair.both += now * last;
            }
        }
        pair
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Steps of nine tenths until an error is below a millionth, where the next guess has so many
    /// times the error of this one.
    fn steps(factors: GuessChange) -> usize {
        let mut pace = CorePace::default();
        let mut errors = [0.3, -0.2, 0.1, -0.1];
        let mut count = 0;
        while errors.iter().any(|error: &f64| error.abs() > 1e-6) && count < 1000 {
            let mut changes = errors;
            for (change, factor) in changes.iter_mut().zip(factors) {
                *change *= factor - 1.0;
            }
            let share = pace.next_share(0.9, core::iter::once(changes));
            errors
                .iter_mut()
                .zip(changes)
                .for_each(|(e, c)| *e += share * c);
            count += 1;
        }
        count
    }

    #[test]
    fn alternating_error_vanishes_in_few_steps() {
        // Plain steps of nine tenths leave nine tenths of it with the other sign, or enlarge it.
        assert!(steps([-1.0; 4]) <= 4, "{}", steps([-1.0; 4]));
        assert!(steps([-3.0; 4]) <= 4, "{}", steps([-3.0; 4]));
    }

    #[test]
    fn slow_error_vanishes_in_few_steps() {
        // Plain steps take 31 and 137.
        assert!(steps([0.6; 4]) <= 12, "{}", steps([0.6; 4]));
        assert!(steps([0.9; 4]) <= 60, "{}", steps([0.9; 4]));
    }

    #[test]
    fn error_next_to_a_sharp_turn_vanishes_without_extrapolation() {
        let change = |error: f64| {
            if error < 0.0 {
                0.002 - 0.1 * error
            } else {
                -6.0 * error
            }
        };
        let settles = |extrapolates: bool| {
            let mut pace = CorePace {
                extrapolates,
                ..CorePace::default()
            };
            let mut error = -0.01;
            (0..1000).any(|_| {
                let changes = [change(error), 0.0, 0.0, 0.0];
                error += pace.next_share(0.9, core::iter::once(changes)) * changes[0];
                change(error).abs() < 1e-6
            })
        };
        assert_eq!([true, false].map(settles), [false, true]);
    }

    proptest! {
        #[test]
        fn every_error_vanishes(factors in prop::array::uniform4(-4.0f64..0.8)) {
            prop_assert!(steps(factors) <= 200, "{}", steps(factors));
        }
    }
}
