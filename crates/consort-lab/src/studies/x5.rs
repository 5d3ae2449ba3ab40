//! X5: gaps between policies and exact search.
//!
//! Keys. Tables `throughput` (rows `GROUND/POLICY`, for example `bulldozer/linux`; grounds are
//! `bulldozer`, `power8`, `core2`, `acmp`; beside the policies `any placement` and `worst
//! placement`), `pairing` (rows `THREADS/own model`, `THREADS/truth`, `THREADS/any pairing`),
//! `fours` (rows `THREADS in fours/search`, `THREADS in fours/any grouping`),
//! `speed` and `shared` (rows `acmp/POLICY`, in `shared` also `acmp/best placement`), `mappings`
//! (rows `core2-pairs/POLICY`, beside the policies `any mapping` and `worst mapping`),
//! `coschedules` (rows `energy-delay/SCHEDULER` and `throughput/SCHEDULER`). All have the
//! columns `gap_mean_percent`, `gap_worst_percent`, `gap_least_percent`, `near_percent`,
//! `workloads`. Figures `throughput-GROUND`, `pairing`, `shared`, `mappings`,
//! `coschedules-energy-delay`, `coschedules-throughput`.

use super::optimality;
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};
use consort_experiment::Context;

/// Runs the study.
pub(super) fn run(context: &Context<'_>, _: &StudyFile) -> Result<StudyOutput, StudyError> {
    optimality::run(context)
}
