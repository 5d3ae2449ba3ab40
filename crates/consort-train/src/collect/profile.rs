//! A program alone: cycles by cause against instructions, so that any stretch of it can be told.

use super::quantum::TrainingQuantum;

/// Cumulative cycles of a program that runs alone.
#[derive(Clone, Debug, PartialEq)]
pub struct AloneProfile {
    /// Instructions done at each end of a quantum, increasing; the first is 0.
    done: Vec<f64>,
    /// Cycles by component at these ends.
    cycles: Vec<Vec<f64>>,
}

impl AloneProfile {
    /// Adds quanta up. Those before the first known stack take that stack; nothing when there is
    /// no stack at all, or no instructions.
    pub fn new(quanta: &[TrainingQuantum]) -> Option<Self> {
        let first = quanta.iter().find_map(|q| q.shares.clone())?;
        let mut done = vec![0.0];
        let mut cycles = vec![vec![0.0; first.len()]];
        let mut last = first;
        for quantum in quanta {
            let before = *done.last()?;
            if quantum.instructions <= 0.0 {
                continue;
            }
            let sums = cycles.last()?.iter().zip(quantum.amounts(&last));
            cycles.push(sums.map(|(sum, amount)| sum + amount).collect());
            done.push(before + quantum.instructions);
            last = quantum.shares.clone().unwrap_or(last);
        }
        (done.len() > 1).then_some(Self { done, cycles })
    }

    /// Instructions of the whole profile.
    pub fn instructions(&self) -> f64 {
        self.done.last().copied().unwrap_or(0.0)
    }

    /// Cycles by component that the instructions from `from` to `to` took alone, interpolated
    /// within quanta. A program that goes on beyond its profile has started again.
    pub fn cycles_between(&self, from: f64, to: f64) -> Vec<f64> {
        let (begin, end) = (self.cycles_until(from), self.cycles_until(to));
        end.iter()
            .zip(&begin)
            .map(|(e, b)| (e - b).max(0.0))
            .collect()
    }

    /// Cycles by component of the first `instructions`.
    fn cycles_until(&self, instructions: f64) -> Vec<f64> {
        let whole = self.instructions();
        let rounds = (instructions / whole).floor().max(0.0);
        let rest = instructions - rounds * whole;
        // `done` begins with 0 and ends with the whole, so there is an end on either side.
        let above = self.done.partition_point(|&d| d <= rest);
        let above = above.clamp(1, self.done.len() - 1);
        let (low, high) = (self.done[above - 1], self.done[above]);
        let share = ((rest - low) / (high - low)).clamp(0.0, 1.0);
        let last = &self.cycles[self.cycles.len() - 1];
        let ends = self.cycles[above - 1].iter().zip(&self.cycles[above]);
        ends.zip(last)
            .map(|((low, high), round)| low + share * (high - low) + rounds * round)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn quantum(instructions: f64, cycles: f64, base: f64) -> TrainingQuantum {
        TrainingQuantum {
            instructions,
            cycles,
            shares: Some(vec![base, 1.0 - base]),
        }
    }

    fn two_phases() -> AloneProfile {
        AloneProfile::new(&[quantum(100.0, 100.0, 1.0), quantum(50.0, 100.0, 0.5)]).unwrap()
    }

    #[test]
    fn stretches_are_interpolated_and_programs_start_again() {
        let profile = two_phases();
        assert_eq!(profile.cycles_between(0.0, 100.0), [100.0, 0.0]);
        assert_eq!(profile.cycles_between(100.0, 125.0), [25.0, 25.0]);
        assert_eq!(profile.cycles_between(75.0, 125.0), [50.0, 25.0]);
        assert_eq!(profile.cycles_between(125.0, 200.0), [75.0, 25.0]);
        assert_eq!(profile.cycles_between(150.0, 450.0), [300.0, 100.0]);
    }

    #[test]
    fn quanta_before_the_first_stack_take_it() {
        let early = TrainingQuantum {
            shares: None,
            ..quantum(10.0, 10.0, 0.0)
        };
        let idle = TrainingQuantum::default();
        let profile = AloneProfile::new(&[early.clone(), idle.clone(), quantum(10.0, 20.0, 0.5)]);
        assert_eq!(profile.unwrap().cycles_between(0.0, 10.0), [5.0, 5.0]);
        assert_eq!(AloneProfile::new(&[early]), None);
        assert_eq!(AloneProfile::new(&[idle]), None);
    }

    proptest! {
        #[test]
        fn stretches_add_up(a in 0.0f64..500.0, b in 0.0f64..500.0, c in 0.0f64..500.0) {
            let mut ends = [a, b, c];
            ends.sort_by(f64::total_cmp);
            let profile = two_phases();
            let whole = profile.cycles_between(ends[0], ends[2]);
            let parts = profile.cycles_between(ends[0], ends[1]);
            let rest = profile.cycles_between(ends[1], ends[2]);
            for ((w, p), r) in whole.iter().zip(parts).zip(rest) {
                prop_assert!((w - p - r).abs() < 1e-9 * (1.0 + w));
            }
        }
    }
}
