//! Mappings of commands on this machine.
//!
//! A process of its own starts the programs ([`program_runner`]) while the live machine watches and places
//! their threads ([`watch`]), one mapping after the other. What no tier of this machine tells is
//! left out of the table, and the report says which questions that keeps from an answer.

mod commands;
mod plan;
mod program_runner;
mod program_usage;
mod watch;

use super::mappings::{MappingChoice, parse_mappings};
use super::{MappingFindings, duration_notice, misplaced_option, thresholds};
use crate::cli::MapArgs;
use crate::failure::{bad_input, say};
use crate::{host, progress};
use anyhow::{Result, bail};
use consort_core::Tier;
use consort_core::mapping::analysis::{AloneCharacteristics, MappingRow, MappingTable};
use consort_lab::mapping::Analysis;
use consort_linux::live::Host;
use plan::ProgramPlan;
pub(crate) use program_runner::{CREW, run_plan_argument};
use watch::{INTERVAL, MappingRun};

/// Runs shorter than this many intervals are mostly over before their threads are placed.
const SHORT: f64 = 5.0;

/// Everything that is to be run.
struct MappingSession<'a> {
    args: &'a MapArgs,
    host: Host,
    commands: Vec<Vec<String>>,
    names: Vec<String>,
    mappings: Vec<MappingChoice>,
}

pub(super) fn run_mappings(args: &MapArgs) -> Result<MappingFindings> {
    let wanted = "--command for each program, or --machine with a described machine";
    if args.workload.is_some() {
        return Err(misplaced_option(
            "--workload runs on simulated machines",
            wanted,
        ));
    }
    if args.command.is_empty() {
        return Err(misplaced_option("there is nothing to run", wanted));
    }
    let commands = commands::parse(&args.command)?;
    let host = host::discover_host(None)?;
    let threads = threads(args, commands.len())?;
    let (mappings, count) = parse_mappings(
        &args.mappings,
        args.bound,
        &host.discovery.topology,
        &threads,
    )?;
    let session = MappingSession {
        args,
        host,
        names: commands::names(&commands),
        commands,
        mappings,
    };
    session.run_all(count)
}

fn threads(args: &MapArgs, commands: usize) -> Result<Vec<usize>> {
    match args.threads.len() {
        0 => Ok(vec![1; commands]),
        given if given == commands => Ok(args.threads.clone()),
        given => Err(bad_input(format!(
            "--threads names {given} numbers for {commands} commands; give one for each"
        ))),
    }
}

