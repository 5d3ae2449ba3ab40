//! S8: cores that are alike by name and are not: the paper's rule for them, and learning which they
//! are, on and off, on two machines.
//!
//! Keys. Table `headline`: rows `first half over POLICY, CORES cores`. Table `policies`: rows `MACHINE/CORES/POLICY` and `MACHINE/all/POLICY`, for example
//! `one-node/10/core-asymmetry`; columns `stp_over_linux`, `stp_over_symbiotic`,
//! `stp_over_in_node`, `antt_over_linux`, `makespan_over_linux` (geometric means over workloads of
//! the means over runs), `stp`, `unfairness`, `cpi`, `cpi_memory` (of it, waiting for memory and its queues), `away_percent` (of
//! its time that a thread is not on the node of its memory), `migrations_hz` (per thread),
//! `alone_percent` (of the time, in which threads are measured alone). Table `workloads`: rows
//! `MACHINE/CORES/NUMBER/POLICY`; columns `stp_over_linux`, `stp_over_symbiotic`, `stp`. Table
//! `learnt`: rows `MACHINE/CORES/CORE`; columns `node`, `memory_latency_ns`, `disadvantage`,
//! `expected`. Table `programs`: rows `CORES/NUMBER`; column `programs`. Figures `policies`, `learnt`.

mod learnt;
mod notes;

use super::symbiosis::asymmetry::{
    AsymmetryExtent, FIRST_HALF, IN_NODE, LINUX, MACHINES, POLICIES, SYMBIOTIC, SymbiosisTrial,
    SymbiosisTrials,
};
use super::symbiosis::mixes::DrawnMix;
use crate::frame::paired_ratio_cell;
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};
use consort_data::{Cell, Figure, HeadlineTable, ReportTable};
use consort_experiment::ExperimentContext;
use consort_sim::contention::CpiStack;

const QUICK: AsymmetryExtent = AsymmetryExtent {
    cores: &[4],
    mixes: 2,
    runs: 2,
    alone_s: 2.0,
};
const FULL: AsymmetryExtent = AsymmetryExtent {
    cores: &[6, 10],
    mixes: 5,
    runs: 3,
    alone_s: 10.0,
};

/// Runs the study.
pub(super) fn run(
    context: &ExperimentContext<'_>,
    file: &StudyFile,
) -> Result<StudyOutput, StudyError> {
    let trials = SymbiosisTrials::make(&context.by_scale(QUICK, FULL), context)?;
    let learnt = learnt::cores(&trials)?;
    Ok(StudyOutput {
        tables: vec![
            headline(&trials)?,
            policies(file, &trials)?,
            workloads(file, &trials)?,
            learnt::table(file, &learnt)?,
            file.fill_table("programs", trials.mixes.iter().map(programs))?,
        ],
        figures: vec![
            figure(file, &trials)?,
            learnt::figure(file, &learnt, trials.runs)?,
        ],
        notes: notes::machine_notes(&trials, &learnt),
        runs: trials.runs,
    })
}

/// Gains of the rule on the machine with a faster half.
fn headline(trials: &SymbiosisTrials) -> Result<ReportTable, StudyError> {
    let mut headline = HeadlineTable::new()?;
    for (key, group) in trials.groups() {
        let on = match key.as_str() {
            "all" => "all workloads".to_owned(),
            cores => format!("{cores} cores"),
        };
        for over in [SYMBIOTIC, LINUX] {
            let gain = trials.stp_over(0, &group, FIRST_HALF, over);
            let row = format!("first half over {}, {on}", POLICIES[over]);
            headline.add_gain(&row, gain)?;
        }
    }
    Ok(headline.into_table())
}

fn policies(file: &StudyFile, trials: &SymbiosisTrials) -> Result<ReportTable, StudyError> {
    let mut rows = Vec::new();
    for (machine, (name, _)) in MACHINES.iter().enumerate() {
        for (key, group) in trials.groups() {
            for (policy, of) in POLICIES.iter().enumerate() {
                let cells = cells(trials, machine, &group, policy);
                rows.push((format!("{name}/{key}/{of}"), cells));
            }
        }
    }
    file.fill_table("policies", rows)
}

fn cells(trials: &SymbiosisTrials, machine: usize, group: &[usize], policy: usize) -> Vec<Cell> {
    let over = |base| trials.stp_over(machine, group, policy, base);
    let of_linux = |value| trials.over(machine, group, [policy, LINUX], value);
    let mean = |value: fn(&SymbiosisTrial) -> f64| trials.mean_of(machine, group, policy, value);
    vec![
        over(LINUX),
        over(SYMBIOTIC),
        over(IN_NODE),
        of_linux(|o| o.antt),
        of_linux(|o| o.makespan_s),
        mean(|t| t.outcome.stp),
        mean(|t| t.outcome.unfairness),
        mean(|t| t.outcome.cpi()),
        mean(cpi_memory),
        mean(|t| 100.0 * t.outcome.away),
        mean(|t| t.outcome.migration_hz),
        mean(|t| 100.0 * t.heard.alone),
    ]
}

/// Cycles per instruction that wait for memory or in its queues.
fn cpi_memory(trial: &SymbiosisTrial) -> f64 {
    let stack = CpiStack::NAMES.iter().zip(trial.outcome.counters.stack());
    let memory = stack.filter(|(name, _)| ["memory", "queue"].contains(name));
    memory.map(|(_, cpi)| cpi).sum()
}

fn workloads(file: &StudyFile, trials: &SymbiosisTrials) -> Result<ReportTable, StudyError> {
    let mut rows = Vec::new();
    for (machine, (name, _)) in MACHINES.iter().enumerate() {
        for (index, mix) in trials.mixes.iter().enumerate() {
            let stp = |policy| trials.values(machine, index, policy, |o| o.stp);
            for (policy, of) in POLICIES.iter().enumerate() {
                let over = |base| paired_ratio_cell(&stp(policy), &stp(base));
                let mean = trials.mean_of(machine, &[index], policy, |t| t.outcome.stp);
                let cells = vec![over(LINUX), over(SYMBIOTIC), mean];
                rows.push((format!("{name}/{}/{of}", mix.key()), cells));
            }
        }
    }
    file.fill_table("workloads", rows)
}

fn programs(mix: &DrawnMix) -> (String, Vec<Cell>) {
    (mix.key(), vec![mix.names().join(" ").as_str().into()])
}

fn figure(file: &StudyFile, trials: &SymbiosisTrials) -> Result<Figure, StudyError> {
    let (keys, groups): (Vec<String>, Vec<Vec<usize>>) = trials.groups().into_iter().unzip();
    let machines = 0..MACHINES.len();
    let places = machines.flat_map(|machine| groups.iter().map(move |group| (machine, group)));
    let others = (0..POLICIES.len()).filter(|&policy| policy != LINUX);
    let series = others.map(|policy| {
        let places = places.clone();
        let over = places.map(|(machine, group)| trials.stp_over(machine, group, policy, LINUX));
        (POLICIES[policy].to_owned(), over.collect())
    });
    let names = MACHINES.iter();
    let names =
        names.flat_map(|(machine, _)| keys.iter().map(move |key| format!("{machine}/{key}")));
    file.bar_figure("policies", trials.runs, names.collect(), series)
}
