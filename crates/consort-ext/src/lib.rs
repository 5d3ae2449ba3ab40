//! Plans enforced inside the kernel's scheduler, through sched_ext.
//!
//! A thread runs where the plan has it without a narrowed affinity mask, so that neither the thread
//! nor its children can see that it is placed. Programs can have time slots in which none of the
//! others runs. The kernel's part decides nothing: it follows the latest plan of its owner, and
//! lets every thread run anywhere when the owner falls silent.
//!
//! ```no_run
//! use consort_ext::{ExtConfig, ExtPlan, Scheduler, SchedulerState, probe};
//! use consort_core::{ThreadId, Topology};
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let (topology, thread) = (Topology::uniform(4, 2)?, ThreadId { pid: 1, tid: 1, start_ticks: 0 });
//! probe("/".as_ref()).check_ready()?;
//! let mut scheduler = Scheduler::start(&topology, &ExtConfig::default())?;
//! scheduler.manage(thread)?;
//! let mut plan = ExtPlan::unrestricted(Duration::from_millis(100));
//! plan.places.insert(thread, topology.cores()[0].pus.iter().copied().collect());
//! scheduler.apply(&plan)?;
//! while scheduler.state() == SchedulerState::Running {
//!     scheduler.send_heartbeat();
//! #   break;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Limits: the kernel's ordinary threads come before those of a partial sched_ext scheduler, so a
//! busy foreign thread takes its CPU from them. Without the feature `bpf` there is only
//! [`probe()`], which reports that. docs/understand/ext.md has the details.

mod encode;
mod error;
mod kernel;
mod layout;
mod plan;
mod probe;
mod scheduler;
mod stats;
mod sys;

pub use error::ExtError;
pub use plan::ExtConfig;
pub use plan::{ExtPlan, LEAST_STALE, TimeSlot};
pub use probe::{Obstacle, SchedExtSupport, probe};
pub use scheduler::Scheduler;
pub use stats::{ExtStats, PuTimes, RunningTimes, SchedulerState};