impl MappingSession<'_> {
    fn run_all(&self, count: Option<usize>) -> Result<MappingFindings> {
        self.announce_runs();
        let progress = progress::start_meter("programs alone and mappings");
        let total = self.mappings.len() + self.commands.len();
        let mut alone = Vec::new();
        for (command, name) in self.commands.iter().zip(&self.names) {
            progress.set_done(alone.len(), total);
            let plan = self.plan(vec![command.clone()], 1);
            let run = watch::run(&self.host, &plan, &MappingChoice::Os)?;
            alone.push(check_exit_codes(run, std::slice::from_ref(name), "alone")?);
        }
        self.announce_duration(&alone);
        let mut runs = Vec::new();
        for mapping in &self.mappings {
            progress.set_done(alone.len() + runs.len(), total);
            runs.push(self.run_mapping(mapping)?);
        }
        progress.finish();
        Ok(self.findings(count, &runs, &alone))
    }

    fn announce_runs(&self) {
        let (mappings, runs) = (self.mappings.len(), self.args.runs);
        say(&format!(
            "map: each of {} programs once alone, then all under {mappings} mappings, {runs} times \
             each; how long that takes is told when they have run alone",
            self.commands.len(),
        ));
    }

    /// Announces the time that the longest program takes alone, for all its runs; beside others it
    /// may take longer.
    fn announce_duration(&self, alone: &[MappingRun]) {
        let walls = alone
            .iter()
            .flat_map(|run| &run.deeds)
            .map(|deed| deed.wall_s);
        let longest_s = walls.fold(0.0, f64::max);
        let often = self.mappings.len() * (self.args.runs * self.args.times) as usize;
        say(&duration_notice(longest_s * often as f64));
    }

    fn findings(
        &self,
        count: Option<usize>,
        runs: &[Vec<MappingRun>],
        alone: &[MappingRun],
    ) -> MappingFindings {
        let tier = runs.iter().flatten().map(|run| run.tier).max();
        let tier = tier.unwrap_or(Tier::Proc);
        let alike: Vec<AloneCharacteristics> =
            alone.iter().map(program_usage::characteristics).collect();
        let analysis = Analysis::new(
            self.mappings.iter().map(MappingChoice::name).collect(),
            self.table(runs),
            self.names.iter().cloned().zip(alike).collect(),
            &thresholds(self.args),
            &self.reason(),
        );
        MappingFindings {
            machine: self.machine(),
            workload: self.names.join("+"),
            tier: tier.to_string(),
            count,
            notes: self.notes(&analysis.table, tier, runs),
            analysis,
        }
    }

    fn machine(&self) -> String {
        let offers = self.host.offers();
        let pus = self.host.discovery.topology.pus().len();
        format!("this machine ({}, {pus} PUs)", offers.machine())
    }

    fn plan(&self, commands: Vec<Vec<String>>, times: u32) -> ProgramPlan {
        ProgramPlan {
            commands,
            times,
            show_output: self.args.show_output,
        }
    }

    fn run_mapping(&self, mapping: &MappingChoice) -> Result<Vec<MappingRun>> {
        let plan = self.plan(self.commands.clone(), self.args.times);
        let once = |_| {
            let run = watch::run(&self.host, &plan, mapping)?;
            check_exit_codes(run, &self.names, &format!("under {}", mapping.name()))
        };
        (0..self.args.runs).map(once).collect()
    }

    fn table(&self, runs: &[Vec<MappingRun>]) -> MappingTable {
        let pus = self.host.discovery.topology.pus().len();
        let mut rows = Vec::new();
        for (mapping, runs) in self.mappings.iter().zip(runs) {
            for (program, name) in self.names.iter().enumerate() {
                let others = self.names.iter().enumerate().filter(|(i, _)| *i != program);
                let others: Vec<&str> = others.map(|(_, other)| other.as_str()).collect();
                rows.extend(
                    program_usage::usage(runs, program, pus).map(|usage| MappingRow {
                        mapping: mapping.name(),
                        program: name.clone(),
                        co_runner: others.join("+"),
                        usage,
                    }),
                );
            }
        }
        MappingTable { rows }
    }

    /// Returns the reason why something is not counted.
    fn reason(&self) -> String {
        let counters = self.host.tiers.iter().find(|t| t.tier == Tier::Counters);
        match counters.filter(|t| !t.available) {
            Some(tier) => format!(
                "this machine has no hardware counters to offer ({})",
                tier.reason
            ),
            None => "no hardware event that is known for this processor tells it".to_owned(),
        }
    }

    fn notes(&self, table: &MappingTable, tier: Tier, runs: &[Vec<MappingRun>]) -> Vec<String> {
        let mut notes = Vec::new();
        if tier == Tier::Counters {
            notes.push("Cycles are counted in user mode.".to_owned());
        }
        let short = |row: &&MappingRow| row.usage.time_s < SHORT * INTERVAL.as_secs_f64();
        notes.extend(table.rows.iter().find(short).map(|row| {
            format!(
                "{} took {:.2} s under {}: threads are placed {} ms after they are seen, so that \
                 much of such a run is not under the mapping.",
                row.program,
                row.usage.time_s,
                row.mapping,
                INTERVAL.as_millis()
            )
        }));
        let warnings = runs
            .iter()
            .flatten()
            .flat_map(|run| run.warnings.iter().cloned());
        notes.extend(warnings);
        notes.sort();
        notes.dedup();
        notes
    }
}

/// A program that fails has not done its work, so that its time means nothing.
fn check_exit_codes(run: MappingRun, names: &[String], mapping: &str) -> Result<MappingRun> {
    let failed = run.deeds.iter().find(|deed| deed.exit_code != 0);
    match failed.and_then(|deed| Some((deed, names.get(deed.program)?))) {
        Some((deed, name)) => bail!(
            "{name} ended with exit code {} {mapping}; --show-output shows what it says",
            deed.exit_code
        ),
        None => Ok(run),
    }
}
