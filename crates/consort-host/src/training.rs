//! Training runs: kernels alone and in pairs on the CPUs of one core.
//!
//! A worker process runs the kernels while the live machine observes its threads. Every kernel has
//! a thread for its time alone and one for its time together, so that the samples of the two never
//! mix. Slices of the two alternate, because the speed of a host may change by half within minutes.
//! Kernels do the same all the time, so any stretch alone may stand for the instructions of any
//! stretch together; progress is counted in their units.

use crate::crew::LiveHost;
use crate::crew::kernels::{
    KernelSeat, KernelThreads, SharedKernel, build_kernel, check_kernel, pin_thread,
};
use crate::crew::{TRAIN, write_line};
use anyhow::{Result, bail};
use consort_core::{Machine, Observation, PuId, ThreadObservation, Tier, stack_source};
use consort_experiment::train::TrainingRow;
use consort_kernels::KernelSetup;
use consort_kernels::caches::CacheSizes;
use consort_linux::enforce::{EnactChoice, EnactorKind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Kernels that there are training runs of: one per part of the processor.
pub const PROGRAMS: [&str; 10] = [
    "int", "fp", "vector", "l1", "l2", "llc", "dram", "stream", "branchy", "bigcode",
];

/// Length of a slice: long against a kernel's unit, short against changes of the host's speed.
const SLICE: Duration = Duration::from_millis(20);

/// Kernels to run in pairs, where and how long.
#[derive(Debug, Serialize, Deserialize)]
pub struct KernelPlan {
    /// Names of the kernels, among [`PROGRAMS`].
    pub programs: Vec<String>,
    /// The CPU of each member of a pair.
    pub pus: [PuId; 2],
    /// Length of a slice, ms.
    pub slice_ms: u64,
    /// Slices of each member alone, and as many of both together.
    pub rounds: u64,
}

/// Work of one thread: a kernel in one slot of one pair, alone or together.
#[derive(Debug, Serialize, Deserialize)]
struct KernelRun {
    tid: u32,
    /// Index of the pair in [`KernelPlan::pairs`].
    pair: usize,
    slot: usize,
    together: bool,
    program: String,
    co_runner: String,
    units: u64,
    /// CPU time for the units, ns.
    cpu_ns: u64,
}

impl KernelPlan {
    /// Returns the plan for some time alone, and as much together.
    #[must_use]
    pub fn new(programs: Vec<String>, pus: [PuId; 2], time: Duration) -> Self {
        let rounds = time.as_nanos().div_ceil(SLICE.as_nanos()) as u64;
        Self {
            programs,
            pus,
            slice_ms: SLICE.as_millis() as u64,
            rounds: rounds.max(1),
        }
    }

    /// All pairs by number of program, those of a program with itself included.
    #[must_use]
    pub fn pairs(&self) -> Vec<[usize; 2]> {
        pairs(self.programs.len())
    }

    /// Time of all slices: each member alone in turn, then both.
    fn duration(&self) -> Duration {
        let slices = 3 * self.rounds * self.pairs().len() as u64;
        Duration::from_millis(slices * self.slice_ms)
    }
}

/// All pairs of so many programs by number, those of a program with itself included.
pub(crate) fn pairs(n: usize) -> Vec<[usize; 2]> {
    (0..n).flat_map(|a| (a..n).map(move |b| [a, b])).collect()
}

/// Carries out a plan in a worker process and writes a [`KernelRun`] per thread to stdout.
pub(crate) fn run_plan(plan: &KernelPlan) -> Result<()> {
    // Memory belongs to the node that touches it first, so kernels are built on a CPU of their
    // core.
    pin_thread(plan.pus[0])?;
    let setup = KernelSetup {
        caches: CacheSizes::read(Path::new("/")),
        ..KernelSetup::default()
    };
    let build_all = || -> Result<Vec<SharedKernel>> {
        let names = plan.programs.iter();
        names.map(|name| build_kernel(name, &setup)).collect()
    };
    let slots = [build_all()?, build_all()?];
    let mut out = std::io::stdout().lock();
    for (number, pair) in plan.pairs().into_iter().enumerate() {
        let members = [&slots[0][pair[0]], &slots[1][pair[1]]];
        for run in run_pair(plan, number, pair, members)? {
            write_line(&mut out, &run)?;
        }
    }
    for kernels in &slots {
        for (kernel, name) in kernels.iter().zip(&plan.programs) {
            check_kernel(name, kernel)?;
        }
    }
    Ok(())
}

/// Runs each member alone in turn, then both, round after round.
fn run_pair(
    plan: &KernelPlan,
    pair: usize,
    programs: [usize; 2],
    members: [&SharedKernel; 2],
) -> Result<Vec<KernelRun>> {
    let roles = [(0, false), (1, false), (0, true), (1, true)];
    let seats = roles.map(|(slot, _)| KernelSeat {
        pu: plan.pus[slot],
        kernels: vec![members[slot]],
    });
    let mut runs = roles.map(|(slot, together)| KernelRun {
        tid: 0,
        pair,
        slot,
        together,
        program: plan.programs[programs[slot]].clone(),
        co_runner: plan.programs[programs[1 - slot]].clone(),
        units: 0,
        cpu_ns: 0,
    });
    let slice = Duration::from_millis(plan.slice_ms);
    KernelThreads::run(&seats, |threads| {
        for _ in 0..plan.rounds {
            for seats in [&[0][..], &[1], &[2, 3]] {
                let works = threads.run_slice(seats, 0, slice, Duration::ZERO)?;
                for (&seat, work) in seats.iter().zip(works) {
                    let run = &mut runs[seat];
                    run.tid = work.tid;
                    run.units += work.units;
                    run.cpu_ns += work.cpu_ns;
                }
            }
        }
        Ok(())
    })?;
    Ok(runs.into())
}

struct KernelObservation {
    run: KernelRun,
    /// Shares by component, in the order of the source; empty if the thread was never sampled.
    stack: NamedStack,
}

/// Results of training runs.
#[derive(Debug)]
pub struct TrainingRuns {
    /// A row for every member of a pair whose threads all worked and were sampled.
    pub rows: Vec<TrainingRow>,
    /// The source of the cycle stacks, in words.
    pub stack_source: &'static str,
}

/// Runs a plan on this machine; `components` are those of its cycle stacks. `progress` receives
/// the time that has passed, s, and its total.
///
/// # Errors
/// A worker that cannot be started or fails, or a machine that cannot be observed.
pub fn train(
    live: LiveHost,
    plan: &KernelPlan,
    components: &[String],
    progress: &dyn Fn(usize, usize),
) -> Result<TrainingRuns> {
    // Nothing is moved, because the worker pins its threads itself; its kernels do not read their masks.
    let enactors = EnactChoice::Only(EnactorKind::Pin);
    let (mut machine, results) = live.launch_worker(TRAIN, plan, true, enactors)?;
    let total = plan.duration().as_secs() as usize;
    let mut stacks = StackSums::default();
    while let Some(observation) = machine.observe()? {
        progress((observation.time_ns / 1_000_000_000) as usize, total);
        stacks.add(&observation, |thread| Some(thread.id.tid));
    }
    let outcome = machine.finish();
    if outcome.exit_code != 0 {
        bail!(
            "the training programs ended with exit code {}",
            outcome.exit_code
        );
    }
    let mut observations = Vec::new();
    for run in results.read::<KernelRun>()? {
        let stack = stacks.by_key.remove(&run.tid).unwrap_or_default();
        observations.push(KernelObservation {
            stack: shares(stack),
            run,
        });
    }
    Ok(TrainingRuns {
        rows: training_rows(&observations, components),
        stack_source: stack_source(stacks.tier.unwrap_or(Tier::Proc)),
    })
}

/// Components of a stack by name, in the order of the source.
pub(crate) type NamedStack = Vec<(String, f64)>;

/// Divides a stack by its sum.
pub(crate) fn shares(mut stack: NamedStack) -> NamedStack {
    let total: f64 = stack.iter().map(|(_, sum)| sum).sum();
    for (_, sum) in &mut stack {
        *sum /= total.max(1.0);
    }
    stack
}

/// Returns the shares of these components; `None` if one is missing or nothing was sampled.
pub(crate) fn shares_of(stack: &NamedStack, components: &[String]) -> Option<Vec<f64>> {
    let mut shares = Vec::with_capacity(components.len());
    for name in components {
        shares.push(stack.iter().find(|(n, _)| n == name)?.1);
    }
    (shares.iter().sum::<f64>() > 0.0).then_some(shares)
}

/// Stacks of groups of threads over their lives, weighted by their activity.
#[derive(Default)]
pub(crate) struct StackSums {
    pub(crate) by_key: BTreeMap<u32, NamedStack>,
    pub(crate) tier: Option<Tier>,
}

impl StackSums {
    /// Adds the threads of an observation, each to the group that `key` has for it, if any.
    pub(crate) fn add(
        &mut self,
        observation: &Observation,
        key: impl Fn(&ThreadObservation) -> Option<u32>,
    ) {
        for thread in observation.threads.iter().chain(&observation.exited) {
            let (Some((stack, tier)), Some(key)) = (&thread.sample.stack, key(thread)) else {
                continue;
            };
            self.tier = self.tier.max(Some(*tier));
            let sums = self.by_key.entry(key).or_default();
            let weight = thread.sample.cpu_time_ns();
            for (i, component) in stack.components().iter().enumerate() {
                if sums.len() == i {
                    sums.push((component.name.to_string(), 0.0));
                }
                sums[i].1 += weight * component.share;
            }
        }
    }
}

impl KernelObservation {
    /// Units per ns of CPU time; `None` if no work was done.
    fn speed(&self) -> Option<f64> {
        let run = &self.run;
        let worked = run.units > 0 && run.cpu_ns > 0;
        worked.then(|| run.units as f64 / run.cpu_ns as f64)
    }
}

/// Returns a row for every member of a pair; pairs with a thread that did nothing or was never
/// sampled have none.
fn training_rows(observations: &[KernelObservation], components: &[String]) -> Vec<TrainingRow> {
    let together = observations.iter().filter(|o| o.run.together);
    together
        .filter_map(|member| training_row(observations, member, components))
        .collect()
}

fn training_row(
    observations: &[KernelObservation],
    member: &KernelObservation,
    components: &[String],
) -> Option<TrainingRow> {
    let (pair, slot) = (member.run.pair, member.run.slot);
    let alone = |slot| {
        let is_alone = |run: &KernelRun| run.pair == pair && run.slot == slot && !run.together;
        observations.iter().find(|o| is_alone(&o.run))
    };
    let (own, other) = (alone(slot)?, alone(1 - slot)?);
    let slowdown = own.speed()? / member.speed()?;
    let measured = shares_of(&member.stack, components)?;
    Some(TrainingRow {
        co_run: pair as u64,
        program: member.run.program.clone(),
        co_runners: vec![member.run.co_runner.clone()],
        own: shares_of(&own.stack, components)?,
        others: shares_of(&other.stack, components)?,
        // On the scale of the same work alone, so that the sum is the slowdown.
        together: measured.iter().map(|share| share * slowdown).collect(),
        measured,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_pairs_run_for_the_given_time() {
        let programs = ["a", "b", "c"].map(str::to_owned).to_vec();
        let plan = KernelPlan::new(programs, [PuId(0), PuId(1)], Duration::from_millis(90));
        assert_eq!(
            plan.pairs(),
            [[0, 0], [0, 1], [0, 2], [1, 1], [1, 2], [2, 2]]
        );
        assert_eq!(plan.rounds, 5);
        assert_eq!(plan.duration(), Duration::from_millis(6 * 3 * 100));
    }

    fn observed(slot: usize, together: bool, units: u64, memory: f64) -> KernelObservation {
        let name = |slot: usize| ["fp", "dram"][slot].to_owned();
        KernelObservation {
            run: KernelRun {
                tid: 0,
                pair: 7,
                slot,
                together,
                program: name(slot),
                co_runner: name(1 - slot),
                units,
                cpu_ns: 1000,
            },
            stack: vec![
                ("base".to_owned(), 1.0 - memory),
                ("memory".to_owned(), memory),
            ],
        }
    }

    #[test]
    fn cycles_together_scale_with_the_slowdown() {
        let all = [
            observed(0, false, 100, 0.0),
            observed(1, false, 50, 1.0),
            observed(0, true, 50, 0.25),
            observed(1, true, 40, 1.0),
        ];
        let rows = training_rows(&all, &["base".to_owned(), "memory".to_owned()]);
        assert_eq!(rows[0].own, [1.0, 0.0]);
        assert_eq!(rows[0].others, [0.0, 1.0]);
        assert_eq!(rows[0].together, [1.5, 0.5]);
        assert_eq!(rows[0].measured, [0.75, 0.25]);
        assert_eq!((rows[1].co_run, rows[1].slowdown()), (7, 1.25));
    }

    #[test]
    fn pair_with_an_unknown_has_no_row() {
        let components = ["base".to_owned(), "memory".to_owned()];
        let mut all = vec![
            observed(0, false, 100, 0.0),
            observed(1, false, 50, 1.0),
            observed(0, true, 50, 0.25),
        ];
        assert_eq!(training_rows(&all, &components).len(), 1);
        all[2].run.units = 0;
        assert!(training_rows(&all, &components).is_empty());
        all[2].run.units = 1;
        all[1].stack.clear();
        assert!(training_rows(&all, &components).is_empty());
        assert!(training_rows(&all, &["branch".to_owned()]).is_empty());
    }
}
