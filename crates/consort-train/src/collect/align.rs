//! Quanta together set against the same instructions alone.

use super::profile::AloneProfile;
use super::quantum::TrainingQuantum;
use crate::TrainingRow;

/// Programs that ran together, by slot.
pub(super) struct CoRunGroup<'a> {
    /// Number of the group's first quantum among the co-runs of the set.
    pub(super) first_co_run: u64,
    pub(super) names: Vec<&'a str>,
    pub(super) alone: Vec<&'a AloneProfile>,
    pub(super) together: &'a [Vec<TrainingQuantum>],
}

/// One quantum of one thread, with what its instructions took alone.
struct AlignedQuantum<'a> {
    quantum: &'a TrainingQuantum,
    shares: &'a [f64],
    /// Cycles that the same instructions took alone.
    alone_cycles: f64,
    /// Their normalised stack.
    own: Vec<f64>,
}

impl CoRunGroup<'_> {
    /// One row per thread and quantum in which all threads did something, after `lead_in` quanta.
    pub(super) fn rows(&self, lead_in: usize) -> Vec<TrainingRow> {
        let lengths = self.together.iter().map(Vec::len);
        let mut done = vec![0.0; self.together.len()];
        let mut rows = Vec::new();
        for n in 0..lengths.min().unwrap_or(0) {
            if n >= lead_in {
                rows.extend(self.quantum(n, &done).into_iter().flatten());
            }
            for (done, series) in done.iter_mut().zip(self.together) {
                *done += series[n].instructions;
            }
        }
        rows
    }

    /// The rows of a quantum; none if a thread did nothing or has no stack.
    fn quantum(&self, n: usize, done: &[f64]) -> Option<Vec<TrainingRow>> {
        let threads = self.together.iter().zip(&self.alone).zip(done);
        let aligned: Vec<AlignedQuantum<'_>> = threads
            .map(|((series, alone), &done)| AlignedQuantum::new(&series[n], alone, done))
            .collect::<Option<_>>()?;
        let co_run = self.first_co_run + n as u64;
        let rows = (0..aligned.len()).map(|slot| self.row(co_run, slot, &aligned));
        Some(rows.collect())
    }

    fn row(&self, co_run: u64, slot: usize, aligned: &[AlignedQuantum<'_>]) -> TrainingRow {
        let thread = &aligned[slot];
        let co_runners = || (0..aligned.len()).filter(|&other| other != slot);
        let others = |c: usize| co_runners().map(|other| aligned[other].own[c]).sum();
        let slowdown = thread.quantum.cycles / thread.alone_cycles;
        TrainingRow {
            co_run,
            program: self.names[slot].to_owned(),
            co_runners: co_runners().map(|s| self.names[s].to_owned()).collect(),
            own: thread.own.clone(),
            others: (0..thread.own.len()).map(others).collect(),
            together: thread.shares.iter().map(|s| s * slowdown).collect(),
            measured: thread.shares.to_vec(),
        }
    }
}

impl<'a> AlignedQuantum<'a> {
    fn new(quantum: &'a TrainingQuantum, alone: &AloneProfile, done: f64) -> Option<Self> {
        let shares = quantum.shares.as_deref()?;
        let cycles = alone.cycles_between(done, done + quantum.instructions);
        let alone_cycles: f64 = cycles.iter().sum();
        let there = quantum.instructions > 0.0 && quantum.cycles > 0.0 && alone_cycles > 0.0;
        there.then(|| Self {
            quantum,
            shares,
            alone_cycles,
            own: cycles.iter().map(|c| c / alone_cycles).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quantum(instructions: f64, cycles: f64, base: f64) -> TrainingQuantum {
        TrainingQuantum {
            instructions,
            cycles,
            shares: Some(vec![base, 1.0 - base]),
        }
    }

    #[test]
    fn cycles_together_are_divided_by_those_of_the_same_instructions_alone() {
        // Alone, its second hundred instructions take three times the cycles of the first.
        let first = AloneProfile::new(&[quantum(100.0, 100.0, 1.0), quantum(100.0, 300.0, 0.0)]);
        let second = AloneProfile::new(&[quantum(400.0, 400.0, 0.25)]);
        let (first, second) = (first.unwrap(), second.unwrap());
        let together = [
            vec![quantum(50.0, 100.0, 1.0), quantum(100.0, 400.0, 0.5)],
            vec![quantum(100.0, 100.0, 0.5), quantum(200.0, 400.0, 0.5)],
        ];
        let group = CoRunGroup {
            first_co_run: 10,
            names: vec!["a", "b"],
            alone: vec![&first, &second],
            together: &together,
        };
        let rows = group.rows(1);
        assert_eq!(rows.len(), 2);
        assert!(rows.iter().all(|row| row.co_run == 11));
        // Instructions 50 to 150: 50 cycles of the one kind, 150 of the other.
        assert_eq!(rows[0].own, [0.25, 0.75]);
        assert_eq!(rows[0].others, [0.25, 0.75]);
        assert_eq!(rows[0].together, [1.0, 1.0]);
        assert_eq!(rows[0].measured, [0.5, 0.5]);
        assert_eq!(
            (rows[0].program.as_str(), &rows[0].co_runners[..]),
            ("a", &["b".to_owned()][..])
        );
        assert_eq!(rows[1].together, [1.0, 1.0]);
        assert_eq!(group.rows(0).len(), 4);
    }

    #[test]
    fn quanta_in_which_somebody_did_nothing_teach_nothing() {
        let alone = AloneProfile::new(&[quantum(100.0, 100.0, 1.0)]).unwrap();
        let without_stack = TrainingQuantum {
            shares: None,
            ..quantum(1.0, 1.0, 1.0)
        };
        let together = [
            vec![quantum(10.0, 10.0, 1.0), quantum(10.0, 10.0, 1.0)],
            vec![TrainingQuantum::default(), without_stack],
        ];
        let group = CoRunGroup {
            first_co_run: 10,
            names: vec!["a", "a"],
            alone: vec![&alone, &alone],
            together: &together,
        };
        assert!(group.rows(0).is_empty());
    }
}
