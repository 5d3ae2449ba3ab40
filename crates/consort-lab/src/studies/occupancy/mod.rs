//! What the studies of execution-unit occupancy share: cases, runs, tables, figures, notes.
//!
//! A study is a list of [`Case`]s; [`run`] does the rest. Policies are `linux`, `workover` and, for
//! pairs, `aggregate`, the latter two by the paper's rules: no margin, no dealing to nodes.
//!
//! Every case is run in two ways. As in the source, all programs start together and each runs once;
//! what counts is the time until all have finished. Beside it, all have equal work and start again
//! until the last has done its own, so that both classes are there all of the time; what counts is
//! system throughput.
//!
//! Row keys are `CASE/POLICY`, with `/CLASS` or `/LENGTH` where there are several, for example
//! `smt2/h264ref+povray/workover/fp`. Tables and their columns:
//!
//! - `headline`: see [`crate::report::Headline`];
//! - `once`, each program once: `makespan_s`, `speedup_over_linux`, `speedup_over_aggregate` (ratios
//!   of makespans), `makespan_min_s`, `makespan_max_s`, `makespan_sd_s`, `l2_misses` (10⁹),
//!   `l2_change_percent` (over `linux`), `migrations`;
//! - `policies`, equal work: `speedup_over_linux`, `speedup_over_aggregate` (ratios of system
//!   throughput), `makespan_speedup_over_linux`, `stp`, `antt`, `unfairness`, `makespan_s`,
//!   `migrations`;
//! - `spread`, equal work: `makespan_min_s`, `makespan_max_s`, `makespan_sd_s`, `stp_min`,
//!   `stp_max`, `stp_sd`, all over the runs;
//! - `classes`, equal work: `slowdown`, `l2_mpki`, `l2_change_percent` (over `linux`),
//!   `fpu_busy_percent`, `cpi`, and `cpi_CAUSE` for each cause of cycles;
//! - `units`, equal work: `fpu_mean_percent`, `fpu_busiest_percent`, `fpu_idlest_percent`: share of
//!   the FPU's pipes in use, over all cores, on the core where it is highest and where it is lowest
//!   at each moment;
//! - `ends`, each program once: `end_s` (when the last of the class ends), `l2_change_percent`;
//! - `lengths`, pairs only, each program once, rows with `/as-it-is`, `/shortened`,
//!   `/shortened-fp-halved` and `/shortened-fp-doubled`: `length_percent` (of what descriptions say),
//!   `makespan_s`, `speedup_over_linux`.
//!
//! All intervals are over runs that differ in their seed; ratios are taken run by run.

mod case;
mod classes;
mod figures;
mod fpu;
mod headline;
mod helpers;
mod notes;
mod once;
mod runs;
mod tables;

pub(super) use case::{Case, Load};

use crate::context::Context;
use crate::report::Table;
use crate::study::{StudyError, StudyOutput};
use case::{Method, Prepared};
use runs::{Outcome, outcomes};

/// The kernels of SciMark 2.0.
pub(super) const SCIMARK: [&str; 5] = ["fft", "sor", "monte-carlo", "sparse-matmult", "lu"];

/// The policies, in the order of rows; the first is what speedups refer to, the last is for pairs.
const POLICIES: [Policy; 3] = [
    Policy {
        name: "linux",
        contender: "linux",
    },
    Policy {
        name: "workover",
        contender: "workover:margin=0,numa=false",
    },
    Policy {
        name: "aggregate",
        contender: "aggregate:margin=0,numa=false",
    },
];
/// Positions in [`POLICIES`].
const LINUX: usize = 0;
const WORKOVER: usize = 1;
const AGGREGATE: usize = 2;

/// How long the programs of a pair are, in proportion to what their descriptions say.
#[derive(Clone, Copy, Debug)]
struct Length {
    /// The end of its rows' keys.
    name: &'static str,
    /// Of all programs, at the full scale.
    share: f64,
    /// Of the floating-point programs, on top of it.
    fp: f64,
}

