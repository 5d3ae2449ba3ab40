//! H2: the co-schedules and thread allocations that each scheduler finds.
//!
//! Keys. Table `headline`: rows `POLICY, programs that share` and `PROGRAM, threads under POLICY`.
//! Table `policies`: rows are schedulers with their options; columns `slots` (per round),
//! `sharing` (programs that share their slot), `quanta` (until the round is found), `overall`
//! (energy-delay of the round over the gang's), `reverted` (share of runs in which it was given up
//! for the gang), `rounds` (that differ among runs). Table `slots`: rows `POLICY/RUN/NUMBER`;
//! columns `programs` (with their cores), `quanta`, `idle`, `speedups`. Table `cores`: rows are
//! programs, columns schedulers (mean over runs). Figure `cores`.

use super::coscheduling::entrants::{ENTRANTS, MAIN, RoundScheduler, SOURCES};
use super::coscheduling::grid::CoscheduleGrid;
use super::coscheduling::notes;
use super::coscheduling::views::{local_speedup, name};
use crate::frame::interval_cell;
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};
use consort_core::ProgramId;
use consort_core::coscheduling::{CoscheduleSlot, ProgramTeam, SlotTrial};
use consort_data::{Cell, Figure, HeadlineTable, ReportTable};
use consort_experiment::ExperimentContext;
use consort_experiment::slots::BestRound;
use std::collections::BTreeSet;

/// Runs the study.
pub(super) fn run(
    context: &ExperimentContext<'_>,
    file: &StudyFile,
) -> Result<StudyOutput, StudyError> {
    let grid = CoscheduleGrid::get_or_run(context)?;
    let mut all = vec![searched(&grid)];
    all.push(largest(&grid));
    all.push(greedy(&grid));
    all.extend(reverted(&grid));
    all.extend(notes::below_one(&grid));
    Ok(StudyOutput {
        tables: vec![
            headline(&grid)?,
            policies(file, &grid)?,
            slots(file, &grid)?,
            cores(file, &grid)?,
        ],
        figures: vec![figure(file, &grid)?],
        notes: all,
        runs: grid.runs(),
    })
}

/// Programs that share, in a round.
fn sharing(trials: &[SlotTrial]) -> f64 {
    let several = trials.iter().filter(|trial| trial.slot.teams.len() > 1);
    several.map(|trial| trial.slot.teams.len()).sum::<usize>() as f64
}

fn headline(grid: &CoscheduleGrid) -> Result<ReportTable, StudyError> {
    let mut headline = HeadlineTable::new()?;
    for entrant in SOURCES {
        let sharing = grid.outcomes(entrant, |o| sharing(&o.trials));
        let row = format!("{}, programs that share", name(entrant));
        headline.add(&row, "programs", sharing)?;
    }
    for entrant in SOURCES {
        for id in grid.suite().ids() {
            let program = grid.suite().name(id).unwrap_or("?");
            let row = format!("{program}, threads under {}", name(entrant));
            headline.add(&row, "threads", interval_cell(&cores_of(grid, entrant, id)))?;
        }
    }
    Ok(headline.into_table())
}

fn policies(file: &StudyFile, grid: &CoscheduleGrid) -> Result<ReportTable, StudyError> {
    let row = |(entrant, who): (usize, &RoundScheduler)| {
        let quanta = match who.chooser() {
            Some(_) => grid.outcomes(entrant, |o| o.quanta as f64),
            None => Cell::missing("found outside of the run"),
        };
        let cells = vec![
            grid.outcomes(entrant, |o| o.trials.len() as f64),
            grid.outcomes(entrant, |o| sharing(&o.trials)),
            quanta,
            grid.outcomes(entrant, |o| o.overall),
            grid.outcomes(entrant, |o| f64::from(u8::from(o.reverted))),
            different(grid, entrant).into(),
        ];
        (who.name, cells)
    };
    file.fill_table("policies", ENTRANTS.iter().enumerate().map(row))
}

/// Number of different rounds among the runs, whatever the order of slots and programs.
fn different(grid: &CoscheduleGrid, entrant: usize) -> u64 {
    let of_slot = |trial: &SlotTrial| {
        let teams = trial.slot.teams.iter();
        teams
            .map(|team| (team.program, team.cores))
            .collect::<BTreeSet<_>>()
    };
    let of_run = |run| {
        let trials = grid.outcome(run, entrant).trials.iter();
        trials.map(of_slot).collect::<BTreeSet<_>>()
    };
    (0..grid.runs()).map(of_run).collect::<BTreeSet<_>>().len() as u64
}

fn slots(file: &StudyFile, grid: &CoscheduleGrid) -> Result<ReportTable, StudyError> {
    let mut rows = Vec::new();
    for (entrant, who) in ENTRANTS.iter().enumerate().skip(1) {
        for run in 0..grid.runs() {
            for (number, trial) in grid.outcome(run, entrant).trials.iter().enumerate() {
                let key = format!("{}/{}/{}", who.name, run + 1, number + 1);
                let idle = grid.suite().cores() - trial.slot.cores();
                let cells = vec![
                    grid.suite().slot_text(&trial.slot).as_str().into(),
                    u64::from(trial.slot.quanta()).into(),
                    u64::from(idle).into(),
                    speedups(grid, run, entrant, &trial.slot).as_str().into(),
                ];
                rows.push((key, cells));
            }
        }
    }
    file.fill_table("slots", rows)
}

