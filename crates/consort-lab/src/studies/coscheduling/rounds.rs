//! H2: the rounds that each scheduler finds. H3: throughput per thread in them and alone.
//!
//! Keys. H2: table `headline`: rows `POLICY, programs that share` and `PROGRAM, threads under
//! POLICY`, and `POLICY co-schedules`, the slots of several programs. Table `policies`: rows are
//! schedulers; `quanta` until the round is found, `overall` its energy-delay over the gang's,
//! `reverted` the share of runs in which it was given up, `rounds` how many differ among runs. Table `slots`: rows `POLICY/RUN/NUMBER`. H3: table `threads`: rows
//! `POLICY/PROGRAM` for programs that share their slot; throughputs per thread are over that of one
//! thread alone, `gain` is `coscheduled` over `alone_all`, the source's thread throughput gain, and
//! `speed` is the program's speed over the gang.

use super::PUBLISHED;
use super::entrants::{ALPHA, ENTRANTS, FAIR, MAIN, SOURCES};
use super::grid::{CoscheduleGrid, local_speedup, name, scheduler_rows, shares};
use crate::frame::{interval_cell, mean_ratio_cell};
use crate::studies::output::{OutputBuilder, join};
use crate::study::StudyError;
use consort_core::ProgramId;
use consort_core::coscheduling::{ProgramMeasure, SlotTrial, thread_throughput_gain};
use consort_core::stats::mean;
use consort_data::Cell;
use std::collections::BTreeSet;

/// H2.
pub(crate) fn h2(grid: &CoscheduleGrid, output: &mut OutputBuilder<'_>) -> Result<(), StudyError> {
    let cores_of = |entrant, id| grid.values(entrant, id, |p| f64::from(p.measure.cores));
    let sharing = |entrant| {
        grid.outcomes(entrant, |outcome| {
            let sizes = outcome.trials.iter().map(|trial| trial.slot.teams.len());
            sizes.filter(|teams| *teams > 1).sum::<usize>() as f64
        })
    };

    for entrant in SOURCES {
        let row = format!("{}, programs that share", name(entrant));
        output.headline(row, "programs", sharing(entrant))?;
    }
    for entrant in SOURCES {
        for id in grid.suite().ids() {
            let row = format!("{}, threads under {}", grid.program(id), name(entrant));
            output.headline(row, "threads", interval_cell(&cores_of(entrant, id)))?;
        }
    }

    for entrant in SOURCES {
        let trials = grid.outcome(0, entrant).trials.iter();
        let shared = trials
            .filter(|trial| trial.slot.teams.len() > 1)
            .map(|trial| {
                let teams = trial.slot.teams.iter();
                let members = join(teams, |t| {
                    format!("{} {}", grid.program(t.program), t.cores)
                });
                format!("{{{members}}}")
            });
        let texts: Vec<String> = shared.collect();
        let row = format!("{} co-schedules", name(entrant));
        output.headline(
            row,
            "programs and threads, first run",
            texts.join(" ").as_str(),
        )?;
    }

    let policies = scheduler_rows(|entrant| {
        let quanta = match ENTRANTS[entrant].chooser() {
            Some(_) => grid.outcomes(entrant, |o| o.quanta as f64),
            None => Cell::missing("found outside of the run"),
        };
        vec![
            grid.outcomes(entrant, |o| o.trials.len() as f64),
            sharing(entrant),
            quanta,
            grid.outcomes(entrant, |o| o.overall),
            grid.outcomes(entrant, |o| f64::from(u8::from(o.reverted))),
            different_rounds(grid, entrant).into(),
        ]
    });
    output.table("policies", policies)?;
    let mut slots = Vec::new();
    // All slots of the gang are alike: one program with all cores.
    for entrant in 1..ENTRANTS.len() {
        for run in 0..grid.runs() {
            for (number, trial) in grid.outcome(run, entrant).trials.iter().enumerate() {
                let places = trial.slot.teams.iter();
                let places = places.filter_map(|team| grid.place(run, entrant, team.program));
                let speedups = join(places, |place| format!("{:.3}", local_speedup(&place)));
                let cells = vec![
                    Cell::Text(grid.suite().slot_text(&trial.slot)),
                    u64::from(trial.slot.quanta()).into(),
                    u64::from(grid.suite().cores() - trial.slot.cores()).into(),
                    Cell::Text(speedups),
                ];
                slots.push((
                    format!("{}/{}/{}", name(entrant), run + 1, number + 1),
                    cells,
                ));
            }
        }
    }
    output.table("slots", slots)?;
    let cells = |entrant, id| interval_cell(&cores_of(entrant, id));
    output.table("cores", grid.by_program(&(1..ENTRANTS.len()), cells))?;

    let rows = grid.suite().ids().map(|id| {
        let means = MAIN.map(|entrant| {
            let values = cores_of(entrant, id);
            Some(values.iter().sum::<f64>() / values.len() as f64)
        });
        (grid.program(id), means.collect())
    });
    output.heat_map("cores", MAIN.map(|entrant| ENTRANTS[entrant].short()), rows)?;
    write_notes(output, grid);
    Ok(())
}

