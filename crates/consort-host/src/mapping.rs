//! Commands under thread mappings, and alone, on this machine.
//!
//! A worker process runs the commands while the live machine observes and places their threads, one
//! mapping after the other. Signals that no tier of this machine offers are absent from the table.

use crate::crew::commands::{CommandExit, CommandPlan};
use crate::crew::{INTERVAL, LiveHost, MAP};
use anyhow::{Result, bail};
use consort_core::mapping::analysis::{
    AloneCharacteristics, AloneCounts, Amount, MappingRow, MappingTable, SharedResource, Usage,
};
use consort_core::policy::PolicySpec;
use consort_core::{Backoff, ControlLoop, Observation, Signal, Tier, policies};
use consort_linux::enforce::EnactChoice;
use std::collections::BTreeMap;

/// Name of the mapping that leaves threads to the operating system.
const OS: &str = "os";

/// Threads that never had this share of a CPU are left alone, the starting process among them.
const ACTIVE: f64 = 0.1;

/// Runs shorter than this many intervals are mostly over before their threads are placed.
const SHORT: f64 = 5.0;

/// Below this share of time in place, the measurement is not the mapping's.
const MIN_ADHERENCE: f64 = 0.9;

const SUMMED: [Signal; 4] = [
    Signal::Cycles,
    Signal::Instructions,
    Signal::LlcMisses,
    Signal::LlcMissCycles,
];

/// Commands to run together under each of some mappings.
#[derive(Debug)]
pub struct MappingSession {
    /// The machine to run on.
    pub live: LiveHost,
    /// Programs with their arguments.
    pub commands: Vec<Vec<String>>,
    /// A name per command, for tables and errors.
    pub names: Vec<String>,
    /// Mappings by the names that the policy `mapping` has for them, or `os`, which leaves threads to the operating system.
    pub mappings: Vec<String>,
    /// Repetitions of each mapping.
    pub runs: u32,
    /// Number of times that each command is to end in a run, at least.
    pub times: u32,
    /// True if the commands' output goes to stderr.
    pub show_output: bool,
}

/// Commands under one mapping, once.
#[derive(Debug)]
pub struct MappingRun {
    exits: Vec<CommandExit>,
    /// Counts by process id.
    counts: BTreeMap<u32, ProcessCounts>,
    tier: Tier,
    warnings: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct ProcessCounts {
    sums: BTreeMap<Signal, f64>,
    /// CPU time by cause, ns, if cycle stacks are observed.
    stack_ns: BTreeMap<String, f64>,
}

/// Results of a session.
#[derive(Debug)]
pub struct LiveMappings {
    /// A row per mapping and program.
    pub table: MappingTable,
    /// A program's characteristics from its run alone, in the order of the commands.
    pub alone: Vec<AloneCharacteristics>,
    /// The richest tier that was used.
    pub tier: Tier,
    /// Mean times of every program, s: by mapping, repetition and program.
    pub times_s: Vec<Vec<Vec<f64>>>,
    /// Notes for readers, sorted.
    pub notes: Vec<String>,
}

impl MappingSession {
    /// Runs each command once alone; `progress` receives the number that is done.
    ///
    /// # Errors
    /// A command that cannot be started or fails, or a machine that cannot be observed.
    pub fn run_alone(&self, progress: &dyn Fn(usize)) -> Result<Vec<MappingRun>> {
        let mut alone = Vec::new();
        for (command, name) in self.commands.iter().zip(&self.names) {
            progress(alone.len());
            let run = self.run_once(vec![command.clone()], 1, OS)?;
            check_exit_codes(&run, std::slice::from_ref(name), "alone")?;
            alone.push(run);
        }
        Ok(alone)
    }

