//! Experiments: a workload on a simulated machine under a policy, once or many times.
//!
//! Purpose: an [`Experiment`] under a [`Contender`] gives a [`RunResult`]; [`compare()`] sets several
//! contenders beside each other, and [`mapping`] measures workloads under thread mappings. A
//! [`Context`] has seed, scale and workers for many of them, and a [`Stop`] ends them early.
//! [`long`] has results as tables for files and data frames, [`traced`] runs programs by their
//! traces, cycle by cycle.
//!
//! The method: a program's work is what it does alone in a set time; together, a program that has
//! done its work is noted and starts again, until the last has finished; or, where a source does so,
//! each runs once from beginning to end ([`Experiment::run_once`]). Repetitions differ in their seed
//! alone, and the same seeds serve every contender, so ratios are taken run by run. Pitfall: results
//! depend on seed and scale, never on the number of workers or on time.

mod alone;
mod compare;
mod contender;
mod context;
mod coschedule;
mod counters;
mod custom;
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
pub mod watch;

pub use alone::{Work, measure_alone, measure_whole};
pub use compare::{Compared, Comparison, Measure, Row, baseline, compare, compare_runs};
pub use contender::Contender;
pub use context::{Context, Made, Progress, Scale};
pub use counters::{Counters, NOT_MODELLED, ThreadTime, Transactions};
pub use custom::Custom;
pub use decision_time::{DecisionTime, Listener};
pub use error::{ExperimentError, JobsError};
pub use machine::{Quiet, machine};
pub use oracle::Slowdowns;
pub use prefetching::Prefetching;
pub use repeated::Repeated;
pub use result::{ProgramResult, RunResult};
pub use run::Experiment;
pub use sequence::Sequence;
pub use stop::Stop;
