//! H5: power per thread.
//!
//! Keys. Table `headline`: rows `POLICY, mean` (W per thread) and `POLICY over gang, WHICH`. Table `power`: rows are programs; columns `gang` and `power_1` to `power_7` (the schedulers
//! by name in the titles), W per core that the program has. Table `means`: rows are schedulers;
//! columns `coscheduled`, `suite`: over the gang's, geometric means. Figure `power`.

use super::coscheduling::entrants::{ENTRANTS, Entrant, GANG, MAIN, SOURCES};
use super::coscheduling::figures::GROUPS;
use super::coscheduling::grid::{Grid, Place};
use super::coscheduling::views::{Over, power_per_thread};
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};
use consort_experiment::Context;
use consort_report::{Headline, Table};

/// Runs the study.
pub(super) fn run(context: &Context<'_>, file: &StudyFile) -> Result<StudyOutput, StudyError> {
    let grid = Grid::of(context)?;
    let power = |entrant, id| grid.mean(entrant, id, power_per_thread);
    let all = std::iter::once(GANG).chain(MAIN);
    Ok(StudyOutput {
        tables: vec![
            headline(&grid)?,
            file.table("power", grid.rows(&all, power))?,
            means(file, &grid)?,
        ],
        figures: vec![grid.by_program((file, "power"), all, power)?],
        notes: notes(&grid),
        runs: grid.runs(),
    })
}

/// Power per thread over that in the gang, where the program has every core.
fn relative(place: &Place<'_>) -> f64 {
    let gang = place.gang.power_w() / f64::from(place.gang.cores);
    power_per_thread(place) / gang
}

fn headline(grid: &Grid) -> Result<Table, StudyError> {
    let mut headline = Headline::new()?;
    for entrant in std::iter::once(GANG).chain(SOURCES) {
        let row = format!("{}, mean", ENTRANTS[entrant].name);
        headline.add(
            &row,
            "W per thread",
            grid.mean_over(entrant, Over::All, power_per_thread),
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

fn means(file: &StudyFile, grid: &Grid) -> Result<Table, StudyError> {
    let row = |(entrant, who): (usize, &Entrant)| {
        let over = |which| grid.ratio_over(entrant, which, relative);
        (who.name, vec![over(Over::Sharing), over(Over::All)])
    };
    file.table("means", ENTRANTS.iter().enumerate().map(row))
}

fn notes(grid: &Grid) -> Vec<String> {
    let of = |entrant: usize| {
        let over = grid.ratio_over(entrant, Over::Sharing, relative).text();
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
