//! The runs of all drawn workloads under all policies, on which S4 to S6 stand.

use super::away::Away;
use super::cells::{interval, ratios};
use super::memo::Memo;
use super::mixes::Mix;
use super::prepare::Prepared;
use super::{NEAR_FIRST_HALF, chip_with_memory};
use crate::context::Context;
use crate::experiment::{Counters, RunResult};
use crate::report::Cell;
use crate::study::StudyError;
use consort_core::stats::RatioInterval;
use std::sync::Arc;

/// The policies, in the order of rows; to add one takes no more than a line.
pub(in crate::studies) const POLICIES: &[&str] = &[
    "random",
    "linux",
    "l1-bandwidth",
    "symbiotic",
    "oracle",
    "symbiotic-in-node",
];
/// Position of what the paper's figures refer to.
pub(in crate::studies) const RANDOM: usize = 0;
/// Position of the default scheduler.
pub(in crate::studies) const LINUX: usize = 1;
/// Position of balanced bandwidth of the L1.
pub(in crate::studies) const L1_BANDWIDTH: usize = 2;
/// Position of the paper's policy, which pairs over the whole chip; the last one pairs inside nodes.
pub(in crate::studies) const SYMBIOTIC: usize = 3;
/// Position of the pairing inside nodes that the truth gives.
pub(in crate::studies) const ORACLE: usize = 4;

/// Cores in use, at the quick and the full scale.
const CORES: [&[usize]; 2] = [&[4, 5], &[4, 5, 6, 7, 8, 9, 10]];
/// Workloads per number of cores.
const MIXES: [usize; 2] = [2, 15];
/// Runs of each workload and policy, with memory near the first half of the cores.
const RUNS: [usize; 2] = [3, 5];
/// The same with memory evenly placed, which stands beside it.
const EVEN_RUNS: [usize; 2] = [2, 3];
/// Time of a program's work alone, s; at the full scale the largest of 4, 10, 30 and 120 with
/// which all runs take less than 1,200 s of processor time (docs/measurements/speed.md).
pub(super) const ALONE_S: [f64; 2] = [2.0, 10.0];

/// What of a run is kept.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::studies) struct Outcome {
    pub stp: f64,
    pub antt: f64,
    pub unfairness: f64,
    pub makespan_s: f64,
    /// Of each program, in the order of the workload.
    pub slowdowns: Vec<f64>,
    /// Threads that came onto another PU, per thread and second.
    pub migration_hz: f64,
    /// Share of its time that a thread is away from the node of its memory, 0 to 1.
    pub away: f64,
    /// All programs together.
    pub counters: Counters,
    /// Host time of a decision, µs: not the same from run to run.
    pub decision_us: f64,
}

impl Outcome {
    pub(super) fn new(run: &RunResult, away: f64) -> Self {
        let mut counters = Counters::default();
        run.programs.iter().for_each(|p| counters.add(&p.counters));
        let thread_s = run.simulated_s * run.programs.len() as f64;
        Self {
            stp: run.stp,
            antt: run.antt,
            unfairness: run.unfairness,
            makespan_s: run.makespan_s,
            slowdowns: run.programs.iter().map(|p| p.slowdown).collect(),
            migration_hz: run.migrations as f64 / thread_s,
            away,
            counters,
            decision_us: run.decision_us.mean,
        }
    }
}

/// A value of a run.
pub(in crate::studies) type Value = fn(&Outcome) -> f64;

/// All runs.
pub(in crate::studies) struct Grid {
    pub mixes: Vec<Mix>,
    /// Runs of each workload and policy.
    pub runs: usize,
    /// By workload, then policy, then run.
    outcomes: Vec<Outcome>,
}

static NEAR_HALF: Memo<Grid> = Memo::new();
static EVEN: Memo<Grid> = Memo::new();

impl Grid {
    /// The runs of this context with memory near the first half of the cores, made once.
    pub fn of(context: &Context<'_>) -> Result<Arc<Self>, StudyError> {
        let runs = context.by_scale(RUNS[0], RUNS[1]);
        NEAR_HALF.get(context, || Self::make(context, NEAR_FIRST_HALF, runs))
    }

    /// The same with memory evenly placed, in fewer runs.
    pub fn even(context: &Context<'_>) -> Result<Arc<Self>, StudyError> {
        let runs = context.by_scale(EVEN_RUNS[0], EVEN_RUNS[1]);
        EVEN.get(context, || Self::make(context, None, runs))
    }

    fn make(
        context: &Context<'_>,
        memory: Option<&[u32]>,
        runs: usize,
    ) -> Result<Self, StudyError> {
        let mixes = mixes(context);
        let alone_s = context.by_scale(ALONE_S[0], ALONE_S[1]);
        let prepared = context.map(&mixes, |mix| {
            let near = Prepared::new(mix, alone_s, context)?;
            Ok(near.on(&chip_with_memory(mix.cores, memory)?))
        })?;
        let prepared: Vec<Prepared> = prepared.into_iter().collect::<Result<_, StudyError>>()?;
        let jobs: Vec<(&Prepared, &str, u64)> = { prepared.iter() }
            .flat_map(|p| jobs(p, runs, context.seed()))
            .collect();
        let outcomes = context.map(&jobs, |(prepared, policy, seed)| {
            let away = Away::new(&prepared.experiment.chip);
            let run = prepared.run(policy, *seed, Box::new(away.clone()))?;
            Ok(Outcome::new(&run, away.share()))
        })?;
        Ok(Self {
            mixes,
            runs,
            outcomes: outcomes.into_iter().collect::<Result<_, StudyError>>()?,
        })
    }