    /// Runs all commands together under each mapping; `progress` receives the number of mappings
    /// that is done.
    ///
    /// # Errors
    /// As for [`MappingSession::run_alone`].
    pub fn run_mappings(&self, progress: &dyn Fn(usize)) -> Result<Vec<Vec<MappingRun>>> {
        let mut all = Vec::new();
        for mapping in &self.mappings {
            progress(all.len());
            let mut runs = Vec::new();
            for _ in 0..self.runs {
                let run = self.run_once(self.commands.clone(), self.times, mapping)?;
                check_exit_codes(&run, &self.names, &format!("under {mapping}"))?;
                runs.push(run);
            }
            all.push(runs);
        }
        Ok(all)
    }

    fn run_once(
        &self,
        commands: Vec<Vec<String>>,
        times: u32,
        mapping: &str,
    ) -> Result<MappingRun> {
        let plan = CommandPlan {
            commands,
            times,
            show_output: self.show_output,
            pus: Vec::new(),
        };
        let spec: PolicySpec = match mapping {
            OS => "none".parse()?,
            name => format!("mapping:map={name},active={ACTIVE}").parse()?,
        };
        let host = &self.live.host;
        let policy = policies::open(&host.discovery.topology, &host.offers(), &spec)?;
        let live = self.live.clone();
        let (machine, results) = live.launch_worker(MAP, &plan, false, EnactChoice::Auto)?;
        let mut control = ControlLoop::new(machine, policy, Backoff::off(), 1);
        let mut counts = BTreeMap::new();
        while let Some(turn) = control.run_turn()? {
            add_counts(&mut counts, &turn.observation);
        }
        let outcome = control.into_machine().finish();
        if outcome.exit_code != 0 {
            bail!(
                "the programs could not be run: exit code {}",
                outcome.exit_code
            );
        }
        let mut warnings = outcome.warnings;
        if !outcome.restored {
            warnings.push("not every mask could be put back".to_owned());
        }
        let adherence = outcome.held.adherence;
        warnings.extend(adherence.filter(|share| *share < MIN_ADHERENCE).map(|share| {
            format!(
                "threads spent only {:.0} percent of their running time where the mapping has them",
                100.0 * share
            )
        }));
        Ok(MappingRun {
            exits: results.read()?,
            counts,
            tier: outcome.tier,
            warnings,
        })
    }

    /// Returns the results of all runs; `runs` has the mappings in their order.
    #[must_use]
    pub fn results(&self, alone: &[MappingRun], runs: &[Vec<MappingRun>]) -> LiveMappings {
        let tier = runs.iter().flatten().map(|run| run.tier).max();
        let tier = tier.unwrap_or(Tier::Proc);
        let pus = self.live.host.discovery.topology.pus().len();
        let mut rows = Vec::new();
        for (mapping, runs) in self.mappings.iter().zip(runs) {
            for (program, name) in self.names.iter().enumerate() {
                let others = self.names.iter().enumerate().filter(|(i, _)| *i != program);
                let others: Vec<&str> = others.map(|(_, other)| other.as_str()).collect();
                rows.extend(mean_usage(runs, program, pus).map(|usage| MappingRow {
                    mapping: mapping.clone(),
                    program: name.clone(),
                    co_runner: others.join("+"),
                    usage,
                }));
            }
        }
        let time_s = |run: &MappingRun, program| {
            let exits = program_exits(std::slice::from_ref(run), program);
            let times: Vec<f64> = exits.map(|exit| exit.wall_s).collect();
            times.iter().sum::<f64>() / times.len() as f64
        };
        let times_s = |run: &MappingRun| (0..self.names.len()).map(|p| time_s(run, p)).collect();
        LiveMappings {
            times_s: { runs.iter() }
                .map(|runs| runs.iter().map(times_s).collect())
                .collect(),
            notes: notes(&rows, tier, runs),
            table: MappingTable { rows },
            alone: alone.iter().map(characteristics).collect(),
            tier,
        }
    }

