//! What the studies of execution-unit occupancy share: cases, runs, tables, figures, notes.
//!
//! A study is a list of [`Case`]s; [`run`] does the rest. Policies are `linux`, `aggregate` and
//! `workover`, the latter two by the paper's rules: no margin, no dealing to nodes.
//!
//! Row keys are `CASE/POLICY`, in the table `classes` `CASE/POLICY/CLASS`, for example
//! `smt2/h264ref+povray/workover/fp`. Tables and their columns:
//!
//! - `policies`: `speedup_over_linux`, `speedup_over_aggregate` (ratios of system throughput),
//!   `makespan_speedup_over_linux`, `stp`, `antt`, `unfairness`, `makespan_s`, `migrations`;
//! - `spread`: `makespan_min_s`, `makespan_max_s`, `makespan_sd_s`, `stp_min`, `stp_max`,
//!   `stp_sd`, all over the runs;
//! - `classes`: `slowdown`, `l2_mpki`, `l2_change_percent` (over `linux`), `fpu_busy_percent`,
//!   `cpi`, and `cpi_CAUSE` for each cause of cycles;
//! - `units`: `fpu_mean_percent`, `fpu_busiest_percent`, `fpu_idlest_percent`: share of the FPU's
//!   pipes in use, over all cores, on the core where it is highest and where it is lowest at each
//!   moment.
//!
//! All intervals are over runs that differ in their seed; ratios are taken run by run.

mod case;
mod classes;
mod figures;
mod fpu;
mod notes;
pub(super) mod profile;
mod runs;
mod tables;

pub(super) use case::{Case, Load};

use crate::context::Context;
use crate::study::{StudyError, StudyOutput};
use case::Prepared;
use runs::{Outcome, outcomes};

/// The published work.
pub(super) const SOURCE: &str = "Peternier, Ansaloni, Bonetta, Pautasso, Binder, \"Improving \
    Execution Unit Occupancy on SMT-based Processors through Hardware-aware Thread Scheduling\", \
    Future Generation Computer Systems 30, 2014";

/// What the studies of pairs do otherwise.
pub(super) const DIFFERS_PAIRS: &str = "The machine is simulated. A program's work is what it \
    does alone in a set time from its beginning (300 s on Bulldozer, 60 s on POWER7, 10 s at the \
    quick scale), not the whole of it; a program that has done its work \
    starts again until the last has. Speedup is of system throughput, the makespan stands beside \
    it. The runs differ in their seed: where linux starts each program, bursts of the programs, \
    errors of counters.";

/// What the studies of kernels do otherwise.
pub(super) const DIFFERS_KERNELS: &str = "The machine is simulated, and so are the kernels, \
    without the Java machine around them. Each kernel runs once per thread, for what it does \
    alone in 10 s (3 s at the quick scale); a thread that is through starts again until the last is. Threads share nothing. \
    Speedup is of system throughput, the makespan stands beside it. The runs differ in their \
    seed: the orders of kernels, where linux starts each thread, bursts, errors of counters.";

/// The kernels of SciMark 2.0.
pub(super) const SCIMARK: [&str; 5] = ["fft", "sor", "monte-carlo", "sparse-matmult", "lu"];

/// The policies, in the order of rows; the first is what speedups refer to.
const POLICIES: [Policy; 3] = [
    Policy {
        name: "linux",
        contender: "linux",
    },
    Policy {
        name: "aggregate",
        contender: "aggregate:margin=0,numa=false",
    },
    Policy {
        name: "workover",
        contender: "workover:margin=0,numa=false",
    },
];
/// Positions in [`POLICIES`].
const LINUX: usize = 0;
const AGGREGATE: usize = 1;
const WORKOVER: usize = 2;

/// A policy by the name that rows bear.
struct Policy {
    name: &'static str,
    contender: &'static str,
}

/// A case with what its runs gave.
struct Measured<'a> {
    case: &'a Prepared,
    /// By policy, then by run.
    runs: Vec<Vec<Outcome>>,
}

impl Measured<'_> {
    /// The key of a policy's row.
    fn row(&self, policy: usize) -> String {
        format!("{}/{}", self.case.key, POLICIES[policy].name)
    }

    /// One number of every run of a policy.
    fn over(&self, policy: usize, value: impl Fn(&Outcome) -> f64) -> Vec<f64> {
        self.runs[policy].iter().map(value).collect()
    }
}

/// Runs a study of these cases.
pub(super) fn run(cases: &[Case], context: &Context<'_>) -> Result<StudyOutput, StudyError> {
    let prepared = context.map(cases, |case| case.prepare(context))?;
    let prepared: Vec<Prepared> = prepared.into_iter().collect::<Result<_, _>>()?;
    let runs = context.by_scale(3, 10);
    let measured = outcomes(&prepared, runs, context)?;
    Ok(StudyOutput {
        tables: tables::tables(&measured)?,
        figures: figures::figures(&measured, runs)?,
        notes: notes::notes(&measured),
        runs,
    })
}
