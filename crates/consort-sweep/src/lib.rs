//! Sweeps: many runs described in one file, in shards that any scheduler can hand out.
//!
//! A [`SweepSpec`] names machines, workloads, policies, parameters and seeds, or studies. A
//! [`Sweep`] has its units in a fixed order; a [`SweepPlan`] cuts them into numbered shards of about equal
//! estimated work. [`ShardFolder`] is the contract: `run N` writes one file, atomically, named after what
//! is in it, and does nothing where that file is there; merging joins the files in their order.
//! Nothing here knows a scheduler. Pitfall: a plan is of one version of Consort and of the contents
//! of all files that it names; where these have changed, [`ShardFolder::run`] refuses.

mod cases;
mod cost;
mod error;
mod folder;
mod plan;
mod points;
mod shard;
mod spec;
mod units;

pub use error::{SweepError, ranges};
pub use folder::{ShardFolder, ShardOutcome, SweepStatus};
pub use plan::{Shard, SweepPlan};
pub use spec::{Method, Parameter, Samples, Scaling, SweepSpec};
pub use units::Sweep;
