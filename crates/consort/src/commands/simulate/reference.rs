//! `consort simulate --fidelity reference`: traced programs, cycle by cycle.

use super::SimulateArgs;
use crate::descriptions;
use crate::failure::bad_input;
use crate::output::file::TableOutput;
use crate::output::{self, OutputColumn, number, text};
use anyhow::Result;
use consort_data::Table;
use consort_data::long::{LongRows, RowOwner};
use consort_experiment::long;
use consort_experiment::traced::{ProgramRun, RunLength, TracedProgram, TracedRun, run_together};
use consort_sim::workload::{WorkloadExpr, WorkloadItem, WorkloadTerm};
use serde::Serialize;
use std::process::ExitCode;

/// Copies of a program that one term may have.
const MOST_COPIES: u32 = 1024;

const COLUMNS: &[OutputColumn<ProgramRun>] = &[
    text("program", |p| p.name.clone()),
    number("CPU", |p| p.pu.to_string()),
    number("alone (ms)", |p| format!("{:.3}", p.alone_s * 1e3)),
    number("together (ms)", |p| format!("{:.3}", p.together_s * 1e3)),
    number("slowdown", |p| format!("{:.3}", p.slowdown)),
    number("instructions (1e6)", |p| {
        format!("{:.2}", p.instructions / 1e6)
    }),
    number("IPC", |p| format!("{:.3}", p.ipc)),
];

#[derive(Serialize)]
struct ReferenceDocument<'a> {
    machine: &'a str,
    workload: &'a str,
    policy: &'static str,
    #[serde(flatten)]
    run: &'a TracedRun,
}

pub(super) fn execute(args: &SimulateArgs) -> Result<ExitCode> {
    let refused = [
        (
            args.policy != "linux" && args.policy != "pinned",
            "--policy",
        ),
        (args.timeline.is_some(), "--timeline"),
        (args.explain.is_some(), "--explain"),
        (args.setup.interval.is_some(), "--interval"),
    ];
    if let Some((_, option)) = refused.iter().find(|(is_given, _)| *is_given) {
        return Err(bad_input(format!(
            "{option} is for --fidelity fast; the reference leaves each program on its CPU"
        )));
    }
    let chip = descriptions::chip(&args.setup.machine)?;
    let programs = programs(&args.setup.workload)?;
    let shortest = programs.iter().map(TracedProgram::instructions).min();
    let measured = args.instructions.or(shortest).unwrap_or(1);
    let extent = RunLength {
        warm_up: measured,
        measured,
    };
    let file = TableOutput::begin(args.setup.out.as_deref())?;
    let run = run_together(&chip, &programs, extent, args.setup.seed).map_err(bad_input)?;
    file.write(|| table(args, &run))?;
    let document = ReferenceDocument {
        machine: &args.setup.machine,
        workload: &args.setup.workload,
        policy: "pinned",
        run: &run,
    };
    output::print(args.setup.format, COLUMNS, &run.programs, &document, || {
        let table = output::table(COLUMNS, &run.programs);
        format!(
            "{table}\n{} on {} (seed {}, one run, executed cycle by cycle)\n\
             STP {:.3}, ANTT {:.3}, unfairness {:.3}\n\
             {:.1} million instructions in {:.2} s of host time, {:.2} million per second\n",
            args.setup.workload,
            args.setup.machine,
            run.seed,
            run.stp,
            run.antt,
            run.unfairness,
            run.simulated_instructions / 1e6,
            run.host_s,
            run.simulated_minstr_per_host_s,
        )
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Every number, one per row; a program is `NAME:CPU`.
fn table(args: &SimulateArgs, run: &TracedRun) -> Table {
    let mut rows = LongRows::default();
    let case = long::case_name(&args.setup.workload, &args.setup.machine);
    let whole = RowOwner {
        case: &case,
        policy: Some("pinned"),
        seed: Some(run.seed),
        program: None,
    };
    rows.push(whole, "stp", run.stp, None);
    rows.push(whole, "antt", run.antt, None);
    rows.push(whole, "unfairness", run.unfairness, None);
    rows.push(whole, "makespan_s", run.makespan_s, Some("s"));
    for program in &run.programs {
        let name = format!("{}:{}", program.name, program.pu);
        let owner = whole.with_program(&name);
        rows.push(owner, "alone_s", program.alone_s, Some("s"));
        rows.push(owner, "together_s", program.together_s, Some("s"));
        rows.push(owner, "slowdown", program.slowdown, None);
        rows.push(owner, "instructions", program.instructions, None);
        rows.push(owner, "ipc", program.ipc, None);
        rows.push_if_some(owner, "energy_j", program.energy_j, Some("J"));
    }
    rows.table()
}

/// The programs of a workload expression, `2*bzip2+gcc` or `a.trace+b.trace`.
fn programs(workload: &str) -> Result<Vec<TracedProgram>> {
    let expr =
        WorkloadExpr::parse(workload, &consort_describe::input::is_file).map_err(bad_input)?;
    let mut programs = Vec::new();
    for term in expr.terms {
        let name = match &term.item {
            WorkloadItem::Program {
                name,
                threads: None,
            } => name,
            WorkloadItem::File {
                path,
                threads: None,
            } => path,
            _ => return Err(wrong_term(&term)),
        };
        if term.count > MOST_COPIES {
            return Err(wrong_term(&term));
        }
        let program = TracedProgram::find(name).map_err(bad_input)?;
        programs.extend(std::iter::repeat_n(program, term.count as usize));
    }
    Ok(programs)
}

fn wrong_term(term: &WorkloadTerm) -> anyhow::Error {
    bad_input(format!(
        "workload '{term}': the reference runs traces of one thread each; expected NAME or \
         COUNT*NAME with a count from 1 to {MOST_COPIES}"
    ))
}
