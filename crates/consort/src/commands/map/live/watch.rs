//! Programs under one mapping, watched by the live machine.

use super::plan::{ProgramExit, ProgramPlan};
use super::program_runner::CREW;
use crate::commands::manage::GUARDIAN;
use crate::commands::map::mappings::MappingChoice;
use anyhow::{Context, Result, bail};
use consort_core::policy::PolicySpec;
use consort_core::{Backoff, ControlLoop, Observation, Signal, Tier, policies};
use consort_linux::enact::{EnactConfig, runtime_dirs};
use consort_linux::enforce::EnactChoice;
use consort_linux::live::{Host, LaunchSpec, LiveMachine, WatchRate};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Seek};
use std::process::Command;
use std::time::Duration;

/// Time between two looks at the threads, each of which places them.
pub(super) const INTERVAL: Duration = Duration::from_millis(100);

/// Threads that never had this share of a PU are left alone, the starting process among them.
const ACTIVE: f64 = 0.1;

/// Work of the programs under a mapping.
#[derive(Debug)]
pub(super) struct MappingRun {
    /// Deeds, one for each time that a program ended.
    pub(super) deeds: Vec<ProgramExit>,
    /// Counts by process id.
    pub(super) seen: BTreeMap<u32, ProcessCounts>,
    pub(super) tier: Tier,
    pub(super) warnings: Vec<String>,
}

/// Counts of a process over its life.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ProcessCounts {
    /// Sums by signal.
    pub(super) sums: BTreeMap<Signal, f64>,
    /// CPU time by cause, ns, where cycle stacks are told.
    pub(super) stack_ns: BTreeMap<String, f64>,
}

/// Runs the plan under a mapping.
pub(super) fn run(host: &Host, plan: &ProgramPlan, mapping: &MappingChoice) -> Result<MappingRun> {
    let told = tempfile::tempfile().context("cannot make a temporary file")?;
    let (topology, offers) = (&host.discovery.topology, host.offers());
    let policy = policies::open(topology, &offers, &policy(mapping)?)?;
    let machine = LiveMachine::launch(host.clone(), launch_spec(plan, &told)?)?;
    let mut wheel = ControlLoop::new(machine, policy, Backoff::off(), 1);
    let mut seen = BTreeMap::new();
    while let Some(turn) = wheel.run_turn()? {
        add(&mut seen, &turn.observation);
    }
    let finished = wheel.into_machine().finish();
    if finished.exit_code != 0 {
        bail!(
            "the programs could not be run: exit code {}",
            finished.exit_code
        );
    }
    let mut warnings = finished.warnings;
    if !finished.restored {
        warnings.push("not every mask could be put back".to_owned());
    }
    warnings.extend(adherence_warning(finished.held.adherence));
    Ok(MappingRun {
        deeds: read_exits(told)?,
        seen,
        tier: finished.tier,
        warnings,
    })
}

/// Below this share of time in place, what was measured is not the mapping's.
const HELD: f64 = 0.9;

fn adherence_warning(adherence: Option<f64>) -> Option<String> {
    let share = adherence.filter(|share| *share < HELD)?;
    Some(format!(
        "threads spent only {:.0} percent of their running time where the mapping has them",
        100.0 * share
    ))
}

fn policy(mapping: &MappingChoice) -> Result<PolicySpec> {
    let text = match mapping {
        MappingChoice::Os => "none".to_owned(),
        other => format!("mapping:map={},active={ACTIVE}", other.name()),
    };
    Ok(text.parse()?)
}

fn launch_spec(plan: &ProgramPlan, told: &File) -> Result<LaunchSpec> {
    let own = std::env::current_exe().context("cannot find the path of this program")?;
    let mut command = Command::new(own);
    command.arg(CREW).arg(serde_json::to_string(plan)?);
    command.stdout(told.try_clone()?);
    Ok(LaunchSpec {
        command,
        interval: INTERVAL,
        watch: WatchRate::Full,
        dry_run: false,
        override_affinity: false,
        enactors: EnactChoice::Auto,
        cookies: false,
        pausing: Vec::new(),
        recorded: None,
        enact: EnactConfig {
            guardian_args: vec![GUARDIAN.into()],
            runtime_dirs: runtime_dirs(),
            changes_nothing: false,
        },
    })
}

fn read_exits(mut told: File) -> Result<Vec<ProgramExit>> {
    told.rewind()?;
    let lines = BufReader::new(told).lines();
    lines
        .map(|line| Ok(serde_json::from_str(&line?)?))
        .collect()
}

/// Signals that are summed.
const SUMMED: [Signal; 4] = [
    Signal::Cycles,
    Signal::Instructions,
    Signal::LlcMisses,
    Signal::LlcMissCycles,
];

fn add(seen: &mut BTreeMap<u32, ProcessCounts>, observation: &Observation) {
    for thread in observation.threads.iter().chain(&observation.exited) {
        let process = seen.entry(thread.id.pid).or_default();
        for signal in SUMMED {
            if let Some(value) = thread.sample.get(signal) {
                *process.sums.entry(signal).or_default() += value;
            }
        }
        let Some((stack, _)) = &thread.sample.stack else {
            continue;
        };
        for part in stack.components() {
            let ns = process.stack_ns.entry(part.name.to_string()).or_default();
            *ns += part.share * thread.sample.cpu_time_ns();
        }
    }
}
