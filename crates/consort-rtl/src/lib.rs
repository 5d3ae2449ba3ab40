//! The hardware units of `rtl/` beside the policies that they implement.
//!
//! Purpose: shows that a unit asks for the same exchanges as its policy, at every cycle. Usage: a
//! [`UnitParameters`] names a unit and its parameters; [`RtlModel::build`] has Verilator make a program of it
//! ([`find_verilator`] shows if there is one); [`run_random_quanta()`] drives both with stimuli drawn by a
//! seed, [`replay()`] with what a policy observed in a run. The first difference is an [`RtlError`].
//!
//! Pitfall: the policy is asked once per cycle. While an exchange is under way, and while tcs still
//! adds up and compares, it is told that the large core is in the kernel: to a policy both mean
//! that nobody can be exchanged yet.

mod bus;
mod compare;
mod cycle;
mod error;
mod model;
mod policy_recording;
mod random;
mod reference_policy;
mod stimuli;
mod unit_parameters;

pub use compare::ComparisonSummary;
pub use error::RtlError;
pub use model::{RtlModel, SOURCES, find_verilator};
pub use policy_recording::{PolicyRecording, replay};
pub use random::run_random_quanta;
pub use unit_parameters::{UnitParameters, UnitPolicy};