impl Length {
    /// Of all programs, at the context's scale.
    fn share(self, context: &Context<'_>) -> f64 {
        const QUICK: f64 = 0.01;
        context.by_scale(QUICK, self.share)
    }
}

/// The first is the source's.
const LENGTHS: [Length; 4] = [
    length("as-it-is", 1.0, 1.0),
    length("shortened", 0.1, 1.0),
    length("shortened-fp-halved", 0.1, 0.5),
    length("shortened-fp-doubled", 0.1, 2.0),
];

const fn length(name: &'static str, share: f64, fp: f64) -> Length {
    Length { name, share, fp }
}

/// A policy by the name that rows bear.
struct Policy {
    name: &'static str,
    contender: &'static str,
}

/// A case with what its runs by one method gave.
struct Measured<'a> {
    case: &'a Prepared,
    /// By policy, then by run.
    runs: Vec<Vec<Outcome>>,
}

impl Measured<'_> {
    /// Positions of the policies.
    fn policies(&self) -> std::ops::Range<usize> {
        0..self.runs.len()
    }

    /// The key of a policy's row.
    fn row(&self, policy: usize) -> String {
        format!("{}/{}", self.case.key, POLICIES[policy].name)
    }

    /// One number of every run of a policy; none where the policy was not run.
    fn over(&self, policy: usize, value: impl Fn(&Outcome) -> f64) -> Vec<f64> {
        let runs = self.runs.get(policy).into_iter().flatten();
        runs.map(value).collect()
    }
}

/// All cases by all methods.
struct Results<'a> {
    /// Each program once.
    once: Vec<Measured<'a>>,
    /// The same of the pairs, by [`LENGTHS`] from the second.
    stretched: Vec<Vec<Measured<'a>>>,
    /// Equal work.
    equal: Vec<Measured<'a>>,
}

impl<'a> Results<'a> {
    fn of(cases: &'a [Prepared], runs: usize, context: &Context<'_>) -> Result<Self, StudyError> {
        let all: Vec<&Prepared> = cases.iter().collect();
        let pairs: Vec<&Prepared> = cases.iter().filter(|case| case.is_pair()).collect();
        let of = |cases: &[&'a Prepared], method| outcomes(cases, method, runs, context);
        let stretched = (1..LENGTHS.len()).map(|length| of(&pairs, Method::Once(length)));
        Ok(Self {
            once: of(&all, Method::Once(0))?,
            stretched: stretched.collect::<Result<_, _>>()?,
            equal: of(&all, Method::Equal)?,
        })
    }

    fn tables(&self, context: &Context<'_>) -> Result<Vec<Table>, StudyError> {
        let mut tables = vec![headline::table(&self.once)?, once::table(&self.once)?];
        tables.extend(tables::tables(&self.equal)?);
        tables.push(once::ends(&self.once)?);
        if self.once.iter().any(|m| m.case.is_pair()) {
            tables.push(once::lengths(&self.once, &self.stretched, context)?);
        }
        Ok(tables)
    }
}

/// Runs of each case: fewer of pairs, whose whole programs take minutes.
fn runs_of(cases: &[Case], context: &Context<'_>) -> usize {
    let pairs = cases
        .iter()
        .any(|case| matches!(case.load, Load::Pair { .. }));
    context.by_scale(3, if pairs { 4 } else { 10 })
}

/// Runs a study of these cases.
pub(super) fn run(cases: &[Case], context: &Context<'_>) -> Result<StudyOutput, StudyError> {
    let prepared = context.map(cases, |case| case.prepare(context))?;
    let prepared: Vec<Prepared> = prepared.into_iter().collect::<Result<_, _>>()?;
    let runs = runs_of(cases, context);
    let results = Results::of(&prepared, runs, context)?;
    Ok(StudyOutput {
        tables: results.tables(context)?,
        figures: figures::figures(&results.once, &results.equal, runs)?,
        notes: notes::notes(&results.once, &results.equal),
        runs,
    })
}
