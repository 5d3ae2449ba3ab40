//! Counter plans, groups per thread, and what follows from them.
mod assign;
mod budget;
mod plan;

pub use budget::{Budget, nmi_watchdog};
pub use plan::{CounterPlan, PlanInput, PlannedGroup, Sharing, Unplanned, plan};
