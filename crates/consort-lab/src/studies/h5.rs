//! H5: power per thread.
//!
//! Keys. Table `headline`: rows `POLICY, mean` (W per thread) and `POLICY over gang, WHICH`. Table `power`: rows are programs; columns `gang` and `power_1` to `power_7` (the schedulers
//! by name in the titles), W per core that the program has. Table `means`: rows are schedulers;
//! columns `coscheduled`, `suite`: over the gang's, geometric means. Figure `power`.

use super::coscheduling::entrants::{ENTRANTS, GANG, MAIN, SOURCES};
use super::coscheduling::figures::Chart;
use super::coscheduling::grid::{Grid, Place};
use super::coscheduling::views::{Over, power_per_thread};
use crate::study::bar;
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};
use consort_experiment::Context;
use consort_report::{BarSeries, Column, Figure, Headline, Table};

/// Runs the study.
pub(super) fn run(context: &Context<'_>, _: &StudyFile) -> Result<StudyOutput, StudyError> {
    let grid = Grid::of(context)?;
    Ok(StudyOutput {
        tables: vec![headline(&grid)?, programs(&grid)?, means(&grid)?],
        figures: vec![figure(&grid)?],
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
    let groups = [
        ("co-scheduled programs", Over::Sharing),
        ("whole suite", Over::All),
    ];
    for (group, which) in groups {
        for entrant in SOURCES {
            let row = format!("{} over gang, {group}", ENTRANTS[entrant].name);
            headline.add_gain(&row, grid.ratio_over(entrant, which, relative))?;
        }
    }
    Ok(headline.into_table())
}

fn programs(grid: &Grid) -> Result<Table, StudyError> {
    let column = |entrant: usize| {
        Column::with_unit(&format!("power_{entrant}"), ENTRANTS[entrant].short(), "W")
    };
    let gang = Column::with_unit("gang", "gang", "W");
    let columns = std::iter::once(gang).chain(MAIN.map(column));
    let title = "Power per core that a program has";
    let mut table = Table::new("power", title, columns.collect())?;
    for id in grid.suite().ids() {
        let all = std::iter::once(GANG).chain(MAIN);
        let cells = all.map(|entrant| grid.mean(entrant, id, power_per_thread));
        table.push(grid.suite().name(id).unwrap_or("?"), cells.collect())?;
    }
    Ok(table)
}

fn means(grid: &Grid) -> Result<Table, StudyError> {
    let columns = vec![
        Column::plain("coscheduled", "Programs that share"),
        Column::plain("suite", "Whole suite"),
    ];
    let title = "Power per thread over the gang's: geometric means over programs";
    let mut table = Table::new("means", title, columns)?;
    for (entrant, who) in ENTRANTS.iter().enumerate() {
        let over = |which| grid.ratio_over(entrant, which, relative);
        table.push(who.name, vec![over(Over::Sharing), over(Over::All)])?;
    }
    Ok(table)
}

fn figure(grid: &Grid) -> Result<Figure, StudyError> {
    let all = std::iter::once(GANG).chain(MAIN);
    let series = |entrant: usize| BarSeries {
        name: ENTRANTS[entrant].short().to_owned(),
        bars: { grid.suite().ids() }
            .map(|id| bar(&grid.mean(entrant, id, power_per_thread)))
            .collect(),
    };
    let chart = Chart {
        key: "power",
        title: "Power per thread",
        text: "A program's share of the machine's power over the cores that it has.",
        value: "Power",
        unit: Some("W"),
        baseline: 0.0,
    };
    chart.bars(
        ("Program", grid.names()),
        all.map(series).collect(),
        grid.runs(),
    )
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
