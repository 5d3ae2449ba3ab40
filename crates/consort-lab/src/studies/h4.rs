//! H4: speedup over the gang.
//!
//! Keys. Table `headline`: rows `POLICY over gang, co-scheduled programs` and `POLICY over gang, whole
//! suite`. Table `speedup`: rows are schedulers with their options; columns `coscheduled` (geometric
//! mean over the programs that share their slot), `suite` (over all), `mean` (arithmetic mean over
//! all). Table `runs`: rows are schedulers; columns `stp`, `mean_time` (ANTT), `makespan`, each over
//! the gang's, of whole runs from the first sample on. Table `programs`: rows are
//! programs, columns `speedup_1` to `speedup_7` (the schedulers by name in the titles). Table
//! `readings`: rows `fair-mis/READING` and `fair-com/READING`; columns `suite`, `coscheduled`,
//! `overall`, `quanta`. Figures `speedup`, `programs`.

use super::coscheduling::entrants::{
    BOUND, ENTRANTS, FAIR, MAIN, ORACLE, READING_NAMES, READINGS, SOURCES,
};
use super::coscheduling::figures::Chart;
use super::coscheduling::grid::Grid;
use super::coscheduling::notes;
use super::coscheduling::views::{Over, local_speedup, name};
use super::coscheduling::whole::Whole;
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};
use consort_experiment::Context;
use consort_report::{Cell, Column, Figure, Headline, Table};

/// Runs the study.
pub(super) fn run(context: &Context<'_>, _: &StudyFile) -> Result<StudyOutput, StudyError> {
    let grid = Grid::of(context)?;
    let whole = Whole::make(&grid, context)?;
    let mut all = vec![summary(&grid), held_against_oracle(&grid)];
    all.extend([whole_note(&whole), readings_note(&grid)]);
    all.extend(notes::below_one(&grid));
    Ok(StudyOutput {
        tables: vec![
            headline(&grid)?,
            policies(&grid)?,
            whole_runs(&whole)?,
            programs(&grid)?,
            readings(&grid)?,
        ],
        figures: vec![means(&grid)?, by_program(&grid)?],
        notes: all,
        runs: grid.runs(),
    })
}

fn over(grid: &Grid, entrant: usize, over: Over) -> Cell {
    grid.ratio_over(entrant, over, local_speedup)
}

/// Groups of programs that a mean is over, in the source's words.
const GROUPS: [(&str, Over); 2] = [
    ("co-scheduled programs", Over::Sharing),
    ("whole suite", Over::All),
];

fn headline(grid: &Grid) -> Result<Table, StudyError> {
    let mut headline = Headline::new()?;
    for (group, which) in GROUPS {
        for entrant in SOURCES.chain([BOUND]) {
            let row = format!("{} over gang, {group}", name(entrant));
            headline.add_gain(&row, over(grid, entrant, which))?;
        }
    }
    Ok(headline.into_table())
}

fn policies(grid: &Grid) -> Result<Table, StudyError> {
    let columns = vec![
        Column::plain("coscheduled", "Programs that share"),
        Column::plain("suite", "Whole suite"),
        Column::plain("mean", "Arithmetic mean, whole suite"),
    ];
    let title = "Speedup over the gang: geometric means over programs, with intervals over runs";
    let mut table = Table::new("speedup", title, columns)?;
    for (entrant, who) in ENTRANTS.iter().enumerate() {
        let mut cells: Vec<Cell> = [Over::Sharing, Over::All]
            .map(|which| over(grid, entrant, which))
            .into();
        cells.push(grid.mean_over(entrant, Over::All, local_speedup));
        table.push(who.name, cells)?;
    }
    Ok(table)
}

fn whole_runs(whole: &Whole) -> Result<Table, StudyError> {
    let columns = vec![
        Column::plain("stp", "Throughput (STP)"),
        Column::plain("mean_time", "Mean time (ANTT)"),
        Column::plain("makespan", "Makespan"),
    ];
    let title = format!(
        "Whole runs over the gang's, from the first sample on, of work that takes {} s alone",
        whole.alone_s
    );
    let mut table = Table::new("runs", &title, columns)?;
    for (place, entrant) in MAIN.enumerate() {
        let cells = vec![
            whole.over_gang(place + 1, |ended| ended.stp),
            whole.over_gang(place + 1, |ended| ended.antt),
            whole.over_gang(place + 1, |ended| ended.makespan_s),
        ];
        table.push(name(entrant), cells)?;
    }
    Ok(table)
}

fn programs(grid: &Grid) -> Result<Table, StudyError> {
    let column =
        |entrant: usize| Column::plain(&format!("speedup_{entrant}"), ENTRANTS[entrant].short());
    let title = "Local speedup of each program over the gang";
    let mut table = Table::new("programs", title, MAIN.map(column).collect())?;
    for id in grid.suite().ids() {
        let cells = MAIN.map(|entrant| grid.ratio(entrant, id, local_speedup));
        table.push(grid.suite().name(id).unwrap_or("?"), cells.collect())?;
    }
    Ok(table)
}

