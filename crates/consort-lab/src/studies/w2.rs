//! W2: FPU usage and L2 misses of every program of the paper, each alone.
//!
//! Keys. Table `headline`: rows `FPU usage of PROGRAM, MACHINE` and `L2 misses of PROGRAM, MACHINE`,
//! as far as the source has them. Table `profiles`: rows are the programs (`hmmer`, `monte-carlo`);
//! columns `bulldozer_fpu_usage`, `bulldozer_l2_miss_rate`, `power7_fpu_usage`,
//! `power7_l2_miss_rate`; the rates are L2 misses per 100 cycles. Figures
//! `fpu-MACHINE` and `l2-MACHINE`.

use super::alone::{Alone, Repeated, Told, repeat};
use super::occupancy::SOURCE;
use super::occupancy::profile::{BULLDOZER, Chart, FPU_USAGE, POWER7, bar, cell, short};
use crate::context::Context;
use crate::report::{Axis, Column, Figure, FigureError, Headline, Table, TableError};
use crate::study::{Study, StudyError, StudyInfo, StudyOutput};

/// The study.
pub(super) struct W2;

const INFO: StudyInfo = StudyInfo {
    id: "W2",
    title: "FPU usage and L2 misses of each program alone",
    source: SOURCE,
    section: "tables 1 and 2",
    original: "Runs programs of SPEC CPU2006 and the five kernels of SciMark 2.0 alone, on an \
               AMD Opteron 6282 SE (Bulldozer) and on an IBM POWER7, and reports FPU usage and L2 \
               misses per 100 cycles from the chips' events.",
    differs: "The machines and their counters (0.5 percent read noise) are simulated. Programs \
              are profiles: for SPEC CPU2006 the instruction mix and the misses were measured on \
              other chips by others, for SciMark they are estimates. POWER7 runs in SMT1, as the \
              programs are alone. SciMark's L2 misses and sphinx3 on POWER7, which the source \
              leaves out, are computed as well.",
    default_seed: 1,
    full_seconds_hint: 120,
};

/// The programs in the order of the source's tables: integer, floating point, SciMark.
const PROGRAMS: [&str; 19] = [
    "perlbench",
    "bzip2",
    "gcc",
    "mcf",
    "gobmk",
    "hmmer",
    "h264ref",
    "soplex",
    "bwaves",
    "milc",
    "povray",
    "gromacs",
    "tonto",
    "sphinx3",
    "fft",
    "sor",
    "monte-carlo",
    "sparse-matmult",
    "lu",
];

/// A machine and its SMT mode.
const MACHINES: [(&str, Option<u32>); 2] = [(BULLDOZER, None), (POWER7, Some(1))];

/// The work of a quick run, 10⁹ instructions: the first seconds of a program.
const QUICK_GINSTR: f64 = 20.0;

impl Study for W2 {
    fn info(&self) -> &StudyInfo {
        &INFO
    }

    fn run(&self, context: &Context<'_>) -> Result<StudyOutput, StudyError> {
        let count = context.by_scale(2, 5);
        let most = context.by_scale(Some(QUICK_GINSTR), None);
        let mut machines = Vec::new();
        let all: Vec<Alone> = MACHINES
            .into_iter()
            .flat_map(|(machine, smt)| PROGRAMS.map(|program| alone(machine, smt, program, most)))
            .collect();
        let mut told = repeat(context, &all, count)?.into_iter();
        for _ in MACHINES {
            machines.push(told.by_ref().take(PROGRAMS.len()).collect::<Vec<_>>());
        }
        let results = Results(machines);
        Ok(StudyOutput {
            tables: vec![results.headline()?, results.table()?],
            figures: results.figures(count)?,
            notes: results.notes(context.by_scale(true, false)),
            runs: count,
        })
    }
}

fn alone(
    machine: &'static str,
    smt: Option<u32>,
    program: &'static str,
    at_most_ginstr: Option<f64>,
) -> Alone {
    Alone {
        machine,
        smt,
        program,
        copies: 1,
        at_most_ginstr,
    }
}

/// What holds for every run.
const NOTES: [&str; 4] = [
    "FPU usage was not used to make the profiles: it follows from a measured share of \
     floating-point instructions (SPEC CPU2006; estimated for sphinx3) and the simulated speed. It compares within one \
     machine only: Bulldozer's counts cycles in which at least one operation is under way, \
     POWER7's counts operations. Read noise puts a usage of 0 a hair to either side.",
    "L2 misses are the weakest figures on POWER7. Its L2 has 256 KiB, and no profile has a \
     measurement between 32 KiB and 1 MiB: there the miss curves are interpolated. What misses \
     this L2 and hits the core's own 4 MiB of L3 counts as a miss of the L2.",
    "L2 misses are those of demand: a line that a prefetcher of the core or of the L2 has brought in \
     time is none.",
    "SciMark's profiles are estimates after the kernels' inner loops. Their data fit every L2, \
     so they hardly miss.",
];

