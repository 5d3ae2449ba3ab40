//! H3: throughput per thread, co-scheduled and alone.
//!
//! Keys. Table `headline`: rows `POLICY, WHAT, mean` and `PROGRAM, co-scheduled under POLICY`.
//! Table `threads`: rows `POLICY/PROGRAM` for programs that share their slot; columns
//! `cores`, `coscheduled`, `alone` (with the same number of cores), `alone_all` (with all cores),
//! each the throughput per thread over that of one thread alone; `gain` (`coscheduled` over
//! `alone_all`, the source's thread throughput gain). Figures `fair-mis`, `fair-com`.

use super::coscheduling::entrants::{ENTRANTS, FAIR, MAIN};
use super::coscheduling::grid::{CoscheduleGrid, SlotMeasures};
use super::coscheduling::views::shares;
use crate::frame::{interval_cell, mean_ratio_cell};
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};
use consort_core::ProgramId;
use consort_core::coscheduling::{ProgramMeasure, thread_throughput_gain};
use consort_core::stats::mean;
use consort_data::{Cell, Figure, HeadlineTable, ReportTable};
use consort_experiment::ExperimentContext;

/// Throughputs per thread over that of one thread alone.
struct ThreadThroughputs {
    cores: f64,
    coscheduled: f64,
    alone: f64,
    all: f64,
    gain: f64,
}

/// Runs the study.
pub(super) fn run(
    context: &ExperimentContext<'_>,
    file: &StudyFile,
) -> Result<StudyOutput, StudyError> {
    let grid = CoscheduleGrid::get_or_run(context)?;
    let sharing = FAIR
        .into_iter()
        .filter(|&entrant| !grid.sharing(entrant).is_empty());
    let figures = sharing.map(|entrant| figure(file, &grid, entrant));
    Ok(StudyOutput {
        tables: vec![headline(&grid)?, table(file, &grid)?],
        figures: figures.collect::<Result<_, _>>()?,
        notes: notes(&grid),
        runs: grid.runs(),
    })
}

/// A program's threads in a run, if it shares its slot.
fn in_run(
    grid: &CoscheduleGrid,
    entrant: usize,
    run: usize,
    id: ProgramId,
) -> Option<ThreadThroughputs> {
    let place: SlotMeasures<'_> = grid.place(run, entrant, id).filter(shares)?;
    let table = &grid.alone.runs[run];
    let alone = |n| Some(table.get(&(id, n))?.thread_throughput());
    let one = alone(1)?;
    Some(ThreadThroughputs {
        cores: f64::from(place.measure.cores),
        coscheduled: place.measure.thread_throughput() / one,
        alone: alone(place.measure.cores)? / one,
        all: ProgramMeasure::thread_throughput(place.gang) / one,
        gain: thread_throughput_gain(place.measure, place.gang),
    })
}

/// A program's threads in the runs in which it shares its slot.
fn threads(grid: &CoscheduleGrid, entrant: usize, id: ProgramId) -> Vec<ThreadThroughputs> {
    let of = |run: usize| in_run(grid, entrant, run, id);
    (0..grid.runs()).filter_map(of).collect()
}

fn over(threads: &[ThreadThroughputs], of: fn(&ThreadThroughputs) -> f64) -> Cell {
    interval_cell(&threads.iter().map(of).collect::<Vec<_>>())
}

/// Name and value of a bar of the source's chart.
type ThroughputBar = (&'static str, fn(&ThreadThroughputs) -> f64);

/// The three bars of each program.
const SERIES: [ThroughputBar; 3] = [
    ("co-scheduled", |t| t.coscheduled),
    ("alone, as many threads", |t| t.alone),
    ("alone, all cores", |t| t.all),
];

fn headline(grid: &CoscheduleGrid) -> Result<ReportTable, StudyError> {
    let mut headline = HeadlineTable::new()?;
    for entrant in FAIR {
        for (what, of) in SERIES {
            let row = format!("{}, {what}, mean", ENTRANTS[entrant].name);
            headline.add(&row, "ratio", mean_over_programs(grid, entrant, of))?;
        }
    }
    for entrant in FAIR {
        for id in grid.suite().ids() {
            let values = threads(grid, entrant, id);
            let cell = match values.is_empty() {
                true => Cell::missing("it shares its slot in no run"),
                false => over(&values, |t| t.coscheduled),
            };
            let program = grid.suite().name(id).unwrap_or("?");
            let row = format!("{program}, co-scheduled under {}", ENTRANTS[entrant].name);
            headline.add(&row, "ratio", cell)?;
        }
    }
    Ok(headline.into_table())
}

/// Mean over the programs that share, then over runs.
fn mean_over_programs(
    grid: &CoscheduleGrid,
    entrant: usize,
    of: fn(&ThreadThroughputs) -> f64,
) -> Cell {
    let in_run = |run: usize| {
        let all = grid
            .suite()
            .ids()
            .filter_map(|id| in_run(grid, entrant, run, id));
        mean(&all.map(|threads| of(&threads)).collect::<Vec<_>>())
    };
    let means: Vec<f64> = (0..grid.runs()).filter_map(in_run).collect();
    match means.is_empty() {
        true => Cell::missing("no program shares its slot"),
        false => interval_cell(&means),
    }
}

fn table(file: &StudyFile, grid: &CoscheduleGrid) -> Result<ReportTable, StudyError> {
    let mut rows = Vec::new();
    for entrant in MAIN {
        for id in grid.sharing(entrant) {
            let threads = threads(grid, entrant, id);
            let gains: Vec<f64> = threads.iter().map(|t| t.gain).collect();
            let cells = vec![
                over(&threads, |t| t.cores),
                over(&threads, |t| t.coscheduled),
                over(&threads, |t| t.alone),
                over(&threads, |t| t.all),
                mean_ratio_cell(&gains),
            ];
            let program = grid.suite().name(id).unwrap_or("?");
            rows.push((format!("{}/{program}", ENTRANTS[entrant].name), cells));
        }
    }
    file.fill_table("threads", rows)
}

fn figure(file: &StudyFile, grid: &CoscheduleGrid, entrant: usize) -> Result<Figure, StudyError> {
    let ids = grid.sharing(entrant);
    let series = SERIES.map(|(name, of)| {
        let cells = ids.iter().map(|&id| over(&threads(grid, entrant, id), of));
        (name.to_owned(), cells.collect())
    });
    let names = ids.iter().filter_map(|id| grid.suite().name(*id));
    let names = names.map(str::to_owned).collect();
    file.bar_figure(ENTRANTS[entrant].name, grid.runs(), names, series)
}

fn notes(grid: &CoscheduleGrid) -> Vec<String> {
    let of = |entrant: usize| {
        let all: Vec<ThreadThroughputs> = { grid.sharing(entrant).into_iter() }
            .flat_map(|id| threads(grid, entrant, id))
            .collect();
        let mean =
            |of: fn(&ThreadThroughputs) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
        let name = ENTRANTS[entrant].name;
        if all.is_empty() {
            return format!("Under {name} no program shares its slot.");
        }
        format!(
            "Under {name}, on average over programs that share, the others in the slot take {:.1} \
             percent of a thread's throughput, and a thread of fewer does {:.1} percent more than \
             one of as many as there are cores.",
            100.0 * (1.0 - mean(|t| t.coscheduled / t.alone)),
            100.0 * (mean(|t| t.gain) - 1.0),
        )
    };
    FAIR.map(of).into()
}
