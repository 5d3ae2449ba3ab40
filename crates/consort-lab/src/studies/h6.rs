//! H6: less energy and energy-delay than the gang.
//!
//! Keys. Table `headline`: rows `POLICY over gang, WHAT, WHICH`. Table `reduction`: rows are schedulers with their options; columns `energy_coscheduled`,
//! `energy_suite`, `ed_coscheduled`, `ed_suite`: 1 less the mean over programs of what is relative
//! to the gang, per unit of work; below 0 is a loss. Table `programs`: rows are programs, columns
//! `ed_1` to `ed_7` (the schedulers by name in the titles): energy-delay over the gang's. Figures
//! `energy`, `energy-delay`.

use super::coscheduling::entrants::{BOUND, ENTRANTS, MAIN, RoundScheduler, SOURCES};
use super::coscheduling::figures::GROUPS;
use super::coscheduling::grid::CoscheduleGrid;
use super::coscheduling::views::{MeanScope, SlotValue, energy, energy_delay, name};
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};
use consort_core::stats::ConfidenceInterval;
use consort_data::{Cell, HeadlineTable, ReportTable};
use consort_experiment::ExperimentContext;

/// Runs the study.
pub(super) fn run(
    context: &ExperimentContext<'_>,
    file: &StudyFile,
) -> Result<StudyOutput, StudyError> {
    let grid = CoscheduleGrid::get_or_run(context)?;
    let figures = REDUCED.map(|(key, value)| {
        grid.by_group((file, key), |entrant, over| {
            grid.reduction(entrant, over, value)
        })
    });
    let programs = grid.rows(&MAIN, |entrant, id| grid.ratio(entrant, id, energy_delay));
    Ok(StudyOutput {
        tables: vec![
            headline(&grid)?,
            reduction(file, &grid)?,
            file.fill_table("programs", programs)?,
        ],
        figures: figures.into_iter().collect::<Result<_, _>>()?,
        notes: notes(&grid),
        runs: grid.runs(),
    })
}

/// Quantities that are reduced, in the source's words and as keys of figures.
const REDUCED: [(&str, SlotValue); 2] = [("energy", energy), ("energy-delay", energy_delay)];

fn headline(grid: &CoscheduleGrid) -> Result<ReportTable, StudyError> {
    let mut headline = HeadlineTable::new()?;
    for (what, value) in REDUCED {
        for (group, _, which) in GROUPS {
            for entrant in SOURCES.chain([BOUND]) {
                let row = format!("{} over gang, reduction of {what}, {group}", name(entrant));
                headline.add(
                    &row,
                    "percent",
                    percent(grid.reduction(entrant, which, value)),
                )?;
            }
        }
    }
    Ok(headline.into_table())
}

/// A share as a percentage.
fn percent(share: Cell) -> Cell {
    match share {
        Cell::Interval(interval) => Cell::Interval(ConfidenceInterval {
            mean: 100.0 * interval.mean,
            ci95: interval.ci95.map(|half| 100.0 * half),
            ..interval
        }),
        other => other,
    }
}

fn reduction(file: &StudyFile, grid: &CoscheduleGrid) -> Result<ReportTable, StudyError> {
    let row = |(entrant, who): (usize, &RoundScheduler)| {
        let of = |which, value| grid.reduction(entrant, which, value);
        let cells = vec![
            of(MeanScope::Sharing, energy),
            of(MeanScope::All, energy),
            of(MeanScope::Sharing, energy_delay),
            of(MeanScope::All, energy_delay),
        ];
        (who.name, cells)
    };
    file.fill_table("reduction", ENTRANTS.iter().enumerate().map(row))
}

fn notes(grid: &CoscheduleGrid) -> Vec<String> {
    let of = |value: SlotValue| {
        let each = MAIN.map(|entrant| {
            let cell = grid.reduction(entrant, MeanScope::All, value).text();
            format!("{} {cell}", name(entrant))
        });
        each.collect::<Vec<_>>().join(", ")
    };
    vec![
        format!("Reduction of energy for the whole suite: {}.", of(energy)),
        format!("Reduction of energy-delay: {}.", of(energy_delay)),
        "164 W of the machine's are drawn whoever runs, and a slot of several shares them: that is \
         where the energy is saved. Delay falls where programs use fewer cores better than \
         more."
            .to_owned(),
    ]
}
