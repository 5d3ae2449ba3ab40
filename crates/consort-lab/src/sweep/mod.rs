//! Sweeps: many runs described in one file, in shards that any scheduler can distribute.
//!
//! A [`SweepSpec`] names machines, workloads, policies, parameters and seeds, or studies. A
//! [`Sweep`] has its units in a fixed order; a [`SweepPlan`] cuts them into numbered shards of
//! similar estimated work. [`ShardFolder`] is the contract: `run N` writes one file, atomically,
//! named after its content, and does nothing if that file exists; merging joins the files in order.
//! Nothing here depends on a scheduler.
//!
//! A plan belongs to one version of Consort and to the contents of all files that it names. If
//! these have changed, [`ShardFolder::run`] refuses.

mod cases;
mod error;
mod folder;
mod plan;
mod spec;
mod units;

pub use error::{SweepError, ranges};
pub use folder::{ShardFolder, ShardOutcome, SweepStatus};
pub use plan::{Shard, SweepPlan};
pub use spec::{Method, Parameter, Samples, Scaling, SweepSpec};
pub use units::Sweep;
