//! Alignment of quanta together with the same instructions alone.

use crate::train::TrainingRow;
use consort_core::{Sample, Signal};

/// Programs that ran together, by slot.
pub(super) struct CoRunGroup<'a> {
    /// Number of the group's first quantum among the co-runs of the set.
    pub(super) first_co_run: u64,
    pub(super) names: Vec<&'a str>,
    pub(super) alone: Vec<&'a AloneProfile>,
    pub(super) together: &'a [Vec<TrainingQuantum>],
}

/// One quantum of one thread, with the cost of its instructions alone.
struct AlignedQuantum<'a> {
    quantum: &'a TrainingQuantum,
    shares: &'a [f64],
    /// Cycles that the same instructions took alone.
    alone_cycles: f64,
    /// Their normalised stack.
    own: Vec<f64>,
}

impl CoRunGroup<'_> {
    /// One row per thread and quantum in which all threads made progress, after `lead_in` quanta.
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

    /// The rows of a quantum; `None` if a thread made no progress or has no stack.
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

/// Cumulative cycles of a program that runs alone.
#[derive(Clone, Debug, PartialEq)]
pub struct AloneProfile {
    /// Instructions done at each end of a quantum, increasing; the first is 0.
    done: Vec<f64>,
    /// Cycles by component at these ends.
    cycles: Vec<Vec<f64>>,
}

impl AloneProfile {
    /// Sums up quanta. Those before the first known stack take that stack. `None` if there is no
    /// stack or no instruction at all.
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
    /// within quanta. A program that runs beyond its profile has started again.
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

/// Counts of one quantum.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrainingQuantum {
    /// Instructions completed.
    pub instructions: f64,
    /// Cycles on a CPU.
    pub cycles: f64,
    /// Shares of the cycles by component; `None` before every event has been counted once.
    pub shares: Option<Vec<f64>>,
}

impl TrainingQuantum {
    /// Reads a sample; what is not counted is 0. A stack that lacks one of the components counts as
    /// none.
    pub fn from_sample(sample: &Sample, components: &[String]) -> Self {
        let stack = sample.stack.as_ref().map(|(stack, _)| stack);
        let share = |name: &String| stack.and_then(|stack| stack.share(name));
        Self {
            instructions: sample.get(Signal::Instructions).unwrap_or(0.0),
            cycles: sample.get(Signal::Cycles).unwrap_or(0.0),
            shares: components.iter().map(share).collect(),
        }
    }

    /// Cycles by component, with the shares of another quantum if it has none of its own.
    pub(super) fn amounts<'a>(&'a self, others: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
        let shares = self.shares.as_deref().unwrap_or(others);
        shares.iter().map(|share| share * self.cycles)
    }
}

#[cfg(test)]
mod tests {
    use consort_core::{CycleStack, Reading, Tier};
    use proptest::prelude::*;

    use super::*;

    fn quantum(instructions: f64, cycles: f64, base: f64) -> TrainingQuantum {
        TrainingQuantum {
            instructions,
            cycles,
            shares: Some(vec![base, 1.0 - base]),
        }
    }

    #[test]
    fn cycles_are_relative_to_same_instructions_alone() {
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
    fn quanta_with_idle_threads_give_no_rows() {
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

    #[test]
    fn incomplete_stack_is_none() {
        let mut sample = Sample::default();
        let reading = Reading::fully_counted(7.0, Tier::Counters, 1);
        sample.set(Signal::Cycles, reading);
        sample.stack = Some((
            CycleStack::from_amounts([("base", 3.0), ("data", 1.0)]),
            Tier::Counters,
        ));
        let of = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
            TrainingQuantum::from_sample(&sample, &names)
        };
        assert_eq!(of(&["data", "base"]).shares, Some(vec![0.25, 0.75]));
        assert_eq!(of(&["base", "branch"]).shares, None);
        assert_eq!(of(&["base"]).cycles, 7.0);
        assert_eq!(of(&["base"]).instructions, 0.0);
    }
}
