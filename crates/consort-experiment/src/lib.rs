//! Experiments: a workload on a simulated machine under a policy, once or many times.
//!
//! Purpose: an [`Experiment`] under a [`Contender`] gives a [`RunResult`]; [`compare_runs`] sets several
//! contenders side by side, and [`mapping`] measures workloads under thread mappings. A
//! [`ExperimentContext`] has seed, scale and workers for many of them, and a [`StopRequest`] ends them early.
//! [`long`] has results as tables for files and data frames, [`traced`] runs programs by their
//! traces, cycle by cycle. [`train`] fits interference models to simulated or recorded runs, and [`bench`](mod@bench)
//! measures how fast Consort itself simulates, solves and decides.
//!
//! The method: a program's work is what it does alone in a set time; together, a program that has
//! done its work is noted and starts again, until the last has finished; or, if the published source does so,
//! each runs once from beginning to end ([`RunOptions`]). Repetitions differ in their seed
//! alone, and the same seeds serve every contender, so ratios are taken run by run. Pitfall: results
//! depend on seed and scale, never on the number of workers or on time.

mod alone;
pub mod bench;
mod compare;
mod contender;
mod context;
mod coschedule;
mod counters;
mod error;
pub mod long;
pub mod mapping;
mod oracle;
mod repeated;
mod result;
mod run;
mod sequence;
pub mod slots;
#[cfg(test)]
mod testing;
pub mod traced;
pub mod train;
pub mod watch;

pub use alone::{AloneWork, NullSampleSource, RunUntil, build_machine, measure_alone};
pub use compare::{
    ComparedRuns, ContenderRow, MeanEstimate, PolicyComparison, compare_runs, find_baseline,
    idle_warning,
};
pub use contender::{Contender, CustomPolicy};
pub use context::{ExperimentContext, Scale, SharedResults, StageProgress, StopRequest};
pub use counters::{NOT_MODELLED, PrefetchingEffect, ProgramCounters, ThreadTime, Transactions};
pub use error::{ExperimentError, JobsError};
pub use oracle::GroupSlowdowns;
pub use repeated::RepeatedProgram;
pub use result::{DecisionTime, ProgramResult, RunResult};
pub use run::{DecisionListener, Experiment, RunOptions};
pub use sequence::Sequence;
