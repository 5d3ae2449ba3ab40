//! Whole runs: every scheduler from its first sample on, until all programs have done their work.
//!
//! The round that a scheduler ends with is measured by [`super::grid`]; here the time to find it is
//! included, and the policies decide by what the machine's counters tell.

use super::alone::CoschedulingAloneRuns;
use super::entrants::{ENTRANTS, GANG, MAIN};
use super::grid::CoscheduleGrid;
use super::part_error;
use crate::frame::paired_ratio_cell;
use crate::simulate::{experiment, run_every_case};
use crate::study::StudyError;
use consort_core::ProgramId;
use consort_core::coscheduling::ProgramMeasure;
use consort_data::Cell;
use consort_experiment::ExperimentContext;
use consort_experiment::{AloneWork, Contender, Experiment, RunResult};
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
pub(in crate::studies) struct SystemMetrics {
    pub stp: f64,
    pub antt: f64,
    pub makespan_s: f64,
}

/// All runs.
pub(in crate::studies) struct CoschedulingRuns {
    pub alone_s: f64,
    pub runs: usize,
    /// Metrics by scheduler, the gang first, then run.
    ended: Vec<Vec<SystemMetrics>>,
}

impl CoschedulingRuns {
    /// Runs all schedulers.
    pub fn make(
        grid: &CoscheduleGrid,
        context: &ExperimentContext<'_>,
    ) -> Result<Self, StudyError> {
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
            Ok(SystemMetrics::from_run(
                &run.map_err(part_error("whole runs"))?,
            ))
        };
        let ended = run_every_case(context, (&[experiment], &contenders, runs), run)?;
        Ok(Self {
            alone_s,
            runs,
            ended: ended.chunks(runs).map(<[SystemMetrics]>::to_vec).collect(),
        })
    }

    /// A value of a scheduler's runs over that of the gang's, run by run.
    pub fn over_gang(&self, place: usize, of: fn(&SystemMetrics) -> f64) -> Cell {
        let values = |place: usize| self.ended[place].iter().map(of).collect::<Vec<_>>();
        paired_ratio_cell(&values(place), &values(0))
    }
}

impl SystemMetrics {
    fn from_run(run: &RunResult) -> Self {
        Self {
            stp: run.stp,
            antt: run.antt,
            makespan_s: run.makespan_s,
        }
    }
}

/// Work that each program does in that time alone on all cores.
fn work(alone: &CoschedulingAloneRuns, alone_s: f64) -> Vec<AloneWork> {
    let of = |id: ProgramId| AloneWork {
        instructions: alone_s * alone.mean(id, alone.suite.cores(), ProgramMeasure::throughput),
        alone_s,
    };
    alone.suite.ids().map(of).collect()
}

/// The policy, or for a search the round that it found.
fn contender(
    grid: &CoscheduleGrid,
    entrant: usize,
    quantum_ms: u64,
) -> Result<Contender, StudyError> {
    let who = &ENTRANTS[entrant];
    if who.chooser().is_some() {
        let text = format!("{}:quantum={quantum_ms}", who.name);
        return Contender::new(&text, OS).map_err(part_error(who.name));
    }
    let slots = { grid.outcome(0, entrant).trials.iter() }
        .map(|trial| trial.slot.clone())
        .collect::<Vec<_>>();
    Ok(Contender::from_slots(who.name, OS, &slots, quantum_ms))
}
