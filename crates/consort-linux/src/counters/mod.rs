//! Counting: planning groups of events, opening them on threads, and turning counts into signals.
//!
//! # Usage
//!
//! [`probe()`] tells which tiers this host has. For the counters tier, [`plan()`]
//! makes groups from an event file, [`PmuProgram`] readies them for a PMU,
//! [`ThreadGroups`] opens and reads them on threads, and [`fill_signals`] turns counts
//! into signals. For the software tier, [`SoftwareEvents`] gives the one group.
//! [`check()`] holds every event against loops of known counts.
//!
//! # Pitfalls
//!
//! Only user mode is counted by hardware events, which is all that
//! `perf_event_paranoid` 2 permits; time in system calls has no cycles.

mod assign;
mod budget;
mod check;
mod check_software;
mod derive;
mod judge;
mod plan;
#[cfg(test)]
mod plan_laws;
mod pmu;
mod probe;
mod program;
mod sleeps;
mod software;
mod threads;

pub use budget::{CounterBudget, is_nmi_watchdog_on};
pub use check::{CheckKernel, ExpectedCounts, check};
pub use derive::{EventRates, fill_signals};
pub use judge::{CheckRow, EventVerdict};
pub use plan::{CounterPlan, PlanInput, PlannedGroup, UnplannedSignal, plan};
pub use pmu::{Pmu, core_pmus};
pub use probe::{TierStatus, Tiers, probe};
pub use program::PmuProgram;
pub(crate) use sleeps::SleepCounter;
pub use software::SoftwareEvents;
pub use threads::{Notice, ThreadGroups};
