//! X5: how far policies are from what exact search finds.
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
use super::symbiosis::SEED;
use crate::context::Context;
use crate::study::{Study, StudyError, StudyInfo, StudyOutput};

/// The study.
pub(super) struct X5;

static INFO: StudyInfo = StudyInfo {
    id: "X5",
    title: "What policies leave to exact search",
    source: "Consort; the policies are those of its sources",
    section: "gap to the optimum on small machines",
    original: "No source compares its policy with all placements; some prove that a part of it is \
               exact.",
    differs: "Different programs of SPEC CPU2006, as many as PUs, drawn by the seed: 6 workloads of \
              8 on Bulldozer and on four cores of one node of a POWER8 in SMT2, 20 of 4 on a Core 2 \
              Quad and on one large and three small cores; every placement up to symmetry and every \
              policy in three runs with the same seeds. A program's work is what it does alone in \
              5 s (0.2 s on the asymmetric chip). Pairings are of sets of programs drawn 100 \
              times, by slowdowns measured when the model is trained, and by the trained model; groups of four \
              by the simulation's slowdowns of first phases in SMT4, 40 draws of 8 and of 12. Mappings \
              are those of every third of the 36 pairs of nine programs of PARSEC with four threads each on a Core 2 \
              Quad, up to symmetry, work of 4 s, two runs. Rounds of co-schedulers are those of 12 \
              suites of four programs of PARSEC drawn by the seed, with eight threads each on a Xeon \
              E5320, by trials of 0.4 s of all slots, which every scheduler is told. The \
              quick scale has 2 and 8 workloads, 2 s (0.05 s), one run, 8 programs to train, three \
              pairs with work of 1 s and one run, and one suite of three programs with trials of 0.2 s.",
    default_seed: SEED,
    full_seconds_hint: 400,
};

impl Study for X5 {
    fn info(&self) -> &StudyInfo {
        &INFO
    }

    fn run(&self, context: &Context<'_>) -> Result<StudyOutput, StudyError> {
        optimality::run(context)
    }
}