/// Number of different rounds among the runs, whatever the order of slots and programs.
fn different_rounds(grid: &CoscheduleGrid, entrant: usize) -> u64 {
    let slot = |trial: &SlotTrial| -> BTreeSet<(ProgramId, u32)> {
        let teams = trial.slot.teams.iter();
        teams.map(|team| (team.program, team.cores)).collect()
    };
    let rounds = (0..grid.runs()).map(|run| {
        let trials = grid.outcome(run, entrant).trials.iter();
        trials.map(slot).collect::<BTreeSet<_>>()
    });
    rounds.collect::<BTreeSet<_>>().len() as u64
}

fn write_notes(output: &mut OutputBuilder<'_>, grid: &CoscheduleGrid) {
    let searching = ENTRANTS
        .iter()
        .filter(|entrant| entrant.chooser().is_none());
    let texts: Vec<String> = { grid.searches.iter().zip(searching) }
        .map(|(found, entrant)| {
            let bound = ", where its bound ended it";
            let ended = if found.settled { "" } else { bound };
            let (name, simulated) = (entrant.name, found.simulated);
            format!("for {name} {simulated} of several programs{ended}")
        })
        .collect();
    let first = grid.searches.first();
    let mut errors = first.map_or_else(Vec::new, |found| found.sampled.clone());
    errors.sort_by(f64::total_cmp);
    let error_at = |share: f64| match errors.len() {
        0 => 0.0,
        n => 100.0 * errors[((n - 1) as f64 * share) as usize],
    };
    output.note(format!(
        "The exhaustive search estimates all {} slots by the contention among programs' threads \
         that work on average, and simulates those of the best rounds, in all {}. On {} slots \
         taken at even distances, a program's estimated throughput is {:+.1} percent off the \
         simulated in the median, from {:+.1} to {:+.1} in nine of ten; the mean error by number \
         of programs is taken out of the search's estimates.",
        first.map_or(0, |found| found.estimated),
        texts.join(" and then "),
        first.map_or(0, |found| found.samples),
        error_at(0.5),
        error_at(0.05),
        error_at(0.95),
    ));

    let largest = join(MAIN, |entrant| {
        let trials = (0..grid.runs()).flat_map(|run| &grid.outcome(run, entrant).trials);
        let most = trials.map(|trial| trial.slot.teams.len()).max();
        format!("{} {}", name(entrant), most.unwrap_or(0))
    });
    output.note(format!(
        "Programs in the largest slot: {largest}. A fair scheduler adds a program only where every \
         member's energy-delay is below that in the gang, at even cores; it gives up at the second \
         failure, and programs within 10 percent of linear are not considered at all. pdpa puts \
         all others into one slot; where they are more than there are cores, into several of about \
         as many. oracle-coschedule may divide the cores as it likes but lets nobody lose; with \
         members=all it lets some lose for the good of the mean."
    ));

    let all = grid.suite().cores();
    let by_whole = grid.suite().ids().filter(|&id| {
        let energy_delay = |n| grid.alone.mean(id, n, |m| m.energy_delay(1));
        (1..=all).all(|n| energy_delay(n) >= energy_delay(all))
    });
    let by_share = grid.suite().ids().filter(|&id| {
        let best = grid.alone.best_charged(id);
        best.iter().all(|&n| n == f64::from(all))
    });
    output.note(format!(
        "greedy charges a program the share of its cores of what the machine draws whoever runs: \
         then energy-delay is lowest with all {all} cores for {} of the 12 programs. By the power \
         of the whole machine it would be for {}, since what is always drawn is spread over more \
         work as long as throughput rises.",
        by_share.count(),
        by_whole.count(),
    ));

    let bar = (1.0 - ALPHA) * f64::from(all);
    let border = PUBLISHED.iter().zip(grid.suite().ids());
    let border = border.filter_map(|(published, id)| {
        let throughput = |n| grid.alone.mean(id, n, ProgramMeasure::throughput);
        let speedup = throughput(all) / throughput(1);
        (published.near_linear != (speedup >= bar))
            .then(|| format!("{} {speedup:.2}", published.name))
    });
    let border: Vec<String> = border.collect();
    if !border.is_empty() {
        output.note(format!(
            "With the source's α programs from a speedup of {bar:.1} on are near-linear and run \
             alone. On the other side of that border than in the source: {}. Below it a program is \
             a candidate to share, so that more programs share here than in the source; the fair \
             schedulers then form larger slots, or leave a program over that finds no partner.",
            border.join(", "),
        ));
    }

    let reverted =
        |entrant: &usize| (0..grid.runs()).any(|run| grid.outcome(run, *entrant).reverted);
    let reverted: Vec<&str> = (0..ENTRANTS.len()).filter(reverted).map(name).collect();
    if !reverted.is_empty() {
        output.note(format!(
            "Given up for the gang in some run, because the round's overall energy-delay proved \
             worse: {}.",
            reverted.join(", ")
        ));
    }
    for entrant in FAIR {
        output.note(grid.slower_programs_note(entrant));
    }
}