/// How many of the programs, the first ones, do integer work.
const INTEGER: usize = 7;

/// How far the event tells the two classes apart on a machine.
fn separation(machine: &str, told: &[Repeated]) -> String {
    let mut usages: Vec<(f64, &str)> = Vec::new();
    for (runs, program) in told.iter().zip(PROGRAMS) {
        usages.extend(runs.over(|t| t.fpu_usage).map(|i| (i.mean, program)));
    }
    let (integer, floating) = usages.split_at(INTEGER.min(usages.len()));
    let by_usage = |a: &&(f64, &str), b: &&(f64, &str)| a.0.total_cmp(&b.0);
    let ends = integer
        .iter()
        .max_by(by_usage)
        .zip(floating.iter().min_by(by_usage));
    ends.map_or_else(String::new, |((high, most), (low, least))| {
        format!(
            "{}: integer programs use the FPU at most {high:.3} ({most}), floating-point \
             programs at least {low:.3} ({least}).",
            short(machine)
        )
    })
}

/// By machine and program.
struct Results(Vec<Vec<Repeated>>);

/// How many of the programs, the first ones, are of SPEC CPU2006: of the others the source has no
/// L2 misses.
const SPEC: usize = 14;
/// The program that the source has on Bulldozer alone.
const BULLDOZER_ONLY: &str = "sphinx3";

impl Results {
    fn headline(&self) -> Result<Table, TableError> {
        let mut headline = Headline::new()?;
        for ((machine, _), told) in MACHINES.into_iter().zip(&self.0) {
            for (index, (program, told)) in PROGRAMS.into_iter().zip(told).enumerate() {
                if machine == POWER7 && program == BULLDOZER_ONLY {
                    continue;
                }
                let of = format!("{program}, {}", short(machine));
                let usage = cell(told, |t| t.fpu_usage);
                headline.add(&format!("FPU usage of {of}"), "ratio", usage)?;
                if index < SPEC {
                    let misses = cell(told, |t| t.l2_misses);
                    headline.add(&format!("L2 misses of {of}"), "per 100 cycles", misses)?;
                }
            }
        }
        Ok(headline.into_table())
    }

    fn table(&self) -> Result<Table, TableError> {
        let rate = "per 100 cycles";
        let columns = vec![
            Column::plain("bulldozer_fpu_usage", "Bulldozer FPU usage"),
            Column::with_unit("bulldozer_l2_miss_rate", "Bulldozer L2 misses", rate),
            Column::plain("power7_fpu_usage", "POWER7 FPU usage"),
            Column::with_unit("power7_l2_miss_rate", "POWER7 L2 misses", rate),
        ];
        let title = "Each program alone, as the chip's own events tell it";
        let mut table = Table::new("profiles", title, columns)?;
        for (index, program) in PROGRAMS.into_iter().enumerate() {
            let of_machine = |runs: &Vec<Repeated>| {
                let told = &runs[index];
                [cell(told, |t| t.fpu_usage), cell(told, |t| t.l2_misses)]
            };
            table.push(program, self.0.iter().flat_map(of_machine).collect())?;
        }
        Ok(table)
    }

    fn figures(&self, runs: usize) -> Result<Vec<Figure>, FigureError> {
        let usage = FPU_USAGE
            .into_iter()
            .zip(&self.0)
            .map(|((machine, meaning), told)| {
                let title = format!("FPU usage on {}", short(machine));
                let value = Axis::linear("FPU usage", Some(meaning));
                chart(format!("fpu-{machine}"), title, value, told, |t| {
                    t.fpu_usage
                })
            });
        let misses = MACHINES
            .into_iter()
            .zip(&self.0)
            .map(|((machine, _), told)| {
                let title = format!("L2 misses on {}", short(machine));
                let value = Axis::linear("L2 misses", Some("per 100 cycles"));
                chart(format!("l2-{machine}"), title, value, told, |t| t.l2_misses)
            });
        usage
            .chain(misses)
            .map(|chart| chart.figure(runs))
            .collect()
    }

    fn notes(&self, quick: bool) -> Vec<String> {
        let separations = MACHINES.into_iter().zip(&self.0);
        let separations = separations.map(|((machine, _), told)| separation(machine, told));
        let fixed = NOTES.into_iter().map(str::to_owned);
        let quick = quick.then(|| {
            format!(
                "A quick run ends after {QUICK_GINSTR}·10⁹ instructions, so programs with phases \
                 show their first one."
            )
        });
        separations.chain(fixed).chain(quick).collect()
    }
}

fn chart(
    key: String,
    title: String,
    value: Axis,
    told: &[Repeated],
    of: fn(&Told) -> f64,
) -> Chart {
    Chart {
        key,
        title,
        text: "Integer programs left, then floating point, then SciMark.".to_owned(),
        category: "Program",
        value,
        groups: PROGRAMS.map(str::to_owned).into(),
        series: vec![("", told.iter().map(|runs| bar(runs, of)).collect())],
    }
}
