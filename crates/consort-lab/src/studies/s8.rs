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
    Extent, FIRST_HALF, IN_NODE, LINUX, MACHINES, POLICIES, SYMBIOTIC, Trial, Trials,
};
use super::symbiosis::cells::ratio;
use crate::study::bar;
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};
use consort_experiment::Context;
use consort_report::{Axis, BarSeries, Bars, Cell, Column, Figure, Headline, Plot, Table};
use consort_sim::contention::Stack;

const QUICK: Extent = Extent {
    cores: &[4],
    mixes: 2,
    runs: 2,
    alone_s: 2.0,
};
const FULL: Extent = Extent {
    cores: &[6, 10],
    mixes: 5,
    runs: 3,
    alone_s: 10.0,
};

/// Runs the study.
pub(super) fn run(context: &Context<'_>, _: &StudyFile) -> Result<StudyOutput, StudyError> {
    let trials = Trials::make(&context.by_scale(QUICK, FULL), context)?;
    let learnt = learnt::cores(&trials)?;
    Ok(StudyOutput {
        tables: vec![
            headline(&trials)?,
            policies(&trials)?,
            workloads(&trials)?,
            learnt::table(&learnt)?,
            programs(&trials)?,
        ],
        figures: vec![figure(&trials)?, learnt::figure(&learnt, trials.runs)?],
        notes: notes::of(&trials, &learnt),
        runs: trials.runs,
    })
}

/// Gains of the rule on the machine with a faster half.
fn headline(trials: &Trials) -> Result<Table, StudyError> {
    let mut headline = Headline::new()?;
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

fn policies(trials: &Trials) -> Result<Table, StudyError> {
    let columns = vec![
        Column::plain("stp_over_linux", "STP over linux"),
        Column::plain("stp_over_symbiotic", "STP over symbiotic"),
        Column::plain("stp_over_in_node", "STP over symbiotic-in-node"),
        Column::plain("antt_over_linux", "ANTT over linux"),
        Column::plain("makespan_over_linux", "Makespan over linux"),
        Column::plain("stp", "STP"),
        Column::plain("unfairness", "Unfairness"),
        Column::plain("cpi", "Cycles per instruction"),
        Column::plain("cpi_memory", "Of it, for memory"),
        Column::with_unit("away_percent", "Away from its memory", "% of time"),
        Column::with_unit("migrations_hz", "Migrations of a thread", "1/s"),
        Column::with_unit("alone_percent", "Measured alone", "% of time"),
    ];
    let title = "Each policy on each machine: over workloads, with intervals over workloads";
    let mut table = Table::new("policies", title, columns)?;
    for (machine, (name, _)) in MACHINES.iter().enumerate() {
        for (key, group) in trials.groups() {
            for (policy, of) in POLICIES.iter().enumerate() {
                let cells = cells(trials, machine, &group, policy);
                table.push(&format!("{name}/{key}/{of}"), cells)?;
            }
        }
    }
    Ok(table)
}

fn cells(trials: &Trials, machine: usize, group: &[usize], policy: usize) -> Vec<Cell> {
    let over = |base| trials.stp_over(machine, group, policy, base);
    let of_linux = |value| trials.over(machine, group, [policy, LINUX], value);
    let mean = |value: fn(&Trial) -> f64| trials.mean_of(machine, group, policy, value);
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
fn cpi_memory(trial: &Trial) -> f64 {
    let stack = Stack::NAMES.iter().zip(trial.outcome.counters.stack());
    let memory = stack.filter(|(name, _)| ["memory", "queue"].contains(name));
    memory.map(|(_, cpi)| cpi).sum()
}

fn workloads(trials: &Trials) -> Result<Table, StudyError> {
    let columns = vec![
        Column::plain("stp_over_linux", "STP over linux"),
        Column::plain("stp_over_symbiotic", "STP over symbiotic"),
        Column::plain("stp", "STP"),
    ];
    let title = "Throughput by workload: over runs";
    let mut table = Table::new("workloads", title, columns)?;
    for (machine, (name, _)) in MACHINES.iter().enumerate() {
        for (index, mix) in trials.mixes.iter().enumerate() {
            let stp = |policy| trials.values(machine, index, policy, |o| o.stp);
            for (policy, of) in POLICIES.iter().enumerate() {
                let over = |base| ratio(&stp(policy), &stp(base));
                let mean = trials.mean_of(machine, &[index], policy, |t| t.outcome.stp);
                let cells = vec![over(LINUX), over(SYMBIOTIC), mean];
                table.push(&format!("{name}/{}/{of}", mix.key()), cells)?;
            }
        }
    }
    Ok(table)
}

fn programs(trials: &Trials) -> Result<Table, StudyError> {
    let columns = vec![Column::plain("programs", "Programs")];
    let mut table = Table::new("programs", "The workloads", columns)?;
    for mix in &trials.mixes {
        table.push(&mix.key(), vec![mix.names().join(" ").as_str().into()])?;
    }
    Ok(table)
}

fn figure(trials: &Trials) -> Result<Figure, StudyError> {
    let groups = trials.groups();
    let machines = || MACHINES.iter().enumerate();
    let bars = |policy: usize| {
        let of = |machine: usize| {
            let over = |group| bar(&trials.stp_over(machine, group, policy, LINUX));
            groups
                .iter()
                .map(move |(_, group)| over(group))
                .collect::<Vec<_>>()
        };
        machines().flat_map(|(machine, _)| of(machine)).collect()
    };
    let others = (0..POLICIES.len()).filter(|&policy| policy != LINUX);
    let series = others.map(|policy| BarSeries {
        name: POLICIES[policy].to_owned(),
        bars: bars(policy),
    });
    let name = |machine: &str| {
        groups
            .iter()
            .map(move |(key, _)| format!("{machine}/{key}"))
            .collect::<Vec<_>>()
    };
    let plot = Bars {
        category: "Machine and cores".to_owned(),
        value: Axis::linear("STP over linux", None),
        baseline: 1.0,
        groups: machines()
            .flat_map(|(_, (machine, _))| name(machine))
            .collect(),
        series: series.collect(),
    };
    let title = "System throughput over linux on the same machine";
    let text = "Geometric means over the workloads; intervals are over workloads.";
    Ok(Figure::new(
        "policies",
        title,
        text,
        trials.runs,
        Plot::Bars(plot),
    )?)
}
