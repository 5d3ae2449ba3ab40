//! A9: energy of the runs of A4 and of SPLASH-2.
//!
//! Keys. Tables `single` and `parallel` (SPLASH-2): rows `THREADS/POLICY` and `all/POLICY`; columns
//! `pdp_over_linux` (average power times time until the last has done its work),
//! `energy_per_instruction_over_linux`, `pdp_j`, `instruction_nj`, `power_w`. Figures `single` and
//! `parallel`.

use super::asymmetry::grid::Grid;
use super::asymmetry::runs::{self, LINUX};
use super::asymmetry::views::{Drawing, Measure, by_threads, figure, label, table};
use super::asymmetry::{DIFFERS_GROUP, SEED, SOURCE};
use crate::context::Context;
use crate::study::{Study, StudyError, StudyInfo, StudyOutput};

/// The study.
pub(super) struct A9;

static INFO: StudyInfo = StudyInfo {
    id: "A9",
    title: "Energy of round robin and fair progress",
    source: SOURCE,
    section: "HRRS, energy (power-delay product)",
    original: "The power-delay product of its runs of SPEC CPU2006 and SPLASH-2 on one large and three \
               small cores, over linux.",
    differs: DIFFERS_GROUP,
    default_seed: SEED,
    full_seconds_hint: 85,
};

const PDP: Measure = Measure::over(LINUX, "pdp_over_linux", "PDP over linux", |o| o.energy_j);
const PER_INSTRUCTION: Measure = Measure::over(
    LINUX,
    "energy_per_instruction_over_linux",
    "Energy per instruction over linux",
    |o| o.instruction_nj,
);
const MEASURES: [Measure; 5] = [
    PDP,
    PER_INSTRUCTION,
    Measure::mean("pdp_j", "PDP", Some("J"), |o| o.energy_j),
    Measure::mean(
        "instruction_nj",
        "Energy per instruction",
        Some("nJ"),
        |o| o.instruction_nj,
    ),
    Measure::mean("power_w", "Average power", Some("W"), |o| {
        o.energy_j / o.makespan_s
    }),
];

impl Study for A9 {
    fn info(&self) -> &StudyInfo {
        &INFO
    }

    fn run(&self, context: &Context<'_>) -> Result<StudyOutput, StudyError> {
        let mut output = StudyOutput::default();
        let suites = [
            ("single", "SPEC CPU2006", runs::spec(context)?),
            ("parallel", "SPLASH-2", runs::splash(context)?),
        ];
        for (key, suite, grid) in suites {
            let policies: Vec<&str> = grid.policies.iter().map(String::as_str).collect();
            let groups = by_threads(&grid);
            let title = format!("Energy, {suite}: over programs, with intervals over programs");
            output
                .tables
                .push(table(&grid, (key, &title), &groups, &policies, &MEASURES)?);
            let title = format!("Power-delay product over linux, {suite}");
            let drawing = Drawing {
                key,
                title: &title,
                text: "Less is better. Intervals are over programs.",
                category: "Threads",
            };
            output
                .figures
                .push(figure(&grid, &drawing, &groups, &policies[1..], &PDP)?);
            output.notes.push(note(suite, &grid));
            output.runs = grid.runs;
        }
        output.notes.push(
            "Cores that idle draw a third of their static power and the uncore draws all of its \
             own, so a workload that is done sooner takes less of both: that is the gain of an even \
             share of the large core. Instances start again until the last is done, so under \
             linux the large core does work beyond the workload's, at its high energy per \
             instruction, which the energy per instruction takes account of and the power-delay \
             product does not. Time that moves cost is paid at static power."
                .to_owned(),
        );
        output.notes.push(
            "Threads of one program wait for each other. With as many threads as cores linux leaves \
             the same thread on the large core, which does its part sooner and then idles until the \
             small cores have done theirs; under round robin the large core is busy, which makes the \
             program faster and draws more power than the shorter time saves."
                .to_owned(),
        );
        Ok(output)
    }
}

fn note(suite: &str, grid: &Grid) -> String {
    let all: Vec<usize> = (0..grid.keys.len()).collect();
    let one = |policy: &String| {
        let of = |measure: &Measure| measure.cell(grid, &all, policy).text();
        format!(
            "{} {} and {}",
            label(policy),
            of(&PDP),
            of(&PER_INSTRUCTION)
        )
    };
    let each: Vec<String> = grid.policies.iter().skip(1).map(one).collect();
    format!(
        "{suite}, power-delay product and energy per instruction over linux: {}.",
        each.join("; ")
    )
}
