//! The hardware units of `rtl/` beside the policies that they implement.
//!
//! Purpose: shows that a unit asks for the same exchanges as its policy, at every cycle. Usage: a
//! [`Setting`] names a unit and its parameters; [`Model::build`] has Verilator make a program of it
//! ([`find_verilator`] tells whether there is one); [`random()`] drives both with stimuli drawn by a
//! seed, [`replay()`] with what a policy observed in a run. The first difference is an [`Error`].
//!
//! Pitfall: the policy is asked once per cycle. While an exchange is under way, and while tcs still
//! adds up and compares, it is told that the large core is in the kernel: to a policy both mean
//! that nobody can be exchanged yet.

mod bus;
mod compare;
mod cycle;
mod error;
mod model;
mod random;
mod recorded;
mod reference;
mod setting;
mod stimuli;

pub use compare::Summary;
pub use error::Error;
pub use model::{Model, SOURCES, find_verilator};
pub use random::random;
pub use recorded::{Recording, replay};
pub use setting::{Policy, Setting};
