//! Whole runs: every scheduler from its first sample on, until all programs have done their work.
//!
//! The round that a scheduler ends with is measured by [`super::grid`]; here the time to find it is
//! included, and the policies decide by what the machine's counters tell.

use super::alone::Alone;
use super::entrants::{ENTRANTS, GANG, MAIN};
use super::failed;
use super::grid::Grid;
use crate::frame::ratio;
use crate::simulate::{every, experiment};
use crate::study::StudyError;
use consort_core::ProgramId;
use consort_core::coscheduling::Measure;
use consort_experiment::Context;
use consort_experiment::{Contender, Experiment, RunResult, Work};
use consort_report::Cell;
use consort_sim::workload::Workload;

/// Time of a program's work alone on all cores, s.
const ALONE_S: [f64; 2] = [1.5, 60.0];
/// Runs of each scheduler.
const RUNS: [usize; 2] = [1, 2];
/// Length of a quantum, ms.
const QUANTUM_MS: [u64; 2] = [400, 2000];
/// The operating system beneath.
const OS: &str = "linux";

/// Metrics that are kept of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::studies) struct Ended {
    pub stp: f64,
    pub antt: f64,
    pub makespan_s: f64,
}

/// All runs.
pub(in crate::studies) struct Whole {
    pub alone_s: f64,
    pub runs: usize,
    /// Metrics by scheduler, the gang first, then run.
    ended: Vec<Vec<Ended>>,
}

impl Whole {
    /// Runs all schedulers.
    pub fn make(grid: &Grid, context: &Context<'_>) -> Result<Self, StudyError> {
        let alone_s = context.by_scale(ALONE_S[0], ALONE_S[1]);
        let runs = context.by_scale(RUNS[0], RUNS[1]);
        let quantum_ms = context.by_scale(QUANTUM_MS[0], QUANTUM_MS[1]);
        let suite = &grid.alone.suite;
        let workload = Workload {
            text: "PARSEC".to_owned(),
            entries: suite.programs().to_vec(),
        };
        let experiment = experiment(suite.chip(), workload, alone_s);
        let work = work(&grid.alone, alone_s);
        let contenders: Vec<Contender> = std::iter::once(GANG)
            .chain(MAIN)
            .map(|entrant| contender(grid, entrant, quantum_ms))
            .collect::<Result<_, _>>()?;
        let run = |experiment: &Experiment, contender: &Contender, seed| {
            let run = experiment.run(contender, &work, seed, None);
            Ok(Ended::of(&run.map_err(failed("whole runs"))?))
        };
        let ended = every(context, (&[experiment], &contenders, runs), run)?;
        Ok(Self {
            alone_s,
            runs,
            ended: ended.chunks(runs).map(<[Ended]>::to_vec).collect(),
        })
    }

    /// A value of a scheduler's runs over that of the gang's, run by run.
    pub fn over_gang(&self, place: usize, of: fn(&Ended) -> f64) -> Cell {
        let values = |place: usize| self.ended[place].iter().map(of).collect::<Vec<_>>();
        ratio(&values(place), &values(0))
    }
}

impl Ended {
    fn of(run: &RunResult) -> Self {
        Self {
            stp: run.stp,
            antt: run.antt,
            makespan_s: run.makespan_s,
        }
    }
}

/// Work that each program does in that time alone on all cores.
fn work(alone: &Alone, alone_s: f64) -> Vec<Work> {
    let of = |id: ProgramId| Work {
        instructions: alone_s * alone.mean(id, alone.suite.cores(), Measure::throughput),
        alone_s,
    };
    alone.suite.ids().map(of).collect()
}

/// The policy, or for a search the round that it found.
fn contender(grid: &Grid, entrant: usize, quantum_ms: u64) -> Result<Contender, StudyError> {
    let who = &ENTRANTS[entrant];
    if who.chooser().is_some() {
        let text = format!("{}:quantum={quantum_ms}", who.name);
        return Contender::new(&text, OS).map_err(failed(who.name));
    }
    let slots = { grid.outcome(0, entrant).trials.iter() }
        .map(|trial| trial.slot.clone())
        .collect::<Vec<_>>();
    Ok(Contender::in_turn(who.name, OS, &slots, quantum_ms))
}
