//! A9: energy of the runs of A4 and of SPLASH-2.
//!
//! Keys. Table `headline`. Tables `single` and `parallel` (SPLASH-2): rows `THREADS/POLICY` and
//! `all/POLICY`; columns `pdp_over_base` (average power times time until the last has done its
//! work, over that under `linux-acmp`), `energy_per_instruction_over_base`, `pdp_j`, `instruction_nj`, `power_w`. Figures `single` and
//! `parallel`.

use super::asymmetry::grid::Grid;
use super::asymmetry::headlines::{Gain, gains};
use super::asymmetry::runs::{self, FAIR, FAIR_4MS, HRRS, LINUX};
use super::asymmetry::views::{Drawing, Measure, by_threads, figure, label, table};
use super::asymmetry::{BASE, DIFFERS_GROUP, SEED, SOURCE};
use crate::context::Context;
use crate::report::{Headline, Table};
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
    full_seconds_hint: 105,
};

const PDP: Measure = Measure::over(BASE, "pdp_over_base", "PDP over linux-acmp", |o| o.energy_j);
const PER_INSTRUCTION: Measure = Measure::over(
    BASE,
    "energy_per_instruction_over_base",
    "Energy per instruction over linux-acmp",
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
        let (spec, splash) = (runs::spec(context)?, runs::splash(context)?);
        let mut output = StudyOutput::default();
        output.tables.push(headline(&spec, &splash)?);
        let suites = [
            ("single", "SPEC CPU2006", spec),
            ("parallel", "SPLASH-2", splash),
        ];
        for (key, suite, grid) in suites {
            let policies: Vec<&str> = grid.policies.iter().map(String::as_str).collect();
            let groups = by_threads(&grid);
            let title = format!("Energy, {suite}: over programs, with intervals over programs");
            output
                .tables
                .push(table(&grid, (key, &title), &groups, &policies, &MEASURES)?);
            let title = format!("Power-delay product over linux-acmp, {suite}");
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
            "The uncore draws its power, and cores that idle a third of their static power, for as long as \
             a workload takes, so one that is done sooner takes less of both. Whoever is done starts again until the last is, threads of a \
             program included, so under linux-acmp the large core does work beyond the workload's, at \
             its high energy per instruction, which the energy per instruction takes account of and the \
             power-delay product does not."
                .to_owned(),
        );
        Ok(output)
    }
}

/// What the source prints, and the same for the forms that it is set beside here.
const GAINS: [Gain<'_>; 4] = [
    ("PDP of hrrs over linux", HRRS, BASE),
    ("PDP of fair-progress over linux", FAIR, BASE),
    ("PDP of fair-progress every 4 ms over linux", FAIR_4MS, BASE),
    ("PDP of linux without core types over linux", LINUX, BASE),
];

fn headline(spec: &Grid, splash: &Grid) -> Result<Table, StudyError> {
    let mut headline = Headline::new()?;
    for (grid, suite) in [(spec, "SPEC"), (splash, "SPLASH-2")] {
        let every: Vec<usize> = (0..grid.keys.len()).collect();
        gains(&mut headline, (grid, &every), suite, PDP.value, &GAINS)?;
    }
    Ok(headline.into_table())
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
        "{suite}, power-delay product and energy per instruction over linux-acmp: {}.",
        each.join("; ")
    )
}
