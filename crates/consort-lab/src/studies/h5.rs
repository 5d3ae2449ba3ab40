//! H5: power per thread.
//!
//! Keys. Table `headline`: rows `POLICY, mean` (W per thread) and `POLICY over gang, WHICH`. Table `power`: rows are programs; columns `gang` and `power_1` to `power_7` (the schedulers
//! by name in the titles), W per core that the program has. Table `means`: rows are schedulers;
//! columns `coscheduled`, `suite`: over the gang's, geometric means. Figure `power`.

use super::coscheduling::entrants::{ENTRANTS, GANG, MAIN, RoundScheduler, SOURCES};
use super::coscheduling::figures::GROUPS;
use super::coscheduling::grid::{CoscheduleGrid, SlotMeasures};
use super::coscheduling::views::{MeanScope, power_per_thread};
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};
use consort_data::{HeadlineTable, ReportTable};
use consort_experiment::ExperimentContext;

/// Runs the study.
pub(super) fn run(
    context: &ExperimentContext<'_>,
    file: &StudyFile,
) -> Result<StudyOutput, StudyError> {
    let grid = CoscheduleGrid::get_or_run(context)?;
    let power = |entrant, id| grid.mean(entrant, id, power_per_thread);
    let all = std::iter::once(GANG).chain(MAIN);
    Ok(StudyOutput {
        tables: vec![
            headline(&grid)?,
            file.fill_table("power", grid.rows(&all, power))?,
            means(file, &grid)?,
        ],
        figures: vec![grid.by_program((file, "power"), all, power)?],
        notes: notes(&grid),
        runs: grid.runs(),
    })
}

/// Power per thread over that in the gang, where the program has every core.
fn relative(place: &SlotMeasures<'_>) -> f64 {
    let gang = place.gang.power_w() / f64::from(place.gang.cores);
    power_per_thread(place) / gang
}

fn headline(grid: &CoscheduleGrid) -> Result<ReportTable, StudyError> {
    let mut headline = HeadlineTable::new()?;
    for entrant in std::iter::once(GANG).chain(SOURCES) {
        let row = format!("{}, mean", ENTRANTS[entrant].name);
        headline.add(
            &row,
            "W per thread",
            grid.mean_over(entrant, MeanScope::All, power_per_thread),
        )?;
    }
    for (group, _, which) in GROUPS {
        for entrant in SOURCES {
            let row = format!("{} over gang, {group}", ENTRANTS[entrant].name);
            headline.add_gain(&row, grid.ratio_over(entrant, which, relative))?;
        }
    }
    Ok(headline.into_table())
}

fn means(file: &StudyFile, grid: &CoscheduleGrid) -> Result<ReportTable, StudyError> {
    let row = |(entrant, who): (usize, &RoundScheduler)| {
        let over = |which| grid.ratio_over(entrant, which, relative);
        (
            who.name,
            vec![over(MeanScope::Sharing), over(MeanScope::All)],
        )
    };
    file.fill_table("means", ENTRANTS.iter().enumerate().map(row))
}

fn notes(grid: &CoscheduleGrid) -> Vec<String> {
    let of = |entrant: usize| {
        let over = grid
            .ratio_over(entrant, MeanScope::Sharing, relative)
            .text();
        format!("{} {over}", ENTRANTS[entrant].name)
    };
    let all: Vec<String> = MAIN.map(of).collect();
    vec![
        format!("Power per thread of programs that share, over that in the gang: {}.", all.join(", ")),
        "In the gang a program pays for the whole uncore, 164 W over eight threads, whatever its \
         threads do. In a slot it pays by the time of its threads on cores. So the power per thread \
         falls where threads often wait (serial sections, pipelines), beside others that \
         keep their cores busy; it rises for these, who carry more of the uncore. On \
         average it rises, since fewer threads wait less: they do more, and what falls is \
         energy per work (H6)."
            .to_owned(),
    ]
}
