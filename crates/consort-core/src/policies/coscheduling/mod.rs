//! Policies that decide which multithreaded programs share the machine: a driver of the
//! [choosers](crate::coscheduling), and a file per policy.
//!
//! Source: Bhadauria and McKee, "An Approach to Resource-Aware Co-Scheduling for CMPs" (ICS 2010;
//! HOLISYN).
//!
//! A driver samples every program alone on all cores for a quantum each, lets the chooser try
//! what it wants for a quantum each, and then runs the slots in turn, each for as many quanta as it
//! has programs. Programs that are not in the slot are paused. A quantum is observed in two parts,
//! so that counters of which half fit at once tell everything in each.
//!
//! Programs that come or go begin a new round; what is known of those that stay is kept. Plans name
//! a quantum of their own, so the control loop's backoff, which would compare the progress of
//! slots that differ on purpose, does not judge them.
//!
//! A program in another phase is sampled again, the others are not, and slots are chosen anew
//! ([`phase`]); not before slots have run for as many quanta as it last took to find them, so that
//! at most half of the time goes into looking.
//!
//! Trials are bounded. For n programs on c cores sampling takes n quanta, and n more where one-core
//! throughput is needed; the fair schedulers try at most 3n co-schedules and 4 + 2m distributions
//! of cores to m members, 7n in all; `greedy` tries n·(c − 1), `pdpa` 2c + 1 for every c programs.
//!
//! Programs that want hardly any processor time take no turns and are not paused
//! ([`sleeping_programs`]). Each user's programs have a rotation of their own ([`rotations`]).
//!
//! Pitfalls: a program in which some thread must be let alone runs all the time, beside every
//! slot. The interval between observations that a user asks for holds until the first plan only;
//! the option `quantum` is what counts.

mod alone_measure_table;
mod core_division;
mod driver;
mod explain;
mod fair;
pub(super) mod fair_com;
pub(super) mod fair_mis;
mod fixed_slots;
pub(super) mod gang;
pub(super) mod greedy;
mod meter;
mod observed_programs;
mod options;
pub(super) mod pdpa;
mod phase;
mod rotations;
mod running_slot;
mod sleeping_programs;
mod slot_rotation;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use core_division::divide_cores;
use driver::CoschedulingSettings;
pub use fixed_slots::fixed_slot_policy;
use rotations::Rotations;
