//! Slots of co-schedules, simulated one by one: what programs do on their cores of a slot.
//!
//! A [`Suite`] is a workload whose programs can be in slots. A [`Trials`] simulates a slot for a
//! quantum, event by event, and tells every program's [`Measure`](consort_core::coscheduling). A
//! [`Steady`] estimates the same without events, for searches through all slots; [`best_rounds`] is
//! such a search, whose answer stands on simulated slots alone.
//!
//! Pitfall: programs are cut into frames ([`framed`]), so that a quantum shows their mean; a run
//! of the same workload in which serial sections are longer than quanta shows parts of it.

mod best;
mod frames;
mod steady;
mod suite;
mod trials;

pub use best::{BestRound, Members, Quest, best_rounds};
pub use frames::framed;
pub use steady::{NEAR_LINEAR, Steady};
pub use suite::Suite;
pub use trials::{Quantum, Trials};