    /// Returns the reason why some signals are absent from the table.
    #[must_use]
    pub fn uncounted_reason(&self) -> String {
        let tiers = &self.live.host.tiers;
        let counters = tiers.iter().find(|t| t.tier == Tier::Counters);
        match counters.filter(|t| !t.available) {
            Some(tier) => format!(
                "this machine has no hardware counters to offer ({})",
                tier.reason
            ),
            None => "no hardware event that is known for this processor counts it".to_owned(),
        }
    }
}

impl MappingRun {
    /// The longest time from a command's start to its end, s.
    #[must_use]
    pub fn longest_s(&self) -> f64 {
        self.exits
            .iter()
            .map(|exit| exit.wall_s)
            .fold(0.0, f64::max)
    }
}

fn add_counts(counts: &mut BTreeMap<u32, ProcessCounts>, observation: &Observation) {
    for thread in observation.threads.iter().chain(&observation.exited) {
        let process = counts.entry(thread.id.pid).or_default();
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

/// Fails if a program did: it has not done its work, so that its time means nothing.
fn check_exit_codes(run: &MappingRun, names: &[String], mapping: &str) -> Result<()> {
    let failed = run.exits.iter().find(|exit| exit.exit_code != 0);
    match failed.and_then(|exit| Some((exit, names.get(exit.program)?))) {
        Some((exit, name)) => bail!(
            "{name} ended with exit code {} {mapping}; --show-output shows what it says",
            exit.exit_code
        ),
        None => Ok(()),
    }
}

fn notes(rows: &[MappingRow], tier: Tier, runs: &[Vec<MappingRun>]) -> Vec<String> {
    let mut notes = Vec::new();
    if tier == Tier::Counters {
        notes.push("Cycles are counted in user mode.".to_owned());
    }
    let is_short = |row: &&MappingRow| row.usage.time_s < SHORT * INTERVAL.as_secs_f64();
    notes.extend(rows.iter().find(is_short).map(|row| {
        format!(
            "{} took {:.2} s under {}: threads are placed {} ms after they are seen, so that \
             much of such a run is not under the mapping.",
            row.program,
            row.usage.time_s,
            row.mapping,
            INTERVAL.as_millis()
        )
    }));
    for run in runs.iter().flatten() {
        notes.extend(run.warnings.iter().cloned());
    }
    notes.sort();
    notes.dedup();
    notes
}

/// Causes in cycle stacks, as counters and samples name them, with the resource of each.
const CAUSES: [(&str, SharedResource); 2] = [
    ("memory", SharedResource::L2),
    ("front_end", SharedResource::L1i),
];

/// Returns a program's mean use per run, over all times that it ended in `runs`, on a machine of
/// `pus` CPUs; `None` if it never ended. Signals that are not counted are absent: CPU time does not
/// stand in for cycles, nor stall time for misses.
fn mean_usage(runs: &[MappingRun], program: usize, pus: usize) -> Option<Usage> {
    let exits: Vec<&CommandExit> = program_exits(runs, program).collect();
    if exits.is_empty() {
        return None;
    }
    let time_s = exits.iter().map(|exit| exit.wall_s).sum::<f64>() / exits.len() as f64;
    let cpu_s = exits.iter().map(|exit| exit.cpu_s).sum::<f64>() / exits.len() as f64;
    let counts = ProgramCounts::from_runs(runs, program);
    let cycles = counts.mean(|process| process.sums.get(&Signal::Cycles));
    Some(Usage {
        time_s,
        cycles,
        utilisation: Some(cpu_s / (pus as f64 * time_s)),
        amounts: cycles.map_or_else(BTreeMap::new, |cycles| {
            counts.amounts(cycles / (1e9 * cpu_s))
        }),
        memory: None,
    })
}

/// Returns the characteristics of a program, from a run of it alone.
fn characteristics(alone: &MappingRun) -> AloneCharacteristics {
    let alone = std::slice::from_ref(alone);
    let exits: Vec<&CommandExit> = program_exits(alone, 0).collect();
    let runs = exits.len().max(1) as f64;
    let counts = ProgramCounts::from_runs(alone, 0);
    AloneCharacteristics::from(&AloneCounts {
        time_s: exits.iter().map(|exit| exit.wall_s).sum::<f64>() / runs,
        instructions: counts.mean(|process| process.sums.get(&Signal::Instructions)),
        l2_misses: counts.mean(|process| process.sums.get(&Signal::LlcMisses)),
        switches: Some(exits.iter().map(|exit| exit.switches as f64).sum::<f64>() / runs),
        ..AloneCounts::default()
    })
}

fn program_exits(runs: &[MappingRun], program: usize) -> impl Iterator<Item = &CommandExit> {
    let all = runs.iter().flat_map(|run| &run.exits);
    all.filter(move |exit| exit.program == program)
}

/// Counts of the processes in which a program ran to its end.
struct ProgramCounts<'a>(Vec<&'a ProcessCounts>);

impl<'a> ProgramCounts<'a> {
    fn from_runs(runs: &'a [MappingRun], program: usize) -> Self {
        let mut processes = Vec::new();
        for run in runs {
            let exits = run.exits.iter().filter(|exit| exit.program == program);
            processes.extend(exits.filter_map(|exit| run.counts.get(&exit.pid)));
        }
        Self(processes)
    }

    /// Returns the mean of a count per process; `None` if no process has it.
    fn mean(&self, count: impl Fn(&ProcessCounts) -> Option<&f64>) -> Option<f64> {
        let values: Vec<f64> = self.0.iter().filter_map(|p| count(p).copied()).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }

    /// `cycles_per_ns` are in a ns of CPU time.
    fn amounts(&self, cycles_per_ns: f64) -> BTreeMap<SharedResource, Amount> {
        let mut amounts = BTreeMap::new();
        for (cause, resource) in CAUSES {
            if let Some(ns) = self.mean(|process| process.stack_ns.get(cause)) {
                let stall = ns * cycles_per_ns;
                let amount = Amount {
                    used: stall,
                    stall_cycles: Some(stall),
                };
                amounts.insert(resource, amount);
            }
        }
        // Counted misses replace the stall time by cause.
        if let Some(misses) = self.mean(|process| process.sums.get(&Signal::LlcMisses)) {
            let amount = Amount {
                used: misses,
                stall_cycles: self.mean(|process| process.sums.get(&Signal::LlcMissCycles)),
            };
            amounts.insert(SharedResource::L2, amount);
        }
        amounts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_core::Tier;

    fn run(counts: ProcessCounts) -> MappingRun {
        let exit = |program, pid, wall_s, cpu_s| CommandExit {
            program,
            pid,
            wall_s,
            cpu_s,
            switches: 6,
            exit_code: 0,
        };
        MappingRun {
            exits: vec![
                exit(0, 7, 1.0, 1.5),
                exit(1, 8, 9.0, 1.0),
                exit(0, 9, 3.0, 2.5),
            ],
            counts: BTreeMap::from([(7, counts.clone()), (9, counts)]),
            tier: Tier::Proc,
            warnings: Vec::new(),
        }
    }

    #[test]
    fn without_counters_only_times_remain() {
        let mut counts = ProcessCounts::default();
        counts.stack_ns.insert("memory".to_owned(), 1e9);
        let usage = mean_usage(&[run(counts)], 0, 2).unwrap();
        assert_eq!((usage.time_s, usage.cycles), (2.0, None));
        assert_eq!(usage.utilisation, Some(0.5));
        assert!(usage.amounts.is_empty());
    }

    #[test]
    fn counts_are_per_run_and_in_cycles() {
        let mut counts = ProcessCounts::default();
        counts.sums.insert(Signal::Cycles, 6e9);
        counts.stack_ns.insert("memory".to_owned(), 1e9);
        let usage = mean_usage(&[run(counts)], 0, 2).unwrap();
        assert_eq!(usage.cycles, Some(6e9));
        assert_eq!(usage.amounts[&SharedResource::L2].stall_cycles, Some(3e9));
    }

    #[test]
    fn program_that_never_ended_has_no_usage() {
        assert_eq!(mean_usage(&[run(ProcessCounts::default())], 2, 2), None);
    }
}
