//! The worker process under the live machine: what each of its threads did, and its stack.

use super::plan::{KernelPlan, KernelRun};
use super::worker::WORKER;
use crate::progress;
use anyhow::{Context, Result, bail};
use consort_core::{Machine, Observation, Tier, stack_source};
use consort_linux::enact::{EnactConfig, runtime_dirs};
use consort_linux::enforce::{EnactChoice, EnactorKind};
use consort_linux::live::{Host, LaunchSpec, LiveMachine, WatchRate};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Seek};
use std::process::Command;
use std::time::Duration;

/// Time between two looks at the threads.
const INTERVAL: Duration = Duration::from_millis(100);

/// A thread's deed with its cycle stack.
pub(super) struct KernelObservation {
    pub(super) deed: KernelRun,
    /// Shares by component, in the order of the source; empty when it was never sampled.
    pub(super) stack: Vec<(String, f64)>,
}

/// Stacks over the life of each thread, weighted by its activity.
#[derive(Default)]
struct StackSums {
    by_tid: BTreeMap<u32, Vec<(String, f64)>>,
    tier: Option<Tier>,
}

/// Runs the plan; returns what was done, and where stacks come from.
pub(super) fn run(host: Host, plan: &KernelPlan) -> Result<(Vec<KernelObservation>, &'static str)> {
    let told = tempfile::tempfile().context("cannot make a temporary file")?;
    let mut machine = LiveMachine::launch(host, launch_spec(plan, &told)?)?;
    let progress = progress::start_meter("seconds of training");
    let total = plan.duration().as_secs() as usize;
    let mut stacks = StackSums::default();
    while let Some(seen) = machine.observe()? {
        progress.set_done((seen.time_ns / 1_000_000_000) as usize, total);
        stacks.add(&seen);
    }
    progress.finish();
    let finished = machine.finish();
    if finished.exit_code != 0 {
        bail!(
            "the training programs ended with exit code {}",
            finished.exit_code
        );
    }
    let source = stack_source(stacks.tier.unwrap_or(Tier::Proc));
    Ok((stacks.join_runs(read_runs(told)?), source))
}

fn launch_spec(plan: &KernelPlan, told: &File) -> Result<LaunchSpec> {
    let own = std::env::current_exe().context("cannot find the path of this program")?;
    let mut command = Command::new(own);
    command.arg(WORKER).arg(serde_json::to_string(plan)?);
    command.stdout(told.try_clone()?);
    Ok(LaunchSpec {
        command,
        interval: INTERVAL,
        watch: WatchRate::Full,
        dry_run: true,
        override_affinity: false,
        // Our own kernels do not look at their masks.
        enactors: EnactChoice::Only(EnactorKind::Pin),
        cookies: false,
        pausing: Vec::new(),
        recorded: None,
        enact: EnactConfig {
            guardian_args: vec![crate::commands::manage::GUARDIAN.into()],
            runtime_dirs: runtime_dirs(),
            changes_nothing: false,
        },
    })
}

fn read_runs(mut told: File) -> Result<Vec<KernelRun>> {
    told.rewind()?;
    let lines = BufReader::new(told).lines();
    lines
        .map(|line| Ok(serde_json::from_str(&line?)?))
        .collect()
}

impl StackSums {
    fn add(&mut self, seen: &Observation) {
        for thread in seen.threads.iter().chain(&seen.exited) {
            let Some((stack, tier)) = &thread.sample.stack else {
                continue;
            };
            self.tier = self.tier.max(Some(*tier));
            let sums = self.by_tid.entry(thread.id.tid).or_default();
            let weight = thread.sample.cpu_time_ns();
            for (i, component) in stack.components().iter().enumerate() {
                if sums.len() == i {
                    sums.push((component.name.to_string(), 0.0));
                }
                sums[i].1 += weight * component.share;
            }
        }
    }

    fn join_runs(mut self, deeds: Vec<KernelRun>) -> Vec<KernelObservation> {
        let watched = deeds.into_iter().map(|deed| {
            let mut stack = self.by_tid.remove(&deed.tid).unwrap_or_default();
            let total: f64 = stack.iter().map(|(_, sum)| sum).sum();
            stack.iter_mut().for_each(|(_, sum)| *sum /= total.max(1.0));
            KernelObservation { deed, stack }
        });
        watched.collect()
    }
}