fn readings(grid: &Grid) -> Result<Table, StudyError> {
    let columns = vec![
        Column::plain("suite", "Speedup, whole suite"),
        Column::plain("coscheduled", "Speedup, programs that share"),
        Column::plain("overall", "Energy-delay over gang's"),
        Column::with_unit("quanta", "Until found", "quanta"),
    ];
    let title = "Readings of the secondary condition for taking a core, and of step 3 (slot)";
    let mut table = Table::new("readings", title, columns)?;
    for readings in READINGS {
        for (reading, entrant) in READING_NAMES.into_iter().zip(readings) {
            let cells = vec![
                over(grid, entrant, Over::All),
                over(grid, entrant, Over::Sharing),
                grid.outcomes(entrant, |o| o.overall),
                grid.outcomes(entrant, |o| o.quanta as f64),
            ];
            table.push(&format!("{}/{reading}", name(readings[0])), cells)?;
        }
    }
    Ok(table)
}

fn means(grid: &Grid) -> Result<Figure, StudyError> {
    let chart = Chart {
        key: "speedup",
        title: "Speedup over the gang",
        text: "Geometric means over programs; intervals are over runs.",
        value: "Speedup",
        unit: None,
        baseline: 1.0,
    };
    let which = [Over::Sharing, Over::All];
    let groups = ["programs that share", "whole suite"];
    chart.by_group(grid, &groups, |entrant, group| {
        over(grid, entrant, which[group])
    })
}

fn by_program(grid: &Grid) -> Result<Figure, StudyError> {
    let chart = Chart {
        key: "programs",
        title: "Local speedup of each program over the gang",
        text: "Fairness times the gain of thread throughput; 1 is what the gang gives.",
        value: "Speedup",
        unit: None,
        baseline: 1.0,
    };
    chart.by_program(grid, |entrant, id| grid.ratio(entrant, id, local_speedup))
}

fn summary(grid: &Grid) -> String {
    let of = |entrant: usize| {
        let text = |which| over(grid, entrant, which).text();
        format!(
            "{} {} ({})",
            name(entrant),
            text(Over::All),
            text(Over::Sharing)
        )
    };
    let all: Vec<String> = MAIN.map(of).collect();
    format!(
        "Speedup of the whole suite over the gang, and of the programs that share: {}. Time that \
         finding a round takes is not in it: H2 says how many quanta that is.",
        all.join(", ")
    )
}

/// Sentence on the part of the oracle's gain that the fair schedulers reach.
fn held_against_oracle(grid: &Grid) -> String {
    let gain = |entrant| {
        over(grid, entrant, Over::All)
            .value()
            .map(|ratio| ratio - 1.0)
    };
    let of = |entrant: usize| {
        let share = gain(entrant)
            .zip(gain(ORACLE))
            .map(|(own, oracle)| 100.0 * own / oracle);
        let share = share.map_or_else(
            || "nothing".to_owned(),
            |share| format!("{share:.0} percent"),
        );
        format!("{} {share}", name(entrant))
    };
    format!(
        "Of what oracle-coschedule gains for the whole suite the fair schedulers reach: {}. It shares \
         no slot with programs that scale nearly linearly and lets nobody be worse off in \
         energy-delay than in the gang, as they do; members=all is the best without either, a bound.",
        FAIR.map(of).join(", ")
    )
}

fn whole_note(whole: &Whole) -> String {
    let of = |(place, entrant): (usize, usize)| {
        let stp = whole.over_gang(place + 1, |ended| ended.stp).text();
        format!("{} {stp}", name(entrant))
    };
    let all: Vec<String> = MAIN.enumerate().map(of).collect();
    format!(
        "Throughput of whole runs over the gang's ({} runs of {} s of work per program): {}. Samples \
         and trials are in it, in which one program or one slot runs while all others wait, and the \
         policies decide by counters with read noise that take turns.",
        whole.runs,
        whole.alone_s,
        all.join(", ")
    )
}

/// Sentence on the differences of the readings.
fn readings_note(grid: &Grid) -> String {
    let group = |readings: [usize; 4]| {
        let of = |(reading, entrant): (&str, usize)| {
            format!("{reading} {}", grid.outcomes(entrant, |o| o.overall).text())
        };
        let texts: Vec<String> = READING_NAMES.into_iter().zip(readings).map(of).collect();
        format!("{}: {}", name(readings[0]), texts.join(", "))
    };
    format!(
        "Overall energy-delay over the gang's by reading: {}. As printed the secondary condition \
         refuses a core where the whole chip gains nearly as much as a linear taker alone would, and \
         lets gains near nothing pass, which the overall energy-delay then judges. Reversed it asks \
         that the chip's instructions rise by nearly 1/N, while the giver loses by the same move. Where \
         the first three give the same, the condition decided about no transfer. slot: a newcomer \
         stays where every member is better off than without it, not only than in the gang.",
        READINGS.map(group).join("; "),
    )
}
