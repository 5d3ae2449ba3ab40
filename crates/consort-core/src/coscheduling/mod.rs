//! Co-scheduling of multithreaded programs: those that share the machine, and the cores of each.
//!
//! Source: Bhadauria and McKee, "An Approach to Resource-Aware Co-Scheduling for CMPs" (ICS 2010;
//! HOLISYN).
//!
//! The baseline is a gang: each program in turn has all cores for a quantum. Programs that run in
//! one [`Slot`] share the cores for as many quanta as they are, so that nobody gives more space
//! than it is given time. A [`Chooser`] makes the slots: it asks for trials of a quantum each, and
//! is told what every program got done ([`Measure`]).
//!
//! Pitfall: measures of different slots are comparable only per unit of work and with the quanta
//! that a program gets, which is what [`Measure::energy_delay`] is of.

mod application;
mod exhaustive;
mod fair;
mod gang;
mod greedy;
mod measure;
mod objective;
mod pdpa;
mod profile;
mod slot;
mod teams;
#[cfg(test)]
mod testing;

pub use application::{Application, Standard};
pub use exhaustive::{Exhaustive, ExhaustiveError, MOST_PROGRAMS, MOST_SLOTS, Round, slots_of};
pub use fair::{Fair, Use};
pub use gang::Gang;
pub use greedy::Greedy;
pub use measure::{Measure, fairness, speedup, thread_throughput_gain};
pub use objective::Objective;
pub use pdpa::Pdpa;
pub use profile::Profile;
pub use slot::{Chooser, Slot, Step, Team, Trial};
pub use teams::{Secondary, Teams};
