//! Experiments of the studies of execution-unit occupancy: cases, runs, notes.
//!
//! Every case is run in two ways. As in the source, all programs start together and each runs once
//! ([`once`]), for the time until all have finished. Beside it, all have equal work and start again
//! until the last has done its own ([`equal`]), so that both classes are there all of the time, for
//! system throughput. Pairs are run once at other lengths, too ([`lengths`]).
//!
//! All intervals are over runs that differ in their seed; ratios are taken run by run.

mod case;
mod frames;
mod helpers;
mod notes;
mod runs;

pub(super) use frames::{equal, lengths, once};
pub(super) use notes::notes;

use crate::simulate::{CaseSpec, ExperimentSpec, map_jobs};
use crate::study::StudyError;
use case::{OccupancyLoad, PreparedOccupancyCase};
use consort_experiment::ExperimentContext;
use std::sync::Arc;

/// Length of the programs of a pair, in proportion to what their descriptions say.
#[derive(Clone, Copy, Debug)]
struct PairLength {
    /// The end of its rows' keys.
    name: &'static str,
    /// Length of all programs, at the full scale.
    share: f64,
    /// Length of the floating-point programs, on top of that.
    fp: f64,
}

impl PairLength {
    /// Length of all programs, at the context's scale.
    fn share(self, context: &ExperimentContext<'_>) -> f64 {
        const QUICK: f64 = 0.01;
        context.by_scale(QUICK, self.share)
    }
}

/// The first is the source's.
const LENGTHS: [PairLength; 4] = [
    length("as-it-is", 1.0, 1.0),
    length("shortened", 0.1, 1.0),
    length("shortened-fp-halved", 0.1, 0.5),
    length("shortened-fp-doubled", 0.1, 2.0),
];

const fn length(name: &'static str, share: f64, fp: f64) -> PairLength {
    PairLength { name, share, fp }
}

/// The experiment's cases with their machines and the work of their programs, made once for all
/// methods.
fn prepared(
    context: &ExperimentContext<'_>,
    spec: &ExperimentSpec,
) -> Result<Arc<Vec<PreparedOccupancyCase>>, StudyError> {
    let name = format!("occupancy: {:?} {:?}", spec.alone_s, spec.cases);
    context.get_or_compute(&name, || {
        let prepare = |case: &CaseSpec| {
            let case = case::OccupancyCase {
                key: case.key.clone().unwrap_or_default(),
                machine: case.machine.clone().unwrap_or_else(|| spec.machine.clone()),
                load: OccupancyLoad::from_case_spec(case),
            };
            case.prepare(context, spec.alone_s(context))
        };
        map_jobs(context, &spec.cases, prepare)
    })
}
