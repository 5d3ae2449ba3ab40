//! Programs under one mapping, watched by the live machine.

use super::crew::CREW;
use super::plan::{Deed, Plan};
use crate::commands::manage::GUARDIAN;
use crate::commands::map::mappings::Asked;
use anyhow::{Context, Result, bail};
use consort_core::policy::PolicySpec;
use consort_core::{Backoff, ControlLoop, Observation, Signal, Tier, policies};
use consort_linux::enact::{EnactConfig, runtime_dirs};
use consort_linux::enforce::EnactChoice;
use consort_linux::live::{Host, LaunchSpec, Live, Watch};
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
pub(super) struct Run {
    /// Deeds, one for each time that a program ended.
    pub(super) deeds: Vec<Deed>,
    /// Counts by process id.
    pub(super) seen: BTreeMap<u32, Seen>,
    pub(super) tier: Tier,
    pub(super) warnings: Vec<String>,
}

/// Counts of a process over its life.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Seen {
    /// Sums by signal.
    pub(super) sums: BTreeMap<Signal, f64>,
    /// CPU time by cause, ns, where cycle stacks are told.
    pub(super) stack_ns: BTreeMap<String, f64>,
}

/// Runs the plan under a mapping.
pub(super) fn run(host: &Host, plan: &Plan, mapping: &Asked) -> Result<Run> {
    let told = tempfile::tempfile().context("cannot make a temporary file")?;
    let (topology, offers) = (&host.discovery.topology, host.offers());
    let policy = policies::open(topology, &offers, &policy(mapping)?)?;
    let machine = Live::launch(host.clone(), launch_spec(plan, &told)?)?;
    let mut wheel = ControlLoop::new(machine, policy, Backoff::off(), 1);
    let mut seen = BTreeMap::new();
    while let Some(turn) = wheel.turn()? {
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
    warnings.extend(astray(finished.held.adherence));
    Ok(Run {
        deeds: deeds(told)?,
        seen,
        tier: finished.tier,
        warnings,
    })
}

/// Below this share of time in place, what was measured is not the mapping's.
const HELD: f64 = 0.9;

fn astray(adherence: Option<f64>) -> Option<String> {
    let share = adherence.filter(|share| *share < HELD)?;
    Some(format!(
        "threads spent only {:.0} percent of their running time where the mapping has them",
        100.0 * share
    ))
}

fn policy(mapping: &Asked) -> Result<PolicySpec> {
    let text = match mapping {
        Asked::Os => "none".to_owned(),
        other => format!("mapping:map={},active={ACTIVE}", other.name()),
    };
    Ok(text.parse()?)
}

fn launch_spec(plan: &Plan, told: &File) -> Result<LaunchSpec> {
    let own = std::env::current_exe().context("cannot find the path of this program")?;
    let mut command = Command::new(own);
    command.arg(CREW).arg(serde_json::to_string(plan)?);
    command.stdout(told.try_clone()?);
    Ok(LaunchSpec {
        command,
        interval: INTERVAL,
        watch: Watch::Full,
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

fn deeds(mut told: File) -> Result<Vec<Deed>> {
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

fn add(seen: &mut BTreeMap<u32, Seen>, observation: &Observation) {
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