/// Throughputs per thread over that of one thread alone.
struct ThreadThroughputs {
    cores: f64,
    coscheduled: f64,
    alone: f64,
    all: f64,
    gain: f64,
}

/// Name and value of a bar of the source's chart.
type ThroughputBar = (&'static str, fn(&ThreadThroughputs) -> f64);

/// The three bars of each program.
const SERIES: [ThroughputBar; 3] = [
    ("co-scheduled", |t| t.coscheduled),
    ("alone, as many threads", |t| t.alone),
    ("alone, all cores", |t| t.all),
];

/// A program's threads in a run, if it shares its slot.
fn threads_in_run(
    grid: &CoscheduleGrid,
    entrant: usize,
    run: usize,
    id: ProgramId,
) -> Option<ThreadThroughputs> {
    let place = grid.place(run, entrant, id).filter(shares)?;
    let measures = &grid.alone.runs[run];
    let alone = |n| Some(measures.get(&(id, n))?.thread_throughput());
    let one = alone(1)?;
    Some(ThreadThroughputs {
        cores: f64::from(place.measure.cores),
        coscheduled: place.measure.thread_throughput() / one,
        alone: alone(place.measure.cores)? / one,
        all: ProgramMeasure::thread_throughput(place.gang) / one,
        gain: thread_throughput_gain(place.measure, place.gang),
    })
}

/// H3.
pub(crate) fn h3(grid: &CoscheduleGrid, output: &mut OutputBuilder<'_>) -> Result<(), StudyError> {
    let threads = |entrant, id| -> Vec<ThreadThroughputs> {
        let runs = 0..grid.runs();
        runs.filter_map(|run| threads_in_run(grid, entrant, run, id))
            .collect()
    };
    let over_runs = |threads: &[ThreadThroughputs], value: fn(&ThreadThroughputs) -> f64| {
        interval_cell(&threads.iter().map(value).collect::<Vec<_>>())
    };

    for entrant in FAIR {
        for (what, value) in SERIES {
            let mut means = Vec::new();
            for run in 0..grid.runs() {
                let ids = grid.suite().ids();
                let threads = ids.filter_map(|id| threads_in_run(grid, entrant, run, id));
                means.extend(mean(&threads.map(|t| value(&t)).collect::<Vec<_>>()));
            }
            let cell = match means.is_empty() {
                true => Cell::missing("no program shares its slot"),
                false => interval_cell(&means),
            };
            output.headline(format!("{}, {what}, mean", name(entrant)), "ratio", cell)?;
        }
    }
    for entrant in FAIR {
        for id in grid.suite().ids() {
            let values = threads(entrant, id);
            let cell = match values.is_empty() {
                true => Cell::missing("it shares its slot in no run"),
                false => over_runs(&values, |t| t.coscheduled),
            };
            let row = format!("{}, co-scheduled under {}", grid.program(id), name(entrant));
            output.headline(row, "ratio", cell)?;
        }
    }

    let mut rows = Vec::new();
    for entrant in MAIN {
        for id in grid.sharing(entrant) {
            let threads = threads(entrant, id);
            let gains: Vec<f64> = threads.iter().map(|t| t.gain).collect();
            let cells = vec![
                over_runs(&threads, |t| t.cores),
                over_runs(&threads, |t| t.coscheduled),
                over_runs(&threads, |t| t.alone),
                over_runs(&threads, |t| t.all),
                mean_ratio_cell(&gains),
                mean_ratio_cell(&grid.values(entrant, id, local_speedup)),
            ];
            rows.push((format!("{}/{}", name(entrant), grid.program(id)), cells));
        }
    }
    output.table("threads", rows)?;

    for entrant in FAIR {
        let name = name(entrant);
        let ids = grid.sharing(entrant);
        let threads: Vec<Vec<ThreadThroughputs>> =
            ids.iter().map(|&id| threads(entrant, id)).collect();
        let all: Vec<&ThreadThroughputs> = threads.iter().flatten().collect();
        if all.is_empty() {
            output.note(format!("Under {name} no program shares its slot."));
            continue;
        }
        let series = SERIES.map(|(name, value)| {
            let cells = threads.iter().map(|threads| over_runs(threads, value));
            (name, cells.collect())
        });
        output.bars(name, ids.iter().map(|id| grid.program(*id)), series)?;
        let mean = |value: fn(&ThreadThroughputs) -> f64| {
            all.iter().map(|t| value(t)).sum::<f64>() / all.len() as f64
        };
        output.note(format!(
            "Under {name}, on average over programs that share, the others in the slot take {:.1} \
             percent of a thread's throughput, and a thread of fewer does {:.1} percent more than \
             one of as many as there are cores.",
            100.0 * (1.0 - mean(|t| t.coscheduled / t.alone)),
            100.0 * (mean(|t| t.gain) - 1.0),
        ));
    }
    Ok(())
}
