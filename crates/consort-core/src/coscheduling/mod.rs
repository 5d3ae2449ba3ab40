//! Co-scheduling of multithreaded programs: choosers of the programs that share the machine, and of
//! the cores of each.
//!
//! Source: Bhadauria and McKee, "An Approach to Resource-Aware Co-Scheduling for CMPs" (ICS 2010;
//! HOLISYN).
//!
//! The baseline is a gang: each program in turn has all cores for a quantum. The programs of one
//! [`CoscheduleSlot`] share the cores for one quantum per program, so that a program that gives up
//! cores gets time in return. A [`Chooser`] forms the slots: it requests trials of a quantum each,
//! and receives the measure of every program ([`ProgramMeasure`]).
//!
//! Measures of different slots are comparable only per unit of work and with the quanta that a
//! program gets, which [`ProgramMeasure::energy_delay`] takes into account.

mod application_chooser;
mod exhaustive;
mod fair;
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
pub use greedy::GreedyChooser;
pub use measure::{ProgramMeasure, fairness, speedup, thread_throughput_gain};
pub use objective::RoundObjective;
pub use pdpa::PdpaChooser;
pub use profile::KnownProfiles;
pub use slot::{Chooser, ChooserStep, CoscheduleSlot, GangChooser, ProgramTeam, SlotTrial};
pub use thread_chooser::{SecondaryCondition, ThreadChooser};
