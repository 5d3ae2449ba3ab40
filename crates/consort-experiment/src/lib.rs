//! Experiments: a workload on a simulated machine under a policy, once or many times.
//!
//! Purpose: an [`Experiment`] under a [`Contender`] gives a [`RunResult`]; [`compare()`] sets several
//! contenders beside each other, and [`mapping`] measures workloads under thread mappings. A
//! [`ExperimentContext`] has seed, scale and workers for many of them, and a [`StopRequest`] ends them early.
//! [`long`] has results as tables for files and data frames, [`traced`] runs programs by their
//! traces, cycle by cycle. [`train`] fits interference models to simulated or recorded runs, and [`bench`]
//! measures how fast Consort itself simulates, solves and decides.
//!
//! The method: a program's work is what it does alone in a set time; together, a program that has
//! done its work is noted and starts again, until the last has finished; or, where a source does so,
//! each runs once from beginning to end ([`Experiment::run_once`]). Repetitions differ in their seed
//! alone, and the same seeds serve every contender, so ratios are taken run by run. Pitfall: results
//! depend on seed and scale, never on the number of workers or on time.

mod alone;
pub mod bench;
mod compare;
mod contender;
mod context;
mod coschedule;
mod counters;
mod custom_policy;
mod decision_time;
mod error;
pub mod long;
mod machine;
pub mod mapping;
mod oracle;
mod prefetching;
mod repeated;
mod result;
mod run;
mod sequence;
pub mod slots;
mod stop;
#[cfg(test)]
mod testing;
pub mod traced;
pub mod train;
pub mod watch;

pub use alone::{AloneWork, measure_alone, measure_full_length};
pub use compare::{
    ComparedRuns, ContenderRow, MeanEstimate, PolicyComparison, compare, compare_runs,
    find_baseline,
};
pub use contender::Contender;
pub use context::{ExperimentContext, Scale, SharedResults, StageProgress};
pub use counters::{NOT_MODELLED, ProgramCounters, ThreadTime, Transactions};
pub use custom_policy::CustomPolicy;
pub use decision_time::{DecisionListener, DecisionTime};
pub use error::{ExperimentError, JobsError};
pub use machine::{NullSampleSource, build_machine};
pub use oracle::GroupSlowdowns;
pub use prefetching::PrefetchingEffect;
pub use repeated::RepeatedProgram;
pub use result::{ProgramResult, RunResult};
pub use run::Experiment;
pub use sequence::Sequence;
pub use stop::StopRequest;
