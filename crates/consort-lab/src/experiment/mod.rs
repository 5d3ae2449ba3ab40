//! Experiments: a workload on a simulated machine under a policy, once or many times.
//!
//! The method: a program's work is what it does alone in a set time; together, a program that has
//! done its work is noted and starts again, until the last has finished; or, where a source does so,
//! each runs once from beginning to end ([`Experiment::run_once`]). Repetitions differ in their seed
//! alone, and the same seeds serve every contender, so ratios are taken run by run.

mod alone;
mod compare;
mod contender;
mod coschedule;
mod counters;
mod custom;
mod decision_time;
mod error;
mod oracle;
mod prefetching;
mod repeated;
mod result;
mod run;
mod sequence;
pub mod slots;
#[cfg(test)]
pub(crate) mod testing;

pub use alone::{Work, measure_alone, measure_whole};
pub use compare::{Compared, Comparison, Measure, Row, baseline, compare, compare_runs};
pub use contender::Contender;
pub use counters::{Counters, NOT_MODELLED, ThreadTime, Transactions};
pub use custom::Custom;
pub use decision_time::{DecisionTime, Listener};
pub use error::ExperimentError;
pub(crate) use oracle::Slowdowns;
pub use prefetching::Prefetching;
pub use repeated::Repeated;
pub use result::{ProgramResult, RunResult};
pub use run::Experiment;
pub(crate) use run::{Quiet, machine};
pub use sequence::Sequence;
