//! Slots of co-schedules, simulated one by one: what programs do on their cores of a slot.
//!
//! A [`Suite`] is a workload whose programs can be in slots. A [`SlotTrials`] simulates a slot for a
//! quantum, event by event, and gives every program's [`MeanEstimate`](consort_core::coscheduling). A
//! [`SlotEstimator`] estimates the same without events, for searches through all slots; [`best_rounds`] is
//! such a search, whose answer stands on simulated slots alone.
//!
//! Pitfall: programs are cut into frames ([`cut_into_frames`]), so that a quantum shows their mean; a run
//! of the same workload in which serial sections are longer than quanta shows parts of it.

mod best;
mod frames;
mod slot_estimator;
mod suite;
mod trials;

pub use best::{BestRound, SearchGoal, SlotMembers, best_rounds};
pub use frames::cut_into_frames;
pub use slot_estimator::{NEAR_LINEAR, SlotEstimator};
pub use suite::Suite;
pub use trials::{SlotTrials, TrialLengths};