fn speedups(grid: &CoscheduleGrid, run: usize, entrant: usize, slot: &CoscheduleSlot) -> String {
    let of = |team: &ProgramTeam| grid.place(run, entrant, team.program);
    let places = slot.teams.iter().filter_map(of);
    let texts = places.map(|place| format!("{:.3}", local_speedup(&place)));
    texts.collect::<Vec<_>>().join(", ")
}

fn cores_of(grid: &CoscheduleGrid, entrant: usize, id: ProgramId) -> Vec<f64> {
    grid.values(entrant, id, |place| f64::from(place.measure.cores))
}

fn cores(file: &StudyFile, grid: &CoscheduleGrid) -> Result<ReportTable, StudyError> {
    let cell = |entrant, id| interval_cell(&cores_of(grid, entrant, id));
    file.fill_table("cores", grid.rows(&(1..ENTRANTS.len()), cell))
}

fn figure(file: &StudyFile, grid: &CoscheduleGrid) -> Result<Figure, StudyError> {
    let mean = |entrant, id| {
        let values = cores_of(grid, entrant, id);
        Some(values.iter().sum::<f64>() / values.len() as f64)
    };
    let row = |id| MAIN.map(|entrant| mean(entrant, id)).collect();
    let columns = MAIN.map(|entrant| ENTRANTS[entrant].short().to_owned());
    let rows = grid.names().into_iter().zip(grid.suite().ids().map(row));
    file.heat_figure("cores", grid.runs(), columns.collect(), rows.collect())
}

/// Sentence on the extent of the searches and the accuracy of their estimates.
fn searched(grid: &CoscheduleGrid) -> String {
    let of = |(found, entrant): (&BestRound, &RoundScheduler)| {
        let ended = if found.settled {
            ""
        } else {
            ", where its bound ended it"
        };
        format!(
            "for {} {} of several programs{ended}",
            entrant.name, found.simulated
        )
    };
    let searching = ENTRANTS
        .iter()
        .filter(|entrant| entrant.chooser().is_none());
    let texts: Vec<String> = grid.searches.iter().zip(searching).map(of).collect();
    let first = grid.searches.first();
    let mut errors = first.map_or_else(Vec::new, |found| found.sampled.clone());
    errors.sort_by(f64::total_cmp);
    let at = |share: f64| match errors.len() {
        0 => 0.0,
        n => 100.0 * errors[((n - 1) as f64 * share) as usize],
    };
    format!(
        "The exhaustive search estimates all {} slots by the contention among programs' threads that \
         work on average, and simulates those of the best rounds, in all {}. On {} slots taken at even distances, \
         a program's estimated throughput is {:+.1} percent off the simulated in the median, from \
         {:+.1} to {:+.1} in nine of ten; the mean error by number of programs is taken out \
         of the search's estimates.",
        first.map_or(0, |found| found.estimated),
        texts.join(" and then "),
        first.map_or(0, |found| found.samples),
        at(0.5),
        at(0.05),
        at(0.95),
    )
}

/// Sentence on the largest number of programs in a slot, and why the fair schedulers end there.
fn largest(grid: &CoscheduleGrid) -> String {
    let most = |entrant: usize| {
        let trials = (0..grid.runs()).flat_map(|run| &grid.outcome(run, entrant).trials);
        trials
            .map(|trial| trial.slot.teams.len())
            .max()
            .unwrap_or(0)
    };
    let of = |entrant: usize| format!("{} {}", name(entrant), most(entrant));
    let texts: Vec<String> = MAIN.map(of).collect();
    format!(
        "Programs in the largest slot: {}. A fair scheduler adds a program only where every member's \
         energy-delay is below that in the gang, at even cores; it gives up at the second failure, \
         and programs within 10 percent of linear are not considered at all. pdpa puts all others \
         into one slot; where they are more than there are cores, into several of about as many. \
         oracle-coschedule may divide the cores as it \
         likes but lets nobody lose; with members=all it lets some lose for the good of the mean.",
        texts.join(", ")
    )
}

/// Sentence on the energy that greedy goes by, and its choice by the power of the whole machine.
fn greedy(grid: &CoscheduleGrid) -> String {
    let all = grid.suite().cores();
    let whole = |id, n| grid.alone.mean(id, n, |m| m.energy_delay(1));
    let least = |id: &ProgramId| (1..=all).all(|n| whole(*id, n) >= whole(*id, all));
    let by_whole = grid.suite().ids().filter(least).count();
    let charged = |id: &ProgramId| {
        let best = grid.alone.best_charged(*id);
        best.iter().all(|&n| n == f64::from(all))
    };
    let by_share = grid.suite().ids().filter(charged).count();
    format!(
        "greedy charges a program the share of its cores of what the machine draws whoever runs: then \
         energy-delay is lowest with all {all} cores for {by_share} of the 12 programs. By the power of \
         the whole machine it would be for {by_whole}, since what is always drawn is spread over more \
         work as long as throughput rises."
    )
}

fn reverted(grid: &CoscheduleGrid) -> Option<String> {
    let given_up =
        |entrant: &usize| (0..grid.runs()).any(|run| grid.outcome(run, *entrant).reverted);
    let names: Vec<&str> = (0..ENTRANTS.len()).filter(given_up).map(name).collect();
    (!names.is_empty()).then(|| {
        format!(
            "Given up for the gang in some run, because the round's overall energy-delay proved \
             worse: {}.",
            names.join(", ")
        )
    })
}
