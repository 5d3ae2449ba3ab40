//! The simulated PMU: what a machine's counters show of the truth.
//!
//! The simulation accounts for everything ([`ThreadCounts`](crate::engine::ThreadCounts)); a policy
//! sees a [`Sample`](consort_core::Sample), which [`SimulatedPmu::sample`] makes of counts of the
//! machine's own events alone. At most [`PmuSpec::programmable`](crate::machine::PmuSpec) events
//! without a counter of their own count at once; what needs more is spread over groups of events
//! that take turns, one group per quantum and thread. Cycles and instructions are in every group.
//!
//! Staleness: a signal whose events were off in the last quantum keeps the value of the quantum in
//! which they were last on. Its reading says so: the enabled time goes from the begin of that
//! quantum to now, the running time is that quantum alone, and the raw value is smaller by
//! running/enabled, so that [`Reading::scaled`](consort_core::Reading::scaled_value) gives the
//! ratio as it was measured. A cycle stack has no times; its parts are each taken per cycle of
//! their own quantum, and it is there once every part has been measured.
//!
//! Pitfalls: a thread that was off its CPUs for the whole quantum takes no turn, and the mix of
//! instructions is no signal here, since no event separates loads from stores.
//!
//! Nothing in a sample leads back to the truth:
//!
//! ```compile_fail
//! fn peek(sample: consort_core::Sample) -> consort_sim::contention::ThreadRates {
//!     sample.into()
//! }
//! ```

mod noise;
mod quantity;
mod readout;
mod signals;
mod simulated;

pub use readout::{PmuError, Readout, ReadoutUnit, ReadoutValue};
pub use simulated::{PmuRequest, SimulatedPmu};
