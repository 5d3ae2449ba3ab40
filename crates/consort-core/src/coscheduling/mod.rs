//! Co-scheduling of multithreaded programs: those that share the machine, and the cores of each.
//!
//! Source: Bhadauria and McKee, "An Approach to Resource-Aware Co-Scheduling for CMPs" (ICS 2010;
//! HOLISYN).
//!
//! The baseline is a gang: each program in turn has all cores for a quantum. Programs that run in
//! one [`CoscheduleSlot`] share the cores for as many quanta as they are, so that nobody gives more space
//! than it is given time. A [`Chooser`] makes the slots: it asks for trials of a quantum each, and
//! is told what every program got done ([`ProgramMeasure`]).
//!
//! Pitfall: measures of different slots are comparable only per unit of work and with the quanta
//! that a program gets, which is what [`ProgramMeasure::energy_delay`] is of.

mod application_chooser;
mod exhaustive;
mod fair;
mod gang;
mod greedy;
mod measure;
mod objective;
mod pdpa;
mod profile;
mod slot;
#[cfg(test)]
mod testing;
mod thread_chooser;

pub use application_chooser::{ApplicationChooser, EnergyDelayBaseline};
pub use exhaustive::{
    ExhaustiveError, ExhaustiveSlots, MOST_PROGRAMS, MOST_SLOTS, ScheduleRound, slots_of,
};
pub use fair::{ContendedResource, FairChooser};
pub use gang::GangChooser;
pub use greedy::GreedyChooser;
pub use measure::{ProgramMeasure, fairness, speedup, thread_throughput_gain};
pub use objective::RoundObjective;
pub use pdpa::PdpaChooser;
pub use profile::KnownProfiles;
pub use slot::{Chooser, ChooserStep, CoscheduleSlot, ProgramTeam, SlotTrial};
pub use thread_chooser::{SecondaryCondition, ThreadChooser};
