//! Studies of co-scheduling, H1 to H6: machine, programs, and every program alone.
//!
//! H1 uses every program alone with every number of cores, H2 to H6 one [`grid`] of rounds. Every
//! value is relative to the gang of the same run, measured with the same seed.

pub(super) mod entrants;
mod gains;
mod grid;
mod h1;
mod rounds;

pub(super) use gains::{h4, h5, h6};
pub(super) use h1::run as h1;
pub(super) use rounds::{h2, h3};

use super::output::OutputBuilder;
use crate::simulate::chips::chip;
pub(super) use crate::simulate::part_error;
use crate::simulate::programs::{find, instance};
use crate::simulate::{map_jobs, seeds};
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};
use consort_core::ProgramId;
use consort_core::coscheduling::{CoscheduleSlot, KnownProfiles, ProgramMeasure, SlotTrial};
use consort_experiment::ExperimentContext;
use consort_experiment::slots::{SlotTrials, Suite, TrialLengths};
use consort_sim::workload::Workload;
use grid::CoscheduleGrid;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Seed of the studies.
#[cfg(test)]
pub(super) const SEED: u64 = 2010;

/// The machine: eight cores, the last-level cache shared by two.
const MACHINE: &str = "xeon-e5320";

/// A program of the suite, with its figures in the source's tables.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PublishedProgram {
    pub(super) name: &'static str,
    /// Rank by contention for the bus; 1 is the least.
    bus_rank: u32,
    /// Misses over accesses of the last-level cache with eight threads.
    miss_rate: f64,
    /// Number of threads with the lowest energy-delay alone.
    best_threads: u32,
    /// True if it is within 10 percent of linear scaling at eight threads.
    near_linear: bool,
}

/// Bhadauria and McKee, ICS 2010, section 3.1, tables 1 to 3.
pub(super) const PUBLISHED: [PublishedProgram; 12] = [
    published_program("blackscholes", 1, 0.02, 8, true),
    published_program("swaptions", 2, 0.03, 8, true),
    published_program("bodytrack", 3, 0.01, 5, false),
    published_program("vips", 4, 0.01, 8, true),
    published_program("x264", 5, 0.04, 8, false),
    published_program("freqmine", 6, 0.06, 8, true),
    published_program("fluidanimate", 7, 0.38, 8, false),
    published_program("dedup", 8, 0.09, 2, false),
    published_program("ferret", 9, 0.10, 8, true),
    published_program("facesim", 10, 0.03, 4, false),
    published_program("canneal", 11, 0.50, 3, false),
    published_program("streamcluster", 12, 0.21, 2, false),
];

const fn published_program(
    name: &'static str,
    bus_rank: u32,
    miss_rate: f64,
    best_threads: u32,
    near_linear: bool,
) -> PublishedProgram {
    PublishedProgram {
        name,
        bus_rank,
        miss_rate,
        best_threads,
        near_linear,
    }
}

/// Runs a study that adds to an output from the grid.
///
/// # Errors
/// Those of the grid and of the study.
pub(super) fn run(
    context: &ExperimentContext<'_>,
    file: &StudyFile,
    study: fn(&CoscheduleGrid, &mut OutputBuilder<'_>) -> Result<(), StudyError>,
) -> Result<StudyOutput, StudyError> {
    let grid = CoscheduleGrid::get_or_run(context)?;
    let mut output = OutputBuilder::new(file, grid.runs())?;
    study(&grid, &mut output)?;
    Ok(output.finish())
}

/// Time for which slots are tried and measured.
pub(super) fn quantum(context: &ExperimentContext<'_>) -> TrialLengths {
    TrialLengths {
        warm_s: context.by_scale(0.1, 0.3),
        length_s: context.by_scale(0.4, 1.0),
    }
}

/// Seeds of the runs.
fn run_seeds(context: &ExperimentContext<'_>) -> Vec<u64> {
    seeds(context.seed(), context.by_scale(2, 3)).collect()
}

/// Programs of these names on the machine, with as many threads as there are cores.
pub(super) fn suite_of(text: &str, names: &[&str]) -> Result<Suite, StudyError> {
    let chip = chip(MACHINE)?;
    let threads = chip.domains().cores as u32;
    let entry = |name: &&str| Ok(instance((*name).to_owned(), &find(name)?, threads));
    let entries = names.iter().map(entry);
    let workload = Workload {
        text: text.to_owned(),
        entries: entries.collect::<Result<_, StudyError>>()?,
    };
    Ok(Suite::new(&chip, &workload))
}

/// One run's measures by program and number of cores.
pub(super) type AloneMeasures = BTreeMap<(ProgramId, u32), ProgramMeasure>;

/// Every program alone with every number of cores, run by run.
struct CoschedulingAloneRuns {
    suite: Suite,
    runs: Vec<AloneMeasures>,
}

impl CoschedulingAloneRuns {
    /// Returns the runs of this context, which the studies share.
    fn get_or_run(context: &ExperimentContext<'_>) -> Result<Arc<Self>, StudyError> {
        context.get_or_compute("programs alone, co-scheduling", || {
            let suite = suite_of("PARSEC", &PUBLISHED.map(|program| program.name))?;
            // Measured as slots, so that the schedulers can read their samples from here.
            let slots = suite.alone_slots();
            let mut jobs: Vec<(u64, &CoscheduleSlot)> = Vec::new();
            for seed in run_seeds(context) {
                jobs.extend(slots.iter().map(|slot| (seed, slot)));
            }
            let trials = map_jobs(context, &jobs, |(seed, slot)| {
                let trial = SlotTrials::new(&suite, quantum(context), *seed).run(slot);
                trial.map_err(part_error("programs alone"))
            })?;
            let measure = |trial: &SlotTrial| {
                let team = trial.slot.teams.first()?;
                Some(((team.program, team.cores), *trial.measures.first()?))
            };
            let runs = trials.chunks(slots.len());
            let runs = runs.map(|trials| trials.iter().filter_map(measure).collect());
            Ok(Self {
                runs: runs.collect(),
                suite,
            })
        })
    }

    /// Number of cores, in every run, of a program's lowest energy-delay, if it is charged its
    /// share of the cores of the energy that the machine draws whichever programs run.
    fn best_charged(&self, id: ProgramId) -> Vec<f64> {
        let (cores, ids): (u32, Vec<ProgramId>) = (self.suite.cores(), self.suite.ids().collect());
        let best = |measures: &AloneMeasures| {
            // The profile is what `greedy` receives.
            let mut profile = KnownProfiles::new(cores, &[]);
            for (&(program, with), &measure) in measures {
                profile.record_trial(&SlotTrial {
                    slot: CoscheduleSlot::alone(program, with),
                    measures: vec![measure],
                });
            }
            f64::from(profile.best_cores(id, profile.idle_w(&ids)))
        };
        self.runs.iter().map(best).collect()
    }

    /// A value of a program with this number of cores in every run.
    fn values(&self, id: ProgramId, cores: u32, value: fn(&ProgramMeasure) -> f64) -> Vec<f64> {
        let runs = self.runs.iter();
        runs.filter_map(|measures| measures.get(&(id, cores)).map(value))
            .collect()
    }

    /// Mean of [`Self::values`] over the runs.
    fn mean(&self, id: ProgramId, cores: u32, value: fn(&ProgramMeasure) -> f64) -> f64 {
        let values = self.values(id, cores, value);
        values.iter().sum::<f64>() / values.len().max(1) as f64
    }
}
