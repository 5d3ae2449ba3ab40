//! Counting: planning groups of events, opening them on threads, and turning counts into signals.
//!
//! # Usage
//!
//! [`probe()`] finds the tiers of this host. For the counters tier, [`plan()`]
//! makes groups from an event file, [`PmuProgram`] readies them for a PMU,
//! [`ThreadGroups`] opens and reads them on threads, and [`fill_signals`] turns counts
//! into signals. For the software tier, [`SoftwareEvents`] gives the one group.
//! [`check()`] holds every event against loops of known counts.
//!
//! # Pitfalls
//!
//! Only user mode is counted by hardware events, which is all that
//! `perf_event_paranoid` 2 permits; time in system calls has no cycles.

mod check;
mod derive;
mod plan;
mod probe;
mod software;
#[cfg(test)]
mod tests;
mod threads;

pub use check::{CheckKernel, CheckRow, EventVerdict, ExpectedCounts, check};
pub use derive::{EventRates, fill_signals};
pub use plan::{
    CounterBudget, CounterPlan, PlanInput, PlannedGroup, Pmu, PmuProgram, UnplannedSignal,
    core_pmus, is_nmi_watchdog_on, plan,
};
pub use probe::{TierStatus, Tiers, probe};
pub(crate) use software::SleepCounter;
pub use software::SoftwareEvents;
pub use threads::{Notice, ThreadGroups};