    /// The runs of a workload under a policy.
    pub fn outcomes(&self, mix: usize, policy: usize) -> &[Outcome] {
        let first = (mix * POLICIES.len() + policy) * self.runs;
        &self.outcomes[first..first + self.runs]
    }

    /// A value of each of these runs.
    pub fn values(&self, mix: usize, policy: usize, value: Value) -> Vec<f64> {
        self.outcomes(mix, policy).iter().map(value).collect()
    }

    /// Workloads by number of cores, by the key of their rows, and `all` at the end.
    pub fn groups(&self) -> Vec<(String, Vec<usize>)> {
        let mut groups: Vec<(String, Vec<usize>)> = Vec::new();
        for (index, mix) in self.mixes.iter().enumerate() {
            let key = mix.cores.to_string();
            match groups.last_mut() {
                Some((last, members)) if *last == key => members.push(index),
                _ => groups.push((key, vec![index])),
            }
        }
        groups.push(("all".to_owned(), (0..self.mixes.len()).collect()));
        groups
    }

    /// Mean over workloads of the mean over runs, with the interval over workloads.
    pub fn mean_of(&self, group: &[usize], policy: usize, value: Value) -> Cell {
        let mean = |&mix: &usize| {
            let values = self.values(mix, policy, value);
            values.iter().sum::<f64>() / values.len() as f64
        };
        interval(&group.iter().map(mean).collect::<Vec<_>>())
    }

    /// Geometric mean over workloads of a policy's value over another's, each taken run by run,
    /// with the interval over workloads.
    pub fn ratio_of(&self, group: &[usize], policy: usize, over: usize, value: Value) -> Cell {
        self.ratio_with(group, policy, over, |ours, theirs| {
            value(ours) / value(theirs)
        })
    }

    /// The same of a ratio that is not that of one value.
    pub fn ratio_with(
        &self,
        group: &[usize],
        policy: usize,
        over: usize,
        ratio: impl Fn(&Outcome, &Outcome) -> f64,
    ) -> Cell {
        let of_mix = |&mix: &usize| {
            let pairs = { self.outcomes(mix, policy).iter() }.zip(self.outcomes(mix, over));
            let all: Vec<f64> = pairs.map(|(ours, theirs)| ratio(ours, theirs)).collect();
            RatioInterval::of(&all).map_or(f64::NAN, |ratio| ratio.mean)
        };
        ratios(&group.iter().map(of_mix).collect::<Vec<_>>())
    }
}

/// The drawn workloads for every number of cores.
pub(super) fn mixes(context: &Context<'_>) -> Vec<Mix> {
    let cores = context.by_scale(CORES[0], CORES[1]);
    let count = context.by_scale(MIXES[0], MIXES[1]);
    let draw = |&cores: &usize| Mix::draw_all(context.seed(), cores, count);
    cores.iter().flat_map(draw).collect()
}

fn jobs(
    prepared: &Prepared,
    runs: usize,
    seed: u64,
) -> impl Iterator<Item = (&Prepared, &'static str, u64)> {
    let seeds = (0..runs as u64).map(move |run| seed.wrapping_add(run));
    let of_policy = move |&policy| seeds.clone().map(move |seed| (prepared, policy, seed));
    POLICIES.iter().flat_map(of_policy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_those_of_the_names() {
        let named = [RANDOM, LINUX, L1_BANDWIDTH, SYMBIOTIC, ORACLE].map(|policy| POLICIES[policy]);
        let names = ["random", "linux", "l1-bandwidth", "symbiotic", "oracle"];
        assert_eq!(named, names);
    }

    fn outcome(stp: f64) -> Outcome {
        Outcome {
            stp,
            antt: 1.0,
            unfairness: 1.0,
            makespan_s: 1.0,
            slowdowns: Vec::new(),
            migration_hz: 0.0,
            away: 0.0,
            counters: Counters::default(),
            decision_us: 0.0,
        }
    }

    /// Two workloads, two runs; the throughput counts up in the order of the runs.
    fn grid() -> Grid {
        Grid {
            mixes: [4, 5].map(|cores| Mix::draw_all(1, cores, 1)).concat(),
            runs: 2,
            outcomes: (1..=4 * POLICIES.len())
                .map(|n| outcome(n as f64))
                .collect(),
        }
    }

    #[test]
    fn runs_are_found_by_workload_and_policy() {
        let grid = grid();
        assert_eq!(grid.values(0, LINUX, |o| o.stp), [3.0, 4.0]);
        let first = (2 * POLICIES.len() + 1) as f64;
        assert_eq!(grid.values(1, RANDOM, |o| o.stp), [first, first + 1.0]);
        let keys: Vec<String> = grid.groups().into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, ["4", "5", "all"]);
    }

    #[test]
    fn ratios_are_taken_run_by_run_and_intervals_over_workloads() {
        let grid = grid();
        let cell = grid.ratio_of(&[0], LINUX, RANDOM, |o| o.stp);
        let expect = (3.0f64 / 1.0 * 4.0 / 2.0).sqrt();
        assert!((cell.value().unwrap() - expect).abs() < 1e-12);
        let both = grid.mean_of(&[0, 1], RANDOM, |o| o.stp);
        assert_eq!(both.n(), Some(2));
        let same = grid.ratio_of(&[0, 1], LINUX, LINUX, |o| o.stp);
        assert_eq!(same.value(), Some(1.0));
    }
}
