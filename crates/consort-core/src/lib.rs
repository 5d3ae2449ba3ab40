//! The pure engine of Consort.
//!
//! A control loop turns one wheel per quantum: observe, characterise, predict,
//! decide, enact. The middle steps live here. They have no clock, do no I/O,
//! draw randomness only from a seed that is passed in, and do not panic on
//! input: the same input gives the same output on any host.

mod ids;
mod pu_set;
pub mod topology;

pub use ids::{ProgramId, PuId, ThreadId};
pub use pu_set::{MAX_PU, PuSet, PuSetError};
pub use topology::Topology;
